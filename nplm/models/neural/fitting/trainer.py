"""Training by hand: some examples at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nplm.base.atomic import aside, become
from nplm.models.neural.fitting.fit import ENDED, Door, begin, hand_over, past
from nplm.training.parallel.threads import blas_threads

__all__ = ["Trainer"]

PARTIAL = Door(partial=True)


class Trainer:
    """A model in training, mini-batch by mini-batch.

    `NeuralLM.trainer` and `nplm.mpi.trainer` make it.

    Parameters
    ----------
    lm : NeuralLM
        The model.
    X : array-like of int, shape (n_samples, n_context)
        Contexts, the nearest word in the last column.
    y : array-like of int, shape (n_samples,)
        Next words.
    door : Door
        How training is entered; on this process alone by default.
    """

    def __init__(
        self, lm: Any, X: ArrayLike, y: ArrayLike, door: Door = PARTIAL
    ) -> None:
        self._lm, self._door = lm, door
        self._begun_with = vars(lm).get("_parameters")
        fitted, before = aside(lm), vars(lm)
        self._network, self._windows, _ = begin(fitted, X, y, None, None, door)
        self._history = past(fitted, door)
        # What the checks learnt of the windows; `keep` makes it the model's. Not the
        # parameters, which may be set to others before that.
        self._learnt = {
            name: value
            for name, value in vars(fitted).items()
            if name not in before or value is not before[name]
        }
        self._batch_size = min(lm._asked().batch_size, len(self._windows.y))

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
            If there is none, or one is no row; or if ``learning_rate="linear"`` has
            fallen to 0, ``max_iter`` times as many examples as there are windows.
        """
        network, processes = self._network, self._door.processes
        if network.solver.schedule.has_ended(network.n_seen):
            raise ValueError(ENDED.format(self._lm.max_iter))
        X, y = self._windows.X, self._windows.y
        with processes.guard(), blas_threads(1):
            index = processes.all_or_none(lambda: _checked(examples, len(y)))
            network.loss = 0.0
            network.train(X, y, index, self._batch_size)
        return network.loss / len(index)

    def costs(self) -> dict[str, float]:
        """Give what the time since the last call went to.

        Returns
        -------
        costs : dict of str to float
            Of a network spread over processes: the seconds of ``computing``,
            ``communicating`` and ``waiting`` (see `nplm.mpi.fit`). Else empty.
        """
        return self._network.costs()

    def keep(self) -> Any:
        """Make the weights as they are the model's.

        Returns
        -------
        lm : NeuralLM

        Raises
        ------
        ValueError
            If the model was fitted by other means since: one of both would be lost.
        """
        if vars(self._lm).get("_parameters") is not self._begun_with:
            raise ValueError(
                "The model was fitted by other means since this trainer was made (or "
                "kept it last): make a new trainer, which goes on from that fit."
            )
        self._network.settle()
        fitted = aside(self._lm)
        vars(fitted).update(self._learnt)
        n_windows = len(self._windows.y)
        hand_over(fitted, self._network, self._history, self._door, n_windows)
        # Training may go on, the model stays as it is.
        fitted._parameters = fitted._parameters.copy()
        fitted._solver_state = {k: v.copy() for k, v in fitted._solver_state.items()}
        become(self._lm, fitted)
        self._begun_with = fitted._parameters
        return self._lm


def _checked(examples: ArrayLike, n: int) -> NDArray[np.intp]:
    """Give rows of n windows, or raise with one that is none."""
    index = np.array(examples, dtype=np.intp).reshape(-1)
    if not len(index):
        raise ValueError("examples is empty: give rows of the windows.")
    if index.min() < 0 or index.max() >= n:
        bad = index[(index < 0) | (index >= n)][0]
        raise ValueError(f"examples has {bad}, but there are rows 0 to {n - 1}.")
    return index
