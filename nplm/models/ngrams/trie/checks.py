"""Whether arrays from a file are a trie: kernels trust their sizes and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.context_trie import ContextTrie

__all__ = [
    "MOST",
    "ROUNDING",
    "check_ranges",
    "check_sizes",
    "check_structure",
    "multiplies",
    "sums_to_one",
]

# A probability of 1 that was rounded may come out above it by this much.
ROUNDING = 1e-3
# log10 of a product that float64 holds.
MOST = 300.0


def check_sizes(
    arrays: Mapping[str, NDArray[Any]], n_words: int, *, compact: bool = False
) -> None:
    """Refuse arrays that do not belong together.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        Those of a `ContextTrie` of any kind, by name.
    n_words : int
        Size of the vocabulary.
    compact : bool, default=False
        Whether `child_start` leaves the longest contexts out, which have no children.

    Raises
    ------
    ValueError
        If the sizes of two do not go together.
    """
    n_contexts, n_ngrams = len(arrays["context_word"]), len(arrays["words"])
    sizes = {"start": n_contexts + 1, "bow": n_contexts}
    sizes |= {"prob": n_ngrams, "counts": n_ngrams}
    levels = arrays["level_start"].astype(np.int64)
    # The root's followers and children are all the words.
    first = [0, 1] if len(levels) == 2 else [0, 1, 1 + n_words]
    sound = (
        len(levels) >= 2
        and levels[: len(first)].tolist() == first
        and bool((np.diff(levels) >= 0).all())
        and levels[-1] == n_contexts
        and len(arrays["child_start"]) == (levels[-2] if compact else n_contexts + 1)
        and all(len(own) == sizes.get(name, len(own)) for name, own in arrays.items())
        and arrays["start"][-1] == n_ngrams >= n_words >= 1
    )
    if not sound:
        raise ValueError("its arrays do not fit together")


def check_ranges(trie: BackoffTrie) -> None:
    """Refuse numbers that no trie has: kernels take them for places and ids.

    Raises
    ------
    ValueError
        Naming the array.
    """
    check_structure(trie)
    sound = {
        # The logarithm is rounded in an ARPA file and in a compact one.
        "prob": (trie.prob >= 0).all() and (trie.prob < 1 + ROUNDING).all(),
        "bow": (trie.bow >= 0).all() and (trie.bow < np.inf).all() and multiplies(trie),
    }
    _refuse(sound)


def check_structure(trie: ContextTrie) -> None:
    """Refuse offsets and ids that no trie has, as `check_ranges` does."""
    levels, children, start = trie.level_start, trie.child_start, trie.start
    n_words, words, context_word = trie.n_words, trie.words, trie.context_word
    ids = np.arange(n_words)
    sound = {
        "child_start": (children[1:] >= children[:-1]).all()
        # The children of a level are the next one.
        and (children[levels[:-1]] == levels[1:]).all()
        and children[-1] == levels[-1],
        "start": start[0] == 0
        and (start[1:] >= start[:-1]).all()
        and start[1] == n_words,
        "context_word": context_word[0] == 0
        and _are_ids(context_word, n_words)
        and (trie.order == 1 or (context_word[1 : 1 + n_words] == ids).all()),
        "words": _are_ids(words, n_words) and (words[:n_words] == ids).all(),
    }
    _refuse(sound)
    # Only now that the offsets are sound.
    for name, values, offsets in (
        ("context_word", context_word, children),
        ("words", words, start),
    ):
        if not _rise(values, offsets):
            raise ValueError(f"{name} is not sorted")


def _refuse(sound: Mapping[str, Any]) -> None:
    for name, good in sound.items():
        if not good:
            raise ValueError(f"{name} has numbers that no model has")


def _are_ids(values: NDArray[np.int32], n_words: int) -> bool:
    return bool((values >= 0).all() and (values < n_words).all())


def _rise(values: NDArray[np.int32], offsets: NDArray[np.int32]) -> bool:
    """Whether values rise from each offset to the next."""
    rises = values[1:] > values[:-1]
    begins = offsets[(offsets > 0) & (offsets < len(values))]
    rises[begins - 1] = True
    return bool(rises.all())


def multiplies(trie: BackoffTrie) -> bool:
    """Whether the weights of a context and of all shorter ones have a product."""
    levels = zip(trie.level_start, trie.level_start[1:])
    heaviest = [trie.bow[first:last].max(initial=1) for first, last in levels]
    return bool(np.log10(heaviest, dtype=np.float64).sum() < MOST)


def sums_to_one(trie: BackoffTrie) -> bool:
    """Whether the probabilities of all words do so, after every context."""
    mass = trie.masses(np.arange(trie.n_words, dtype=np.int32))
    return bool((abs(mass - 1) < ROUNDING).all())
