"""Entropy pruning of back-off models (Stolcke 1998)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nplm.models.ngrams.trie.backoff_trie import BackoffTrie

__all__ = ["pruned_by_entropy"]

# If the words that do not follow a context have less probability mass than this, its
# back-off weight is only rounding error of the stored probabilities.
MIN_BACKOFF_MASS = 1e-6


def pruned_by_entropy(trie: BackoffTrie, threshold: float) -> BackoffTrie:
    """Return a model without the n-grams that hardly change its perplexity.

    Parameters
    ----------
    trie : BackoffTrie
        The model.
    threshold : float
        Relative change of perplexity below which an n-gram is dropped.

    Returns
    -------
    trie : BackoffTrie
        A new trie, or the same one if nothing is dropped.
    """
    trie = trie.verified()
    keep = np.ones(len(trie.words), dtype=bool)
    bow = trie.bow.copy()
    made = trie.contexts_made()
    stays = np.zeros(len(trie.context_word), dtype=bool)
    for level in range(trie.order - 1, 0, -1):
        first, last = trie.level_start[level : level + 2]
        contexts = np.arange(first, last, dtype=np.int32)
        own = trie.followers(level)
        # The context of each n-gram, numbered within the level.
        n_followers = np.diff(trie.start[first : last + 1])
        context = np.repeat(np.arange(len(contexts)), n_followers)
        ngrams = trie.ngrams(level)
        p = trie.prob[own].astype(np.float64)
        lower = trie.next_word_prob(ngrams[:, 1:-1], ngrams[:, -1])
        # Equation (3) of Stolcke: the mass left for words that do not follow the
        # context, in this order and in the one below.
        numerator = 1 - _sum_by(context, p, len(contexts))
        denominator = 1 - _sum_by(context, lower, len(contexts))
        drop = _loss(
            p,
            lower,
            numerator[context],
            denominator[context],
            _probability(trie, trie.context_words(contexts, level))[context],
        ) < np.log1p(threshold)
        if level + 1 < trie.order:
            # Files have a line for each context that stays: keep its own probability,
            # as SRILM does.
            extended = made[own]
            drop &= ~((extended >= 0) & stays[extended])
        keep[own] = ~drop
        changed = np.zeros(len(contexts), dtype=bool)
        changed[context[drop]] = True
        numerator += _sum_by(context[drop], p[drop], len(contexts))
        denominator += _sum_by(context[drop], lower[drop], len(contexts))
        bow[contexts[changed]] = numerator[changed] / denominator[changed]
        stays[contexts[context[~drop]]] = True
        # A context stays for the longer ones that end with it, too.
        children = trie.child_start[first : last + 1]
        parent = np.repeat(contexts, np.diff(children))
        stays[parent[stays[children[0] : children[-1]]]] = True
    if keep.all():
        return trie
    return _renormalised(replace(trie, bow=bow).pruned(keep))


def _renormalised(trie: BackoffTrie) -> BackoffTrie:
    """Recompute every back-off weight, from the shortest contexts to the longest.

    A context that lost no n-gram may still back off to one that did.
    """
    bow = trie.bow.copy()
    for level in range(1, trie.order):
        first, last = trie.level_start[level : level + 2]
        n_followers = np.diff(trie.start[first : last + 1])
        context = np.repeat(np.arange(last - first), n_followers)
        ngrams = trie.ngrams(level)
        # The shorter contexts already have their new weights.
        trie = replace(trie, bow=bow.copy())
        lower = trie.next_word_prob(ngrams[:, 1:-1], ngrams[:, -1])
        p = trie.prob[trie.followers(level)].astype(np.float64)
        left = 1 - _sum_by(context, p, last - first)
        left_below = 1 - _sum_by(context, lower, last - first)
        usable = (left >= 0) & (left_below > MIN_BACKOFF_MASS)
        bow[first:last][usable] = left[usable] / left_below[usable]
    return replace(trie, bow=bow)


def _loss(
    p: NDArray[np.float64],
    lower: NDArray[np.float64],
    numerator: NDArray[np.float64],
    denominator: NDArray[np.float64],
    p_context: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return D(P || P') of dropping each n-gram alone, equation (7) of Stolcke."""
    usable = (
        (numerator > MIN_BACKOFF_MASS) & (denominator > MIN_BACKOFF_MASS) & (lower > 0)
    )
    usable &= p > 0
    loss = np.full(len(p), np.inf)
    p, lower, numerator, denominator, p_context = (
        a[usable] for a in (p, lower, numerator, denominator, p_context)
    )
    log_before = np.log(numerator / denominator)
    log_after = np.log((numerator + p) / (denominator + lower))
    loss[usable] = -p_context * (
        p * (np.log(lower) + log_after - np.log(p))
        + numerator * (log_after - log_before)
    )
    return loss


def _probability(trie: BackoffTrie, X: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return the product of the probabilities of the words of each row."""
    probability = np.ones(len(X))
    for k in range(X.shape[1]):
        probability *= trie.next_word_prob(X[:, :k], X[:, k])
    return probability


def _sum_by(
    group: NDArray[np.int64], values: NDArray[np.float64], n: int
) -> NDArray[np.float64]:
    return np.bincount(group, weights=values, minlength=n).astype(np.float64)
