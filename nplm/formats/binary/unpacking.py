"""Unpack the n-grams of a mapped file to disk, in bounded memory."""

from __future__ import annotations

import numpy as np

from nplm.models.ngrams.external.estimation import PARENTS, fill_parents
from nplm.models.ngrams.external.scratch import Scratch
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.checks import check_structure
from nplm.models.ngrams.trie.context_trie import ContextTrie
from nplm.models.ngrams.trie.hash_table import BUCKET_BYTES, HashTable, fill_keys
from nplm.models.ngrams.trie.packed_trie import PackedTrie, fill_values

__all__ = ["structure_on_disk", "with_values"]


def structure_on_disk(packed: PackedTrie, scratch: Scratch) -> ContextTrie:
    """Unpack a structure to disk; raise ValueError if it is damaged."""
    n_contexts, n_ngrams = int(packed.level_start[-1]), int(packed.n_ngrams.sum())
    sizes = {"context_word": n_contexts, "child_start": n_contexts + 1}
    sizes |= {"start": n_contexts + 1, "words": n_ngrams}
    prefix = _prefix(scratch)
    own = {n: scratch.array(f"{prefix} {n}", np.int32, sizes[n]) for n in sizes}
    scratch.stage("unpacking", 0)
    packed.fill(own, lambda: scratch.forget(packed.words))
    structure = ContextTrie(packed.n_words, packed.level_start, **own)
    check_structure(structure)
    if structure.n_ngrams.tolist() != packed.n_ngrams.tolist():
        raise ValueError("n_ngrams has values out of range")
    return structure


def with_values(
    structure: ContextTrie, table: HashTable, scratch: Scratch, window_bytes: int
) -> BackoffTrie:
    """Return the trie of a structure on disk and a hash table.

    The buckets of the table are read in windows of `window_bytes`, for which all
    n-grams are read once each: see `fill_values`.
    """
    n_windows = -(-len(table.buckets) // max(window_bytes, BUCKET_BYTES))
    n_contexts = len(structure.context_word)
    prefix = _prefix(scratch)
    prob = scratch.array(f"{prefix} prob", np.float32, len(structure.words))
    bow = scratch.array(f"{prefix} bow", np.float32, n_contexts)
    bow[0] = 1  # the root has no weight
    parent = fill_parents(structure, scratch)
    keys = scratch.array("keys", np.uint64, n_contexts)
    fill_keys(structure, parent, keys, scratch.forget, scratch.block)

    def done() -> None:
        scratch.forget(table.buckets)

    own = structure, table, keys, prob, bow
    fill_values(*own, done, scratch.block, n_windows)
    for name in (PARENTS, "keys"):
        scratch.remove(name)
    arrays = structure.context_word, structure.child_start, structure.start
    levels = structure.level_start
    return BackoffTrie(structure.n_words, levels, *arrays, structure.words, prob, bow)


def _prefix(scratch: Scratch) -> str:
    """Return a prefix of names that are not taken, by another trie that is unpacked."""
    return f"unpacked {len(scratch.arrays)}"
