"""From a network and windows to a fitted estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nplm.neural.network import Network
from nplm.parallel.threads import blas_threads
from nplm.training.checkpoint import Checkpoint
from nplm.training.loop import Epochs, Progress, run_epochs

__all__ = ["Windows", "fit_network"]


# Training windows scored after an epoch without held-out data: the loss of the
# epoch is from before its last updates, and these may have diverged.
N_PROBED = 1000


class Windows(NamedTuple):
    """What a fit works on, checked."""

    X: NDArray[np.int32]
    y: NDArray[np.int32]
    held_out: tuple[NDArray[np.int32], NDArray[np.int32]] | None
    go_on: bool  # from the weights of an earlier fit


def fit_network(
    lm: Any,
    network: Network,
    data: Windows,
    *,
    keep: Callable[[], None],
    max_iter: int,
    patience: int | None = None,
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
) -> None:
    """Train `network`, make it the attributes of `lm`, and `keep` these.

    The history of a fit that goes on is appended to. An interrupt is raised when the
    attributes are set. This process may not be one to have them.
    """
    X, y, held_out, _ = data
    so_far = lm.history_ if data.go_on else {}
    history: dict[str, list[float]] = {"loss": [], "val_loss": [], "seconds": []}
    history |= {name: list(values) for name, values in so_far.items()}
    asked = lm._asked()
    batch_size = min(asked.batch_size, len(y))

    def train(index: NDArray[np.intp]) -> None:
        network.train(
            X, y, index,
            batch_size=batch_size,
            learning_rate_init=asked.learning_rate_init,
            learning_rate_decay=asked.learning_rate_decay,
            alpha=asked.alpha,
        )  # fmt: skip

    def held_out_loss() -> float:
        assert held_out is not None
        return -float(np.mean(network.log_prob(*held_out)))

    def loss_of_the_last() -> float:
        return -float(np.mean(network.log_prob(X[-N_PROBED:], y[-N_PROBED:])))

    epochs = Epochs(
        max_iter=max_iter,
        batch_size=batch_size,
        call_size=batch_size * (1 if asked.parallel == "rows" else network.threads.n),
        learning_rate_init=asked.learning_rate_init,
        shuffle=asked.shuffle,
        patience=patience,
        tol=asked.tol,
        verbose=int(asked.verbose) if network.rank == 0 else 0,
        name=type(lm).__name__,
    )
    # The threads are the kernels' own.
    with blas_threads(1), network.threads, network.guard():
        interrupt = run_epochs(
            network, train, len(y), lm.n_words_, epochs, lm._rng,
            held_out_loss=held_out_loss if held_out is not None else None,
            probe=loss_of_the_last,
            progress=progress, history=history, checkpoint=checkpoint,
        )  # fmt: skip
    arrays = network.arrays()
    if arrays is not None:
        for name, array in arrays.items():
            setattr(lm, f"{name}_", array)
        lm.history_ = history
        lm.n_iter_ = len(history["loss"])
        lm.n_seen_ = int(network.tally[1])
    keep()
    try:
        if interrupt is not None:
            raise interrupt
    finally:
        del interrupt  # else it would hold this frame, and its arrays, in a cycle
