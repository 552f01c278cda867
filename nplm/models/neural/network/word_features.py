"""Word features: initial values, composition, and sharing with the output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from nplm._kernels.neural import _features
from nplm._kernels.neural._loops import Scratch, Tier
from nplm._kernels.neural._solvers import Clock, Parameter
from nplm.base.array_types import Array, Floats, Ids, Index, Mask, Shapes, State
from nplm.base.blocks import blocks
from nplm.base.checks import refuse_where
from nplm.models.neural.network.parameters import Parameters, draw_normal
from nplm.models.neural.network.workspace import Kernel, Trained
from nplm.text.word_rows import is_by_word

WORDS_A_BLOCK = 1 << 13  # of features that are composed at once
SCALE = 0.1  # standard deviation of random initial values
# Squared gradients grow with given values, and overflow float32 far above this.
MAX_ABS_VALUE = 1e6
UNSCALED = (
    "which is out of range: scale its columns to values of about 1 (at most "
    f"{MAX_ABS_VALUE:g})"
)


@dataclass(frozen=True, eq=False)
class Features:
    """Independent features of each word, `m` of them, as in the paper."""

    learned: ClassVar[bool] = True  # whether training needs their gradients
    m: int
    tied: bool = False  # whether C is columns of E, ``[C | b]`` (`TiedSoftmax`)

    def shapes(self, n_words: int) -> Shapes:
        """Return the shapes of the arrays that are trained in place of C, by name."""
        return {}

    def draw_own(
        self, arrays: State, rng: np.random.RandomState, embeddings: Array | None = None
    ) -> None:
        """Set the features of each word: the embeddings if given, else random ones."""
        name = "own" if "own" in arrays else "E" if self.tied else "C"
        C = arrays[name][:, : self.m]
        if embeddings is None:
            draw_normal(C, rng, SCALE)
        else:
            C[...] = embeddings

    def draw_shared(
        self, arrays: State, rng: np.random.RandomState, embeddings: Array | None = None
    ) -> None:
        """Draw the features that words share, after their own."""

    @property
    def visited(self) -> tuple[str, ...]:
        """Names of the arrays of which an update visits only the rows of its words."""
        return ("E",) if self.tied else ("C",)

    @property
    def derived(self) -> tuple[str, ...]:
        """Names of the arrays without gradients of their own."""
        return ()

    def settle(self, parameters: Parameters) -> None:
        """Recompute the derived arrays from the trained ones."""

    def reader(self, tier: Tier, trained: Trained) -> Kernel:
        """Return the kernel of a team that scores."""
        return _features.Features(tier, trained["E" if self.tied else "C"], self.m)

    def kernel(
        self, tier: Tier, trained: Trained, scratch: Scratch, most: int | None
    ) -> Kernel:
        """Return the kernel of a team; mini-batches use `most` words, None for all."""
        if not self.tied:
            return _features.Features(tier, trained["C"], self.m)
        E = trained["E"]
        dtype = np.float64 if tier.itemsize == 8 else np.float32
        nothing = Parameter(np.zeros((0, self.m), dtype))
        parts = csr_array((E.rows, 0))
        return self._composer(tier, E, E, nothing, parts, scratch, most)

    def _composer(
        self,
        tier: Tier,
        C: Kernel,
        own: Kernel,
        G: Kernel,
        matrix: csr_array,
        scratch: Scratch,
        most: int | None,
    ) -> Kernel:
        """Return the kernel that computes C from own features and shared ones."""
        kind = _features.Shared if most is None else _features.Composed
        most = C.rows if most is None else most
        parts = _parts_of(matrix)
        return kind(tier, C, self.m, own, G, *parts, scratch, most=most)


@dataclass(frozen=True, eq=False)
class DenselyUpdated(Features):
    """Features that every update changes, because the output uses all (`Energy`)."""

    visited: ClassVar[tuple[str, ...]] = ()  # weight decay applies to all rows


@dataclass(frozen=True, eq=False)
class Fixed(Features):
    """Given features, which training does not change."""

    learned: ClassVar[bool] = False

    visited: ClassVar[tuple[str, ...]] = ()

    derived: ClassVar[tuple[str, ...]] = ("C",)  # the solver does not train it

    def kernel(
        self, tier: Tier, trained: Trained, scratch: Scratch, most: int | None
    ) -> Kernel:
        return _features.Fixed(tier, trained["C"], self.m)


@dataclass(frozen=True, eq=False)
class Composed(Features):
    """Features of each word plus features that words share: C = own + matrix G."""

    matrix: csr_array | None = None  # (n_words, n_parts): weights of parts

    def shapes(self, n_words: int) -> Shapes:
        assert self.matrix is not None
        n_parts, m = self.matrix.shape[1], self.m
        return {"own": (n_words, m + 1 if self.tied else m), "G": (n_parts, m)}

    def draw_shared(
        self, arrays: State, rng: np.random.RandomState, embeddings: Array | None = None
    ) -> None:
        """Draw G; with embeddings, so that the features are these."""
        draw_normal(arrays["G"], rng, SCALE)
        if embeddings is not None:
            own, matrix = arrays["own"][:, : self.m], self.matrix
            assert matrix is not None
            for rows in blocks(len(own), WORDS_A_BLOCK):
                own[rows] -= matrix[rows] @ arrays["G"]

    visited: ClassVar[tuple[str, ...]] = ("own", "G")  # of words and their parts

    @property
    def derived(self) -> tuple[str, ...]:
        """C, or the E that contains it: computed from own features and G."""
        return ("E",) if self.tied else ("C",)

    def settle(self, parameters: Parameters) -> None:
        """Recompute C, and b if tied."""
        own, G = parameters.more["own"], parameters.more["G"]
        matrix = csr_array(self.matrix, dtype=own.dtype)
        if self.tied:
            parameters.E[...] = own
        for rows in blocks(len(own), WORDS_A_BLOCK):
            parameters.C[rows] = own[rows, : self.m] + matrix[rows] @ G

    def kernel(
        self, tier: Tier, trained: Trained, scratch: Scratch, most: int | None
    ) -> Kernel:
        assert self.matrix is not None
        C = trained["E" if self.tied else "C"]
        own, G = trained["own"], trained["G"]
        return self._composer(tier, C, own, G, self.matrix, scratch, most)


def gradient_gatherer(features: Kernel, tier: Tier, solver: Kernel) -> Kernel:
    """Return the kernel that adds the gradients of tied output rows to the features."""
    return _features.Gatherer(
        tier, Clock(), None, features=features, solver=solver, learning_rate_init=0,
        learning_rate_decay=0, alpha=0, begun=0, span=1,
    )  # fmt: skip


def _parts_of(matrix: csr_array) -> tuple[Index, Ids, Floats]:
    """Return the starts of the words' parts, the parts, and their weights."""
    return (
        matrix.indptr.astype(np.intp),
        matrix.indices.astype(np.int32),
        matrix.data.astype(np.float64),
    )


