"""A binary tree of words (section 5.2): a path of choices for each."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nplm._checks import check_ids
from nplm._kernels.neural import _tree
from nplm._trees import depth_of, huffman, masses, parents_of, top_down
from nplm.neural.outputs.base import Output, State

__all__ = ["Tree"]

EMPTY = np.empty((0, 2), np.int32)


@dataclass(frozen=True, eq=False)
class Tree(Output):
    """Inner nodes of a tree, a row of E each, and words as its leaves.

    `given` is the tree that is asked for; without it a Huffman tree is made of the next
    words. `children` is the tree in use, the root first (see `nplm._trees`).
    """

    name: ClassVar[str] = "tree"
    rows_are_visited: ClassVar[bool] = True

    given: ArrayLike | None = None
    children: NDArray[np.int32] = field(default_factory=lambda: EMPTY)
    parents: NDArray[np.int32] = field(default_factory=lambda: np.zeros(1, np.int32))
    depth: int = 0

    def learn(self, n_words: int, y: NDArray[np.int32]) -> Self:
        """Give the same with a tree of all words."""
        if self.given is None:
            children = huffman(np.bincount(y, minlength=n_words) + 1)
        else:
            children = checked_tree(self.given, n_words)
        return replace(
            self, children=children, parents=parents_of(children),
            depth=depth_of(children),
        )  # fmt: skip

    def go_on(self, fitted: Output) -> Output:
        """Give the fitted tree, unless another one is asked for."""
        assert isinstance(fitted, Tree)
        if self.given is not None:
            asked = checked_tree(self.given, len(fitted.children) + 1)
            if not np.array_equal(asked, fitted.children):
                raise ValueError(
                    "word_tree is not that of the network fitted so far, which cannot "
                    "change while training goes on; set it back (or to None), or fit a "
                    "new model (clone this one)."
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
        mass = masses(self.children, np.bincount(y, minlength=n_words) + 1)
        first, second = mass[self.children].T
        return np.log(first) - np.log(second)

    def kernels(
        self,
        tier: Any,
        scratch: Any,
        at: Any,
        features: Any,
        trained: dict[str, Any],
        state: State,
        *,
        first: int,
        n_members: int,
        worker: int,
        n_workers: int,
        solver: Any,
    ) -> list[Any]:
        """Give the kernel of the one member."""
        E = trained["E"]
        kernel = _tree.Tree(
            tier, scratch, at, E, direct=self.direct, first=first,
            n_words=len(self.children) + 1, row=0, n_rows=E.rows, leader=None,
            solver=solver, children=self.children, parents=self.parents,
            depth=self.depth,
        )  # fmt: skip
        return [kernel]


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
