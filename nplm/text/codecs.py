"""Codecs: encode documents as word ids, and decode ids.

A document is text, tokens or ids. A model returns the kind that it was fitted on.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from nplm.base.checks import check_ids
from nplm.text.documents import Documents, checked_document
from nplm.text.samples import check_documents, is_missing, lists_of_tokens
from nplm.text.tokenizer import Tokenizer
from nplm.text.vocabulary import Vocabulary

__all__ = ["Codec", "Ids", "Text", "Words", "codec_of", "fit_codec"]

ITEM = "a string, a list of tokens or an array of word ids"


class Ids:
    """Documents of word ids, with no tokenizer and no vocabulary."""

    tokenizer = None
    vocabulary = None

    def encode(self, X: Any, name: str, n_words: int | None) -> Documents:
        """Return word ids, which must be below `n_words`; errors call them `name`."""
        return Documents.of_ids(X, name, n_words)

    def learn(self, X: Any) -> Documents:
        """Return the ids of training documents."""
        return self.encode(X, "X", None)

    def encode_one(self, document: Any, name: str, n_words: int) -> NDArray[np.int32]:
        """Return the word ids of one document."""
        return checked_document(document, name, n_words)

    def sentences(self, X: Any) -> None:
        """Return None: there are no words to look up."""

    def add_unknown(self, X: Any) -> None:
        """Do nothing: without a vocabulary no word is unknown."""

    def encode_words(self, words: Iterable[Any], n_words: int) -> NDArray[np.int32]:
        """Return the ids of words."""
        return check_ids(list(words), "words", ndim=1, n_words=n_words)

    def words(self, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the ids themselves."""
        return ids

    decode = words


class Words:
    """Documents of tokens or other events, and their vocabulary."""

    tokenizer: Any = None

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    def learn(self, X: Any) -> Documents:
        """Fit the vocabulary to documents, and return their ids."""
        return self.vocabulary.fit(X)._encoded(X)

    def encode(self, X: Any, name: str, n_words: int | None) -> Documents:
        """Return the word ids of documents."""
        return self.vocabulary._encoded(X)

    def encode_one(self, document: Any, name: str, n_words: int) -> NDArray[np.int32]:
        """Return the word ids of one document."""
        if isinstance(document, str):
            raise TypeError(
                f"{name} is a string, {document!r}: this model was fitted on lists of "
                "tokens; pass a list of tokens."
            )
        return self.vocabulary._encoded([document]).ids

    def sentences(self, X: Any) -> Any:
        """Return the words of each document."""
        return list(lists_of_tokens(X))

    def add_unknown(self, X: Any) -> None:
        """Add the words of documents that are not in the vocabulary."""
        known = self.vocabulary.ids_
        documents = lists_of_tokens(X)
        tokens = (token for document in documents for token in document)
        new = dict.fromkeys(token for token in tokens if token not in known)
        self.vocabulary.add_words(list(new))

    def encode_words(self, words: Iterable[Any], n_words: int) -> NDArray[np.int32]:
        """Return the ids of words, which must be in the vocabulary."""
        words = [words] if isinstance(words, str) else list(words)
        ids = [self.vocabulary.ids_.get(word) for word in words]
        if None in ids:
            raise ValueError(
                f"{words[ids.index(None)]!r} is not in the vocabulary of "
                f"{self.vocabulary.n_words_} words."
            )
        return np.array(ids, dtype=np.int32)

    def words(self, ids: NDArray[np.int32]) -> list[Any]:
        """Return the words of ids."""
        return self.vocabulary.words_[ids].tolist()

    def decode(self, ids: NDArray[np.int32]) -> Any:
        """Return the tokens of a document."""
        return self.words(ids)


class Text(Words):
    """Documents that are strings, with a tokenizer and a vocabulary."""

    def __init__(self, tokenizer: Any, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self.tokenizer = tokenizer

    def learn(self, X: Any) -> Documents:
        """Fit the vocabulary to documents, and return their ids."""
        return super().learn(self.tokenizer.fit(X).transform(X))

    def encode(self, X: Any, name: str, n_words: int | None) -> Documents:
        """Return the word ids of documents."""
        return super().encode(self.tokenizer.transform(X), name, n_words)

    def encode_one(self, document: Any, name: str, n_words: int) -> NDArray[np.int32]:
        """Return the word ids of one document."""
        if not isinstance(document, str):
            raise TypeError(
                f"{name} is of type {type(document).__name__}: this model was fitted "
                "on strings; pass a string."
            )
        [tokens] = self.tokenizer.transform([document])
        return super().encode_one(tokens, name, n_words)

    def sentences(self, X: Any) -> Any:
        """Return the words of each document, split when they are needed if possible.

        Words that were just made are in the processor's caches.
        """
        split = getattr(self.tokenizer, "_split", self.tokenizer.transform)
        return split(X)

    def add_unknown(self, X: Any) -> None:
        """Add the words of documents that are not in the vocabulary."""
        super().add_unknown(self.tokenizer.transform(X))

    def decode(self, ids: NDArray[np.int32]) -> str:
        """Return the words of a document, joined by spaces."""
        return " ".join(map(str, self.words(ids)))


Codec = Ids | Words


def codec_of(tokenizer: Any, vocabulary: Vocabulary | None) -> Codec:
    """Return the codec of a tokenizer (or None) and a vocabulary (or None)."""
    if vocabulary is None:
        return Ids()
    return Words(vocabulary) if tokenizer is None else Text(tokenizer, vocabulary)


def fit_codec(X: Any, tokenizer: Any, vocabulary: Any) -> tuple[Codec, Documents]:
    """Choose the codec of training documents, and fit their vocabulary.

    Parameters
    ----------
    X : sequence of str, of sequence of hashable, or of array-like of int
        Training documents.
    tokenizer, vocabulary : as of `TextLM`
        "auto" chooses by the kind of documents.

    Returns
    -------
    codec : Codec
    documents : Documents
        Their ids.
    """
    X = check_documents(X, ITEM)
    first = _first(X)
    if isinstance(tokenizer, str):
        tokenizer = Tokenizer() if isinstance(first, (str, bytes)) else None
    if isinstance(vocabulary, str):
        needed = tokenizer is not None or any(map(_has_words, X))
        vocabulary = Vocabulary() if needed else None
    codec = codec_of(
        None if tokenizer is None else clone(tokenizer),
        None if vocabulary is None else clone(vocabulary),
    )
    return codec, codec.learn(X)


def _first(X: Any) -> Any:
    """Return the first document that is not empty, else an empty string, else None."""
    empty = None
    for document in X:
        is_empty = hasattr(document, "__len__") and len(document) == 0
        if not is_empty and not is_missing(document):
            return document
        if is_empty and isinstance(document, str):
            empty = document
    return empty


def _has_words(document: Any) -> bool:
    """Return whether a document has a token that is not a number.

    Documents of ids have numbers only. A token without a hash is refused later, as an
    invalid id.
    """
    if not hasattr(document, "__len__") or isinstance(document, (str, bytes)):
        return False
    dtype = getattr(document, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind != "O":
        return dtype.kind not in "biufc" and np.ndim(document) == 1
    kinds = set(map(type, document)) - {int, type(None)}
    return any(issubclass(k, Hashable) and not issubclass(k, Number) for k in kinds)
