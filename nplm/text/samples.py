"""Validation of documents and tokens."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Set
from itertools import islice
from typing import Any

import numpy as np

from nplm.base.checks import is_bytes

TOKENS = "a list of tokens"
ADVICE = "Split strings first, for example by a Tokenizer."
# Columns of a table that an error names, and their rows that show what they hold.
MAX_NAMED, MAX_ROWS_TRIED = 10, 100


def check_documents(X: object, item: str, advice: str = "", name: str = "X") -> Any:
    """Return the documents of `X`, or raise an error that says what `X` must be.

    Documents are the items of a sequence, or the single column of a table or of an
    array of strings. A mapping or a set is not a sequence.
    """
    kind = type(X).__name__
    for method in ("compute", "collect"):  # of Dask, and of Polars and Spark
        if hasattr(X, method):
            raise TypeError(
                f"{name} is a {kind} of {type(X).__module__.partition('.')[0]}, whose "
                f"values are not computed yet: pass {name}.{method}(), or, if they do "
                "not fit in memory, a function that yields the documents part by part."
            )
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
        return check_documents(_only_column(X, name), item, advice, name)
    X = unpacked(X)
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] == 1 and len(X):
        return X[:, 0] if isinstance(X[0, 0], str) else X
    if (
        isinstance(X, (str, Set))
        or is_bytes(X)
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


def _only_column(X: Any, name: str) -> object:
    """Return the column of a table, or raise an error that names those of text."""
    # A table of Arrow has its columns themselves in `columns`.
    columns = list(getattr(X, "column_names", X.columns))
    if len(columns) == 1:
        return X[columns[0]]
    lengths = {column: _mean_length(X[column]) for column in columns}
    of_text = [c for c in columns if lengths[c]]
    ranked = sorted(of_text, key=lengths.__getitem__, reverse=True) or columns
    names = ", ".join(map(repr, ranked[:MAX_NAMED]))
    more = f" and {len(ranked) - MAX_NAMED} more" if len(ranked) > MAX_NAMED else ""
    kind = "those of text are" if of_text else "they are"
    raise TypeError(
        f"{name} has {len(columns)} columns: pass the column that holds the documents, "
        f"for example {name}[{ranked[0]!r}]; {kind} {names}{more}."
    )


def _mean_length(column: Any) -> float:
    """Return the mean length of the first texts of a column, 0 without text."""
    values = islice(unpacked(column[:MAX_ROWS_TRIED]), MAX_ROWS_TRIED)
    lengths = [len(value) for value in values if isinstance(value, str)]
    return sum(lengths) / max(len(lengths), 1)


def unpacked(values: object) -> Any:
    """Return the values of an array of Arrow as a list, and other values as they are.

    Its items are objects of Arrow, which equal no string and no number.
    """
    return values.to_pylist() if hasattr(values, "to_pylist") else values


def check_document(document: object, name: str, item: str, advice: str) -> None:
    """Raise an error if a document is missing, or bytes, or has no order."""
    if type(document) in (list, tuple, str):
        return
    if hasattr(document, "as_py"):
        raise TypeError(
            f"{name} is {document!r}, of Arrow: a document must be {item}; convert it "
            "first, by to_pylist() of the array or as_py() of the value."
        )
    if is_bytes(document):
        raise TypeError(
            f"{name} is of type {type(document).__name__}: a document must be {item}; "
            "decode it first, for example by bytes(x).decode()."
        )
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


def check_text(document: object, name: str) -> None:
    """Raise an error unless a document is a string."""
    if isinstance(document, str):
        return
    check_document(document, name, "a string", "")
    raise TypeError(
        f"{name} is of type {type(document).__name__}: a document must be a string."
    )


def texts_of(X: object, start: int = 0, name: str = "X") -> Iterator[str]:
    """Yield the documents of `X`, each checked to be a string."""
    for i, text in enumerate(check_documents(X, "a string", name=name), start):
        if type(text) is not str:
            check_text(text, f"{name}[{i}]")
        yield text


def lists_of_tokens(X: object, start: int = 0, name: str = "X") -> Iterator[Any]:
    """Yield the documents of `X`, each checked to be a list of tokens."""
    for i, document in enumerate(check_documents(X, TOKENS, ADVICE, name), start):
        yield tokens_of(document, f"{name}[{i}]")


def tokens_of(document: object, name: str) -> Any:
    """Return the tokens of one document, or raise an error that calls it `name`."""
    if type(document) is list:
        return document
    document = unpacked(document)
    if isinstance(document, str):
        raise TypeError(
            f"{name} is a string, {document[:30]!r}: a document must be {TOKENS}. "
            f"{ADVICE}"
        )
    check_document(document, name, TOKENS, ADVICE)
    if not hasattr(document, "__iter__"):
        raise TypeError(
            f"{name} is {document!r}: a document must be {TOKENS}; pass a single "
            "document in a list."
        )
    return document


def check_tokens(tokens: Collection[object]) -> None:
    """Raise an error that names an invalid token: missing or not hashable."""
    if set(map(type, tokens)) == {str}:  # a vocabulary of many words
        return
    for token in tokens:
        if is_missing(token):
            raise TypeError(
                f"a token is missing ({token!r}): leave it out, or put a word in its "
                "place."
            )
        if hasattr(token, "as_py"):
            raise TypeError(
                f"the token {token!r} is of Arrow: convert it first, by to_pylist() of "
                "the array or as_py() of the value."
            )
        try:
            hash(token)
        except TypeError:
            raise TypeError(
                f"tokens must be strings or hashable events, got {token!r} "
                f"of type {type(token).__name__}."
            ) from None


def unknown_word(word: object, n_words: int, remedy: str) -> ValueError:
    """Return the error of a word that a vocabulary does not know, if it refuses it."""
    return ValueError(
        f"{word!r} is not among the {n_words} words of the vocabulary, and unknown "
        f"words are refused: leave it out, or {remedy}."
    )


def is_missing(value: object) -> bool:
    """Return whether a value is None, NaN, or a missing value of pandas."""
    if isinstance(value, (float, np.floating)):
        return math.isnan(value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")
