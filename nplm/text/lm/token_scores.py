"""Log-probabilities of the tokens of documents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["ScoredTokens", "TokenScores"]


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
    log_prob: NDArray[np.float64]
    unknown: NDArray[np.bool_]
    order: NDArray[np.int32] | None = None
    weights: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class ScoredTokens:
    """The tokens of documents, concatenated, and their log-probabilities.

    - `ids`, `log_prob`, `unknown` (n_tokens,): the id of each token, its natural-log
      probability, and whether it is outside the vocabulary
    - `lengths` (n_documents,): number of tokens of each document, with its end if that
      counts
    - `order`, `weights`: as of `TokenScores`
    - `words`: the tokens of each document as the tokenizer splits them, without its end
    """

    ids: NDArray[np.int32]
    log_prob: NDArray[np.float64]
    unknown: NDArray[np.bool_]
    lengths: NDArray[np.intp]
    order: NDArray[np.int32] | None = None
    weights: NDArray[np.float64] | None = None
    words: list[Any] | None = None

    @property
    def document(self) -> NDArray[np.intp]:
        """Index of the document of each token."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def sums(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return the sum of the values of the tokens of each document."""
        sums = np.bincount(self.document, values, minlength=len(self.lengths))
        return sums.astype(np.float64, copy=False)

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
