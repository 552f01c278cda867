"""Hold the parameters of a network, which are saved, shared and trained."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike

from nplm._kernels.neural._loops import row_stride
from nplm.base.array_types import Array, State

CACHE_LINE_BYTES = 64


def aligned_zeros(shape: tuple[int, int], dtype: DTypeLike) -> Array:
    """Return zeros aligned to a cache line; NumPy's arrays are to 16 bytes only."""
    size, itemsize = shape[0] * shape[1], np.dtype(dtype).itemsize
    memory = np.zeros(size + CACHE_LINE_BYTES // itemsize, dtype=dtype)
    start = -memory.ctypes.data % CACHE_LINE_BYTES // itemsize
    return memory[start : start + size].reshape(shape)


def draw_normal(array: Array, rng: np.random.RandomState, scale: float) -> None:
    """Draw normal numbers block by block, because NumPy draws them in float64."""
    for start in range(0, len(array), 4096):
        rows = array[start : start + 4096]
        rows[...] = rng.normal(0.0, scale, rows.shape)


class Parameters:
    """The parameters of a network, under the paper's names.

    The output units are one matrix E with a row per word, ``[U | W | b]`` (``[U | b]``
    without direct connections, ``[C | b]`` if `tied`), so that the parameters of a word
    are contiguous. Rows are padded with zeros to whole vectors of the processor.

    - `C` (n_words, m), `H` (n_sums, n_inputs), `d` (n_sums,), `E` (rows, stride)
    - `weighted`: whether E includes U, or C if `tied`
    - `visited`: names of the arrays of which an update visits few rows
    - `derived`: names of the arrays that are given, or computed from others
    - `**more`: P (n_averages, n_distant), the weights of distant words; S and Q (rows,
      n_senses * m); V (n_sums, n_hidden), of the activations before; R (m, n_hidden or
      n_inputs more), a projection; G (n_parts, m), shared features, and own (n_words, m
      or more); H_next (n_hidden, m) and v (n_hidden,) of an energy
    """

    def __init__(
        self,
        C: Array,
        H: Array,
        d: Array,
        E: Array,
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

    @property
    def n_hidden(self) -> int:
        """Number of hidden units, each with one or more sums d + H x."""
        return int(self.more["V"].shape[1] if "V" in self.more else len(self.d))

    @property
    def U(self) -> Array | None:
        """Hidden-to-output weights, (rows, n_hidden), or None."""
        has_U = self.weighted and not self.tied
        return self.E[:, : self.n_hidden] if has_U else None

    @property
    def W(self) -> Array | None:
        """Direct connections, (rows, n_inputs), or None."""
        h, n_inputs = self.n_hidden, self.H.shape[1]
        return self.E[:, h : h + n_inputs] if self.direct else None

    @property
    def b(self) -> Array:
        """Output biases, (rows,)."""
        return self.E[:, self.n_outputs - 1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of all arrays."""
        return self.C.dtype

    def named(self) -> dict[str, Array | None]:
        """Return views of the arrays under the paper's names."""
        names = ("C", "H", "d", "U", "W", "b")
        views = {name: getattr(self, name) for name in names} | self.more
        if "own" in self.more:
            views["own"] = self.more["own"][:, : self.C.shape[1]]
            # Derived: training would ignore values written into them.
            for name in ("C", "b") if self.tied else ("C",):
                views[name] = views[name][:]
                views[name].flags.writeable = False
        return views

    def trained(self) -> State:
        """Return the arrays as the kernels use them."""
        C = {} if self.tied else {"C": self.C}
        return C | {"H": self.H, "d": self.d, "E": self.E} | self.more

    def learned(self) -> State:
        """Return the arrays that have gradients."""
        return {k: a for k, a in self.trained().items() if k not in self.derived}

    def size(self) -> int:
        """Return the number of free parameters, without the padding of E."""
        return sum(
            array.size
            for name, array in self.named().items()
            if array is not None and not (name == "C" and "C" in self.derived)
        ) - (self.C.size if self.derived == ("E",) else 0)

    def set(self, name: str, values: Any, attribute: str = "") -> None:
        """Copy values into an array, by the paper's name; errors name the attribute."""
        array = (self.named() | {"C": self.C, "b": self.b}).get(name)
        values = np.asarray(values)
        if array is None or values.shape != array.shape:
            shape = None if array is None else array.shape
            raise ValueError(
                f"{attribute} has shape {shape} in this network, and cannot be set to "
                f"an array of shape {values.shape}."
            )
        if "own" in self.more:  # the own features take up the difference
            m = self.C.shape[1]
            if name == "C":
                self.more["own"][:, :m] += values - self.C
            elif name == "b" and self.tied:
                self.more["own"][:, m] = values
        array[...] = values

    def with_arrays(self, arrays: State) -> Self:
        """Return parameters with some arrays of `trained` in place of their own."""
        every: dict[str, Any] = {"C": self.C} | self.trained() | arrays
        names = ("direct", "weighted", "visited", "derived", "tied")
        return type(self)(**every, **{name: getattr(self, name) for name in names})

    def with_words(self, C: Array, U: Array | None, b: Array) -> Self:
        """Return parameters with more words, which have the given features, U and b."""
        n_words = len(self.E)
        E = aligned_zeros((n_words + len(b), self.E.shape[1]), self.dtype)
        E[:n_words] = self.E
        C = np.vstack([self.C, C.astype(self.dtype)])
        larger = self.with_arrays({"C": C, "E": E})
        larger.b[n_words:] = b
        if larger.U is not None:
            larger.U[n_words:] = U
        return larger

    def copy(self, rows: slice = slice(None)) -> Self:
        """Return a copy, with all or some of the output rows."""
        some = self.E[rows]
        E = aligned_zeros((len(some), some.shape[1]), self.dtype)
        E[:] = some
        arrays = {name: array.copy() for name, array in self.trained().items()}
        return self.with_arrays(arrays | {"E": E})

    def n_decaying(self, name: str) -> int:
        """Return the number of columns with weight decay; biases have none."""
        array: Array = self.trained()[name]
        if name == "own":
            return self.C.shape[1]
        return self.n_outputs - 1 if name == "E" else array.shape[-1]

    def without_padding(self, name: str, array: Array) -> Array:
        """Return a view, without padding, of an array shaped like that of `name`."""
        if name == "E" or (name == "own" and self.tied):
            return array[:, : self.n_outputs]
        return array

    @property
    def n_outputs(self) -> int:
        """Number of parameters of an output row."""
        if self.tied:
            return self.C.shape[1] + 1
        h, n_inputs = self.n_hidden, self.H.shape[1]
        return (h if self.weighted else 0) + (n_inputs if self.direct else 0) + 1

    def __getstate__(self) -> dict[str, object]:
        # Padding and alignment are not pickled.
        return vars(self) | {"E": np.ascontiguousarray(self.E[:, : self.n_outputs])}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        unpadded = self.E
        shape = len(unpadded), row_stride(self.n_outputs)
        self.E = aligned_zeros(shape, unpadded.dtype)
        self.E[:, : self.n_outputs] = unpadded
        # Arrays of a memory-mapped file may be read-only; parameters must be writable.
        for arrays in (vars(self), self.more):
            for name, array in arrays.items():
                if isinstance(array, np.ndarray) and not array.flags.writeable:
                    arrays[name] = array.copy()
        if self.tied:
            self.C = self.E[:, : self.C.shape[1]]
