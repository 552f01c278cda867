"""Settings of a fit, and the network that a fit returns."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from nplm.base.array_types import Array, State
from nplm.models.neural.architecture import Architecture
from nplm.models.neural.network import solver_updates
from nplm.models.neural.network.dropout import NO_DROPOUT, Dropout
from nplm.models.neural.network.parameters import Parameters
from nplm.models.neural.network.parts import Parts
from nplm.models.neural.network.solver_updates import Schedule
from nplm.models.neural.options.losses import Loss
from nplm.models.neural.options.outputs import changed
from nplm.models.neural.options.solvers import SGD
from nplm.models.neural.tiers import kernel_tier, multiplies_bfloat16
from nplm.models.training.checkpoint import fingerprint

# Metrics of an epoch that each history has.
HISTORY_COLUMNS = ("loss", "val_loss", "seconds", "scoring_seconds")


@dataclass(frozen=True, eq=False)
class Recipe:
    """Settings that, with the windows and an earlier fit, determine a fit."""

    estimator: str
    architecture: Architecture
    loss: Loss
    solver: SGD
    learning_rate_init: float
    alpha: float | None  # None for "auto"
    n_epochs: int  # of the schedule
    max_iter: int
    early_stopping: bool | str
    validation_fraction: float
    n_iter_no_change: int
    tol: float
    dropout: Dropout = NO_DROPOUT
    batch_size: int = 1
    shuffle: bool = True
    precision: str = "float32"
    n_jobs: int = 1
    parallel: str = "sync"
    sharded: bool = False  # whether processes must share the output units
    average_every: int | None = None  # updates of a process between averages
    random_state: object = None

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The dtype of the parameters."""
        return np.dtype(np.float64 if self.precision == "float64" else np.float32)

    def n_workers(self, n_processes: int) -> int:
        """Return the number of teams that train on mini-batches of their own."""
        if self.average_every is not None:
            return n_processes
        return 1 if self.parallel == "sync" else self.n_jobs

    @property
    def ends(self) -> bool:
        """Whether the schedule itself ends a fit."""
        return self.solver.learning_rate == "auto"

    @property
    def schedule(self) -> Schedule:
        """The schedule of the learning rate."""
        return Schedule(
            self.learning_rate_init, self.solver.learning_rate_decay, self.alpha,
            self.solver.learning_rate, self.n_epochs,
        )  # fmt: skip

    @property
    def network_solver(self) -> solver_updates.SGD:
        """The solver that a network trains with."""
        return self.solver.part(self.schedule)

    @property
    def scoring_weight(self) -> float:
        """Estimated duration of a scored window, in windows of training.

        Within a factor of 2.5 of measured ones, for |V| from 2,000 to 50,000.
        """
        # Exact training takes three products for one of scoring. With noise samples,
        # it visits few rows of the output, and scoring visits all.
        n_rows, share = self.architecture.n_words, 1.0
        estimate = self.loss.estimate()
        if estimate is not None:
            share = n_rows / (2 * (estimate.n_noise + self.batch_size))
        return 0.4 * max(1.0, share)

    def check(self) -> None:
        """Raise ValueError if the settings are incompatible."""
        architecture, loss = self.architecture, self.loss
        architecture.check(loss)
        self.network_solver.check(self.batch_size, self.dtype)
        output = architecture.output
        if output.tied and self.parallel != "sync" and not loss.has_samples:
            raise ValueError(
                f"output__tied=True with parallel={self.parallel!r} is not possible, "
                "because an exact update changes all features; set parallel='sync', "
                "output__tied=False, or a loss with noise samples."
            )

    def with_checked_arrays(self) -> Recipe:
        """Return the recipe with checked arrays by word."""
        estimate = self.loss.estimate()
        if estimate is not None:
            estimate.check(self.architecture.n_words)
        return replace(self, architecture=self.architecture.with_checked_arrays())

    def check_continues(self, fitted: TrainedNetwork) -> None:
        """Raise ValueError if a network has another architecture or dtype."""
        self.architecture.check_continues(fitted.architecture)
        was = fitted.parameters.dtype.name
        if self.precision not in (was, fitted.precision_for(self.precision)):
            raise changed(f"precision={self.precision!r} is", f" ({was!r})")

    def for_one_epoch(self) -> Recipe:
        """Return the recipe of one more epoch; the schedule is that of `max_iter`."""
        solver = copy(self.solver)
        if self.ends:
            solver.learning_rate = "constant"
        return replace(self, solver=solver, max_iter=1, early_stopping=False)

    def described(self) -> dict[str, str]:
        """Return a fingerprint of all settings that change the bits of a fit."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        architecture, dropout = values.pop("architecture"), values.pop("dropout")
        values |= architecture.settings()
        values |= {
            f"dropout.{name}": getattr(dropout, name)
            for name in ("inputs", "hidden", "projection")
        }
        for option in ("loss", "solver"):
            params = values[option].settings()
            values |= {f"{option}__{name}": value for name, value in params.items()}
        values["loss"] = self.loss.name
        values["solver"] = type(self.solver).__name__
        # Last, because 'auto' follows from others: the first that differs is named.
        values["precision"] = values.pop("precision")
        values["kernels"] = kernel_tier(self.precision)
        n_epochs = values.pop("n_epochs")
        if self.solver.learning_rate in ("auto", "linear"):  # else more continue it
            values["max_iter of the schedule"] = n_epochs
        if self.solver.learning_rate != "invscaling":
            del values["solver__learning_rate_decay"]
        settings: dict[str, object] = {}
        arrays: dict[str, Array | None] = {}
        for name, value in values.items():
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
        return fingerprint(settings, arrays)


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """A trained network, and the state from which training continues."""

    architecture: Architecture  # with the classes or tree made by training
    parameters: Parameters  # perhaps those of one process
    solver_state: State
    loss: Loss
    generator: np.random.RandomState | None  # None: that of the recipe's seed
    history: dict[str, list[float]]
    n_seen: int
    n_updates: float
    n_epochs: float  # that the schedule has covered
    n_added: int = 0  # words added after the fit
    precision: str = "float32"
    val_loss: float = math.nan  # of all held-out windows of the last fit, in nats

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "parts"}

    @cached_property
    def parts(self) -> Parts:
        """The parts of the network."""
        return self.architecture.parts(self.loss)

    @property
    def private_generator(self) -> np.random.RandomState | None:
        """The generator, or None for that of the seed or NumPy's global one."""
        is_global = self.generator is check_random_state(None)
        return None if is_global else self.generator

    def precision_for(self, asked: str) -> str:
        """Return the precision of the arithmetic if the estimator asks for `asked`."""
        fitted: str = self.parameters.dtype.name
        if asked == "auto":
            asked = self.precision if multiplies_bfloat16() else fitted
        return "bfloat16" if (asked, fitted) == ("bfloat16", "float32") else fitted

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
        self, parts: Parts, solver: solver_updates.SGD, rows: slice
    ) -> tuple[Parameters, State | None]:
        """Copy the parameters with these rows, and the state if `solver` wrote it."""
        parameters = self.parameters.copy(rows)
        parameters.visited = parts.visited
        fresh = solver.initial_state(parameters)
        kept = solver.kept(fresh)
        if not self.solver_state.keys() >= kept.keys():
            return parameters, None
        for name, array in kept.items():
            trained = self.solver_state[name]
            array[...] = trained[rows] if name.endswith("_E") else trained
        return parameters, fresh
