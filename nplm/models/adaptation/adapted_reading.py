"""Adapt a network to a text while it reads it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from nplm.base.array_types import Floats
from nplm.base.blocks import blocks
from nplm.base.estimators.bases import Whole
from nplm.base.exceptions import DivergenceError
from nplm.models.neural.fitted_network import trained_network, with_network
from nplm.models.neural.network_lm import FitRequest, NetworkLM
from nplm.models.neural.options.solvers import SGD
from nplm.models.training.parallel.blas import blas_threads


def adapted_log_prob(
    lm: object,
    X: ArrayLike,
    y: ArrayLike,
    *,
    learning_rate: float = 2e-3,
    block_size: int = 32,
) -> Floats:
    """Score windows in text order, and train on each block after it is scored.

    Dynamic evaluation (Krause et al., 2018): the probability of a word comes from a
    network that has trained on the text before it, never on the word itself. A copy of
    the network is trained, by stochastic gradient ascent with a constant step and
    without dropout and weight decay; `lm` does not change. Perplexities,
    ``exp(-log_prob.mean())``, are reported apart, "with adaptation".

    Parameters
    ----------
    lm : NeuralLM or EnergyLM
        A fitted network.
    X : array-like of int, shape (n_samples, n_context)
        Contexts in text order, the nearest word in the last column.
    y : array-like of int, shape (n_samples,)
        Next words.
    learning_rate : float, default=2e-3
        Step of the stochastic gradient, for each word. Choose it on held-out text: 0 is
        the network as it is.
    block_size : int, default=32
        Number of windows that are scored before the network trains on them, in one
        update. Smaller blocks adapt sooner and take longer.

    Returns
    -------
    log_prob : ndarray of float64, shape (n_samples,)
        Natural logarithms.

    Raises
    ------
    TypeError
        If `lm` is not a network.
    ValueError
        If a parameter or an id is out of range.
    NotFittedError
        If the network is not fitted.
    DivergenceError
        If the network diverges, because `learning_rate` is too large.

    References
    ----------
    B. Krause, E. Kahembwe, I. Murray and S. Renals (2018). Dynamic evaluation of neural
    sequence models. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from nplm import NeuralLM, adapted_log_prob, windows
    >>> X, y = windows(np.tile([0, 1, 2, 3], 50), 2)
    >>> lm = NeuralLM(n_hidden=8, max_iter=1, random_state=0).fit(X, y)
    >>> X, y = windows(np.tile([0, 3, 2, 1], 50), 2)
    >>> adapted = adapted_log_prob(lm, X, y, learning_rate=0.05)
    >>> bool(adapted.mean() > lm.score(X, y))
    True
    """
    if not isinstance(lm, NetworkLM):
        raise TypeError(
            f"only a network adapts while it reads, got a {type(lm).__name__}: pass a "
            "NeuralLM or an EnergyLM."
        )
    check_is_fitted(lm)
    if not learning_rate >= 0 or not np.isfinite(learning_rate):
        raise ValueError(
            f"learning_rate must be a finite number from 0, got {learning_rate!r}."
        )
    if not Whole(1).is_satisfied_by(block_size):
        raise ValueError(
            f"block_size must be a whole number from 1, got {block_size!r}."
        )
    if learning_rate == 0:
        return lm.log_prob(X, y)
    # Noise samples begin at the seed: each call gives the same, and `lm` keeps its own.
    reader = with_network(lm, trained_network(lm).restarted())
    reader.set_params(
        solver=SGD(learning_rate="constant"),
        learning_rate_init=learning_rate,
        alpha=0.0,
        batch_size=int(block_size),
    )
    if "dropout" in reader.get_params(deep=False):
        reader.set_params(dropout=0.0)
    request = FitRequest.of(reader, (X, y), further=True)
    X, y = request.windows.X, request.windows.y
    training = request.training()
    network, log_prob = training.network, np.empty(len(y))
    for rows in blocks(len(y), int(block_size)):
        network.settle()
        with blas_threads(1):
            log_prob[rows] = network.log_prob(X[rows], y[rows])
        if not np.isfinite(log_prob[rows]).all():
            raise DivergenceError(
                f"the network diverged while it read window {rows.start}: lower "
                f"learning_rate={learning_rate!r}."
            )
        training.train(np.arange(rows.start, rows.stop))
    return log_prob
