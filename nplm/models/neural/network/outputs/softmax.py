"""The paper's softmax over all words."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.neural.outputs import _softmax
from nplm.base.checks import count_ids
from nplm.models.neural.network.features import gatherer_of
from nplm.models.neural.network.outputs.base import Output, Workspace

__all__ = ["Softmax", "TiedSoftmax"]


@dataclass(frozen=True)
class Softmax(Output):
    """Output units y = b + Wx + Ua, normalised over all words: a row of E a word.

    Or over `n_outputs` other outcomes, such as the places in a short-list.
    """

    name: ClassVar[str] = "softmax"
    n_outputs: int | None = field(default=None, kw_only=True)
    rows_are_shared: ClassVar[bool] = True
    rounds: ClassVar[bool] = True
    kind: ClassVar[Any] = _softmax.Softmax
    logits_are_single: ClassVar[bool] = True

    def n_rows(self, n_words: int) -> int:
        """Rows of E, for so many words."""
        return n_words if self.n_outputs is None else self.n_outputs

    def n_outcomes(self, n_words: int) -> int:
        """Columns of its probabilities: one a row."""
        return self.n_rows(n_words)

    def of_few(self, n_outputs: int) -> Self:
        """Give the same of `n_outputs` outcomes."""
        if type(self) is not Softmax:  # other kinds take rows for words
            return super().of_few(n_outputs)
        return replace(self, n_outputs=n_outputs)

    def initial_biases(self, n_words: int, y: NDArray[np.int32]) -> NDArray[Any]:
        """Give the logarithms of the (add-one) unigrams.

        With U = W = 0 the first updates need not learn how frequent words are.
        """
        counts = count_ids(y, self.n_rows(n_words)) + 1.0
        return np.log(counts / counts.sum())

    def kernel(self, team: Workspace, start: int, stop: int, leader: Any) -> Any:
        """Give the kernel of a member."""
        return self.kind(
            team.tier, team.scratch, team.at, team.trained["E"],
            # Apart from each other, so that they do not write the same lines.
            start_row=team.worker * (stop - start) // team.n_workers // 4 * 4,
            **self._rows(team, start, stop, leader), **self._options(team),
        )  # fmt: skip

    def _options(self, team: Workspace) -> dict[str, Any]:
        return {"solver": team.solver}


@dataclass(frozen=True)
class TiedSoftmax(Softmax):
    """A softmax of y = b + Cs: the features of the words are its weights."""

    rows_are_features: ClassVar[bool] = True
    kind: ClassVar[Any] = _softmax.TiedSoftmax

    def n_met(self, batch_size: int) -> int | None:
        """All words."""
        return None

    def _options(self, team: Workspace) -> dict[str, Any]:
        gatherer = None
        if team.solver is not None:
            gatherer = gatherer_of(team.features, team.tier, team.solver)
        return {"solver": gatherer, "gatherer": gatherer}
