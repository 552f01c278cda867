"""The paper's softmax over all words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.neural import _softmax

__all__ = ["Softmax"]


@dataclass(frozen=True)
class Softmax:
    """Output units y = b + Wx + Ua, normalised over all words."""

    direct: bool

    def initialise(self, b: NDArray[Any], y: NDArray[np.int32]) -> None:
        """Set the biases to the (add-one) unigrams; the other numbers stay zero.

        With U = W = 0 the first updates need not learn how frequent words are.
        """
        counts = np.bincount(y, minlength=len(b)) + 1.0
        b[:] = np.log(counts / counts.sum())

    def kernel(
        self, tier: Any, scratch: Any, at: Any, trained: dict[str, Any], **options: Any
    ) -> Any:
        """Give the kernel of one member."""
        return _softmax.Softmax(
            tier, scratch, at, trained["E"], direct=self.direct, **options
        )
