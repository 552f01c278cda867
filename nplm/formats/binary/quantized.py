"""A quantized trie as arrays of a file."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm.formats.binary.arrays import ArrayFile, is_whole
from nplm.models.ngrams.trie.bits import MAX_WIDTH, READ_BYTES, SAMPLED, pack_offsets
from nplm.models.ngrams.trie.checks import MOST, ROUNDING
from nplm.models.ngrams.trie.hash_table import MAX_HASHED_ORDER
from nplm.models.ngrams.trie.quantized_trie import (
    MAX_BITS,
    MIN_BITS,
    NO_PROB,
    NO_WEIGHT,
    QuantizedLevel,
    QuantizedTrie,
)

__all__ = [
    "arrays_of_quantized",
    "dtypes_of_quantized",
    "header_of_quantized",
    "quantized_of_arrays",
]

MAX_SIZE = int(np.iinfo(np.int32).max)
OF_TRIE = {"prob": "<f4", "bow": "<f4", "start": "<i8"}
OF_LEVEL = {
    "records": "<u1",
    "high": "<u8",
    "sample": "<u4",
    "prob": "<f4",
    "bow": "<f4",
}


def header_of_quantized(trie: QuantizedTrie) -> dict[str, Any]:
    """Return what the header says of a trie."""
    return {
        "bits": trie.bits,
        "n_ngrams": trie.n_ngrams.tolist(),
        "n_nodes": [level.n for level in trie.levels],
        "low": [level.low for level in trie.levels],
    }


def arrays_of_quantized(trie: QuantizedTrie) -> dict[str, NDArray[Any]]:
    """Return its arrays, by the names that they have in a file."""
    arrays = {name: getattr(trie, name) for name in OF_TRIE}
    for k, level in enumerate(trie.levels, 2):
        arrays |= {f"{name}_{k}": getattr(level, name) for name in OF_LEVEL}
    return arrays


def dtypes_of_quantized(file: ArrayFile) -> dict[str, np.dtype[Any]]:
    """Return the type of each array, of a header that is in order; else raise."""
    about = file.header["quantized"]
    n_words = file.header["n_words"]
    sound = isinstance(about, dict) and all(
        isinstance(about.get(name), list)
        and all(is_whole(n, 0, MAX_SIZE) for n in about[name])
        for name in ("n_ngrams", "n_nodes", "low")
    )
    if sound:
        order = len(about["n_ngrams"])
        sound = (
            is_whole(about.get("bits"), MIN_BITS, MAX_BITS)
            and 2 <= order <= MAX_HASHED_ORDER
            and len(about["n_nodes"]) == len(about["low"]) == order - 1
            and about["n_ngrams"][0] == n_words
        )
    if not sound:
        raise file.damaged(f"its header has quantized={about!r}")
    names = dict(OF_TRIE)
    for k in range(2, order + 1):
        names |= {f"{name}_{k}": kind for name, kind in OF_LEVEL.items()}
    return {name: np.dtype(kind) for name, kind in names.items()}


def quantized_of_arrays(
    file: ArrayFile, arrays: dict[str, NDArray[Any]], *, check: bool
) -> QuantizedTrie:
    """Put a trie together; its sizes are always looked at, its numbers to `check`."""
    about = file.header["quantized"]
    levels = [
        QuantizedLevel(n, low, *(arrays[f"{name}_{k}"] for name in OF_LEVEL))
        for k, (n, low) in enumerate(zip(about["n_nodes"], about["low"]), 2)
    ]
    trie = QuantizedTrie(
        n_words=file.header["n_words"],
        bits=about["bits"],
        n_ngrams=np.array(about["n_ngrams"], dtype=np.int64),
        levels=levels,
        **{name: arrays[name] for name in OF_TRIE},
    )
    if not _fits(trie):
        raise file.damaged("its arrays do not fit together")
    if check:
        _check_numbers(trie, file)
    return trie


def _fits(trie: QuantizedTrie) -> bool:
    """Whether the arrays belong together: kernels trust their sizes."""
    n_codes, n_levels = 1 << trie.bits, len(trie.levels)
    sound = (
        len(trie.prob) == len(trie.bow) == trie.n_words
        and len(trie.start) == trie.n_words + 1
        and int(trie.start[0]) == 0
        and int(trie.start[-1]) == trie.levels[0].n
    )
    for i, level in enumerate(trie.levels):
        n, ends, width = level.n, i + 1 == n_levels, trie.width(i)
        n_high = 0 if ends else ((trie.levels[i + 1].n >> level.low) + n) // 64 + 1
        sound = (
            sound
            and width <= MAX_WIDTH
            and len(level.records) == -(-(n + (not ends)) // 8) * width + READ_BYTES
            and len(level.high) == n_high
            and len(level.sample) == (0 if ends else n // SAMPLED + 1)
            and len(level.prob) == n_codes
            and len(level.bow) == (0 if ends else n_codes)
        )
    return sound


def _check_numbers(trie: QuantizedTrie, file: ArrayFile) -> None:
    """Refuse numbers that no trie has: kernels take them for places and ids."""
    begins: NDArray[Any] = trie.start
    heaviest = [trie.bow.max(initial=1)]
    sound = (
        bool((trie.start[1:] >= trie.start[:-1]).all())
        and _are_probabilities(trie.prob)
        and _are_weights(trie.bow)
    )
    for i, level in enumerate(trie.levels):
        if not sound:
            break
        try:
            words, prob, _, offsets = trie.unpacked(i)
        except ValueError as error:
            raise file.damaged(f"its {i + 2}-grams have {error}") from error
        rises = np.ones(level.n, dtype=bool)
        rises[1:] = words[1:] > words[:-1]
        rises[begins[begins < level.n]] = True
        sound = (
            bool(rises.all() and (words < trie.n_words).all())
            and level.prob[0] == NO_PROB
            and _are_probabilities(level.prob[1:])
            and np.count_nonzero(prob) == trie.n_ngrams[i + 1]
        )
        if offsets is not None:
            n_next = trie.levels[i + 1].n
            high, sample = pack_offsets(np.maximum(offsets, 0), level.low)
            sound = (
                sound
                and bool((offsets[1:] >= offsets[:-1]).all())
                and offsets[0] == 0
                and offsets[-1] == n_next
                and np.array_equal(high, level.high)
                and np.array_equal(sample, level.sample)
                and level.bow[0] == NO_WEIGHT
                and _are_weights(level.bow)
            )
            heaviest.append(level.bow.max(initial=1))
            begins = offsets
    if not sound or np.log10(heaviest, dtype=np.float64).sum() >= MOST:
        raise file.damaged("its n-grams have numbers that no model has")


def _are_probabilities(values: NDArray[np.float32]) -> bool:
    return bool(((values >= 0) & (values < 1 + ROUNDING)).all())


def _are_weights(values: NDArray[np.float32]) -> bool:
    return bool(((values >= 0) & (values < np.inf)).all())
