"""The paper's softmax over all words."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.neural import _softmax
from nplm._kernels.neural._team import block_starts
from nplm.neural.outputs.base import Output, State

__all__ = ["Softmax"]


@dataclass(frozen=True)
class Softmax(Output):
    """Output units y = b + Wx + Ua, normalised over all words: a row of E a word."""

    rows_are_shared: ClassVar[bool] = True
    rows_are_spread: ClassVar[bool] = True

    def initial_biases(self, n_words: int, y: NDArray[np.int32]) -> NDArray[Any]:
        """Give the logarithms of the (add-one) unigrams.

        With U = W = 0 the first updates need not learn how frequent words are.
        """
        counts = np.bincount(y, minlength=n_words) + 1.0
        return np.log(counts / counts.sum())

    def kernels(
        self,
        tier: Any,
        scratch: Any,
        at: Any,
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
            one = _softmax.Softmax(
                tier, scratch, at, trained["E"], direct=self.direct,
                first=first + start, n_words=n, row=start, n_rows=n,
                leader=outputs[0] if outputs else None, solver=solver,
                # Apart from each other, so that they do not write the same lines.
                start_row=worker * n // n_workers // 4 * 4,
            )  # fmt: skip
            outputs.append(one)
        return outputs