# -- checks ------------------------------------------------------------------------


def checked_embeddings(values: ArrayLike, n_words: int, m: int) -> Array:
    """Return the initial features as an array, or raise ValueError."""
    _refuse_by_word(values, "embeddings", "Vocabulary.embeddings(words, vectors)")
    try:
        start = np.asarray(_real(values), dtype=np.float64)
    except ValueError as error:
        raise ValueError(
            f"embeddings must be an array of numbers with one row per word ({error})."
        ) from None
    _check_rows(start, "embeddings", n_words)
    if start.shape[1] != m:
        raise ValueError(
            f"embeddings has {start.shape[1]} columns, but embedding_dim={m}: set "
            f"embedding_dim={start.shape[1]}."
        )
    refuse_where(_too_large(start), start, "embeddings", UNSCALED)
    return start


def _refuse_by_word(values: object, name: str, instead: str) -> None:
    if isinstance(values, str) or is_by_word(values):
        raise ValueError(
            f"{name} are given by word, but NeuralLM takes arrays with a row for each "
            f"word id; fit a TextLM(NeuralLM(...)) to documents, or give an array, for "
            f"example {instead}."
        )


def _check_rows(rows: Array | csr_array, name: str, n_words: int) -> None:
    if rows.ndim != 2 or rows.shape[0] != n_words:
        raise ValueError(
            f"{name} has shape {rows.shape}, but the vocabulary has {n_words} words; "
            "give one row per word, and set n_words if some are not in the training "
            "data."
        )


def _real(values: Any) -> object:
    """Return the values, or raise ValueError if they are complex."""
    if np.iscomplexobj(values):  # NumPy would drop the imaginary parts
        raise ValueError("complex numbers are not supported")
    return values


def _too_large(values: Array) -> Mask:
    """Return a mask of the values too large to start training from, or NaN."""
    return ~(np.abs(values) <= MAX_ABS_VALUE)


def checked_parts(values: object, n_words: int) -> csr_array:
    """Return the matrix of shared word features, or raise ValueError."""
    _refuse_by_word(values, "word_features", "Vocabulary.spelling_features()[0]")
    try:
        matrix = csr_array(_real(values), dtype=np.float64, copy=True)
        # Arrays assembled by hand may be inconsistent.
        matrix.check_format(full_check=True)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"word_features must be a dense or sparse matrix ({error})."
        ) from None
    _check_rows(matrix, "word_features", n_words)
    matrix.sum_duplicates()
    bad = np.flatnonzero(_too_large(matrix.data))
    if len(bad):
        row = np.searchsorted(matrix.indptr, bad[0], side="right") - 1
        column = matrix.indices[bad[0]]
        raise ValueError(
            f"word_features has {matrix.data[bad[0]]} at row {row}, column {column}, "
            f"{UNSCALED}."
        )
    matrix.eliminate_zeros()
    if not matrix.nnz:
        raise ValueError(
            f"word_features of shape {matrix.shape} has no nonzero entry; set it to "
            "None, or give a matrix with features."
        )
    return matrix
