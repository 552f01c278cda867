"""Bit-packed records, and Elias-Fano codes of monotone offsets."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams import _quantized
from nplm._kernels.ngrams._quantized import SAMPLED
from nplm.base.array_types import AnyArray, Bytes, Counts, Ids
from nplm.base.blocks import blocks

# A kernel reads 8 bytes at once: a record fits in them at any bit offset of a byte.
MAX_WIDTH = 57
READ_BYTES = 8
# 64-bit words of a bit array that are unpacked together.
BLOCK_WORDS = 1 << 12


def word_bits(n_words: int) -> int:
    """Return the number of bits of a word id."""
    return max(1, (n_words - 1).bit_length())


def pack_records(values: Ids | NDArray[np.uint64], width: int) -> Bytes:
    """Pack numbers of `width` bits (``MAX_WIDTH`` at most) end to end, lowest first.

    The records are padded with zeros to a multiple of 8 records and 8 more bytes.
    """
    # 8 records of `width` bits take `width` bytes.
    packed = np.zeros(-(-len(values) // 8) * width + READ_BYTES, dtype=np.uint8)
    _quantized.pack_records(values, width, packed)
    return packed


def unpack_records(packed: Bytes, width: int, n: int) -> NDArray[np.uint64]:
    """Return the `n` numbers of `width` bits that `pack_records` packed."""
    n_groups = -(-n // 8)
    rows = packed[: n_groups * width].reshape(n_groups, width)
    groups = np.empty((n_groups, 8), dtype=np.uint64)
    for record in range(8):
        first, last = record * width // 8, ((record + 1) * width - 1) // 8
        value = np.zeros(n_groups, dtype=np.uint64)
        for byte in range(first, last + 1):
            value |= rows[:, byte].astype(np.uint64) << np.uint64(8 * (byte - first))
        value >>= np.uint64(record * width - 8 * first)
        groups[:, record] = value & np.uint64((1 << width) - 1)
    return groups.reshape(-1)[:n]


def put_offsets(
    offsets: Counts,
    first: int,
    low: int,
    high: NDArray[np.uint64],
    sample: NDArray[np.uint32],
) -> None:
    """Put the high parts of monotone offsets in place (Elias 1974, Fano 1971).

    - `offsets` (n,): the offsets from number `first`, a multiple of `SAMPLED`, on
    - `low`: number of low bits of each offset, which are stored elsewhere
    - `high`: bit array, in which bit ``(offsets[i] >> low) + i`` is set for each i
    - `sample`: position of every 32nd bit that is set
    """
    is_set = (offsets >> low) + np.arange(first, first + len(offsets))
    begin, end = int(is_set[0]) // 64, int(is_set[-1]) // 64 + 1
    bits = np.zeros((end - begin) * 64, dtype=np.uint8)
    bits[is_set - begin * 64] = 1
    # Blocks of offsets share a word of 64 bits.
    high[begin:end] |= np.packbits(bits, bitorder="little").view("<u8")
    sampled, at = is_set[::SAMPLED], first // SAMPLED
    sample[at : at + len(sampled)] = sampled


def set_bits(words: AnyArray) -> Iterator[Counts]:
    """Yield the positions of the bits that are set, in increasing order, in blocks."""
    for part in blocks(len(words), BLOCK_WORDS):
        bits = np.unpackbits(words[part].view(np.uint8), bitorder="little")
        yield np.flatnonzero(bits) + 64 * part.start
