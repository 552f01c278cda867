"""Bit-packed records, and Elias-Fano codes of monotone offsets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams._quantized import SAMPLED
from nplm.base.blocks import blocks

__all__ = [
    "MAX_WIDTH",
    "READ_BYTES",
    "SAMPLED",
    "pack_offsets",
    "pack_records",
    "set_bits",
    "unpack_records",
    "word_bits",
]

# A kernel reads 8 bytes at once: a record fits in them at any bit offset of a byte.
MAX_WIDTH = 57
READ_BYTES = 8
# 64-bit words of a bit array that are unpacked together.
BLOCK_WORDS = 1 << 12


def word_bits(n_words: int) -> int:
    """Return the number of bits of a word id."""
    return max(1, (n_words - 1).bit_length())


def pack_records(values: NDArray[np.uint64], width: int) -> NDArray[np.uint8]:
    """Pack numbers of `width` bits end to end, lowest bits first.

    - `values` (n,): numbers below ``2**width``
    - `width`: bits per number, at most ``MAX_WIDTH``

    Returns `packed`: the records, padded with zeros to a multiple of 8 records and 8
    more bytes.

    Examples
    --------
    >>> import numpy as np
    >>> pack_records(np.array([1, 2, 3], dtype=np.uint64), 4)[:2].tolist()
    [33, 3]
    """
    n_groups = -(-len(values) // 8)
    groups = np.zeros((n_groups, 8), dtype=np.uint64)
    groups.reshape(-1)[: len(values)] = values
    packed = np.zeros(n_groups * width + READ_BYTES, dtype=np.uint8)
    # 8 records of `width` bits take `width` bytes.
    rows = packed[: n_groups * width].reshape(n_groups, width)
    for byte in range(width):
        for record in range(8 * byte // width, (8 * byte + 7) // width + 1):
            shift = 8 * byte - record * width
            shifted = np.right_shift if shift >= 0 else np.left_shift
            part = shifted(groups[:, record], np.uint64(abs(shift)))
            rows[:, byte] |= part.astype(np.uint8)
    return packed


def unpack_records(packed: NDArray[np.uint8], width: int, n: int) -> NDArray[np.uint64]:
    """Return the `n` numbers of `width` bits that `pack_records` packed.

    Examples
    --------
    >>> import numpy as np
    >>> numbers = np.arange(20, dtype=np.uint64)
    >>> unpack_records(pack_records(numbers, 5), 5, 20).tolist() == numbers.tolist()
    True
    """
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


def pack_offsets(
    offsets: NDArray[np.int64], low: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """Pack the high parts of monotone offsets (Elias 1974, Fano 1971).

    - `offsets` (n,): non-negative numbers in non-decreasing order
    - `low`: number of low bits of each offset, which are stored elsewhere

    Returns `high`, bit array in which bit ``(offsets[i] >> low) + i`` is set for each
    i; `sample`, position of every 32nd bit that is set.

    Examples
    --------
    >>> import numpy as np
    >>> high, sample = pack_offsets(np.array([0, 0, 3]), 0)
    >>> bin(high[0]), sample.tolist()
    ('0b100011', [0])
    """
    is_set = (offsets >> low) + np.arange(len(offsets))
    bits = np.zeros(int(is_set[-1]) // 64 * 64 + 64, dtype=np.uint8)
    bits[is_set] = 1
    high = np.packbits(bits, bitorder="little").view("<u8")
    return high, is_set[::SAMPLED].astype(np.uint32)


def set_bits(words: NDArray[Any]) -> Iterator[NDArray[np.int64]]:
    """Yield the positions of the bits that are set, in increasing order, in blocks.

    - `words`: a bit array, such as that of `pack_offsets`

    Examples
    --------
    >>> import numpy as np
    >>> high, _ = pack_offsets(np.array([0, 0, 3]), 0)
    >>> [places.tolist() for places in set_bits(high)]
    [[0, 1, 5]]
    """
    for part in blocks(len(words), BLOCK_WORDS):
        bits = np.unpackbits(words[part].view(np.uint8), bitorder="little")
        yield np.flatnonzero(bits) + 64 * part.start
