"""WordStream: encode texts of any size, split at blanks, line by line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from nplm._kernels.files import _tokens
from nplm._kernels.ngrams.decoding._word_ids import fill_slots
from nplm.base.array_types import Counts, Ids
from nplm.base.files.lines import BYTE_ORDER_MARK, check_nuls, decoded
from nplm.text.words.splitting import BLANKS, LineMarks, Splitter, inside

CHUNK_BYTES = 1 << 20
HAS_BLANKS = re.compile(f"[{BLANKS}]")


class Tokens:
    """A text split by a tokenizer, read as a file of tokens between blanks.

    Lines stay lines, without the marks of their ends.
    """

    def __init__(
        self, file: BinaryIO, tokenizer: Splitter, name: str, boundary: str
    ) -> None:
        self._file, self._split, self._name = file, tokenizer.split_function(), name
        self._unmarked = LineMarks(boundary).removed
        self._rest, self._n_lines = b"", 0

    def read(self, size: int) -> bytes:
        """Return the tokens of some lines, of any size; empty at the end."""
        chunk, text = self._rest, b""
        while not text:
            read = self._file.read(CHUNK_BYTES)
            chunk += read
            end = chunk.rfind(b"\n") + 1 if read else len(chunk)
            text, self._rest = chunk[:end], chunk[end:]
            if not read:
                break
        if self._n_lines == 0:
            text = text.removeprefix(BYTE_ORDER_MARK)
        lines = decoded(text, self._name, self._n_lines + 1).split("\n")
        tokens = [self._split(self._unmarked(line)) for line in lines]
        for number, line in enumerate(tokens, self._n_lines + 1):
            bad = next((token for token in line if HAS_BLANKS.search(token)), None)
            if bad is not None:
                raise ValueError(
                    f"{self._name}, line {number}: the tokenizer made {bad!r:.80}, "
                    "which has blanks: change its pattern."
                )
        self._n_lines += len(lines) - 1
        return "\n".join(map(" ".join, tokens)).encode()


class WordStream:
    """Encode the words of texts as ids, and count them.

    Words are separated by ASCII blanks, as in the n-gram toolkits. A line is a
    sentence; lines without words are by default skipped. `symbols`, the mark of the end
    of a line and perhaps that of its beginning, have the first ids, and are left out at
    their places.
    """

    def __init__(self, *symbols: str, blank_lines: bool = False) -> None:
        self._slots = np.zeros(1 << 12, dtype=np.uint64)
        self._text = np.empty(1 << 15, dtype=np.uint8)
        self._start = np.zeros((1 << 11) + 1, dtype=np.int64)
        self._counts = np.zeros(1 << 11, dtype=np.int64)
        self._state = np.zeros(5, dtype=np.int64)
        self._blank_lines = blank_lines
        self.n_lines = self.n_tokens = 0
        self._symbols: tuple[str, ...] = ()
        self._encode(" ".join(symbols).encode(), True, "symbols")
        self._counts[:] = 0
        self._symbols = symbols
        self.n_lines = self.n_tokens = 0

    @property
    def n_words(self) -> int:
        """Number of distinct words."""
        return int(self._state[0])

    @property
    def counts(self) -> Counts:
        """Count of each word."""
        return self._counts[: self.n_words]

    def words(self) -> list[str]:
        """Return the words in the order of their ids."""
        text = self._text[: self._start[self.n_words]].tobytes()
        return text.decode().split("\n")[:-1]  # a line feed follows each

    def read(self, file: BinaryIO, name: str | os.PathLike[str]) -> Iterator[Ids]:
        """Yield the ids of words of UTF-8, by first occurrence; -1 after each line.

        Raises ValueError if it is not UTF-8, has a symbol inside of a line or a NUL, or
        has a word of more than 1 MB.
        """
        self._state[1] = 0
        name = os.fspath(name)
        rest = b""
        # A pipe may return fewer bytes than requested.
        while len(rest) < len(BYTE_ORDER_MARK) and (read := file.read(1)):
            rest += read
        rest = rest.removeprefix(BYTE_ORDER_MARK)
        more = True
        while more:
            read = file.read(CHUNK_BYTES)
            more, chunk = bool(read), rest + read
            check_nuls(chunk, name, int(self._state[1]) + 1)
            ids, n_read = self._encode(chunk, not more, name)
            rest = chunk[n_read:]
            if len(rest) > CHUNK_BYTES:
                raise ValueError(
                    f"{name}, line {int(self._state[1]) + 1}: a word of more than "
                    f"{CHUNK_BYTES} bytes; check that the file is text."
                )
            yield ids

    def _encode(self, chunk: bytes, is_last: bool, name: str) -> tuple[Ids, int]:
        data = np.frombuffer(chunk, dtype=np.uint8)
        ids = np.empty(len(chunk) + 1, dtype=np.int32)
        n_read = n = 0
        first = int(self._state[1]) + 1
        while True:
            reason, n_read, n = _tokens.encode_text(
                data,
                n_read,
                is_last,
                self._blank_lines,
                len(self._symbols),
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
            if reason == _tokens.MARK_INSIDE:
                why = inside(self._symbols[ids[n]], self._symbols[0])
                raise ValueError(f"{name}, line {int(self._state[1]) + 1}: {why}")
            self._grow(reason)
        decoded(chunk[:n_read], name, first)
        ids = ids[:n]
        n_ends = int(np.count_nonzero(ids < 0))
        self.n_lines += n_ends
        self.n_tokens += n - n_ends
        return ids, n_read

    def _grow(self, reason: int) -> None:
        """Make room for more words, or for more of their text."""
        if reason == _tokens.TEXT_FULL:
            self._text = np.concatenate([self._text, np.empty_like(self._text)])
            return
        start = self._start[: self.n_words + 1]
        self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
        self._start = np.concatenate([self._start, np.zeros_like(self._start[1:])])
        self._slots = np.zeros(2 * len(self._slots), dtype=np.uint64)
        fill_slots(self._text, start, self._slots)
