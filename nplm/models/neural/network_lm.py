"""NetworkLM: what the neural models share: fits, checks, the way to the kernels."""

from __future__ import annotations

import os
from numbers import Integral, Real
from types import FunctionType, SimpleNamespace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from nplm.base.atomic import read_at_once
from nplm.base.checks import Whole, plain
from nplm.base.estimators import LanguageModel
from nplm.base.fitted import Fitted
from nplm.models.neural.conflicts import check_network
from nplm.models.neural.fitting.fit import ENDED, Door, epochs_before, fit, goes_on
from nplm.models.neural.fitting.saved import UNMADE, fitted_network, restore_network
from nplm.models.neural.fitting.trainer import Trainer
from nplm.models.neural.fitting.windows import Windows, with_held_out
from nplm.models.neural.network.dropout import NONE, Dropout
from nplm.models.neural.network.features import Features
from nplm.models.neural.network.network import Network, Parts
from nplm.models.neural.network.outputs.base import Output
from nplm.models.neural.network.outputs.estimates import (
    Estimate,
    Importance,
    NoiseContrastive,
    Proposal,
)
from nplm.models.neural.network.parameters import Parameters
from nplm.models.neural.network.solvers import SGD, Adam, Schedule, Solver, State
from nplm.models.neural.tiers import kernel_tier
from nplm.training.checkpoint import fingerprint
from nplm.training.loop import OnProgress
from nplm.training.parallel.threads import Threads, blas_threads, n_threads

__all__ = ["NetworkLM", "view"]


def view(name: str, doc: str) -> property:
    """Declare an attribute that is a view of the parameters, and sets their values."""

    def get(self: Any) -> NDArray[Any] | None:
        parameters = vars(self).get("_parameters")
        if parameters is None:
            raise AttributeError(
                f"{type(self).__name__} has no {name}_ before it is fitted."
            )
        return parameters.named().get(name)

    def set_(self: Any, values: Any) -> None:
        check_is_fitted(self)
        self._parameters.set(name, values)

    return property(get, set_, doc=doc)


