"""Train on the processes of a cluster with MPI (section 3).

The processes (ranks) share the work of each mini-batch in one of two ways:

- *Output units* (section 3.2), where these are nearly all of the work: a full softmax
  over many words. Each rank holds and updates a block of them; the features and the
  hidden layer are replicated. For each mini-batch, the ranks exchange the maximum and
  sum of the softmax (one Allgather, or two Allreduces with many ranks) and the
  gradients of the hidden and feature layers (one Allreduce). With ``batch_size=1``
  this is the algorithm of the paper, and with more its K-example variant for slow
  networks.
- *Examples*, for all other networks. Each rank has some of the examples of each
  mini-batch. The ranks of one computer have the parameters in memory that they share:
  each updates some of them from the gradients of all. The ranks of several computers
  have all parameters each: they add up the gradients of whole arrays and of the noise
  samples (one Allreduce), send each other the gradients of the rows that their examples
  visit (one Allgatherv), and make the same update.

With ``data="sharded"``, each rank reads a part of the data of its own.

Run a script with::

    mpiexec -n 4 python -m mpi4py train.py

As root, for example in a container, Open MPI starts nothing unless you set
``OMPI_ALLOW_RUN_AS_ROOT=1`` and ``OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, TypeVar, cast

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_scalar

from nplm.base.progress import OnProgress
from nplm.base.warnings import warn
from nplm.models.neural.fitted_network import trained_network, with_network
from nplm.models.neural.fitting.fit import fit as fit_network
from nplm.models.neural.fitting.sharded import gathered, sharded
from nplm.models.neural.network_lm import FitRequest, NetworkLM
from nplm.models.neural.neural_lm import NeuralLM
from nplm.models.neural.recipe import TrainedNetwork
from nplm.models.neural.sharded_lm import ShardedLM
from nplm.models.neural.tiers import kernel_tier
from nplm.models.neural.trainer import Trainer
from nplm.models.training.checkpoint import fingerprint
from nplm.models.training.parallel.agreement import MPI, Ranks
from nplm.models.training.parallel.processes import part_of

__all__ = ["ShardedLM", "fit", "fit_stream", "part", "rank", "shard", "trainer"]

KEEP = ("all", "root", "shards")
Network = TypeVar("Network", bound=NetworkLM)
DATA = ("same", "sharded")
# An epoch that uses a smaller share of the windows has a warning.
MIN_USED_SHARE = 0.9

T = TypeVar("T")


def fit(
    estimator: Network,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    X_val: ArrayLike | None = None,
    y_val: ArrayLike | None = None,
    comm: MPI.Comm | None = None,
    data: str = "same",
    keep: str = "all",
    average_every: int | None = None,
    progress: OnProgress | None = None,
    checkpoint: Any = None,
) -> Network | ShardedLM | None:
    """Fit a neural model on all processes of a communicator.

    Call it in every process, with the same estimator and the same data. The
    result is that of ``estimator.fit`` up to rounding, but with `average_every`. With
    ``data="sharded"``, each process has data of its own.

    Parameters
    ----------
    estimator : NeuralLM or EnergyLM
        Model to fit. It is fitted in place in the ranks that keep all of it, and not
        changed in the others. A rank is one thread, so ``n_jobs`` must be 1.
    X : array-like of int, shape (n_samples, n_context)
        Contexts, the nearest word in the last column.
    y : array-like of int, shape (n_samples,)
        Next words.
    X_val, y_val : array-like of int, optional
        Held-out windows for early stopping, the same in every rank.
    comm : mpi4py.MPI.Comm, optional
        Communicator; all processes by default. Messages use a duplicate of it.
    data : {"same", "sharded"}, default="same"
        "same": every rank passes the same windows. "sharded": each rank passes windows
        of its own (see `part`), one at least, and the ranks always share the examples
        of mini-batches. Then each rank has an equal share of every mini-batch of
        ``batch_size`` examples (to within one example), and an epoch has as many
        examples of each rank as the rank with the fewest windows has. A rank with more
        windows leaves out the last ones of each epoch's order, which are others in each
        epoch if ``shuffle=True``. Rank 0 warns if an epoch leaves out more than a tenth
        of all windows. Word frequencies, which initial biases, word classes,
        Huffman trees and noise samples depend on, are those of all ranks. It needs
        ``n_words``, and either `X_val` and `y_val` or ``early_stopping=False``.
    keep : {"all", "root", "shards"}, default="all"
        The ranks that return the fitted estimator. "all": every rank. "root": rank 0;
        the others return None. "shards": every rank returns a `ShardedLM` of its own
        output units, for a vocabulary too large for one machine; the network must have
        a full softmax with weights of its own (``loss="exact"``), and ``data="same"``.
    average_every : int, optional
        For slow networks of computers: each rank trains on mini-batches of its own, and
        after so many of them all ranks take the mean of their networks (local SGD).
        There are fewer messages, and an epoch learns less than by default, where ranks
        share every mini-batch.
    progress : callable, optional
        As in ``NeuralLM.fit``; called by rank 0.
    checkpoint : path-like, optional
        As in ``NeuralLM.fit``: one folder, to which all ranks can write. A fit must
        resume with the same number of ranks, each with the same windows. SIGTERM or an
        interrupt of any rank makes all of them save, and then raises KeyboardInterrupt
        in all. Without a checkpoint, an interrupt ends the job.

    Returns
    -------
    estimator : NeuralLM, EnergyLM, ShardedLM or None
        See `keep`. A `NeuralLM` pickles and scores without MPI. Its ``history_`` has
        the seconds of this rank in each epoch: ``computing`` in the kernels,
        ``waiting`` for other ranks to send a message, and ``communicating`` after that.

    Raises
    ------
    ValueError
        In every rank, before training, if the ranks have different parameters, data
        (unless it is sharded) or fitted models, or those of one of them are invalid.

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
    held_out = None if X_val is None and y_val is None else (X_val, y_val)
    return _fit(
        estimator, lambda: ((X, y), held_out), held_out is not None, Ranks(comm), data,
        keep, average_every, progress=progress, checkpoint=checkpoint,
    )  # fmt: skip


