"""Softmax over all words, as in the paper."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from nplm._kernels.neural.outputs import _softmax
from nplm.models.neural.network.array_types import Array, Counts, Kernel
from nplm.models.neural.network.features import gradient_gatherer
from nplm.models.neural.network.outputs.base import Output, Workspace

__all__ = ["Softmax", "TiedSoftmax"]


@dataclass(frozen=True)
class Softmax(Output):
    """Softmax of y = b + Wx + Ua, with a row of E per word.

    With `n_outputs`, it is over other outcomes, such as positions in a short-list.
    """

    name: ClassVar[str] = "softmax"
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
        """Return the log (add-one) unigram probabilities.

        With U = W = 0, the network then predicts the unigram probabilities.
        """
        smoothed = counts[: self.n_rows(n_words)] + 1.0
        return np.log(smoothed / smoothed.sum())

    def kernel(
        self, team: Workspace, start: int, stop: int, leader: Kernel | None
    ) -> Kernel:
        """Return the kernel of a member."""
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
