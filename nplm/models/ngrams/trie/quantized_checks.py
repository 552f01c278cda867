"""A quantized trie as the items of a file, and back: sizes and numbers are checked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm.base.blocks import blocks
from nplm.base.checks import MAX_N_WORDS
from nplm.base.files.atomic_files import forget
from nplm.base.fitted import Fitted
from nplm.models.ngrams.trie.bits import MAX_WIDTH, SAMPLED
from nplm.models.ngrams.trie.checks import (
    are_bounded,
    are_probabilities,
    are_weights,
    increases,
)
from nplm.models.ngrams.trie.hashing import MAX_HASHED_ORDER
from nplm.models.ngrams.trie.quantized_trie import (
    MAX_BITS,
    MIN_BITS,
    NO_PROB,
    NO_WEIGHT,
    QuantizedLevel,
    QuantizedTrie,
    quantized_sizes,
)

__all__ = ["check_numbers", "quantized_items", "restored_quantized"]

# Records unpacked together, each to about 100 bytes.
BLOCK_RECORDS = 1 << 16
MAX_SIZE = int(np.iinfo(np.int32).max)
TRIE_ARRAYS = "prob", "bow", "start"
LEVEL_ARRAYS = "records", "high", "sample", "prob", "bow"


def quantized_items(
    trie: QuantizedTrie,
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the sizes of a trie, as JSON has them, and its arrays, by name."""
    sizes = {
        "bits": trie.bits,
        "n_ngrams": trie.n_ngrams.tolist(),
        "n_nodes": [level.n for level in trie.levels],
        "low": [level.low for level in trie.levels],
    }
    arrays = {name: getattr(trie, name) for name in TRIE_ARRAYS}
    for k, level in enumerate(trie.levels, 2):
        arrays |= {f"{name}_{k}": getattr(level, name) for name in LEVEL_ARRAYS}
    return sizes, arrays


def restored_quantized(fitted: Fitted, *, check: bool = True) -> QuantizedTrie:
    """Make a trie of the items that `quantized_items` returned.

    - `fitted`: sizes and arrays together
    - `check`: whether to check all numbers of the arrays. Sizes are always checked

    Raises ValueError if an item is missing, or the items are no trie.
    """
    bits = fitted.whole("bits", MIN_BITS, MAX_BITS)
    n_ngrams, n_nodes, low = (
        _sizes(fitted, name) for name in ("n_ngrams", "n_nodes", "low")
    )
    misfit = ValueError("its arrays do not fit together")
    if not (
        2 <= len(n_ngrams) <= MAX_HASHED_ORDER
        and len(n_nodes) == len(low) == len(n_ngrams) - 1
        and 1 <= n_ngrams[0] <= MAX_N_WORDS
    ):
        raise misfit
    sizes = quantized_sizes(n_ngrams[0], bits, n_nodes, low)
    arrays = {n: fitted.array(n, kind, (None,)) for n, (kind, _) in sizes.items()}
    levels = [
        QuantizedLevel(n, n_low, *(arrays[f"{name}_{k}"] for name in LEVEL_ARRAYS))
        for k, n, n_low in zip(range(2, len(n_ngrams) + 1), n_nodes, low)
    ]
    of_words = {name: arrays[name] for name in TRIE_ARRAYS}
    counts = np.array(n_ngrams, dtype=np.int64)
    trie = QuantizedTrie(n_ngrams[0], bits, counts, levels=levels, **of_words)
    # Kernels trust sizes.
    if (
        any(len(arrays[name]) != size for name, (_, size) in sizes.items())
        or [int(trie.start[0]), int(trie.start[-1])] != [0, n_nodes[0]]
        or max(map(trie.width, range(len(levels)))) > MAX_WIDTH
    ):
        raise misfit
    if check:
        check_numbers(trie)
    return trie


def _sizes(fitted: Fitted, name: str) -> list[int]:
    sizes: list[int] = fitted.take(name, list)
    if not all(type(n) is int and 0 <= n <= MAX_SIZE for n in sizes):
        raise fitted.invalid_item(name, sizes)
    return sizes


def check_numbers(trie: QuantizedTrie) -> None:
    """Raise if offsets, ids, probabilities or weights are out of range.

    Memory does not grow with the n-grams, which are unpacked in blocks.
    """
    is_valid = (
        bool((trie.start[1:] >= trie.start[:-1]).all())
        and are_probabilities(trie.prob)
        and are_weights(trie.bow)
    )
    begins: Iterator[NDArray[Any]] = iter([trie.start])
    for i, level in enumerate(trie.levels):
        if not is_valid:
            break
        try:
            is_valid = (
                _are_sorted(trie, i, begins)
                and level.prob[0] == NO_PROB
                and are_probabilities(level.prob[1:])
            )
            if is_valid and i + 1 < len(trie.levels):
                is_valid = (
                    _has_valid_offsets(trie, i)
                    and level.bow[0] == NO_WEIGHT
                    and are_weights(level.bow)
                )
                begins = (own for _, own in trie.offsets(i))
        except ValueError as error:
            raise ValueError(f"in its {i + 2}-grams, {error}") from error
    weights = [trie.bow, *(level.bow for level in trie.levels)]
    if not (is_valid and are_bounded(weights)):
        raise ValueError("its n-grams have numbers out of range")


def _are_sorted(trie: QuantizedTrie, i: int, begins: Iterator[NDArray[Any]]) -> bool:
    """Return whether the words of each context are valid ids, in increasing order.

    `begins` has the number of the first n-gram of each context, in blocks. The n-grams
    with a probability are counted, too.
    """
    level, n_ngrams, largest = trie.levels[i], 0, 0

    def words() -> Iterator[NDArray[Any]]:
        nonlocal n_ngrams, largest
        for part in blocks(level.n, BLOCK_RECORDS):
            own, prob, _, _ = trie.records(i, part.start, part.stop)
            n_ngrams += int(np.count_nonzero(prob))
            largest = max(largest, int(own.max()))
            yield own
            forget(level.records, level.high)

    are_sorted = increases(words(), begins) and largest < trie.n_words
    return bool(are_sorted and n_ngrams == trie.n_ngrams[i + 1])


def _has_valid_offsets(trie: QuantizedTrie, i: int) -> bool:
    """Return whether the offsets are those of the next level, in order."""
    level, done, before = trie.levels[i], 0, 0
    for places, offsets in trie.offsets(i):
        end = done + len(places)
        sample = level.sample[-(-done // SAMPLED) : -(-end // SAMPLED)]
        if not (
            (np.diff(offsets, prepend=before) >= 0).all()
            and (done > 0 or len(offsets) == 0 or offsets[0] == 0)
            and np.array_equal(places[-done % SAMPLED :: SAMPLED], sample)
        ):
            return False
        before, done = (offsets[-1] if len(offsets) else before), end
        forget(level.records, level.high)
    return bool(before == trie.levels[i + 1].n)
