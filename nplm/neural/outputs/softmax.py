"""The paper's softmax over all words."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.neural import _softmax
from nplm._kernels.neural._team import block_starts
from nplm.neural.features import gatherer_of
from nplm.neural.outputs.base import Output, State

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
        counts = np.bincount(y, minlength=self.n_rows(n_words)) + 1.0
        return np.log(counts / counts.sum())

    def kernels(
        self,
        tier: Any,
        scratch: Any,
        at: Any,
        features: Any,
        trained: dict[str, Any],
        state: State,
        *,
        first: int,
        n_members: int,
        worker: int,
        n_workers: int,
        solver: Any,
    ) -> list[Any]:
        """Give the kernels of a team, one a member with rows of its own."""
        outputs: list[Any] = []
        for start, stop in pairwise(block_starts(trained["E"].rows, n_members)):
            if start == stop and outputs:
                break  # members without a row are left out
            n = stop - start
            one = self.kind(
                tier, scratch, at, trained["E"], direct=self.direct,
                first=first + start, n_words=n, row=start, n_rows=n,
                leader=outputs[0] if outputs else None,
                # Apart from each other, so that they do not write the same lines.
                start_row=worker * n // n_workers // 4 * 4,
                **self._options(tier, features, solver),
            )  # fmt: skip
            outputs.append(one)
        return outputs

    def _options(self, tier: Any, features: Any, solver: Any) -> dict[str, Any]:
        return {"solver": solver}


@dataclass(frozen=True)
class TiedSoftmax(Softmax):
    """A softmax of y = b + Cs: the features of the words are its weights."""

    rows_are_features: ClassVar[bool] = True
    kind: ClassVar[Any] = _softmax.TiedSoftmax

    def n_met(self, batch_size: int) -> int | None:
        """All words."""
        return None

    def _options(self, tier: Any, features: Any, solver: Any) -> dict[str, Any]:
        gatherer = None if solver is None else gatherer_of(features, tier, solver)
        return {"solver": gatherer, "gatherer": gatherer}
