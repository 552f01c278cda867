"""Binary trees of words: as they are given, from weights, and what is asked of them.

A tree of n words is an array (n - 1, 2), a row an inner node with its two children: a
word, below n, or n plus the row of another node. scikit-learn's ``children_`` of
clusterings and SciPy's ``linkage`` have it so.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["bisected", "depth_of", "huffman", "masses", "parents_of", "top_down"]

Tree = NDArray[np.int32]


def huffman(weights: NDArray[np.int64]) -> Tree:
    """Give the tree with the least mean depth (Huffman, 1952), the root first.

    The two lightest nodes become one, again and again. What is made is never lighter
    than what was made before, so the lightest are at the head of one of two queues.
    """
    n = len(weights)
    lightest_first = np.argsort(weights, kind="stable")
    words, light = lightest_first.tolist(), weights[lightest_first].tolist()
    made: list[tuple[int, int]] = []
    heavy: list[int] = []
    word = node = 0
    for _ in range(n - 1):
        pair, total = [], 0
        for _ in range(2):
            if word < n and (node == len(heavy) or light[word] <= heavy[node]):
                pair.append(words[word])
                total += light[word]
                word += 1
            else:
                pair.append(n + node)
                total += heavy[node]
                node += 1
        made.append((pair[0], pair[1]))
        heavy.append(total)
    return _backwards(np.array(made, np.int32).reshape(-1, 2))


def _backwards(children: Tree) -> Tree:
    """Give the same with inner nodes numbered from the last to the first."""
    n = len(children) + 1
    return np.where(children < n, children, 3 * n - 2 - children)[::-1].astype(np.int32)


def bisected(points: NDArray[np.float64], weights: NDArray[np.int64]) -> Tree:
    """Give the tree of words that are points, cut in halves again and again.

    Halves of about the same weight, so that a word lies about as deep as in Huffman's
    tree; cut across the direction in which a node's words differ most, or the axis,
    where they are fewer than these. The root first, level by level.
    """
    n, n_axes = len(weights), points.shape[1]
    children = np.empty((n - 1, 2), np.int32)
    level, made = [np.arange(n)] if n > 1 else [], 1
    row = 0
    while level:
        below = []
        for words in level:
            mass = weights[words]
            near = points[words] - np.average(points[words], axis=0, weights=mass)
            if len(words) > n_axes:
                spread = near.T @ (near * mass[:, None])
                along = near @ np.linalg.eigh(spread)[1][:, -1]
            else:
                along = near[:, np.argmax(mass @ near**2)]
            order = np.argsort(along, kind="stable")
            upto = np.cumsum(mass[order])
            # As near the middle of the weight as can be, with words on either side.
            cut = 1 + np.argmin(np.abs(upto[:-1] - upto[-1] / 2))
            for side, half in enumerate((words[order[:cut]], words[order[cut:]])):
                if len(half) == 1:
                    children[row, side] = half[0]
                else:
                    children[row, side] = n + made
                    made += 1
                    below.append(half)
            row += 1
        level = below
    return children


def top_down(children: Tree) -> Tree:
    """Give the same with inner nodes numbered so that parents come before children.

    Those that do already stay as they are; those that no path from the root leads to
    are left out.
    """
    n = len(children) + 1
    if (children - n <= np.arange(n - 1)[:, None])[children >= n].sum() == 0:
        return children
    below = np.bincount(children.ravel(), minlength=2 * n - 1)
    rows = [int(np.flatnonzero(below[n:] == 0)[0])]
    pairs = children.tolist()
    for row in rows:  # it grows: level by level
        rows.extend(child - n for child in pairs[row] if child >= n)
    place = np.full(2 * n - 1, -1, np.int32)
    place[:n] = np.arange(n)
    place[n + np.array(rows)] = n + np.arange(len(rows))
    return place[children[rows]]


def parents_of(children: Tree) -> NDArray[np.int32]:
    """Give the row i of which each node is the first child, ~i if it is the second."""
    n = len(children) + 1
    parents = np.zeros(2 * n - 1, np.int32)
    rows = np.arange(n - 1, dtype=np.int32)
    parents[children[:, 0]] = rows
    parents[children[:, 1]] = ~rows
    return parents


def depth_of(children: Tree) -> int:
    """Inner nodes above a word, at most; parents come before their children."""
    n = len(children) + 1
    depth = [0] * (2 * n - 1)
    for row, (one, other) in enumerate(children.tolist()):
        depth[one] = depth[other] = depth[n + row] + 1
    return max(depth)


def masses(children: Tree, weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """Add the weights of the words below each node, words first."""
    n = len(children) + 1
    mass = [*weights.tolist(), *[0] * (n - 1)]
    for row in range(n - 2, -1, -1):
        one, other = children[row]
        mass[n + row] = mass[one] + mass[other]
    return np.array(mass, np.int64)
