"""The one door into a fit: checks, a network, the loop, and what is kept of it.

`NeuralLM.fit`, ``partial_fit``, warm starts and `nplm.mpi.fit` all come through here.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from nplm.base.atomic import aside, become
from nplm.base.warnings import warn
from nplm.models.neural.conflicts import check_shared
from nplm.models.neural.fitting.epochs import Epochs
from nplm.models.neural.fitting.sharded import ShardedNetwork, rows_of
from nplm.models.neural.fitting.windows import Windows
from nplm.models.neural.network.network import Network
from nplm.models.neural.network.solvers import State
from nplm.training.bars import BAR, bar
from nplm.training.checkpoint import Checkpoint, fingerprint
from nplm.training.held_out import HeldOut
from nplm.training.loop import OnProgress, run_passes
from nplm.training.parallel.processes import ALONE, Alone, Sharers
from nplm.training.parallel.threads import blas_threads

__all__ = [
    "ENDED",
    "Door",
    "begin",
    "epochs_before",
    "fit",
    "goes_on",
    "hand_over",
    "joined",
    "past",
]


ENDED = (
    "learning_rate='linear' has fallen to 0 over max_iter={} epochs, and nothing more "
    "would be learned: raise max_iter, set learning_rate='constant', or let fit go on "
    "with warm_start=True, which begins with learning_rate_init again."
)


@dataclass(frozen=True)
class Door:
    """How a fit is entered: what the callers differ in."""

    partial: bool = False  # one epoch more, with what random numbers come next
    progress: OnProgress | None = None
    checkpoint: str | os.PathLike[str] | None = None
    processes: Alone | Sharers = ALONE
    keep: str = "all"  # of several processes, those that have the result


def fit(
    lm: Any,
    X: ArrayLike,
    y: ArrayLike | None,
    X_val: ArrayLike | None,
    y_val: ArrayLike | None,
    door: Door,
) -> None:
    """Fit the network of `lm`, an estimator that is left as it was by errors."""
    fitted = aside(lm)
    network, windows, marks = begin(fitted, X, y, X_val, y_val, door)
    interrupt, history = _train(fitted, network, windows, marks, door)
    hand_over(fitted, network, history, door, len(windows.y))
    become(lm, fitted)
    try:
        if interrupt is not None:
            raise interrupt
    finally:
        del interrupt  # else it would hold this frame, and its arrays, in a cycle


def begin(
    lm: Any,
    X: ArrayLike,
    y: ArrayLike | None,
    X_val: ArrayLike | None,
    y_val: ArrayLike | None,
    door: Door,
) -> tuple[Network, Windows, dict[str, str]]:
    """Check all, in all processes, and make the network to be trained."""

    def checked() -> tuple[Windows, dict[str, str]]:
        windows = lm._check_fit(X, y, X_val, y_val, door)
        if not isinstance(door.processes, Alone):
            check_shared(lm)
        return windows, _marks(lm, windows, door)

    windows, marks = door.processes.all_or_none(checked)
    others = {"keep": door.keep, "checkpoint": str(door.checkpoint), "verbose": ""}
    door.processes.check_same(marks | others)
    return _network(lm, windows, door), windows, marks


def goes_on(lm: Any, door: Door) -> bool:
    """Whether training goes on from the weights of an earlier fit."""
    return hasattr(lm, "_parameters") and (door.partial or lm.warm_start)


def _marks(lm: Any, windows: Windows, door: Door) -> dict[str, str]:
    """Tell this fit from another: equal ones give the same bits."""
    if door.checkpoint is None and isinstance(door.processes, Alone):
        return {}  # nobody asks
    X_val, y_val = windows.held_out or (None, None)
    arrays: dict[str, Any] = {
        "X": windows.X,
        "y": windows.y,
        "X_val": X_val,
        "y_val": y_val,
    }
    go_on = goes_on(lm, door)
    parameters = lm._fingerprint() | {"fitted": go_on}
    if go_on:
        own = lm._parameters.named()
        arrays |= {f"{name}_": array for name, array in own.items()}
        arrays |= lm._solver_state
        parameters |= {
            "n_seen_": lm.n_seen_,
            "n_updates": lm._n_updates,
            "n_epochs": epochs_before(lm, door),
        }
    return fingerprint(parameters, arrays)


def _network(lm: Any, windows: Windows, door: Door) -> Network:
    """Make the network to be trained, whole or this process's part of it."""
    asked, parts, go_on = lm._asked(), lm._parts(), goes_on(lm, door)
    if go_on:
        output = parts.output.go_on(lm._made_of.output)
    else:
        output = parts.output.learn(lm.n_words_, windows.X, windows.y)
    parts = parts._replace(output=output)
    rows = slice(None)
    if not isinstance(door.processes, Alone):
        rows = rows_of(parts.n_rows(lm.n_words_), door.processes)
    if not (go_on and door.partial):
        lm._rng = door.processes.generator(check_random_state(lm.random_state))
    if go_on:
        parameters, state = lm._trained_before(rows)
        # New moments begin with the first update.
        clock = (lm.n_seen_, 0 if state is None else lm._n_updates)
    else:
        dtype = np.dtype(np.float64 if asked.precision == "float64" else np.float32)
        parameters = parts.initial(lm.n_words_, windows.y, lm._rng, dtype, rows)
        # Where they began is no matter any more.
        parts = parts._replace(features=replace(parts.features, start=None))
        state, clock = None, (0, 0)
    n_epoch = len(windows.y)
    options: dict[str, Any] = {
        "precision": lm._precision() if go_on else asked.precision,
        "threads": lm._threads(),
        "parallel": asked.parallel,
        "solver": lm._solver(
            begun=clock[0] - epochs_before(lm, door) * n_epoch,
            span=asked.max_iter * n_epoch,
        ),
        "state": state,
        "output_state": parts.output.initial_state(
            lm.n_words_, windows.y, lm._rng, lm._n_workers()
        ),
        "dropout": lm._dropout().begun(lm._rng, lm._n_workers()),
        "clock": clock,
    }
    if isinstance(door.processes, Alone):
        return Network(parts, parameters, **options)
    return ShardedNetwork(parts, parameters, processes=door.processes, **options)


