"""Whether arrays from a file are a tree: kernels trust their sizes and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm._fitted import Fitted
from nplm.ngrams.backoff import BackoffTree
from nplm.ngrams.counts import MAX_TOTAL, NgramCounts
from nplm.ngrams.tree import ContextTree

__all__ = [
    "MOST",
    "ROUNDING",
    "arrays_of",
    "check_ranges",
    "check_sizes",
    "multiplies",
    "restored_counts",
    "restored_tree",
    "sums_to_one",
]

# A probability of 1 that was rounded may come out above it by this much.
ROUNDING = 1e-3
# log10 of a product that float64 holds.
MOST = 300.0
TYPES: dict[str, type] = {"prob": np.float32, "bow": np.float32, "counts": np.int64}


def arrays_of(tree: ContextTree) -> dict[str, NDArray[Any]]:
    """Give the arrays of a tree, by name: all that it is made of but `n_words`."""
    names = [field.name for field in fields(tree) if field.name != "n_words"]
    return {name: getattr(tree, name) for name in names}


def restored_tree(fitted: Fitted) -> BackoffTree:
    """Make the tree of a saved model, or raise ValueError where it is none."""
    tree: BackoffTree = _taken(BackoffTree, fitted)
    check_ranges(tree)
    return tree


def restored_counts(fitted: Fitted) -> NgramCounts:
    """Make the counts of a saved model, or raise ValueError where they are none."""
    counts: NgramCounts = _taken(NgramCounts, fitted)
    _check_structure(counts)
    words, longer = np.split(counts.counts, [counts.n_words])
    total = float(words.sum(dtype=np.float64))
    # A word may not have been met; a longer n-gram has.
    if (words < 0).any() or (longer < 1).any() or not 0 < total < MAX_TOTAL:
        raise ValueError("counts has numbers that no model has")
    counts.check_suffixes()
    return counts


def _taken(kind: type[ContextTree], fitted: Fitted) -> Any:
    names = [field.name for field in fields(kind) if field.name != "n_words"]
    arrays = {n: fitted.array(n, TYPES.get(n, np.int32), (None,)) for n in names}
    start = arrays["start"]
    n_words = int(start[1]) if len(start) > 1 else 0
    check_sizes(arrays, n_words)
    return kind(n_words, **arrays)


def check_sizes(
    arrays: Mapping[str, NDArray[Any]], n_words: int, *, compact: bool = False
) -> None:
    """Refuse arrays that do not belong together.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        Those of a `ContextTree` of any kind, by name.
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


def check_ranges(tree: BackoffTree) -> None:
    """Refuse numbers that no tree has: kernels take them for places and ids.

    Raises
    ------
    ValueError
        Naming the array.
    """
    _check_structure(tree)
    sound = {
        # The logarithm is rounded in an ARPA file and in a compact one.
        "prob": (tree.prob >= 0).all() and (tree.prob < 1 + ROUNDING).all(),
        "bow": (tree.bow >= 0).all() and (tree.bow < np.inf).all() and multiplies(tree),
    }
    _refuse(sound)


def _check_structure(tree: ContextTree) -> None:
    levels, children, start = tree.level_start, tree.child_start, tree.start
    n_words, words, context_word = tree.n_words, tree.words, tree.context_word
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
        and (tree.order == 1 or (context_word[1 : 1 + n_words] == ids).all()),
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


def multiplies(tree: BackoffTree) -> bool:
    """Whether the weights of a context and of all shorter ones have a product."""
    levels = zip(tree.level_start, tree.level_start[1:])
    heaviest = [tree.bow[first:last].max(initial=1) for first, last in levels]
    return bool(np.log10(heaviest, dtype=np.float64).sum() < MOST)


def sums_to_one(tree: BackoffTree) -> bool:
    """Whether the probabilities of all words do so, after every context."""
    mass = tree.masses(np.arange(tree.n_words, dtype=np.int32))
    return bool((abs(mass - 1) < ROUNDING).all())
