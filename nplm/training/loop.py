"""The epoch loop: schedule, early stopping, history, progress, interruption."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nplm._warnings import warn
from nplm.exceptions import DivergenceError
from nplm.training.checkpoint import Checkpoint

__all__ = ["Epochs", "Progress", "Trainable", "run_epochs"]

# Called a few times a second with (examples done, examples in all if every
# epoch is run, mean loss of the epoch so far in nats a token).
Progress = Callable[[int, int, float], None]

# Examples whose mean loss tells a fit that diverges from a few that are hard.
N_JUDGED = 1000

# A kernel call lasts about this long, so that an interrupt is prompt.
SECONDS_A_CALL = 0.1


class Trainable(Protocol):
    """What the epoch loop needs of a model in training."""

    tally: NDArray[np.float64]
    n_ranks: int

    @property
    def seconds_a_call(self) -> float:
        """How long a call of the kernels should last, about."""

    def settle(self) -> None:
        """Bring all parameters up to date."""

    def copy(self) -> list[NDArray[Any]]:
        """Snapshot of the parameters."""

    def restore(self, snapshot: list[NDArray[Any]]) -> Any:
        """Set the parameters back to a snapshot."""

    def state(self) -> dict[str, NDArray[Any]]:
        """All arrays in training as they are, settled or not."""

    def costs(self) -> dict[str, float]:
        """More figures of the epoch for the history."""

    def agree(self, value: float) -> float:
        """Give the first process's value in all."""


@dataclass
class _Position:
    """Where a fit stands, beside the parameters."""

    epoch: int = 1
    done: int = 0  # examples of this epoch
    seen: int = 0  # examples of all fits before this epoch
    seconds: float = 0.0  # spent on this epoch
    best_loss: float = math.inf  # on held-out data
    best_epoch: int = 0
    stale: int = 0  # epochs without improvement


@dataclass(frozen=True)
class Epochs:
    """How long to train, and what to say meanwhile.

    ``patience`` is the number of epochs without an improvement of the held-out
    loss by ``tol`` after which training stops; None never stops early.
    """

    max_iter: int
    batch_size: int
    call_size: int  # least examples of a call: a mini-batch of every worker
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
    probe: Callable[[], float],
    progress: Progress | None,
    history: dict[str, list[float]],
    checkpoint: Checkpoint | None = None,
) -> KeyboardInterrupt | None:
    """Train for `epochs`, and leave `model` with the weights to keep.

    With a held-out loss and patience those are the best epoch's. `history`
    is appended to: ``loss`` (mean over the epoch of each example's negative
    log-likelihood just before its update) and ``val_loss``, in nats a token,
    ``seconds``, and the model's own `costs`, all or none of an epoch. A
    `checkpoint` is gone on from, if it has a save, and saved to, on an interrupt
    too.

    Returns
    -------
    interrupt : KeyboardInterrupt or None
        What ended the training early: to be raised once the weights are kept.

    Raises
    ------
    DivergenceError
        The loss became NaN, or worse than twice that of a uniform guess.
    KeyboardInterrupt
        In one of several processes, or before training began: nothing is to keep.
    """
    at, best = _Position(seen=int(model.tally[1])), None
    n_before = len(history["loss"])  # epochs of earlier fits
    if checkpoint is not None:
        saved = checkpoint.load()
        if saved is not None:
            at, best = _resume(*saved, model, rng, history)
            _warn_of_more(at, epochs)
        del saved
    total = epochs.max_iter * n_examples
    order = rng.get_state(legacy=False)  # at the start of the epoch
    try:
        while at.epoch <= epochs.max_iter and not _stale(at, epochs):
            started = time.perf_counter() - at.seconds
            if at.done == 0:
                model.tally[0] = 0.0
            done_before = (at.epoch - 1) * n_examples
            index = _order(n_examples, rng if epochs.shuffle else None)
            calls = _calls(model, train, index, at.done, epochs.call_size)
            del index  # theirs alone, and gone with the last of them
            for done in calls:
                at.done, at.seconds = done, time.perf_counter() - started
                loss = model.agree(model.tally[0] / at.done)
                if at.done >= N_JUDGED or not math.isfinite(loss):
                    _check_divergence(loss, n_words, at.epoch, at.done, epochs)
                if progress is not None:
                    progress(done_before + at.done, total, loss)
                if checkpoint is None or at.done == n_examples:
                    continue
                if model.agree(checkpoint.due()):
                    _save(checkpoint, model, at, best, history, order)
            model.settle()
            loss = float(model.agree(model.tally[0] / n_examples))
            reached = float(model.agree((held_out_loss or probe)()))
            _check_divergence(reached, n_words, at.epoch, n_examples, epochs)
            val_loss = reached if held_out_loss is not None else math.nan
            seconds = time.perf_counter() - started
            figures = {"loss": loss, "val_loss": val_loss, "seconds": seconds}
            _append(history, figures | model.costs())
            _report(epochs, at.epoch, history)
            if epochs.patience is not None:
                better = val_loss < at.best_loss - epochs.tol
                at.stale = 0 if better else at.stale + 1
                if val_loss < at.best_loss:
                    at.best_loss, at.best_epoch = val_loss, at.epoch
                    best = None  # before there is another: one snapshot at a time
                    best = model.copy()
            order = rng.get_state(legacy=False)
            at = replace(
                at, epoch=at.epoch + 1, done=0, seconds=0.0, seen=int(model.tally[1])
            )
            if checkpoint is not None:
                _save(checkpoint, model, at, best, history, order)
    except KeyboardInterrupt as interrupt:
        if model.n_ranks > 1:
            raise  # the others may not know of it
        kept = "the weights trained so far"
        if best is not None:
            kept = f"the weights of epoch {at.best_epoch}, the best on held-out data"
        warn(
            f"{epochs.name}: interrupted in epoch {at.epoch} of at most "
            f"{epochs.max_iter}; it keeps {kept}.",
            RuntimeWarning,
        )
        if checkpoint is not None:
            # The call that was interrupted may have been at its end.
            at.done = int(model.tally[1]) - at.seen
            if len(history["loss"]) - n_before == at.epoch - 1:
                _save(checkpoint, model, at, best, history, order)
        return interrupt
    finally:
        model.settle()
        if best is not None:
            model.restore(best)
    return None


