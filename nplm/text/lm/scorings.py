"""Scores for ``scoring=`` of scikit-learn's searches: greater is better."""

from __future__ import annotations

import math
from typing import Any

from nplm.base.estimators.scored_texts import perplexity


def neg_perplexity(estimator: Any, X: object, y: object = None) -> float:
    """Score a model by its negated perplexity: greater is better.

    For ``scoring=`` of scikit-learn's searches and cross-validations. The mean of the
    folds' perplexities is not the perplexity of all the data. The mean of ``score``,
    the default, does not have this problem. scikit-learn's names of scores are fixed:
    pass the function.

    Parameters
    ----------
    estimator : language model, TextLM, or a Pipeline with one at its end
        A fitted estimator.
    X : windows or documents
        The data, as its ``score`` takes them.
    y : array-like of int, optional
        Next words, if X are windows.

    Returns
    -------
    score : float
        ``-exp(-estimator.score(X, y))``.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from nplm import InterpolatedTrigram, TextLM, neg_perplexity
    >>> lm = TextLM(InterpolatedTrigram())
    >>> scores = cross_val_score(lm, ["a rose is"] * 9, cv=3, scoring=neg_perplexity)
    >>> bool((scores < -1).all())
    True
    """
    return -perplexity(estimator.score(X, y), 1)


def neg_bits_per_token(estimator: Any, X: object, y: object = None) -> float:
    """Score a model by its negated bits per token, ``score`` over log(2).

    Unlike perplexities, bits of folds may be averaged.

    Parameters
    ----------
    estimator : language model, TextLM, or a Pipeline with one at its end
        A fitted estimator.
    X : windows or documents
        The data, as its ``score`` takes them.
    y : array-like of int, optional
        Next words, if X are windows.

    Returns
    -------
    score : float
        The mean of log2 of the probabilities of the tokens.

    Examples
    --------
    >>> from nplm import InterpolatedTrigram, TextLM, neg_bits_per_token
    >>> lm = TextLM(InterpolatedTrigram()).fit(["a rose is"] * 9)
    >>> bool(0 > neg_bits_per_token(lm, ["a rose"]) > -3)
    True
    """
    return float(estimator.score(X, y)) / math.log(2)


def neg_bits_per_character(estimator: object, X: object, y: object = None) -> float:
    """Score a model of text by its negated bits per character: compares any models.

    Models that split text differently have tokens that do not compare, characters do:
    a search over ``tokenizer`` or ``vocabulary__min_count`` needs this score. It
    includes how unknown words are spelled, see `TextScores`.

    Parameters
    ----------
    estimator : TextLM
        A fitted model of strings.
    X : sequence of str
        Documents.
    y : ignored

    Returns
    -------
    score : float
        ``-estimator.text_scores(X).bits_per_character``; NaN if there are unknown words
        and the model does not know how they are spelled.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from nplm import InterpolatedTrigram, TextLM, neg_bits_per_character
    >>> scores = cross_val_score(TextLM(InterpolatedTrigram()), ["a rose is"] * 9, cv=3,
    ...                          scoring=neg_bits_per_character)
    >>> bool((scores < 0).all())
    True
    """
    if not hasattr(estimator, "text_scores"):
        raise TypeError(
            f"neg_bits_per_character needs a TextLM of strings, got a "
            f"{type(estimator).__name__}: neg_bits_per_token scores windows and tokens."
        )
    return -float(estimator.text_scores(X).bits_per_character)
