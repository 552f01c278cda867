"""Scores of a back-off model word by word, for decoders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams._hashed import Table
from nplm._kernels.ngrams._quantized import QuantizedTrie
from nplm._kernels.ngrams.decoding._kenlm_files import KenlmNgrams, KenlmWordScorer
from nplm._kernels.ngrams.decoding._ngram_scorers import (
    HashedWordScorer,
    QuantizedWordScorer,
)
from nplm.base.array_types import Floats, Ids, Index


class ScorerMethods:
    """Methods of `nplm.Scorer` that return arrays, beside those of a kernel."""

    _made_of: tuple[Any, int, dict[Any, int] | None, int]
    # Methods of the kernel.
    sentence: Any
    text: Any
    fill_candidates: Any
    fill_steps: Any
    fill_texts: Any
    fill_tokens: Any

    @classmethod
    def of(
        cls, ngrams: Any, boundary: int, ids: dict[Any, int] | None, unknown: int
    ) -> Self:
        """Make the scorer of n-grams.

        `ids` has the id of each word, None if words are ids. Others have the id
        `unknown`; -1 refuses them.
        """
        arguments = boundary, ids, ngrams.n_words, unknown, ngrams.closed
        scorer: Any = cls(ngrams.kernel, *arguments)  # type: ignore[call-arg]
        scorer._made_of = ngrams, boundary, ids, unknown
        return scorer

    def __reduce__(self) -> Any:
        return type(self).of, self._made_of

    @property
    def boundary(self) -> int:
        """Id of the sentence boundary."""
        return self._made_of[1]

    @property
    def order(self) -> int:
        """Words in the longest n-gram."""
        return self._made_of[0].order

    def steps(
        self, states: Sequence[Any], words: Sequence[Any]
    ) -> tuple[Floats, list[Any]]:
        """Return the results of ``step`` for pairs of a state and a word."""
        out = np.empty(len(words))
        return out, self.fill_steps(states, words, out)

    def candidates(self, state: Any, words: Sequence[Any]) -> Floats:
        """Return the log-probabilities of candidates for the next word."""
        out = np.empty(len(words))
        self.fill_candidates(state, words, out)
        return out

    def sentences(self, sentences: Iterable[Any], bos: bool, eos: bool) -> Floats:
        """Return the log-probability of each sentence."""
        score = self.sentence
        return np.fromiter((score(words, bos, eos) for words in sentences), np.float64)

    def texts(self, words: Any, texts: list[str], bos: bool, eos: bool) -> Floats:
        """Return the log-probability of each sentence of words between blanks."""
        out = np.empty(len(texts))
        self.fill_texts(words, texts, bos, eos, out)
        return out

    def tokens(
        self, ids: Ids, lengths: Index, bos: bool, eos: bool, details: bool = True
    ) -> tuple[Floats, dict[str, NDArray[Any]]]:
        """Return the log-probability of each token, and the order of its n-gram.

        `ids` (n_words,) are those of the sentences, of `lengths` (n_sentences,).
        """
        n_words, last = self._made_of[0].n_words, int(ids.max(initial=-1))
        if last >= n_words:
            raise ValueError(
                f"a word has the id {last}, but the model knows {n_words} words: the "
                "vocabulary is not the one that it was fitted with."
            )
        n_tokens = len(ids) + bool(eos) * len(lengths)
        log_prob, order = np.empty(n_tokens), np.empty(n_tokens, dtype=np.int32)
        lengths = lengths.astype(np.int64, copy=False)
        self.fill_tokens(ids, lengths, bos, eos, log_prob, order)
        return log_prob, {"order": order}


class NgramWordScorer(ScorerMethods, HashedWordScorer):
    """Word-by-word scorer of a hash table."""


class QuantizedNgramWordScorer(ScorerMethods, QuantizedWordScorer):
    """Word-by-word scorer of a quantized trie."""


class KenlmNgramWordScorer(ScorerMethods, KenlmWordScorer):
    """Word-by-word scorer of a file of KenLM."""


SCORERS: dict[type, type[ScorerMethods]] = {
    Table: NgramWordScorer,
    QuantizedTrie: QuantizedNgramWordScorer,
    KenlmNgrams: KenlmNgramWordScorer,
}


def word_scorer_of(ngrams: Any, boundary: int, ids: Any, unknown: int) -> Any:
    """Make the scorer of n-grams of any kind; see `ScorerMethods.of`."""
    return SCORERS[type(ngrams.kernel)].of(ngrams, boundary, ids, unknown)
