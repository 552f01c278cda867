"""Drop n-grams of a trie: those chosen, or by entropy (Stolcke 1998)."""

from __future__ import annotations

import numbers
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nplm.base.array_types import AnyArray, Floats, Ids, Index, Mask
from nplm.base.blocks import blocks
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.context_trie import blocks_of_contexts
from nplm.models.ngrams.trie.work import Work

# If the words that do not follow a context have less probability mass than this, its
# back-off weight is only rounding error of the stored probabilities.
MIN_BACKOFF_MASS = 1e-6
# The arrays of a trie with an entry for each context, and for each n-gram.
OF_CONTEXTS = "context_word", "child_start", "start", "bow"
OF_NGRAMS = "words", "prob"


def pruned_by_entropy(trie: BackoffTrie, threshold: float, work: Work) -> BackoffTrie:
    """Return a trie without the n-grams that hardly change its perplexity.

    It is the same trie if nothing is dropped.
    """
    if not isinstance(threshold, numbers.Real) or not 0 <= threshold < np.inf:
        raise ValueError(f"threshold must be 0 or more, got {threshold!r}.")
    if threshold == 0:
        return trie
    work.stage("pruning", len(trie.words) - trie.n_words)
    keep = work.array(np.bool_, len(trie.words))
    bow = work.array(np.float32, len(trie.bow))
    for part in blocks(len(bow), work.block):
        bow[part] = trie.bow[part]
        work.release_pages(trie.bow)
    if not choose_by_entropy(trie, float(threshold), keep, bow, work):
        return trie
    pruned = cut(replace(trie, bow=bow), keep, work)
    renormalize(pruned, work)
    return pruned


def choose_by_entropy(
    trie: BackoffTrie,
    threshold: float,
    keep: Mask,
    bow: NDArray[np.float32],
    work: Work,
) -> int:
    """Choose the n-grams to keep, block by block, from the longest to the shortest.

    Fills `keep` (n_ngrams,), and replaces the weights in `bow` (n_contexts,) of
    contexts that lose an n-gram.
    """
    n_dropped, context_of = 0, trie.contexts_made(work)
    stays = work.array(np.bool_, len(trie.context_word))
    probability = _probabilities(trie, context_of, work)
    keep[: trie.n_words] = True
    for level in range(trie.order - 1, 0, -1):
        for block in trie.blocks(level, work.block):
            context, place, p, lower, numerator, denominator = _masses(
                trie, level, block
            )
            n = len(numerator)
            drop = _loss(
                p,
                lower,
                numerator[context],
                denominator[context],
                probability[slice(*block)][context],
            ) < np.log1p(threshold)
            if level + 1 < trie.order:
                # Files have a line for each context that stays: keep its own
                # probability, as SRILM does.
                drop &= ~_at(stays, context_of[place], work)
            keep[place] = ~drop
            n_dropped += int(np.count_nonzero(drop))
            changed = np.zeros(n, dtype=bool)
            changed[context[drop]] = True
            numerator += _sum_by(context[drop], p[drop], n)
            denominator += _sum_by(context[drop], lower[drop], n)
            # Contexts are slices: mapped arrays are written in place.
            bow[slice(*block)][changed] = numerator[changed] / denominator[changed]
            own_stay = stays[slice(*block)]
            own_stay[context[~drop]] = True
            # A context stays for the longer ones that end with it, too.
            children = trie.child_start[block[0] : block[1] + 1]
            parent = np.repeat(np.arange(n), np.diff(children))
            own_stay[parent[stays[children[0] : children[-1]]]] = True
            work.advance(len(p))
            work.release_pages(*trie.every_array, context_of, keep, bow)
    return n_dropped


def renormalize(trie: BackoffTrie, work: Work) -> None:
    """Recompute every back-off weight, from the shortest contexts to the longest.

    A context that lost no n-gram may still back off to one that did.
    """
    work.stage("normalizing", len(trie.words) - trie.n_words)
    for level in range(1, trie.order):
        for block in trie.blocks(level, work.block):
            # The shorter contexts already have their new weights.
            *_, p, _, left, left_below = _masses(trie, level, block)
            usable = (left >= 0) & (left_below > MIN_BACKOFF_MASS)
            trie.bow[slice(*block)][usable] = left[usable] / left_below[usable]
            work.advance(len(p))
            work.release_pages(*trie.every_array)


def _masses(
    trie: BackoffTrie, level: int, block: tuple[int, int]
) -> tuple[Index, slice, Floats, Floats, Floats, Floats]:
    """Return the n-grams after contexts, and what these leave to other words.

    Returns the context of each n-gram, the place, the probability p and that of the
    order below; then, for each context, 1 less the sum of each (equation (3) of
    Stolcke).
    """
    words, context, place = trie.after(level, *block)
    p = trie.prob[place].astype(np.float64)
    lower = trie.next_word_prob(words[context][:, 1:], trie.words[place])
    left, left_below = (
        1 - _sum_by(context, values, len(words)) for values in (p, lower)
    )
    return context, place, p, lower, left, left_below


