"""Training over the processes of a cluster: section 3.2, with MPI.

Each process (rank) holds a block of the output units, and only updates those; the
features and the hidden layer are duplicated. For each mini-batch the ranks share
the softmax's maximum and sum (one Allgather, or two Allreduces where many ranks
make that long) and the gradients on the hidden and feature layers (one Allreduce):
with ``batch_size=1`` that is the paper's algorithm, and with more its K-example
variant for slow networks.

Run a script under it with::

    mpiexec -n 4 python -m mpi4py train.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from copy import copy
from functools import partial
from math import log2
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from nplm._base import unchanged_by_errors
from nplm._kernels.neural._network import BACKWARD, FORWARD, UPDATE
from nplm._kernels.neural._team import Team, block_starts
from nplm._kernels.neural._workspace import row_stride
from nplm.neural.fit import Windows
from nplm.neural.network import Network, Worker, kernel_tier
from nplm.neural.neural_lm import WEIGHTS, NeuralLM
from nplm.parallel.agreement import MPI, check_agreement, guard, own, together
from nplm.parallel.threads import blas_threads
from nplm.training.checkpoint import fingerprint
from nplm.training.loop import Progress

__all__ = ["ShardedLM", "fit", "rank", "shard"]

T = TypeVar("T")
KEEP = ("all", "root", "shards")
# What a network of today carries in the time it takes to deliver anything at all:
# 2 us at 100 Gb/s, 25 us at 10 Gb/s.
BYTES_A_STEP = 25_000


def fit(
    estimator: NeuralLM,
    X: ArrayLike,
    y: ArrayLike,
    *,
    X_val: ArrayLike | None = None,
    y_val: ArrayLike | None = None,
    comm: MPI.Comm | None = None,
    keep: str = "all",
    progress: Progress | None = None,
    checkpoint: Any = None,
) -> NeuralLM | ShardedLM | None:
    """Fit a neural model over all processes of a communicator.

    Call it in every process, with the same estimator and the same data. The
    result is that of ``estimator.fit`` up to rounding.

    Parameters
    ----------
    estimator : NeuralLM
        What to fit; fitted in place where all of it is kept, and elsewhere left as
        it is. A rank is one thread: ``n_jobs`` stays at 1.
    X : array-like of int, shape (n_samples, n_context)
        Contexts, the nearest word in the last column.
    y : array-like of int, shape (n_samples,)
        Next words.
    X_val, y_val : array-like of int, optional
        Held-out windows for early stopping.
    comm : mpi4py.MPI.Comm, optional
        The processes; all of them by default. Messages go over a duplicate of it.
    keep : {"all", "root", "shards"}, default="all"
        Who has the fitted estimator. "all": every rank. "root": rank 0, and the
        others get None. "shards": every rank keeps its own output units, for a
        vocabulary too large for one machine, in a `ShardedLM`.
    progress : callable, optional
        As in ``NeuralLM.fit``; called by rank 0.
    checkpoint : path-like, optional
        As in ``NeuralLM.fit``: one folder, to which all ranks can write. A fit
        goes on with as many ranks as it began with, and saves nothing on an
        interrupt, which ends all of them.

    Returns
    -------
    estimator : NeuralLM, ShardedLM or None
        See `keep`. A `NeuralLM` is an ordinary one: it pickles and scores
        without MPI. In its ``history_``, ``computing``, ``communicating`` and
        ``waiting`` are this rank's seconds of training an epoch: in the kernels,
        in messages once all ranks had come to send them, and before that.

    Raises
    ------
    ValueError
        In every rank before anything is trained, when the ranks disagree on
        parameters, data or what was fitted before, or one of them refuses its own.

    Notes
    -----
    Where the ranks meet, before and between training and whenever they save or score,
    one that does not come within 600 seconds of the first ends the job: it may have
    left. The environment variable ``NPLM_MPI_TIMEOUT`` sets other seconds; ``inf``
    waits for ever.

    Examples
    --------
    One process is a cluster too:

    >>> import numpy as np
    >>> from nplm import NeuralLM, mpi, windows
    >>> X, y = windows(np.tile([0, 1, 2, 3], 50), 2)
    >>> lm = mpi.fit(NeuralLM(n_words=4, n_hidden=8, max_iter=2), X, y)
    >>> lm.n_iter_
    2
    """
    comm = own(comm)
    keeps_it = keep == "all" or (keep == "root" and comm.rank == 0)

    def chosen() -> NeuralLM:
        if not isinstance(estimator, NeuralLM):
            raise TypeError(f"nplm.mpi.fit fits a NeuralLM, not {estimator!r}.")
        if keep not in KEEP:
            raise ValueError(f"keep must be one of {KEEP}, not {keep!r}.")
        if estimator.n_jobs not in (None, 1):
            raise ValueError(
                f"n_jobs={estimator.n_jobs}: a rank trains on one thread; leave n_jobs "
                "at 1 and give mpiexec as many processes as there are cores."
            )
        return estimator if keeps_it else copy(estimator)

    def checked() -> tuple[Windows, dict[str, str]]:
        data = lm._check_fit(X, y, X_val, y_val)
        return data, lm._fingerprint(data)

    with guard(comm):
        lm = together(comm, chosen)
        with unchanged_by_errors(lm) as keep_it:
            data, marks = together(comm, checked)
            fitted = {"fitted": str(data.go_on)}
            others = {"keep": keep, "checkpoint": str(checkpoint), "verbose": ""}
            check_agreement(comm, fitted | marks | others)
            build = partial(ShardedNetwork, comm=comm, keep=keep)
            show = progress if comm.rank == 0 else None
            rng = _generator(lm.random_state, comm)
            lm._fit(data, rng, build, keep_it, show, checkpoint, marks)
    if keep == "shards":
        return ShardedLM(lm, comm)
    return lm if keeps_it else None


def rank() -> int:
    """Give the number of this process among those that mpiexec started.

    Returns
    -------
    rank : int
    """
    return MPI.COMM_WORLD.rank


def shard(estimator: NeuralLM, comm: MPI.Comm | None = None) -> ShardedLM:
    """Spread a fitted model over the processes, to score with all of them.

    Parameters
    ----------
    estimator : NeuralLM
        Fitted, the same in every process; it is left as it is.
    comm : mpi4py.MPI.Comm, optional
        The processes; all of them by default.

    Returns
    -------
    sharded : ShardedLM
    """
    comm = own(comm)

    def marks() -> dict[str, str]:
        check_is_fitted(estimator)
        parameters = {
            "n_words_": estimator.n_words_,
            "kernels": kernel_tier(estimator.precision),
            "n_seen_": estimator.n_seen_,
        }
        weights = {name: getattr(estimator, name) for name in WEIGHTS}
        return fingerprint(parameters, weights)

    with guard(comm):
        check_agreement(comm, together(comm, marks))
        part = copy(estimator)
        network = part._network(partial(ShardedNetwork, comm=comm, keep="shards"))
        for name, array in (network.arrays() or {}).items():
            setattr(part, f"{name}_", array)
    return ShardedLM(part, comm)


class ShardedLM:
    """A fitted model of which each process holds a block of the output units.

    `fit` and `shard` make it. Every method must be called in all processes, with
    the same windows.

    Parameters
    ----------
    estimator : NeuralLM
        With only this rank's rows of ``U_``, ``W_`` and ``b_``.
    comm : mpi4py.MPI.Comm
        The processes.

    Attributes
    ----------
    history_ : dict of list
        See `NeuralLM`.
    """

    def __init__(self, estimator: NeuralLM, comm: MPI.Comm) -> None:
        self._part = estimator
        self._comm = comm
        self.history_ = estimator.history_

    def log_prob(self, X: ArrayLike, y: ArrayLike) -> NDArray[np.float64]:
        """Natural-log probability of each next word.

        Parameters
        ----------
        X : array-like of int, shape (n_samples, n_context)
            Contexts, the nearest word in the last column.
        y : array-like of int, shape (n_samples,)
            Next words.

        Returns
        -------
        log_prob : ndarray of float64, shape (n_samples,)
        """
        comm, part = self._comm, self._part
        with guard(comm), blas_threads(1):
            ids, words = together(comm, lambda: part._check_Xy(X, y))
            check_agreement(comm, fingerprint({}, {"X": ids, "y": words}))
            return self._network().log_prob(part._nearest(ids), words)

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Mean of `log_prob`.

        Parameters
        ----------
        X : array-like of int, shape (n_samples, n_context)
            Contexts, the nearest word in the last column.
        y : array-like of int, shape (n_samples,)
            Next words.

        Returns
        -------
        score : float
        """
        return float(np.mean(self.log_prob(X, y)))

    def perplexity(self, X: ArrayLike, y: ArrayLike) -> float:
        """``exp(-score)``.

        Parameters
        ----------
        X : array-like of int, shape (n_samples, n_context)
            Contexts, the nearest word in the last column.
        y : array-like of int, shape (n_samples,)
            Next words.

        Returns
        -------
        perplexity : float
        """
        return float(np.exp(-self.score(X, y)))

    def gather(self, *, keep: str = "all") -> NeuralLM | None:
        """Put the blocks together again, in an ordinary estimator.

        Parameters
        ----------
        keep : {"all", "root"}, default="all"
            Who gets it: every rank, or rank 0 (None in the others).

        Returns
        -------
        estimator : NeuralLM or None
        """
        with guard(self._comm):
            check_agreement(self._comm, {"keep": keep})
            whole = copy(self._part)
            arrays = self._network(keep).arrays()
        if arrays is None:
            return None
        for name, array in arrays.items():
            setattr(whole, f"{name}_", array)
        return whole

    def _network(self, keep: str = "shards") -> ShardedNetwork:
        build = partial(ShardedNetwork, comm=self._comm, keep=keep, part=True)
        network = self._part._network(build, copy=keep != "shards")
        assert isinstance(network, ShardedNetwork)
        return network


