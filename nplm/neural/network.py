"""The network as the kernels hold it: parameters, scratch memory, verbs."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nplm._kernels.neural import _network
from nplm._kernels.neural._team import Team, UpdateLock
from nplm._kernels.neural._workspace import Workspace, available_tiers, row_stride
from nplm.parallel.threads import Threads
from nplm.training import loop as training

__all__ = ["Network", "kernel_tier"]

T = TypeVar("T")

# Examples of a mini-batch when scoring: large enough for the matrix products,
# small enough for a tile of their exponentials to stay in cache.
SCORING_BATCH = 512
# Mini-batches that a thread scores at a time, at most.
SCORING_PART = 4
CACHE_LINE = 64  # bytes


def kernel_tier(precision: str = "float32") -> str:
    """Kernels in use: the fastest of this processor, or ``NPLM_TIER``'s.

    "avx512", "avx2" and "plain" are nplm's own float32 kernels, "blas" is
    SciPy's BLAS; float64 always uses BLAS. In bfloat16 there are "amx" and
    "avx512"; "plain" is slow, and used only when it is asked for.
    """
    tiers = available_tiers(precision)
    asked = os.environ.get("NPLM_TIER")
    if precision == "float64":
        return tiers[0]
    if precision == "bfloat16" and tiers == ["plain"] and asked != "plain":
        raise ValueError(
            "precision='bfloat16' needs a processor that multiplies bfloat16 (AMX or "
            "AVX512_BF16) and kernels built for it (by GCC 11 or newer on x86-64), and "
            "one of them is missing here: set precision='float32'."
        )
    tier = asked or tiers[0]
    if tier not in tiers:
        raise ValueError(
            f"NPLM_TIER={tier!r} is no kernel tier of this processor for {precision}: "
            f"choose among {', '.join(tiers)}, or unset it for the fastest."
        )
    return tier


def aligned_zeros(shape: tuple[int, int], dtype: DTypeLike) -> NDArray[Any]:
    """Zeros that begin with a cache line, so that no vector straddles two.

    NumPy's own arrays begin 16 bytes into one.
    """
    size, itemsize = shape[0] * shape[1], np.dtype(dtype).itemsize
    memory = np.zeros(size + CACHE_LINE // itemsize, dtype=dtype)
    start = -memory.ctypes.data % CACHE_LINE // itemsize
    return memory[start : start + size].reshape(shape)


def output_columns(
    E: NDArray[Any], h: int, bias: int
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Cut E into U, W (of no column without direct connections) and b."""
    return E[:, :h], E[:, h:bias], E[:, bias]


def output_rows(
    U: NDArray[Any], W: NDArray[Any] | None, b: NDArray[Any]
) -> NDArray[Any] | None:
    """Give the E that these are columns of; None if they are not, or not all."""
    h, inputs = U.shape[1], 0 if W is None else W.shape[1]
    memory, bias = b.base, h + inputs
    shape = len(b), row_stride(bias + 1)
    if not isinstance(memory, np.ndarray) or memory.ndim != 1:
        return None
    # Where E would begin in the memory of `aligned_zeros`.
    start = (b.ctypes.data - memory.ctypes.data) // b.itemsize - bias
    E = memory[max(start, 0) :][: shape[0] * shape[1]]
    if E.dtype != b.dtype or E.size != shape[0] * shape[1] or not E.flags.writeable:
        return None
    E = E.reshape(shape)
    views = output_columns(E, h, bias)
    # The interface has type, address, shape and strides: all that makes a view.
    for view, given in zip(views, (U, views[1] if W is None else W, b)):
        if view.__array_interface__ != given.__array_interface__:
            return None
    return E


@dataclass(frozen=True)
class Worker:
    """All that a thread, or a team of threads, owns while it trains."""

    team: Team
    contexts: NDArray[np.int32]
    loss: NDArray[np.float64]


