"""Energy of a context and a next word (section 5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nplm._kernels.neural._loops import row_stride
from nplm._kernels.neural.outputs import _energy, _sampled_energy
from nplm.base.array_types import Array, Counts, Shapes, State
from nplm.models.neural.network.outputs.base import Output
from nplm.models.neural.network.outputs.estimates import Sampled
from nplm.models.neural.network.parameters import draw_normal
from nplm.models.neural.network.workspace import Kernel, Workspace


@dataclass(frozen=True)
class Energy(Output):
    """Output units y = -(b + v . tanh(d + Hx)), where x includes the next word.

    With `target_weights`, a row of E is [v | b] of a word, else [b].
    """

    direct: bool = False
    target_weights: bool = False
    examples_are_shared: ClassVar[bool] = False
    rows_are_shared: ClassVar[bool] = True
    rows_are_features: ClassVar[bool] = True
    logits_are_single: ClassVar[bool] = True

    @property
    def weighted(self) -> bool:
        """Whether each word has a v of its own."""
        return self.target_weights

    def initial_biases(self, n_words: int, counts: Counts) -> Array:
        """Return the energies of the (add-one) unigrams: all that v = 0 leaves."""
        smoothed = counts + 1.0
        return -np.log(smoothed / smoothed.sum())

    def shapes(self, n_features: int, n_hidden: int) -> Shapes:
        shapes: Shapes = {"H_next": (n_hidden, n_features)}
        return shapes if self.target_weights else shapes | {"v": (n_hidden,)}

    def draw(self, arrays: State, rng: np.random.RandomState) -> None:
        """Draw H_next."""
        H_next = arrays["H_next"]
        draw_normal(H_next, rng, 3.0 / np.sqrt(H_next.shape[1]))

    def kernel(
        self, team: Workspace, start: int, stop: int, leader: Kernel | None
    ) -> Kernel:
        return _energy.Energy(
            *self._arguments(team), first=team.first + start, n_words=stop - start,
            row=start, leader=leader,
        )  # fmt: skip

    def _arguments(self, team: Workspace) -> tuple[Any, ...]:
        """Return the arguments that all energy kernels share."""
        trained = team.trained
        return (
            team.tier, team.scratch, team.activations, trained["E"], trained["C"],
            trained["H_next"], trained.get("v"),
        )  # fmt: skip


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