class ShardedNetwork(Network):
    """The rows of a network's output units that one rank holds, and the rest.

    It is made of a whole network's arrays, or of the rank's `part` of them.
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
        comm: MPI.Comm,
        keep: str,
        part: bool = False,
        **options: Any,
    ) -> None:
        if not part:
            rows = _own_rows(len(C), comm)
            U, W, b = U[rows], None if W is None else W[rows], b[rows]
        super().__init__(C, H, d, U, W, b, **options)
        self.comm, self.keep = comm, keep
        self.rank, self.n_ranks = comm.rank, comm.size
        self._seconds = np.zeros((3, 1))
        names = ("computing", "communicating", "waiting")
        self._costs = dict(zip(names, self._seconds))  # views, to add to

    # -- training -------------------------------------------------------------

    def train(
        self,
        X: NDArray[np.int32],
        y: NDArray[np.int32],
        index: NDArray[np.intp],
        *,
        batch_size: int,
        **schedule: float,
    ) -> None:
        """One pass over the examples `index`, adding to `tally`."""
        if not self._workers or self._workers[0].team.batch_size != batch_size:
            self._new_member(batch_size, X.shape[1])
        (worker,) = self._workers
        comm, now = self.comm, time.perf_counter
        starts = range(0, len(index), batch_size)
        seconds = np.empty((len(starts), 2))  # in the collective operations
        began = now()
        for i, start in enumerate(starts):
            batch = index[start : start + batch_size]
            run = partial(self._run_kernel, worker, self.rank, X, y, batch, **schedule)
            run(phases=FORWARD)
            sent = now()
            self._share_totals()
            seconds[i, 0] = now() - sent
            run(phases=BACKWARD)
            sent = now()
            comm.Allreduce(MPI.IN_PLACE, self._gradients)
            seconds[i, 1] = now() - sent
            run(phases=UPDATE)
        self._costs["computing"] += now() - began - float(seconds.sum())
        # Who comes last does not wait: the rest is the messages. Of two mini-batches
        # together, for messages that take long make the ranks come last in turn.
        both = np.add.reduceat(seconds.sum(axis=1), np.arange(0, len(starts), 2))
        messages = np.empty_like(both)
        comm.Allreduce(both, messages, MPI.MIN)
        self._costs["communicating"] += float(messages.sum())
        self._costs["waiting"] += float((both - messages).sum())

    def _new_member(self, batch_size: int, n_context: int) -> None:
        """Scratch memory, of which two parts are shared with the other ranks."""
        columns = 1 if batch_size == 1 else row_stride(batch_size)
        gather = gathers_totals(self.n_ranks, columns)
        totals = np.zeros((self.n_ranks if gather else 1, 3, columns))
        gradients = np.zeros((row_stride(self.n_outputs), columns), self.E.dtype)
        team = Team(
            kernel_tier(self.precision), batch_size, len(self.C), *self._sizes(),
            size=self.n_ranks, member=self.rank, totals=totals,
            gradients=gradients.view(np.uint8).ravel(),
        )  # fmt: skip
        contexts = np.empty((batch_size, n_context), dtype=np.int32)
        self._workers = [Worker(team, contexts, self.tally[:1])]
        self._shared_totals = totals
        self._gradients = gradients[: self.n_outputs - 1]  # but the constant's

    def _share_totals(self) -> None:
        """Bring each rank's maximum, target's logit and sum together."""
        if len(self._shared_totals) == self.n_ranks:
            self.comm.Allgather(MPI.IN_PLACE, self._shared_totals)
            return
        (own,) = self._shared_totals
        own_high = own[0].copy()
        self.comm.Allreduce(MPI.IN_PLACE, own[:2], MPI.MAX)
        own[2] *= np.exp(own_high - own[0])
        self.comm.Allreduce(MPI.IN_PLACE, own[2], MPI.SUM)

    def costs(self) -> dict[str, float]:
        """Seconds of this epoch, by what they went to."""
        spent = {name: float(seconds[0]) for name, seconds in self._costs.items()}
        self._seconds[:] = 0
        return spent

    def state(self) -> dict[str, NDArray[Any]]:
        """All arrays in training as they are, and this epoch's seconds."""
        return super().state() | {"seconds": self._seconds}

    # -- scoring --------------------------------------------------------------

    def log_prob(
        self, X: NDArray[np.int32], y: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Natural-log probability of each next word, from all ranks' rows."""
        first = block_starts(len(self.C), self.n_ranks)[self.rank]
        own_high, own_total, own_target = self._totals(X, y, first=first)
        high, total, target = (np.empty_like(own_high) for _ in range(3))
        self.comm.Allreduce(own_high, high, MPI.MAX)
        own_total *= np.exp(own_high - high)
        self.comm.Allreduce(own_total, total, MPI.SUM)
        self.comm.Allreduce(own_target, target, MPI.MAX)
        return target - high - np.log(total)

    # -- one process of several -------------------------------------------------

    def agree(self, value: float) -> float:
        """Give rank 0's value in all."""
        return self.comm.bcast(value)

    def together(self, work: Callable[[], T]) -> T:
        """Do it in every rank; if it fails in one, raise in all."""
        return together(self.comm, work)

    def gather(self, value: T) -> list[T]:
        """Give every rank's value in all."""
        return self.comm.allgather(value)

    def guard(self) -> AbstractContextManager[Any]:
        """End the job when this rank fails: the others would wait for it."""
        return guard(self.comm)

    def arrays(self) -> dict[str, NDArray[Any] | None] | None:
        """Give the parameters to those who `keep` them."""
        if self.keep == "root" and self.rank > 0:
            self._all_rows()
            return None
        return super().arrays()

    def _all_rows(self) -> NDArray[Any]:
        """Gather E, unless the shards are kept."""
        if self.keep == "shards":
            return self.E
        starts = np.array(block_starts(len(self.C), self.n_ranks))
        stride = self.E.shape[1]
        holds = self.keep == "all" or self.rank == 0
        E = np.empty((len(self.C), stride), self.E.dtype) if holds else None
        received = [E, np.diff(starts) * stride] if holds else None
        if self.keep == "all":
            self.comm.Allgatherv(self.E, received)
        else:
            self.comm.Gatherv(self.E, received)
        return self.E if E is None else E


def gathers_totals(n_ranks: int, n_columns: int) -> bool:
    """Whether one Allgather of the totals is faster than Allreduces of max and sum.

    It has half as many steps, but brings the totals of every rank to each.
    """
    steps = log2(n_ranks)
    return (n_ranks - 1 - steps) * 24 * n_columns <= steps * BYTES_A_STEP


def _own_rows(n_words: int, comm: MPI.Comm) -> slice:
    starts = block_starts(n_words, comm.size)
    return slice(starts[comm.rank], starts[comm.rank + 1])


def _generator(random_state: Any, comm: MPI.Comm) -> np.random.RandomState:
    """Rank 0's random generator, in all ranks.

    NumPy's own, that of ``random_state=None``, is left alone in the other ranks.
    """
    rng = check_random_state(random_state)
    state = comm.bcast(rng.get_state(legacy=False))
    if comm.rank > 0:
        if rng is check_random_state(None):
            rng = np.random.RandomState()
        rng.set_state(state)
    return rng
