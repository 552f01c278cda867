"""Base class of the outputs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from nplm._kernels.neural._team import block_starts
from nplm.base.array_types import Array, Counts, Shapes, State
from nplm.models.neural.network.workspace import Kernel, Workspace


@dataclass(frozen=True)
class Output:
    """Logits E z with z = [a | x | 1], or z = [a | 1] if not `direct`."""

    direct: bool
    # Whether threads and processes can split the rows among them (section 3.2).
    rows_are_shared: ClassVar[bool] = False
    # Whether threads can split the examples instead, if they can split the rows.
    examples_are_shared: ClassVar[bool] = True
    # Whether threads take the examples of a mini-batch in an order of their own.
    examples_are_arranged: ClassVar[bool] = False
    # Whether it also trains the features of words, which processes cannot share.
    rows_are_features: ClassVar[bool] = False
    # Whether an update visits few rows; their weight decay is then lazy.
    rows_are_visited: ClassVar[bool] = False
    # Whether its kernel can compute the logit of a single word.
    logits_are_single: ClassVar[bool] = False
    # Whether precision="bfloat16" rounds its products, beside those below.
    rounds: ClassVar[bool] = False

    @property
    def weighted(self) -> bool:
        """Whether a row of E has weights beside its bias."""
        return True

    @property
    def normalizes(self) -> bool:
        """Whether training makes unnormalized scores close to log-probabilities."""
        return False

    def n_rows(self, n_words: int) -> int:
        """Return the number of rows of E."""
        return n_words

    def n_outcomes(self, n_words: int) -> int:
        """Return the number of outcomes that have probabilities."""
        return n_words

    def n_tied_rows(self, batch_size: int) -> int | None:
        """Return the tied rows that a mini-batch uses at most; None is all."""
        return 0

    def initial_biases(self, n_words: int, counts: Counts) -> Array:
        """Return the initial biases of all rows, from the counts of the next words."""
        raise NotImplementedError

    def shapes(self, n_features: int, n_hidden: int) -> Shapes:
        """Return the shapes of the arrays that are trained beside E, by name."""
        return {}

    def draw(self, arrays: State, rng: np.random.RandomState) -> None:
        """Draw the initial values of these arrays that are not 0."""

    def initial_state(
        self, n_words: int, counts: Counts, rng: np.random.RandomState, n_workers: int
    ) -> State:
        """Return the saved state of `n_workers` teams beside the parameters."""
        return {}

    def check_state(self, saved: State, state: State) -> None:
        """Raise ValueError if a saved state is impossible in this fit."""

    def figures(self, state: State) -> dict[str, float]:
        """Return further metrics of an epoch, for the history."""
        return {}

    def kernels(self, team: Workspace) -> list[Kernel]:
        """Return the kernels of a team, one per member that has rows."""
        kernels: list[Kernel] = []
        n_rows = team.trained["E"].rows
        for start, stop in pairwise(block_starts(n_rows, team.n_members)):
            if start == stop and kernels:
                break  # members without a row are left out
            leader = kernels[0] if kernels else None
            kernels.append(self.kernel(team, start, stop, leader))
        return kernels

    def kernel(
        self, team: Workspace, start: int, stop: int, leader: Kernel | None
    ) -> Kernel:
        """Return the kernel of some rows of E; `leader` is that of the first member."""
        raise NotImplementedError

    def _rows(
        self, team: Workspace, start: int, stop: int, leader: Kernel | None
    ) -> dict[str, Any]:
        """Return keyword arguments of the kernels that derive from `Rows`."""
        n = stop - start
        return {
            "direct": self.direct, "first": team.first + start, "n_words": n,
            "row": start, "n_rows": n, "leader": leader,
        }  # fmt: skip
