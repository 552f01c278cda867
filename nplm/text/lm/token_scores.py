"""Scores of the tokens of a document, one by one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["TokenScores"]


class TokenScores(NamedTuple):
    """What a model says of each token of one document.

    KenLM's ``full_scores`` and SRILM's ``-debug 2`` say as much.

    Attributes
    ----------
    words : list of length n_tokens, or ndarray of int32, shape (n_tokens,)
        The tokens, the boundary at the end among them where it counts; unknown words
        are ``<unk>``. Ids where documents are ids.
    log_prob : ndarray of float64, shape (n_tokens,)
        Natural logarithms.
    unknown : ndarray of bool, shape (n_tokens,)
        Whether it is outside the vocabulary.
    order : ndarray of int32, shape (n_tokens,), or None
        Words of the longest n-gram found, of models of n-grams that back off: 1 is a
        unigram. None of other models.
    weights : ndarray of float64, shape (n_tokens, n_members), or None
        Weight of each member of a `MixtureLM`, or of each order of an
        `InterpolatedTrigram`, the lowest first. None of other models.
    """

    words: Any
    log_prob: NDArray[np.float64]
    unknown: NDArray[np.bool_]
    order: NDArray[np.int32] | None = None
    weights: NDArray[np.float64] | None = None
