"""A fitted model whose output units are sharded over processes (section 3.2)."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

from numpy.typing import ArrayLike

from nplm.base.array_types import Floats
from nplm.base.estimators.language_model import WindowScores
from nplm.models.neural.fitted_network import trained_network, with_network
from nplm.models.neural.fitting.sharded import ShardedNetwork, gathered
from nplm.models.neural.neural_lm import NeuralLM
from nplm.models.training.checkpoint import fingerprint
from nplm.models.training.parallel.blas import blas_threads
from nplm.models.training.parallel.processes import Processes


class ShardedLM(WindowScores):
    """A fitted model whose output units are sharded over processes.

    `nplm.mpi.fit` and `nplm.mpi.shard` return it. Call every method in all processes,
    with the same windows.

    Parameters
    ----------
    estimator : NeuralLM
        Model with only the rows of ``U_``, ``W_`` and ``b_`` of this rank.
    ranks : Processes
        The ranks that share the model.

    Attributes
    ----------
    history_ : dict of list
        See `NeuralLM`.
    """

    def __init__(self, estimator: NeuralLM, ranks: Processes) -> None:
        self._part = estimator
        self._ranks = ranks
        self.history_ = estimator.history_

    def log_prob(self, X: ArrayLike, y: ArrayLike | None = None) -> Floats:
        ranks, part = self._ranks, self._part
        with ranks.guard(), blas_threads(1):
            ids, words = ranks.all_or_none(lambda: part.checked_windows(X, y))
            ranks.check_same(fingerprint({}, {"X": ids, "y": words}))
            return self._network().log_prob(ids, words)

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
            trained = trained_network(self._part)
            whole = gathered(trained, self._ranks, everywhere=keep == "all")
        if whole is None:
            return None
        # Each model needs a generator of its own.
        trained = replace(whole.copy(), generator=deepcopy(whole.generator))
        return with_network(self._part, trained)

    def _network(self) -> ShardedNetwork:
        trained = trained_network(self._part)
        return ShardedNetwork(
            trained.parts, trained.parameters,
            precision=trained.precision_for(self._part.precision),
            processes=self._ranks, state={},
        )  # fmt: skip
