"""Outputs that are trained on sampled words, and score by all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.neural._loops import row_stride
from nplm._kernels.neural.outputs import _sampled, _sampled_energy
from nplm.models.neural.network.features import gatherer_of
from nplm.models.neural.network.outputs.base import Output, State, Workspace
from nplm.models.neural.network.outputs.energy import Energy
from nplm.models.neural.network.outputs.estimates import Estimate
from nplm.models.neural.network.outputs.softmax import Softmax, TiedSoftmax

__all__ = ["Sampled", "SampledEnergy", "SampledSoftmax", "SampledTiedSoftmax"]


@dataclass(frozen=True)
class Sampled(Output):
    """What they have in common: an estimate, which draws the words.

    To be put before the output that is trained so, which scores.
    """

    rows_are_shared: ClassVar[bool] = False
    rows_are_visited: ClassVar[bool] = True
    estimate: Estimate = field(kw_only=True)

    @property
    def normalizes(self) -> bool:
        """Whether scores come to be log-probabilities by themselves."""
        return self.estimate.normalizes

    def made_with(self) -> dict[str, Any]:
        """Give the parameters of an estimator that ask for it, beside its name."""
        return super().made_with() | self.estimate.made_with()

    def initial_state(
        self,
        n_words: int,
        y: NDArray[np.int32],
        rng: np.random.RandomState,
        n_workers: int,
    ) -> State:
        """Make what the estimate keeps."""
        return self.estimate.initial_state(n_words, y, rng, n_workers)

    def check_state(self, found: State, own: State) -> None:
        """Look at what the estimate keeps."""
        self.estimate.check_state(found, own)

    def figures(self, state: State) -> dict[str, float]:
        """Give those of the estimate."""
        return self.estimate.figures(state)

    def kernel(self, team: Workspace, start: int, stop: int, leader: Any) -> Any:
        """Give the kernel of the one member."""
        if team.solver is None:
            return super().kernel(team, start, stop, leader)
        return self.trainer(team)

    def trainer(self, team: Workspace) -> Any:
        """Give the kernel that trains."""
        raise NotImplementedError


@dataclass(frozen=True)
class SampledSoftmax(Sampled, Softmax):
    """Rows and scores of a softmax, trained on the rows of drawn and next words."""

    def trainer(self, team: Workspace) -> Any:
        """Give the kernel that trains."""
        E = team.trained["E"]
        return _sampled.Sampled(
            team.tier, team.scratch, team.at, E, solver=self._solver(team),
            estimate=self.estimate.kernel(team, team.at.columns),
            **self._rows(team, 0, E.rows, None),
        )  # fmt: skip

    def _solver(self, team: Workspace) -> Any:
        """Give who has the rows learned."""
        return team.solver


@dataclass(frozen=True)
class SampledTiedSoftmax(SampledSoftmax, TiedSoftmax):
    """Features that are the output's weights too, trained on drawn and next words."""

    # By an output they are not: the features see to their own.
    rows_are_visited: ClassVar[bool] = False

    def n_met(self, batch_size: int) -> int | None:
        """Those that are drawn, and the next words."""
        return self.estimate.n_most + batch_size

    def _solver(self, team: Workspace) -> Any:
        """Give who gathers the gradients of the rows, for the features."""
        return gatherer_of(team.features, team.tier, team.solver)


@dataclass(frozen=True)
class SampledEnergy(Sampled, Energy):
    """An energy, trained on drawn and next words."""

    def trainer(self, team: Workspace) -> Any:
        """Give the kernel that trains."""
        n_words, columns = team.trained["E"].rows, row_stride(team.at.columns)
        return _sampled_energy.SampledEnergy(
            *self._arguments(team), first=0, n_words=n_words, leader=None,
            estimate=self.estimate.kernel(team, columns), features=team.features,
            solver=team.solver,
        )  # fmt: skip
