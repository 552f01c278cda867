"""KnownWords: the words of a vocabulary, and their ids."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm.base.encoded_words import EncodedWords
from nplm.text.documents import Documents
from nplm.text.samples import ADVICE, TOKENS, check_documents, check_tokens, tokens_of
from nplm.text.words.unknown_spelling import UnknownSpelling

__all__ = [
    "UNKNOWN", "KnownWords", "all_words_of", "check_one_document", "documents_of",
    "ids_and_unknown", "ids_of_document", "known_words_of", "lookup_of", "objects",
    "refuse_unknown", "unknown_among", "words_of_ids",
]  # fmt: skip

# Symbols for unknown words in the toolkits' files; the first is more common.
UNKNOWN = ("<unk>", "<UNK>")


def unknown_among(words: Any) -> str | None:
    """Return the symbol for unknown words that is among the words, if any."""
    return next((symbol for symbol in UNKNOWN if symbol in words), None)


class KnownWords:
    """Words and their ids: a fitted `Vocabulary` without scikit-learn.

    Scorers of files of n-grams look words up in it.

    Attributes
    ----------
    unknown, boundary : str or None
        The symbols for unknown words, and for the end of a document.
    words_, ids_, n_words_, unknown_id_, boundary_id_
        As of `Vocabulary`.
    """

    unknown: str | None
    boundary: str | None
    # The words of a mapped file, instead of `words_` and `ids_`.
    _encoded_words: EncodedWords | None = None
    # Fitted with the words; None if only these are known.
    _spelling: UnknownSpelling | None = None
    n_words_: int
    unknown_id_: int | None
    boundary_id_: int | None

    def _set_words(self, words: list[Hashable]) -> None:
        self.__dict__.pop("_encoded_words", None)
        self.words_ = objects(words)
        self.ids_ = dict(zip(words, range(len(words))))
        self.n_words_ = len(self.ids_)
        self._set_symbols()

    def _set_encoded(self, words: EncodedWords) -> None:
        """Set words of a file, which become strings when they are asked for."""
        for name in ("words_", "ids_"):
            self.__dict__.pop(name, None)
        self._encoded_words = words
        self.n_words_ = len(words)
        self._set_symbols()

    def _set_symbols(self) -> None:
        find = lookup_of(self).get
        self.unknown_id_ = None if self.unknown is None else find(self.unknown)
        self.boundary_id_ = None if self.boundary is None else find(self.boundary)

    @cached_property
    def words_(self) -> NDArray[np.object_]:
        """The word of each id."""
        return objects(self._of_file("words_").tolist())

    @cached_property
    def ids_(self) -> dict[Any, int]:
        """The id of each word."""
        words = self._of_file("ids_").tolist()
        return dict(zip(words, range(len(words))))

    def _of_file(self, name: str) -> EncodedWords:
        if self._encoded_words is None:
            raise AttributeError(f"{name!r}: this {type(self).__name__} is not fitted")
        return self._encoded_words


def lookup_of(known: KnownWords) -> Any:
    """Return the ids of words, with ``get`` and ``in``, without a dict of a file's."""
    encoded_words = known._encoded_words
    return known.ids_ if encoded_words is None else encoded_words.ids


def ids_and_unknown(known: KnownWords) -> tuple[Any, int]:
    """Return the ids of words, and the unknown id, -1 without one."""
    return lookup_of(known), -1 if known.unknown_id_ is None else known.unknown_id_


def all_words_of(known: KnownWords) -> Sequence[Any] | NDArray[np.object_]:
    """Return the word of each id, without a list of a file's."""
    return known.words_ if known._encoded_words is None else known._encoded_words


def words_of_ids(known: KnownWords, ids: NDArray[np.int32]) -> list[Any]:
    """Return the words of ids."""
    if known._encoded_words is None:
        words: list[Any] = known.words_[ids].tolist()
        return words
    return [known._encoded_words[i] for i in ids.tolist()]


