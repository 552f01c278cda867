"""LookedUpLM: base class of n-gram models that score in a file, as it is."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nplm.base.blocks import blocks_of_rows
from nplm.base.estimators import CheapWords
from nplm.models.ngrams.look_ups import ReadFromFile
from nplm.models.ngrams.trie.word_scorer import word_scorer_of

__all__ = ["LookedUpLM"]


class LookedUpLM(ReadFromFile, CheapWords):
    """Base class of back-off models whose n-grams a kernel looks up, and lists none."""

    _looked_up_in = "trie_"

    @classmethod
    def from_trie(cls, trie: Any, *, boundary: int | None = None) -> Self:
        """Make a fitted model from n-grams.

        Parameters
        ----------
        trie : QuantizedTrie or KenlmTrie
            The n-grams.
        boundary : int, optional
            Id of the sentence boundary.

        Returns
        -------
        model : LookedUpLM
        """
        model = cls._of_sizes(trie.order, trie.n_words, boundary)
        model._set_trie(trie)
        return model

    def _set_trie(self, trie: Any) -> None:
        self.trie_, self.n_ngrams_ = trie, trie.n_ngrams

    def _n_known(self) -> int:
        return self.trie_.n_words

    def _log_prob(
        self, X: NDArray[np.int32], y: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        # Ids are checked, but another thread may change the array.
        log_prob = self.trie_.next_word_log_prob(X, y)
        if log_prob is not None:
            return log_prob
        prob = self.trie_.next_word_prob(X, y)
        # A file may contain words of probability 0.
        with np.errstate(divide="ignore"):
            return np.log(prob, out=prob)

    def _word_scorer(
        self, boundary: int, ids: dict[Any, int] | None, unknown: int
    ) -> Any:
        """Return the word-by-word scorer."""
        return word_scorer_of(self.trie_, boundary, ids, unknown)

    def _predict_proba(self, X: NDArray[np.int32]) -> NDArray[np.float64]:
        out = np.empty((len(X), self.n_words_))
        all_words = np.arange(self.n_words_, dtype=np.int32)
        for rows in blocks_of_rows(len(X), self.n_words_):
            contexts = np.repeat(X[rows], self.n_words_, axis=0)
            words = np.tile(all_words, len(X[rows]))
            prob = self.trie_.next_word_prob(contexts, words)
            out[rows] = prob.reshape(-1, self.n_words_)
        return out