def fit_stream(
    estimator: Network,
    ids: ArrayLike | Sequence[ArrayLike],
    ids_val: ArrayLike | Sequence[ArrayLike] | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    comm: MPI.Comm | None = None,
    data: str = "same",
    keep: str = "all",
    average_every: int | None = None,
    **options: object,
) -> Network | ShardedLM | None:
    """Fit a neural model to a text, or to documents, on all processes.

    Parameters
    ----------
    estimator, comm, data, keep, average_every, **options
        As in `fit`, with its ``progress`` and ``checkpoint``. With ``data="sharded"``
        each rank passes a part of the text, such as ``part(ids)``, or documents of its
        own.
    ids, ids_val, sample_weight
        As in ``NeuralLM.fit_stream``.

    Returns
    -------
    estimator : NeuralLM, EnergyLM, ShardedLM or None
        As `fit` returns for the windows of the same text.

    Examples
    --------
    It also works with one process:

    >>> from nplm import NeuralLM, mpi
    >>> lm = NeuralLM(order=3, n_words=4, n_hidden=8, max_iter=2)
    >>> lm = mpi.fit_stream(lm, [0, 1, 2, 3] * 50)
    >>> lm.n_iter_
    2
    """
    return _fit(
        estimator, lambda: estimator.texts_to_fit(ids, ids_val, sample_weight),
        ids_val is not None, Ranks(comm), data, keep, average_every, **options,
    )  # fmt: skip


