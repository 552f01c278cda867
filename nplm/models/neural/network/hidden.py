"""Hidden units, which compute a from x."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count, takewhile
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike

from nplm._kernels.neural.hidden import _hidden
from nplm.models.neural.network.array_types import (
    Activations,
    Array,
    Kernel,
    Scratch,
    Shapes,
    State,
    Trained,
)
from nplm.models.neural.network.parameters import draw_normal

__all__ = [
    "Block",
    "Given",
    "Linear",
    "NoHidden",
    "Projected",
    "Residual",
    "Tanh",
    "checked_sizes",
]

# Added to the variance by the layer norm of a block.
NORM_EPSILON = 1e-5


class Block(NamedTuple):
    """The parameters of a residual block, a + U max(d + H norm(a), 0).

    - `H` (width, n_hidden): weights of the block's units, which see the normalised a
    - `d` (width,): biases of these units
    - `U` (n_hidden, width): weights from these units back to a
    """

    H: Array
    d: Array
    U: Array

    @staticmethod
    def names(i: int) -> tuple[str, str, str]:
        """Return the names of the arrays of block i, from 1, among all parameters."""
        return f"H{i}", f"d{i}", f"U{i}"

    @classmethod
    def all_of(cls, arrays: State) -> tuple[Self, ...]:
        """Return the blocks among parameters by name."""
        every = takewhile(lambda names: names[0] in arrays, map(cls.names, count(1)))
        return tuple(cls(*(arrays[name] for name in names)) for names in every)


@dataclass(frozen=True)
class Given:
    """The arguments of the kernels of hidden units.

    - `trained`: the trained parameters, by name
    - `scratch`: memory of the thread
    - `inputs`: makes a further kernel of the inputs, for its activations
    - `n_context`: number of context words that the inputs use
    - `memory`: state of the hidden units (`Tanh.initial_memory`), unless each window is
      scored alone
    - `member`: number of the thread, which has a part of `memory`
    """

    trained: Trained
    scratch: Scratch
    masks: Any
    inputs: Callable[[Activations], Kernel]
    n_context: int
    memory: State
    member: int


@dataclass(frozen=True)
class Tanh:
    """Hidden units a = tanh(d + Hx), as in the paper."""

    n_hidden: int

    @property
    def n_activations(self) -> int:
        """Number of activations that the output uses."""
        return self.n_hidden

    @property
    def lowest(self) -> Tanh:
        """The units at the bottom, which see x, and may have a state."""
        return self

    @property
    def n_sums(self) -> int:
        """Number of sums d + H x."""
        return self.n_hidden

    @property
    def n_memory(self) -> int:
        """Number of words of a window that the units use; 0 without a state."""
        return 0

    def initial_memory(self, n_members: int, n_runs: int, dtype: DTypeLike) -> State:
        """Make the state that training carries from one mini-batch to the next.

        `n_runs` is the number of runs of consecutive examples of a mini-batch.
        """
        return {}

    def check_memory(self, state: State) -> None:
        """Raise ValueError unless training can go on from this state."""

    def run_length(self, batch_size: int) -> int:
        """Return the number of consecutive examples that a thread takes together."""
        return 1

    def shapes(self, n_inputs: int) -> Shapes:
        """Return the shapes of the arrays that are trained beside H and d, by name."""
        return {}

    def draw(self, arrays: State, rng: np.random.RandomState) -> None:
        """Draw the initial values of these arrays that are not 0."""

    def n_weights(self, n_inputs: int) -> int:
        """Return the number of weights between x and a."""
        return self.n_hidden * n_inputs

    def kernel(self, activations: Activations, given: Given) -> Kernel:
        """Return the kernel."""
        H, d = given.trained["H"], given.trained["d"]

        def units(activations: Activations) -> Kernel:
            return _hidden.Tanh(H, d, activations, given.scratch)

        return given.masks.of_hidden(activations, units)


@dataclass(frozen=True)
class NoHidden(Tanh):
    """No hidden units: the output uses only x, and H and d are empty."""

    n_hidden: int = 0

    def kernel(self, activations: Activations, given: Given) -> Kernel:
        return _hidden.Hidden()


@dataclass(frozen=True)
class Linear(Tanh):
    """Sums d + Hx; the output adds terms of the next word before the tanh."""

    def kernel(self, activations: Activations, given: Given) -> Kernel:
        H, d = given.trained["H"], given.trained["d"]
        return _hidden.Linear(H, d, activations, given.scratch)


@dataclass(frozen=True)
class Above(Tanh):
    """A part above hidden units.

    `n_hidden`: number of hidden units.
    """

    below: Tanh

    @property
    def lowest(self) -> Tanh:
        """The units at the bottom."""
        return self.below.lowest


@dataclass(frozen=True)
class Residual(Above):
    """The paper's hidden units, and residual blocks above them.

    Each block adds to a what its units make of it, a + U max(d + H norm(a), 0), and
    the next one, or the output, sees the sum. norm(a) has mean 0 and variance 1.

    - `n_hidden`: number of hidden units
    - `widths`: number of units of each block
    """

    widths: tuple[int, ...]

    def shapes(self, n_inputs: int) -> Shapes:
        """Return the shapes of the arrays of the blocks, and of the units below."""
        shapes, h = self.below.shapes(n_inputs), self.n_hidden
        for i, width in enumerate(self.widths, 1):
            of_block = (width, h), (width,), (h, width)
            shapes |= zip(Block.names(i), of_block, strict=True)
        return shapes

    def draw(self, arrays: State, rng: np.random.RandomState) -> None:
        """Draw H of each block. U is 0: a block begins as the identity."""
        self.below.draw(arrays, rng)
        for block in Block.all_of(arrays):
            draw_normal(block.H, rng, np.sqrt(2.0 / self.n_hidden))

    def n_weights(self, n_inputs: int) -> int:
        own = 2 * self.n_hidden * sum(self.widths)
        return self.below.n_weights(n_inputs) + own

    def kernel(self, activations: Activations, given: Given) -> Kernel:
        inner, scratch = activations.apart(self.n_hidden), given.scratch
        kernel = self.below.kernel(inner, given)
        for i, width in enumerate(self.widths, 1):
            H, d, U = (given.trained[name] for name in Block.names(i))
            is_last = i == len(self.widths)
            outer = activations if is_last else activations.apart(self.n_hidden)
            wide = outer.apart(width, self.n_hidden)

            def units(wide: Activations, H: Kernel = H, d: Kernel = d) -> Kernel:
                return _hidden.Rectified(H, d, wide, scratch)

            above = given.masks.of_block(i, wide, units)
            kernel = _hidden.Block(
                kernel, above, U, inner, wide, outer, scratch, epsilon=NORM_EPSILON
            )
            inner = outer
        return kernel


def checked_sizes(n_hidden: Any) -> int | tuple[int, ...]:
    """Return an estimator's `n_hidden`, an int without blocks, or raise ValueError."""
    if isinstance(n_hidden, Integral):
        return int(n_hidden)
    sizes = list(n_hidden) if np.iterable(n_hidden) else []
    if not sizes or any(
        isinstance(size, bool) or not isinstance(size, Integral) for size in sizes
    ):
        raise ValueError(
            f"n_hidden={n_hidden!r} is neither a whole number nor a sequence of them; "
            "give the number of hidden units, or also that of each residual block, "
            "such as (400, 800, 800)."
        )
    h, *widths = sizes = [int(size) for size in sizes]
    if min(sizes) < (1 if widths else 0):
        raise ValueError(
            f"n_hidden={n_hidden!r} has {min(sizes)}; the hidden layer and the "
            "residual blocks above it need at least one unit each."
        )
    return (h, *widths) if widths else h


