"""Solvers, their state, and the schedules of the learning rate."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import ceil, inf, sqrt
from typing import Self

import numpy as np
from numpy.typing import DTypeLike

from nplm._kernels.neural import _solvers
from nplm._kernels.neural._loops import Scratch, Tier
from nplm._kernels.neural._solvers import Clock
from nplm.base.array_types import State
from nplm.base.exceptions import parameter_error
from nplm.models.neural.network.parameters import Parameters, aligned_zeros
from nplm.models.neural.network.workspace import Kernel, Trained

# The length of a fit with the learning rate "auto", by docs/measured/default: the
# number of epochs, and of updates if these epochs have fewer.
AUTO_EPOCHS = 4
AUTO_UPDATES = 200
# The weight decay "auto", by the same page: the paper's for `SGD` (section 4.2), and
# this over the root of the number of updates of an epoch for `Adam`.
AUTO_ALPHA_SGD = 1e-4
AUTO_ALPHA_ADAM = 6.0
AUTO_DECAY = 0.01  # share of a weight that an update loses, at most


@dataclass(frozen=True)
class Schedule:
    """Schedule of the learning rate, with the weight decay."""

    learning_rate_init: float
    learning_rate_decay: float  # r of e_t = e_0 / (1 + r t), for "invscaling"
    alpha: float | None  # None: `SGD.started` sets it
    learning_rate: str = "invscaling"
    n_epochs: int = 1
    begun: float = 0.0  # number of examples at which the learning rate starts to fall
    span: float = inf  # number of examples until it is 0

    def epochs(self, n_windows: int, batch_size: int) -> int:
        """Return the maximum number of epochs of a fit on `n_windows` windows."""
        if self.learning_rate != "auto":
            return self.n_epochs
        needed = max(AUTO_EPOCHS, ceil(AUTO_UPDATES * batch_size / n_windows))
        return min(self.n_epochs, needed)

    def started(
        self, n_seen: float, n_epochs_before: float, n_windows: int, batch_size: int
    ) -> Schedule:
        """Return the schedule of a fit that starts after `n_seen` examples."""
        if self.learning_rate not in ("auto", "linear"):
            return self
        begun = n_seen - n_epochs_before * n_windows
        span = self.epochs(n_windows, batch_size) * n_windows
        return replace(self, begun=begun, span=span)

    def check_not_ended(self, n_epochs_before: float) -> None:
        """Raise ValueError if the learning rate is 0 after `n_epochs_before` epochs."""
        if self.learning_rate == "linear" and n_epochs_before >= self.n_epochs:
            raise self.ended()

    def ended(self) -> ValueError:
        """Return the error to raise if the learning rate has fallen to 0."""
        return ValueError(
            f"learning_rate='linear' has fallen to 0 over max_iter={self.n_epochs} "
            "epochs, and further training would change nothing; raise max_iter, set "
            "solver__learning_rate='constant', or set warm_start=True and call fit, "
            "which restarts at learning_rate_init."
        )

    def kernel_options(self) -> dict[str, float]:
        """Return the keyword arguments of the solver kernels."""
        decay = self.learning_rate_decay if self.learning_rate == "invscaling" else 0.0
        assert self.alpha is not None, "`SGD.started` sets it"
        return {
            "learning_rate_init": self.learning_rate_init,
            "learning_rate_decay": decay, "alpha": self.alpha,
            "begun": self.begun, "span": self.span,
        }  # fmt: skip

    def has_ended(self, n_seen: float) -> bool:
        """Return whether the learning rate is 0 after `n_seen` examples."""
        return n_seen >= self.begun + self.span


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient ascent, as in the paper, with lazy weight decay of C."""

    schedule: Schedule

    def started(
        self, n_seen: float, n_epochs_before: float, n_windows: int, batch_size: int
    ) -> Self:
        """Return the solver of a fit on `n_windows` windows; see `Schedule.started`."""
        schedule = self.schedule.started(n_seen, n_epochs_before, n_windows, batch_size)
        if schedule.alpha is None:
            alpha = self.auto_alpha(max(n_windows, n_seen) / batch_size)
            schedule = replace(schedule, alpha=alpha)
        return replace(self, schedule=schedule)

    def auto_alpha(self, n_updates: float) -> float:
        """Return the weight decay "auto"."""
        return AUTO_ALPHA_SGD

    def check(self, batch_size: int, dtype: DTypeLike) -> None:
        """Raise ValueError if the weight decay of one update erases the weights."""
        schedule = self.schedule
        alpha = AUTO_ALPHA_SGD if schedule.alpha is None else schedule.alpha
        lost = schedule.learning_rate_init * alpha * batch_size
        if lost >= 1:
            raise parameter_error(
                "{learning_rate_init} * {alpha} * {batch_size} = {0:g} is the share of "
                "each weight that weight decay removes at an update; it must be below "
                "1: lower one of the three.", lost,
            )  # fmt: skip

    def initial_state(self, parameters: Parameters) -> State:
        """Return the cumulative decay at the last update of each row, all 0."""
        arrays = parameters.trained()
        return {
            f"decayed_{name}": np.zeros(len(arrays[name]))
            for name in parameters.visited
        }

    def check_state(self, saved: State) -> None:
        """Raise ValueError if a saved state has invalid values."""
        for name, array in saved.items():
            moment = name.partition("_")[0]
            if moment in ("first", "second", "decayed", "paused") and (
                not np.isfinite(array).all()
                or (moment == "second" and (array < 0).any())
            ):
                raise ValueError(
                    f"{name} has invalid values (negative, NaN or infinite)"
                )

    def kept(self, state: State) -> State:
        """Return the part of the state that a fitted model keeps for more training."""
        return {}

    def kernel_parameters(self, parameters: Parameters, state: State) -> Trained:
        """Return the parameters in the form that the kernels take."""
        derived = set(parameters.derived)
        return {
            name: _solvers.Parameter(
                array,
                state.get(f"first_{name}"),
                state.get(f"second_{name}"),
                decayed=state.get(f"decayed_{name}"),
                paused=state.get(f"paused_{name}"),
                made=np.full(len(array), np.inf) if name in derived else None,
                n_decaying=parameters.n_decaying(name),
            )
            for name, array in parameters.trained().items()
        }

    def apply_pending_decay(
        self, parameters: Parameters, state: State, clock: Clock
    ) -> None:
        """Apply the outstanding weight decay of rows that were not visited."""
        examples, updates, log_decay, _ = clock.read()
        for name, array in parameters.trained().items():
            decayed = state.get(f"decayed_{name}")
            if decayed is not None:
                faded = np.exp(log_decay - decayed).astype(parameters.dtype)
                array[:, : parameters.n_decaying(name)] *= faded[:, None]
                decayed[:] = 0
        clock.set(examples, updates, 0.0, 0.0)

    def kernel(
        self, tier: Tier, clock: Clock, trained: Trained, state: State, scratch: Scratch
    ) -> Kernel:
        """Return the kernel of one thread, or of a team of threads."""
        return _solvers.SGD(
            tier, clock, trained.get("C"), **self.schedule.kernel_options()
        )


