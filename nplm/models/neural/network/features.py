"""Features of the words: how they begin, what they are made of, who else has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.sparse import csr_array

from nplm._kernels.neural import _features
from nplm._kernels.neural._loops import row_stride
from nplm._kernels.neural._solvers import Clock, Parameter
from nplm.models.neural.network.parameters import (
    Parameters,
    aligned_zeros,
    random_normal,
)
from nplm.text.word_rows import is_by_word

__all__ = [
    "Composed",
    "Features",
    "Fixed",
    "Met",
    "checked_embeddings",
    "checked_parts",
    "gatherer_of",
]

SCALE = 0.1  # deviation of what is drawn
# Of what is given: squares of gradients, which go with it, leave float32 far beyond.
LARGEST = 1e6


@dataclass(frozen=True, eq=False)
class Features:
    """Each word's by itself, as the paper has them.

    Parameters
    ----------
    m : int
        Features of a word.
    start : ndarray, shape (n_words, m), optional
        Where they begin; drawn by default.
    tied : bool
        Whether the output has them for its weights (`TiedSoftmax`): C is then columns
        of E, ``[C | b]``.
    """

    learned: ClassVar[bool] = True  # whether anything follows their gradients
    m: int
    start: NDArray[Any] | None = None
    tied: bool = False

    def initial(
        self, n_words: int, rng: np.random.RandomState, dtype: DTypeLike
    ) -> NDArray[Any]:
        """Give C, or what each word has alone."""
        if self.start is not None:
            return np.array(self.start, dtype, order="C")
        return random_normal(rng, SCALE, (n_words, self.m), dtype)

    def initial_arrays(
        self, own: NDArray[Any], rng: np.random.RandomState
    ) -> dict[str, NDArray[Any]]:
        """Make what is trained in the place of C, by name."""
        return {}

    @property
    def visited(self) -> tuple[str, ...]:
        """The arrays of which an update visits the rows of its words."""
        return ("E",) if self.tied else ("C",)

    @property
    def derived(self) -> tuple[str, ...]:
        """The arrays that no gradient changes."""
        return ()

    def settle(self, parameters: Parameters) -> None:
        """Make the derived arrays what the trained ones say."""

    def made_with(self) -> dict[str, Any]:
        """Give the parameters of an estimator that ask for more than their number."""
        return {}

    def reader(self, tier: Any, trained: dict[str, Any]) -> Any:
        """Give the kernel of a team that scores."""
        return _features.Features(tier, trained["E" if self.tied else "C"], self.m)

    def kernel(
        self, tier: Any, trained: dict[str, Any], scratch: Any, most: int | None
    ) -> Any:
        """Give the kernel of a team, whose mini-batches have `most` words at most.

        None is all of them, always.
        """
        if not self.tied:
            return _features.Features(tier, trained["C"], self.m)
        E = trained["E"]
        dtype = np.float64 if tier.itemsize == 8 else np.float32
        nothing = Parameter(np.zeros((0, self.m), dtype))
        parts = csr_array((E.rows, 0))
        return self._made(tier, E, E, nothing, parts, scratch, most)

    def _made(
        self,
        tier: Any,
        C: Any,
        own: Any,
        G: Any,
        matrix: csr_array,
        scratch: Any,
        most: int | None,
    ) -> Any:
        """Give the kernel that makes C of each word's own and its parts."""
        kind = _features.Shared if most is None else _features.Composed
        most = C.rows if most is None else most
        parts = _parts_of(matrix)
        return kind(tier, C, self.m, own, G, *parts, scratch, most=most)


@dataclass(frozen=True, eq=False)
class Met(Features):
    """Those that every update meets, for the output looks at all of them (`Energy`)."""

    @property
    def visited(self) -> tuple[str, ...]:
        """None: weight decay comes to all at once."""
        return ()


@dataclass(frozen=True, eq=False)
class Fixed(Features):
    """Those that are given, which training leaves as they are."""

    learned: ClassVar[bool] = False

    @property
    def visited(self) -> tuple[str, ...]:
        """None."""
        return ()

    @property
    def derived(self) -> tuple[str, ...]:
        """They are no matter of the solver's."""
        return ("C",)

    def kernel(
        self, tier: Any, trained: dict[str, Any], scratch: Any, most: int | None
    ) -> Any:
        """Give the kernel of a team."""
        return _features.Fixed(tier, trained["C"], self.m)


