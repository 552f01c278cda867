"""Train a model some examples at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from nplm.base.array_types import Index
from nplm.base.estimators.language_model import LanguageModel
from nplm.models.neural.fitting.fit import Training
from nplm.models.neural.recipe import TrainedNetwork


class Trainer:
    """Train a model some examples at a time, in the order that you choose.

    `NeuralLM.trainer` and `nplm.mpi.trainer` return one.

    Parameters
    ----------
    training : Training
        The network in training.
    keep : callable
        Called with the trained network; returns the model.
    """

    def __init__(
        self, training: Training, keep: Callable[[TrainedNetwork], LanguageModel]
    ) -> None:
        self._training, self._keep = training, keep

    def train(self, examples: ArrayLike) -> float:
        """Train on examples, in mini-batches of the model's ``batch_size``.

        Parameters
        ----------
        examples : array-like of int
            Rows of the windows, in the order in which they are presented.

        Returns
        -------
        loss : float
            Mean negative log-likelihood of each example just before its update, in
            nats.

        Raises
        ------
        ValueError
            If there are no examples, if one is not a row of the windows, or if
            ``solver__learning_rate="linear"`` has fallen to 0, which takes ``max_iter``
            times as many examples as there are windows.
        """
        training = self._training
        schedule = training.network.solver.schedule
        if schedule.has_ended(training.network.n_seen):
            raise schedule.ended()
        n_windows, processes = len(training.windows), training.processes
        with processes.guard():
            index = processes.all_or_none(lambda: _checked(examples, n_windows))
            return training.train(index)

    def costs(self) -> dict[str, float]:
        """Return the seconds since the last call, by activity.

        Returns
        -------
        costs : dict of str to float
            If processes share the network, the seconds of ``computing``,
            ``communicating`` and ``waiting`` (see `nplm.mpi.fit`); else empty.
        """
        return self._training.network.costs()

    def keep(self) -> LanguageModel:
        """Assign the current weights to the model.

        Returns
        -------
        lm : NeuralLM

        Raises
        ------
        ValueError
            If the model was fitted in another way in between, which would be lost.
        """
        self._training.network.settle()
        return self._keep(self._training.result())


def _checked(examples: ArrayLike, n: int) -> Index:
    """Return rows of n windows, or raise ValueError with the first invalid one."""
    rows = np.asarray(examples)
    if rows.size == 0:
        raise ValueError("examples is empty; give rows of the windows.")
    if rows.dtype.kind not in "iu":
        raise ValueError(
            f"examples must be row numbers of the windows, got values of type "
            f"{rows.dtype}; np.flatnonzero gives those of a mask."
        )
    index = rows.astype(np.intp).reshape(-1)
    if index.min() < 0 or index.max() >= n:
        bad = index[(index < 0) | (index >= n)][0]
        raise ValueError(f"examples has {bad}, but the windows have rows 0 to {n - 1}.")
    return index