def _train(
    lm: Any, network: Network, windows: Windows, marks: dict[str, str], door: Door
) -> tuple[KeyboardInterrupt | None, dict[str, list[float]]]:
    asked, processes = lm._asked(), door.processes
    history = past(lm, door)
    stop_early = windows.held_out is not None and asked.early_stopping is not False
    verbose = int(asked.verbose) if processes.rank == 0 else 0
    job = Epochs(
        network, windows, processes,
        max_iter=1 if door.partial else asked.max_iter,
        batch_size=min(asked.batch_size, len(windows.y)),
        shuffle=asked.shuffle,
        held_out=HeldOut(asked.n_iter_no_change if stop_early else None, asked.tol),
        learning_rate_init=asked.learning_rate_init,
        adaptive=asked.learning_rate == "adaptive" and not door.partial,
        history=history,
        verbose=verbose if verbose < BAR else 0,
        name=type(lm).__name__,
    )  # fmt: skip
    saves = None
    if door.checkpoint is not None:
        saves = Checkpoint(door.checkpoint, marks, processes)
    # The threads are the kernels' own.
    shown = bar(
        0 if door.progress is not None else verbose,
        job.name,
        lambda loss: f"perplexity {np.exp(loss):.1f}",
    )
    with saves or nullcontext(), blas_threads(1), shown as progress:
        if door.progress is not None and processes.rank == 0:
            progress = door.progress
        interrupt = run_passes(
            job,
            lm._rng,
            processes,
            checkpoint=saves,
            progress=progress,
            verbose=verbose,
        )
    ran_out = interrupt is None and not door.partial and job.held_out.stale == 0
    # A fit that is to end by itself, unless fewer epochs than usual were asked for.
    usual = signature(type(lm)).parameters["max_iter"].default
    is_to_end = asked.early_stopping is True or (
        stop_early and job.adaptive and job.max_iter >= usual
    )
    if is_to_end and ran_out and processes.rank == 0:
        warn(
            f"{type(lm).__name__}: the held-out loss was still falling at "
            f"max_iter={asked.max_iter}; raise it.",
            ConvergenceWarning,
        )
    return interrupt, history


def epochs_before(lm: Any, door: Door) -> float:
    """Give the epochs of which a schedule that falls to 0 has had its part already.

    A `fit` has all before it, and ``partial_fit`` and trainers share one.
    """
    return lm._n_epochs if door.partial and goes_on(lm, door) else 0.0


def past(lm: Any, door: Door) -> dict[str, list[float]]:
    """Give a copy of the history that training goes on with."""
    history: dict[str, list[float]] = {"loss": [], "val_loss": [], "seconds": []}
    before = lm.history_ if goes_on(lm, door) else {}
    return history | {name: list(values) for name, values in before.items()}


def joined(
    network: ShardedNetwork, state: State, *, everywhere: bool
) -> tuple[NDArray[Any] | None, State]:
    """Give all output rows, where they are kept, and the solver's state of all."""
    E = network.whole_rows(network.parameters.E, everywhere=everywhere)
    for name in [name for name in state if name.endswith("_E")]:
        rows = network.whole_rows(state[name], everywhere=everywhere)
        if rows is not None:
            state = state | {name: rows}
    return E, state


def hand_over(
    lm: Any,
    network: Network,
    history: dict[str, list[float]],
    door: Door,
    n_windows: int,
) -> None:
    """Make what was trained on so many windows the estimator's, if it is kept here."""
    parameters = network.parameters
    state = network.solver.kept(network.solver_state)
    if isinstance(network, ShardedNetwork) and door.keep != "shards":
        E, state = joined(network, state, everywhere=door.keep == "all")
        if E is None:
            return
        parameters = parameters.with_rows(E)
    seen_before = lm.n_seen_ if goes_on(lm, door) else 0
    lm._n_epochs = epochs_before(lm, door) + (network.n_seen - seen_before) / n_windows
    lm._parameters, lm._solver_state = parameters, state
    lm._made_of = network.parts
    lm.history_, lm.n_iter_ = history, len(history["loss"])
    lm.n_seen_, lm._n_updates = network.n_seen, network.clock.read()[1]
