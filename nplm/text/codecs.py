"""Codecs: encode documents as word ids, and decode ids.

A document is text, tokens or ids. A model returns the kind that it was fitted on.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams.decoding._word_ids import words_at
from nplm.base.array_types import Index
from nplm.base.blocks import blocks
from nplm.base.checks import check_ids, count_ids
from nplm.text import document_streams
from nplm.text.documents import Documents, checked_document
from nplm.text.samples import check_tokens, lists_of_tokens, texts_of
from nplm.text.words.known_words import KnownWords
from nplm.text.words.splitting import Splitter

# Ids that are renumbered at once.
IDS_A_BLOCK = 1 << 18
ITEM = "a string, a list of tokens or an array of word ids"


class Codec:
    """Documents of one kind, as word ids and back.

    Errors call the documents `name`, and the first of them ``name[start]``.
    """

    tokenizer: Any = None
    vocabulary: Any = None
    # The ids of words by their bytes, a ``WordIds``; None unless documents are words
    # between blanks, and UTF-8 spells all words of the vocabulary.
    word_ids: Any = None

    @property
    def unknown_id(self) -> int:
        """Id of unknown words; -1 if they have none."""
        return -1

    @property
    def lookup(self) -> tuple[Any, int]:
        """The id of each word, None of ids, and that of unknown words, -1 to refuse."""
        return None, -1

    def encode(self, X: object, name: str = "X", start: int = 0) -> Documents:
        """Return the word ids of documents."""
        return self.checked(self.read(X, name, start), name, start)

    def read(self, X: object, name: str, start: int = 0) -> Documents:
        """Return the word ids of a part of the documents, to be `checked` together."""
        raise NotImplementedError

    def checked(self, documents: Documents, name: str, start: int = 0) -> Documents:
        """Return documents, or raise an error that only all of them show."""
        return documents

    def encode_one(self, document: object, name: str) -> Documents:
        """Return the word ids of one document, which may be ``()``."""
        is_empty = isinstance(document, tuple) and not document
        ids = () if is_empty else self._ids_of_one(document, name)
        return Documents(np.array(ids, dtype=np.int32), np.array([len(ids)]))

    def _ids_of_one(self, document: object, name: str) -> Sequence[int] | NDArray[Any]:
        raise NotImplementedError


@dataclass(eq=False)
class Ids(Codec):
    """Documents of word ids, with no tokenizer and no vocabulary.

    Ids must be below `n_words`; those of the model, if any, are below `n_known`. With
    `refuse_zero`, 0 is the boundary because no other is given.
    """

    n_words: int | None = None
    n_known: int = 0
    refuse_zero: bool = False

    def read(self, X: object, name: str, start: int = 0) -> Documents:
        return Documents.of_ids(X, name, self.n_words, start)

    def checked(self, documents: Documents, name: str, start: int = 0) -> Documents:
        """Return documents, or raise an error if 0 is a word or the boundary."""
        i = self._zero_at(documents.ids)
        if i is not None:
            document, position = documents.find(i)
            where = f"{name}[{start + document}]"
            raise self._zero_error(documents.ids, where, position)
        return documents

    def learn(self, X: object, max_types: int | None = None) -> Documents:
        """Return the ids of training documents."""
        documents = encoded(self, X, "X")
        self.n_known = int(documents.ids.max(initial=-1)) + 1
        return documents

    def _ids_of_one(self, document: object, name: str) -> NDArray[np.int32]:
        ids = checked_document(document, name, self.n_words)
        i = self._zero_at(ids)
        if i is not None:
            raise self._zero_error(ids, name, i)
        return ids

    def _zero_at(self, ids: NDArray[np.int32]) -> int | None:
        if not self.refuse_zero or ids.all():
            return None
        return int(np.flatnonzero(ids == 0)[0])

    def _zero_error(
        self, ids: NDArray[np.int32], name: str, position: int
    ) -> ValueError:
        largest = max(int(ids.max()), self.n_known - 1)
        return ValueError(
            f"{name} has the id 0 at position {position}, and 0 is the boundary by "
            "default. If 0 is a word, set boundary to an unused id (the largest id is "
            f"{largest}: boundary={largest + 1}); if 0 ends a sentence inside a "
            "document, set boundary=0; if the numbers are events, not ids, set "
            "vocabulary=Vocabulary(). Then fit."
        )

    def encode_split(self, X: object) -> tuple[list[Any], Documents]:
        """Return the ids of each document, and of all documents."""
        documents = self.encode(X)
        return np.split(documents.ids, np.cumsum(documents.lengths)[:-1]), documents

    def sentences(self, X: object) -> None:
        """Return None: there are no words to look up."""

    def add_unknown(self, X: object) -> None:
        """Do nothing: without a vocabulary no word is unknown."""

    def encode_words(self, words: Iterable[Any]) -> NDArray[np.int32]:
        """Return the ids of words."""
        return check_ids(list(words), "words", ndim=1, n_words=self.n_words)

    def words(self, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the ids themselves."""
        return ids

    decode = words

    def continued(self, context: object, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return a context and the words after it, as one document."""
        return np.concatenate([np.asarray(context, dtype=np.int32), ids])


class Words(Codec):
    """Documents of tokens or other events, and their vocabulary."""

    def __init__(self, vocabulary: KnownWords, *, refuse: bool = False) -> None:
        # Of a fitted model, or of a file; only a `Vocabulary` learns words.
        self.vocabulary: Any = vocabulary
        self.refuse = refuse  # unknown words, once the vocabulary is fitted

    @property
    def known(self) -> KnownWords:
        """The words of the fitted vocabulary."""
        return self.vocabulary.known

    @property
    def unknown_id(self) -> int:
        return self.known.ids_and_unknown[1]

    @property
    def lookup(self) -> tuple[Any, int]:
        return self.known.lookup, -1 if self.refuse else self.unknown_id

    def learn(self, X: Iterable[object], max_types: int | None = None) -> Documents:
        """Fit the vocabulary to documents, to `max_types` words; return their ids.

        The documents are read once: their tokens are numbered in the order of first
        occurrence, and renumbered when the vocabulary is known.
        """
        self.vocabulary._validate_params()
        # In order of first occurrence.
        numbers: defaultdict[Any, int] = defaultdict(count().__next__)
        with document_streams.IdCollector(
            on_disk=isinstance(X, document_streams.DocumentStream)
        ) as collector:
            for start, block in document_streams.blocks_of(X):
                for tokens in self._split(block, "X", start):
                    try:
                        collector.add([numbers[token] for token in tokens])
                    except TypeError:  # a token that cannot be looked up
                        check_tokens(tokens)
                        raise
            check_tokens(numbers)
            documents = collector.documents()
        if max_types is not None and len(numbers) > max_types:
            self.vocabulary.set_params(max_words=max_types)
        counts = count_ids(documents.ids, len(numbers)).tolist()
        ids = self._chosen(dict(zip(numbers, counts)))
        for part in blocks(len(documents.ids), IDS_A_BLOCK):
            documents.ids[part] = ids[documents.ids[part]]
        return documents

    def _chosen(self, counts: dict[Any, int]) -> NDArray[np.int32]:
        """Choose the words by their counts; return the new id of each token."""
        self.vocabulary.choose(counts)
        get, unknown = self.known.lookup.get, self.known.unknown_id
        ids = [get(token, unknown) for token in counts]
        if unknown is None and None in ids:
            self.known.refuse_unknown(t for t in counts if get(t) is None)
        return np.array(ids, dtype=np.int32)

    def _split(self, X: object, name: str = "X", start: int = 0) -> Iterable[Any]:
        """Return the tokens of each document."""
        return lists_of_tokens(X, start, name)

    def encode_split(self, X: object) -> tuple[list[object], Documents]:
        """Return the tokens of each document, and their ids."""
        split = list(self._split(X))
        return split, Words.read(self, split, "X")

    def read(self, X: object, name: str, start: int = 0) -> Documents:
        return self.known.encode(X, name, start, refuse=self.refuse)

    def _ids_of_one(self, document: object, name: str) -> list[int]:
        if isinstance(document, str):
            raise TypeError(
                f"{name} is a string, {document!r}: this model was fitted on lists of "
                "tokens; pass a list of tokens."
            )
        return self.known.encode_one(document, name, refuse=self.refuse)

    def sentences(self, X: object) -> Any:
        """Return the words of each document."""
        documents = list(lists_of_tokens(X))
        for i, document in enumerate(documents):
            self.known.check_one_document(document, f"X[{i}]")
        return documents

    def add_unknown(self, X: object) -> None:
        """Add the words of documents that are not in the vocabulary."""
        new: dict[Any, None] = {}
        for i, document in enumerate(self._split(X)):
            self.known.check_one_document(document, f"X[{i}]")
            check_tokens(document)
            new |= dict.fromkeys(document)
        known = self.known.lookup
        self.vocabulary.add_words([token for token in new if token not in known])

    def encode_words(self, words: Iterable[object]) -> NDArray[np.int32]:
        """Return the ids of words, which must be in the vocabulary."""
        words = [words] if isinstance(words, str) else list(words)
        find = self.known.lookup.get
        try:
            ids = [find(word) for word in words]
        except TypeError:  # a word that cannot be looked up
            check_tokens(words)
            raise
        if None in ids:
            raise ValueError(
                f"{words[ids.index(None)]!r} is not in the vocabulary of "
                f"{len(self.known)} words."
            )
        return np.array(ids, dtype=np.int32)

    def words(self, ids: NDArray[np.int32]) -> list[Any]:
        """Return the words of ids."""
        return self.known.words_of(ids)

    def decode(self, ids: NDArray[np.int32]) -> Any:
        """Return the tokens of a document."""
        return self.words(ids)

    def continued(self, context: Iterable[object], ids: NDArray[np.int32]) -> Any:
        """Return a context and the words after it, as one document."""
        return [*context, *self.words(ids)]


class Text(Words):
    """Documents that are strings, with a tokenizer and a vocabulary."""

    def __init__(
        self, tokenizer: Any, vocabulary: KnownWords, *, refuse: bool = False
    ) -> None:
        super().__init__(vocabulary, refuse=refuse)
        self.tokenizer = tokenizer

    @property
    def word_ids(self) -> Any:
        """The ids of words by their bytes."""
        is_splitter = isinstance(self.tokenizer, Splitter)
        by_blanks = is_splitter and self.tokenizer.splits_at_blanks
        return self.known.word_ids if by_blanks else None

    def _split(self, X: object, name: str = "X", start: int = 0) -> Iterable[Any]:
        if isinstance(self.tokenizer, Splitter):  # one by one: the lists take memory
            return map(self.tokenizer.split_function(), texts_of(X, start, name))
        try:
            return self.tokenizer.transform(X)
        except TypeError:
            for _ in texts_of(X, start, name):  # names the index in all of X
                pass
            raise

    def read(self, X: object, name: str, start: int = 0) -> Documents:
        words = self.word_ids
        if words is None:
            split = self._split(X, name, start)
            return self.known.encode_each(split, name, start, refuse=self.refuse)
        texts = list(texts_of(X, start, name))
        unknown = -1 if self.refuse else self.unknown_id
        # A word has a letter at least, and there is a blank between words.
        ids = np.empty(sum(map(len, texts)) // 2 + len(texts), np.int32)
        lengths = np.empty(len(texts), np.int64)
        n = words.fill_ids(texts, unknown, ids, lengths)
        documents = Documents(ids[:n].copy(), lengths.astype(np.intp, copy=False))
        if unknown < 0 and n and documents.ids.min() < 0:
            document, position = documents.find(int(documents.ids.argmin()))
            [tokens] = self.tokenizer.transform([texts[document]])
            self.known.refuse_unknown([tokens[position]], refuse=self.refuse)
        return documents

    def encode_split(self, X: object) -> tuple[list[object], Documents]:
        if self.word_ids is None:
            return super().encode_split(X)
        texts = list(texts_of(X, 0, "X"))
        return list(self._split(texts)), self.read(texts, "X")

    def _ids_of_one(self, document: object, name: str) -> list[int]:
        if not isinstance(document, str):
            raise TypeError(
                f"{name} is of type {type(document).__name__}: this model was fitted "
                "on strings; pass a string."
            )
        [tokens] = self.tokenizer.transform([document])
        return super()._ids_of_one(tokens, name)

    def spelling_log_prob(
        self,
        texts: Sequence[str],
        document: Index,
        position: Index,
        split: Sequence[list[str]] | None = None,
    ) -> float:
        """Return the log-probability of how the unknown tokens of texts are spelled.

        `document` and `position` (n_unknown,) are their places. NaN if the vocabulary
        has no model of it, or the tokenizer does not tell.
        """
        if len(document) == 0:
            return 0.0
        spelling, symbol = self.known.spelling, self.known.unknown
        if spelling is None:
            return math.nan
        if split is None and self.word_ids is not None:
            words = words_at(list(texts), document, position)
        else:
            if split is None:
                having, document = np.unique(document, return_inverse=True)
                texts = [texts[i] for i in having]
                split = self.tokenizer.transform(texts)
            words = [split[i][j] for i, j in zip(document.tolist(), position.tolist())]
            # Some tokenizers give the symbol in place of the text.
            if any(
                word == symbol and symbol not in texts[i]
                for i, word in zip(document.tolist(), words)
            ):
                return math.nan
        return sum(n * spelling.log_prob(word) for word, n in Counter(words).items())

    def sentences(self, X: object) -> Iterable[Any]:
        """Return documents for a `Scorer`, which splits each when it is needed."""
        is_splitter = isinstance(self.tokenizer, Splitter)
        return texts_of(X) if is_splitter else self.tokenizer.transform(X)

    def decode(self, ids: NDArray[np.int32]) -> str:
        """Return the words of a document as text."""
        return self._joined(self.words(ids))

    def continued(self, context: Any, ids: NDArray[np.int32]) -> str:
        text = context or ""
        [tokens] = self.tokenizer.transform([text])
        alone = self._joined(tokens)
        together = self._joined([*tokens, *self.words(ids)])
        # The context stays as it is, also where its tokens are not joined like that.
        if alone == text or not together.startswith(alone):
            return together
        return text.rstrip() + together[len(alone) :]

    def _joined(self, tokens: list[object]) -> str:
        if not hasattr(self.tokenizer, "inverse_transform"):
            return " ".join(map(str, tokens))
        [text] = self.tokenizer.inverse_transform([tokens])
        return str(text)


def codec_of(
    tokenizer: object,
    vocabulary: Any,
    *,
    refuse: bool = False,
    n_words: int | None = None,
    n_known: int = 0,
    refuse_zero: bool = False,
) -> Ids | Words:
    """Return the codec of a tokenizer (or None) and a vocabulary (or None).

    The vocabulary is a `Vocabulary`, or `KnownWords`.
    With `refuse`, unknown words are refused once the vocabulary is fitted.
    """
    if vocabulary is None:
        return Ids(n_words, n_known, refuse_zero)
    if tokenizer is None:
        return Words(vocabulary, refuse=refuse)
    return Text(tokenizer, vocabulary, refuse=refuse)


def encoded(codec: Codec, X: object, name: str) -> Documents:
    """Return the ids of the documents of any iterable; those of a stream on disk."""
    X = document_streams.readable(X, ITEM, name)
    if not isinstance(X, document_streams.DocumentStream):
        return codec.encode(X, name)
    with document_streams.IdCollector(on_disk=True) as collector:
        for start, block in document_streams.blocks_of(X):
            documents = codec.read(block, name, start)
            ends = np.cumsum(documents.lengths).tolist()
            for i, j in zip([0, *ends], ends):
                collector.add(documents.ids[i:j])
        return codec.checked(collector.documents(), name)
