"""Read binary files of KenLM: the n-grams, without a model of them.

The format is version 5, which has one layout for hash tables ("probing") and four for
tries: with or without quantized numbers, and with or without high parts of offsets in
arrays. See ``lm/binary_format.cc`` and the files that it includes in KenLM.
"""

from __future__ import annotations

import os
import struct
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np

from nplm._kernels.ngrams.decoding._kenlm_files import KenlmIds
from nplm.base.array_types import Bytes
from nplm.base.encoded_words import EncodedWords
from nplm.base.files.tensors import in_memory
from nplm.formats._ngrams import Ngrams
from nplm.models.ngrams.kenlm_trie import KenlmTrie
from nplm.models.ngrams.trie.hashing import MAX_HASHED_ORDER
from nplm.text.words.known_words import UNKNOWN
from nplm.text.words.splitting import BEGIN, END

MAGIC = b"mmap lm http://kheafield.com/code"
VERSION = MAGIC + b" format version "
START = VERSION + b"5\n\0"
# What follows the start, padded to 8 bytes: numbers whose bytes show the machine.
TESTS = struct.pack("<3f3IQ", 0, 1, -0.5, 1, 0xFFFFFFFF, 0, 1)
# Order, places in a hash table for each entry, type, whether words are there, version.
HEADER = struct.Struct("<B3xfI?3xI")
TYPES = (
    "probing", "probing with rest costs", "trie", "quantized trie",
    "trie with arrays", "quantized trie with arrays",
)  # fmt: skip
QUANTIZED, WITH_ARRAYS = (3, 5), (4, 5)
# Of a probability above 0 and a weight without codes.
PROB_BITS, WEIGHT_BITS, MAX_CODE_BITS = 31, 32, 25
QUANTIZED_VERSION = 2
# Far above the number of n-grams of any file.
MAX_NGRAMS = 1 << 40
NUL, LINE_FEED = 0, 10


def read_ngrams(
    file: BinaryIO, path: Path, *, verify: bool, mmap: bool = True
) -> Ngrams[KenlmTrie]:
    """Read the n-grams of an open file of KenLM; raise ValueError if it is damaged."""
    data = np.memmap(file, np.uint8, "r")
    try:
        places, strings = _places(data)
        memory = data if mmap else in_memory(data)
        trie = KenlmTrie(os.fspath(path), memory, *places)
        if trie.boundary is None:
            raise ValueError(
                f"it has no {BEGIN} or no {END}, the marks of the ends of lines: build "
                "it from an ARPA file that has them"
            )
        words: EncodedWords = HashedWords(trie)
        if strings is not None:
            words = _words(data[strings:], trie)
        if verify:
            _check(trie, words)
    except ValueError as error:
        raise ValueError(
            f"{path} is a binary file of KenLM that cannot be read: {error}."
        ) from error
    return Ngrams(trie, None, trie.boundary, words)


class HashedWords(EncodedWords):
    """The words of a file with hashes alone (``build_binary -v``), not to be listed."""

    def __init__(self, trie: KenlmTrie) -> None:
        self._trie = trie
        self.ids = KenlmIds(trie.kernel)

    def tolist(self) -> NoReturn:
        """Raise ValueError."""
        raise ValueError(
            f"{self._trie.name} has hashes in place of words (build_binary -v): it "
            "scores text, but its words cannot be listed. Build it without -v."
        )

    def check(self) -> None:
        """Check nothing: any hashes are those of some words."""

    def __len__(self) -> int:
        return self._trie.n_words

    def __getitem__(self, index: Any) -> Any:
        known = {0: UNKNOWN[0], self._trie.boundary: END}
        return known[index] if index in known else self.tolist()

    def __reduce__(self) -> Any:
        return type(self), (self._trie,)


