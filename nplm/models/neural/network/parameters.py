"""Who owns the numbers of a network: all that is saved, shared out and trained."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nplm._kernels.neural._loops import row_stride

__all__ = ["Parameters", "aligned_zeros", "random_normal"]

CACHE_LINE = 64  # bytes


def aligned_zeros(shape: tuple[int, int], dtype: DTypeLike) -> NDArray[Any]:
    """Zeros that begin with a cache line, so that no vector straddles two.

    NumPy's own arrays begin 16 bytes into one.
    """
    size, itemsize = shape[0] * shape[1], np.dtype(dtype).itemsize
    memory = np.zeros(size + CACHE_LINE // itemsize, dtype=dtype)
    start = -memory.ctypes.data % CACHE_LINE // itemsize
    return memory[start : start + size].reshape(shape)


def random_normal(
    rng: np.random.RandomState, scale: float, shape: tuple[int, int], dtype: DTypeLike
) -> NDArray[Any]:
    """Draw normal numbers, a few rows at a time, for they come in float64."""
    drawn = np.empty(shape, dtype)
    for start in range(0, len(drawn), 4096):
        rows = drawn[start : start + 4096]
        rows[...] = rng.normal(0.0, scale, rows.shape)
    return drawn


class Parameters:
    """The parameters of a network, under the paper's names.

    The output units are kept as one matrix E with a row a word, ``[U | W | b]`` (or
    ``[U | b]`` without direct connections), filled up with zeros to whole vectors of
    the processor: one word's parameters lie together. U, W and b are views of it.

    Parameters
    ----------
    C : ndarray, shape (n_words, m)
        Features of the words.
    H : ndarray, shape (n_hidden, n_inputs)
        Hidden weights.
    d : ndarray, shape (n_hidden,)
        Hidden biases.
    E : ndarray, shape (rows, stride)
        Output units, of all words or of a part of them. `output_rows` makes one.
    direct : bool
        Whether E has a W.
    weighted : bool
        Whether E has a U, or the C of `tied`.
    visited : tuple of str
        The arrays of which an update visits few rows.
    derived : tuple of str
        Those that are given, or made of others: no gradient changes them.
    tied : bool
        Whether C is columns of E, ``[C | b]``, and there is no U. E then has to have
        C's values.
    **more : ndarray
        What only some kinds of parts have, by name: P, shape (n_averages, n_distant),
        the weights of distant words by position; S and Q, shape (rows, n_senses * m),
        senses of words and what they ask of others; R, shape (m, n_hidden) or (m,
        n_hidden + n_inputs), a projection; G, shape (n_parts, m), the features of what
        words are made of, and own, shape (n_words, m or more), what each has alone;
        H_next, shape (n_hidden, m), and v, shape (n_hidden,), of an energy.
    """

    def __init__(
        self,
        C: NDArray[Any],
        H: NDArray[Any],
        d: NDArray[Any],
        E: NDArray[Any],
        *,
        direct: bool,
        weighted: bool = True,
        visited: tuple[str, ...] = ("C",),
        derived: tuple[str, ...] = (),
        tied: bool = False,
        **more: Any,
    ) -> None:
        self.C = E[:, : C.shape[1]] if tied else C
        self.H, self.d, self.E, self.more = H, d, E, more
        self.direct, self.weighted, self.tied = direct, weighted, tied
        self.visited, self.derived = visited, derived

    @staticmethod
    def output_rows(
        n_words: int, n_hidden: int, n_inputs: int, direct: bool, dtype: DTypeLike
    ) -> NDArray[Any]:
        """Make an E of zeros."""
        n_outputs = n_hidden + (n_inputs if direct else 0) + 1
        return aligned_zeros((n_words, row_stride(n_outputs)), dtype)

    @property
    def U(self) -> NDArray[Any] | None:
        """Hidden-to-output weights, (rows, n_hidden), or None."""
        has_it = self.weighted and not self.tied
        return self.E[:, : len(self.d)] if has_it else None

    @property
    def W(self) -> NDArray[Any] | None:
        """Direct connections, (rows, n_inputs), or None."""
        h, n_inputs = self.H.shape
        return self.E[:, h : h + n_inputs] if self.direct else None

    @property
    def b(self) -> NDArray[Any]:
        """Output biases, (rows,)."""
        return self.E[:, self.n_outputs - 1]

    @property
    def P(self) -> NDArray[Any] | None:
        """Weights of distant words by position, (n_averages, n_distant), or None."""
        return self.more.get("P")

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of all of them."""
        return self.C.dtype

    def named(self) -> dict[str, NDArray[Any] | None]:
        """Give them under the paper's names; views."""
        names = ("C", "H", "d", "U", "W", "b")
        found = {name: getattr(self, name) for name in names} | self.more
        if "own" in self.more:
            found["own"] = self.more["own"][:, : self.C.shape[1]]
            # What is written into these would not be trained on.
            for name in ("C", "b") if self.tied else ("C",):
                found[name] = found[name][:]
                found[name].flags.writeable = False
        return found

    def trained(self) -> dict[str, NDArray[Any]]:
        """Give the arrays as the kernels have them."""
        C = {} if self.tied else {"C": self.C}
        return C | {"H": self.H, "d": self.d, "E": self.E} | self.more

    def learned(self) -> dict[str, NDArray[Any]]:
        """Give those that gradients change."""
        return {k: a for k, a in self.trained().items() if k not in self.derived}

    def size(self) -> int:
        """Free parameters: the padding of E is none."""
        return sum(
            array.size
            for name, array in self.named().items()
            if array is not None and not (name == "C" and "C" in self.derived)
        ) - (self.C.size if self.derived == ("E",) else 0)

    def set(self, name: str, values: Any) -> None:
        """Copy values into one of the arrays, by the paper's name."""
        array = (self.named() | {"C": self.C, "b": self.b}).get(name)
        values = np.asarray(values)
        if array is None or values.shape != array.shape:
            raise ValueError(
                f"{name}_ has shape {None if array is None else array.shape} in this "
                f"network, and cannot be set to an array of shape {values.shape}."
            )
        if "own" in self.more:  # what they are made of follows
            m = self.C.shape[1]
            if name == "C":
                self.more["own"][:, :m] += values - self.C
            elif name == "b" and self.tied:
                self.more["own"][:, m] = values
        array[...] = values

    def with_rows(self, E: NDArray[Any]) -> Self:
        """Give the same with other output rows."""
        return type(self)(self.C, self.H, self.d, E, **(self._kinds() | self.more))

    def with_words(
        self, C: NDArray[Any], U: NDArray[Any] | None, b: NDArray[Any]
    ) -> Self:
        """Give the same with more words, of these features, weights and biases."""
        E = aligned_zeros((len(self.E) + len(b), self.E.shape[1]), self.dtype)
        E[: len(self.E)] = self.E
        C = np.vstack([self.C, C.astype(self.dtype)])
        made = type(self)(C, self.H, self.d, E, **(self._kinds() | self.more))
        made.b[len(self.E) :] = b
        if made.U is not None:
            made.U[len(self.E) :] = U
        return made

    def copy(self, rows: slice = slice(None)) -> Self:
        """Copy them all, or with some of the output rows only."""
        own = self.E[rows]
        E = aligned_zeros((len(own), own.shape[1]), self.dtype)
        E[:] = own
        more: dict[str, Any] = {k: array.copy() for k, array in self.more.items()}
        C, H, d = self.C.copy(), self.H.copy(), self.d.copy()
        return type(self)(C, H, d, E, **(self._kinds() | more))

    def _kinds(self) -> dict[str, Any]:
        names = ("direct", "weighted", "visited", "derived", "tied")
        return {name: getattr(self, name) for name in names}

    def n_decaying(self, name: str) -> int:
        """Numbers of a row of an array that the weight decay falls on: no biases."""
        array: NDArray[Any] = self.trained()[name]
        if name == "own":
            return self.C.shape[1]
        return self.n_outputs - 1 if name == "E" else array.shape[-1]

    def packed(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        """Give one of the arrays, or one like it, less what fills up its rows; a view.

        `own` has as many columns as E where there is a bias beside the features.
        """
        if name == "E" or (name == "own" and self.tied):
            return array[:, : self.n_outputs]
        return array

    @property
    def n_outputs(self) -> int:
        """Parameters of an output row."""
        if self.tied:
            return self.C.shape[1] + 1
        h, n_inputs = self.H.shape
        return (h if self.weighted else 0) + (n_inputs if self.direct else 0) + 1

    def __getstate__(self) -> dict[str, Any]:
        # What fills up the rows, and where they begin, is no matter of a pickle's.
        return vars(self) | {"E": np.ascontiguousarray(self.E[:, : self.n_outputs])}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        own = self.E
        self.E = aligned_zeros((len(own), row_stride(self.n_outputs)), own.dtype)
        self.E[:, : self.n_outputs] = own
        # A mapped file may be read-only: what is trained or set must not be.
        for own_arrays in (vars(self), self.more):
            for name, array in own_arrays.items():
                if isinstance(array, np.ndarray) and not array.flags.writeable:
                    own_arrays[name] = array.copy()
        if self.tied:
            self.C = self.E[:, : self.C.shape[1]]
