"""A text file line by line, and its lines of n-grams many at a time."""

from __future__ import annotations

import os
import re
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.files import _ngram_parse
from nplm.formats._words import WordText

__all__ = ["Lines", "shown"]

CHUNK_BYTES = 1 << 24
# No line of a model, of counts or of vectors comes near it; a file without lines
# does.
MAX_LINE_BYTES = 1 << 24
# Rows to begin a table with, whatever the file says of its size; more as they come.
# Memory is only taken by those that are filled.
FIRST_ROWS = 1 << 20
# Any number of them at once: a small archive may hold a great many.
BLANK_LINES = re.compile(rb"\s*\n")
# Characters of a line in an error.
MAX_SHOWN = 200


def shown(line: str) -> str:
    """Return the line as an error shows it: quoted, and not all of a long one."""
    return repr(line if len(line) <= MAX_SHOWN else line[:MAX_SHOWN] + "...")


class Lines:
    """The lines of a text file, with errors that name them.

    Parameters
    ----------
    file : binary file
        Open for reading.
    path : path-like
        Its name, for the errors.
    if_not_utf8 : str
        What to do with a file that is not UTF-8.
    """

    def __init__(
        self,
        file: BinaryIO,
        path: str | os.PathLike[str],
        if_not_utf8: str = "convert the file, with iconv for example",
    ) -> None:
        self._file, self._path = file, os.fspath(path)
        self._if_not_utf8 = if_not_utf8
        self._buffer, self._at, self._n_read = b"", 0, 0

    @property
    def n_read(self) -> int:
        """Lines read so far."""
        return self._n_read

    def next(self) -> str | None:
        """Return the next line that is not blank, or None at the end of the file."""
        while True:
            blank = BLANK_LINES.match(self._buffer, self._at)
            if blank:
                self._n_read += self._buffer.count(b"\n", self._at, blank.end())
                self._at = blank.end()
            end = self._buffer.find(b"\n", self._at)
            if end < 0:
                if self._fill():
                    continue
                if self._at == len(self._buffer):
                    return None
                end = len(self._buffer)
            line = self._buffer[self._at : end]
            self._at = min(end + 1, len(self._buffer))
            self._n_read += 1
            try:
                # A mark of the encoding may begin the file.
                encoding = "utf-8-sig" if self._n_read == 1 else "utf-8"
                # A word may hold blanks that are not ASCII: they divide nothing.
                text = line.decode(encoding).strip(" \t\r\v\f")
            except UnicodeDecodeError as error:
                raise self.error(f"not UTF-8 ({error}); {self._if_not_utf8}") from error
            if text:
                return text

    def ngrams(
        self,
        n_words: int,
        text: WordText,
        n: int,
        *,
        weights: bool,
        highest: float,
        heaviest: float,
    ) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]:
        """Read `n` lines of an ARPA file: a number, `n_words` words, a weight.

        Returns the ids of the words, the numbers, and the weights, nan where a
        line has none.
        """
        n_first = min(n, FIRST_ROWS)
        ids = np.empty((n_first, n_words), dtype=np.int32)
        numbers, weight = np.empty(n_first), np.empty(n_first)
        row = 0
        while row < n:
            if row == len(ids):
                # In place, and without a copy where the allocator can.
                n_more = min(n, 2 * row)
                ids.resize((n_more, n_words), refcheck=False)
                numbers.resize(n_more, refcheck=False)
                weight.resize(n_more, refcheck=False)
            if self._at == len(self._buffer) and not self._fill():
                raise self.error(
                    f"the file ends after {row} of {n} {n_words}-grams: it is cut "
                    "short, or its header is wrong",
                    ended=True,
                )
            reason, at, n_lines, row = _ngram_parse.parse_ngrams(
                np.frombuffer(self._buffer, dtype=np.uint8),
                self._at,
                text.words,
                text.slots,
                weights,
                highest,
                heaviest,
                row,
                ids,
                numbers,
                weight,
            )
            self._at = at
            self._n_read += n_lines
            if reason != _ngram_parse.MORE:
                raise self._error(reason, n_words, weights, row, n, text)
            if row < len(ids) and at < len(self._buffer) and not self._fill():
                # The last line has no end: it is cut short, or just lacks it.
                self._buffer += b"\n"
        return ids, numbers, weight

    def error(self, why: str, *, ended: bool = False) -> ValueError:
        """Return an error about the line read last, or about the end of the file."""
        if ended:
            return ValueError(f"{self._path}, after line {self._n_read}: {why}.")
        return ValueError(f"{self._path}, line {self._n_read}: {why}.")

    def _error(
        self,
        reason: int,
        n_words: int,
        weights: bool,
        row: int,
        n: int,
        text: WordText,
    ) -> ValueError:
        line = self.next() or ""
        shape = f"a number and {n_words} words" + (" and a number" if weights else "")
        tokens = re.split("[ \t\r\v\f]+", line)  # the blanks of ASCII alone
        if reason == _ngram_parse.UNKNOWN_WORD:
            unknown = next(w for w in tokens[1 : n_words + 1] if w not in text)
            why = f"{shown(unknown)} in {shown(line)} is no unigram of the file"
        else:
            why = {
                _ngram_parse.SECTION: f"{shown(line)} after {row} {n_words}-grams, but "
                f"the header says {n}",
                _ngram_parse.BAD_LENGTH: f"{shown(line)} is not {shape} (a "
                f"{n_words}-gram)",
                _ngram_parse.OUT_OF_RANGE: f"{tokens[0]} in {shown(line)} is no log10 "
                "of a probability: it is above 0",
                _ngram_parse.BAD_NUMBER: f"{shown(line)} is not {shape} (a "
                f"{n_words}-gram): a number is not one, or not finite",
                _ngram_parse.TOO_HEAVY: f"{tokens[-1]} in {shown(line)} is no log10 of "
                "a back-off weight: 10 to that power overflows",
            }[reason]
        return self.error(why)

    def _fill(self) -> bool:
        """Read on, in the middle of a line; whether there was more."""
        if len(self._buffer) - self._at > MAX_LINE_BYTES:
            self._n_read += 1
            raise self.error(
                f"longer than {MAX_LINE_BYTES} bytes: no line of such a file is"
            )
        more = self._file.read(CHUNK_BYTES)
        self._buffer = self._buffer[self._at :] + more
        self._at = 0
        return bool(more)
