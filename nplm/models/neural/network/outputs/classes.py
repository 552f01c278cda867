"""Class-based output: a softmax over classes, then one within (section 5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from nplm._kernels.neural.outputs import _classes, _softmax
from nplm.base.array_types import Array, Counts, Ids, Index
from nplm.models.neural.network.outputs.base import Output
from nplm.models.neural.network.workspace import Kernel, Workspace


@dataclass(frozen=True, eq=False)
class Classes(Output):
    """Output whose rows of E are the classes, then the words, class by class."""

    rows_are_visited: ClassVar[bool] = True
    examples_are_arranged: ClassVar[bool] = True

    labels: Ids  # the class of each word
    order: Ids  # the words in the order of their rows
    starts: Index  # of each class in `order`

    @classmethod
    def from_labels(cls, direct: bool, labels: Ids) -> Self:
        """Make the output of the given classes."""
        order = np.argsort(labels, kind="stable").astype(np.int32)
        starts = np.concatenate([[0], np.cumsum(np.bincount(labels))])
        return cls(direct, labels, order, starts.astype(np.intp))

    def n_rows(self, n_words: int) -> int:
        return len(self.starts) - 1 + n_words

    def initial_biases(self, n_words: int, counts: Counts) -> Array:
        """Return log (add-one) unigrams, of classes and of words within them."""
        smoothed = counts + 1.0
        mass = np.bincount(self.labels, smoothed)
        within = np.log(smoothed / mass[self.labels])
        return np.concatenate([np.log(mass / mass.sum()), within[self.order]])

    def kernel(
        self, team: Workspace, start: int, stop: int, leader: Kernel | None
    ) -> Kernel:
        n_words, n_classes = len(self.labels), len(self.starts) - 1
        E, activations = team.trained["E"], team.activations

        def softmax(row: int, n: int, leader: Kernel | None) -> Kernel:
            return _softmax.Softmax(
                team.tier, team.scratch, activations, E, direct=self.direct, first=0,
                n_words=n, row=row, n_rows=n, leader=leader, solver=team.solver,
            )  # fmt: skip

        classes = softmax(0, n_classes, None)
        rest = softmax(n_classes, n_words, classes) if activations.scoring else None
        rows = self._rows(team, start, stop, classes) | {"n_words": n_words}
        return _classes.Classes(
            team.tier, team.scratch, activations, E, solver=team.solver,
            classes=classes, rest=rest,
            labels=self.labels, order=self.order, starts=self.starts, **rows,
        )  # fmt: skip


def frequency_bins(weights: Counts) -> Ids:
    """Return about sqrt(|V|) classes of equal weight, by decreasing frequency.

    An example then costs 2 sqrt(|V|) rows on average (Mikolov et al., 2011).
    """
    n_words = len(weights)
    n_classes = max(1, round(n_words**0.5))
    order = np.argsort(-weights, kind="stable")
    share = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
    labels = np.empty(n_words, np.int32)
    labels[order] = (share * n_classes).astype(np.int32)
    # Number the classes anew: an empty class would take probability.
    return np.unique(labels, return_inverse=True)[1].astype(np.int32)