@dataclass(frozen=True)
class Projected(Above):
    """Hidden units projected to the number of features of a word, s = R [a | x].

    - `n_hidden`: number of hidden units
    - `below`: the hidden units, with any residual blocks
    - `m`: number of features of a word
    - `direct`: whether x is projected too
    """

    m: int
    direct: bool

    def n_weights(self, n_inputs: int) -> int:
        return self.below.n_weights(n_inputs)

    @property
    def n_activations(self) -> int:
        """Length of s."""
        return self.m

    def shapes(self, n_inputs: int) -> Shapes:
        """Return the shape of R, and of the arrays of the units below."""
        n = self.n_hidden + (n_inputs if self.direct else 0)
        return {"R": (self.m, n)} | self.below.shapes(n_inputs)

    def draw(self, arrays: State, rng: np.random.RandomState) -> None:
        """Draw as below. R is 0, so that the initial output is that of the biases."""
        self.below.draw(arrays, rng)

    def kernel(self, activations: Activations, given: Given) -> Kernel:
        inner = activations.apart(self.n_hidden)
        kernel, R = self.below.kernel(inner, given), given.trained["R"]

        def projected(activations: Activations) -> Kernel:
            return _hidden.Projected(kernel, R, inner, activations, given.scratch)

        return given.masks.of_projection(activations, projected)