@dataclass(frozen=True, eq=False)
class Composed(Features):
    """A word's own and those of what it is made of: C = own + matrix G.

    Parameters
    ----------
    m, start, tied
        Of `Features`; a start is that of what each word has alone.
    matrix : csr_array, shape (n_words, n_parts)
        What each word is made of, and by how much.
    """

    matrix: csr_array | None = None

    def initial_arrays(
        self, own: NDArray[Any], rng: np.random.RandomState
    ) -> dict[str, NDArray[Any]]:
        """Draw G. When tied, each word's own has a column of its bias too."""
        assert self.matrix is not None
        G = random_normal(rng, SCALE, (self.matrix.shape[1], self.m), own.dtype)
        stride = row_stride(self.m + 1) if self.tied else self.m
        rows = aligned_zeros((len(own), stride), own.dtype)
        rows[:, : self.m] = own
        return {"own": rows, "G": G}

    def made_with(self) -> dict[str, Any]:
        """Give the parameters of an estimator that ask for more than their number."""
        return {"word_features": self.matrix}

    @property
    def visited(self) -> tuple[str, ...]:
        """Each update visits the words that it has, and their parts."""
        return ("own", "G")

    @property
    def derived(self) -> tuple[str, ...]:
        """C, or the E that has it, is made of the others."""
        return ("E",) if self.tied else ("C",)

    def settle(self, parameters: Parameters) -> None:
        """Make C, and the biases where they are beside it."""
        own, G = parameters.more["own"], parameters.more["G"]
        matrix = csr_array(self.matrix, dtype=own.dtype)
        if self.tied:
            parameters.E[...] = own
        parameters.C[...] = own[:, : self.m] + matrix @ G

    def kernel(
        self, tier: Any, trained: dict[str, Any], scratch: Any, most: int | None
    ) -> Any:
        """Give the kernel of a team."""
        assert self.matrix is not None
        C = trained["E" if self.tied else "C"]
        own, G = trained["own"], trained["G"]
        return self._made(tier, C, own, G, self.matrix, scratch, most)


def gatherer_of(features: Any, tier: Any, solver: Any) -> Any:
    """Give who gathers the output's gradients for features that it shares."""
    return _features.Gatherer(
        tier, Clock(), None, features=features, solver=solver, learning_rate_init=0,
        learning_rate_decay=0, alpha=0, begun=0, span=1,
    )  # fmt: skip


def _parts_of(matrix: csr_array) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Give where each word's parts begin, the parts, and their weights."""
    return (
        matrix.indptr.astype(np.intp),
        matrix.indices.astype(np.int32),
        matrix.data.astype(np.float64),
    )


# -- checks ------------------------------------------------------------------------


def checked_embeddings(values: ArrayLike, n_words: int, m: int) -> NDArray[Any]:
    """Give a start of the features, or raise."""
    _refuse_by_word(values, "embeddings", "Vocabulary.embeddings(words, vectors)")
    try:
        start = np.asarray(_real(values), dtype=np.float64)
    except ValueError as error:
        raise ValueError(
            f"embeddings must be numbers, a row a word ({error})."
        ) from None
    if start.ndim != 2 or len(start) != n_words:
        raise ValueError(
            f"embeddings has shape {start.shape}, but there are {n_words} words: give "
            "a row for each, and set n_words if training lacks some of them."
        )
    if start.shape[1] != m:
        raise ValueError(
            f"embeddings has {start.shape[1]} columns, but embedding_dim={m}: set "
            f"embedding_dim={start.shape[1]}."
        )
    bad = np.argwhere(_too_large(start))
    if len(bad):
        row, column = bad[0].tolist()
        raise _unscaled("embeddings", start[row, column], row, column)
    return start


def _refuse_by_word(values: Any, name: str, instead: str) -> None:
    if isinstance(values, str) or is_by_word(values):
        raise ValueError(
            f"{name} are given by word, and NeuralLM knows ids alone: fit a "
            f"TextLM(NeuralLM(...)) to documents, or give an array, {instead} for "
            "example."
        )


def _real(values: Any) -> Any:
    """Give the values, unless NumPy would drop imaginary parts of theirs."""
    if np.iscomplexobj(values):
        raise ValueError("complex numbers were given")
    return values


def _too_large(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which numbers no training can begin with, nan among them."""
    return ~(np.abs(values) <= LARGEST)


def _unscaled(name: str, value: float, row: int, column: int) -> ValueError:
    return ValueError(
        f"{name} has {value} at row {row}, column {column}: scale its columns to "
        f"numbers of about 1; they may be {LARGEST:g} at most."
    )


def checked_parts(values: Any, n_words: int) -> csr_array:
    """Give what words are made of, or raise."""
    _refuse_by_word(values, "word_features", "Vocabulary.spelling_features()[0]")
    try:
        matrix = csr_array(_real(values), dtype=np.float64)
        # Of arrays that were put together by hand nothing is known.
        matrix.check_format(full_check=True)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"word_features must be a matrix, dense or sparse ({error})."
        ) from None
    if matrix.ndim != 2:
        raise ValueError(
            f"word_features has shape {matrix.shape}: give a row for each word, and a "
            "column for each feature, if it is one."
        )
    if matrix.shape[0] != n_words:
        raise ValueError(
            f"word_features has {matrix.shape[0]} rows, but there are {n_words} words: "
            "give a row for each, and set n_words if training lacks some of them."
        )
    matrix.sum_duplicates()
    bad = np.flatnonzero(_too_large(matrix.data))
    if len(bad):
        row = np.searchsorted(matrix.indptr, bad[0], side="right") - 1
        column = matrix.indices[bad[0]]
        raise _unscaled("word_features", matrix.data[bad[0]], row, column)
    matrix.eliminate_zeros()
    if not matrix.nnz:
        raise ValueError(
            f"word_features of shape {matrix.shape} has no entry: set it to None, or "
            "make the features again."
        )
    return matrix