def _stale(at: _Position, epochs: Epochs) -> bool:
    return epochs.patience is not None and at.stale >= epochs.patience


def _warn_of_more(at: _Position, epochs: Epochs) -> None:
    n_epochs = at.epoch - 1 + (at.done > 0)
    if n_epochs > epochs.max_iter:
        warn(
            f"{epochs.name}: the checkpoint is of epoch {n_epochs} already, beyond "
            f"max_iter={epochs.max_iter}; the model is that of the checkpoint.",
            RuntimeWarning,
        )


def _append(history: dict[str, list[float]], figures: dict[str, float]) -> None:
    """Add an epoch's figures, in one step; nan where fits have different ones."""
    n_before = len(history["loss"])
    history |= {
        name: [*history.get(name, [math.nan] * n_before), figures.get(name, math.nan)]
        for name in history | figures
    }


def _save(
    checkpoint: Checkpoint,
    model: Trainable,
    at: _Position,
    best: list[NDArray[Any]] | None,
    history: dict[str, list[float]],
    order: dict[str, Any],
) -> None:
    """Save a fit as it stands; `order` is the generator at the epoch's start.

    The parameters are not settled for it: a save changes no bit of the fit.
    """
    arrays = model.state()
    arrays |= {f"best_{i}": array for i, array in enumerate(best or ())}
    key = order["state"]["key"].tolist()
    order = {**order, "state": {**order["state"], "key": key}}
    checkpoint.save(arrays, {"at": asdict(at), "history": history, "order": order})


def _resume(
    arrays: dict[str, NDArray[Any]],
    state: dict[str, Any],
    model: Trainable,
    rng: np.random.RandomState,
    history: dict[str, list[float]],
) -> tuple[_Position, list[NDArray[Any]] | None]:
    """Put a fit where `_save` left it."""
    for name, array in model.state().items():
        array[...] = arrays[name]
    history.clear()
    history.update(state["history"])
    rng.set_state(state["order"])
    best = [arrays[name] for name in sorted(arrays) if name.startswith("best_")]
    return _Position(**state["at"]), best or None


def _order(n: int, rng: np.random.RandomState | None) -> NDArray[np.unsignedinteger]:
    """Examples of an epoch in their order, in as few bytes as it takes."""
    index = np.arange(n, dtype=np.min_scalar_type(n))
    if rng is not None:
        rng.shuffle(index)
    return index


def _calls(
    model: Trainable,
    train: Callable[[NDArray[np.intp]], None],
    index: NDArray[np.unsignedinteger],
    done: int,
    least: int,
) -> Iterator[int]:
    """Train on `index` in calls of about equal time; yields examples done.

    The calls only cut the sequence of mini-batches: where they cut depends on
    the clock, but what is computed does not.
    """
    size = least
    while done < len(index):
        started = time.perf_counter()
        train(index[done : done + size].astype(np.intp))
        seconds = model.agree(time.perf_counter() - started)
        done = min(done + size, len(index))
        yield done
        speed_up = min(4.0, model.seconds_a_call / max(seconds, 1e-9))
        size = max(1, round(size / least * speed_up)) * least


def _check_divergence(
    loss: float, n_words: int, epoch: int, done: int, epochs: Epochs
) -> None:
    # A uniform guess loses log |V|: a mean worse than twice that (with room for
    # tiny vocabularies) is no noise.
    if not loss < 2 * math.log(n_words) + 5:
        raise DivergenceError(
            f"{epochs.name}: training diverged in epoch {epoch} after {done} examples "
            f"(mean loss {loss:.4g} nats a token); lower learning_rate_init, now "
            f"{epochs.learning_rate_init:g}, or batch_size, now {epochs.batch_size}."
        )


def _report(epochs: Epochs, epoch: int, history: dict[str, list[float]]) -> None:
    if not epochs.verbose:
        return
    line = f"[{epochs.name}] epoch {epoch}: loss {history['loss'][-1]:.4f}"
    if not math.isnan(history["val_loss"][-1]):
        line += f", held-out loss {history['val_loss'][-1]:.4f} nats"
    print(f"{line}, {history['seconds'][-1]:.1f} s")
