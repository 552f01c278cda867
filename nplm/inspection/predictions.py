"""Predictions of a text model taken apart: surprisals, members, n-grams found."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.utils.validation import check_scalar

from nplm.base.array_types import Floats, Ids, Mask
from nplm.base.estimators.scored_texts import texts_log_prob
from nplm.inspection.weights import member_names
from nplm.text.documents import Documents
from nplm.text.lm.fitted_text import FittedText, fitted_text
from nplm.text.lm.text_lm import TextLM


class Surprisals(NamedTuple):
    r"""Surprisals of the tokens of one document, returned by `surprisals`.

    Attributes
    ----------
    tokens : list of length n_tokens, or ndarray of int32, shape (n_tokens,)
        The tokens as the tokenizer splits them, with the final boundary if it counts;
        ids where documents are ids.
    bits : ndarray of float64, shape (n_tokens,)
        The surprisal of each token, :math:`-\log_2 P(w | c)`, in bits; infinite if
        the probability is 0.
    unknown : ndarray of bool, shape (n_tokens,)
        Whether each token is outside the vocabulary.
    order : ndarray of int32, shape (n_tokens,), or None
        Length of the longest n-gram found by a back-off model: 1 is a unigram. None
        for other models.
    members : list of str, length n_members
        Names of the members of a `MixtureLM`, or of the orders of an
        `InterpolatedTrigram`; empty for other models.
    weights : ndarray of float64, shape (n_tokens, n_members)
        Weight of each member.
    member_bits : ndarray of float64, shape (n_tokens, n_members)
        The surprisal of each token by each member alone, in bits.
    member_order : ndarray of int32, shape (n_tokens, n_members)
        As ``order``, of each member; 0 for a member that is no back-off model.
    """

    tokens: Any
    bits: Floats
    unknown: Mask
    order: Ids | None
    members: list[str]
    weights: Floats
    member_bits: Floats
    member_order: Ids


class ExpectedWords(NamedTuple):
    """The most probable next words, returned by `expected_words`.

    Attributes
    ----------
    words : list of length k, or ndarray of int32
        The most probable first; ids where documents are ids.
    proba : ndarray of float64, shape (k,)
        Their probabilities.
    order : ndarray of int32, shape (k,), or None
        Length of the longest n-gram found by a back-off model. None for other models.
    members : list of str, length n_members
        Names of the members of a mixture, as in `Surprisals`.
    weights : ndarray of float64, shape (n_members,)
        Weight of each member in this context.
    member_proba : ndarray of float64, shape (k, n_members)
        The probability of each word by each member alone.
    member_order : ndarray of int32, shape (k, n_members)
        As ``order``, of each member; 0 for a member that is no back-off model.
    """

    words: Any
    proba: Floats
    order: Ids | None
    members: list[str]
    weights: Floats
    member_proba: Floats
    member_order: Ids


def surprisals(lm: TextLM, X: Sequence[object]) -> list[Surprisals]:
    """Return the surprisal of each token in bits, and that of each member.

    Parameters
    ----------
    lm : TextLM
        Fitted.
    X : sequence of documents
        Of the kind that the model was fitted on.

    Returns
    -------
    surprisals : list of Surprisals
        One per document. The probability of a mixture is the sum over its members of
        ``weights * 2**-member_bits``.

    Raises
    ------
    ValueError
        If a token is not in the vocabulary, and this has no symbol for unknown words.

    Examples
    --------
    >>> from nplm import KneserNeyLM, TextLM
    >>> from nplm.inspection import surprisals
    >>> ngrams = KneserNeyLM(order=3, discount_fallback=(0.5, 1, 1.5))
    >>> lm = TextLM(ngrams).fit(["to be or not to be"] * 9)
    >>> [found] = surprisals(lm, ["not to see"])
    >>> found.tokens, found.order.tolist(), found.unknown.tolist()
    (['not', 'to', 'see', '</s>'], [1, 2, 1, 1], [False, False, True, False])
    >>> bool(found.bits[1] < 1 < found.bits[2])
    True
    """
    text = fitted_text(lm)
    codec, model = text.codec, text.model
    split, documents = codec.encode_split(X)
    if len(documents.lengths) == 0:
        return []
    texts = documents.texts(text.n_columns, text.boundary, ends=text.ends)
    contexts, ids = texts.windows()
    log_probs = None
    if text.continues:
        is_mixture = bool(member_names(model))
        log_probs = (
            model.member_log_probs(texts)
            if is_mixture
            else texts_log_prob(model, texts)
        )
    scores = score_members(model, text.boundary, contexts, ids, log_probs)
    unknown = ids == codec.unknown_id
    last = np.cumsum(documents.lengths + text.ends).tolist()
    surprisals = []
    for tokens, first, end in zip(split, [0, *last], last):
        part = slice(first, end)
        surprisals.append(
            Surprisals(
                [*tokens, *codec.words(ids[first + len(tokens) : end])]
                if codec.vocabulary is not None
                else ids[part],
                _bits(scores.log_prob[part]),
                unknown[part],
                None if scores.order is None else scores.order[part],
                scores.members,
                scores.weights[part],
                _bits(scores.member_log_prob[part]),
                scores.member_order[part],
            )
        )
    return surprisals


def expected_words(
    lm: TextLM, document: object = (), k: int = 10, *, position: int | None = None
) -> ExpectedWords:
    """Return the most probable next words, and their probabilities by each member.

    Unlike ``TextLM.next_words``, it does not leave out the symbol for unknown words:
    the probabilities are those of the model, and those of the members add up to them.

    Parameters
    ----------
    lm : TextLM
        Fitted.
    document : document, default=()
        A text, of the kind that the model was fitted on.
    k : int, default=10
        Number of words.
    position : int, optional
        Predict the token at this position of `document`, from those before it; 0 is
        the first. By default the token after the last is predicted.

    Returns
    -------
    expected_words : ExpectedWords

    Raises
    ------
    ValueError
        If `k` or `position` is out of range.

    Examples
    --------
    >>> from nplm import InterpolatedTrigram, TextLM
    >>> from nplm.inspection import expected_words
    >>> lm = TextLM(InterpolatedTrigram()).fit(["to be or not to be"] * 9)
    >>> found = expected_words(lm, "not to", k=1)
    >>> found.words, found.members
    (['be'], ['uniform', 'unigram', 'bigram', 'trigram'])
    >>> bool(abs(found.weights @ found.member_proba[0] - found.proba[0]) < 1e-9)
    True
    >>> expected_words(lm, "to be or", k=1, position=1).words
    ['be']
    """
    text = fitted_text(lm)
    check_scalar(k, "k", Integral, min_val=1)
    model = text.model
    ids, stop = _ids_and_position(text, document, position)
    proba, context, state = _proba_after(text, ids[:stop])
    best = np.argsort(-proba, kind="stable")[:k].astype(np.int32)
    log_probs = None
    if text.continues:
        log_probs = np.log(proba[best])
        if member_names(model):
            rows, _ = model.step_members(context[np.newaxis], [state])
            log_probs = np.column_stack([row[0, best] for row in rows])
    contexts = np.tile(context, (len(best), 1))
    scores = score_members(model, text.boundary, contexts, best, log_probs)
    return ExpectedWords(
        text.codec.words(best),
        proba[best].astype(np.float64),
        scores.order,
        scores.members,
        scores.weights[0],
        np.exp(scores.member_log_prob),
        scores.member_order,
    )


def context_effects(
    lm: TextLM, document: object = (), *, position: int | None = None, n: int = 8
) -> Floats:
    """Return what each word of the context adds to the prediction of the next one.

    A word is replaced by the symbol for unknown words, or left out if the vocabulary
    has none, and the next word predicted again.

    Parameters
    ----------
    lm : TextLM
        Fitted.
    document : document, default=()
        A text, of the kind that the model was fitted on.
    position : int, optional
        Explain the token at this position of `document`. By default the most probable
        word after the last token is explained.
    n : int, default=8
        Number of words before it.

    Returns
    -------
    bits : ndarray of float64, shape (min(n, position),)
        How many bits more surprising the next word is without each word, in text order;
        negative where it is less surprising.

    Raises
    ------
    ValueError
        If `position` is out of range.

    Examples
    --------
    >>> from nplm import InterpolatedTrigram, TextLM
    >>> from nplm.inspection import context_effects
    >>> lm = TextLM(InterpolatedTrigram()).fit(["to be or not to be"] * 9)
    >>> first, second = context_effects(lm, "or not", n=2)
    >>> bool(second > first)
    True
    """
    text = fitted_text(lm)
    ids, stop = _ids_and_position(text, document, position)
    proba, _, _ = _proba_after(text, ids[:stop])
    word = ids[stop] if stop < len(ids) else proba.argmax()
    unknown = text.codec.unknown_id
    effects = []
    for place in range(max(0, stop - n), stop):
        kept = [unknown] if unknown >= 0 else []
        without = np.concatenate([ids[:place], kept, ids[place + 1 : stop]])
        other, _, _ = _proba_after(text, without.astype(np.int32))
        with np.errstate(divide="ignore", invalid="ignore"):
            effects.append(np.log2(proba[word]) - np.log2(other[word]))
    return np.array(effects, dtype=np.float64)


def _ids_and_position(
    text: FittedText, document: object, position: int | None
) -> tuple[Ids, int]:
    """Return the ids of a document, and the checked position of a token of it."""
    ids = text.codec.encode_one(document, "document").ids
    if position is not None:
        check_scalar(position, "position", Integral)
    if position is not None and not 0 <= position <= len(ids):
        raise ValueError(
            f"position must be from 0 to {len(ids)}, the number of tokens of the "
            f"document, got {position}."
        )
    return ids, len(ids) if position is None else position


def _proba_after(text: FittedText, ids: Ids) -> tuple[Floats, Ids, object]:
    """Return the probabilities of the word after some, its context and the state."""
    context, state = text.state_after(Documents(ids, np.array([len(ids)])))
    [proba], _ = text.next_proba(context[np.newaxis], [state])
    return proba, context, state


class MemberScores(NamedTuple):
    """Log-probabilities of next words, and what they are made of."""

    log_prob: Floats
    order: Ids | None
    members: list[str]
    weights: Floats
    member_log_prob: Floats
    member_order: Ids


def score_members(
    model: Any, boundary: int, X: Ids, y: Ids, log_probs: Floats | None = None
) -> MemberScores:
    """Score windows by a model and by each of its members.

    `log_probs`: the scores by the model, (n,), or by its members, (n, n_members); by
    default those of the windows alone.
    """
    names = member_names(model)
    shape = len(y), len(names)
    scores = MemberScores(
        np.empty(0), None, names, np.empty(shape), np.empty(shape),
        np.zeros(shape, dtype=np.int32),
    )  # fmt: skip
    if len(y) == 0:
        return scores
    if not names:
        order = _orders(model, boundary, X, y)
        log_prob = model.log_prob(X, y) if log_probs is None else log_probs
        return scores._replace(log_prob=log_prob, order=order)
    weights = model.member_weights(X)
    if log_probs is None:
        log_probs = model.member_log_probs((X, y))
    for i, member in enumerate(getattr(model, "estimators_", ())):
        order = _orders(member, boundary, X, y)
        if order is not None:
            scores.member_order[:, i] = order
    return scores._replace(
        log_prob=logsumexp(log_probs, axis=1, b=weights),
        weights=weights,
        member_log_prob=log_probs,
    )


def _orders(model: object, boundary: int, X: Ids, y: Ids) -> Ids | None:
    """Return the length of the longest n-gram found; None if none is looked up."""
    make = getattr(model, "word_scorer", None)
    scorer = None if make is None else make(boundary, None, -1)
    if scorer is None:
        return None
    # A window is a sentence of its own, without the boundaries that pad it: the scorer
    # begins after one, and forgets it where the window has none.
    sentences = np.column_stack([X, y])
    kept = np.column_stack([boundary != X, np.ones(len(y), dtype=bool)])
    lengths = kept.sum(axis=1)
    _, details = scorer.tokens(sentences[kept], lengths, True, False)
    return details["order"][np.cumsum(lengths) - 1]


def _bits(log_prob: Floats) -> Floats:
    """Return surprisals in bits; that of a certain word is 0, not -0."""
    return 0 - log_prob / np.log(2)
