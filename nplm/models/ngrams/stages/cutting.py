"""Drop n-grams of a trie, and contexts that no longer lead to any."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm.base.blocks import blocks
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.context_trie import blocks_of_contexts
from nplm.models.ngrams.trie.work import Work

__all__ = ["cut"]


def cut(trie: BackoffTrie, keep: NDArray[np.bool_], work: Work) -> BackoffTrie:
    """Return a trie of some n-grams, and of the contexts that lead to any.

    - `keep` (n_ngrams,): the n-grams to keep. Unigrams are kept in any case, and set to
      True

    Returns `trie`: n-grams may lack their suffixes, and contexts may be no n-grams.
    """
    trie = trie.verified()
    keep[: trie.n_words] = True
    start, useful = _kept_followers(trie, keep, work)
    _keep_parents(trie, useful, work)
    # The number of each context that stays.
    number = work.array(np.int32, len(useful) + 1)
    _count_up_to(useful, number, work)
    n_contexts, n_ngrams = int(number[-1]), int(start[-1])
    arrays = {
        name: work.array(getattr(trie, name).dtype, size)
        for name, size in {
            "context_word": n_contexts,
            "child_start": n_contexts + 1,
            "start": n_contexts + 1,
            "bow": n_contexts,
            "words": n_ngrams,
            "prob": n_ngrams,
        }.items()
    }
    own = {
        "context_word": trie.context_word,
        "bow": trie.bow,
        "start": start,
    }
    n = 0
    for part in blocks(len(useful), work.block):
        stays = useful[part]
        at = slice(n, n + int(np.count_nonzero(stays)))
        for name, values in own.items():
            arrays[name][at] = values[part][stays]
        arrays["child_start"][at] = number[trie.child_start[part][stays]]
        n = at.stop
        work.forget(*trie.every_array)
    arrays["child_start"][-1], arrays["start"][-1] = n_contexts, n_ngrams
    n = 0
    for part in blocks(len(keep), work.block):
        stays = keep[part]
        at = slice(n, n + int(np.count_nonzero(stays)))
        for name in ("words", "prob"):
            arrays[name][at] = getattr(trie, name)[part][stays]
        n = at.stop
        work.forget(*trie.every_array)
    level_start = number[trie.level_start]
    work.drop(start, useful, number)
    return BackoffTrie(trie.n_words, level_start, **arrays)


def _count_up_to(flags: NDArray[np.bool_], out: NDArray[np.int32], work: Work) -> None:
    """Fill in the number of flags set before each index, and in total."""
    n = 0
    for part in blocks(len(flags), work.block):
        counted = n + np.cumsum(flags[part], dtype=np.int32)
        out[part.start + 1 : part.stop + 1] = counted
        n = counted[-1]
        work.forget()


def _kept_followers(
    trie: BackoffTrie, keep: NDArray[np.bool_], work: Work
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Return the first kept n-gram of each context, and whether it has any."""
    n_contexts, n = len(trie.context_word), 0
    kept_start = work.array(np.int32, n_contexts + 1)
    useful = work.array(np.bool_, n_contexts)
    for first, last in blocks_of_contexts(trie.start, 0, n_contexts, work.block):
        start = trie.start[first : last + 1]
        n_before = _sums(keep[start[0] : start[-1]])[start - start[0]]
        kept_start[first + 1 : last + 1] = n + n_before[1:]
        useful[first:last] = np.diff(n_before) > 0
        n += int(n_before[-1])
        work.forget(*trie.every_array)
    return kept_start, useful


def _keep_parents(trie: BackoffTrie, useful: NDArray[np.bool_], work: Work) -> None:
    """Keep all words as contexts, and contexts with a child that stays."""
    levels = trie.level_start.tolist()
    useful[: levels[min(2, trie.order)]] = True
    for level in range(trie.order - 2, 1, -1):
        own = levels[level], levels[level + 1]
        for first, last in blocks_of_contexts(trie.child_start, *own, work.block):
            children = trie.child_start[first : last + 1]
            n_before = _sums(useful[children[0] : children[-1]])
            useful[first:last] |= np.diff(n_before[children - children[0]]) > 0
            work.forget(*trie.every_array)


def _sums(flags: NDArray[Any]) -> NDArray[np.int32]:
    """Return the number of flags set before each index, and in total."""
    n_before = np.zeros(len(flags) + 1, dtype=np.int32)
    np.cumsum(flags, out=n_before[1:])
    return n_before
