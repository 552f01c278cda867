"""The words of a model as files hold them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.files import _ngram_parse
from nplm._kernels.files._words import Words
from nplm.text.vocabulary import UNKNOWN

__all__ = ["BEGIN", "END", "WordText", "check_marks", "check_words"]

# The marks of the toolkits: <s> is only ever a context, </s> only ever predicted.
BEGIN, END = "<s>", "</s>"
# What divides words in the toolkits: ASCII's blanks only.
BLANKS = frozenset(" \t\n\r\v\f\0")


def check_words(
    words: Sequence[str], n_words: int, of: str = "the model has n_words_"
) -> list[str]:
    """Return the words as a list, or raise: one an id, distinct, no blanks."""
    found = [str(word) for word in words]
    if len(found) != n_words:
        raise ValueError(
            f"words has {len(found)} entries, but {of}={n_words}; give the word of "
            "each id, in order."
        )
    seen: dict[str, int] = {}
    for i, word in enumerate(found):
        if not word or BLANKS.intersection(word):
            raise ValueError(
                f"words has {word!r} at {i}: a word of a text format is not empty and "
                "has no blank or NUL in it; replace these, by '_' for example."
            )
        if word in seen:
            raise ValueError(
                f"words has {word!r} twice, at {seen[word]} and {i}: ids would be "
                "confused; make the words distinct."
            )
        seen[word] = i
    return found


def check_marks(words: Sequence[str], boundary: int | None) -> None:
    """Raise if the marks of the toolkits would be taken for other words."""
    if all(mark in words for mark in UNKNOWN):
        raise ValueError(
            "words has both '<unk>' and '<UNK>', which KenLM takes for one word; "
            "rename one of them."
        )
    for mark in (BEGIN, END):
        if boundary is not None and mark in words and words[boundary] != mark:
            raise ValueError(
                f"words has {mark!r} at {words.index(mark)}, but the model's boundary "
                f"is {boundary}, which is written as <s> and </s>; rename the word."
            )


class WordText:
    """All words in one run of bytes, for the kernels.

    Parameters
    ----------
    words : sequence of str
        The word of each id.
    """

    def __init__(self, words: Sequence[str]) -> None:
        encoded = [word.encode() for word in words]
        text = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        self.start = np.zeros(len(encoded) + 1, dtype=np.int64)
        np.cumsum([len(word) for word in encoded], out=self.start[1:])
        self.words = Words(text, self.start)
        self._known = frozenset(words)

    @cached_property
    def slots(self) -> NDArray[np.int32]:
        """Ids by the hash of the words."""
        slots = np.full(2 << len(self._known).bit_length(), -1, dtype=np.int32)
        _ngram_parse.hash_words(self.words, slots)
        return slots

    def __contains__(self, word: str) -> bool:
        return word in self._known
