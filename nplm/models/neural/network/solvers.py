"""Solvers: how the parameters follow their gradients, and what that takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import pairwise
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.neural import _solvers
from nplm.models.neural.network.parameters import Parameters, aligned_zeros

__all__ = ["SGD", "Adam", "Schedule", "Solver", "halvings"]

State = dict[str, NDArray[Any]]
# Nats a token that an epoch gains, or an adaptive step falls from there on.
LEAST_GAIN = 0.01


def halvings(losses: Sequence[float]) -> int:
    """Count how often an adaptive step was halved after epochs of these losses.

    By the first epoch that gains little, and by every one after it: what the trainers
    of speech recognisers call "newbob".
    """
    for i, (before, after) in enumerate(pairwise(losses), start=1):
        if not before - after >= LEAST_GAIN:
            return len(losses) - i
    return 0


@dataclass(frozen=True)
class Schedule:
    """The paper's e_t = e_0 / (1 + r t), and the weight decay that goes with it.

    t counts the examples seen. Besides, the step may fall in a line to 0, from t =
    `begun` on over `span` examples.
    """

    learning_rate_init: float
    learning_rate_decay: float
    alpha: float
    begun: float = 0.0
    span: float = inf

    def falling(self, begun: float, span: float) -> Schedule:
        """Give the same as it falls to 0."""
        return replace(self, begun=begun, span=span)

    def slowed(self, n_halvings: int) -> Schedule:
        """Give the same with a step that was halved so often."""
        step = self.learning_rate_init / 2**n_halvings
        return replace(self, learning_rate_init=step)

    def has_ended(self, n_seen: float) -> bool:
        """Whether the step is 0 from here on."""
        return n_seen >= self.begun + self.span


@dataclass(frozen=True)
class Solver:
    """What the solvers share."""

    schedule: Schedule

    def check(self, batch_size: int) -> None:
        """Raise when an update would take more than all of a weight away."""
        raise NotImplementedError

    def initial_state(self, parameters: Parameters) -> State:
        """Make what the solver keeps beside the parameters."""
        raise NotImplementedError

    def check_state(self, found: State) -> None:
        """Raise ValueError where no training leaves these arrays."""
        for name, array in found.items():
            moment = name.partition("_")[0]
            if moment in ("first", "second", "decayed") and (
                not np.isfinite(array).all() or (moment == "second" and array.min() < 0)
            ):
                raise ValueError(f"{name} has numbers that no fit leaves")

    def kept(self, state: State) -> State:
        """Give what a fitted model keeps of it, to be trained further."""
        return {}

    def held(self, parameters: Parameters, state: State) -> dict[str, Any]:
        """Give the parameters as the kernels take them."""
        return {
            name: _solvers.Parameter(
                array,
                state.get(f"first_{name}"),
                state.get(f"second_{name}"),
                decayed=state.get(f"decayed_{name}"),
                n_decaying=parameters.n_decaying(name),
            )
            for name, array in parameters.trained().items()
        }

    def settle(self, parameters: Parameters, state: State, clock: Any) -> None:
        """Apply the weight decay still due to rows that were not visited."""
        examples, updates, log_decay = clock.read()
        for name, array in parameters.trained().items():
            decayed = state.get(f"decayed_{name}")
            if decayed is not None:
                faded = np.exp(log_decay - decayed).astype(parameters.dtype)
                array[:, : parameters.n_decaying(name)] *= faded[:, None]
                decayed[:] = 0
        clock.set(examples, updates, 0.0)

    def kernel(
        self, tier: Any, clock: Any, held: dict[str, Any], state: State, scratch: Any
    ) -> Any:
        """Give the kernel of one thread, or team of threads."""
        raise NotImplementedError


@dataclass(frozen=True)
class SGD(Solver):
    """Stochastic gradient ascent, the paper's; its weight decay of C is lazy."""

    def check(self, batch_size: int) -> None:
        """Raise when an update would take more than all of a weight away."""
        schedule = self.schedule
        lost = schedule.learning_rate_init * schedule.alpha * batch_size
        if lost >= 1:
            raise ValueError(
                f"learning_rate_init * alpha * batch_size = {lost:g} would take more "
                "than all of every weight away at each update; it must be below 1: "
                "lower one of them."
            )

    def initial_state(self, parameters: Parameters) -> State:
        """Where the decay stood when each visited row was last brought up to date."""
        arrays = parameters.trained()
        return {
            f"decayed_{name}": np.zeros(len(arrays[name]))
            for name in parameters.visited
        }

    def kernel(
        self, tier: Any, clock: Any, held: dict[str, Any], state: State, scratch: Any
    ) -> Any:
        """Give the kernel of one thread, or team of threads."""
        return _solvers.SGD(tier, clock, held.get("C"), **asdict(self.schedule))


@dataclass(frozen=True)
class Adam(Solver):
    """Adam, as scikit-learn's networks have it, with decoupled weight decay."""

    beta_1: float
    beta_2: float
    epsilon: float

    def check(self, batch_size: int) -> None:
        """Raise when an update would take more than all of a weight away."""
        lost = self.schedule.learning_rate_init * self.schedule.alpha
        if lost >= 1:
            raise ValueError(
                f"learning_rate_init * alpha = {lost:g} would take more than all of "
                "every weight away at each update; it must be below 1: lower one of "
                "them."
            )

    def initial_state(self, parameters: Parameters) -> State:
        """Both moments of what is learned; where the decay of visited rows stood."""
        # The moments make a dense step of C, and its decay one with it.
        state = {
            f"decayed_{name}": np.zeros(len(parameters.trained()[name]))
            for name in parameters.visited
            if name != "C"
        }
        for name, array in parameters.learned().items():
            for moment in ("first", "second"):
                zeros = np.zeros_like(array) if array.ndim == 1 else None
                if zeros is None:
                    zeros = aligned_zeros((array.shape[0], array.shape[1]), array.dtype)
                state[f"{moment}_{name}"] = zeros
        return state

    def kept(self, state: State) -> State:
        """Give the moments: scikit-learn's networks keep them too."""
        return {k: a for k, a in state.items() if not k.startswith("decayed_")}

    def kernel(
        self, tier: Any, clock: Any, held: dict[str, Any], state: State, scratch: Any
    ) -> Any:
        """Give the kernel of one thread, or team of threads."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        del own["schedule"]
        whole = [
            parameter.rows * parameter.columns
            for name, parameter in held.items()
            if name not in ("C", "E") and f"decayed_{name}" not in state
        ]
        C = held["C"] if "first_C" in state else None
        return _solvers.Adam(
            tier, clock, C, scratch=scratch, largest=max(1, *whole),
            **asdict(self.schedule), **own,
        )  # fmt: skip
