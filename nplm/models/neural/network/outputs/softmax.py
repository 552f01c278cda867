"""Softmax over all words: exact as in the paper, and trained on noise samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from nplm._kernels.neural.outputs import _sampled, _softmax
from nplm.base.array_types import Array, Counts
from nplm.models.neural.network.outputs.base import Output
from nplm.models.neural.network.outputs.estimates import Sampled
from nplm.models.neural.network.word_features import gradient_gatherer
from nplm.models.neural.network.workspace import Kernel, Workspace


@dataclass(frozen=True)
class Softmax(Output):
    """Softmax of y = b + Wx + Ua, with a row of E per word.

    With `n_outputs`, it is over other outcomes, such as positions in a short-list.
    """

    n_outputs: int | None = field(default=None, kw_only=True)
    rows_are_shared: ClassVar[bool] = True
    rounds: ClassVar[bool] = True
    kind: ClassVar[Any] = _softmax.Softmax
    logits_are_single: ClassVar[bool] = True

    def n_rows(self, n_words: int) -> int:
        return n_words if self.n_outputs is None else self.n_outputs

    def n_outcomes(self, n_words: int) -> int:
        return self.n_rows(n_words)

    def initial_biases(self, n_words: int, counts: Counts) -> Array:
        """Return log (add-one) unigrams, which the network predicts with U = W = 0."""
        smoothed = counts[: self.n_rows(n_words)] + 1.0
        return np.log(smoothed / smoothed.sum())

    def kernel(
        self, team: Workspace, start: int, stop: int, leader: Kernel | None
    ) -> Kernel:
        return self.kind(
            team.tier, team.scratch, team.activations, team.trained["E"],
            # Workers start at different rows, so as not to write the same cache lines.
            start_row=team.worker * (stop - start) // team.n_workers // 4 * 4,
            **self._rows(team, start, stop, leader), **self._options(team),
        )  # fmt: skip

    def _options(self, team: Workspace) -> dict[str, object]:
        return {"solver": team.solver}


@dataclass(frozen=True)
class TiedSoftmax(Softmax):
    """Softmax of y = b + Cs, with the word features as weights."""

    examples_are_shared: ClassVar[bool] = False
    rows_are_features: ClassVar[bool] = True
    kind: ClassVar[Any] = _softmax.TiedSoftmax

    def n_tied_rows(self, batch_size: int) -> int | None:
        """Return None: a mini-batch uses all rows."""
        return None

    def _options(self, team: Workspace) -> dict[str, object]:
        gatherer = None
        if team.solver is not None:
            gatherer = gradient_gatherer(team.features, team.tier, team.solver)
        return {"solver": gatherer, "gatherer": gatherer}


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
        return gradient_gatherer(team.features, team.tier, team.solver)
