"""Outputs that train on noise samples, and score with all words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from nplm._kernels.neural._loops import row_stride
from nplm._kernels.neural.outputs import _sampled, _sampled_energy
from nplm.models.neural.network.array_types import Counts, Kernel
from nplm.models.neural.network.features import gradient_gatherer
from nplm.models.neural.network.outputs.base import Output, State, Workspace
from nplm.models.neural.network.outputs.energy import Energy
from nplm.models.neural.network.outputs.estimates import Estimate
from nplm.models.neural.network.outputs.softmax import Softmax, TiedSoftmax

__all__ = ["Sampled", "SampledEnergy", "SampledSoftmax", "SampledTiedSoftmax"]


@dataclass(frozen=True)
class Sampled(Output):
    """Mixin of an output that trains on noise samples.

    It precedes, as a base class, the output that scores.
    """

    rows_are_shared: ClassVar[bool] = False
    rows_are_visited: ClassVar[bool] = True
    estimate: Estimate = field(kw_only=True)

    @property
    def normalizes(self) -> bool:
        return self.estimate.normalizes

    def initial_state(
        self, n_words: int, counts: Counts, rng: np.random.RandomState, n_workers: int
    ) -> State:
        """Return the state of the estimate."""
        return self.estimate.initial_state(n_words, counts, rng, n_workers)

    def check_state(self, saved: State, state: State) -> None:
        self.estimate.check_state(saved, state)

    def figures(self, state: State) -> dict[str, float]:
        return self.estimate.figures(state)

    def kernel(
        self, team: Workspace, start: int, stop: int, leader: Kernel | None
    ) -> Kernel:
        """Return the kernel of the only member."""
        if team.solver is None:
            return super().kernel(team, start, stop, leader)
        return self.trainer(team)

    def trainer(self, team: Workspace) -> Kernel:
        """Return the kernel that trains."""
        raise NotImplementedError


@dataclass(frozen=True)
class SampledSoftmax(Sampled, Softmax):
    """Softmax trained on the rows of the noise samples and the next words."""

    def trainer(self, team: Workspace) -> Kernel:
        E = team.trained["E"]
        return _sampled.Sampled(
            team.tier, team.scratch, team.activations, E, solver=self._solver(team),
            estimate=self.estimate.kernel(team, team.activations.columns),
            **self._rows(team, 0, E.rows, None),
        )  # fmt: skip

    def _solver(self, team: Workspace) -> Kernel:
        """Return the kernel that updates the rows."""
        return team.solver


@dataclass(frozen=True)
class SampledTiedSoftmax(SampledSoftmax, TiedSoftmax):
    """Tied softmax trained on the rows of the noise samples and the next words."""

    # The features apply the weight decay of the rows, not the output.
    rows_are_visited: ClassVar[bool] = False

    def n_tied_rows(self, batch_size: int) -> int | None:
        """Return the maximum number of noise samples and next words."""
        return self.estimate.max_noise + batch_size

    def _solver(self, team: Workspace) -> Kernel:
        """Return the kernel that adds the gradients of the rows to the features."""
        return gradient_gatherer(team.features, team.tier, team.solver)


@dataclass(frozen=True)
class SampledEnergy(Sampled, Energy):
    """Energy trained on the noise samples and the next words."""

    def trainer(self, team: Workspace) -> Kernel:
        n_words, columns = team.trained["E"].rows, row_stride(team.activations.columns)
        return _sampled_energy.SampledEnergy(
            *self._arguments(team), first=0, n_words=n_words, leader=None,
            estimate=self.estimate.kernel(team, columns), features=team.features,
            solver=team.solver,
        )  # fmt: skip
