"""Scores of the tokens of documents, of a text, and those that compare models."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from nplm._kernels.ngrams.decoding._word_ids import sizes_of
from nplm.base.array_types import AnyArray, Floats, Ids, Index, Mask
from nplm.base.estimators.scored_texts import perplexity

NO_SPELLING = (
    "the model does not know how unknown words are spelled. Models that nplm fits to "
    "text do, if their tokenizer gives the text of unknown words; those read from ARPA "
    "files do not"
)


class TokenScores(NamedTuple):
    """Scores of each token of one document.

    The same information as KenLM's ``full_scores`` and SRILM's ``-debug 2``.

    Attributes
    ----------
    words : list of length n_tokens, or ndarray of int32, shape (n_tokens,)
        The tokens, with the final boundary if it counts; unknown words are ``<unk>``.
        Ids where documents are ids.
    log_prob : ndarray of float64, shape (n_tokens,)
        Natural logarithms.
    unknown : ndarray of bool, shape (n_tokens,)
        Whether each token is outside the vocabulary.
    order : ndarray of int32, shape (n_tokens,), or None
        Order of the longest n-gram found by a backoff model: 1 is a unigram. None for
        other models.
    weights : ndarray of float64, shape (n_tokens, n_members), or None
        Weight of each member of a `MixtureLM`, or of each order of an
        `InterpolatedTrigram`, the lowest first. None for other models.
    """

    words: Any
    log_prob: Floats
    unknown: Mask
    order: Ids | None = None
    weights: Floats | None = None


@dataclass(frozen=True)
class ScoredTokens:
    """The tokens of documents, concatenated, and their log-probabilities.

    - `ids`, `log_prob`, `unknown` (n_tokens,), and `lengths` (n_documents,) with the
      ends that count
    - `order`, `weights`: as of `TokenScores`
    - `words`: the tokens of each document as the tokenizer splits them, without its end
    """

    ids: Ids
    log_prob: Floats
    unknown: Mask
    lengths: Index
    order: Ids | None = None
    weights: Floats | None = None
    words: list[Any] | None = None

    @property
    def document(self) -> Index:
        """Index of the document of each token."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def sums(self, values: AnyArray) -> Floats:
        """Return the sum of the values of the tokens of each document."""
        return sums_by_document(values, self.lengths)

    def by_document(self) -> Iterator[slice]:
        """Yield the tokens of each document as a slice."""
        ends = np.cumsum(self.lengths).tolist()
        yield from (slice(i, j) for i, j in pairwise([0, *ends]))

    def documents(self) -> Iterator[ScoredTokens]:
        """Yield the tokens of each document."""
        for i, part in enumerate(self.by_document()):
            yield ScoredTokens(
                self.ids[part],
                self.log_prob[part],
                self.unknown[part],
                self.lengths[i : i + 1],
                None if self.order is None else self.order[part],
                None if self.weights is None else self.weights[part],
            )


def sums_by_document(values: AnyArray, lengths: Index) -> Floats:
    """Return the sum of the values of the tokens of each document, added in order."""
    document = np.repeat(np.arange(len(lengths)), lengths)
    sums = np.bincount(document, values, minlength=len(lengths))
    return sums.astype(np.float64, copy=False)


class TextSize(NamedTuple):
    """The size of a text: its words between white space, its characters, its bytes."""

    n_words: int
    n_characters: int
    n_bytes: int

    @classmethod
    def of(cls, documents: Sequence[str], *, ends: bool) -> TextSize:
        """Measure documents; if `ends` count, each ends with a line feed.

        The line feed counts as a word, as ``</s>`` does in published perplexities.
        """
        n_ends = len(documents) if ends else 0
        return cls(*(n + n_ends for n in sizes_of(documents)))


NO_TEXT = TextSize(0, 0, 0)