def _fit(
    estimator: Network,
    taken: Callable[[], tuple[object, object]],
    has_held_out: bool,
    ranks: Ranks,
    data: str,
    keep: str,
    average_every: int | None,
    **options: Any,
) -> Network | ShardedLM | None:
    def checked() -> FitRequest:
        if keep not in KEEP:
            raise ValueError(f"keep={keep!r} must be one of {KEEP}.")
        request = _checked(estimator, taken, data)
        if data == "sharded":
            _check_held_out_data(estimator, keep, has_held_out=has_held_out)
        if average_every is not None:
            check_scalar(average_every, "average_every", Integral, min_val=1)
            if keep == "shards":
                raise ValueError(
                    f"average_every={average_every} needs all of the network in each "
                    "rank, but keep='shards' leaves each a part; leave out one of them."
                )
            recipe = replace(request.recipe, average_every=int(average_every))
            request = replace(request, recipe=recipe)
        if keep == "shards":
            recipe = replace(request.recipe, sharded=True)
            recipe.architecture.check_shared(recipe.loss, recipe.estimator)
            return replace(request, recipe=recipe)
        return request

    with ranks.guard():
        request = ranks.all_or_none(checked)
        ranks.check_same({"keep": keep, "data": data})
        request = _with_parts(request, data, ranks)

        options |= {"processes": ranks}

        def trained() -> TrainedNetwork:
            verbose = int(estimator.verbose)
            data = request.recipe, request.windows, request.before
            return fit_network(*data, verbose=verbose, **options)

        if keep == "shards":
            shard = trained()
            part = replace(request, model=with_network(estimator, shard))
            return ShardedLM(cast(NeuralLM, part.assign(shard)), ranks)

        def gather(trained: TrainedNetwork) -> Any:
            return gathered(trained, ranks, everywhere=keep == "all")

        if keep == "root" and ranks.rank > 0:
            gather(trained())
            return None
        request.fit(gather, **options)
        return estimator