def _words(text: Bytes, trie: KenlmTrie) -> EncodedWords:
    """Return the words without ``<s>``, whose letters follow the n-grams."""
    ends = np.flatnonzero(text == NUL)
    if len(ends) != trie.words[2] or len(text) != ends[-1] + 1:
        raise ValueError(f"it is truncated: it has {len(ends)} words")
    begin = trie.kernel.begin
    first, last = ends[begin - 1] + 1, ends[begin] + 1
    if text[:6].tobytes() != b"<unk>\0" or text[first:last].tobytes() != b"<s>\0":
        raise ValueError("its words are not at their places")
    letters = np.concatenate([text[:first], text[last:]])[:-1]
    letters[letters == NUL] = LINE_FEED
    return EncodedWords.of_lines(letters, trie.name)


def _check(trie: KenlmTrie, words: EncodedWords) -> None:
    """Raise ValueError if numbers are out of range, or words have other hashes."""
    trie.check()
    words.check()
    if not isinstance(words, HashedWords):
        ids = KenlmIds(trie.kernel)
        if [ids.get(word) for word in words.tolist()] != list(range(len(words))):
            raise ValueError("its words do not have its hashes")


class Cursor:
    """The next part of a file, which has not more bytes than the file."""

    def __init__(self, data: Bytes, at: int) -> None:
        self.data, self.at = data, at

    def take(self, n_bytes: int) -> int:
        """Skip a part; return where it begins."""
        at, self.at = self.at, self.at + n_bytes
        if self.at > len(self.data):
            raise ValueError(
                f"it is truncated: it has {len(self.data)} bytes, and its header says "
                f"at least {self.at}"
            )
        return at

    def numbers(self, layout: str) -> tuple[int, ...]:
        """Return numbers of the next part, which is not skipped."""
        n = struct.calcsize(layout)
        at = self.take(n)
        self.at = at
        return struct.unpack(layout, self.data[at : at + n].tobytes())


def _places(data: Bytes) -> tuple[tuple[Any, ...], int | None]:
    """Return the fields of a `KenlmTrie` after its memory, and where its words begin.

    A file may have no words. Raises a ValueError that does not name the file.
    """
    start = _padded(len(START) + 1)
    begin = data[: start + len(TESTS)].tobytes()
    if not begin.startswith(VERSION):
        raise ValueError("its build did not finish: run build_binary again")
    if not begin.startswith(START):
        version = begin[len(VERSION) :].split(b"\n")[0].decode("ascii", "replace")
        raise ValueError(
            f"it has format version {version:.20}, and version 5 is read: build it "
            "from the ARPA file with a KenLM of 2012 or later"
        )
    if begin[start:] != TESTS:
        raise ValueError(
            "its words or numbers have other sizes or another byte order than those "
            "of KenLM on 64-bit machines: build it from the ARPA file again"
        )
    cursor = Cursor(data, len(begin))
    at = cursor.take(HEADER.size)
    order, multiplier, kind, has_strings, version = HEADER.unpack(
        data[at : cursor.at].tobytes()
    )
    if kind == 1:
        raise ValueError(
            "it has rest costs (build_binary -r), which are not read: build it without"
        )
    if kind >= len(TYPES):
        raise ValueError(f"it has type {kind} of KenLM's, and 0 and 2 to 5 are known")
    is_trie = kind >= 2
    if version != is_trie:
        raise ValueError(
            f"it has version {version} of KenLM's {TYPES[kind]}, and version "
            f"{int(is_trie)} is read: build it from the ARPA file again"
        )
    if not 2 <= order <= MAX_HASHED_ORDER:
        raise ValueError(
            f"it has order {order}, and orders from 2 to {MAX_HASHED_ORDER} are read"
        )
    counts = list(cursor.numbers(f"<{order}Q"))
    cursor.at = _padded(cursor.at + 8 * order)
    if not all(n < MAX_NGRAMS for n in counts) or not 1 <= counts[0] < 1 << 31:
        raise ValueError(f"its header has {counts!r:.80} n-grams")
    if is_trie:
        parts = _trie(cursor, counts, kind)
    else:
        if not 1 <= multiplier < 1 << 20:
            raise ValueError(f"its header has {multiplier} places an n-gram")
        parts = _probing(cursor, counts, multiplier)
    return (counts, *parts, is_trie), cursor.at if has_strings else None


