"""Hierarchical softmax over a tree of words (section 5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array, diags_array, hstack
from sklearn.utils.extmath import randomized_svd

from nplm._kernels.neural.outputs import _tree
from nplm.base.array_types import Array, Counts, Floats, Ids
from nplm.base.checks import check_ids, trusted_ids
from nplm.base.word_trees import Joined, bisected, huffman, joined, top_down
from nplm.models.neural.network.outputs.base import Output
from nplm.models.neural.network.workspace import Kernel, Workspace
from nplm.models.training.parallel.blas import blas_threads

MAX_BRANCHES = 1024  # of an inner node
# The default tree: positions before the next word, words that are distinguished there,
# components, and pseudo-counts that shrink the points of rare words to the mean.
N_POSITIONS = 2
N_CONTEXTS = 4000
N_COMPONENTS = 32
N_PSEUDO_COUNTS = 5


@dataclass(frozen=True, eq=False)
class Tree(Output):
    """Output with a softmax over the branches, rows of E, of each node of a tree."""

    rows_are_visited: ClassVar[bool] = True

    nodes: Joined

    @cached_property
    def numbers(self) -> dict[str, Any]:
        """Options of the kernels, which every call that scores makes."""
        depth, most_rows = self.nodes.deepest()
        return {
            "parents": self.nodes.parents, "places": self.nodes.places,
            "depth": depth, "most_rows": most_rows,
        }  # fmt: skip

    @classmethod
    def from_children(cls, direct: bool, children: Ids, n_branches: int) -> Self:
        """Make the output of the given binary tree."""
        return cls(direct, joined(children, n_branches))

    def n_rows(self, n_words: int) -> int:
        return len(self.nodes.branches)

    def initial_biases(self, n_words: int, counts: Counts) -> Array:
        """Return log shares of branches in their nodes, by the (add-one) unigrams."""
        masses, starts = self.nodes.masses(counts + 1), self.nodes.starts
        totals = np.add.reduceat(masses, starts[:-1]) if len(masses) else masses
        return np.log(masses) - np.log(np.repeat(totals, np.diff(starts)))

    def kernel(
        self, team: Workspace, start: int, stop: int, leader: Kernel | None
    ) -> Kernel:
        nodes = self.nodes
        n_words = len(nodes.branches) + 2 - len(nodes.starts)
        rows = self._rows(team, start, stop, leader) | {"n_words": n_words}
        return _tree.Tree(
            team.tier, team.scratch, team.activations, team.trained["E"],
            solver=team.solver, branches=nodes.branches, starts=nodes.starts,
            **self.numbers, **rows,
        )  # fmt: skip


def context_tree(counts: Counts, X: Ids, y: Ids) -> Ids:
    """Return a tree in which words of similar contexts are close."""
    if X.shape[1] == 0:
        return huffman(counts + 1)
    with blas_threads(1):  # the cuts are many and small
        return bisected(context_components(X, y, len(counts)), counts + 1)


def context_components(X: Ids, y: Ids, n_words: int) -> Floats:
    """Return points of words by their contexts, (n_words, N_COMPONENTS at most).

    They are canonical variables of a word and of the one or two words before it: the
    directions in which contexts tell most about the next word, which is what an inner
    node has to tell. The square roots of the counts keep the variance alike (Stratos,
    Collins and Hsu, 2015). The points of rare words are shrunk to the mean.
    """
    y = trusted_ids(y, n_words)
    times = np.bincount(y, minlength=n_words)
    root = np.maximum(times, 1) ** 0.5
    tables = []
    for position in range(1, min(X.shape[1], N_POSITIONS) + 1):
        before = trusted_ids(X[:, -position], n_words)
        of = np.bincount(before, minlength=n_words)
        frequent = np.argsort(-of, kind="stable")[:N_CONTEXTS]
        column = np.full(n_words, N_CONTEXTS)
        column[frequent] = np.arange(len(frequent))
        pairs = y, column[before]
        counts = coo_array((np.ones(len(y)), pairs), (n_words, N_CONTEXTS + 1)).tocsr()
        counts.data = np.sqrt(counts.data)
        scale = 1 / np.sqrt(counts.sum(axis=0) + N_PSEUDO_COUNTS)
        tables.append(counts @ diags_array(scale))
    table = hstack(tables, format="csr")
    _, _, axes = randomized_svd(
        diags_array(root**-0.5) @ table, min(N_COMPONENTS, n_words), random_state=0
    )
    points = table @ axes.T / root[:, None]
    mean = np.average(points, axis=0, weights=times)
    weights = times / (times + N_PSEUDO_COUNTS)
    return mean + (points - mean) * weights[:, None]


def checked_tree(tree: ArrayLike, n_words: int) -> Ids:
    """Return the tree with the root first, or raise ValueError if it is invalid."""
    children = check_ids(tree, "tree", ndim=2)
    n = n_words
    if children.shape != (n - 1, 2):
        raise ValueError(
            f"tree has shape {children.shape}, but a tree of n_words={n} words "
            f"has {n - 1} inner nodes with 2 children; give an array of shape "
            f"({n - 1}, 2), such as children_ of scikit-learn or the result of "
            "nplm.word_tree."
        )
    if n == 1:
        return children
    equal = np.flatnonzero(children[:, 0] == children[:, 1])
    if len(equal):
        row = equal[0]
        raise ValueError(
            f"row {row} of tree has child {children[row, 0]} twice; give every node "
            "two different children."
        )
    if children.max() > 2 * n - 2:
        row, column = np.argwhere(children > 2 * n - 2)[0]
        raise ValueError(
            f"tree has {children[row, column]} at row {row}, column {column}; "
            f"words are 0 to {n - 1} (n_words={n}), and inner nodes {n} (row 0) to "
            f"{2 * n - 2} (row {n - 2})."
        )
    times = np.bincount(children.ravel(), minlength=2 * n - 1)
    repeated = np.flatnonzero(times > 1)
    if len(repeated):
        raise ValueError(
            f"tree has {_named(repeated[0], n)} {times[repeated[0]]} times; give it "
            "one parent."
        )
    missing = np.flatnonzero(times[:n] == 0)
    if len(missing):
        raise ValueError(
            f"tree lacks {_named(missing[0], n)}"
            + (f" and {len(missing) - 1} more" if len(missing) > 1 else "")
            + "; give every word a parent."
        )
    ordered = top_down(children)
    if len(ordered) < n - 1:
        raise ValueError(
            f"tree has a cycle: {n - 1 - len(ordered)} nodes cannot be reached from "
            "the root; make every node a descendant of one root."
        )
    return ordered


def _named(node: int, n: int) -> str:
    return f"word {node}" if node < n else f"the node of row {node - n}"
