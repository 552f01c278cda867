"""Inputs: from the words of a context to x, the features that the network sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nplm._kernels.neural import _inputs
from nplm.models.neural.network.parameters import random_normal

__all__ = ["Concatenation", "DistantAverages", "MixedSenses"]

# Half-lives, in words, of the averages when training begins; those within reach.
HALF_LIVES = (2, 8, 32, 128, 512)
# Words with senses of their own: the first, which a `Vocabulary` has the most frequent.
N_FREQUENT = 2000
SCALE = 0.1  # deviation of what is drawn


@dataclass(frozen=True)
class Concatenation:
    """The paper's x: the features of the window's words, nearest first."""

    learned: ClassVar[bool] = False  # whether it has parameters, beside the features
    n_window: int  # n - 1
    n_features: int  # m

    @property
    def n_context(self) -> int:
        """Words of a context that are looked at."""
        return self.n_window

    @property
    def n_inputs(self) -> int:
        """Length of x."""
        return self.n_window * self.n_features

    @property
    def visited(self) -> tuple[str, ...]:
        """The arrays of which an update visits the rows of its words."""
        return ()

    def initial_arrays(
        self, n_words: int, rng: np.random.RandomState, dtype: DTypeLike
    ) -> dict[str, NDArray[Any]]:
        """Make what they train beside C, by name."""
        return {}

    def kernel(
        self, features: Any, trained: dict[str, Any], at: Any, scratch: Any
    ) -> Any:
        """Give the kernel, which works on `trained` parameters."""
        return _inputs.Concatenation(features, self.n_window)


@dataclass(frozen=True)
class DistantAverages(Concatenation):
    """The window's features, then averages of those of words near and far.

    Average j is the sum over the nearest `n_distant` words of ``P[j, i] C(w)``,
    where i counts words back from the nearest. The weights P are learned; they
    begin with a half-life each.
    """

    learned: ClassVar[bool] = True
    n_distant: int

    @property
    def half_lives(self) -> list[int]:
        """Those of the averages, at first."""
        return [n for n in HALF_LIVES if n <= max(2, self.n_distant)]

    @property
    def n_context(self) -> int:
        """Words of a context that are looked at."""
        return max(self.n_window, self.n_distant)

    @property
    def n_inputs(self) -> int:
        """Length of x."""
        return (self.n_window + len(self.half_lives)) * self.n_features

    def initial_arrays(
        self, n_words: int, rng: np.random.RandomState, dtype: DTypeLike
    ) -> dict[str, NDArray[Any]]:
        """Make P: each row sums to 1 and halves every half-life."""
        age = np.arange(self.n_distant) / np.array(self.half_lives)[:, None]
        weights = 0.5**age
        weights /= weights.sum(axis=1, keepdims=True)
        return {"P": weights.astype(dtype)}

    def kernel(
        self, features: Any, trained: dict[str, Any], at: Any, scratch: Any
    ) -> Any:
        """Give the kernel, which works on `trained` parameters."""
        return _inputs.DistantAverages(features, self.n_window, trained["P"], scratch)


@dataclass(frozen=True)
class MixedSenses:
    """Several senses of each word of the window, mixed by what its others are.

    To the features of a word are added vectors of its own, ``S[w]``, in shares that are
    the softmax of what ``Q[w]`` makes of the sum of the other words' features: soft
    responsibilities (section 5.2, item 6).
    """

    learned: ClassVar[bool] = True
    words: Concatenation  # what they are added to
    n_senses: int
    n_frequent: int = N_FREQUENT

    @property
    def n_window(self) -> int:
        """Words of the window, n - 1."""
        return self.words.n_window

    @property
    def n_context(self) -> int:
        """Words of a context that are looked at."""
        return self.words.n_context

    @property
    def n_inputs(self) -> int:
        """Length of x."""
        return self.words.n_inputs

    @property
    def visited(self) -> tuple[str, ...]:
        """The arrays of which an update visits the rows of its words."""
        return ("S", "Q")

    def shape(self, n_words: int) -> tuple[int, int]:
        """Give that of S and Q: a row for each frequent word, and one of all others."""
        n_rows = min(n_words, self.n_frequent + 1)
        return n_rows, self.n_senses * self.words.n_features

    def initial_arrays(
        self, n_words: int, rng: np.random.RandomState, dtype: DTypeLike
    ) -> dict[str, NDArray[Any]]:
        """Draw S and Q, and what they are added to makes its own."""
        shape = self.shape(n_words)
        return self.words.initial_arrays(n_words, rng, dtype) | {
            name: random_normal(rng, SCALE, shape, dtype) for name in self.visited
        }

    def kernel(
        self, features: Any, trained: dict[str, Any], at: Any, scratch: Any
    ) -> Any:
        """Give the kernel, which works on `trained` parameters."""
        return _inputs.MixedSenses(
            features, self.words.kernel(features, trained, at, scratch), at,
            self.n_window, trained["S"], trained["Q"], scratch,
        )  # fmt: skip
