"""Hidden units, which compute a from x: the paper's, and LSTM cells."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count, takewhile
from numbers import Integral
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike

from nplm._kernels.neural._inputs import Activations
from nplm._kernels.neural.hidden import _hidden, _lstm
from nplm.base.array_types import Array, Shapes, State
from nplm.base.exceptions import parameter_error
from nplm.models.neural.network.dropout import N_LAYERS, PROJECTION
from nplm.models.neural.network.parameters import draw_normal
from nplm.models.neural.network.workspace import Kernel, Workspace

# Added to the variance by the layer norm of a block.
NORM_EPSILON = 1e-5
# Initial biases of the gates that keep the state, from the first unit to the last.
KEEP_BIASES = (-1.0, 4.0)
# Minimum length of a run: gradients reach at most so many words back, and half of it in
# the mean. Of large mini-batches the runs are longer, and not more.
MIN_RUN, MAX_RUNS = 32, 32


class Block(NamedTuple):
    """The parameters of a residual block, a + U max(d + H norm(a), 0)."""

    H: Array  # (width, n_hidden)
    d: Array  # (width,)
    U: Array  # (n_hidden, width)

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
        """Make the state that training carries from one mini-batch to the next."""
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

    def kernel(self, team: Workspace, activations: Activations) -> Kernel:
        """Return the kernel."""
        H, d = team.trained["H"], team.trained["d"]

        def units(activations: Activations) -> Kernel:
            return _hidden.Tanh(H, d, activations, team.scratch)

        return team.masks.of_units(activations, units)


@dataclass(frozen=True)
class NoHidden(Tanh):
    """No hidden units: the output uses only x, and H and d are empty."""

    n_hidden: int = 0

    def kernel(self, team: Workspace, activations: Activations) -> Kernel:
        return _hidden.Hidden()


@dataclass(frozen=True)
class Linear(Tanh):
    """Sums d + Hx; the output adds terms of the next word before the tanh."""

    def kernel(self, team: Workspace, activations: Activations) -> Kernel:
        H, d = team.trained["H"], team.trained["d"]
        return _hidden.Linear(H, d, activations, team.scratch)


def n_runs(batch_size: int) -> int:
    """Return the number of runs of a mini-batch, all of one length."""
    most = max(1, min(MAX_RUNS, batch_size // MIN_RUN))
    return max(n for n in range(1, most + 1) if batch_size % n == 0)


@dataclass(frozen=True)
class LSTM(Tanh):
    """LSTM cells, which see x and the activations a of all cells after the word before.

    The state c of a cell, and its activation, are::

        c = f * c_before + (1 - f) * z
        a = o * tanh(c)

    with the gates f and o and the new values z, which are sigmoid, sigmoid and tanh of
    the parts of ``d + H x + V a_before``.
    """

    n_words: int  # of a window, over which the state is made in scoring

    @property
    def n_memory(self) -> int:
        return self.n_words

    @property
    def n_sums(self) -> int:
        return 3 * self.n_hidden

    def shapes(self, n_inputs: int) -> Shapes:
        return {"V": (self.n_sums, self.n_hidden)}

    def draw(self, arrays: State, rng: np.random.RandomState) -> None:
        """Draw V, and set d: the cells differ in how long they remember."""
        h = self.n_hidden
        arrays["d"][:h] = np.linspace(*KEEP_BIASES, h)
        draw_normal(arrays["V"], rng, 1 / np.sqrt(h))

    def n_weights(self, n_inputs: int) -> int:
        return self.n_sums * (n_inputs + self.n_hidden)

    def initial_memory(self, n_members: int, n_runs: int, dtype: DTypeLike) -> State:
        """Make the empty a and c after each run, and the row of its last window, -1."""
        n = n_runs + 1  # one is cut in two where the order of an epoch wraps around
        return {
            "memory": np.zeros((n_members, n, 2 * self.n_hidden), dtype),
            "memory_last": np.full((n_members, n), -1, np.intp),
        }

    def check_memory(self, state: State) -> None:
        # c is a mean of values of tanh.
        if not (np.abs(state["memory"]) <= 1.001).all():  # nor NaN
            raise ValueError("memory has NaN, or numbers beyond -1 and 1")

    def run_length(self, batch_size: int) -> int:
        return batch_size // n_runs(batch_size)

    def kernel(self, team: Workspace, activations: Activations) -> Kernel:
        H, d, V = (team.trained[name] for name in ("H", "d", "V"))
        scratch = team.scratch
        if activations.scoring and not team.memory:
            at = activations.positions(team.inputs.n_context)
            inputs = team.inputs.kernel(team, at)
            return _lstm.Windows(
                H, d, V, at, scratch, inputs=inputs, windows=activations
            )

        def units(activations: Activations) -> Kernel:
            return _lstm.Continuing(
                H, d, V, activations, scratch,
                memory=team.memory["memory"][team.member].view(np.uint8),
                last=team.memory["memory_last"][team.member],
            )  # fmt: skip

        return team.masks.of_units(activations, units)


@dataclass(frozen=True)
class Above(Tanh):
    """A part above the `n_hidden` hidden units."""

    below: Tanh

    @property
    def lowest(self) -> Tanh:
        return self.below.lowest


@dataclass(frozen=True)
class Residual(Above):
    """The paper's hidden units, and residual blocks of `widths` units above them.

    Each block adds to a what its units make of it, a + U max(d + H norm(a), 0), and the
    next one, or the output, sees the sum. norm(a) has mean 0 and variance 1.
    """

    widths: tuple[int, ...]

    def shapes(self, n_inputs: int) -> Shapes:
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
        of_blocks = 2 * self.n_hidden * sum(self.widths)
        return self.below.n_weights(n_inputs) + of_blocks

    def kernel(self, team: Workspace, activations: Activations) -> Kernel:
        inner, scratch = activations.apart(self.n_hidden), team.scratch
        kernel = self.below.kernel(team, inner)
        for i, width in enumerate(self.widths, 1):
            H, d, U = (team.trained[name] for name in Block.names(i))
            is_last = i == len(self.widths)
            outer = activations if is_last else activations.apart(self.n_hidden)
            wide = outer.apart(width, self.n_hidden)

            def units(wide: Activations, H: Kernel = H, d: Kernel = d) -> Kernel:
                return _hidden.Rectified(H, d, wide, scratch)

            above = team.masks.of_units(wide, units, N_LAYERS - 1 + i)
            kernel = _hidden.Block(
                kernel, above, U, inner, wide, outer, scratch, epsilon=NORM_EPSILON
            )
            inner = outer
        return kernel


def checked_sizes(n_hidden: object) -> int | tuple[int, ...]:
    """Return an estimator's `n_hidden`, an int without blocks, or raise ValueError."""
    if isinstance(n_hidden, Integral):
        return int(n_hidden)
    sizes = list(n_hidden) if np.iterable(n_hidden) else []
    if not sizes or any(
        isinstance(size, bool) or not isinstance(size, Integral) for size in sizes
    ):
        raise parameter_error(
            "{n_hidden} is neither a whole number nor a sequence of them; give the "
            "number of hidden units, or also that of each residual block, such as "
            "(400, 800, 800).", n_hidden=n_hidden,
        )  # fmt: skip
    h, *widths = sizes = [int(size) for size in sizes]
    if min(sizes) < (1 if widths else 0):
        raise parameter_error(
            "{n_hidden} has {0}; the hidden layer and the residual blocks above it "
            "need at least one unit each.", min(sizes), n_hidden=n_hidden,
        )  # fmt: skip
    return (h, *widths) if widths else h


@dataclass(frozen=True)
class Projected(Above):
    """Hidden units projected to the `m` features of a word, s = R [a | x] or R a."""

    m: int
    direct: bool

    def n_weights(self, n_inputs: int) -> int:
        return self.below.n_weights(n_inputs)

    @property
    def n_activations(self) -> int:
        """Length of s."""
        return self.m

    def shapes(self, n_inputs: int) -> Shapes:
        n = self.n_hidden + (n_inputs if self.direct else 0)
        return {"R": (self.m, n)} | self.below.shapes(n_inputs)

    def draw(self, arrays: State, rng: np.random.RandomState) -> None:
        """Draw as below. R is 0, so that the initial output is that of the biases."""
        self.below.draw(arrays, rng)

    def kernel(self, team: Workspace, activations: Activations) -> Kernel:
        inner = activations.apart(self.n_hidden)
        kernel, R = self.below.kernel(team, inner), team.trained["R"]

        def projected(activations: Activations) -> Kernel:
            return _hidden.Projected(kernel, R, inner, activations, team.scratch)

        return team.masks.of_units(activations, projected, PROJECTION)
