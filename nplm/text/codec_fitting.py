"""Fit a codec: choose the tokenizer and the vocabulary of training documents."""

from __future__ import annotations

from collections.abc import Hashable
from numbers import Number
from typing import Any

import numpy as np
from sklearn.base import clone

from nplm.base.array_types import Floats
from nplm.base.checks import copies_of
from nplm.base.progress import stages
from nplm.text.codecs import ITEM, Ids, Words, codec_of
from nplm.text.document_streams import DocumentStream, first_of, readable
from nplm.text.documents import Documents
from nplm.text.samples import check_documents, unpacked
from nplm.text.tokenizer import Tokenizer
from nplm.text.vocabulary import Vocabulary


def fit_codec(
    X: object,
    tokenizer: object,
    vocabulary: object,
    estimator: Any,
    *,
    refuse_zero: bool = False,
    max_types: int | None = None,
) -> tuple[Ids | Words, Documents]:
    """Choose the codec of training documents, and fit their vocabulary.

    An estimator that shows its progress shows these stages, too. A vocabulary that is
    chosen for text has `max_types` words at most.
    """
    parameters = estimator.get_params().items()
    verbose = [value for name, value in parameters if name.split("__")[-1] == "verbose"]
    shown = max((int(value) for value in verbose if isinstance(value, int)), default=0)
    most = None
    with stages(shown, "documents") as begin:
        documents = readable(X, ITEM)
        is_stream = isinstance(documents, DocumentStream)
        first = documents.first if is_stream else first_of(documents)
        if isinstance(tokenizer, str):
            tokenizer = Tokenizer() if isinstance(first, (str, bytes)) else None
        if tokenizer is not None:
            if not isinstance(tokenizer, Tokenizer):  # which learns nothing
                begin("fitting the tokenizer")
            tokenizer = clone(tokenizer).fit(documents)
        begin("splitting into tokens")
        if isinstance(vocabulary, str):
            # The first document of a stream decides.
            is_needed = any(map(_has_words, [first] if is_stream else documents))
            vocabulary = None
            if tokenizer is not None or is_needed:
                vocabulary = _vocabulary_of(tokenizer)
                most = max_types if isinstance(tokenizer, Tokenizer) else None
        vocabulary = None if vocabulary is None else clone(vocabulary)
        codec = codec_of(tokenizer, vocabulary, refuse_zero=refuse_zero)
        return codec, codec.learn(documents, most)


def _vocabulary_of(tokenizer: Any) -> Vocabulary:
    """Return a vocabulary of all words, or of those that a tokenizer says it has."""
    words = getattr(tokenizer, "words_", None)
    if words is None:
        return Vocabulary()
    return Vocabulary(words=words, unknown=tokenizer.unknown_)


def _has_words(document: object) -> bool:
    """Return whether a document has a token that is not a number.

    Documents of ids have numbers only. A token without a hash is refused later, as an
    invalid id.
    """
    tokens = unpacked(document)
    if not hasattr(tokens, "__len__") or isinstance(tokens, (str, bytes)):
        return False
    dtype = getattr(tokens, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind != "O":
        return dtype.kind not in "biufc" and np.ndim(tokens) == 1
    kinds = set(map(type, tokens)) - {int, type(None)}
    return any(issubclass(k, Hashable) and not issubclass(k, Number) for k in kinds)


def unset_params(estimator: Any, **inferred: int) -> dict[str, int]:
    """Return the inferred value of each parameter that is None, also of inner parts."""
    return {
        name: inferred[name.split("__")[-1]]
        for name, value in estimator.get_params().items()
        if name.split("__")[-1] in inferred and value is None
    }


def repeated(
    X: object, sample_weight: object, whole_of: str
) -> tuple[list[Any], Floats | None]:
    """Return documents as often as they count, and weights, as of `copies_of`."""
    documents = list(check_documents(X, ITEM))
    copies, weights = copies_of(sample_weight, len(documents), whole_of)
    return [documents[i] for i in copies], weights


def refuse_weights(method: str, fit_params: dict[str, object]) -> None:
    """Raise an error if a method that takes no weights of documents is given some."""
    if fit_params.get("sample_weight") is not None:
        raise TypeError(
            f"sample_weight: {method} has no weights of documents. To count a document "
            "more often, repeat it in X."
        )
