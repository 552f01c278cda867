"""The parameters of a network, of whichever kind."""

from __future__ import annotations

from typing import NamedTuple

from tests.reference.neural.arrays import Array
from tests.reference.neural.outputs import Softmax


class Weights(NamedTuple):
    """Parameters, or their gradients: E = [U | W | b], W without direct connections.

    When tied, which an R says, E = [C | b] and there is no other C. Where words are
    made of parts, C is what each has alone, and G the features of the parts. With an
    H_next they are those of an energy: E = [v | b], or [b] and a v apart.
    """

    C: Array | None
    H: Array
    d: Array
    E: Array
    P: Array | None = None  # weights of distant words by position
    S: Array | None = None  # senses, a row a word, or one of all others
    Q: Array | None = None  # what each sense asks of the other words
    R: Array | None = None  # projection to the features
    G: Array | None = None
    H_next: Array | None = None  # hidden weights of the next word's features
    v: Array | None = None  # weights of an energy that all words share
    n_window: int = 0  # words of the window, n - 1
    parts: Array | None = None  # (n_words, rows of G), what each word is made of
    fixed: bool = False  # whether C stays as it is
    output: Softmax = Softmax()

    def arrays(self) -> list[Array]:
        """Give those that are there and learned."""
        C = None if self.fixed else self.C
        every = (
            C, self.H, self.d, self.E, self.P, self.S, self.Q, self.R, self.G,
            self.H_next, self.v,
        )  # fmt: skip
        return [array for array in every if array is not None]

    def decaying(self) -> list[Array]:
        """Give those that the weight decay falls on: no bias, and no P."""
        C = None if self.fixed else self.C
        every = (
            C, self.H, self.E[:, :-1], self.S, self.Q, self.R, self.G, self.H_next,
            self.v,
        )  # fmt: skip
        return [array for array in every if array is not None]
