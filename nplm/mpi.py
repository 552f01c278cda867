"""Train on the processes of a cluster with MPI (section 3.2).

Each process (rank) holds and updates a block of the output units; the features and
the hidden layer are replicated. For each mini-batch, the ranks exchange the maximum
and sum of the softmax (one Allgather, or two Allreduces with many ranks) and the
gradients of the hidden and feature layers (one Allreduce). With ``batch_size=1``
this is the algorithm of the paper, and with more its K-example variant for slow
networks.

Run a script with::

    mpiexec -n 4 python -m mpi4py train.py
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from nplm.models.neural.fitting.fit import Training
from nplm.models.neural.fitting.fit import fit as fit_network
from nplm.models.neural.fitting.sharded import ShardedNetwork, gathered, sharded
from nplm.models.neural.network_lm import Request
from nplm.models.neural.neural_lm import NeuralLM
from nplm.models.neural.recipe import TrainedNetwork
from nplm.models.neural.tiers import kernel_tier
from nplm.models.neural.trainer import Trainer
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
    """Fit a neural model on all processes of a communicator.

    Call it in every process, with the same estimator and the same data. The
    result is that of ``estimator.fit`` up to rounding.

    Parameters
    ----------
    estimator : NeuralLM
        Model to fit. It is fitted in place in the ranks that keep all of it, and not
        changed in the others. A rank is one thread, so ``n_jobs`` must be 1. Sharded
        output units need ``loss="exact"``.
    X : array-like of int, shape (n_samples, n_context)
        Contexts, the nearest word in the last column.
    y : array-like of int, shape (n_samples,)
        Next words.
    X_val, y_val : array-like of int, optional
        Held-out windows for early stopping.
    comm : mpi4py.MPI.Comm, optional
        Communicator; all processes by default. Messages use a duplicate of it.
    keep : {"all", "root", "shards"}, default="all"
        The ranks that return the fitted estimator. "all": every rank. "root": rank 0;
        the others return None. "shards": every rank returns a `ShardedLM` of its own
        output units, for a vocabulary too large for one machine.
    progress : callable, optional
        As in ``NeuralLM.fit``; called by rank 0.
    checkpoint : path-like, optional
        As in ``NeuralLM.fit``: one folder, to which all ranks can write. A fit must
        resume with the same number of ranks. SIGTERM or an interrupt of any rank makes
        all of them save, and then raises KeyboardInterrupt in all. Without a
        checkpoint, an interrupt ends the job.

    Returns
    -------
    estimator : NeuralLM, ShardedLM or None
        See `keep`. A `NeuralLM` pickles and scores without MPI. Its ``history_`` has
        the seconds of this rank in each epoch: ``computing`` in the kernels,
        ``waiting`` for other ranks to send a message, and ``communicating`` after that.

    Raises
    ------
    ValueError
        In every rank, before training, if the ranks have different parameters, data or
        fitted models, or those of one of them are invalid.

    Notes
    -----
    When the ranks synchronise, before and between training and to save or score, the
    job ends if a rank arrives more than 600 seconds after the first, because it may
    have died. The environment variable ``NPLM_MPI_TIMEOUT`` sets the seconds; ``inf``
    means no limit.

    Examples
    --------
    It also works with one process:

    >>> import numpy as np
    >>> from nplm import NeuralLM, mpi, windows
    >>> X, y = windows(np.tile([0, 1, 2, 3], 50), 2)
    >>> lm = NeuralLM(n_words=4, n_hidden=8, max_iter=2)
    >>> lm = mpi.fit(lm, X, y)
    >>> lm.n_iter_
    2
    """
    ranks = Ranks(comm)

    def checked() -> Request:
        if keep not in KEEP:
            raise ValueError(f"keep={keep!r} must be one of {KEEP}.")
        return _checked(estimator, X, y, X_val, y_val)

    with ranks.guard():
        request = ranks.all_or_none(checked)
        ranks.check_same({"keep": keep})

        def train() -> TrainedNetwork:
            return fit_network(
                request.recipe, request.windows, request.before, processes=ranks,
                checkpoint=checkpoint, progress=progress, verbose=request.verbose,
            )  # fmt: skip

        def train_whole() -> Any:
            return gathered(train(), ranks, everywhere=keep == "all")

        if keep == "shards":
            shard = train()
            part = estimator._with(shard)._fit(request, lambda: shard)
            return ShardedLM(part, ranks)
        if keep == "root" and ranks.rank > 0:
            train_whole()
            return None
        return estimator._fit(request, train_whole)


def trainer(
    estimator: NeuralLM, X: ArrayLike, y: ArrayLike, *, comm: MPI.Comm | None = None
) -> Trainer:
    """Return a trainer, which trains on some examples at a time on all processes.

    Call it, and the methods of the trainer, in every process with the same arguments.

    Parameters
    ----------
    estimator : NeuralLM
        Model to train, from new weights or those of the last fit. A rank is one thread.
    X : array-like of int, shape (n_samples, n_context)
        Contexts, the nearest word in the last column.
    y : array-like of int, shape (n_samples,)
        Next words.
    comm : mpi4py.MPI.Comm, optional
        Communicator; all processes by default.

    Returns
    -------
    trainer : Trainer
        As from ``NeuralLM.trainer``; its ``keep`` returns the whole model in every
        rank.

    Raises
    ------
    ValueError
        In every rank, if the ranks have different parameters, data or fitted models, or
        those of one of them are invalid.

    Examples
    --------
    It also works with one process:

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

    def checked() -> Request:
        return _checked(estimator, X, y, further=True)

    with ranks.guard():
        request = ranks.all_or_none(checked)
        training = Training(request.recipe, request.windows, request.before, ranks)
    keep = estimator._keeper(request)

    def keep_whole(shard: TrainedNetwork) -> NeuralLM:
        with ranks.guard():
            whole = gathered(shard, ranks, everywhere=True)
        assert whole is not None
        return keep(whole)

    return Trainer(training, keep_whole)


