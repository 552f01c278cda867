"""Text models of the estimators that classifiers and detectors are given."""

from __future__ import annotations

from math import ceil
from typing import Any

from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from nplm.text.codec_fitting import fit_codec, unset_params
from nplm.text.lm.text_lm import TextLM
from nplm.text.subwords.subwords import Subwords
from nplm.text.tokenizer import Tokenizer
from nplm.text.vocabulary import Vocabulary


def as_text_lm(estimator: object) -> Any:
    """Return an unfitted text model: a `TextLM`, or one of a model of windows."""
    if isinstance(unfrozen(estimator), TextLM):
        return clone(estimator)
    if not hasattr(estimator, "log_prob") or isinstance(estimator, type):
        raise TypeError(
            "estimator must be a TextLM, or a language model of windows such as "
            f"KneserNeyLM, of which a TextLM is made; got {estimator!r:.200}."
        )
    return clone(TextLM(estimator))


def with_words_of(lm: TextLM, X: object, *, if_closed: bool = False) -> TextLM:
    """Give an unfitted text model the tokenizer and the words of all documents.

    Probabilities of models with different vocabularies do not compare: the fewer words
    one knows, the more of a document is ``<unk>``, which is easy to predict. With
    `if_closed`, only a model that refuses unseen words is changed.
    """
    default = isinstance(lm.boundary, str)
    codec, documents = fit_codec(
        X, lm.tokenizer, lm.vocabulary, lm.estimator, refuse_zero=default
    )
    known = codec.vocabulary
    if if_closed and known is not None and known.unknown_id_ is not None:
        return lm
    if known is None:
        boundary = 0 if default else int(lm.boundary)
        n_words = max(int(documents.ids.max(initial=0)), boundary) + 1
        lm.estimator.set_params(**unset_params(lm.estimator, n_words=n_words))
        return lm.set_params(tokenizer=None, vocabulary=None)
    words = Vocabulary.from_words(
        known.words_.tolist(), unknown=known.unknown, boundary=known.boundary
    )
    tokenizer = codec.tokenizer
    if isinstance(tokenizer, Subwords):
        if tokenizer.model_ is not None:
            tokenizer = Subwords(tokenizer.model_)  # learned once, for all classes
    elif not isinstance(tokenizer, (Tokenizer, type(None))):
        tokenizer = FrozenEstimator(tokenizer)  # it may have learned its tokens
    return lm.set_params(tokenizer=tokenizer, vocabulary=words)


def unfrozen(estimator: object) -> Any:
    """Return the estimator in a ``FrozenEstimator``, and others as they are."""
    if isinstance(estimator, FrozenEstimator):
        return estimator.estimator
    return estimator


def announce_minutes(task: str, lm: Any, n_fits: int, n_jobs: int | None = 1) -> None:
    """Print the time of several fits of an `AutoLM`, if it prints what it does.

    - `n_jobs`: the number of fits at the same time, as joblib's
    """
    if not hasattr(lm, "minutes"):
        return
    lm._validate_params()
    if not lm.verbose or n_fits == 1:
        return
    n_at_once = min(effective_n_jobs(n_jobs), n_fits)
    each = f"{lm.minutes:g} minutes each"
    if n_at_once > 1:
        each += f", {n_at_once} at the same time"
    total = ceil(n_fits / n_at_once) * lm.minutes
    print(f"{task}: {n_fits} fits of {each}, {total:g} in all")