class TextScores(NamedTuple):
    """Scores of a text, as `TextLM.text_scores` returns them.

    Perplexities of tokens compare between models with the same tokens only. Bits per
    character and per byte, and the perplexity of a word, are those of the whole text,
    and compare between any models. They include how unknown words are spelled, by a
    small model of the rare words of the training text. Its probabilities sum to 1 over
    all strings, known words too, so these figures are upper bounds. They are NaN if the
    text has unknown words and the model has no spelling: n-grams that another toolkit
    estimated, or a model that was saved before.

    Attributes
    ----------
    n_documents : int
        Number of documents.
    n_tokens : int
        Number of tokens, with the ends of documents if they are predicted.
    n_unknown : int
        Number of tokens outside the vocabulary. In `log_prob` and `perplexity` each
        counts with the probability of all unknown tokens together.
    n_words : int
        Number of words between white space. If the ends of documents are predicted,
        each counts as a word, as ``</s>`` does in published figures.
    n_characters, n_bytes : int
        Number of characters (code points), and of bytes in UTF-8. If the ends of
        documents are predicted, each counts as one: the line feed of a file with a
        document a line.
    log_prob : float
        Natural logarithm of the probability of the tokens.
    spelling_log_prob : float, default=nan
        Natural logarithm of the probability of how the unknown tokens are spelled; 0
        without unknown tokens.

    Notes
    -----
    What a tokenizer leaves out or replaces is not counted: blanks between words, and
    capitals and numbers if a `Tokenizer` changes these.

    Examples
    --------
    >>> import math
    >>> from nplm import TextScores
    >>> scores = TextScores(1, 5, 0, 3, 14, 14, -14 * math.log(2))
    >>> scores.bits_per_character
    1.0
    >>> round(scores.word_perplexity, 2)
    25.4
    """

    n_documents: int
    n_tokens: int
    n_unknown: int
    n_words: int
    n_characters: int
    n_bytes: int
    log_prob: float
    spelling_log_prob: float = math.nan

    @property
    def perplexity(self) -> float:
        """Perplexity of a token."""
        return perplexity(self.log_prob, self.n_tokens)

    @property
    def word_perplexity(self) -> float:
        """Perplexity of a word of the text, unknown ones spelled."""
        return perplexity(self._text_log_prob, self.n_words)

    @property
    def bits_per_character(self) -> float:
        """Cross-entropy in bits per character, unknown words spelled."""
        return _bits(self._text_log_prob, self.n_characters)

    @property
    def bits_per_byte(self) -> float:
        """Cross-entropy in bits per byte of UTF-8, unknown words spelled."""
        return _bits(self._text_log_prob, self.n_bytes)

    @property
    def _text_log_prob(self) -> float:
        return self.log_prob + (self.spelling_log_prob if self.n_unknown else 0.0)


def _bits(log_prob: float, n: int) -> float:
    return -log_prob / (math.log(2) * n) if n else math.nan


@dataclass
class PerplexitySums:
    """Sums over the tokens of a text of any size, and their perplexities.

    - `n_tokens`: with the ends of documents if `ends`
    - `n_unknown`, `n_zeros`: words outside the vocabulary, and others of probability 0
    - `n_impossible`: words outside the vocabulary of probability 0
    - `log_prob`, `known_log_prob`, `positive_log_prob`: of all tokens, of those that
      are neither unknown nor of probability 0, and of those that are not of probability
      0
    - `spelling`: log-probability of how unknown words are spelled, NaN if not known
    """

    ends: bool
    n_documents: int = 0
    n_tokens: int = 0
    n_unknown: int = 0
    n_zeros: int = 0
    n_impossible: int = 0
    log_prob: float = 0.0
    known_log_prob: float = 0.0
    positive_log_prob: float = 0.0
    size: TextSize = NO_TEXT
    spelling: float = 0.0

    def add(
        self, tokens: ScoredTokens, size: TextSize = NO_TEXT, spelling: float = 0.0
    ) -> None:
        """Add the tokens of some documents."""
        log_prob, unknown = tokens.log_prob, tokens.unknown
        is_zero = log_prob == -np.inf
        self.n_documents += len(tokens.lengths)
        self.n_tokens += len(log_prob)
        self.n_unknown += int(unknown.sum())
        self.n_zeros += int((is_zero & ~unknown).sum())
        self.n_impossible += int((is_zero & unknown).sum())
        self.log_prob += float(log_prob.sum())
        self.known_log_prob += float(log_prob[~(is_zero | unknown)].sum())
        self.positive_log_prob += float(log_prob[~is_zero].sum())
        self.size = TextSize(*(a + b for a, b in zip(self.size, size)))
        self.spelling += spelling

    @property
    def n_words(self) -> int:
        """Number of tokens that are not ends of documents."""
        return self.n_tokens - (self.n_documents if self.ends else 0)

    @property
    def with_unknown(self) -> float:
        """KenLM's perplexity including OOVs."""
        return perplexity(self.log_prob, self.n_tokens)

    @property
    def without_unknown(self) -> float:
        """KenLM's perplexity excluding OOVs; without zeros too."""
        n_left_out = self.n_unknown + self.n_zeros
        return perplexity(self.known_log_prob, self.n_tokens - n_left_out)

    @property
    def srilm(self) -> tuple[float, float]:
        """SRILM's ppl and ppl1, which is divided by the words without sentence ends.

        Unknown words count if the model gives them a probability above 0.
        """
        n_left_out = self.n_impossible + self.n_zeros
        return (
            perplexity(self.positive_log_prob, self.n_tokens - n_left_out),
            perplexity(self.positive_log_prob, self.n_words - n_left_out),
        )

    @property
    def text_scores(self) -> TextScores:
        """The scores that do not depend on how the text is split into tokens."""
        counts = self.n_documents, self.n_tokens, self.n_unknown
        # One object, so that the scores of two calls are equal.
        spelling = math.nan if math.isnan(self.spelling) else self.spelling
        return TextScores(*counts, *self.size, self.log_prob, spelling)
