"""Validation of documents and tokens."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Set
from typing import Any

import numpy as np

__all__ = [
    "check_document",
    "check_documents",
    "check_text",
    "check_tokens",
    "is_missing",
    "lists_of_tokens",
    "texts_of",
]


def check_documents(X: Any, item: str, advice: str = "", name: str = "X") -> Any:
    """Return the documents of `X`, or raise an error that says what `X` must be.

    Documents are the items of a sequence, or the single column of a DataFrame or of an
    array of strings. A mapping or a set is not a sequence.
    """
    kind = type(X).__name__
    if hasattr(X, "tocsr"):  # of SciPy, which takes long to import; some are mappings
        raise TypeError(
            f"{name} is a sparse {kind}, which has counts of words, not their order: "
            f"pass a list of documents, each {item}."
        )
    if isinstance(X, Mapping):
        raise TypeError(
            f"{name} is of type {kind} with the keys "
            f"{', '.join(map(repr, list(X)[:5]))}: pass the documents under one of "
            "them, or list(X.values())."
        )
    if hasattr(X, "columns") and hasattr(X, "__getitem__"):
        columns = list(X.columns)
        if len(columns) == 1:
            return X[columns[0]]
        raise TypeError(
            f"{name} has {len(columns)} columns: pass the column that holds the "
            f"documents, {name}[column], one of {', '.join(map(repr, columns[:10]))}."
        )
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] == 1 and len(X):
        return X[:, 0] if isinstance(X[0, 0], str) else X
    if (
        isinstance(X, (str, bytes, bytearray, Set))
        or not hasattr(X, "__len__")
        or not hasattr(X, "__iter__")
    ):
        is_stream = hasattr(X, "__iter__") and not hasattr(X, "__len__")
        remedy = f"list({name})" if is_stream else "a single document in a list"
        raise TypeError(
            f"{name} must be a list of documents, each {item}, got {kind}; "
            f"pass {remedy}. {advice}".rstrip()
        )
    return X


def check_document(document: Any, name: str, item: str, advice: str) -> None:
    """Raise an error if a document is missing or its items have no order."""
    if is_missing(document):
        raise TypeError(
            f"{name} is missing ({document!r}), and a document must be {item}: leave "
            "it out, or put an empty one in its place."
        )
    if isinstance(document, (Mapping, Set)):
        keys = ", ".join(repr(key) for key in list(document)[:5])
        row = f" with the keys {keys}" if isinstance(document, Mapping) else ""
        raise TypeError(
            f"{name} is of type {type(document).__name__}{row}: a document must be "
            f"{item}. {advice}".rstrip()
        )


def check_text(document: Any, name: str) -> None:
    """Raise an error unless a document is a string."""
    if isinstance(document, str):
        return
    check_document(document, name, "a string", "")
    advice = "; decode it first" if isinstance(document, bytes) else ""
    raise TypeError(
        f"{name} is of type {type(document).__name__}: a document must be a "
        f"string{advice}."
    )


def texts_of(X: Any, start: int = 0, name: str = "X") -> Iterator[str]:
    """Yield the documents of `X`, each checked to be a string.

    Errors call them `name`, and the first of them ``name[start]``.
    """
    for i, text in enumerate(check_documents(X, "a string", name=name), start):
        check_text(text, f"{name}[{i}]")
        yield text


def lists_of_tokens(X: Any, start: int = 0, name: str = "X") -> Iterator[Any]:
    """Yield the documents of `X`, each checked to be a list of tokens.

    Errors call them `name`, and the first of them ``name[start]``.
    """
    advice = "Put a Tokenizer before the Vocabulary."
    item = "a list of tokens"
    for i, document in enumerate(check_documents(X, item, advice, name), start):
        if isinstance(document, (str, bytes)):
            raise TypeError(
                f"{name}[{i}] is a string, {document[:30]!r}: a document must be "
                f"{item}. {advice}"
            )
        check_document(document, f"{name}[{i}]", item, advice)
        if not hasattr(document, "__iter__"):
            raise TypeError(
                f"{name}[{i}] is {document!r}: a document must be {item}; pass a "
                "single document in a list."
            )
        yield document


def check_tokens(tokens: Collection[Any]) -> None:
    """Raise an error that names an invalid token: missing or not hashable."""
    if set(map(type, tokens)) == {str}:  # a vocabulary of many words
        return
    for token in tokens:
        if is_missing(token):
            raise TypeError(
                f"a token is missing ({token!r}): leave it out, or put a word in its "
                "place."
            )
        try:
            hash(token)
        except TypeError:
            raise TypeError(
                f"tokens must be strings or hashable events, got {token!r} "
                f"of type {type(token).__name__}."
            ) from None


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or a missing value of pandas."""
    if isinstance(value, (float, np.floating)):
        return math.isnan(value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")