Parts = tuple[tuple[int, int, int], int, list[tuple[object, ...]]]


def _probing(cursor: Cursor, counts: list[int], multiplier: float) -> Parts:
    def n_places(n: int) -> int:
        # KenLM multiplies float32.
        return max(n + 1, int(np.float32(multiplier) * np.float32(n)))

    version, n_words = cursor.numbers("<II")
    if version != 0:
        raise ValueError(f"its words have version {version}, and version 0 is read")
    if not 1 <= n_words <= counts[0] + 1:
        raise ValueError(f"it has {n_words} words, but {counts[0]} unigrams")
    cursor.take(8)
    places = n_places(counts[0])
    words = cursor.take(12 * places), places, n_words
    unigrams, levels = cursor.take(8 * (counts[0] + 1)), list[tuple[object, ...]]()
    for n in counts[1:-1]:
        levels.append((cursor.take(16 * n_places(n)), n_places(n)))
    places = n_places(counts[-1])
    levels.append((cursor.take(12 * places), places))
    return words, unigrams, levels


def _trie(cursor: Cursor, counts: list[int], kind: int) -> Parts:
    (n_words,) = cursor.numbers("<Q")
    if n_words != counts[0] - 1:
        raise ValueError(f"it has {n_words + 1} words, but {counts[0]} unigrams")
    words = cursor.take(8 + 8 * counts[0]) + 8, n_words, counts[0]
    prob, bow, n_codes, codes = PROB_BITS, WEIGHT_BITS, 0, 0
    if kind in QUANTIZED:
        version, prob, bow = cursor.numbers("<3B")
        if version != QUANTIZED_VERSION or not (
            1 <= prob <= MAX_CODE_BITS and 1 <= bow <= MAX_CODE_BITS
        ):
            raise ValueError(
                f"its codes have version {version} and {prob} and {bow} bits: version "
                f"{QUANTIZED_VERSION} and 1 to {MAX_CODE_BITS} bits are read"
            )
        codes, n_codes = cursor.take(8) + 8, 4 << prob
        cursor.take((len(counts) - 2) * (n_codes + (4 << bow)) + n_codes)
    unigrams = cursor.take(16 * (counts[0] + 2))
    most = None  # bits in an array
    if kind in WITH_ARRAYS and len(counts) > 2:
        version, most = cursor.numbers("<2B")
        if version != 0:
            raise ValueError(f"its arrays have version {version}, and 0 is read")
    word, levels = counts[0].bit_length(), list[tuple[object, ...]]()
    for n, n_next in pairwise(counts[1:]):
        low, array, n_high = n_next.bit_length(), 0, 1
        if most is not None:
            high = _high_bits(n + 1, n_next, most)
            low -= high
            n_high = (n_next >> low) + 1
            array = cursor.take(8 * (1 + n_high) + 7)
            array = _padded(array) + 8
        numbers = n, word, prob, bow, low, n_high
        records = cursor.take(((n + 1) * sum(numbers[1:5]) + 7) // 8 + 8)
        weights = codes + n_codes if codes else 0
        levels.append((records, numbers, array, codes, weights))
        codes = weights + (4 << bow) if codes else 0
    numbers = counts[-1], word, prob, 0, 0, 1
    records = cursor.take(((counts[-1] + 1) * (word + prob) + 7) // 8 + 8)
    levels.append((records, numbers, 0, codes, 0))
    return words, unigrams, levels


def _high_bits(n: int, n_next: int, most: int) -> int:
    """Return how many high bits of offsets are in an array: KenLM makes files small."""
    bits = n_next.bit_length()

    def cost(high: int) -> int:
        return (n_next >> (bits - high)) * 64 - n * high

    return min(range(min(bits, most) + 1), key=cost)


def _padded(n: int) -> int:
    """Round up to a multiple of 8."""
    return -(-n // 8) * 8