class Network:
    """Parameters of equation (1) and the state of their training.

    The output units are kept as one matrix E with a row a word,
    ``E = [U | W | b]`` (or ``[U | b]`` without direct connections): one word's
    parameters lie together, and ``y = E z`` with ``z = [a | x | 1]``. Rows are
    filled up with zeros to whole vectors of the processor.

    Threads that train in `parallel` share the output units of each example
    ("rows": one worker, a team), or each train on examples of their own
    (section 3.1): "async" without a lock, so that part of an update is now and
    then lost; "locked" with one around each update.

    There is one copy of the parameters: those that `arrays` gives are this
    network's own, and with ``copy=False`` a network has those it is given, where
    they are writable and already as the kernels need them.

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
        precision: str,
        n_seen: int = 0,
        threads: Threads | None = None,
        parallel: str = "rows",
        copy: bool = True,
    ) -> None:
        self.precision = precision
        dtype = np.float64 if precision == "float64" else np.float32

        def own(array: NDArray[Any]) -> NDArray[Any]:
            if copy:
                return np.array(array, dtype=dtype, order="C")
            return np.require(array, dtype, ["C", "W"])

        self.C, self.H, self.d = own(C), own(H), own(d)
        self.direct = W is not None
        outputs = [U, b[:, None]] if W is None else [U, W, b[:, None]]
        self.n_outputs = sum(part.shape[1] for part in outputs)
        given = None if copy else output_rows(U, W, b)
        if given is not None and given.dtype == self.C.dtype:
            self.E = given
        else:
            self.E = aligned_zeros((len(b), row_stride(self.n_outputs)), dtype)
            np.concatenate(outputs, axis=1, out=self.E[:, : self.n_outputs])
        self.tally = np.array([0.0, n_seen, 0.0])
        self._clock = np.zeros(len(C))
        self.threads = Threads(1) if threads is None else threads
        self.parallel = parallel
        self._workers: list[Worker] = []

    def arrays(self) -> dict[str, NDArray[Any] | None] | None:
        """Give the parameters, under the paper's names and in its shapes.

        No copies: U, W and b are columns of E.
        """
        h, bias = len(self.d), self.n_outputs - 1
        U, W, b = output_columns(self._all_rows(), h, bias)
        kept = W if self.direct else None
        return {"C": self.C, "H": self.H, "d": self.d, "U": U, "W": kept, "b": b}

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
        workers = self._workers
        if not workers or workers[0].team.batch_size != batch_size:
            workers = self._new_workers(batch_size, X.shape[1])

        def give_up() -> None:
            for worker in workers:
                worker.team.give_up()

        def train(worker: Worker, member: int, examples: NDArray[np.intp]) -> None:
            self._run_kernel(
                worker, member, X, y, examples,
                learning_rate_init=learning_rate_init,
                learning_rate_decay=learning_rate_decay, alpha=alpha,
            )  # fmt: skip

        self._workers = []  # a team that gave up is of no more use
        try:
            if self.parallel == "rows":
                shared = workers[0]
                self.threads.together(
                    lambda member: train(shared, member, index),
                    shared.team.size, give_up=give_up,
                )  # fmt: skip
            else:
                own = self.threads.split(len(index), batch_size)
                self.threads.map(
                    lambda part: train(part[0], 0, index[part[1]]),
                    list(zip(workers, own)), give_up=give_up,
                )  # fmt: skip
            self._workers = workers
        finally:  # what was interrupted may be gone on with
            for worker in workers[1:]:  # the first one's loss is in the tally itself
                self.tally[0] += worker.loss[0]
                worker.loss[0] = 0

    def _run_kernel(
        self,
        worker: Worker,
        member: int,
        X: NDArray[np.int32],
        y: NDArray[np.int32],
        index: NDArray[np.intp],
        **options: Any,
    ) -> None:
        _network.train(
            worker.team, member, self.C, self.H, self.d, self.E, X, y, index,
            worker.contexts, C_clock=self._clock, loss=worker.loss,
            clock=self.tally[1:], direct=self.direct, **options,
        )  # fmt: skip

    @property
    def seconds_a_call(self) -> float:
        """How long a call of `train` should last, about.

        The main thread sees an interrupt between calls. It sees it at once while
        joblib's threads work, but sees the end of their call up to 10 ms late.
        """
        in_joblib = self.parallel != "rows" and self.threads.n > 1
        return training.SECONDS_A_CALL * (5 if in_joblib else 1)

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

    def state(self) -> dict[str, NDArray[Any]]:
        """All arrays in training as they are, settled or not."""
        return {
            "C": self.C, "H": self.H, "d": self.d, "E": self.E,
            "clock": self._clock, "tally": self.tally,
        }  # fmt: skip

    # -- one process of several; of one here (see nplm.mpi) ----------------------

    rank, n_ranks = 0, 1

    def agree(self, value: float) -> float:
        """Give the first process's value in all."""
        return value

    def together(self, work: Callable[[], T]) -> T:
        """Do it in every process; if it fails in one, raise in all."""
        return work()

    def gather(self, value: T) -> list[T]:
        """Give every process's value in all."""
        return [value]

    def guard(self) -> AbstractContextManager[Any]:
        """Context in which an error of one process ends all."""
        return nullcontext()

    def costs(self) -> dict[str, float]:
        """More figures of the epoch for the history."""
        return {}

    def _all_rows(self) -> NDArray[Any]:
        return self.E

    # -- scoring --------------------------------------------------------------

    def log_prob(
        self, X: NDArray[np.int32], y: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Natural-log probability of each next word, block by block."""
        high, total, target = self._totals(X, y)
        return target - high - np.log(total)

    def _totals(
        self, X: NDArray[np.int32], y: NDArray[np.int32], *, first: int = 0
    ) -> NDArray[np.float64]:
        """Give what the rows of E, from word `first` on, know of each probability."""
        totals = np.empty((3, len(y)))

        def score(work: Workspace, contexts: NDArray[np.int32], part: slice) -> None:
            index = np.arange(part.start, part.stop)
            _network.score(
                work, self.C, self.H, self.d, self.E, X, y, index, contexts,
                totals[:, part], first=first, direct=self.direct,
            )  # fmt: skip

        self._map(score, X)
        return totals

    def predict_proba(
        self, X: NDArray[np.int32], *, logarithm: bool = False
    ) -> NDArray[Any]:
        """Probabilities of all words, or their natural logarithms."""
        out = np.empty((len(X), len(self.E)), dtype=self.E.dtype)

        def fill(work: Workspace, contexts: NDArray[np.int32], part: slice) -> None:
            index = np.arange(part.start, part.stop)
            _network.probabilities(
                work, self.C, self.H, self.d, self.E, X, index, contexts, out[part],
                direct=self.direct, logarithm=logarithm,
            )  # fmt: skip

        self._map(fill, X)
        return out

    def _map(
        self,
        work: Callable[[Workspace, NDArray[np.int32], slice], None],
        X: NDArray[np.int32],
    ) -> None:
        """Do it for parts of the windows X, each with scratch of its own.

        The parts are short, so that an interrupt need not wait for all.
        """
        batch = max(1, min(SCORING_BATCH, -(-len(X) // self.threads.n)))

        def own(part: slice) -> None:
            scratch = Workspace(
                kernel_tier(self.precision), batch, len(self.E), *self._sizes(),
                scoring=True,
            )  # fmt: skip
            work(scratch, np.empty((batch, X.shape[1]), dtype=np.int32), part)

        self.threads.map(own, self.threads.split(len(X), batch, SCORING_PART))

    def _sizes(self) -> tuple[int, int, int, str]:
        return self.H.shape[1], len(self.d), self.n_outputs, self.precision

    def _new_workers(self, batch_size: int, n_context: int) -> list[Worker]:
        n = self.threads.n
        workers, size = (1, n) if self.parallel == "rows" else (n, 1)
        lock = UpdateLock() if self.parallel == "locked" else None
        made = [
            Worker(
                Team(
                    kernel_tier(self.precision), batch_size, len(self.E),
                    *self._sizes(), size=size, lock=lock,
                ),
                contexts=np.empty((batch_size, n_context), dtype=np.int32),
                loss=np.zeros(1) if i > 0 else self.tally[:1],
            )
            for i in range(workers)
        ]  # fmt: skip
        for i, worker in enumerate(made):
            worker.team.workspaces[0].start_row = i * len(self.E) // workers // 4 * 4
        return made
