"""NeuralLM: the model of section 2, its parameters and how they start."""

from __future__ import annotations

import os
from numbers import Integral, Real
from types import SimpleNamespace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from nplm._base import LanguageModel, plain
from nplm.neural.epochs import Windows
from nplm.neural.fit import Door, fit, goes_on
from nplm.neural.network import Network, Parts
from nplm.neural.parameters import Parameters
from nplm.neural.solvers import SGD, Adam, Schedule, Solver, State
from nplm.neural.tiers import kernel_tier
from nplm.neural.trainer import Trainer
from nplm.parallel.threads import Threads, blas_threads, n_threads
from nplm.training.loop import OnProgress

__all__ = ["NeuralLM"]


class NeuralLM(LanguageModel):
    """Feed-forward neural language model of Bengio et al. (2003), section 2.

    The unnormalised log-probability of every word is equation (1)::

        y = b + W x + U tanh(d + H x)

    where x is the concatenation of the learned feature vectors ``C[w]`` of the
    context's words, nearest first; a softmax turns y into probabilities.
    Trained by stochastic gradient ascent on the log-likelihood. The defaults
    are MLP9 of the paper's Table 1 and its training recipe, but for the step at
    the start, which is four times the paper's 1e-3.

    Parameters
    ----------
    order : int or None, default=None
        The n of the model: it sees the nearest ``order - 1`` words. None uses
        every column of X.
    n_words : int or None, default=None
        Size of the vocabulary; None takes the largest id of the training
        windows plus one, and then refuses ids beyond it.
    n_hidden : int, default=100
        Hidden units, h. 0 needs ``direct=True``.
    embedding_dim : int, default=30
        Features of a word, m.
    direct : bool, default=False
        Direct connections W from the features to the output units.
    n_distant : int, default=0
        Words, nearest first, whose features are averaged into more inputs: each
        average has learned weights by position (``P_``), which begin with half-lives
        of 2, 8, 32, ... words. X then needs so many columns, and `order` must be set.
        0 is the paper's network.
    solver : {"sgd", "adam"}, default="sgd"
        How parameters follow their gradients. "sgd" is the paper's stochastic gradient
        ascent. "adam" is that of scikit-learn's networks (Kingma and Ba, 2015), with
        weight decay apart from the gradient (Loshchilov and Hutter, 2019): at a large
        `batch_size`, such as 512, try ``learning_rate_init=1e-3``.
    learning_rate_init : float, default=4e-3
        Step at the start: for "sgd" that of one example's gradient. The paper's 1e-3
        comes to about the same perplexity in several times the epochs.
    learning_rate_decay : float, default=1e-8
        r of the paper's schedule: after t examples the step is
        ``learning_rate_init / (1 + r t)``.
    alpha : float, default=1e-4
        Weight decay on C, H, U and W, not on the biases d and b nor on P: each example
        ("adam": each update) takes ``step * alpha`` of every weight away.
    beta_1, beta_2 : float, default=0.9, 0.999
        Decay of the means of gradients and of their squares; only for "adam".
    epsilon : float, default=1e-8
        Added to the root of the mean square; only for "adam".
    batch_size : int, default=32
        Examples whose gradients make one update: summed, so that the step stays per
        example ("adam": their mean). 1 is the paper's algorithm (section 3.2),
        example by example.
    max_iter : int, default=12
        Epochs, passes over the training windows.
    early_stopping : {"auto"} or bool, default="auto"
        Stop when the held-out loss stops improving, and keep the weights of the
        best epoch. "auto" does when `X_val` is given to `fit`; True without it
        holds out the last `validation_fraction` of the windows; False trains
        `max_iter` epochs and keeps the last weights.
    validation_fraction : float, default=0.1
        See `early_stopping`.
    n_iter_no_change : int, default=3
        Epochs without improvement before training stops early.
    tol : float, default=1e-4
        Improvement of the held-out loss, in nats a token, that counts.
    shuffle : bool, default=True
        Present the examples of each epoch in a new random order.
    n_jobs : int or None, default=None
        Threads of one fit or score; None is 1, -1 all cores.
    parallel : {"rows", "async", "locked"}, default="rows"
        What the threads of a fit share (section 3 of the paper). "rows": the
        output units of each example; nothing races, and the larger the
        `batch_size` the better. "async": the examples, each thread updating the
        parameters at any time without a lock; faster at a small `batch_size`,
        but no two fits are the same, for now and then part of an update is
        lost. "locked": the same with a lock around updates, the paper's first
        attempt, slow.
    precision : {"float32", "float64", "bfloat16"}, default="float32"
        Type of the parameters and of the arithmetic. "bfloat16" rounds what the
        output units multiply, in training and in scoring, to 8 bits of precision;
        parameters and sums stay in float32. It is twice as fast or more where
        the processor multiplies bfloat16 (AMX, AVX512_BF16) and refused where
        it does not. A fitted model may change between it and "float32".
    warm_start : bool, default=False
        Let `fit` go on from the weights of the previous fit.
    random_state : int, RandomState instance or None, default=None
        Seeds the initial weights and the order of examples. The same seed,
        `n_jobs` and machine give the same bits, unless several threads train
        with ``parallel="async"`` or "locked". What a fitted model says of a window
        has the same bits for any `n_jobs`, alone or among other windows.
    verbose : int, default=0
        1 prints a line an epoch.

    Attributes
    ----------
    C_ : ndarray, shape (n_words_, embedding_dim)
        Feature vectors of the words.
    H_ : ndarray, shape (n_hidden, (order_ - 1) * embedding_dim)
        Hidden weights; the first `embedding_dim` columns meet the nearest word. With
        `n_distant`, H_ and W_ have `embedding_dim` columns more for each average.
    d_ : ndarray, shape (n_hidden,)
        Hidden biases.
    U_ : ndarray, shape (n_words_, n_hidden)
        Hidden-to-output weights.
    W_ : ndarray, shape (n_words_, (order_ - 1) * embedding_dim), or None
        Direct connections; None without them.
    b_ : ndarray, shape (n_words_,)
        Output biases.
    P_ : ndarray, shape (n_averages, n_distant), or None
        Weights of distant words by position, the nearest first; None without them.
    n_parameters_ : int
        Free parameters: ``|V|(1 + nm + h) + h(1 + (n-1)m)`` with direct
        connections and without `n_distant`.
    n_iter_ : int
        Epochs run since the weights were drawn: a `partial_fit` or a fit with
        `warm_start` adds its own. Early stopping may keep an earlier one's weights.
    n_seen_ : int
        Examples seen, the t of the schedule.
    history_ : dict of list
        ``n_iter_`` entries, one an epoch: ``loss`` (mean negative log-likelihood
        of each training example just before its update), ``val_loss`` (nan without
        held-out data), both in nats a token, and ``seconds``.
    order_, n_words_, classes_, n_features_in_
        The order in use, the vocabulary size, the word ids, the columns of X.

    See Also
    --------
    InterpolatedTrigram, KneserNeyLM : The n-gram models of the paper.
    MixtureLM : Mixes their probabilities with this model's.

    References
    ----------
    Bengio, Ducharme, Vincent and Jauvin (2003), A Neural Probabilistic Language
    Model, JMLR 3:1137-1155: sections 2 and 3.2, equation (1).

    Examples
    --------
    >>> import numpy as np
    >>> from nplm import NeuralLM, windows
    >>> X, y = windows(np.tile([0, 1, 2, 3], 50), 2)
    >>> lm = NeuralLM(n_words=4, n_hidden=8, embedding_dim=2, max_iter=50,
    ...               learning_rate_init=0.1, random_state=0).fit(X, y)
    >>> lm.predict([[0, 1], [2, 3]]).tolist()
    [2, 0]
    >>> bool(lm.perplexity(X, y) < 1.5)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_hidden": [Interval(Integral, 0, None, closed="left")],
        "embedding_dim": [Interval(Integral, 1, None, closed="left")],
        "direct": ["boolean"],
        "n_distant": [Interval(Integral, 0, None, closed="left")],
        "solver": [StrOptions({"sgd", "adam"})],
        "learning_rate_init": [Interval(Real, 0, None, closed="neither")],
        "learning_rate_decay": [Interval(Real, 0, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "beta_1": [Interval(Real, 0, 1, closed="left")],
        "beta_2": [Interval(Real, 0, 1, closed="left")],
        "epsilon": [Interval(Real, 0, None, closed="neither")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "early_stopping": ["boolean", StrOptions({"auto"})],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "shuffle": ["boolean"],
        "n_jobs": [Integral, None],
        "parallel": [StrOptions({"rows", "async", "locked"})],
        "precision": [StrOptions({"float32", "float64", "bfloat16"})],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        order: int | None = None,
        *,
        n_words: int | None = None,
        n_hidden: int = 100,
        embedding_dim: int = 30,
        direct: bool = False,
        n_distant: int = 0,
        solver: str = "sgd",
        learning_rate_init: float = 4e-3,
        learning_rate_decay: float = 1e-8,
        alpha: float = 1e-4,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        batch_size: int = 32,
        max_iter: int = 12,
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 3,
        tol: float = 1e-4,
        shuffle: bool = True,
        n_jobs: int | None = None,
        parallel: str = "rows",
        precision: str = "float32",
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.order = order
        self.n_words = n_words
        self.n_hidden = n_hidden
        self.embedding_dim = embedding_dim
        self.direct = direct
        self.n_distant = n_distant
        self.solver = solver
        self.learning_rate_init = learning_rate_init
        self.learning_rate_decay = learning_rate_decay
        self.alpha = alpha
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.shuffle = shuffle
        self.n_jobs = n_jobs
        self.parallel = parallel
        self.precision = precision
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    # -- fitting --------------------------------------------------------------

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
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
            parameters and data (but for `max_iter`), and ends with the bits it
            would have had. When a save fails, as on a full disk, a warning says
            so and the fit goes on.

        Returns
        -------
        self : NeuralLM

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
        y: ArrayLike,
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
        elif self._n_distant > self.n_features_in_:
            raise ValueError(
                f"n_distant={self._n_distant} needs contexts of so many words, but X "
                f"has fewer columns (n_features={self.n_features_in_}); make wider "
                f"windows (n_context={self._n_distant}) or lower n_distant."
            )
        held_out = self._check_held_out(X_val, y_val)
        if held_out is None and self.early_stopping is True and not door.partial:
            n_val = max(1, round(plain(self.validation_fraction) * len(y)))
            if n_val >= len(y):
                raise ValueError(
                    f"early_stopping=True holds out {n_val} of {len(y)} windows and "
                    "leaves none to train on; give more windows, or X_val and y_val."
                )
            held_out = X[-n_val:], y[-n_val:]
            X, y = X[:-n_val], y[:-n_val]
        return Windows(X, y, held_out)

    def _fingerprint(self) -> dict[str, Any]:
        """Tell what is asked for from all that gives other bits."""
        parameters: dict[str, Any] = vars(self._asked()) | {
            "kernels": kernel_tier(self.precision),
            "n_jobs": n_threads(self.n_jobs),
        }
        if isinstance(self.random_state, np.random.RandomState):
            del parameters["random_state"]
        return parameters

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Train one more epoch, on these windows.

        The first call initialises the model (set `n_words` if these windows
        lack some of the vocabulary); the step goes on falling from call to call.

        Parameters
        ----------
        X : array-like of int, shape (n_samples, n_context)
            Contexts, the nearest word in the last column.
        y : array-like of int, shape (n_samples,)
            Next words.

        Returns
        -------
        self : NeuralLM
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
            so far. This model changes when its ``keep`` is called.

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
        if self.n_hidden == 0 and not self.direct:
            raise ValueError(
                "n_hidden=0 without direct connections leaves no path from the "
                "context to the output units; set direct=True or n_hidden above 0."
            )
        if self.n_distant and self.order is None:
            raise ValueError(
                f"n_distant={self.n_distant} averages the features of so many words "
                "beside those of a window: set order to the window's words plus one."
            )
        least = np.finfo("float64" if self.precision == "float64" else "float32").tiny
        if self.epsilon < least:
            raise ValueError(
                f"epsilon={self.epsilon!r} is 0 in {self.precision}, and Adam would "
                f"divide by it: set it to {least:.0e} at least, as 1e-8."
            )
        self._solver().check(plain(self.batch_size))

    def _asked(self) -> SimpleNamespace:
        """Parameters as a fit computes with them: Python's own numbers."""
        parameters = self.get_params(deep=False)
        return SimpleNamespace(**{name: plain(v) for name, v in parameters.items()})

    def _check_shape(self) -> None:
        """Raise when the parameters ask for another network than was fitted."""
        fitted = {
            "order": self.order if self.order is None else self.order_,
            "n_words": self.n_words if self.n_words is None else self.n_words_,
            "n_hidden": len(self.d_),
            "embedding_dim": self.C_.shape[1],
            "direct": self.W_ is not None,
            "n_distant": 0 if self.P_ is None else self.P_.shape[1],
            "precision": self._precision(),
        }
        for name, value in fitted.items():
            if getattr(self, name) != value:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} is not that of the network fitted "
                    f"so far ({value!r}), which cannot change while training goes on; "
                    "set it back, or fit a new model (clone this one)."
                )

    # -- what it is made of ---------------------------------------------------

    def _parts(self) -> Parts:
        """Give the network's parts, as the parameters ask for them."""
        asked = self._asked()
        return Parts.of(
            self.order_ - 1, asked.embedding_dim, asked.n_hidden, asked.direct,
            asked.n_distant,
        )  # fmt: skip

    def _solver(self) -> Solver:
        asked = self._asked()
        schedule = Schedule(
            asked.learning_rate_init, asked.learning_rate_decay, asked.alpha
        )
        if asked.solver == "adam":
            return Adam(schedule, asked.beta_1, asked.beta_2, asked.epsilon)
        return SGD(schedule)

    def _threads(self) -> Threads:
        return Threads(n_threads(self.n_jobs))

    def _trained_before(self, rows: slice) -> tuple[Parameters, State | None]:
        """Copy the fitted parameters, and what the solver kept beside them."""
        parameters = self._parameters.copy(rows)
        fresh = self._solver().initial_state(parameters)
        if not self._solver_state.keys() >= fresh.keys():
            return parameters, None
        for name, array in fresh.items():
            kept = self._solver_state[name]
            array[...] = kept[rows] if name.endswith("_E") else kept
        return parameters, fresh

    def _network(self) -> Network:
        """Hand the fitted parameters to the kernels, to score."""
        inputs = Parts.of(
            self.order_ - 1, self.C_.shape[1], len(self.d_), self.W_ is not None,
            0 if self.P_ is None else self.P_.shape[1],
        )  # fmt: skip
        return Network(
            inputs, self._parameters,
            precision=self._precision(), threads=self._threads(),
        )  # fmt: skip

    def _nearest(self, X: NDArray[np.int32]) -> NDArray[np.int32]:
        """Keep the columns that the network looks at, the fitted one."""
        return X[:, X.shape[1] - max(self.order_ - 1, self._n_distant) :]

    def _precision(self) -> str:
        """`precision`, unless the parameters were fitted in one that is not it."""
        fitted: str = self.C_.dtype.name
        mixed = self.precision == "bfloat16" and fitted == "float32"
        return self.precision if mixed else fitted

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

    def _log_prob(
        self, X: NDArray[np.int32], y: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        with blas_threads(1):
            return self._network().log_prob(X, y)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_parameters")


def _view(name: str, doc: str) -> property:
    """Declare an attribute that is a view of the parameters, and sets their values."""

    def get(self: NeuralLM) -> NDArray[Any] | None:
        try:
            parameters = self.__dict__["_parameters"]
        except KeyError:
            raise AttributeError(
                f"{type(self).__name__} has no {name}_ before it is fitted."
            ) from None
        return getattr(parameters, name)

    def set_(self: NeuralLM, values: Any) -> None:
        check_is_fitted(self)
        self._parameters.set(name, values)

    return property(get, set_, doc=doc)


for _name, _doc in {
    "C": "Features of the words.",
    "H": "Hidden weights.",
    "d": "Hidden biases.",
    "U": "Hidden-to-output weights.",
    "W": "Direct connections, or None.",
    "b": "Output biases.",
    "P": "Weights of distant words by position, or None.",
}.items():
    setattr(NeuralLM, f"{_name}_", _view(_name, _doc))
