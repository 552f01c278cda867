"""The attributes of a text model: fitted to documents, or those of a fitted model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from nplm.base import checks
from nplm.base.array_types import Floats
from nplm.base.atomic import fitted_or_interrupted
from nplm.base.blocks import Texts
from nplm.base.encoded_words import EncodedWords
from nplm.base.estimators.checked_inputs import columns_needed
from nplm.base.estimators.scored_texts import reads_texts
from nplm.text.codec_fitting import fit_codec, refuse_weights, unset_params
from nplm.text.codecs import codec_of, encoded
from nplm.text.documents import Documents
from nplm.text.lm.fitted_text import FittedText, fitted_text, no_token
from nplm.text.subwords.subwords import with_methods
from nplm.text.tokenizer import Tokenizer
from nplm.text.vocabulary import Vocabulary
from nplm.text.word_rows import matched_rows
from nplm.text.words.known_words import KnownWords, unknown_among
from nplm.text.words.splitting import BETWEEN_BLANKS


def fit_documents(
    lm: Any,
    X: Iterable[object],
    X_val: object,
    fit_params: dict[str, Any],
    method: str,
) -> tuple[FittedText, KeyboardInterrupt | None]:
    """Fit the words of a text model, and a clone of its estimator by `method`.

    Also returns the interrupt if one came and left the estimator fitted.
    """
    check_model(lm.estimator)
    _check_vocabulary(lm.vocabulary)
    if method == "partial_fit":
        refuse_weights(method, fit_params)
    fit_params = dict(fit_params)
    weights = fit_params.pop("sample_weight", None)
    codec, documents = fit_codec(
        X, with_methods(lm.tokenizer), lm.vocabulary, lm.estimator,
        refuse_zero=isinstance(lm.boundary, str),
    )  # fmt: skip
    vocabulary = codec.vocabulary
    boundary = boundary_of(lm.boundary, vocabulary)
    n_context = lm.n_context
    if isinstance(n_context, str):
        n_context = columns_needed(lm.estimator)
    options: dict[str, Any] = {
        "n_context": int(n_context), "boundary": boundary, "ends": lm.predict_boundary,
    }  # fmt: skip
    estimator = clone(lm.estimator)
    texts = _training_texts(documents, "X", estimator, **options, weights=weights)
    del documents  # frees memory
    n_words = int(texts.ids.max()) + 1 if vocabulary is None else vocabulary.n_words_
    unset = unset_params(estimator, n_words=n_words, boundary=boundary)
    if vocabulary is None and n_words in unset.values():
        checks.inferred_n_words(texts.ids, texts.ids, "X and boundary")
    params = unset | matched_rows(estimator, vocabulary)
    if params:  # a FrozenEstimator refuses set_params
        estimator.set_params(**params)
    held_out = None
    if X_val is not None:
        documents = encoded(codec, X_val, "X_val")
        held_out = _training_texts(documents, "X_val", estimator, **options)
    data: tuple[Any, Any]
    if reads := reads_texts(estimator) or weights is not None:
        data = texts, held_out
        if method == "partial_fit":
            fit_params = fit_params | {"further": True}
        method = "fit_texts"
    else:
        data = texts.windows()
        if held_out is not None:
            X_val, y_val = held_out.windows()
            fit_params = fit_params | {"X_val": X_val, "y_val": y_val}
    del texts, held_out  # frees memory
    fitted, interrupt = fitted_or_interrupted(
        estimator, *data, fit=method, **fit_params
    )
    if reads:
        options["n_context"] = fitted.n_features_in_
    if isinstance(fitted, FrozenEstimator):
        fitted = fitted.estimator
    checks.check_over_words(fitted, "the estimator")
    if vocabulary is not None and fitted.n_words_ != n_words:
        raise ValueError(
            f"the vocabulary has {n_words} words, but the estimator has "
            f"n_words={fitted.n_words_}: leave n_words=None, or pass the "
            "vocabulary that the fitted estimator was trained with."
        )
    return FittedText(fitted, codec, **options), interrupt


def text_of_model(
    model: Any,
    words: Sequence[object] | Vocabulary | KnownWords | None,
    tokenizer: object,
    boundary: int | None,
    ends: bool,
) -> FittedText:
    """Return what `TextLM.from_model` makes a text model of."""
    check_model(model)
    check_is_fitted(model)
    checks.check_over_words(model, "the model")
    if boundary is None:
        boundary = getattr(model, "boundary", None)
    if boundary is None and isinstance(words, Vocabulary):
        boundary = words.boundary_id_
    if boundary is None:
        raise ValueError(
            f"this {type(model).__name__} has no boundary: pass the id of the symbol "
            "that ends a document, for example boundary=0."
        )
    checks.check_boundary(boundary, model.n_words_)
    vocabulary = None
    if words is not None:
        vocabulary = _vocabulary_of(words, model.n_words_, int(boundary))
    if isinstance(tokenizer, str) and tokenizer == "auto":
        tokenizer = Tokenizer(BETWEEN_BLANKS)
    codec = codec_of(with_methods(tokenizer), vocabulary)
    return FittedText(model, codec, model.n_features_in_, int(boundary), ends)


def _vocabulary_of(
    words: Sequence[object] | Vocabulary | KnownWords, n_words: int, boundary: int
) -> Vocabulary:
    """Make the vocabulary of a model's words, which clones and fits do not change."""
    known = words.known if isinstance(words, (Vocabulary, KnownWords)) else None
    listed: Any = words if known is None else known.words
    if not isinstance(listed, EncodedWords):
        listed = list(listed)
    checks.check_word_of_each(listed, n_words)
    unknown = unknown_among(listed) if known is None else known.unknown
    end = listed[boundary]
    vocabulary = Vocabulary.from_words(listed, unknown=unknown, boundary=end)
    if known is not None:
        vocabulary.known.spelling = known.spelling
    return vocabulary