@dataclass(frozen=True)
class Adam(SGD):
    """Adam, as in scikit-learn's networks, with decoupled weight decay."""

    beta_1: float
    beta_2: float
    epsilon: float

    def auto_alpha(self, n_updates: float) -> float:
        """Return the weight decay "auto", for epochs of `n_updates` updates.

        An update loses at most a hundredth of each weight, so that few windows, which
        have few updates an epoch, can learn with a large learning rate.
        """
        most = AUTO_DECAY / self.schedule.learning_rate_init
        return min(AUTO_ALPHA_ADAM / sqrt(n_updates), most)

    def check(self, batch_size: int, dtype: DTypeLike) -> None:
        smallest = np.finfo(dtype).tiny
        if self.epsilon < smallest:
            raise ValueError(
                f"solver__epsilon={self.epsilon!r} is 0 in {np.dtype(dtype).name}, and "
                f"Adam divides by it; set it to at least {10 * smallest:.0e}, such as "
                "1e-8."
            )
        lost = self.schedule.learning_rate_init * (self.schedule.alpha or 0)
        if lost >= 1:
            raise parameter_error(
                "{learning_rate_init} * {alpha} = {0:g} is the share of each weight "
                "that weight decay removes at an update; it must be below 1: lower one "
                "of the two.", lost,
            )  # fmt: skip

    def initial_state(self, parameters: Parameters) -> State:
        """Return zero moments, and the state of visited rows, all 0."""
        state = super().initial_state(parameters)
        if "C" in parameters.visited:
            state["paused_C"] = np.zeros((len(parameters.C), 2))
        for name, array in parameters.learned().items():
            for moment in ("first", "second"):
                if array.ndim == 1:
                    zeros = np.zeros_like(array)
                else:
                    zeros = aligned_zeros((array.shape[0], array.shape[1]), array.dtype)
                state[f"{moment}_{name}"] = zeros
        return state

    def kept(self, state: State) -> State:
        """Return the moments and the rates of C, for further training."""
        kept = ("first_", "second_", "paused_")
        return {k: a for k, a in state.items() if k.startswith(kept)}

    def apply_pending_decay(
        self, parameters: Parameters, state: State, clock: Clock
    ) -> None:
        """Apply the outstanding weight decay, and move C by its moments."""
        pause, paused = clock.read()[3], state.get("paused_C")
        super().apply_pending_decay(parameters, state, clock)
        if paused is None or pause == 0:
            return
        dtype = parameters.dtype
        gone = self.beta_1 ** (paused[:, 0] - pause)
        rate = paused[:, 1] * self.beta_1 * (1 - gone) / (1 - self.beta_1)
        first, second = state["first_C"], state["second_C"]
        slope = first / (np.sqrt(second) + dtype.type(self.epsilon))
        parameters.C += rate.astype(dtype)[:, None] * slope
        first *= gone.astype(dtype)[:, None]
        faded = self.beta_2 ** (paused[:, 0] - pause)
        second *= faded.astype(dtype)[:, None]
        paused[:, 0] = 0  # the rates stay: the moments move C on

    def kernel(
        self, tier: Tier, clock: Clock, trained: Trained, state: State, scratch: Scratch
    ) -> Kernel:
        settings = {field.name: getattr(self, field.name) for field in fields(self)}
        del settings["schedule"]
        whole = [
            parameter.rows * parameter.columns
            for name, parameter in trained.items()
            if name not in ("C", "E") and f"decayed_{name}" not in state
        ]
        C = trained["C"] if "first_C" in state else None
        return _solvers.Adam(
            tier, clock, C, scratch=scratch, largest=max(1, *whole),
            **self.schedule.kernel_options(), **settings,
        )  # fmt: skip
