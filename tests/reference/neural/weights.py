"""The parameters of a network, of whichever kind."""

from itertools import chain
from typing import NamedTuple

from tests.reference import Array
from tests.reference.neural.outputs import Softmax


class Block(NamedTuple):
    """Parameters of a block, a + U max(d + H norm(a), 0), or their gradients."""

    H: Array
    d: Array
    U: Array


class Weights(NamedTuple):
    """Parameters, or their gradients: E = [U | W | b], W without direct connections.

    If tied, which an R implies, E = [C | b] and there is no other C. If words have
    parts, C has the own features of words, and G the features of the parts. H_next
    implies an energy: E = [v | b], or [b] and a separate v.
    """

    C: Array | None
    H: Array
    d: Array
    E: Array
    P: Array | None = None  # weights of distant words by position
    S: Array | None = None  # senses, a row per word, and one for others
    Q: Array | None = None  # weights that select senses
    R: Array | None = None  # projection to the features
    V: Array | None = None  # weights of the a before, of LSTM cells
    blocks: tuple[Block, ...] = ()  # above the hidden units
    G: Array | None = None
    H_next: Array | None = None  # hidden weights of the next word's features
    v: Array | None = None  # weights of an energy that all words share
    n_window: int = 0  # words of the window, n - 1
    parts: Array | None = None  # (n_words, rows of G), parts of words
    fixed: bool = False  # whether C is not trained
    output: Softmax = Softmax()

    @property
    def n_context(self):
        """Number of words that the inputs use."""
        return max(self.n_window, 0 if self.P is None else self.P.shape[1])

    @property
    def n_hidden(self):
        """Number of hidden units."""
        return len(self.d) if self.V is None else self.V.shape[1]

    def arrays(self):
        """Return the trained arrays."""
        C = None if self.fixed else self.C
        every = (
            C, self.H, self.d, self.E, self.P, self.S, self.Q, self.R, self.V,
            *chain(*self.blocks), self.G, self.H_next, self.v,
        )  # fmt: skip
        return [array for array in every if array is not None]

    def decaying(self):
        """Return the arrays with weight decay: no biases, and not P."""
        C = None if self.fixed else self.C
        every = (
            C, self.H, self.E[:, :-1], self.S, self.Q, self.R, self.V,
            *(array for H, _, U in self.blocks for array in (H, U)), self.G,
            self.H_next, self.v,
        )  # fmt: skip
        return [array for array in every if array is not None]
