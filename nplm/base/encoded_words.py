"""EncodedWords: words as bytes in arrays, which a file can hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Self, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nplm._kernels.ngrams.decoding._word_ids import Ids, WordIds, fill_slots
from nplm.base.array_types import AnyArray, Bytes, Counts
from nplm.base.exceptions import damaged_file

# The arrays of words in a file, in its order.
WORD_ARRAYS: dict[str, DTypeLike] = {
    "vocabulary": np.uint8, "word_start": np.int64, "word_slots": np.uint64,
}  # fmt: skip
LINE_FEED = 10


class EncodedWords(Sequence[str]):
    """The words of a vocabulary as arrays of a file, which may be mapped into memory.

    A word becomes a string when it is asked for. The contents of the arrays are
    trusted: those of a damaged file give wrong words, ids below ``n_words``, or a
    ValueError when words are asked for.
    """

    def __init__(
        self,
        vocabulary: Bytes,
        word_start: Counts,
        word_slots: NDArray[np.uint64],
        name: str = "the vocabulary",
    ) -> None:
        # As plain arrays: a map of a file would be pickled as one.
        self._text, self._start, self._slots = map(
            np.asarray, (vocabulary, word_start, word_slots)
        )
        n_words = len(self._start) - 1
        if n_words < 1 or len(self._slots) != _n_slots(n_words):
            raise ValueError("the arrays of its words do not fit together")
        self._name = name
        # The first word that repeats an earlier one, as `of_lines` sees.
        self.repeated: int | None = None
        self.spelled_ids = WordIds(self._text, self._start, self._slots)
        self.ids: Ids = self.spelled_ids

    @classmethod
    def of(cls, words: Sequence[str]) -> Self:
        """Encode words; of those with line feeds only the ids are right."""
        return words if isinstance(words, cls) else cls(*_encoded(words))

    @classmethod
    def of_lines(cls, text: Bytes, name: str) -> Self:
        """Encode the words of a text, one a line; errors call them `name`."""
        n_words = int(np.count_nonzero(text == LINE_FEED)) + 1
        start = np.zeros(n_words + 1, np.int64)
        slots = np.zeros(_n_slots(n_words), np.uint64)
        repeated = _find_words(text, start, slots)
        words = cls(text, start, slots, name)
        words.repeated = None if repeated < 0 else repeated
        return words

    @property
    def arrays(self) -> dict[str, AnyArray]:
        """The arrays by name, in the order of a file."""
        return dict(zip(WORD_ARRAYS, (self._text, self._start, self._slots)))

    @property
    def n_bytes(self) -> int:
        """Size of the arrays."""
        return sum(array.nbytes for array in self.arrays.values())

    @property
    def word_ids(self) -> WordIds | None:
        """The ids by the letters of words; None if these are not known."""
        return self.ids if isinstance(self.ids, WordIds) else None

    def check(self) -> None:
        """Raise ValueError unless the text is UTF-8, and the other arrays are its."""
        self._text.tobytes().decode()
        start, slots = np.zeros_like(self._start), np.zeros_like(self._slots)
        _find_words(self._text, start, slots)
        if not np.array_equal(start, self._start):
            raise ValueError("word_start does not match its vocabulary")
        if not np.array_equal(slots, self._slots):
            raise ValueError("word_slots does not match its vocabulary")

    def tolist(self) -> list[str]:
        """Return all words; raise ValueError if two are equal, or one is not UTF-8."""
        try:
            words = self._text.tobytes().decode().split("\n")
        except ValueError as error:
            raise self._invalid(error) from error
        if len(words) != len(self):
            raise self._invalid(f"it has {len(words)} words, not {len(self)}")
        if len(set(words)) != len(words):
            [(twice, _)] = Counter(words).most_common(1)
            raise self._invalid(f"it has {twice!r} twice")
        return words

    def __len__(self) -> int:
        return len(self._start) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        i = range(len(self))[index]
        first, last = int(self._start[i]), int(self._start[i + 1]) - 1
        if not 0 <= first <= last <= len(self._text):
            raise self._invalid(f"word {i} is from {first} to {last}")
        try:
            return self._text[first:last].tobytes().decode()
        except ValueError as error:
            raise self._invalid(error) from error

    def __iter__(self) -> Iterator[str]:
        return iter(self.tolist())

    def __contains__(self, word: object) -> bool:
        return word in self.ids

    def index(self, word: object, start: int = 0, stop: int | None = None) -> int:
        """Return the id of a word; raise ValueError if it is not there."""
        i = self.ids.get(word)
        if i is None or i not in range(len(self))[start:stop]:
            raise ValueError(f"{word!r} is not among the {len(self)} words")
        return int(i)

    def __repr__(self) -> str:
        return f"<{len(self):,} words>"

    def __deepcopy__(self, memo: object) -> Self:
        return self  # it never changes

    def __reduce__(self) -> Any:
        return type(self), (self._text, self._start, self._slots, self._name)

    def _invalid(self, why: object) -> ValueError:
        return damaged_file(self._name, f"its words are invalid ({why})")


def _encoded(words: Sequence[str]) -> tuple[Bytes, Counts, NDArray[np.uint64]]:
    """Return the text of words, where they begin, and their hash table."""
    data = "\n".join(words).encode()
    text = np.frombuffer(data, np.uint8)
    start = np.zeros(len(words) + 1, np.int64)
    slots = np.zeros(_n_slots(len(words)), np.uint64)
    if data.count(b"\n") == len(words) - 1:
        _find_words(text, start, slots)
    else:  # of words with line feeds
        np.cumsum([len(word.encode()) + 1 for word in words], out=start[1:])
        fill_slots(text, start, slots)
    return text, start, slots


def _find_words(text: Bytes, start: Counts, slots: NDArray[np.uint64]) -> int:
    """Fill in where words begin, and their hash table; see `fill_slots`."""
    ends = np.flatnonzero(text == LINE_FEED)
    if len(ends) != len(start) - 2:
        raise ValueError(f"it has {len(ends) + 1} words, not {len(start) - 1}")
    start[0], start[-1] = 0, len(text) + 1
    start[1:-1] = ends + 1
    return fill_slots(text, start, slots)


def _n_slots(n_words: int) -> int:
    # Two thirds are used: a search reads few of them, and the file stays small.
    return n_words + n_words // 2 + 1
