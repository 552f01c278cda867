"""Texts of any size to word ids: what stands between blanks, line by line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.files import _tokens

__all__ = ["HAS_A_NUL", "WordStream"]

CHUNK_BYTES = 1 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
HAS_A_NUL = (
    "it has a NUL (a byte of 0), as binary files and UTF-16 have: convert UTF-16, for "
    "example with: iconv -f utf-16 -t utf-8. Remove the NULs from other text."
)


class WordStream:
    """Ids of the words of a text, as they come, and how often each did.

    A word is what stands between blanks (those of ``str.split``), a line is a sentence,
    and lines without words are none.

    Parameters
    ----------
    *marks : str
        Words that a text must not have: what stands for the ends of its lines, and what
        may stand for their beginnings. Their ids are the first.

    Attributes
    ----------
    n_words : int
        Words known.
    n_lines : int
        Lines with words.
    n_tokens : int
        Words read.
    """

    def __init__(self, *marks: str) -> None:
        self._slots = np.zeros(1 << 12, dtype=np.uint64)
        self._text = np.empty(1 << 15, dtype=np.uint8)
        self._start = np.zeros((1 << 11) + 1, dtype=np.int64)
        self._counts = np.zeros(1 << 11, dtype=np.int64)
        self._state = np.zeros(3, dtype=np.int64)
        self.n_lines = self.n_tokens = 0
        self._encode(" ".join(marks).encode(), True, "marks")
        self._counts[:] = 0
        self._marks = marks
        self.n_lines = self.n_tokens = 0

    @property
    def n_words(self) -> int:
        """Words known."""
        return int(self._state[0])

    @property
    def counts(self) -> NDArray[np.int64]:
        """How often each word came."""
        return self._counts[: self.n_words]

    def words(self) -> list[str]:
        """Spell the words out, in the order of their ids."""
        text, ends = self._text.tobytes(), self._start[: self.n_words + 1].tolist()
        return [text[i:j].decode() for i, j in pairwise(ends)]

    def read(
        self, file: BinaryIO, name: str | os.PathLike[str]
    ) -> Iterator[NDArray[np.int32]]:
        """Read a file, which ends a line.

        Parameters
        ----------
        file : binary file
            Open for reading, UTF-8.
        name : str or path-like
            What errors call it.

        Yields
        ------
        ids : ndarray of int32
            Ids of the words in the order of their first coming, -1 after each line.

        Raises
        ------
        ValueError
            If it is not UTF-8, has a mark or a NUL in it, or has a word of more than
            1 MB.
        """
        self._state[1] = 0
        name = os.fspath(name)
        rest = b""
        # A pipe may give fewer bytes than it is asked for.
        while len(rest) < len(BYTE_ORDER_MARK) and (read := file.read(1)):
            rest += read
        rest = rest.removeprefix(BYTE_ORDER_MARK)
        more = True
        while more:
            read = file.read(CHUNK_BYTES)
            more, chunk = bool(read), rest + read
            n_before = int(self._state[1])
            if b"\0" in chunk:
                line = n_before + chunk.count(b"\n", 0, chunk.index(b"\0")) + 1
                raise ValueError(f"{name}, line {line}: {HAS_A_NUL}")
            ids, at = self._encode(chunk, not more, name)
            for i, mark in enumerate(self._marks):
                if self._counts[i]:
                    raise self._marked(chunk, n_before, name, mark)
            rest = chunk[at:]
            if len(rest) > CHUNK_BYTES:
                raise ValueError(
                    f"{name}, line {int(self._state[1]) + 1}: a word of more than "
                    f"{CHUNK_BYTES} bytes; no text has such."
                )
            yield ids

    def _encode(
        self, chunk: bytes, is_last: bool, name: str
    ) -> tuple[NDArray[np.int32], int]:
        data = np.frombuffer(chunk, dtype=np.uint8)
        ids = np.empty(len(chunk) + 1, dtype=np.int32)
        at = n = 0
        n_lines = int(self._state[1])
        while True:
            reason, at, n = _tokens.encode_text(
                data,
                at,
                is_last,
                self._slots,
                self._text,
                self._start,
                self._counts,
                self._state,
                ids,
                n,
            )
            if reason == _tokens.ENDED:
                break
            self._grow(reason)
        try:
            chunk[:at].decode()
        except UnicodeDecodeError as error:
            line = n_lines + chunk.count(b"\n", 0, error.start) + 1
            raise ValueError(
                f"{name}, line {line}: not UTF-8 ({error.reason}); convert it, for "
                "example with: iconv -f latin1 -t utf-8."
            ) from None
        ids = ids[:n]
        n_ends = int(np.count_nonzero(ids < 0))
        self.n_lines += n_ends
        self.n_tokens += n - n_ends
        return ids, at

    def _grow(self, reason: int) -> None:
        """Make room for more words, or for more of their text."""
        if reason == _tokens.TEXT_FULL:
            self._text = np.concatenate([self._text, np.empty_like(self._text)])
            return
        n = self.n_words
        self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
        self._start = np.concatenate([self._start, np.zeros_like(self._start[1:])])
        self._slots = np.zeros(2 * len(self._slots), dtype=np.uint64)
        _tokens.place_words(self._slots, self._text, self._start, n)

    def _marked(self, chunk: bytes, n_before: int, name: str, mark: str) -> ValueError:
        found = re.search(rb"(?<!\S)%s(?!\S)" % re.escape(mark.encode()), chunk)
        at = found.start() if found else 0
        line = n_before + chunk.count(b"\n", 0, at) + 1
        where = "end" if mark == self._marks[0] else "beginning"
        return ValueError(
            f"{name}, line {line}: it has {mark!r}, which stands for the {where} of a "
            "line: leave it out, for every line gets its own (the boundary of a "
            "Vocabulary names another mark)."
        )
