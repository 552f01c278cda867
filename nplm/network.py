"""The network as the kernels hold it: parameters, scratch memory, verbs."""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nplm._kernels import _network
from nplm._kernels._workspace import Workspace, available_tiers, row_stride

__all__ = ["Network", "kernel_tier"]

# Examples of a mini-batch when scoring: large enough for the matrix products,
# small enough for a tile of their exponentials to stay in cache.
SCORING_BATCH = 128


def kernel_tier() -> str:
    """Kernels in use: the fastest of this processor, or ``NPLM_TIER``'s.

    "avx512", "avx2" and "plain" are nplm's own float32 kernels, "blas" is
    SciPy's BLAS; float64 always uses BLAS.
    """
    return os.environ.get("NPLM_TIER") or available_tiers()[0]


class Network:
    """Parameters of equation (1) and the state of their training.

    The output units are kept as one matrix E with a row a word,
    ``E = [U | W | b]`` (or ``[U | b]`` without direct connections): one word's
    parameters lie together, and ``y = E z`` with ``z = [a | x | 1]``. Rows are
    filled up with zeros to whole vectors of the processor.

    Attributes
    ----------
    tally : ndarray of float64, shape (3,)
        Summed negative log-likelihood since it was last reset, examples seen,
        logarithm of the weight decay so far.
    """

    def __init__(
        self,
        C: NDArray[Any],
        H: NDArray[Any],
        d: NDArray[Any],
        U: NDArray[Any],
        W: NDArray[Any] | None,
        b: NDArray[Any],
        *,
        dtype: DTypeLike,
        n_seen: int = 0,
    ) -> None:
        self.C = np.array(C, dtype=dtype, order="C")
        self.H = np.array(H, dtype=dtype, order="C")
        self.d = np.array(d, dtype=dtype, order="C")
        self.direct = W is not None
        outputs = [U, b[:, None]] if W is None else [U, W, b[:, None]]
        self.n_outputs = sum(part.shape[1] for part in outputs)
        self.E = np.zeros((len(C), row_stride(self.n_outputs)), dtype=dtype)
        np.concatenate(outputs, axis=1, out=self.E[:, : self.n_outputs])
        self.tally = np.array([0.0, n_seen, 0.0])
        self._clock = np.zeros(len(C))
        self._workspace: Workspace | None = None

    def arrays(self) -> dict[str, NDArray[Any] | None]:
        """Return copies of the parameters under the paper's names, in its shapes."""
        h, bias = len(self.d), self.n_outputs - 1
        return {
            "C": self.C.copy(),
            "H": self.H.copy(),
            "d": self.d.copy(),
            "U": self.E[:, :h].copy(),
            "W": self.E[:, h:bias].copy() if self.direct else None,
            "b": self.E[:, bias].copy(),
        }

    # -- training -------------------------------------------------------------

    def train(
        self,
        X: NDArray[np.int32],
        y: NDArray[np.int32],
        index: NDArray[np.intp],
        *,
        batch_size: int,
        learning_rate_init: float,
        learning_rate_decay: float,
        alpha: float,
    ) -> None:
        """One pass over the examples `index`, adding to `tally`."""
        work = self._workspace
        if work is None or work.batch_size != batch_size:
            work = self._workspace = self._new_workspace(batch_size, training=True)
        contexts = np.empty((batch_size, X.shape[1]), dtype=np.int32)
        _network.train(
            work, self.C, self.H, self.d, self.E, X, y, index, contexts,
            learning_rate_init=learning_rate_init,
            learning_rate_decay=learning_rate_decay,
            alpha=alpha, C_clock=self._clock, tally=self.tally, direct=self.direct,
        )  # fmt: skip

    def settle(self) -> None:
        """Apply the weight decay still due to rows of C that were not visited."""
        faded = np.exp(self.tally[2] - self._clock)
        self.C *= faded[:, None].astype(self.C.dtype)
        self._clock[:] = 0
        self.tally[2] = 0

    def copy(self) -> list[NDArray[Any]]:
        """Snapshot of the (settled) parameters, for `restore`."""
        return [array.copy() for array in (self.C, self.H, self.d, self.E)]

    def restore(self, snapshot: list[NDArray[Any]]) -> Self:
        """Set the parameters back to a snapshot."""
        for array, kept in zip((self.C, self.H, self.d, self.E), snapshot, strict=True):
            array[:] = kept
        self._clock[:] = 0
        self.tally[2] = 0
        return self

    # -- scoring --------------------------------------------------------------

    def log_prob(
        self, X: NDArray[np.int32], y: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Natural-log probability of each next word, block by block."""
        batch = min(SCORING_BATCH, max(2, len(y)))
        work = self._new_workspace(batch, training=False)
        contexts = np.empty((batch, X.shape[1]), dtype=np.int32)
        out = np.empty(len(y))
        _network.log_prob(
            work, self.C, self.H, self.d, self.E, X, y, np.arange(len(y)), contexts,
            out, direct=self.direct,
        )  # fmt: skip
        return out

    def predict_proba(
        self, X: NDArray[np.int32], *, logarithm: bool = False
    ) -> NDArray[Any]:
        """Probabilities of all words, or their natural logarithms."""
        x = self.C[X[:, ::-1]].reshape(len(X), -1)
        z = [np.tanh(self.d + x @ self.H.T)]
        if self.direct:
            z.append(x)
        bias = self.n_outputs - 1
        logits = np.hstack(z) @ self.E[:, :bias].T
        logits += self.E[:, bias]
        _network.softmax_rows(logits, logarithm=logarithm)
        return logits

    def _new_workspace(self, batch_size: int, *, training: bool) -> Workspace:
        return Workspace(
            kernel_tier(), batch_size, len(self.E), self.H.shape[1], len(self.d),
            self.n_outputs, self.E.itemsize, keep_probabilities=training,
        )  # fmt: skip
