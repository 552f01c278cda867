"""Kneser-Ney on dictionaries, written as the formulas."""

import math
from collections import Counter, defaultdict

import numpy as np

from nplm.base.encoded_words import EncodedWords
from nplm.formats._words import StoredWords
from nplm.formats.arpa.arpa_reading import read_ngrams
from nplm.formats.open_model import open_model
from nplm.models.ngrams.stages.pruning import cut
from nplm.models.ngrams.stages.scratch import Scratch
from nplm.models.ngrams.stages.tables import NgramTable, NgramTables
from nplm.models.ngrams.trie.work import Work


def lines_of(n, words, seed=0):
    """Return lines of `n` words together, of the third word of the list and later."""
    rng = np.random.default_rng(seed)
    ids = np.minimum(rng.zipf(1.2, n) + 1, len(words) - 1)
    cuts = np.sort(rng.integers(0, n, n // 7))
    return [
        " ".join(words[i] for i in line) for line in np.split(ids, cuts) if len(line)
    ]


def many_lines(n=800_000):
    """Return the lines whose n-grams other programs count, of `n` words."""
    return lines_of(n, [f"w{i}" for i in range(20_000)])


def words_of(lines):
    """Return the words of lines with their end, which comes first, by frequency."""
    counts = Counter(word for line in lines for word in line.split())
    return ["</s>", *sorted(counts, key=lambda word: (-counts[word], word))]


def cut_in_memory(trie, keep):
    """Return the trie of the n-grams to keep."""
    return cut(trie, keep.copy(), Work())


def convert_arpa(path, target, memory, folder=None):
    """Convert an ARPA file in so many bytes of memory."""
    with Scratch(folder, memory) as scratch:
        ngrams = read_ngrams(path, scratch, add_unknown=True)
        words = StoredWords(EncodedWords.of(ngrams.words), ngrams.boundary)
        target.write(ngrams.trie, words, scratch)


def arpa_lm(path, work):
    """The text model of an ARPA file, in memory or on disk, without a hash table."""
    with open_model(path) as file:
        return file.load(work, index=False)


def trie_of_tables(ngrams, prob, bow):
    """Return the trie of tables of 1, 2, ... words; the longest have no weights."""
    tables = NgramTables(Work(), len(ngrams[0]))
    unigrams, *longer = map(NgramTable, ngrams, prob, [*bow, np.ones(len(ngrams[-1]))])
    for table in longer:
        tables.add(table)
    return tables.trie(len(ngrams), unigrams)


class DictionaryBackoff:
    """A back-off model on dictionaries, of word ids or of their names."""

    def __init__(self, trie, names=None):
        names = np.arange(trie.n_words) if names is None else names
        self.words, self.prob, self.bow = names.tolist(), {}, {}
        for level in range(trie.order):
            grams = map(tuple, names[trie.ngrams(level)].tolist())
            self.prob |= zip(grams, trie.prob[trie.followers(level)].tolist())
            first, last = trie.level_start[level : level + 2]
            contexts = names[trie.context_words(np.arange(first, last), level)]
            weights = trie.bow[first:last].tolist()
            self.bow |= zip(map(tuple, contexts.tolist()), weights)

    def p(self, context, word):
        if (*context, word) in self.prob:
            return self.prob[(*context, word)]
        if not context:
            return 0.0
        return self.bow.get(context, 1) * self.p(context[1:], word)


class DictionaryKneserNey:
    """Chen and Goodman's equations on dictionaries, one probability at a time."""

    def __init__(
        self, X, y, n_words, interpolate, min_counts, boundary, of_text=False,
        unigrams=True, plain=False,
    ):  # fmt: skip
        self.n_words, self.of_text = n_words, of_text
        self.interpolate = [interpolate and unigrams, *[interpolate] * len(X[0])]
        self.top = len(X[0])
        self.min_counts = min_counts
        raw = [Counter() for _ in range(self.top + 1)]
        for x, w in zip(X, y):
            for k in range(self.top + 1):
                context = tuple(x[self.top - k :])
                raw[k][context, w] += 1
                if k and context[0] == boundary:
                    break
        self.raw = raw
        self.a = [defaultdict(dict) for _ in raw]
        for k, grams in enumerate(raw):
            before = Counter()
            if k < self.top:
                before = Counter((c[1:], w) for c, w in raw[k + 1])
            for (c, w), count in grams.items():
                whole = k == self.top or (c and c[0] == boundary)
                self.a[k][c][w] = count if whole else before[c, w]
        self.discounts = []
        for level, interpolate in zip(self.a, self.interpolate):
            n = Counter(a for row in level.values() for a in row.values())
            D = [0.5] * 3 if plain else [0.5, 1.0, 1.5]
            if plain and n[1] and n[2]:
                D = [n[1] / (n[1] + 2 * n[2])] * 3
            elif not plain and all(n[i] for i in (1, 2, 3)):
                Y = n[1] / (n[1] + 2 * n[2])
                own = [i - (i + 1) * Y * n[i + 1] / n[i] for i in (1, 2, 3)]
                whole = 3 if interpolate else math.nextafter(3, 0)
                if all(0 < d <= i for i, d in zip((1, 2, whole), own)):
                    D = own
            self.discounts.append(D)
        self.rows = {}

    def row(self, context):
        """Return the whole distribution after a context (a tuple)."""
        if context not in self.rows:
            self.rows[context] = self._row(context)
        return self.rows[context]

    def _row(self, context):
        k = len(context)
        lower = self.row(context[1:]) if k else [1 / self.n_words] * self.n_words
        seen = self.a[k].get(context)
        if not seen:
            return lower
        total = sum(seen.values())
        discounted = {w: self.discounts[k][min(a, 3) - 1] for w, a in seen.items()}
        tested = {w: self.raw[k][context, w] for w in seen} if self.of_text else seen
        kept = [w for w, count in tested.items() if count >= self.min_counts[k]]
        if self.of_text:  # the mass of dropped n-grams is interpolated, too
            discounted |= {w: a for w, a in seen.items() if w not in kept}
        gamma = sum(discounted.values()) / total
        p = {w: (seen[w] - discounted[w]) / total for w in kept}
        if self.interpolate[k] or len(kept) == self.n_words:
            p = {w: p[w] + gamma * lower[w] for w in kept}
        if len(kept) == self.n_words:
            bow = 0.0
        else:
            rest = sum(lower[w] for w in range(self.n_words) if w not in p)
            bow = (1 - sum(p.values())) / rest
        return [p.get(w, bow * lower[w]) for w in range(self.n_words)]