def trainer(
    estimator: NetworkLM,
    X: ArrayLike,
    y: ArrayLike,
    *,
    comm: MPI.Comm | None = None,
    data: str = "same",
) -> Trainer:
    """Return a trainer, which trains on some examples at a time on all processes.

    Call it, and the methods of the trainer, in every process; with the same arguments,
    but for ``data="sharded"``.

    Parameters
    ----------
    estimator : NeuralLM or EnergyLM
        Model to train, from new weights or those of the last fit. A rank is one thread.
    X : array-like of int, shape (n_samples, n_context)
        Contexts, the nearest word in the last column.
    y : array-like of int, shape (n_samples,)
        Next words.
    comm : mpi4py.MPI.Comm, optional
        Communicator; all processes by default.
    data : {"same", "sharded"}, default="same"
        "same": every rank passes the same windows. "sharded": each passes windows of
        its own, as in `fit`, and then examples of its own, as many as each other rank.
        A mini-batch has an equal share of each rank.

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

    with ranks.guard():
        request = ranks.all_or_none(
            lambda: _checked(estimator, lambda: ((X, y), None), data, further=True)
        )
        ranks.check_same({"data": data})
        request = _with_parts(request, data, ranks)
        training = request.training(ranks)
    keep = request.keeper()

    def keep_whole(shard: TrainedNetwork) -> NetworkLM:
        with ranks.guard():
            whole = gathered(shard, ranks, everywhere=True)
        assert whole is not None
        return keep(whole)

    return Trainer(training, keep_whole)


def _checked(
    estimator: Any,
    taken: Callable[[], tuple[Any, Any]],
    data: str,
    *,
    further: bool = False,
) -> FitRequest:
    """Return a request of a fit of the data `taken`, or raise an error."""
    if data not in DATA:
        raise ValueError(f"data={data!r} must be one of {DATA}.")
    if not isinstance(estimator, NetworkLM):
        raise TypeError(
            f"nplm.mpi trains a NeuralLM or EnergyLM, got {estimator!r:.100}. Of a "
            "text, train it on windows of ids, and make a TextLM by TextLM.from_model."
        )
    if estimator.n_jobs not in (None, 1):
        raise ValueError(
            f"n_jobs={estimator.n_jobs}, but a rank trains on one thread; set n_jobs=1 "
            "and start mpiexec with as many processes as there are cores."
        )
    if data == "sharded" and estimator.n_words is None:
        raise ValueError(
            "data='sharded' needs n_words, because a rank sees only the words of its "
            "own windows; set it to the size of the vocabulary."
        )
    request = FitRequest.of(estimator, *taken(), further=further)
    output = request.recipe.architecture.output
    makes_tree = request.before is None and output.name == "tree"
    if data == "sharded" and makes_tree and output.tree is None:
        raise ValueError(
            "data='sharded' cannot make the tree of output='tree', which depends on "
            "the contexts of all ranks; set output__tree='huffman', or give a tree "
            "(nplm.word_tree makes one)."
        )
    return request


def _with_parts(request: FitRequest, data: str, ranks: Ranks) -> FitRequest:
    """Return a request that knows how many windows each rank has."""
    if data == "same":
        return request
    windows = request.windows
    sizes = ranks.everyones(windows.n_visits)
    used, n_windows = min(sizes) * len(sizes), sum(sizes)
    if ranks.rank == 0 and used < MIN_USED_SHARE * n_windows:
        warn(
            f"Each epoch uses {used:,} of {n_windows:,} windows, because rank "
            f"{sizes.index(min(sizes))} has {min(sizes):,}, and every rank trains on "
            "as many; give the ranks parts of nearly equal size.",
            UserWarning,
        )
    return replace(request, windows=replace(windows, min_windows=min(sizes)))


def _check_held_out_data(estimator: Any, keep: str, *, has_held_out: bool) -> None:
    """Raise ValueError if a fit of windows that differ by rank is not possible."""
    if keep == "shards":
        raise ValueError(
            "keep='shards' with data='sharded' is not possible: ranks that have shards "
            "of the output units need the same windows. Set keep='all' or keep='root', "
            "or data='same'."
        )
    if not has_held_out and estimator.early_stopping is not False:
        raise ValueError(
            f"early_stopping={estimator.early_stopping!r} with data='sharded' needs "
            "held-out windows that all ranks have; give X_val and y_val, or set "
            "early_stopping=False."
        )


def part(data: T, *, comm: MPI.Comm | None = None) -> T:
    """Return the part of the data that this process should read.

    The parts of all processes are contiguous, in the order of their ranks, and as long
    as each other to within one item. Fit them with ``fit(..., data="sharded")``.

    Parameters
    ----------
    data : array-like or list
        Ids of the words of a text, such as a memory-mapped array, or names of files.
        Every process passes the same.
    comm : mpi4py.MPI.Comm, optional
        Communicator; all processes by default.

    Returns
    -------
    part : array-like or list
        Slice of `data`: of an array a view, which reads nothing yet.

    Raises
    ------
    ValueError
        If there are fewer items than processes.

    Examples
    --------
    It also works with one process:

    >>> from nplm import mpi
    >>> mpi.part(["a.npy", "b.npy"])
    ['a.npy', 'b.npy']
    """
    comm = MPI.COMM_WORLD if comm is None else comm
    return part_of(data, comm.rank, comm.size)


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
        trained = trained_network(estimator)
        trained.architecture.check_shared(trained.loss, type(estimator).__name__)
        parameters = {
            "n_words_": estimator.n_words_,
            "kernels": kernel_tier(trained.precision_for(estimator.precision)),
            "n_seen_": estimator.n_seen_,
        }
        named = trained.parameters.named()
        return fingerprint(parameters, {f"{k}_": array for k, array in named.items()})

    with ranks.guard():
        ranks.check_same(ranks.all_or_none(described))
        part = with_network(estimator, sharded(trained_network(estimator), ranks))
    return ShardedLM(part, ranks)
