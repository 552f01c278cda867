"""Text files, read line by line or by blocks of n-grams."""

from __future__ import annotations

import os
import re
from typing import BinaryIO

import numpy as np

from nplm._kernels.files import _ngram_parse
from nplm.base.array_types import Floats
from nplm.base.encoded_words import EncodedWords
from nplm.base.files.lines import NOT_UTF8
from nplm.models.ngrams.stages.tables import NgramTable
from nplm.text.words.splitting import BETWEEN_BLANKS, BLANKS

# It stays in the cache until it is parsed.
CHUNK_BYTES = 1 << 20
# Far above the lines of models, counts or vectors: longer lines mean another format.
MAX_LINE_BYTES = 1 << 24
# Unigrams that are read together: few, since lines of another form come between some.
UNIGRAM_BYTES = 1 << 18
# All blank lines at once: a small archive may hold a great many.
BLANK_LINES = re.compile(rb"[ \t\r\n]*\n")
# Characters of a line that an error shows.
MAX_SHOWN_CHARS = 200
# Of numbers in ARPA files: the lowest, below which they are minus infinity, the highest
# of a probability, and the highest of a weight.
NumberLimits = tuple[float, float, float]


def shown(line: str) -> str:
    """Return a line quoted for an error message, and cut if it is long."""
    return repr(
        line if len(line) <= MAX_SHOWN_CHARS else line[:MAX_SHOWN_CHARS] + "..."
    )


class Lines:
    """The lines of a text file; errors call it `path`.

    - `advice`: ends the error of a line that is not UTF-8
    """

    def __init__(
        self,
        file: BinaryIO,
        path: str | os.PathLike[str],
        advice: str = "",
    ) -> None:
        self._file, self._path = file, os.fspath(path)
        self._advice = advice
        self._buffer, self._position, self._n_read = b"", 0, 0

    @property
    def n_read(self) -> int:
        """Number of lines read so far."""
        return self._n_read

    def next(self) -> str | None:
        """Return the next line that is not blank, or None at the end of the file."""
        while True:
            blank = BLANK_LINES.match(self._buffer, self._position)
            if blank:
                self._n_read += self._buffer.count(b"\n", self._position, blank.end())
                self._position = blank.end()
            end = self._buffer.find(b"\n", self._position)
            if end < 0:
                if self._fill():
                    continue
                if self._position == len(self._buffer):
                    return None
                end = len(self._buffer)
            line = self._buffer[self._position : end]
            self._position = min(end + 1, len(self._buffer))
            self._n_read += 1
            try:
                # The file may begin with a byte order mark.
                encoding = "utf-8-sig" if self._n_read == 1 else "utf-8"
                text = line.decode(encoding).strip(BLANKS)
            except UnicodeDecodeError as error:
                wrong = NOT_UTF8.format(error.reason, self._advice)
                where = f"{self._path}, line {self._n_read}"
                raise ValueError(f"{where}: {wrong}") from error
            if text:
                return text

    def unigrams(self, n: int, limits: NumberLimits) -> tuple[bytes, Floats, Floats]:
        """Read at most `n` unigrams of an ARPA file: words, numbers and weights.

        Each word ends with a line feed.

        Stops before a line of another form, or that is not in memory yet: `next` reads
        it.
        """
        size = min(len(self._buffer) - self._position, UNIGRAM_BYTES)
        if size == 0:
            return b"", np.empty(0), np.empty(0)
        data = np.frombuffer(self._buffer, np.uint8, size, self._position)
        text = np.empty(size, np.uint8)
        numbers, weight = np.empty((2, min(n, size // 4)))  # as "1 a\n"
        columns = text, numbers, weight
        n, position, n_bytes = _ngram_parse.parse_unigrams(data, *limits, *columns)
        words = text[:n_bytes].tobytes()
        try:
            words.decode()
        except UnicodeDecodeError as error:
            n = words.count(b"\n", 0, error.start)
            return self.unigrams(n, limits)
        self._position += position
        self._n_read += n
        return words, numbers[:n], weight[:n]

    def ngrams(
        self,
        n_words: int,
        text: EncodedWords,
        n: int,
        limits: NumberLimits,
        *,
        weights: bool,
        n_before: int,
        n_in_all: int,
    ) -> NgramTable:
        """Read `n` lines of an ARPA file as n-grams.

        The error of a missing line counts those read before, and those that there
        should be.
        """
        ids = np.empty((n, n_words), dtype=np.int32)
        prob, bow = np.empty((2, n), dtype=np.float32)
        words, row = text.spelled_ids, 0
        while row < n:
            if self._position == len(self._buffer) and not self._fill():
                raise self.error(
                    f"the file ends after {n_before + row} of {n_in_all} "
                    f"{n_words}-grams: it is "
                    "truncated, or its header is wrong",
                    ended=True,
                )
            data = np.frombuffer(self._buffer, dtype=np.uint8)
            reason, position, n_lines, row = _ngram_parse.parse_ngrams(
                data, self._position, words, weights, *limits, row, ids, prob, bow
            )
            self._position = position
            self._n_read += n_lines
            if reason != _ngram_parse.MORE:
                own = n_words, weights, n_before + row, n_in_all, text
                raise self._error(reason, *own)
            if row < n and position < len(self._buffer) and not self._fill():
                # The last line is truncated, or only lacks its line end.
                self._buffer += b"\n"
        return NgramTable(ids, prob, bow if weights else None)

    def error(
        self, why: str, *, ended: bool = False, line: int | None = None
    ) -> ValueError:
        """Return an error about the last line read, another, or the end of the file."""
        if ended:
            return ValueError(f"{self._path}, after line {self._n_read}: {why}.")
        return ValueError(f"{self._path}, line {line or self._n_read}: {why}.")

    def _error(
        self,
        reason: int,
        n_words: int,
        weights: bool,
        row: int,
        n: int,
        text: EncodedWords,
    ) -> ValueError:
        line = self.next() or ""
        shape = f"a number and {n_words} words" + (" and a number" if weights else "")
        tokens = re.findall(BETWEEN_BLANKS, line)
        if reason == _ngram_parse.UNKNOWN_WORD:
            unknown = next(w for w in tokens[1 : n_words + 1] if w not in text)
            why = f"{shown(unknown)} in {shown(line)} is not a unigram of the file"
        else:
            why = {
                _ngram_parse.SECTION: f"{shown(line)} after {row} {n_words}-grams, but "
                f"the header says {n}",
                _ngram_parse.BAD_LENGTH: f"{shown(line)} is not {shape} (a "
                f"{n_words}-gram)",
                _ngram_parse.OUT_OF_RANGE: f"{tokens[0]} in {shown(line)} is not the "
                "log10 of a probability: it is above 0",
                _ngram_parse.BAD_NUMBER: f"{shown(line)} is not {shape} (a "
                f"{n_words}-gram): a number is invalid or not finite",
                _ngram_parse.TOO_HEAVY: f"{tokens[-1]} in {shown(line)} is not the "
                "log10 of a back-off weight: 10 to that power overflows",
            }[reason]
        return self.error(why)

    def _fill(self) -> bool:
        """Append the next chunk to the buffer; return whether there was one."""
        if len(self._buffer) - self._position > MAX_LINE_BYTES:
            self._n_read += 1
            raise self.error(
                f"longer than {MAX_LINE_BYTES} bytes: it is not a text file of n-grams"
            )
        chunk = self._file.read(CHUNK_BYTES)
        self._buffer = self._buffer[self._position :] + chunk
        self._position = 0
        return bool(chunk)
