"""Tries as the arrays of a file, and the checks of such arrays, which kernels trust."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nplm.base.array_types import AnyArray, Counts, Floats, Ids, Mask
from nplm.base.blocks import blocks
from nplm.base.files.atomic_files import release_pages
from nplm.base.fitted import Fitted
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.context_trie import ContextTrie
from nplm.models.ngrams.trie.work import Work

# Entries checked together.
BLOCK_ENTRIES = 1 << 18
# Rounding may raise a probability of 1 by this much.
ROUNDING = 1e-3
# Largest log10 of a product of back-off weights: float64 does not overflow.
MOST = 300.0
# Types of arrays that are not int32.
TYPES: dict[str, type] = {"prob": np.float32, "bow": np.float32, "counts": np.int64}


def arrays_of(trie: ContextTrie) -> dict[str, AnyArray]:
    """Return the arrays of a trie by name: every field but `n_words`."""
    names = [field.name for field in fields(trie) if field.name != "n_words"]
    return {name: getattr(trie, name) for name in names}


def restored_trie(fitted: Fitted) -> BackoffTrie:
    """Return the trie of a saved model; raise ValueError if it is invalid."""
    trie: BackoffTrie = restored(BackoffTrie, fitted)
    check_structure(trie)
    check_values(trie)
    return trie


def restored(kind: type[ContextTrie], fitted: Fitted) -> Any:
    """Return the trie of these items; raise ValueError if sizes do not match."""
    names = [field.name for field in fields(kind) if field.name != "n_words"]
    arrays = {n: fitted.array(n, TYPES.get(n, np.int32), (None,)) for n in names}
    start = arrays["start"]
    n_words = int(start[1]) if len(start) > 1 else 0
    check_sizes(arrays, n_words)
    return kind(n_words, **arrays)


def check_sizes(arrays: Mapping[str, AnyArray], n_words: int) -> None:
    """Raise ValueError if the sizes of the arrays of a trie do not match."""
    n_contexts, n_ngrams = len(arrays["context_word"]), len(arrays["words"])
    sizes = {"start": n_contexts + 1, "bow": n_contexts}
    sizes |= {"prob": n_ngrams, "counts": n_ngrams}
    levels = arrays["level_start"].astype(np.int64)
    # Every word is a follower and a child of the root.
    first = [0, 1] if len(levels) == 2 else [0, 1, 1 + n_words]
    sound = (
        len(levels) >= 2
        and levels[: len(first)].tolist() == first
        and bool((np.diff(levels) >= 0).all())
        and levels[-1] == n_contexts
        and len(arrays["child_start"]) == n_contexts + 1
        and all(len(a) == sizes.get(name, len(a)) for name, a in arrays.items())
        and arrays["start"][-1] == n_ngrams >= n_words >= 1
    )
    if not sound:
        raise ValueError("the sizes of its arrays do not match")


def check_values(trie: BackoffTrie) -> None:
    """Raise ValueError if probabilities or weights are out of range."""
    sound = {"prob": are_probabilities(trie.prob)}
    sound["bow"] = are_weights(trie.bow) and multiplies(trie)
    _refuse(sound)


def check_structure(trie: ContextTrie) -> None:
    """Raise ValueError if offsets or ids are out of range or not sorted."""
    levels, children, start = trie.level_start, trie.child_start, trie.start
    n_words, words, context_word = trie.n_words, trie.words, trie.context_word
    ids = np.arange(n_words, dtype=np.int32)
    sound = {
        "child_start": _is_sorted(children)
        # The children of a level form the next level.
        and (children[levels[:-1]] == levels[1:]).all()
        and children[-1] == levels[-1],
        "start": start[0] == 0 and _is_sorted(start) and start[1] == n_words,
        "context_word": context_word[0] == 0
        and _are_ids(context_word, n_words)
        and (trie.order == 1 or (context_word[1 : 1 + n_words] == ids).all()),
        "words": _are_ids(words, n_words) and (words[:n_words] == ids).all(),
    }
    _refuse(sound)
    # This check needs valid offsets.
    for name, values, offsets in (
        ("context_word", context_word, children),
        ("words", words, start),
    ):
        if not _increases(_parts(values), _parts(offsets)):
            raise ValueError(f"{name} is not sorted")


def every(test: Callable[..., Mask], *arrays: AnyArray) -> bool:
    """Return whether a test holds for all blocks of arrays; release mapped ones."""
    for part in blocks(len(arrays[0]), BLOCK_ENTRIES):
        if not test(*(array[part] for array in arrays)).all():
            return False
        release_pages(*arrays)
    return True


def _refuse(sound: Mapping[str, object]) -> None:
    for name, is_sound in sound.items():
        if not is_sound:
            raise ValueError(f"{name} has values out of range")


def _are_ids(values: Ids, n_words: int) -> bool:
    return every(lambda ids: (ids >= 0) & (ids < n_words), values)


def _is_sorted(values: Ids) -> bool:
    return every(lambda this, following: this <= following, values[:-1], values[1:])


def are_probabilities(values: NDArray[np.float32]) -> bool:
    """Return whether these are probabilities, up to the rounding of a file."""
    return every(lambda p: (p >= 0) & (p < 1 + ROUNDING), values)


def are_weights(values: NDArray[np.float32]) -> bool:
    """Return whether these are back-off weights."""
    return every(lambda b: (b >= 0) & (b < np.inf), values)


def multiplies(trie: BackoffTrie) -> bool:
    """Return whether products of back-off weights of nested contexts are finite."""
    levels = pairwise(trie.level_start)
    return _are_bounded([_heaviest(_parts(trie.bow[a:b])) for a, b in levels])


def _heaviest(weights: Iterable[AnyArray]) -> float:
    return max((float(part.max(initial=1)) for part in weights), default=1.0)


def _are_bounded(heaviest: list[float]) -> bool:
    """Return whether the product of the largest weights of each level is finite."""
    return bool(np.log10(heaviest).sum() < MOST)


def _increases(values: Iterable[NDArray[Any]], begins: Iterator[NDArray[Any]]) -> bool:
    """Return whether numbers strictly increase, but where new groups begin.

    Both come in blocks; `begins` has the index of the first of each group, in order.
    """
    before, first, rest = -1, 0, np.empty(0, dtype=np.int64)
    for part in values:
        end = first + len(part)
        groups = [rest]
        while not len(groups[-1]) or groups[-1][-1] < end:
            block = next(begins, None)
            if block is None:
                break
            groups.append(block[np.diff(block, prepend=-1) > 0])
        rest = np.concatenate(groups)
        at = np.searchsorted(rest, end)
        is_larger = np.diff(part, prepend=before) > 0
        is_larger[rest[:at] - first] = True
        if not is_larger.all():
            return False
        rest, before, first = rest[at:], part[-1], end
    return True


def _parts(values: AnyArray) -> Iterator[AnyArray]:
    """Yield an array in blocks, and release it if it is mapped."""
    for part in blocks(len(values), BLOCK_ENTRIES):
        yield values[part]
        release_pages(values)


def sums_to_one(trie: BackoffTrie) -> bool:
    """Whether the probabilities of all words sum to 1 after every context."""
    mass = trie.masses(np.arange(trie.n_words, dtype=np.int32))
    return bool((abs(mass - 1) < ROUNDING).all())


class SuffixTrie(Protocol):
    """n-grams in levels by length, sorted from the newest word to the oldest.

    Numbers that are out of range raise a ValueError as they are read.
    """

    n_ngrams: Counts

    @property
    def order(self) -> int:
        """Number of words in the longest n-gram."""

    def word_values(self) -> tuple[Floats, Floats]:
        """Return the probability and the weight of each word."""

    def n_nodes(self, i: int) -> int:
        """Return the number of nodes of ``i + 2`` words."""

    def starts(self, i: int, size: int) -> Iterator[Counts]:
        """Yield the first of level `i` of each shorter node, and the end, in blocks."""

    def nodes(self, i: int, begin: int, end: int) -> tuple[NDArray[Any], ...]:
        """Return the oldest words of nodes, probabilities (NaN without) and weights."""

    def settled(self, table: object) -> Any:
        """Return n-grams with their final ids and numbers."""
        return table

    def mapped(self, i: int) -> list[NDArray[Any]]:
        """Return the arrays of level `i`, whose memory a pass over it releases."""


def check_suffix_trie(trie: SuffixTrie, size: int) -> None:
    """Raise ValueError if words are not sorted, or anything is out of range.

    Memory does not grow with the n-grams, which are unpacked `size` at a time.
    """
    work = Work()
    work.stage("checking", sum(map(trie.n_nodes, range(trie.order - 1))))
    heaviest = [_heaviest([trie.word_values()[1]])]
    heaviest += [_checked_level(trie, i, size, work) for i in range(trie.order - 1)]
    if not _are_bounded(heaviest):
        raise ValueError("its n-grams have weights whose product overflows")


def _checked_level(trie: SuffixTrie, i: int, size: int, work: Work) -> float:
    """Check the nodes of ``i + 2`` words; return the largest weight, at least 1."""
    n_ngrams, heaviest = 0, 1.0

    def words() -> Iterator[NDArray[Any]]:
        nonlocal n_ngrams, heaviest
        for part in blocks(trie.n_nodes(i), size):
            oldest, prob, bow = trie.nodes(i, part.start, part.stop)
            n_ngrams += int(np.count_nonzero(~np.isnan(prob)))
            heaviest = max(heaviest, _heaviest([bow]))
            yield oldest
            release_pages(*trie.mapped(i))
            work.advance(len(oldest))

    begins = trie.starts(i, size)
    is_sorted = _increases(words(), begins)
    for _ in begins:  # checks the rest
        pass
    if not is_sorted or n_ngrams != trie.n_ngrams[i + 1]:
        raise ValueError(f"in its {i + 2}-grams, words are not sorted")
    return heaviest


def offsets_in_order(
    offsets: Iterable[Counts], n_words: int, end: int
) -> Iterator[Counts]:
    """Yield blocks of offsets; raise ValueError unless they go from 0 to `end`."""
    before = 0
    for block in offsets:
        # Not by differences, which overflow.
        if block[0] < before or (block[1:] < block[:-1]).any() or block[-1] > end:
            break
        before = int(block[-1])
        yield block
    else:
        if before == end:
            return
    raise ValueError(f"in its {n_words}-grams, offsets are out of range")
