"""Inputs, which compute x from the words of a context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nplm._kernels.neural import _inputs
from nplm._kernels.neural._inputs import Activations
from nplm.base.array_types import Shapes, State
from nplm.models.neural.network.parameters import draw_normal
from nplm.models.neural.network.workspace import Kernel, Workspace

# Initial half-lives, in words, of the averages; longer ones than n_distant are left
# out.
HALF_LIVES = (2, 8, 32, 128, 512)
# Words with senses of their own: the first ids, which are the most frequent words in
# a `Vocabulary`.
N_FREQUENT = 2000
SCALE = 0.1  # standard deviation of random initial values


@dataclass(frozen=True)
class Concatenation:
    """Features of the words of the window, nearest first: the x of the paper."""

    learned: ClassVar[bool] = False  # whether it has parameters beside the features
    n_window: int  # n - 1
    n_features: int  # m

    @property
    def n_context(self) -> int:
        """Number of context words that are used."""
        return self.n_window

    @property
    def n_inputs(self) -> int:
        """Length of x."""
        return self.n_window * self.n_features

    @property
    def visited(self) -> tuple[str, ...]:
        """Names of the arrays of which an update visits only the rows of its words."""
        return ()

    def shapes(self, n_words: int) -> Shapes:
        """Return the shapes of the arrays that are trained beside C, by name."""
        return {}

    def draw(self, arrays: State, rng: np.random.RandomState) -> None:
        """Set the initial values of these arrays."""

    def kernel(self, team: Workspace, activations: Activations) -> Kernel:
        """Return the kernel."""
        return _inputs.Concatenation(team.features, self.n_window)


@dataclass(frozen=True)
class DistantAverages(Concatenation):
    """Features of the window, then weighted averages of those of distant words.

    Average j is the sum over the nearest `n_distant` words of ``P[j, i] C(w)``,
    where i counts words back from the nearest. The weights P are trained; each row
    initially has a half-life of its own.
    """

    learned: ClassVar[bool] = True
    n_distant: int

    @property
    def half_lives(self) -> list[int]:
        """Initial half-lives of the averages."""
        return [n for n in HALF_LIVES if n <= max(2, self.n_distant)]

    @property
    def n_context(self) -> int:
        return max(self.n_window, self.n_distant)

    @property
    def n_inputs(self) -> int:
        return (self.n_window + len(self.half_lives)) * self.n_features

    def shapes(self, n_words: int) -> Shapes:
        return {"P": (len(self.half_lives), self.n_distant)}

    def draw(self, arrays: State, rng: np.random.RandomState) -> None:
        """Set P: the rows sum to 1, and the weights halve every half-life."""
        age = np.arange(self.n_distant) / np.array(self.half_lives)[:, None]
        weights = 0.5**age
        weights /= weights.sum(axis=1, keepdims=True)
        arrays["P"][...] = weights

    def kernel(self, team: Workspace, activations: Activations) -> Kernel:
        return _inputs.DistantAverages(
            team.features, self.n_window, team.trained["P"], team.scratch
        )


@dataclass(frozen=True)
class MixedSenses:
    """Several senses of each word of the window, mixed according to the other words.

    The features of a word w gain a mixture of its sense vectors ``S[w]``. The mixture
    weights are a softmax of ``Q[w]`` times the sum of the other words' features: soft
    responsibilities (section 5.2, item 6).
    """

    learned: ClassVar[bool] = True
    visited: ClassVar[tuple[str, ...]] = ("S", "Q")
    words: Concatenation  # the inputs without senses
    n_senses: int
    n_frequent: int = N_FREQUENT

    @property
    def n_window(self) -> int:
        """Number of words of the window, n - 1."""
        return self.words.n_window

    @property
    def n_context(self) -> int:
        """Number of context words that are used."""
        return self.words.n_context

    @property
    def n_inputs(self) -> int:
        """Length of x."""
        return self.words.n_inputs

    def shapes(self, n_words: int) -> Shapes:
        """Return the shapes; S and Q have a row per frequent word and one more."""
        n_rows = min(n_words, self.n_frequent + 1)
        shape = n_rows, self.n_senses * self.words.n_features
        return self.words.shapes(n_words) | dict.fromkeys(self.visited, shape)

    def draw(self, arrays: State, rng: np.random.RandomState) -> None:
        """Draw S and Q, and set the arrays of the inputs without senses."""
        self.words.draw(arrays, rng)
        for name in self.visited:
            draw_normal(arrays[name], rng, SCALE)

    def kernel(self, team: Workspace, activations: Activations) -> Kernel:
        """Return the kernel."""
        return _inputs.MixedSenses(
            team.features, self.words.kernel(team, activations), activations,
            self.n_window, team.trained["S"], team.trained["Q"], team.scratch,
        )  # fmt: skip
