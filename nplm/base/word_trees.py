"""Binary trees over words, Huffman's and by bisection, and wider ones made of them.

A tree of n words is an array of shape (n - 1, 2). Each row is an inner node with its
two children: a word, below n, or n plus the row of another node. scikit-learn's
``children_`` of clusterings and SciPy's ``linkage`` use the same format.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace
from typing import NamedTuple

import numpy as np

from nplm.base.array_types import Counts, Floats, Ids, Index

Tree = Ids
# Least share of a node's weight on either side of a cut. Half of it makes trees of the
# least depth, which part similar words; less than a tenth is no better.
MIN_SHARE = 0.1


def huffman(weights: Counts) -> Tree:
    """Return the tree with the least mean depth (Huffman, 1952), the root first.

    The two lightest nodes are merged until one is left; of equal weight, words come
    before merged nodes, and earlier ones before later ones.
    """
    n = len(weights)
    # A weight and a node as one number: these are compared faster than pairs.
    heap = [weight * 2 * n + word for word, weight in enumerate(weights.tolist())]
    heapify(heap)
    pairs: list[tuple[int, int]] = []
    for node in range(n, 2 * n - 1):
        weight, child = divmod(heappop(heap), 2 * n)
        other_weight, other = divmod(heap[0], 2 * n)
        heapreplace(heap, (weight + other_weight) * 2 * n + node)
        pairs.append((child, other))
    return _reversed(np.array(pairs, np.int32).reshape(-1, 2))


def _reversed(children: Tree) -> Tree:
    """Return the same tree with its inner nodes in reverse order."""
    n = len(children) + 1
    return np.where(children < n, children, 3 * n - 2 - children)[::-1].astype(np.int32)


def bisected(points: Floats, weights: Counts) -> Tree:
    """Return the tree of recursive bisections of words that are points.

    Each cut is across the first principal axis of a node's words, where the means of
    the two sides are furthest apart for their weights (Ward's criterion), with at least
    `MIN_SHARE` of the weight on each side if the words allow it. So a word is little
    deeper than in Huffman's tree, and a group of words that stands alone is kept whole.
    Rows are in the order of weight, the root first.
    """
    n = len(weights)
    children = np.empty((n - 1, 2), np.int32)
    # Nodes that are not cut yet, the heaviest first, with their places in `children`
    # and their words. That of the root does not matter.
    uncut = [(0, 0, 0, np.arange(n))] if n > 1 else []
    n_pushed = len(uncut)
    for row in range(n - 1):
        _, _, place, words = heappop(uncut)
        children.flat[place] = n + row
        for side, part in enumerate(_cut(words, points[words], weights[words])):
            place = 2 * row + side
            if len(part) == 1:
                children.flat[place] = part[0]
            else:
                heappush(uncut, (-weights[part].sum(), n_pushed, place, part))
                n_pushed += 1
    return children


def _cut(words: Index, points: Floats, weights: Counts) -> tuple[Index, Index]:
    """Return the words on the two sides of a cut across their first principal axis."""
    centred = points - np.average(points, axis=0, weights=weights)
    root = np.sqrt(weights)
    if len(words) > points.shape[1]:
        scaled = centred * root[:, None]
        projection = centred @ np.linalg.eigh(scaled.T @ scaled)[1][:, -1]
    else:  # the same from the smaller matrix of inner products
        scaled = centred * root[:, None]
        projection = np.linalg.eigh(scaled @ scaled.T)[1][:, -1] / root
    order = np.argsort(projection, kind="stable")
    mass = np.cumsum(weights[order])
    first, second = mass[:-1], mass[-1] - mass[:-1]
    total = np.cumsum((weights * projection)[order])
    gap = total[:-1] / first - (total[-1] - total[:-1]) / second
    share = np.minimum(first, second) / mass[-1]
    allowed = share >= min(MIN_SHARE, share.max())
    cut = 1 + int(np.argmax(np.where(allowed, gap**2 * first * second, -1)))
    return words[order[:cut]], words[order[cut:]]


def top_down(children: Tree) -> Tree:
    """Return the same tree with parents numbered before their children.

    Rows in the reverse order, as of clusterings, are reversed, and others numbered
    level by level. Nodes that cannot be reached from the root are left out.
    """
    n = len(children) + 1
    for tree in (children, _reversed(children)):
        if (tree - n > np.arange(n - 1)[:, None])[tree >= n].all():
            return tree
    below = np.bincount(children.ravel(), minlength=2 * n - 1)
    rows = [int(np.flatnonzero(below[n:] == 0)[0])]
    pairs = children.tolist()
    for row in rows:  # breadth first: the list grows as it is read
        rows.extend(child - n for child in pairs[row] if child >= n)
    new_number = np.full(2 * n - 1, -1, np.int32)
    new_number[:n] = np.arange(n)
    new_number[n + np.array(rows)] = n + np.arange(len(rows))
    return new_number[children[rows]]


class Joined(NamedTuple):
    """A tree of inner nodes with several branches, parents before their children."""

    branches: Ids  # (n_words + n_nodes - 1,): children, node by node
    starts: Index  # (n_nodes + 1,): start of each node in `branches`

    @property
    def parents(self) -> Ids:
        """The parent of each word, then of each node; that of the root is 0."""
        sizes = np.diff(self.starts)
        parents = np.zeros(len(self.branches) + 1, np.int32)
        parents[self.branches] = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        return parents

    @property
    def places(self) -> Ids:
        """Which child of its parent each word and each node is; 0 for the root."""
        sizes = np.diff(self.starts)
        places = np.zeros(len(self.branches) + 1, np.int32)
        within = np.arange(len(self.branches)) - np.repeat(self.starts[:-1], sizes)
        places[self.branches] = within
        return places

    def deepest(self) -> tuple[int, int]:
        """Return the most nodes above a word, and the most branches of them."""
        n_words = len(self.branches) + 1 - (len(self.starts) - 1)
        parents, sizes = self.parents[n_words:].tolist(), np.diff(self.starts).tolist()
        nodes = [1] * len(sizes)
        rows = sizes.copy()
        for node in range(1, len(sizes)):
            nodes[node] += nodes[parents[node]]
            rows[node] += rows[parents[node]]
        return max(nodes, default=0), max(rows, default=0)

    def masses(self, weights: Counts) -> Counts:
        """Return the total weight of the words below each child, as `branches`."""
        n_words = len(weights)
        mass = [*weights.tolist(), *[0] * (len(self.starts) - 1)]
        branches, starts = self.branches.tolist(), self.starts.tolist()
        for node in range(len(starts) - 2, -1, -1):  # children come after their parent
            children = branches[starts[node] : starts[node + 1]]
            mass[n_words + node] = sum(mass[child] for child in children)
        return np.array(mass, np.int64)[self.branches]


def joined(children: Tree, n_branches: int) -> Joined:
    """Return a tree whose inner nodes have up to `n_branches` children.

    A node takes in those below it in the order of their rows, while there is room.
    """
    n, pairs = len(children) + 1, children.tolist()
    rows, below = [0] if n > 1 else [], []
    numbers: dict[int, int] = {}  # of the inner nodes that stay
    while rows:  # a heap: parents come before their children
        row = heappop(rows)
        numbers[n + row] = n + len(numbers)
        nodes = pairs[row]
        inner = sorted(node for node in nodes if node >= n)
        while inner and len(nodes) < n_branches:
            node = heappop(inner)
            place = nodes.index(node)
            nodes[place : place + 1] = pairs[node - n]
            for child in pairs[node - n]:
                if child >= n:
                    heappush(inner, child)
        for node in inner:
            heappush(rows, node - n)
        below.append(nodes)
    branches = [numbers.get(node, node) for nodes in below for node in nodes]
    starts = np.cumsum([0, *map(len, below)], dtype=np.intp)
    return Joined(np.array(branches, np.int32), starts)
