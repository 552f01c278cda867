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

from copy import copy, deepcopy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from nplm.models.neural.conflicts import check_shared
from nplm.models.neural.fitting.fit import Door, joined
from nplm.models.neural.fitting.fit import fit as fit_network
from nplm.models.neural.fitting.sharded import ShardedNetwork, rows_of
from nplm.models.neural.fitting.trainer import Trainer
from nplm.models.neural.neural_lm import NeuralLM
from nplm.models.neural.tiers import kernel_tier
from nplm.training.checkpoint import fingerprint
from nplm.training.loop import OnProgress
from nplm.training.parallel.agreement import MPI, Ranks
from nplm.training.parallel.threads import blas_threads

__all__ = ["ShardedLM", "fit", "rank", "shard", "trainer"]

KEEP = ("all", "root", "shards")


def fit(
    estimator: NeuralLM,
    X: ArrayLike,
    y: ArrayLike,
    *,
    X_val: ArrayLike | None = None,
    y_val: ArrayLike | None = None,
    comm: MPI.Comm | None = None,
    keep: str = "all",
    progress: OnProgress | None = None,
    checkpoint: Any = None,
) -> NeuralLM | ShardedLM | None:
    """Fit a neural model over all processes of a communicator.

    Call it in every process, with the same estimator and the same data. The
    result is that of ``estimator.fit`` up to rounding.

    Parameters
    ----------
    estimator : NeuralLM
        What to fit; fitted in place where all of it is kept, and elsewhere left as
        it is. A rank is one thread: ``n_jobs`` stays at 1. Output units that can be
        shared out are trained with ``loss="exact"``.
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
        goes on with as many ranks as it began with. SIGTERM or an interrupt of any
        rank lets all of them save, and then raises KeyboardInterrupt in all. Without a
        checkpoint an interrupt ends the job.

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
    >>> lm = NeuralLM(n_words=4, n_hidden=8, max_iter=2)
    >>> lm = mpi.fit(lm, X, y)
    >>> lm.n_iter_
    2
    """
    ranks = Ranks(comm)
    keeps_it = keep == "all" or (keep == "root" and ranks.rank == 0)

    def chosen() -> NeuralLM:
        _check_estimator(estimator)
        if keep not in KEEP:
            raise ValueError(f"keep must be one of {KEEP}, not {keep!r}.")
        return estimator if keeps_it else copy(estimator)

    with ranks.guard():
        lm = ranks.all_or_none(chosen)
        door = Door(
            progress=progress, checkpoint=checkpoint, processes=ranks, keep=keep
        )
        fit_network(lm, X, y, X_val, y_val, door)
    if keep == "shards":
        return ShardedLM(lm, ranks)
    return lm if keeps_it else None


def trainer(
    estimator: NeuralLM, X: ArrayLike, y: ArrayLike, *, comm: MPI.Comm | None = None
) -> Trainer:
    """Train by hand over all processes of a communicator, some examples at a time.

    Call it, and the trainer's methods, in every process, with the same arguments.

    Parameters
    ----------
    estimator : NeuralLM
        What to train: from new weights, or those fitted so far. A rank is one thread.
    X : array-like of int, shape (n_samples, n_context)
        Contexts, the nearest word in the last column.
    y : array-like of int, shape (n_samples,)
        Next words.
    comm : mpi4py.MPI.Comm, optional
        The processes; all of them by default.

    Returns
    -------
    trainer : Trainer
        As ``NeuralLM.trainer`` makes one; its ``keep`` gives every rank the whole
        model.

    Raises
    ------
    ValueError
        In every rank, when the ranks disagree on parameters, data or what was fitted
        before, or one of them refuses its own.

    Examples
    --------
    One process is a cluster too:

    >>> import numpy as np
    >>> from nplm import NeuralLM, mpi, windows
    >>> X, y = windows(np.tile([0, 1, 2, 3], 50), 2)
    >>> lm = NeuralLM(n_words=4, n_hidden=8, random_state=0)
    >>> trainer = mpi.trainer(lm, X, y)
    >>> trainer.train(range(100)) > trainer.train(range(100))
    True
    >>> sorted(trainer.costs())
    ['communicating', 'computing', 'waiting']
    """
    ranks = Ranks(comm)
    with ranks.guard():
        ranks.all_or_none(lambda: _check_estimator(estimator))
        return Trainer(estimator, X, y, Door(partial=True, processes=ranks))


def _check_estimator(estimator: Any) -> None:
    if not isinstance(estimator, NeuralLM):
        raise TypeError(f"nplm.mpi trains a NeuralLM, not {estimator!r}.")
    if estimator.n_jobs not in (None, 1):
        raise ValueError(
            f"n_jobs={estimator.n_jobs}: a rank trains on one thread; leave n_jobs "
            "at 1 and give mpiexec as many processes as there are cores."
        )


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
    ranks = Ranks(comm)

    def marks() -> dict[str, str]:
        check_is_fitted(estimator)
        check_shared(estimator)
        parameters = {
            "n_words_": estimator.n_words_,
            "kernels": kernel_tier(estimator.precision),
            "n_seen_": estimator.n_seen_,
        }
        own = estimator._parameters.named()
        return fingerprint(parameters, {f"{k}_": array for k, array in own.items()})

    with ranks.guard():
        ranks.check_same(ranks.all_or_none(marks))
        part = copy(estimator)
        rows = rows_of(len(estimator._parameters.E), ranks)
        part._parameters = estimator._parameters.copy(rows)
        part._solver_state = {
            name: (array[rows] if name.endswith("_E") else array).copy()
            for name, array in estimator._solver_state.items()
        }
    return ShardedLM(part, ranks)


class ShardedLM:
    """A fitted model of which each process holds a block of the output units.

    `fit` and `shard` make it. Every method must be called in all processes, with
    the same windows.

    Parameters
    ----------
    estimator : NeuralLM
        With only this rank's rows of ``U_``, ``W_`` and ``b_``.
    ranks : Ranks
        The processes.

    Attributes
    ----------
    history_ : dict of list
        See `NeuralLM`.
    """

    def __init__(self, estimator: NeuralLM, ranks: Ranks) -> None:
        self._part = estimator
        self._ranks = ranks
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
        ranks, part = self._ranks, self._part
        with ranks.guard(), blas_threads(1):
            ids, words = ranks.all_or_none(lambda: part._check_Xy(X, y))
            ranks.check_same(fingerprint({}, {"X": ids, "y": words}))
            return self._network().log_prob(ids, words)

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
        with self._ranks.guard():
            self._ranks.check_same({"keep": keep})
            whole = copy(self._part)
            E, state = joined(
                self._network(), self._part._solver_state, everywhere=keep == "all"
            )
        if E is None:
            return None
        whole._parameters = self._part._parameters.with_rows(E).copy()
        whole._solver_state = {name: array.copy() for name, array in state.items()}
        whole._rng = deepcopy(self._part._rng)  # no two models draw from one
        return whole

    def _network(self) -> ShardedNetwork:
        whole = self._part._network()
        return ShardedNetwork(
            whole.parts, whole.parameters, precision=self._part._precision(),
            processes=self._ranks, state={},
        )  # fmt: skip