class NetworkLM(LanguageModel):
    """Base of the models whose probabilities a network gives.

    A subclass has their hyper-parameters, and says by `_output` which output its
    network ends in.
    """

    n_hidden: int
    embedding_dim: int
    n_distant: int
    loss: str
    n_samples: int
    proposal: str | ArrayLike
    proposal_power: float
    min_effective_samples: float
    solver: str
    learning_rate: str
    epsilon: float
    batch_size: int
    max_iter: int
    early_stopping: bool | str
    validation_fraction: float
    n_jobs: int | None
    parallel: str
    precision: str
    warm_start: bool
    random_state: int | np.random.RandomState | None

    # Outcomes that it predicts where they are not the contexts' words: the places in
    # a short-list, whose model sets it before a fit.
    _n_outputs: int | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_hidden": [Whole(0)],
        "embedding_dim": [Whole(1)],
        "n_distant": [Whole(0)],
        "loss": [StrOptions({"exact", "importance", "nce"})],
        "n_samples": [Whole(1)],
        "proposal": [StrOptions({"unigram"}), "array-like"],
        "proposal_power": [Interval(Real, 0, 1, closed="both")],
        "min_effective_samples": [Interval(Real, 0, None, closed="left")],
        "solver": [StrOptions({"sgd", "adam"})],
        "learning_rate": [StrOptions({"adaptive", "invscaling", "linear", "constant"})],
        "learning_rate_init": [Interval(Real, 0, None, closed="neither")],
        "learning_rate_decay": [Interval(Real, 0, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "beta_1": [Interval(Real, 0, 1, closed="left")],
        "beta_2": [Interval(Real, 0, 1, closed="left")],
        "epsilon": [Interval(Real, 0, None, closed="neither")],
        "batch_size": [Whole(1)],
        "max_iter": [Whole(1)],
        "early_stopping": ["boolean", StrOptions({"auto"})],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Whole(1)],
        "tol": [Interval(Real, 0, None, closed="left")],
        "shuffle": ["boolean"],
        "n_jobs": [Integral, None],
        "parallel": [StrOptions({"rows", "async", "locked"})],
        "precision": [StrOptions({"float32", "float64", "bfloat16"})],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init_subclass__(cls) -> None:
        """Give a subclass methods of its own name, which Python's errors show."""
        super().__init_subclass__()
        for name in ("fit", "partial_fit", "trainer"):
            shared = getattr(NetworkLM, name)
            own = FunctionType(
                shared.__code__, shared.__globals__, name, shared.__defaults__,
                shared.__closure__,
            )  # fmt: skip
            own.__kwdefaults__, own.__doc__ = shared.__kwdefaults__, shared.__doc__
            own.__annotations__, own.__module__ = shared.__annotations__, cls.__module__
            own.__qualname__ = f"{cls.__qualname__}.{name}"
            setattr(cls, name, own)

    # -- fitting --------------------------------------------------------------

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        progress: OnProgress | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Train on windows.

        Parameters
        ----------
        X : array-like of int, shape (n_samples, n_context)
            Contexts, the nearest word in the last column (see `windows`).
        y : array-like of int, shape (n_samples,)
            Next words.
        X_val, y_val : array-like of int, optional
            Held-out windows for early stopping.
        progress : callable, optional
            Called a few times a second as ``progress(done, total, loss)``:
            examples done, examples in all if no epoch is saved, and the mean
            loss of the epoch so far in nats a token.
        checkpoint : path-like, optional
            Folder, of this fit alone, to save its state to: every minute, at the
            end of every epoch, and on an interrupt. A fit killed at any moment
            goes on from the last save when it is called again with the same
            parameters and data (but for `max_iter`, unless the step falls to 0
            by it), and ends with the bits it would have had. When a save fails, as
            on a full disk, a warning says so and the fit goes on.

        Returns
        -------
        self : NetworkLM

        Raises
        ------
        CheckpointError
            When the checkpoint is damaged, or is another fit's, or another fit
            is at work in its folder.
        DivergenceError
            When the loss grows beyond reason; the message says what to lower. As
            after any other error, the model stays as it was before the fit.
        KeyboardInterrupt
            On an interrupt, promptly; the model is then fitted with what was
            trained, and a warning says with which weights.
        """
        door = Door(progress=progress, checkpoint=checkpoint)
        fit(self, X, y, X_val, y_val, door)
        return self

    def _check_fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None,
        X_val: ArrayLike | None,
        y_val: ArrayLike | None,
        door: Door,
    ) -> Windows:
        """All checks of a fit, before anything is changed or computed."""
        self._check_parameters()
        go_on = goes_on(self, door)
        if not go_on:
            self._n_distant = plain(self.n_distant)
        X, y = self._start_fit(X, y, reset=not go_on)
        if go_on:
            self._check_shape()
            self._check_schedule(door)
        elif self._n_distant > self.n_features_in_:
            raise ValueError(
                f"n_distant={self._n_distant} needs contexts of so many words, but X "
                f"has fewer columns (n_features={self.n_features_in_}); make wider "
                f"windows (n_context={self._n_distant}) or lower n_distant."
            )
        if self._loss() != "exact":
            self._proposal().check(self.n_words_)
        held_out = self._check_held_out(X_val, y_val)
        windows = Windows(X, y, held_out)
        return windows if door.partial else with_held_out(self, windows)

    def _check_schedule(self, door: Door) -> None:
        """Raise when training would go on with a step of 0."""
        n_before = epochs_before(self, door)
        if self.learning_rate == "linear" and n_before >= self.max_iter:
            raise ValueError(ENDED.format(self.max_iter))

    def _fingerprint(self) -> dict[str, Any]:
        """Tell what is asked for from all that gives other bits."""
        parameters: dict[str, Any] = vars(self._asked()) | {
            "kernels": kernel_tier(self.precision),
            "n_jobs": n_threads(self.n_jobs),
        }
        if self.learning_rate == "linear":  # else more epochs are the same fit
            parameters["epochs of the schedule"] = plain(self.max_iter)
        if isinstance(self.random_state, np.random.RandomState):
            del parameters["random_state"]
        if not isinstance(self.proposal, str):
            given: dict[str, Any] = {"proposal": np.asarray(self.proposal, np.float64)}
            parameters |= fingerprint({}, given)
        return parameters

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Train one more epoch, on these windows.

        The first call initialises the model (set `n_words` if these windows
        lack some of the vocabulary); the step goes on falling from call to call, and
        with ``learning_rate="linear"`` each call has an epoch of it.

        Parameters
        ----------
        X : array-like of int, shape (n_samples, n_context)
            Contexts, the nearest word in the last column.
        y : array-like of int, shape (n_samples,)
            Next words.

        Returns
        -------
        self : NetworkLM
        """
        fit(self, X, y, None, None, Door(partial=True))
        return self

    def trainer(self, X: ArrayLike, y: ArrayLike) -> Trainer:
        """Train by hand, some examples at a time.

        Parameters
        ----------
        X : array-like of int, shape (n_samples, n_context)
            Contexts, the nearest word in the last column.
        y : array-like of int, shape (n_samples,)
            Next words.

        Returns
        -------
        trainer : Trainer
            It begins where `partial_fit` would: with new weights, or those fitted
            so far. This model changes when its ``keep`` is called. With
            ``learning_rate="linear"`` as many examples as there are windows are an
            epoch of the step's fall, in whatever order they are presented.

        Examples
        --------
        >>> import numpy as np
        >>> from nplm import NeuralLM, windows
        >>> X, y = windows(np.tile([0, 1, 2, 3], 50), 2)
        >>> lm = NeuralLM(n_words=4, n_hidden=8, batch_size=16, random_state=0)
        >>> trainer = lm.trainer(X, y)
        >>> first = trainer.train(range(16))
        >>> for _ in range(50):
        ...     loss = trainer.train(range(16))
        >>> loss < first
        True
        >>> trainer.keep().n_seen_
        816
        """
        return Trainer(self, X, y)

    def _check_parameters(self) -> None:
        self._validate_params()
        check_random_state(self.random_state)
        n_threads(self.n_jobs)
        kernel_tier(self.precision)
        check_network(self)

    def _asked(self) -> SimpleNamespace:
        """Parameters as a fit computes with them: Python's own numbers."""
        parameters = self.get_params(deep=False)
        return SimpleNamespace(**{name: plain(v) for name, v in parameters.items()})

    def _shape(self) -> dict[str, Any]:
        """Give the parameters that make the network that was fitted."""
        return {
            "order": self.order if self.order is None else self.order_,
            "n_words": self.n_words if self.n_words is None else self.n_words_,
            "n_hidden": len(self.d_),
            "embedding_dim": self.C_.shape[1],
            "n_distant": 0 if self.P_ is None else self.P_.shape[1],
            "precision": self._precision(),
        }

    def _check_shape(self) -> None:
        """Raise when the parameters ask for another network than was fitted."""
        for name, value in self._shape().items():
            if getattr(self, name) != value:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} is not that of the network fitted "
                    f"so far ({value!r}), which cannot change while training goes on; "
                    "set it back, or fit a new model (clone this one)."
                )

    # -- what it is made of ---------------------------------------------------

    def _output(self) -> Output:
        """Give the kind of output that the parameters ask for."""
        raise NotImplementedError

    def _loss(self) -> str:
        """Give what training follows."""
        return self.loss

    def _proposal(self) -> Proposal:
        weights = None if isinstance(self.proposal, str) else self.proposal
        return Proposal(weights, plain(self.proposal_power))

    def _estimate(self) -> Estimate | None:
        """Give what training on sampled words estimates, or None."""
        n_samples = plain(self.n_samples)
        loss = self._loss()
        if loss == "importance":
            least = plain(self.min_effective_samples)
            return Importance(n_samples, self._proposal(), least)
        if loss == "nce":
            return NoiseContrastive(n_samples, self._proposal())
        return None

    def _features(self) -> Features:
        """Give the kind of features that the parameters ask for, of words checked."""
        return Features(int(self.embedding_dim))

    def _parts(self) -> Parts:
        """Give the network's parts, as the parameters ask for them."""
        asked, output = self._asked(), self._output()
        if self._n_outputs is not None:
            output = output.of_few(self._n_outputs)
        return Parts.of(
            self.order_ - 1, self._features(), asked.n_hidden, output,
            asked.n_distant,
        )  # fmt: skip

    def _solver(self, begun: float = 0.0, span: float = 1.0) -> Solver:
        """Give the solver; a step that falls in a line does from `begun` on."""
        asked = self._asked()
        inverse, linear = (
            asked.learning_rate == name for name in ("invscaling", "linear")
        )
        decay = asked.learning_rate_decay if inverse else 0.0
        schedule = Schedule(asked.learning_rate_init, decay, asked.alpha)
        if linear:
            schedule = schedule.falling(begun, span)
        if asked.solver == "adam":
            return Adam(schedule, asked.beta_1, asked.beta_2, asked.epsilon)
        return SGD(schedule)

    def _dropout(self) -> Dropout:
        """Give what training leaves out."""
        return NONE

    def _threads(self) -> Threads:
        return Threads(n_threads(self.n_jobs))

    def _n_workers(self) -> int:
        """Give how many teams of threads train the same parameters."""
        return 1 if self.parallel == "rows" else n_threads(self.n_jobs)

    def _trained_before(self, rows: slice) -> tuple[Parameters, State | None]:
        """Copy the fitted parameters, and what the solver kept beside them."""
        parameters = self._parameters.copy(rows)
        parameters.visited = self._parts().visited
        solver = self._solver()
        fresh = solver.initial_state(parameters)
        if not self._solver_state.keys() >= solver.kept(fresh).keys():
            return parameters, None
        for name, array in solver.kept(fresh).items():
            kept = self._solver_state[name]
            array[...] = kept[rows] if name.endswith("_E") else kept
        return parameters, fresh

    def _network(self) -> Network:
        """Hand the fitted parameters to the kernels, to score."""
        return Network(
            self._made_of, self._parameters,
            precision=self._precision(), threads=self._threads(), state={},
        )  # fmt: skip

    def _n_known(self) -> int:
        return len(self._parameters.C)

    def _nearest(self, X: NDArray[np.int32]) -> NDArray[np.int32]:
        """Keep the columns that the network looks at, the fitted one."""
        return X[:, X.shape[1] - max(self.order_ - 1, self._n_distant) :]

    def _precision(self) -> str:
        """`precision`, unless the parameters were fitted in one that is not it."""
        fitted: str = self.C_.dtype.name
        rounds = self._made_of.output.rounds and fitted == "float32"
        mixed = self.precision == "bfloat16" and rounds
        return "bfloat16" if mixed else fitted

    @property
    def n_parameters_(self) -> int:
        """Free parameters, the paper's section 2 count."""
        check_is_fitted(self)
        return self._parameters.size()

    # -- probabilities --------------------------------------------------------

    def _predict_proba(self, X: NDArray[np.int32]) -> NDArray[Any]:
        with blas_threads(1):
            return self._network().predict_proba(X)

    def _predict_log_proba(self, X: NDArray[np.int32]) -> NDArray[Any]:
        with blas_threads(1):
            return self._network().predict_proba(X, logarithm=True)

    @read_at_once
    def log_prob(
        self, X: ArrayLike, y: ArrayLike | None = None, *, normalize: bool = True
    ) -> NDArray[np.float64]:
        """Log-probability of each next word given its context.

        Computed block by block: memory does not grow with
        ``n_samples * n_words_``.

        Parameters
        ----------
        X : array-like of int, shape (n_samples, n_context)
            Contexts, the nearest word in the last column.
        y : array-like of int, shape (n_samples,)
            Next words.
        normalize : bool, default=True
            False takes the scores as they are for logarithms of probabilities, in a
            time that does not grow with the vocabulary. Only of a model trained with
            ``loss="nce"``, whose scores come near to that: they are
            ``normalizers(X)`` above the logarithms of the probabilities.

        Returns
        -------
        log_prob : ndarray of float64, shape (n_samples,)
            Natural logarithms.

        Raises
        ------
        ValueError
            If ``normalize=False`` and the model was trained with another loss, whose
            scores know no normaliser.

        Examples
        --------
        >>> import numpy as np
        >>> from nplm import NeuralLM, windows
        >>> X, y = windows(np.tile([0, 1, 2, 3], 50), 2)
        >>> lm = NeuralLM(n_words=4, n_hidden=8, embedding_dim=2, max_iter=50,
        ...               learning_rate_init=0.05, loss="nce", random_state=0).fit(X, y)
        >>> scores = lm.log_prob(X, y, normalize=False)
        >>> normalized = scores - lm.normalizers(X)
        >>> bool(np.allclose(normalized, lm.log_prob(X, y), atol=1e-5))
        True
        """
        if normalize:
            return super().log_prob(X, y)
        X, y = self._check_Xy(X, y)
        if not self._made_of.output.normalizes:
            raise ValueError(
                "normalize=False takes scores for log-probabilities, and this model "
                "was not trained to make them so: fit it with loss='nce', or let "
                "normalize=True."
            )
        return self._candidate_log_prob(X, y[:, None], normalize=False)[:, 0]

    def _log_prob(
        self, X: NDArray[np.int32], y: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        with blas_threads(1):
            return self._network().log_prob(X, y)

    @read_at_once
    def normalizers(self, X: ArrayLike) -> NDArray[np.float64]:
        """Natural logarithm of what the scores of all words sum to, exponentiated.

        Probabilities are the exponentials of the scores, over this sum. A model
        trained with ``loss="nce"`` has sums near 1: where these logarithms are near
        0, ``log_prob(X, y, normalize=False)`` may leave them out.

        Parameters
        ----------
        X : array-like of int, shape (n_samples, n_context)
            Contexts, the nearest word in the last column.

        Returns
        -------
        normalizers : ndarray of float64, shape (n_samples,)
        """
        X = self._check_X(X)
        with blas_threads(1):
            return self._network().normalizers(X)

    def _candidate_log_prob(
        self, X: NDArray[np.int32], candidates: NDArray[np.int32], normalize: bool
    ) -> NDArray[np.float64]:
        # In full precision they would not agree with a normaliser of bfloat16.
        rounds = normalize and self._precision() == "bfloat16"
        if rounds or not self._made_of.output.logits_are_single:
            return super()._candidate_log_prob(X, candidates, normalize)
        with blas_threads(1):
            return self._network().candidates(X, candidates, normalize=normalize)

    # -- files ----------------------------------------------------------------

    def _made_with(self) -> dict[str, Any]:
        """Give the parameters that make the fitted network, whatever they are now."""
        made = {k: v for k, v in self._shape().items() if k not in UNMADE}
        return made | {"order": self.order_} | self._made_of.output.made_with()

    def _fitted(self) -> dict[str, Any]:
        return super()._fitted() | fitted_network(self)

    def _restore(self, fitted: Fitted) -> None:
        restore_network(self, fitted)

    C_ = view("C", "Features of the words.")
    H_ = view("H", "Hidden weights.")
    d_ = view("d", "Hidden biases.")
    b_ = view("b", "Output biases.")
    P_ = view("P", "Weights of distant words by position, or None.")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_parameters")
