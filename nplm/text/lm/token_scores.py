"""TokenScores: log-probabilities of the tokens of a document."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["TokenScores"]


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
