"""Settings of a fit, and the network that a fit returns."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nplm.models.neural.network.architecture import Architecture
from nplm.models.neural.network.dropout import NO_DROPOUT, Dropout
from nplm.models.neural.network.network import Network, Parts
from nplm.models.neural.network.outputs.estimates import Estimate
from nplm.models.neural.network.parameters import Parameters
from nplm.models.neural.network.solvers import Solver, State
from nplm.models.neural.options.names import FULL_NAMES
from nplm.models.neural.tiers import kernel_tier
from nplm.models.training.checkpoint import fingerprint
from nplm.models.training.parallel.threads import Threads

__all__ = ["HISTORY_COLUMNS", "Recipe", "Stopping", "TrainedNetwork"]

# Metrics of an epoch that each history has.
HISTORY_COLUMNS = ("loss", "val_loss", "seconds", "scoring_seconds")

# Estimator parameters of the fields that have another name.
NAMES = FULL_NAMES | {
    "name": "estimator", "n_epochs": "max_iter of the schedule",
    "weights": "loss__proposal", "power": "loss__proposal_power",
}  # fmt: skip
# Fields computed from others, or from the windows.
DERIVED = {"begun", "span", "seeds", "tree_from"}


@dataclass(frozen=True)
class Stopping:
    """Settings that end a fit.

    - `max_iter`: maximum number of epochs
    - `early_stopping`: whether held-out windows end the fit
    - `validation_fraction`: fraction of the windows to hold out
    - `n_iter_no_change`: epochs without improvement before the fit ends
    - `tol`: minimum improvement of the held-out loss, in nats per token
    """

    max_iter: int
    early_stopping: bool | str = "auto"
    validation_fraction: float = 0.1
    n_iter_no_change: int = 2
    tol: float = 1e-3

    def stops_early(self, has_held_out: bool) -> bool:
        """Return whether the held-out loss may end the fit."""
        return has_held_out and self.early_stopping is not False


@dataclass(frozen=True, eq=False)
class Recipe:
    """Settings that, with the windows and an earlier fit, determine a fit.

    - `name`: name of the estimator, for messages
    - `architecture`: architecture of the network
    - `loss`: training loss; None is the exact likelihood
    - `solver`: solver, with the schedule of the learning rate
    - `stopping`: settings that end the fit
    - `embeddings` (n_words, embedding_dim): initial features; drawn by default
    - `batch_size`: number of examples of an update
    - `shuffle`: whether each epoch presents the examples in a new random order
    - `precision`: precision of the arithmetic
    - `parallel`: how the threads share the training
    - `sharded`: whether processes must share the output units
    - `average_every`: number of updates of a process between averages of the processes'
      networks
    """

    name: str
    architecture: Architecture
    loss: Estimate | None
    solver: Solver
    stopping: Stopping
    embeddings: NDArray[Any] | None = None
    dropout: Dropout = NO_DROPOUT
    batch_size: int = 1
    shuffle: bool = True
    precision: str = "float32"
    n_jobs: int = 1
    parallel: str = "sync"
    sharded: bool = False
    average_every: int | None = None
    random_state: Any = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the parameters."""
        return np.dtype(np.float64 if self.precision == "float64" else np.float32)

    @property
    def n_workers(self) -> int:
        """Number of teams of threads that train the same parameters."""
        return 1 if self.parallel == "sync" else self.n_jobs

    @property
    def ends(self) -> bool:
        """Whether the schedule itself ends a fit."""
        return self.solver.schedule.learning_rate == "auto"

    @property
    def scoring_weight(self) -> float:
        """Estimated duration of a scored window, in windows of training.

        Within a factor of 2.5 of measured ones, for |V| from 2,000 to 50,000.
        """
        # Exact training takes three products for one of scoring. With noise samples,
        # it visits few rows of the output, and scoring visits all.
        n_rows, share = self.architecture.n_words, 1.0
        if self.loss is not None:
            share = n_rows / (2 * (self.loss.n_noise + self.batch_size))
        return 0.4 * max(1.0, share)

    def check(self) -> None:
        """Raise ValueError if the settings are incompatible."""
        self.architecture.check(self.loss)
        self.solver.check(self.batch_size, self.dtype)
        output = self.architecture.kind_of_output(self.loss)
        if self.precision == "bfloat16" and not output.rounds:
            raise ValueError(
                "precision='bfloat16' needs a full softmax, whose products it rounds, "
                f"but {self._unlike_softmax()}; set precision='float32'."
            )
        if self.architecture.n_memory and self.parallel != "sync":
            raise ValueError(
                f"n_memory={self.architecture.n_memory} with parallel="
                f"{self.parallel!r} is not possible, because each mini-batch goes on "
                "from the memory of the one before; set parallel='sync' or n_memory=0."
            )
        if self.architecture.tied and self.parallel != "sync" and self.loss is None:
            raise ValueError(
                f"output__tied=True with parallel={self.parallel!r} is not possible, "
                "because an exact update changes all features; set parallel='sync', "
                "output__tied=False, or a loss with noise samples."
            )

    def _unlike_softmax(self) -> str:
        """Return which parameter makes the output differ from a full softmax."""
        if self.loss is not None:
            return f"loss={self.loss.loss!r} trains the output units of few words"
        return f"output={self.architecture.output!r} has other units"

    def check_precision(self, fitted: TrainedNetwork) -> None:
        """Raise ValueError if the fitted parameters have another dtype."""
        was = fitted.parameters.dtype.name
        if self.precision not in (was, fitted.precision(self.precision)):
            raise ValueError(
                f"precision={self.precision!r} is not that of the fitted network "
                f"({was!r}), and cannot change when training continues; set it back, "
                "or fit a new model (clone this one)."
            )

    def for_one_epoch(self) -> Recipe:
        """Return the recipe of one more epoch, without early stopping.

        The schedule still extends over `max_iter` epochs; "auto" is constant.
        """
        schedule = self.solver.schedule
        if self.ends:
            schedule = replace(schedule, learning_rate="constant")
        return replace(
            self,
            solver=replace(self.solver, schedule=schedule),
            stopping=replace(self.stopping, max_iter=1, early_stopping=False),
        )

    def described(self) -> dict[str, str]:
        """Return a fingerprint of all settings that change the bits of a fit."""
        settings: dict[str, Any] = {}
        arrays: dict[str, Any] = {}
        for name, value in _leaves(self):
            if isinstance(value, csr_array):
                parts = ("data", "indices", "indptr")
                arrays |= {f"{name}.{part}": getattr(value, part) for part in parts}
                settings[name] = f"a matrix of shape {value.shape}"
            elif value is None or isinstance(value, (bool, int, float, str)):
                settings[name] = value
            elif isinstance(value, np.random.RandomState):
                settings[name] = "a RandomState"
            else:
                arrays[name] = np.asarray(getattr(value, "labels_", value))
        settings["loss"] = "exact" if self.loss is None else self.loss.loss
        settings["solver"] = type(self.solver).__name__
        settings["kernels"] = kernel_tier(self.precision)
        learning_rate = self.solver.schedule.learning_rate
        if learning_rate not in ("auto", "linear"):  # more epochs continue the fit
            del settings["max_iter of the schedule"]
        if learning_rate != "invscaling":
            del settings["solver__learning_rate_decay"]
        return fingerprint(settings, arrays)