def _probabilities(trie: BackoffTrie, context_of: Ids, work: Work) -> Floats:
    """Return p(c w) = p(c) p(w | c), the probability of the words of each context."""
    out = work.array(np.float64, len(trie.context_word))
    out[0] = 1
    if trie.order > 1:
        out[1 : 1 + trie.n_words] = trie.prob[: trie.n_words]
    levels = trie.level_start.tolist()
    for level in range(2, trie.order):
        for window in blocks(levels[level + 1] - levels[level], work.n_at_once):
            first, last = levels[level] + window.start, levels[level] + window.stop
            own_out = np.full(last - first, np.nan)
            for block in trie.blocks(level - 1, work.block):
                start = trie.start[block[0] : block[1] + 1]
                place = slice(int(start[0]), int(start[-1]))
                longer = context_of[place]
                rows = np.flatnonzero((longer >= first) & (longer < last))
                context = np.repeat(np.arange(block[0], block[1]), np.diff(start))
                prob = out[slice(*block)][context[rows] - block[0]]
                own_out[longer[rows] - first] = prob * trie.prob[place][rows]
                work.release_pages(*trie.every_array, context_of)
            # Contexts that are no n-grams, as at the beginning of a text.
            rest = np.flatnonzero(np.isnan(own_out))
            for part in blocks(len(rest), work.n_at_random):
                words = trie.context_words(first + rest[part], level)
                own_out[rest[part]] = _probability(trie, words)
                work.release_pages(*trie.every_array)
            out[first:last] = own_out
            work.release_pages()
    return out


def _at(flags: Mask, rows: Ids, work: Work) -> Mask:
    """Return the flags of some rows, False for negative ones."""
    out = np.zeros(len(rows), dtype=bool)
    for part in blocks(len(rows), work.n_at_random):
        out[part] = (rows[part] >= 0) & flags[rows[part]]
        work.release_pages()
    return out


def _loss(
    p: Floats, lower: Floats, numerator: Floats, denominator: Floats, p_context: Floats
) -> Floats:
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


def _probability(trie: BackoffTrie, X: Ids) -> Floats:
    """Return the product of the probabilities of the words of each row."""
    probability = np.ones(len(X))
    for k in range(X.shape[1]):
        probability *= trie.next_word_prob(X[:, :k], X[:, k])
    return probability


def _sum_by(group: Index, values: Floats, n: int) -> Floats:
    return np.bincount(group, weights=values, minlength=n).astype(np.float64)


def cut(trie: BackoffTrie, keep: Mask, work: Work) -> BackoffTrie:
    """Return a trie of the n-grams in `keep`, of all words, and of contexts to any.

    N-grams may then lack their suffixes, and contexts may be no n-grams.
    """
    keep[: trie.n_words] = True
    start, useful = _kept_followers(trie, keep, work)
    _keep_parents(trie, useful, work)
    # The number of each context that stays.
    number = work.array(np.int32, len(useful) + 1)
    _count_up_to(useful, number, work)
    n_contexts, n_ngrams = int(number[-1]), int(start[-1])
    sizes = dict.fromkeys(OF_CONTEXTS, n_contexts) | dict.fromkeys(OF_NGRAMS, n_ngrams)
    sizes |= {"child_start": n_contexts + 1, "start": n_contexts + 1}
    columns = {name: getattr(trie, name) for name in sizes} | {"start": start}
    arrays = {n: work.array(columns[n].dtype, size) for n, size in sizes.items()}
    for flags, names in ((useful, OF_CONTEXTS), (keep, OF_NGRAMS)):
        n = 0
        for part in blocks(len(flags), work.block):
            stays = flags[part]
            at = slice(n, n + int(np.count_nonzero(stays)))
            for name in names:
                values = columns[name][part][stays]
                arrays[name][at] = number[values] if name == "child_start" else values
            n = at.stop
            work.release_pages(*trie.every_array)
    arrays["child_start"][-1], arrays["start"][-1] = n_contexts, n_ngrams
    level_start = number[trie.level_start]
    work.drop(start, useful, number)
    return BackoffTrie(trie.n_words, level_start, **arrays)


def _count_up_to(flags: Mask, out: Ids, work: Work) -> None:
    """Fill in the number of flags set before each index, and in total."""
    n = 0
    for part in blocks(len(flags), work.block):
        counted = n + np.cumsum(flags[part], dtype=np.int32)
        out[part.start + 1 : part.stop + 1] = counted
        n = counted[-1]
        work.release_pages()


def _kept_followers(trie: BackoffTrie, keep: Mask, work: Work) -> tuple[Ids, Mask]:
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
        work.release_pages(*trie.every_array)
    return kept_start, useful


def _keep_parents(trie: BackoffTrie, useful: Mask, work: Work) -> None:
    """Keep all words as contexts, and contexts with a child that stays."""
    levels = trie.level_start.tolist()
    useful[: levels[min(2, trie.order)]] = True
    for level in range(trie.order - 2, 1, -1):
        ends = levels[level], levels[level + 1]
        for first, last in blocks_of_contexts(trie.child_start, *ends, work.block):
            children = trie.child_start[first : last + 1]
            n_before = _sums(useful[children[0] : children[-1]])
            useful[first:last] |= np.diff(n_before[children - children[0]]) > 0
            work.release_pages(*trie.every_array)


def _sums(flags: AnyArray) -> Ids:
    """Return the number of flags set before each index, and in total."""
    n_before = np.zeros(len(flags) + 1, dtype=np.int32)
    np.cumsum(flags, out=n_before[1:])
    return n_before
