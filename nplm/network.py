"""The network as the kernels hold it: parameters, scratch memory, verbs."""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nplm._kernels import _network
from nplm._kernels._team import Team
from nplm._kernels._workspace import Workspace, available_tiers, row_stride
from nplm.parallel import Threads

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
        threads: Threads | None = None,
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
        self.threads = Threads(1) if threads is None else threads
        self._team: Team | None = None

    def arrays(self) -> dict[str, NDArray[Any] | None]:
        """Copy the parameters out, under the paper's names and in its shapes."""
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
        team = self._team
        if team is None or team.batch_size != batch_size:
            team = self._team = self._new_team(batch_size)
        contexts = np.empty((batch_size, X.shape[1]), dtype=np.int32)

        def train(member: int) -> None:
            _network.train(
                team, member, self.C, self.H, self.d, self.E, X, y, index, contexts,
                learning_rate_init=learning_rate_init,
                learning_rate_decay=learning_rate_decay,
                alpha=alpha, C_clock=self._clock, tally=self.tally,
                direct=self.direct,
            )  # fmt: skip

        self._team = None  # a team that gave up is of no more use
        self.threads.together(train, team.size, give_up=team.give_up)
        self._team = team

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
        out = np.empty(len(y))
        batch = min(SCORING_BATCH, max(2, len(y)))

        def score(part: slice) -> None:
            work = self._new_workspace(batch)
            contexts = np.empty((batch, X.shape[1]), dtype=np.int32)
            index = np.arange(part.start, part.stop)
            _network.log_prob(
                work, self.C, self.H, self.d, self.E, X, y, index, contexts,
                out[part], direct=self.direct,
            )  # fmt: skip

        self.threads.map(score, self.threads.split(len(y), batch))
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

    def _sizes(self) -> tuple[int, int, int, int, int]:
        n_words, n_inputs = len(self.E), self.H.shape[1]
        return n_words, n_inputs, len(self.d), self.n_outputs, self.E.itemsize

    def _new_team(self, batch_size: int) -> Team:
        return Team(kernel_tier(), batch_size, *self._sizes(), size=self.threads.n)

    def _new_workspace(self, batch_size: int) -> Workspace:
        return Workspace(
            kernel_tier(), batch_size, *self._sizes(), keep_probabilities=False
        )
