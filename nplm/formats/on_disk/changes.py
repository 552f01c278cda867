"""Prune, limit, expand and mix n-gram models on disk, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nplm.base.blocks import blocks
from nplm.formats.on_disk.outputs import StoredTrie, stored
from nplm.models.mixtures.class_expansion import expanded
from nplm.models.mixtures.limited_vocabulary import limited
from nplm.models.mixtures.static_mixture import (
    StaticMixture,
    members_of,
    text_model,
)
from nplm.models.ngrams.backoff_lm import BackoffLM
from nplm.models.ngrams.external.cutting import CutTrie
from nplm.models.ngrams.external.estimation import PARENTS, fill_parents
from nplm.models.ngrams.external.scratch import Scratch
from nplm.models.ngrams.external.tables import NgramTables, Table
from nplm.models.ngrams.pruning import (
    check_threshold,
    choose_by_entropy,
    renormalize,
)
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie, fill_contexts_made
from nplm.models.ngrams.trie.mixed_trie import Member, fill_mixture
from nplm.text.lm.text_lm import TextLM

__all__ = [
    "expanded_lm", "limited_lm", "mixed_lm", "mixed_on_disk", "pruned_lm",
    "pruned_on_disk",
]  # fmt: skip


def pruned_lm(lm: TextLM, threshold: float, scratch: Scratch) -> TextLM:
    """Return a text model on disk with fewer n-grams; see `pruned_on_disk`."""
    source = pruned_on_disk(lm.estimator_.trie_, threshold, scratch)
    model = BackoffLM.from_trie(source.trie, boundary=lm.estimator_.boundary)
    return TextLM.from_model(
        model,
        lm.vocabulary_,
        tokenizer=lm.tokenizer_,
        boundary=lm.boundary_,
        predict_boundary=lm.predict_boundary,
    )


def limited_lm(lm: TextLM, words: Iterable[Any], scratch: Scratch) -> TextLM:
    """Return a text model on disk restricted to some words, as `limit_vocabulary`."""
    trie, kept = limited(lm, words)
    source = mixed_on_disk([trie], [1.0], scratch)
    return text_model(source.trie, kept, lm, index=False)


def expanded_lm(
    lm: TextLM,
    classes: Mapping[Any, Mapping[Any, float]],
    order: int | None,
    max_ngrams: int,
    scratch: Scratch,
) -> TextLM:
    """Return a text model on disk of the words of classes, as `expand_classes`."""
    trie, words = expanded(
        lm, classes, order=order, max_ngrams=max_ngrams, work=scratch
    )
    source = mixed_on_disk([trie], [1.0], scratch)
    return text_model(source.trie, words, lm, index=False)


def mixed_lm(
    models: Sequence[TextLM],
    weights: ArrayLike | None,
    X_val: Sequence[Any] | None,
    scratch: Scratch,
) -> StaticMixture:
    """Mix text models on disk into one, as `static_mixture`."""
    own = members_of(models, weights, X_val, work=scratch)
    source = mixed_on_disk(own.tries, own.weights.tolist(), scratch)
    lm = text_model(source.trie, own.vocabulary, models[0], index=False)
    return StaticMixture(lm, own.weights, own.n_iter)


def pruned_on_disk(trie: BackoffTrie, threshold: float, scratch: Scratch) -> StoredTrie:
    """Drop the n-grams that hardly change perplexity, as `pruned_by_entropy`.

    Parameters
    ----------
    trie : BackoffTrie
        The model, on disk.
    threshold : float
        Relative change of perplexity below which an n-gram is dropped.
    scratch : Scratch
        The temporary folder.

    Returns
    -------
    pruned : StoredTrie
        With the numbers of a model that is pruned in memory.

    Raises
    ------
    ValueError
        If `threshold` is not a finite number, 0 or more.
    """
    threshold = check_threshold(threshold)
    if threshold == 0:
        return StoredTrie(trie, scratch)
    scratch.stage("pruning", 0)
    made = _contexts_made(trie, scratch)
    keep = scratch.array("keep", np.bool_, len(trie.words))
    bow = scratch.array("weights of pruned", np.float32, len(trie.bow))
    for part in blocks(len(bow), scratch.block):
        bow[part] = trie.bow[part]
        scratch.forget(trie.bow)
    if not choose_by_entropy(trie, threshold, made, keep, bow, scratch):
        return StoredTrie(trie, scratch)
    pruned = stored(CutTrie(replace(trie, bow=bow), keep, scratch), scratch)
    renormalize(pruned.trie, scratch)
    return pruned


def mixed_on_disk(
    members: Sequence[Member],
    weights: Sequence[float],
    scratch: Scratch,
) -> StoredTrie:
    """Mix back-off models into one, as `mixed_trie`.

    Parameters
    ----------
    members : sequence of Member
        One or more, in one vocabulary, with tries on disk.
    weights : sequence of float
        0 or more, summing to 1.
    scratch : Scratch
        The temporary folder.

    Returns
    -------
    mixture : StoredTrie
        With the numbers of a mixture in memory.
    """
    tables, n_words = NgramTables(scratch), members[0].n_words
    order = max(member.order for member in members)
    scratch.stage("reading", 0)
    for member in members:
        for level in range(1, order):
            for ngrams in member.ngrams(level, scratch):
                tables.add(_to_be_filled(ngrams))
                scratch.tell(len(ngrams))
    unigrams = _to_be_filled(np.arange(n_words, dtype=np.int32)[:, np.newaxis])
    levels = tables.levels(order, unigrams, lambda table: table, distinct=False)
    mixture = stored(levels, scratch)
    scratch.stage("mixing", 0)
    fill_mixture(mixture.trie, members, weights, scratch)
    return mixture


def _to_be_filled(ngrams: NDArray[np.int32]) -> Table:
    """Return a table of n-grams without numbers."""
    return Table(ngrams, np.zeros(len(ngrams)), np.ones(len(ngrams)))


def _contexts_made(trie: BackoffTrie, scratch: Scratch) -> NDArray[np.int32]:
    """Compute ``trie.contexts_made()`` on disk."""
    parents = fill_parents(trie, scratch)
    n = trie.followers(trie.order - 1).start
    made: NDArray[np.int32] = scratch.array("contexts made", np.int32, n)

    def done() -> None:
        scratch.forget(*trie.every_array)

    fill_contexts_made(trie, parents, made, done, scratch.n_at_random)
    scratch.remove(PARENTS)
    return made
