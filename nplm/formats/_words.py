"""The words of a model as text and bytes for files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nplm._kernels.files import _ngram_parse
from nplm._kernels.files._words import Words
from nplm.base.encoded_words import fill_words, sizes_of_words
from nplm.text.words.known_words import UNKNOWN
from nplm.text.words.marks import BEGIN, END
from nplm.text.words.splitting import BLANKS, Splitter
from nplm.text.words.unknown_spelling import UnknownSpelling

if TYPE_CHECKING:
    from nplm.models.ngrams.text_ngrams import TextNgrams
    from nplm.models.ngrams.trie.work import Work

__all__ = [
    "BEGIN", "END", "StoredWords", "WordText", "check_marks", "check_words",
    "reserve_for_words",
]  # fmt: skip

NOT_IN_WORDS = frozenset(BLANKS + "\0")
# Memory of Python, the libraries and a chunk of text.
INTERPRETER_BYTES = 230 << 20
# Bytes of a word of the vocabulary: Python's strings and numbers, and arrays.
WORD_BYTES = 400


def reserve_for_words(work: Work, n_words: int) -> None:
    """Give buffers the memory that the interpreter and the words leave."""
    work.reserve(INTERPRETER_BYTES + WORD_BYTES * n_words)


def check_words(
    words: Sequence[str], n_words: int, of: str = "the model has n_words_"
) -> list[str]:
    """Return the words as a list; raise unless one per id, distinct, without blanks."""
    texts = [str(word) for word in words]
    if len(texts) != n_words:
        raise ValueError(
            f"words has {len(texts)} entries, but {of}={n_words}; pass the word of "
            "each id, in order."
        )
    seen: dict[str, int] = {}
    for i, word in enumerate(texts):
        if not word or NOT_IN_WORDS.intersection(word):
            raise ValueError(
                f"words has {word!r} at {i}: a word in a text format must not be "
                "empty, nor contain a blank or NUL; replace these, by '_' for example."
            )
        if word in seen:
            raise ValueError(
                f"words has {word!r} twice, at {seen[word]} and {i}: ids would be "
                "confused; make the words distinct."
            )
        seen[word] = i
    return texts


def check_marks(words: Sequence[str], boundary: int | None) -> None:
    """Raise if the toolkits would confuse a word with one of their marks."""
    if all(mark in words for mark in UNKNOWN):
        raise ValueError(
            "words has both '<unk>' and '<UNK>', which KenLM reads as one word; "
            "rename one of them."
        )
    for mark in (BEGIN, END):
        if boundary is not None and mark in words and words[boundary] != mark:
            raise ValueError(
                f"words has {mark!r} at {words.index(mark)}, but the model's boundary "
                f"is {boundary}, which is written as <s> and </s>; rename the word."
            )


class WordText:
    """All words in one array of bytes, for the kernels.

    - `words`: the word of each id
    """

    def __init__(self, words: Sequence[str]) -> None:
        encoded = [word.encode() for word in words]
        self._text = b"".join(encoded)
        text = np.frombuffer(self._text, dtype=np.uint8)
        self.start = np.zeros(len(encoded) + 1, dtype=np.int64)
        np.cumsum([len(word) for word in encoded], out=self.start[1:])
        self.words = Words(text, self.start)
        self._known = frozenset(words)

    @cached_property
    def slots(self) -> NDArray[np.int32]:
        """Hash table of the words: ids by hash."""
        slots = np.full(2 << len(self._known).bit_length(), -1, dtype=np.int32)
        _ngram_parse.hash_words(self.words, slots)
        return slots

    def spelled(self, word: int) -> str:
        """Return a word."""
        first, last = self.start[word : word + 2]
        return self._text[first:last].decode()

    def __contains__(self, word: str) -> bool:
        return word in self._known


class StoredWords:
    """A vocabulary as bytes for a file, instead of Python strings.

    - `text`: the words, one per line
    - `n_words`: number of words
    - `boundary`: id of the word that ends a line
    - `unknown`: id of the unknown word, -1 if there is none
    - `tokenizer`: splits text into these words; None splits at blanks
    - `spelling`: how unknown words are spelled
    """

    def __init__(
        self,
        words: Sequence[str],
        boundary: int | None,
        unknown: int = -1,
        tokenizer: Splitter | None = None,
        spelling: UnknownSpelling | None = None,
    ) -> None:
        self.text = np.frombuffer("\n".join(words).encode(), dtype=np.uint8)
        self.n_words, self.boundary, self.unknown = len(words), boundary, unknown
        self.tokenizer, self.spelling = tokenizer, spelling

    @classmethod
    def of(cls, ngrams: TextNgrams) -> StoredWords:
        """Return the words of n-grams of text."""
        known, splitter = ngrams.words, ngrams.tokenizer
        words = check_words(known.words, len(known))
        return cls(
            words,
            ngrams.boundary,
            tokenizer=splitter if isinstance(splitter, Splitter) else None,
            spelling=known.spelling,
        )

    @property
    def sizes(self) -> dict[str, tuple[DTypeLike, int]]:
        """Type and length of each array of the words, in the order of the file."""
        return sizes_of_words(len(self.text), self.n_words)

    def fill(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Fill the arrays of the words, which are zeros."""
        fill_words(arrays, self.text)

    def spelled(self) -> list[str]:
        """Return the words as Python strings."""
        return self.text.tobytes().decode().split("\n")
