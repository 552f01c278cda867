"""A binary tree of words (section 5.2): a path of choices for each."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from sklearn.utils.extmath import randomized_svd

from nplm._kernels.neural.outputs import _tree
from nplm.base.checks import check_ids, count_ids, own_ids
from nplm.base.word_trees import (
    bisected,
    depth_of,
    huffman,
    masses,
    parents_of,
    top_down,
)
from nplm.models.neural.network.outputs.base import Output, Workspace
from nplm.training.parallel.threads import blas_threads

__all__ = ["Tree"]

EMPTY = np.empty((0, 2), np.int32)
# Of the tree that is made without asking: the words before that are told apart, the
# components of how often they come, and how often a word counts as seen elsewhere.
N_CONTEXTS = 4000
N_AXES = 32
N_SEEN = 5


@dataclass(frozen=True, eq=False)
class Tree(Output):
    """Inner nodes of a tree, a row of E each, and words as its leaves.

    `given` is the tree that is asked for, "huffman" for that of the words' frequencies;
    without it words with similar contexts are near each other (`of_contexts`).
    `children` is the tree in use, the root first (see `nplm.base.word_trees`).
    """

    name: ClassVar[str] = "tree"
    rows_are_visited: ClassVar[bool] = True

    given: ArrayLike | str | None = None
    children: NDArray[np.int32] = field(default_factory=lambda: EMPTY)
    parents: NDArray[np.int32] = field(default_factory=lambda: np.zeros(1, np.int32))
    depth: int = 0

    def learn(self, n_words: int, X: NDArray[np.int32], y: NDArray[np.int32]) -> Self:
        """Give the same with a tree of all words."""
        weights = count_ids(y, n_words) + 1
        if self.given is None:
            children = bisected(of_contexts(X[:, -1], y, n_words), weights)
        elif isinstance(self.given, str):
            children = huffman(weights)
        else:
            children = checked_tree(self.given, n_words)
        return replace(
            self, children=children, parents=parents_of(children),
            depth=depth_of(children),
        )  # fmt: skip

    def go_on(self, fitted: Output) -> Output:
        """Give the fitted tree, unless another one is asked for."""
        assert isinstance(fitted, Tree)
        if self.given is None or isinstance(self.given, str):
            # Of other next words it would be another: what counts is how it was made.
            given = not (fitted.given is None or isinstance(fitted.given, str))
            same = self.given is None if given else self.given == fitted.given
        else:
            asked = checked_tree(self.given, len(fitted.children) + 1)
            same = np.array_equal(asked, fitted.children)
        if not same:
            raise ValueError(
                "word_tree is not that of the network fitted so far, which cannot "
                "change while training goes on; set it back (or to word_tree_, the "
                "tree that there is), or fit a new model (clone this one)."
            )
        return fitted

    def made_with(self) -> dict[str, Any]:
        """Give the parameters of an estimator that ask for it, beside its name."""
        return {"word_tree": self.children}

    def n_rows(self, n_words: int) -> int:
        """Inner nodes of a tree of so many words."""
        return n_words - 1

    def initial_biases(self, n_words: int, y: NDArray[np.int32]) -> NDArray[Any]:
        """Give the logarithms of how much likelier each first child is.

        By the (add-one) unigrams: with U = W = 0 these are what the words have.
        """
        mass = masses(self.children, count_ids(y, n_words) + 1)
        first, second = mass[self.children].T
        return np.log(first) - np.log(second)

    def kernel(self, team: Workspace, start: int, stop: int, leader: Any) -> Any:
        """Give the kernel of the one member."""
        n_words = len(self.children) + 1
        rows = self._rows(team, start, stop, leader) | {"n_words": n_words}
        return _tree.Tree(
            team.tier, team.scratch, team.at, team.trained["E"], solver=team.solver,
            children=self.children, parents=self.parents, depth=self.depth, **rows,
        )  # fmt: skip


def of_contexts(
    before: NDArray[np.int32], y: NDArray[np.int32], n_words: int
) -> NDArray[np.float64]:
    """Give points, (n_words, N_AXES at most), of words by the words they come after.

    The first principal components of the square roots of how often each comes after
    the most frequent words, relative to how often it comes at all (Lebret and
    Collobert, 2014), where a word counts as often as it comes. What is seen a few times
    only is drawn to the mean.
    """
    before, y = own_ids(before, n_words), own_ids(y, n_words)
    often = np.argsort(-np.bincount(before, minlength=n_words), kind="stable")
    column = np.full(n_words, N_CONTEXTS)
    column[often[:N_CONTEXTS]] = np.arange(len(often[:N_CONTEXTS]))
    pairs = y, column[before]
    counts = coo_array((np.ones(len(y)), pairs), (n_words, N_CONTEXTS + 1)).tocsr()
    times = np.bincount(y, minlength=n_words)
    # A row times the root of how often its word comes is the roots of its counts.
    counts.data = np.sqrt(counts.data)
    with blas_threads(1):
        _, _, axes = randomized_svd(counts, min(N_AXES, n_words), random_state=0)
        points = counts @ axes.T / np.sqrt(np.maximum(times, 1))[:, None]
    mean = np.average(points, axis=0, weights=times)
    seen = times / (times + N_SEEN)
    drawn: NDArray[np.float64] = mean + (points - mean) * seen[:, None]
    return drawn


def checked_tree(given: ArrayLike, n_words: int) -> NDArray[np.int32]:
    """Give `word_tree` with the root first, or raise where it is no tree of words."""
    children = check_ids(given, "word_tree", ndim=2)
    n = n_words
    if children.shape != (n - 1, 2):
        raise ValueError(
            f"word_tree has shape {children.shape}, but a tree of n_words={n} words "
            f"has {n - 1} inner nodes of 2 children: give an array of shape "
            f"({n - 1}, 2), such as scikit-learn's children_ or what nplm.word_tree "
            "makes."
        )
    if n == 1:
        return children
    alone = np.flatnonzero(children[:, 0] == children[:, 1])
    if len(alone):
        row = alone[0]
        raise ValueError(
            f"row {row} of word_tree has one child, {children[row, 0]}, twice: give "
            "every node two."
        )
    if children.max() > 2 * n - 2:
        row, column = np.argwhere(children > 2 * n - 2)[0]
        raise ValueError(
            f"word_tree has {children[row, column]} at row {row}, column {column}: "
            f"words are 0 to {n - 1} (n_words={n}), and nodes {n} (row 0) to "
            f"{2 * n - 2} (row {n - 2})."
        )
    times = np.bincount(children.ravel(), minlength=2 * n - 1)
    often = np.flatnonzero(times > 1)
    if len(often):
        raise ValueError(
            f"word_tree has {_named(often[0], n)} {times[often[0]]} times: give it one "
            "place."
        )
    missing = np.flatnonzero(times[:n] == 0)
    if len(missing):
        raise ValueError(
            f"word_tree lacks {_named(missing[0], n)}"
            + (f" and {len(missing) - 1} more" if len(missing) > 1 else "")
            + ": give every word a place."
        )
    ordered = top_down(children)
    if len(ordered) < n - 1:
        raise ValueError(
            f"{n - 1 - len(ordered)} nodes of word_tree are below each other, in a "
            "circle: let the root lead to all words."
        )
    return ordered


def _named(node: int, n: int) -> str:
    return f"word {node}" if node < n else f"the node of row {node - n}"
