"""NgramWordScorer: scores of a back-off model word by word, for decoders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams._word_scorer import WordScorer
from nplm.models.ngrams.trie.hash_table import HashTable

__all__ = ["NgramWordScorer"]


class NgramWordScorer(WordScorer):
    """Word-by-word scorer of a back-off model, with the methods of `nplm.Scorer`.

    The kernel scores sentences and steps; this class adds methods that return arrays,
    and pickles.
    """

    _made_of: tuple[HashTable, int, dict[Any, int] | None, int]

    @classmethod
    def of(
        cls, index: HashTable, boundary: int, ids: dict[Any, int] | None, unknown: int
    ) -> Self:
        """Make the scorer of a hash table.

        Parameters
        ----------
        index : HashTable
            The n-grams.
        boundary : int
            Id of the sentence boundary.
        ids : dict of word to int, or None
            The id of each word, or None if words are given as ids.
        unknown : int
            The id of words that are not in `ids`; -1 refuses them.

        Returns
        -------
        scorer : NgramWordScorer
        """
        own = boundary, ids, index.n_words, unknown, index.closed
        scorer = cls(index.table, *own)
        scorer._made_of = index, boundary, ids, unknown
        return scorer

    def __reduce__(self) -> Any:
        return type(self).of, self._made_of

    def steps(
        self, states: Sequence[Any], words: Sequence[Any]
    ) -> tuple[NDArray[np.float64], list[Any]]:
        """Return the results of ``step`` for pairs of a state and a word."""
        out = np.empty(len(words))
        return out, self.fill_steps(states, words, out)

    def candidates(self, state: Any, words: Sequence[Any]) -> NDArray[np.float64]:
        """Return the log-probabilities of candidates for the next word."""
        out = np.empty(len(words))
        self.fill_candidates(state, words, out)
        return out

    def sentences(
        self, sentences: Iterable[Any], bos: bool, eos: bool
    ) -> NDArray[np.float64]:
        """Return the log-probability of each sentence."""
        score = self.sentence
        return np.fromiter((score(words, bos, eos) for words in sentences), np.float64)

    def tokens(
        self, ids: NDArray[np.int32], lengths: NDArray[np.intp], bos: bool, eos: bool
    ) -> tuple[NDArray[np.float64], dict[str, NDArray[Any]]]:
        """Return the log-probability of each token, and the order of its n-gram.

        Parameters
        ----------
        ids : ndarray of int32, shape (n_words,)
            Word ids of the sentences, concatenated.
        lengths : ndarray of intp, shape (n_sentences,)
            Number of words of each sentence.
        bos : bool
            Whether each sentence begins after a boundary.
        eos : bool
            Whether the boundary after each sentence is a token.

        Returns
        -------
        log_prob : ndarray of float64, shape (n_tokens,)
        details : dict
            ``order`` (ndarray of int32, shape (n_tokens,)).
        """
        n_tokens = len(ids) + eos * len(lengths)
        log_prob, order = np.empty(n_tokens), np.empty(n_tokens, dtype=np.int32)
        lengths = lengths.astype(np.int64, copy=False)
        self.fill_tokens(ids, lengths, bos, eos, log_prob, order)
        return log_prob, {"order": order}
