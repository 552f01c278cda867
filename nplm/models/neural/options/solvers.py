"""Options for the solver and the schedule of the learning rate."""

from __future__ import annotations

from dataclasses import field
from numbers import Real
from typing import ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from nplm.base.estimators.bases import hyperparameters
from nplm.models.neural.network import solver_updates
from nplm.models.neural.options.base import Option

SCHEDULES = {"auto", "invscaling", "linear", "constant"}


@hyperparameters
class SGD(Option):
    """Stochastic gradient descent, as in the paper.

    Each update adds the gradients of the log-likelihood of ``batch_size`` examples,
    times the learning rate (section 3.2). The weight decay ``alpha`` multiplies the
    learning rate of each example.

    Parameters
    ----------
    learning_rate : {"auto", "invscaling", "linear", "constant"}, default="auto"
        The schedule of the learning rate.

        "auto" lowers it linearly from ``learning_rate_init`` to 0 over 4 epochs, or
        over 200 updates if 4 epochs have fewer, and ends the fit there; ``max_iter`` is
        an upper limit. ``partial_fit`` and trainers, which do not know how much is
        to come, do not change it.

        "invscaling" is the paper's: after t examples the learning rate is
        ``learning_rate_init / (1 + learning_rate_decay t)``.

        "linear" lowers it linearly from ``learning_rate_init`` to 0 at the end of
        ``max_iter`` epochs; early stopping may end the fit before. A fit with
        ``warm_start`` starts at ``learning_rate_init`` again. Calls of
        ``partial_fit`` (an epoch each) and trainers share one schedule.

        "constant" does not change it.
    learning_rate_decay : float, default=1e-8
        r of the paper's schedule; only for "invscaling".

    See Also
    --------
    Adam : Usually better at large mini-batches.

    References
    ----------
    Bengio, Ducharme, Vincent and Jauvin (2003), A Neural Probabilistic Language
    Model, JMLR 3:1137-1155: sections 3.2 and 4.2.

    Examples
    --------
    >>> from nplm import NeuralLM, SGD
    >>> lm = NeuralLM(solver=SGD(learning_rate="invscaling"), learning_rate_init=1e-3)
    >>> lm.get_params()["solver__learning_rate_decay"]
    1e-08
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        "learning_rate": [StrOptions(SCHEDULES)],
        "learning_rate_decay": [Interval(Real, 0, None, closed="left")],
    }

    learning_rate: str = field(default="auto", kw_only=False)
    learning_rate_decay: float = 1e-8

    def part(self, schedule: solver_updates.Schedule) -> solver_updates.SGD:
        """Return the solver that a network trains with."""
        return solver_updates.SGD(schedule)


@hyperparameters
class Adam(SGD):
    """Adam, as in scikit-learn's networks.

    The weight decay is decoupled from the gradient (Loshchilov and Hutter, 2019),
    and each update follows the mean gradient of its mini-batch. With a large
    ``batch_size``, such as 512, try ``learning_rate_init=1e-3``.

    Parameters
    ----------
    learning_rate : {"auto", "invscaling", "linear", "constant"}, default="auto"
        The schedule of the learning rate, as in `SGD`.
    learning_rate_decay : float, default=1e-8
        r of the paper's schedule; only for "invscaling".
    beta_1, beta_2 : float, default=0.9, 0.999
        Decay rates of the running means of the gradients and of their squares.
    epsilon : float, default=1e-5
        Added to the root of the mean square, before that is corrected for its start
        at 0. At the first update it counts as ``epsilon / sqrt(1 - beta_2)``, 3.2e-4 by
        default, beside the corrected root; later as itself.

    See Also
    --------
    SGD : The paper's solver, with the same schedules.

    References
    ----------
    Kingma and Ba (2015), Adam: a method for stochastic optimization, ICLR.

    Loshchilov and Hutter (2019), Decoupled weight decay regularization, ICLR.

    Examples
    --------
    >>> from nplm import Adam, NeuralLM
    >>> lm = NeuralLM(solver=Adam(learning_rate="linear", epsilon=1e-8), max_iter=10)
    >>> lm.set_params(solver__beta_1=0.8).solver
    Adam(beta_1=0.8, epsilon=1e-08, learning_rate='linear')
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **SGD._parameter_constraints,
        "beta_1": [Interval(Real, 0, 1, closed="left")],
        "beta_2": [Interval(Real, 0, 1, closed="left")],
        "epsilon": [Interval(Real, 0, None, closed="neither")],
    }

    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-5

    def part(self, schedule: solver_updates.Schedule) -> solver_updates.SGD:
        return solver_updates.Adam(schedule, self.beta_1, self.beta_2, self.epsilon)


SOLVERS: dict[str, type[SGD]] = {"adam": Adam, "sgd": SGD}
