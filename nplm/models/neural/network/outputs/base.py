"""What every kind of output says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nplm._kernels.neural._team import block_starts

__all__ = ["Output", "State", "Workspace"]

State = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Workspace:
    """What the output kernels of one team work with.

    Parameters
    ----------
    tier, scratch, at : Tier, Scratch, Activations
        Whose loops; where memory is taken; what the parts hand each other.
    features : Features
        Kernel of who owns those of the words.
    trained : dict of Parameter
        All parameters, by name.
    state : dict of ndarray
        See `Output.initial_state`; empty to score.
    first : int
        The word whose row is the first here.
    n_members : int
        Threads that share the rows: 1 unless the output's `rows_are_shared`.
    worker, n_workers : int
        Which team this is, of those that train the same parameters.
    solver : Solver or None
        Kernel of who trains; None to score.
    """

    tier: Any
    scratch: Any
    at: Any
    features: Any
    trained: dict[str, Any]
    state: State
    first: int
    n_members: int
    worker: int
    n_workers: int
    solver: Any


@dataclass(frozen=True)
class Output:
    """Rows of E times z = [a | x | 1], or z = [a | 1] if not `direct`."""

    direct: bool
    name: ClassVar[str]  # the estimator's `output`
    # Whether threads and processes can have some of the rows each (section 3.2).
    rows_are_shared: ClassVar[bool] = False
    # Whether it learns the features of its words too: processes cannot share them.
    rows_are_features: ClassVar[bool] = False
    # Whether an update visits few rows: the weight decay then comes to them lazily.
    rows_are_visited: ClassVar[bool] = False
    # Whether its kernel gives the logit of any one word.
    logits_are_single: ClassVar[bool] = False
    # Whether it has products that precision="bfloat16" rounds.
    rounds: ClassVar[bool] = False

    def learn(self, n_words: int, X: NDArray[np.int32], y: NDArray[np.int32]) -> Self:
        """Give the same with all that it needs to know of windows."""
        return self

    def go_on(self, fitted: Output) -> Output:
        """Give what trains `fitted` further, or raise where that is another network."""
        return self

    @property
    def weighted(self) -> bool:
        """Whether a row of E has weights of what comes from below, beside its bias."""
        return True

    @property
    def normalizes(self) -> bool:
        """Whether scores come to be log-probabilities by themselves."""
        return False

    def made_with(self) -> dict[str, Any]:
        """Give the parameters of an estimator that ask for it, beside its name."""
        return {}

    def n_rows(self, n_words: int) -> int:
        """Rows of E, for so many words."""
        return n_words

    def n_outcomes(self, n_words: int) -> int:
        """Columns of its probabilities, for so many words in the contexts."""
        return n_words

    def of_few(self, n_outputs: int) -> Self:
        """Give the same of `n_outputs` outcomes, others than the contexts' words."""
        raise ValueError(
            f"a short-list needs the plain softmax, which predicts as many words as "
            f"it has rows, and {type(self).__name__} predicts all words: leave the "
            "network's output, loss and tied at their defaults."
        )

    def n_met(self, batch_size: int) -> int | None:
        """Words whose tied features a mini-batch meets in the output, at most.

        None is all of them: it looks at every row.
        """
        return 0

    def initial_biases(self, n_words: int, y: NDArray[np.int32]) -> NDArray[Any]:
        """Give the biases of all rows before training on next words `y`."""
        raise NotImplementedError

    def initial_arrays(
        self,
        n_words: int,
        n_features: int,
        n_hidden: int,
        rng: np.random.RandomState,
        dtype: DTypeLike,
    ) -> State:
        """Draw what it trains beside E, by name."""
        return {}

    def initial_state(
        self,
        n_words: int,
        y: NDArray[np.int32],
        rng: np.random.RandomState,
        n_workers: int,
    ) -> State:
        """Make what training changes that is no parameter; saved with a fit.

        `n_workers` is the number of teams that train the same parameters.
        """
        return {}

    def check_state(self, found: State, own: State) -> None:
        """Raise ValueError where no training of this fit makes `found` of `own`."""

    def figures(self, state: State) -> dict[str, float]:
        """Give more figures of an epoch, for the history."""
        return {}

    def kernels(self, team: Workspace) -> list[Any]:
        """Give the kernels of a team, one a member with rows of its own."""
        made: list[Any] = []
        n_rows = team.trained["E"].rows
        for start, stop in pairwise(block_starts(n_rows, team.n_members)):
            if start == stop and made:
                break  # members without a row are left out
            made.append(self.kernel(team, start, stop, made[0] if made else None))
        return made

    def kernel(self, team: Workspace, start: int, stop: int, leader: Any) -> Any:
        """Give the kernel of a member, whose rows of E are these.

        `leader` is the first member's, None for itself.
        """
        raise NotImplementedError

    def _rows(
        self, team: Workspace, start: int, stop: int, leader: Any
    ) -> dict[str, Any]:
        """Give the options of kernels that are `Rows`, one a word."""
        n = stop - start
        return {
            "direct": self.direct, "first": team.first + start, "n_words": n,
            "row": start, "n_rows": n, "leader": leader,
        }  # fmt: skip
