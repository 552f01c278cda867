"""Exact output units, by the meaning of the rows of E (_softmax, _classes, _tree)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tests.reference import Int32
from tests.reference.neural.rounding import as_it_is


@dataclass
class Softmax:
    """The rows of E are words."""

    rounds: ClassVar[bool] = True  # to bfloat16, where all below is rounded

    def log_p(self, logits):
        """Logarithms of the probabilities of all words, from those of all rows."""
        return log_softmax(logits)

    def slopes(self, logits, y):
        """Return d log P(y) / d logits."""
        g = -np.exp(log_softmax(logits))
        g[np.arange(len(y)), y] += 1
        return g

    def met(self, y, n_rows):
        """Return which rows an update of these examples visits."""
        return np.arange(n_rows)


@dataclass
class Classes(Softmax):
    """The rows of E are classes, then the words of each (section 5.2).

    P(w) = P(class of w) P(w | class of w).
    """

    rounds: ClassVar[bool] = False
    labels: Int32

    def blocks(self):
        """Words of each class, and their rows."""
        n_classes = self.labels.max() + 1
        words = [np.flatnonzero(self.labels == c) for c in range(n_classes)]
        starts = n_classes + np.cumsum([0, *map(len, words)])
        return [(w, slice(s, s + len(w))) for w, s in zip(words, starts, strict=False)]

    def log_p(self, logits):
        """Logarithms of the probabilities of all words."""
        blocks = self.blocks()
        log_class = log_softmax(logits[:, : len(blocks)])
        log_p = np.empty((len(logits), len(self.labels)))
        for c, (words, rows) in enumerate(blocks):
            log_p[:, words] = log_class[:, [c]] + log_softmax(logits[:, rows])
        return log_p

    def slopes(self, logits, y):
        """Return d log P(y) / d logits: of the classes, and within that of y."""
        blocks, g = self.blocks(), np.zeros_like(logits)
        n_classes, flat = len(blocks), Softmax()
        g[:, :n_classes] = flat.slopes(logits[:, :n_classes], self.labels[y])
        for k, word in enumerate(y):
            words, rows = blocks[self.labels[word]]
            own = np.flatnonzero(words == word)
            g[k, rows] = flat.slopes(logits[[k], rows], own)[0]
        return g

    def met(self, y, n_rows):
        """Return the visited rows: all classes, and the words in the classes of y."""
        blocks, rows = self.blocks(), np.arange(n_rows)
        own = [rows[blocks[label][1]] for label in np.unique(self.labels[y])]
        return np.concatenate([rows[: len(blocks)], *own])


@dataclass
class Tree(Softmax):
    """An inner node of a tree is a softmax over its children (Morin and Bengio, 2005).

    A child is a word, or n_words plus a node. The rows of E are the children of the
    nodes, node by node.
    """

    rounds: ClassVar[bool] = False
    n_words: int
    children: list[list[int]]

    def __post_init__(self):
        """Compute the rows of the nodes, and the paths to words and nodes."""
        self.rows, self.paths, start = [], [[]] * (self.n_words + len(self.children)), 0
        for node, children in enumerate(self.children):  # parents come first
            self.rows.append(np.arange(start, start + len(children)))
            start += len(children)
            for place, child in enumerate(children):
                above = self.paths[self.n_words + node]
                self.paths[child] = [*above, (node, place)]

    def log_choices(self, logits, node):
        """Logarithms of the probabilities of a node's children."""
        return log_softmax(logits[:, self.rows[node]])

    def log_p(self, logits):
        """Logarithms of the probabilities of all words."""
        log_p = np.zeros((len(logits), len(self.paths)))
        for node, children in enumerate(self.children):  # parents come first
            above = log_p[:, [self.n_words + node]]
            log_p[:, children] = above + self.log_choices(logits, node)
        return log_p[:, : self.n_words]

    def slopes(self, logits, y):
        """Return d log P(y) / d logits, which is 0 off the path to y."""
        g = np.zeros_like(logits)
        for k, word in enumerate(y):
            for node, place in self.paths[word]:
                own = -np.exp(self.log_choices(logits[[k]], node)[0])
                own[place] += 1
                g[k, self.rows[node]] = own
        return g

    def met(self, y, n_rows):
        """Return the visited rows: those of the nodes above a word of y."""
        nodes = sorted({node for word in y for node, _ in self.paths[word]})
        rows = [self.rows[node] for node in nodes]
        return np.concatenate(rows) if rows else np.array([], np.intp)


def softmax(E, a, x, rounded=as_it_is):
    """Return z = [a | x | 1] and the logits y = E z, with `rounded` factors."""
    direct = E.shape[1] > a.shape[1] + 1
    one = np.ones((len(a), 1))
    z = np.hstack([a, x, one] if direct else [a, one])
    return z, rounded(z) @ rounded(E).T


def log_softmax(logits):
    """Logarithm of the softmax of each row."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def exact(E, z, y, rounded=as_it_is):
    """Log-likelihood by the softmax over all words, its gradients, and all rows."""
    log_p = log_softmax(rounded(z) @ rounded(E).T)
    rows = np.arange(len(y))
    g = -np.exp(log_p)
    g[rows, y] += 1
    g = rounded(g)
    total = float(log_p[rows, y].sum())
    return total, g @ rounded(E), g.T @ rounded(z), slice(None)