def documents_of(
    known: KnownWords,
    X: object,
    start: int = 0,
    name: str = "X",
    *,
    refuse: bool = False,
) -> Documents:
    """Return the word ids of all documents; `refuse` unknown words, or have their id.

    Errors call them `name`, and the first of them ``name[start]``.
    """
    flat: list[int] = []
    lengths: list[int] = []
    for i, document in enumerate(check_documents(X, TOKENS, ADVICE, name), start):
        n_before = len(flat)
        flat += ids_of_document(known, document, f"{name}[{i}]", refuse=refuse)
        lengths.append(len(flat) - n_before)
    ids = np.fromiter(flat, np.int32, len(flat))
    return Documents(ids, np.array(lengths, dtype=np.intp))


def ids_of_document(
    known: KnownWords, document: object, name: str, *, refuse: bool = False
) -> list[int]:
    """Return the word ids of one document, which errors call `name`."""
    get, unknown = lookup_of(known).get, None if refuse else known.unknown_id_
    tokens = tokens_of(document, name)
    try:
        ids = [get(token, unknown) for token in tokens]
    except TypeError:  # a token that cannot be looked up
        check_tokens(tokens)
        raise
    if unknown in ids:
        check_one_document(known, document, name)
        refuse_unknown(known, (t for t in tokens if get(t) is None), refuse=refuse)
    return ids


def check_one_document(known: KnownWords, document: object, name: str) -> None:
    """Raise an error if a word or an event stands in place of a document of tokens.

    A tuple is a document or an event. It is taken for an event if it is one of the
    vocabulary, or if events are tuples and none of its items is known.
    """
    if isinstance(document, str):
        raise TypeError(
            f"{name} is a string, {document[:30]!r}, where a list of tokens is needed: "
            "pass a single token in a list."
        )
    if not isinstance(document, tuple) or not document:
        return
    lookup = lookup_of(known)
    try:
        unknown = [item for item in document if item not in lookup]
        is_event = document in lookup
    except TypeError:  # an item that cannot be looked up is refused as a token
        return
    if unknown and len(unknown) == len(document) and not is_event:
        is_event = any(isinstance(word, tuple) for word in all_words_of(known))
    if unknown and is_event:
        raise TypeError(
            f"{name} is {document!r}, a tuple like events of the vocabulary, which has "
            f"no event {unknown[0]!r}: a document is a list of events; pass "
            f"[{document!r}]."
        )


def refuse_unknown(
    known: KnownWords, words: Iterable[Hashable], *, refuse: bool = False
) -> None:
    """Raise an error if a word is missing, or unknown words are refused."""
    words = list(words)
    check_tokens(words)
    if not words or (known.unknown is not None and not refuse):
        return
    remedy = (
        'set handle_unknown="symbol"'
        if known.unknown is not None
        else 'give the vocabulary an unknown symbol (unknown="<unk>") and fit again'
    )
    raise ValueError(
        f"{words[0]!r} is not among the {known.n_words_} words of the vocabulary, and "
        f"unknown words are refused: leave it out, or {remedy}."
    )


def objects(items: Sequence[Any]) -> NDArray[np.object_]:
    """Return a 1-D array of the items, even if some are sequences."""
    return np.fromiter(items, dtype=object, count=len(items))


def known_words_of(words: Sequence[str], boundary: int) -> KnownWords:
    """Make the vocabulary of the words of a file.

    - `words`: the word of each id, all different, or those of a mapped file
    - `boundary`: id of the boundary

    Raises ValueError if the words of a file are damaged.
    """
    known = KnownWords()
    known.unknown, known.boundary = unknown_among(words), words[boundary]
    if isinstance(words, EncodedWords):
        known._set_encoded(words)
    else:
        known._set_words(list(words))
    if known.boundary_id_ is None or known.unknown == known.boundary:
        raise ValueError(f"{known.boundary!r} cannot be the word of the boundary")
    return known
