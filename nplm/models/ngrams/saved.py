"""Convert tries and counts to the arrays of a saved model, and back."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm.base.fitted import Fitted
from nplm.models.ngrams.stages.counts import MAX_TOTAL, NgramCounts
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.checks import check_ranges, check_sizes, check_structure
from nplm.models.ngrams.trie.context_trie import ContextTrie

__all__ = ["arrays_of", "restored_counts", "restored_trie"]

TYPES: dict[str, type] = {"prob": np.float32, "bow": np.float32, "counts": np.int64}


def arrays_of(trie: ContextTrie) -> dict[str, NDArray[Any]]:
    """Return the arrays of a trie by name: every field but `n_words`."""
    names = [field.name for field in fields(trie) if field.name != "n_words"]
    return {name: getattr(trie, name) for name in names}


def restored_trie(fitted: Fitted) -> BackoffTrie:
    """Return the trie of a saved model; raise ValueError if it is invalid."""
    trie: BackoffTrie = _restored(BackoffTrie, fitted)
    check_ranges(trie)
    return trie


def restored_counts(fitted: Fitted) -> NgramCounts:
    """Return the counts of a saved model; raise ValueError if they are invalid."""
    counts: NgramCounts = _restored(NgramCounts, fitted)
    check_structure(counts)
    words, longer = np.split(counts.counts, [counts.n_words])
    total = float(words.sum(dtype=np.float64))
    # A unigram may have count 0; a longer n-gram is stored only if it occurs.
    if (words < 0).any() or (longer < 1).any() or not 0 < total < MAX_TOTAL:
        raise ValueError("counts has values out of range")
    counts.check_suffixes()
    return counts


def _restored(kind: type[ContextTrie], fitted: Fitted) -> Any:
    names = [field.name for field in fields(kind) if field.name != "n_words"]
    arrays = {n: fitted.array(n, TYPES.get(n, np.int32), (None,)) for n in names}
    start = arrays["start"]
    n_words = int(start[1]) if len(start) > 1 else 0
    check_sizes(arrays, n_words)
    return kind(n_words, **arrays)