def fit_further(lm: Any, X: Iterable[object], fit_params: dict[str, Any]) -> None:
    """Train the fitted estimator of a text model further."""
    refuse_weights("partial_fit", fit_params)
    text = fitted_text(lm)
    documents = encoded(text.codec, X, "X")
    options = text.n_context, text.boundary, text.ends
    texts = _training_texts(documents, "X", text.model, *options)
    if reads_texts(text.model):
        text.model.fit_texts(texts, None, further=True, **fit_params)
    else:
        text.model.partial_fit(*texts.windows(), **fit_params)


def add_words(lm: Any, X: object) -> None:
    """Add the new words of documents to the vocabulary and to the fitted estimator."""
    model, n_words = lm.estimator_, lm.n_words_
    codec = codec_of(
        lm.tokenizer_, lm.vocabulary_, n_known=n_words,
        refuse_zero=isinstance(lm.boundary, str),
    )  # fmt: skip
    codec.add_unknown(X)
    contexts, targets = _training_texts(
        codec.encode(X), "X", model, lm.n_context_, lm.boundary_, lm.predict_boundary
    ).windows()
    known = contexts.max(axis=1, initial=-1) < targets
    new = np.flatnonzero(known & (targets >= n_words))
    new = new[np.argsort(targets[new], kind="stable")]
    # An array of all ids up to the largest could be of any size.
    last, ids = targets.max(), np.unique(targets[new])
    n_consecutive = int((ids == n_words + np.arange(len(ids))).sum())
    missing = n_words + n_consecutive
    if missing <= last:
        raise ValueError(
            f"X has the id {last}, but {missing} has no context of smaller ids: number "
            f"new words in order of first occurrence, starting at n_words_={n_words}."
        )
    # Words without other new words in their contexts are added in one call.
    while len(new):
        together = contexts[new].max(axis=1, initial=-1) < model.n_words_
        whole = targets[new] < targets[new][~together].min(initial=missing)
        model.add_words(contexts[new[whole]], targets[new[whole]])
        new = new[~whole]


def boundary_of(boundary: Any, vocabulary: Vocabulary | None) -> int:
    """Return the boundary that a parameter tells, "auto" by a fitted vocabulary."""
    if isinstance(boundary, str):
        boundary = 0 if vocabulary is None else vocabulary.boundary_id_
    if boundary is None:
        raise ValueError(
            "boundary=None: documents need the id of a symbol that ends them; give "
            "the Vocabulary a boundary, or set boundary to an unused id."
        )
    return int(boundary)


def _training_texts(
    documents: Documents,
    name: str,
    estimator: Any,
    n_context: int,
    boundary: int,
    ends: bool,
    weights: Floats | None = None,
) -> Texts:
    """Return documents as texts for a fit, or raise an error without a token."""
    n_documents = len(documents.lengths)
    if len(documents.ids) + n_documents * ends == 0:
        raise no_token(n_documents, name)
    if reads_texts(estimator):
        n_context = estimator.columns_of_texts()
    return documents.texts(n_context, boundary, ends=bool(ends), weights=weights)


def check_model(estimator: object) -> None:
    """Raise an error unless an estimator is a language model."""
    if not hasattr(estimator, "log_prob"):
        raise TypeError(
            "estimator must be a language model with log_prob, such as KneserNeyLM, "
            f"got {estimator!r}."
        )


def _check_vocabulary(vocabulary: object) -> None:
    """Raise an error if a list of words is given in place of a vocabulary."""
    if not (vocabulary is None or isinstance(vocabulary, (str, Vocabulary))):
        raise TypeError(
            f"vocabulary must be a Vocabulary, 'auto' or None, got "
            f"{type(vocabulary).__name__}: set "
            "vocabulary=Vocabulary.from_words(words)."
        )


def refuse_windows(X: object, y: Any) -> None:
    """Raise an error if windows and next words are given instead of documents."""
    if y is not None and isinstance(X, np.ndarray) and X.ndim == 2:
        raise ValueError(
            f"X and y, of shapes {X.shape} and {np.shape(y)}, look like windows and "
            "next words: fit the estimator itself to them. A TextLM makes windows from "
            "documents."
        )
