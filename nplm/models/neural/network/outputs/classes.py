"""Classes of words, and the words of each (section 5.2)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.neural.outputs import _classes, _softmax
from nplm.base.checks import check_classes, count_ids
from nplm.models.neural.network.outputs.base import Output, Workspace

__all__ = ["Classes"]

EMPTY = np.empty(0, np.int32)


@dataclass(frozen=True, eq=False)
class Classes(Output):
    """Rows of E for the classes, then for the words, class by class.

    `given` is the class of each word, or what has ``labels_``; without it words of
    about the same frequency make a class. `labels` are the classes in use, `order` the
    words of the rows, and `starts` where among these each class begins.
    """

    name: ClassVar[str] = "classes"
    rows_are_visited: ClassVar[bool] = True

    given: Any = None
    labels: NDArray[np.int32] = field(default_factory=lambda: EMPTY)
    order: NDArray[np.int32] = field(default_factory=lambda: EMPTY)
    starts: NDArray[np.intp] = field(default_factory=lambda: np.zeros(1, np.intp))

    def learn(self, n_words: int, X: NDArray[np.int32], y: NDArray[np.int32]) -> Self:
        """Give the same with a class for every word."""
        if self.given is None:
            labels = frequency_bins(count_ids(y, n_words) + 1)
        else:
            labels = check_classes(self.given, "word_classes", n_words)
        order = np.argsort(labels, kind="stable").astype(np.int32)
        starts = np.concatenate([[0], np.cumsum(np.bincount(labels))])
        return replace(self, labels=labels, order=order, starts=starts.astype(np.intp))

    def go_on(self, fitted: Output) -> Output:
        """Give the fitted classes, unless others are asked for."""
        assert isinstance(fitted, Classes)
        if self.given is not None:
            asked = check_classes(self.given, "word_classes", len(fitted.labels))
            if not np.array_equal(asked, fitted.labels):
                raise ValueError(
                    "word_classes are not those of the network fitted so far, which "
                    "cannot change while training goes on; set them back (or to None), "
                    "or fit a new model (clone this one)."
                )
        return fitted

    def made_with(self) -> dict[str, Any]:
        """Give the parameters of an estimator that ask for it, beside its name."""
        return {"word_classes": self.labels}

    def n_rows(self, n_words: int) -> int:
        """Classes and words."""
        return len(self.starts) - 1 + n_words

    def initial_biases(self, n_words: int, y: NDArray[np.int32]) -> NDArray[Any]:
        """Give the logarithms of the (add-one) unigrams, of classes and within them.

        With U = W = 0 these are what the words have.
        """
        counts = count_ids(y, n_words) + 1.0
        mass = np.bincount(self.labels, counts)
        within = np.log(counts / mass[self.labels])
        return np.concatenate([np.log(mass / mass.sum()), within[self.order]])

    def kernel(self, team: Workspace, start: int, stop: int, leader: Any) -> Any:
        """Give the kernel of the one member."""
        n_words, n_classes = len(self.labels), len(self.starts) - 1
        E = team.trained["E"]

        def flat(row: int, n: int, leader: Any) -> Any:
            return _softmax.Softmax(
                team.tier, team.scratch, team.at, E, direct=self.direct, first=0,
                n_words=n, row=row, n_rows=n, leader=leader, solver=team.solver,
            )  # fmt: skip

        classes = flat(0, n_classes, None)
        rows = self._rows(team, start, stop, classes) | {"n_words": n_words}
        return _classes.Classes(
            team.tier, team.scratch, team.at, E, solver=team.solver, classes=classes,
            rest=flat(n_classes, n_words, classes) if team.at.scoring else None,
            labels=self.labels, order=self.order, starts=self.starts, **rows,
        )  # fmt: skip


def frequency_bins(weights: NDArray[np.int64]) -> NDArray[np.int32]:
    """Give about sqrt(|V|) classes that weigh the same, by falling frequency.

    Then an example costs 2 sqrt(|V|) rows on average: as many classes, and as many
    words of the class (Mikolov et al., 2011, have them so).
    """
    n_words = len(weights)
    n_classes = max(1, round(n_words**0.5))
    order = np.argsort(-weights, kind="stable")
    share = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
    labels = np.empty(n_words, np.int32)
    labels[order] = (share * n_classes).astype(np.int32)
    # One without words would take probability.
    return np.unique(labels, return_inverse=True)[1].astype(np.int32)