def _checked(estimator: Any, *data: Any, further: bool = False) -> Request:
    """Check an estimator and its data, and that processes can share the network."""
    _check_estimator(estimator)
    request: Request = estimator._request(*data, further=further)
    recipe = request.recipe
    recipe.architecture.check_shared(recipe.loss, recipe.name)
    return request


def _check_estimator(estimator: Any) -> None:
    if not isinstance(estimator, NeuralLM):
        raise TypeError(f"nplm.mpi trains a NeuralLM, got {estimator!r}.")
    if estimator.n_jobs not in (None, 1):
        raise ValueError(
            f"n_jobs={estimator.n_jobs}, but a rank trains on one thread; set n_jobs=1 "
            "and start mpiexec with as many processes as there are cores."
        )


def rank() -> int:
    """Return the rank of this process among those that mpiexec started.

    Returns
    -------
    rank : int
    """
    return MPI.COMM_WORLD.rank


def shard(estimator: NeuralLM, comm: MPI.Comm | None = None) -> ShardedLM:
    """Shard a fitted model over the processes, to score with all of them.

    Parameters
    ----------
    estimator : NeuralLM
        Fitted model, the same in every process; it is not changed.
    comm : mpi4py.MPI.Comm, optional
        Communicator; all processes by default.

    Returns
    -------
    sharded : ShardedLM
    """
    ranks = Ranks(comm)

    def described() -> dict[str, str]:
        check_is_fitted(estimator)
        trained = estimator._trained
        trained.architecture.check_shared(trained.loss, type(estimator).__name__)
        parameters = {
            "n_words_": estimator.n_words_,
            "kernels": kernel_tier(estimator.precision),
            "n_seen_": estimator.n_seen_,
        }
        own = trained.parameters.named()
        return fingerprint(parameters, {f"{k}_": array for k, array in own.items()})

    with ranks.guard():
        ranks.check_same(ranks.all_or_none(described))
        part = estimator._with(sharded(estimator._trained, ranks))
    return ShardedLM(part, ranks)


class ShardedLM:
    """A fitted model whose output units are sharded over processes.

    `fit` and `shard` return it. Call every method in all processes, with the same
    windows.

    Parameters
    ----------
    estimator : NeuralLM
        Model with only the rows of ``U_``, ``W_`` and ``b_`` of this rank.
    ranks : Ranks
        The ranks that share the model.

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
        """Return the natural-log probability of each next word.

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
        """Return the mean of `log_prob`.

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
        """Return the perplexity, ``exp(-score)``.

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
        """Return the whole model, gathered from all processes.

        Parameters
        ----------
        keep : {"all", "root"}, default="all"
            The ranks that return it: every rank, or rank 0 (the others return None).

        Returns
        -------
        estimator : NeuralLM or None
        """
        with self._ranks.guard():
            self._ranks.check_same({"keep": keep})
            trained = self._part._trained
            whole = gathered(trained, self._ranks, everywhere=keep == "all")
        if whole is None:
            return None
        # Each model needs a generator of its own.
        own = replace(whole.copy(), generator=deepcopy(whole.generator))
        return self._part._with(own)

    def _network(self) -> ShardedNetwork:
        trained = self._part._trained
        return ShardedNetwork(
            trained.parts, trained.parameters,
            precision=trained.precision(self._part.precision),
            processes=self._ranks, state={},
        )  # fmt: skip