def _leaves(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of nested dataclasses, by the names of parameters."""
    for field in fields(value):
        inner = getattr(value, field.name)
        if is_dataclass(inner) and not isinstance(inner, type):
            prefix = "dropout." if isinstance(inner, Dropout) else ""
            for name, leaf in _leaves(inner):
                yield f"{prefix}{name}", leaf
        elif field.name not in DERIVED:
            yield NAMES.get(field.name, field.name), inner


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """A trained network, and the state from which training continues.

    - `architecture`: architecture, with the classes or tree made by training
    - `parameters`: all parameters, or those of one process
    - `solver_state`: state of the solver, such as moments
    - `loss`: training loss; None is the exact likelihood
    - `generator`: random generator for further training; None takes the seed of the
      recipe
    - `history`: metrics of each epoch
    - `n_seen`, `n_updates`: numbers of examples seen and of updates made
    - `n_epochs`: number of epochs that the schedule has covered
    - `n_added`: number of words added after the fit
    - `val_loss`: loss on all held-out windows of the last fit, in nats per token, or
      NaN
    """

    architecture: Architecture
    parameters: Parameters
    solver_state: State
    loss: Estimate | None
    generator: np.random.RandomState | None
    history: dict[str, list[float]]
    n_seen: int
    n_updates: float
    n_epochs: float
    n_added: int = 0
    val_loss: float = math.nan

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "parts"}

    @cached_property
    def parts(self) -> Parts:
        """The parts of the network."""
        return self.architecture.parts(self.loss)

    def precision(self, asked: str) -> str:
        """Return the precision of the arithmetic if the estimator asks for `asked`.

        float32 parameters support bfloat16 arithmetic if the output does.
        """
        fitted: str = self.parameters.dtype.name
        rounds = self.architecture.kind_of_output(self.loss).rounds
        mixes = asked == "bfloat16" and rounds and fitted == "float32"
        return "bfloat16" if mixes else fitted

    def scorer(self, precision: str, n_jobs: int) -> Network:
        """Return a network that scores with `n_jobs` threads."""
        return Network(
            self.parts, self.parameters, precision=self.precision(precision),
            threads=Threads(n_jobs), state={},
        )  # fmt: skip

    def restarted(self) -> TrainedNetwork:
        """Return the network for a fit that restarts the seed and the schedule."""
        return replace(self, generator=None, n_epochs=0.0)

    def copy(self) -> TrainedNetwork:
        """Return a copy with its own arrays; it shares the generator."""
        return replace(
            self,
            parameters=self.parameters.copy(),
            solver_state={k: array.copy() for k, array in self.solver_state.items()},
            history={k: list(values) for k, values in self.history.items()},
        )

    def resumed(
        self, parts: Parts, solver: Solver, rows: slice
    ) -> tuple[Parameters, State | None]:
        """Copy the parameters with some output rows, and the state of the solver.

        The state is None if the network was trained with another solver.
        """
        parameters = self.parameters.copy(rows)
        parameters.visited = parts.visited
        fresh = solver.initial_state(parameters)
        kept = solver.kept(fresh)
        if not self.solver_state.keys() >= kept.keys():
            return parameters, None
        for name, array in kept.items():
            own = self.solver_state[name]
            array[...] = own[rows] if name.endswith("_E") else own
        return parameters, fresh
