"""n-grams: counts, estimation, look-ups, relative frequencies."""

from dataclasses import dataclass, fields

import numpy as np

from tests.reference import Int32


@dataclass
class Trie:
    """The arrays of a context trie (see ``nplm.models.ngrams.trie.context_trie``)."""

    level_start: Int32
    context_word: Int32
    child_start: Int32
    start: Int32
    words: Int32

    @classmethod
    def of(cls, trie):
        """Take them from a trie that has more besides."""
        return cls(*(getattr(trie, field.name) for field in fields(cls)))

    def own(self, context):
        """Where the followers of a context stand."""
        return slice(*self.start[context : context + 2])

    def contexts(self, x):
        """Return the contexts of the trie that end the row x, shortest first."""
        path = [0]
        for word in x[::-1]:
            children = np.arange(*self.child_start[path[-1] : path[-1] + 2])
            found = children[self.context_word[children] == word]
            if len(found) == 0:
                break
            path.append(int(found[0]))
        return path


def rank_pairs(left, right, n_right, start, words, rank):
    """Return each distinct pair (left, right) its number in sorted order."""
    key = left.astype(np.int64) * n_right + right
    pairs, rank[:] = np.unique(key, return_inverse=True)
    words[: len(pairs)] = pairs % n_right
    start[:] = np.searchsorted(pairs // n_right, np.arange(len(start)))
    return len(pairs)


def rename(words, new_ids, out):
    """Give words their new ids."""
    out[:] = new_ids[words]


def record_bytes(n_columns, n_bits):
    """Return the size of a record of `pack_by_range`."""
    return -(-(n_columns * n_bits + 32) // 8)


def pack_by_range(ngrams, values, column, range_of_word, n_bits, starts, records):
    """Pack the n-grams that have a value by the range of one of their words."""
    rows = np.flatnonzero(~np.isnan(values))
    ranges = range_of_word[ngrams[rows, column]]
    starts[:] = np.searchsorted(np.sort(ranges), np.arange(len(starts)))
    rows = rows[np.argsort(ranges, kind="stable")]
    words = ngrams[rows, :, np.newaxis] >> np.arange(n_bits) & 1
    words = words.reshape(len(rows), n_bits * ngrams.shape[1])
    numbers = values[rows].view(np.uint32)[:, np.newaxis] >> np.arange(32) & 1
    bits = np.concatenate([words, numbers], axis=1)
    packed = np.packbits(bits.astype(np.uint8), axis=1, bitorder="little").ravel()
    records[: len(packed)] = packed


def unpack_rows(records, n_bits, places, ngrams, values):
    """Unpack the records of `pack_by_range`, the rows of each part to its place."""
    n, n_columns = ngrams.shape
    rows = [np.arange(first, first + own) for first, own in places]
    at = np.concatenate(rows) if rows else np.arange(0)
    rows = records.reshape(n, record_bytes(n_columns, n_bits))
    bits = np.unpackbits(rows, axis=1, bitorder="little")
    words, numbers = np.split(bits, [n_columns * n_bits], axis=1)
    words = words.reshape(n, n_columns, n_bits)
    ngrams[at] = words @ (1 << np.arange(n_bits))
    numbers = np.packbits(numbers[:, :32], axis=1, bitorder="little")
    values[at] = numbers.view("<f4")[:, 0]


def continuation_counts(trie, counts, slot, out):
    """Count the distinct words before each n-gram, N1+(. c w)."""
    out[:] = counts
    for c in range(len(trie.child_start) - 1):
        longer = slice(*trie.start[trie.child_start[c : c + 2]])
        if longer.start < longer.stop:
            own = trie.own(c)
            before = np.bincount(trie.words[longer], minlength=len(slot))
            out[own] = before[trie.words[own]]


def kneser_ney(
    trie,
    level,
    parent,
    first,
    last,
    counts,
    discounts,
    tested,
    min_counts,
    interpolate,
    spread,
    impossible,
    lower,
    prob,
    bow,
):
    """Fill the probability of n-grams and the weight of their contexts."""
    n_words = len(lower)
    assert impossible == -1  # tests of n-grams without marks have it

    def estimate(c, lower):
        own = trie.own(c)
        a, low = counts[own], lower[trie.words[own]]
        D = np.where(a > 0, discounts[level, np.clip(a, 1, 3) - 1], 0.0)
        if a.sum() == 0:
            bow[c], prob[own] = 1, low
            return
        kept = (a > 0) & (tested[own] >= min_counts[level])
        gamma = np.where(kept, D, a if spread else D).sum() / a.sum()
        p = (a - D) / a.sum()
        if interpolate or kept.sum() == n_words:
            p = p + gamma * low
        if kept.sum() == n_words or (interpolate and spread):
            bow[c] = gamma
        else:
            bow[c] = (1 - p[kept].sum()) / (1 - low[kept].sum())
        prob[own] = np.where(kept, p, bow[c] * low)

    if level == 0:
        estimate(0, np.full(n_words, 1 / n_words))
        return
    for c in range(first, last):
        while c >= trie.child_start[parent + 1]:
            parent += 1
        own = trie.own(parent)
        p_lower = np.zeros(n_words)
        p_lower[trie.words[own]] = prob[own]
        estimate(c, p_lower)


def backoff_distribution(trie, prob, bow, X, path, out):
    """Probability of every word after each context."""
    for row, x in enumerate(X):
        out[row] = prob[: out.shape[1]]
        for c in trie.contexts(x)[1:]:
            own = trie.own(c)
            out[row] *= bow[c]
            out[row, trie.words[own]] = prob[own]


def backoff_prob(trie, prob, bow, X, words, path, out):
    """Probability of some words after each context."""
    rows = np.empty((len(X), trie.start[1]))
    backoff_distribution(trie, prob, bow, X, path, rows)
    out[:] = np.take_along_axis(rows, words, axis=1)


def backoff_masses(trie, prob, bow, parent, chosen, first, last, mass):
    """Probability of all chosen words together, after contexts `first` to `last`."""

    def distribution(c):
        own = trie.own(c)
        p = prob[own].astype(np.float64) if c == 0 else bow[c] * distribution(parent[c])
        p[trie.words[own]] = prob[own]
        return p

    for c in range(first, last):
        mass[c] = distribution(c)[chosen.astype(bool)].sum()


def longest_contexts(trie, X, path, out):
    """Find the longest context of the trie that ends each row."""
    out[:] = [trie.contexts(x)[-1] for x in X]


def relative_frequencies(trie, counts, totals, X, y, path, out):
    """Fill ``out[i, k]`` with p_k(y[i]) of the paper's mixture."""
    n_words = trie.start[1]
    out[:, 0] = 1 / n_words
    for row, x in enumerate(X):
        seen = trie.contexts(x)
        seen = [c for c in seen if totals[c] > 0]
        for k, c in enumerate(seen):
            own = trie.own(c)
            out[row, k + 1] = counts[own][trie.words[own] == y[row]].sum() / totals[c]
        out[row, len(seen) + 1 :] = out[row, len(seen)]


def context_frequencies(trie, totals, X, path, out):
    """Fill `out` with how often each whole context was seen, 0 if never."""
    for row, x in enumerate(X):
        seen = trie.contexts(x)
        out[row] = totals[seen[-1]] if len(seen) == len(x) + 1 else 0


def mixed_frequencies(trie, counts, totals, weights, X, path, out):
    """Fill each row of `out` with the mixture of all orders for every word."""
    members = np.empty((len(X), weights.shape[1]))
    for word in range(out.shape[1]):
        y = np.full(len(X), word, dtype=np.int32)
        relative_frequencies(trie, counts, totals, X, y, path, members)
        out[:, word] = (weights * members).sum(axis=1)


def contexts_made(trie, parent, first, last, slot, path, made):
    """For each n-gram (c, w), the number of the context c w, or -1."""
    spelled = [()]
    for c in range(1, len(trie.context_word)):
        spelled.append((int(trie.context_word[c]), *spelled[parent[c]]))
    number = {gram: c for c, gram in enumerate(spelled)}
    for c in range(first, last):
        gram = spelled[c]
        for i in range(trie.start[c], min(trie.start[c + 1], len(made))):
            made[i] = number.get((*gram, int(trie.words[i])), -1)


def weights_in_turn(words, next_context, bow, first, weight):
    """Return n-grams (c, w) the weights of the contexts c w, which stand in turn."""
    for i, word in enumerate(words):
        made = int(next_context[word])
        if made >= 0:
            next_context[word] += 1
            if 0 <= made - first < len(bow):
                weight[i] = bow[made - first]


def find_contexts(trie, X, path, out):
    """Find the number of each whole context, or -1."""
    for row, x in enumerate(X):
        contexts = trie.contexts(x)
        out[row] = contexts[-1] if len(contexts) == len(x) + 1 else -1


def find_ngrams(trie, contexts, y, out):
    """Index of each n-gram ``(contexts[i], y[i])`` in `words`, or -1."""
    out[:] = -1
    for i in np.flatnonzero(contexts >= 0):
        own = trie.own(contexts[i])
        place = np.flatnonzero(trie.words[own] == y[i])
        if len(place):
            out[i] = own.start + place[0]


def quantized_prob(trie, X, y, out):
    # Here `trie` is a QuantizedTrie, whose numbers are unpacked.
    levels = []
    for i, level in enumerate(trie.levels):
        words, prob, bow, _ = trie.records(i, 0, level.n)
        ends = i + 1 == len(trie.levels)
        offsets = None if ends else np.concatenate(list(trie.offsets(i)))
        levels.append((words, prob, None if ends else bow, offsets))

    def found(newest, *older):
        """Probability and weight of the n-gram, with ever more words before it."""
        first, last = trie.start[newest : newest + 2]
        for level, own, word in zip(levels, trie.levels, older):
            words, prob, bow, offsets = level
            at = first + np.searchsorted(words[first:last], word)
            if at == last or words[at] != word:
                return
            weight = 1.0 if bow is None else own.bow[bow[at]]
            yield own.prob[prob[at]], weight
            if offsets is not None:
                first, last = offsets[at : at + 2]

    for row, (context, word) in enumerate(zip(X[:, ::-1], y)):
        p, n_words = trie.prob[word], 0
        for k, (longer, _) in enumerate(found(word, *context), 1):
            if longer >= 0:
                p, n_words = longer, k
        weights = [trie.bow[context[0]]] + [bow for _, bow in found(*context)]
        out[row] = np.float64(p) * np.prod(weights[n_words:], dtype=np.float64)


def pack_windows(stream, n_context, boundary, n_bits, rows):
    """Write the row of each word that has `n_context` words before it."""
    per_number = 64 // n_bits
    for i, row in enumerate(rows):
        words = stream[i : i + n_context][::-1].tolist()
        if boundary in words:
            nearest = words.index(boundary)
            words[nearest:] = [boundary] * (n_context - nearest)
        words.append(int(stream[i + n_context]))
        for column in range(len(row)):
            number = 0
            for word in words[column * per_number : (column + 1) * per_number]:
                number = number << n_bits | word
            row[column] = number


def pack_counted(ngrams, counts, boundary, n_bits, rows):
    """Write the row of each n-gram of a table, with its count."""
    for ngram, count, row in zip(ngrams, counts, rows):
        pack_windows(ngram, len(ngram) - 1, boundary, n_bits, row[np.newaxis, :-1])
        row[-1] = count


def sort_rows(rows, spare, n_words, n_bits):
    """Sort rows by their numbers, the first first; `spare` does not get them."""
    n_columns = -(-n_words // (64 // n_bits))
    rows[:] = rows[np.lexsort(rows.T[:n_columns][::-1])]
    return False


def count_rows(rows, at, out):
    """Write each distinct row from `at` on, and its count, as far as `out` goes."""
    distinct, counts = np.unique(rows[at:], axis=0, return_counts=True)
    n = min(len(out), len(distinct))
    out[:n, :-1], out[:n, -1] = distinct[:n], counts[:n]
    return at + int(counts[:n].sum()), n


def merge_runs(buffers, at, end, heap, n_live, out, n):
    """Take the least row of all runs, until a buffer ends or `out` is full."""
    live = [run for run in heap[:n_live].tolist() if at[run] < end[run]]
    heap[: len(live)] = live
    while live:
        run = min(live, key=lambda r: buffers[r, at[r], :-1].tolist())
        row = buffers[run, at[run]]
        if n and (out[n - 1, :-1] == row[:-1]).all():
            out[n - 1, -1] += row[-1]
        elif n < len(out):
            out[n] = row
            n += 1
        else:
            break
        at[run] += 1
        if at[run] == end[run]:
            # The one that ended stands first.
            heap[: len(live)] = [run, *(r for r in live if r != run)]
            return n, len(live), run
    return n, len(live), -1


def cache_prob(X, y, boundary, weights, unigram, prior, bigram_prior, out):
    """Return the probability of each next word."""
    proba = np.empty((len(X), len(unigram)))
    cache_distribution(X, boundary, weights, unigram, prior, bigram_prior, proba)
    out[:] = proba[np.arange(len(y)), y]


def cache_distribution(X, boundary, weights, unigram, prior, bigram_prior, out):
    """Return the distribution of every row: counts of words, and of words after one."""
    n_words = len(unigram)
    for x, row in zip(X, out):
        is_word = np.logical_or.accumulate(x != boundary)
        c = np.bincount(x[is_word], weights[is_word], n_words)
        p = (c + prior * unigram) / (c.sum() + prior)
        if bigram_prior >= 0:
            follows = is_word & (np.append(-1, x[:-1]) == x[-1])
            b = np.bincount(x[follows], weights[follows], n_words)
            p = (b + bigram_prior * p) / (b.sum() + bigram_prior)
        row[:] = p
