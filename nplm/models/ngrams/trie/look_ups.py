"""WindowLookUps: probabilities of windows, looked up by a kernel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams import _trie
from nplm.base.blocks import BLOCK_WINDOWS, blocks

__all__ = ["WindowLookUps"]


class WindowLookUps:
    """Mixin of n-grams in a form that a kernel looks windows up in.

    - `kernel`: the n-grams as the kernel takes them
    """

    kernel: _trie.Ngrams

    def next_word_prob(
        self, X: NDArray[np.int32], y: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Return the probability of each next word given its context.

        - `X` (n_samples, order - 1): contexts, the nearest word in the last column. Ids
          are not checked
        """
        out = np.empty(len(y))
        for rows in blocks(len(y), BLOCK_WINDOWS):
            own = np.ascontiguousarray(X[rows]), np.ascontiguousarray(y[rows])
            _trie.windows_prob(self.kernel, *own, out[rows])
        return out

    def next_word_log_prob(
        self, X: NDArray[np.int32], y: NDArray[np.int32]
    ) -> NDArray[np.float64] | None:
        """Return the natural logarithm of the probability of each next word.

        - `X` (n_samples, order - 1): contexts, the nearest word in the last column. Ids
          need not be checked

        Returns `log_prob` (n_samples,): None if an id is out of range.
        """
        out = np.empty(len(y))
        for rows in blocks(len(y), BLOCK_WINDOWS):
            own = np.ascontiguousarray(X[rows]), np.ascontiguousarray(y[rows])
            if not _trie.windows_log_prob(self.kernel, *own, out[rows]):
                return None
        return out
