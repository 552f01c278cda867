"""The epoch loop: schedule, early stopping, history, progress, interruption."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["DivergenceError", "Epochs", "Progress", "Trainable", "run_epochs"]

# Called a few times a second with (examples done, examples in all if every
# epoch is run, mean loss of the epoch so far in nats a token).
Progress = Callable[[int, int, float], None]

# A kernel call lasts about this long, so that an interrupt is prompt.
SECONDS_A_CALL = 0.1


class DivergenceError(ArithmeticError):
    """Training diverged: the loss grew beyond reason or became NaN.

    Attributes
    ----------
    kept_best : bool
        Whether weights of an earlier epoch, the best on held-out data, were
        put back, so that the model can be used.
    """

    kept_best = False


class Trainable(Protocol):
    """What the epoch loop needs of a model in training."""

    tally: NDArray[np.float64]

    def settle(self) -> None:
        """Bring all parameters up to date."""

    def copy(self) -> list[NDArray[Any]]:
        """Snapshot of the parameters."""

    def restore(self, snapshot: list[NDArray[Any]]) -> Any:
        """Set the parameters back to a snapshot."""


@dataclass(frozen=True)
class Epochs:
    """How long to train, and what to say meanwhile.

    ``patience`` is the number of epochs without an improvement of the held-out
    loss by ``tol`` after which training stops; None never stops early.
    """

    max_iter: int
    batch_size: int
    learning_rate_init: float
    shuffle: bool
    patience: int | None
    tol: float
    verbose: int
    name: str


def run_epochs(
    model: Trainable,
    train: Callable[[NDArray[np.intp]], None],
    n_examples: int,
    n_words: int,
    epochs: Epochs,
    rng: np.random.RandomState,
    *,
    held_out_loss: Callable[[], float] | None,
    progress: Progress | None,
    history: dict[str, list[float]],
) -> None:
    """Train for `epochs`, and leave `model` with the weights to keep.

    With a held-out loss and patience those are the best epoch's. `history`
    is appended to: ``loss`` (mean over the epoch of each example's negative
    log-likelihood just before its update) and ``val_loss``, in nats a token,
    and ``seconds``.

    Raises
    ------
    DivergenceError
        The loss became NaN, or worse than twice that of a uniform guess.
    KeyboardInterrupt
        As it came, after the weights to keep were put in place.
    """
    best: list[NDArray[Any]] | None = None
    best_loss, best_epoch, stale = np.inf, 0, 0
    total = epochs.max_iter * n_examples
    index = np.arange(n_examples)
    epoch = 1
    try:
        for epoch in range(1, epochs.max_iter + 1):
            started = time.perf_counter()
            if epochs.shuffle:
                index = rng.permutation(n_examples)
            model.tally[0] = 0.0
            done_before = (epoch - 1) * n_examples
            for done in _calls(train, index, epochs.batch_size):
                loss = model.tally[0] / done
                _check_divergence(loss, n_words, epoch, done, epochs)
                if progress is not None:
                    progress(done_before + done, total, loss)
            model.settle()
            history["loss"].append(float(model.tally[0] / n_examples))
            val_loss = np.nan if held_out_loss is None else held_out_loss()
            if held_out_loss is not None and not math.isfinite(val_loss):
                _diverged(val_loss, epoch, n_examples, epochs, "held-out loss")
            history["val_loss"].append(val_loss)
            history["seconds"].append(time.perf_counter() - started)
            _report(epochs, epoch, history)
            if epochs.patience is None:
                continue
            stale = 0 if val_loss < best_loss - epochs.tol else stale + 1
            if val_loss < best_loss:
                best_loss, best_epoch, best = val_loss, epoch, model.copy()
            if stale >= epochs.patience:
                break
    except KeyboardInterrupt:
        kept = "the weights trained so far"
        if best is not None:
            kept = f"the weights of epoch {best_epoch}, the best on held-out data"
        warnings.warn(
            f"{epochs.name}: interrupted in epoch {epoch} of at most "
            f"{epochs.max_iter}; the model keeps {kept}.",
            RuntimeWarning,
            stacklevel=3,
        )
        raise
    except DivergenceError as error:
        if best is not None:
            error.kept_best = True
            error.add_note(f"The model keeps the weights of epoch {best_epoch}.")
        raise
    finally:
        model.settle()
        if best is not None:
            model.restore(best)


def _calls(
    train: Callable[[NDArray[np.intp]], None], index: NDArray[np.intp], batch: int
) -> Iterator[int]:
    """Train on `index` in calls of about equal time; yields examples done.

    The calls only cut the sequence of mini-batches: where they cut depends on
    the clock, but what is computed does not.
    """
    done, size = 0, batch
    while done < len(index):
        started = time.perf_counter()
        train(index[done : done + size])
        seconds = time.perf_counter() - started
        done = min(done + size, len(index))
        yield done
        speed_up = min(4.0, SECONDS_A_CALL / max(seconds, 1e-9))
        size = max(1, round(size / batch * speed_up)) * batch


def _check_divergence(
    loss: float, n_words: int, epoch: int, done: int, epochs: Epochs
) -> None:
    # A uniform guess loses log |V|: a mean worse than twice that (with room for
    # tiny vocabularies) is no noise.
    if not loss < 2 * math.log(n_words) + 5:
        _diverged(loss, epoch, done, epochs, "mean loss")


def _diverged(loss: float, epoch: int, done: int, epochs: Epochs, what: str) -> None:
    raise DivergenceError(
        f"{epochs.name}: training diverged in epoch {epoch} after {done} examples "
        f"({what} {loss:.4g} nats a token); lower learning_rate_init, now "
        f"{epochs.learning_rate_init:g}, or batch_size, now {epochs.batch_size}."
    )


def _report(epochs: Epochs, epoch: int, history: dict[str, list[float]]) -> None:
    if not epochs.verbose:
        return
    line = f"[{epochs.name}] epoch {epoch}: loss {history['loss'][-1]:.4f}"
    if not math.isnan(history["val_loss"][-1]):
        line += f", held-out loss {history['val_loss'][-1]:.4f} nats"
    print(f"{line}, {history['seconds'][-1]:.1f} s")
