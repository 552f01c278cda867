"""NetworkLM: hyper-parameters and fits of all neural models."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from nplm.base.atomic import replace_state, shallow_copy
from nplm.base.blocks import Texts
from nplm.base.checks import check_ids, plain, size_of_vocabulary
from nplm.base.estimators.bases import Whole, hyperparameters, unless_none
from nplm.base.estimators.language_model import refusing_weights
from nplm.base.progress import OnProgress
from nplm.models.neural.fitted_network import FittedNetworkLM
from nplm.models.neural.fitting.fit import FitInterrupted, Training, fit
from nplm.models.neural.fitting.training_windows import Windows
from nplm.models.neural.network_parameters import (
    check_parameters,
    option_to_change,
    options_of,
    recipe_of,
)
from nplm.models.neural.options.base import Option
from nplm.models.neural.options.outputs import changed
from nplm.models.neural.recipe import Recipe, TrainedNetwork
from nplm.models.neural.trainer import Trainer
from nplm.models.training.parallel.processes import ALONE, Processes

Pair = tuple[ArrayLike, ArrayLike | None]  # contexts, next words
HeldOut = Texts | tuple[ArrayLike | None, ArrayLike | None] | None
# Attributes that the checks of the training windows set.
SIZES = ("order_", "n_words_", "n_features_in_", "feature_names_in_")


@dataclass(frozen=True, eq=False)
class FitRequest:
    """A fit that is to be made: its settings and data, all checked, and its model."""

    model: NetworkLM  # the estimator, which `assign` changes last
    recipe: Recipe
    windows: Windows
    before: TrainedNetwork | None
    sizes: dict[str, object]  # attributes of the model that follow from the windows

    @classmethod
    def of(
        cls,
        model: NetworkLM,
        data: Texts | Pair,
        held_out: HeldOut = None,
        *,
        further: bool = False,
    ) -> Self:
        """Check the parameters of a model and its data, without changing the model.

        `further` asks for one more epoch, which continues the schedule.
        """
        check_parameters(model)
        continues = further or model.warm_start
        before = vars(model).get("_trained") if continues else None
        sized = shallow_copy(model)  # on which the checks of the windows set sizes
        if before is None:
            sized.__dict__.pop("_trained", None)
        windows = sized._windows(data, held_out, reset=before is None)
        recipe = sized._recipe(before)
        windows.check_next_words(recipe.architecture)
        if before is not None:
            before = before if further else before.restarted()
            if model.precision == "auto":
                recipe = replace(recipe, precision=before.precision_for("auto"))
            recipe.check_continues(before)
            recipe.schedule.check_not_ended(before.n_epochs)
        if further:
            recipe = recipe.for_one_epoch()
        else:
            windows = windows.split(recipe)
        sizes = {name: vars(sized)[name] for name in SIZES if name in vars(sized)}
        return cls(model, recipe, windows, before, sizes)

    def training(self, processes: Processes = ALONE) -> Training:
        """Return the network in training, for examples that the caller chooses."""
        return Training(self.recipe, self.windows, self.before, processes)

    def fit(
        self,
        gather: Callable[[TrainedNetwork], TrainedNetwork] | None = None,
        *,
        processes: Processes = ALONE,
        **options: Any,
    ) -> NetworkLM:
        """Train, `gather` the shares of processes, and assign the result, last."""
        if self.before is None and processes.rank == 0:
            self.model._advise(self.recipe.architecture.n_words)
        interrupted = None  # the arguments of an interrupt
        try:
            trained = fit(
                self.recipe, self.windows, self.before, processes=processes,
                verbose=int(self.model.verbose), **options,
            )  # fmt: skip
            trained = trained if gather is None else gather(trained)
        except FitInterrupted as error:
            trained, interrupted = error.trained, error.args
        self.assign(trained)
        if interrupted is not None:
            raise KeyboardInterrupt(*interrupted)
        return self.model

    def assign(self, trained: TrainedNetwork) -> NetworkLM:
        """Assign a trained network to the model in one step, for threads that score."""
        fitted = shallow_copy(self.model)
        for name in SIZES:
            fitted.__dict__.pop(name, None)
        fitted.__dict__.update(self.sizes, _trained=trained)
        replace_state(self.model, fitted)
        return self.model

    def keeper(self) -> Callable[[TrainedNetwork], NetworkLM]:
        """Return the function with which a trainer assigns its network."""
        model, last = self.model, vars(self.model).get("_trained")
        request = replace(self, before=None)  # its arrays may be freed

        def keep(trained: TrainedNetwork) -> NetworkLM:
            nonlocal last
            if vars(model).get("_trained") is not last:
                raise ValueError(
                    "the model was fitted in another way since this trainer was made "
                    "or last called keep; make a new trainer, which continues from "
                    "that fit."
                )
            # Further training must not change the model.
            last = kept = trained.copy()
            return request.assign(kept)

        return keep


@hyperparameters
class NetworkLM(FittedNetworkLM):
    """Base class of the neural models; a fit and `add_words` assign ``_trained``."""

    order: int | None = field(default=None, kw_only=False)
    n_words: int | None = None
    n_hidden: object
    embedding_dim: int
    n_distant: int = 0
    loss: str | Option = "auto"
    solver: str | Option = "adam"
    learning_rate_init: float = 4e-3
    alpha: float | str = "auto"
    batch_size: int = 256
    max_iter: int = 100
    early_stopping: bool | str = "auto"
    validation_fraction: float = 0.1
    n_iter_no_change: int = 1
    tol: float = 1e-3
    shuffle: bool = True
    n_jobs: int | None = None
    parallel: str = "sync"
    precision: str = "auto"
    warm_start: bool = False
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        "n_hidden": [Whole(0)],
        "embedding_dim": [Whole(1)],
        "n_distant": [Whole(0)],
        "learning_rate_init": [Interval(Real, 0, None, closed="neither")],
        "alpha": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "batch_size": [Whole(1)],
        "max_iter": [Whole(1)],
        "early_stopping": ["boolean", StrOptions({"auto"})],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Whole(1)],
        "tol": [Interval(Real, 0, None, closed="left")],
        "shuffle": ["boolean"],
        "n_jobs": [Integral, None],
        "parallel": [StrOptions({"sync", "async", "locked"})],
        "precision": [StrOptions({"auto", "float32", "float64", "bfloat16"})],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def set_params(self, **params: Any) -> Self:
        """Set parameters of this model and of its options.

        Parameters
        ----------
        **params
            Parameters by name; those of an option as ``solver__learning_rate``, even
            if a string selects the option.

        Returns
        -------
        self : NetworkLM

        Raises
        ------
        ValueError
            If a parameter is unknown, or belongs to an option that ``loss="auto"``
            chooses.
        """
        # Set on a copy, options too, so that an error leaves the model unchanged.
        changed = shallow_copy(self)
        inner = {k: v for k, v in params.items() if "__" in k}
        super(NetworkLM, changed).set_params(
            **{k: v for k, v in params.items() if "__" not in k}
        )
        for key in inner:
            option = option_to_change(changed, key)
            if option is not None:
                setattr(changed, key.partition("__")[0], option)
        super(NetworkLM, changed).set_params(**inner)
        replace_state(self, changed)
        return self

    def _validate_params(self) -> None:
        super()._validate_params()
        options_of(self)

    def check_settings(self) -> None:
        """Raise ValueError if parameters are invalid or incompatible, before a fit."""
        check_parameters(self)
        n_words = 0 if self.n_words is None else plain(self.n_words)
        recipe_of(self, n_words, 2 if self.order is None else plain(self.order)).check()

    def _columns_needed(self) -> int:
        return max(self._columns_of_inputs(), unless_none(self.n_memory))

    def _columns_of_inputs(self) -> int:
        return max(super()._columns_needed(), unless_none(self.n_distant))

    def columns_of_texts(self) -> int:
        # The memory of a network needs no columns: it goes on from row to row.
        super().columns_of_texts()
        return self._columns_of_inputs()

    # -- fits -------------------------------------------------------------------

    def _advise(self, n_words: int) -> None:
        """Warn if another parameter than a default suits the vocabulary better."""

    @refusing_weights
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
            Called a few times a second as ``progress(done, total, loss)``: the
            numbers of examples done and in all (without early stopping), and the
            mean loss of the epoch so far in nats per token. Scored windows count as
            a number of examples that takes about as long to train.
        checkpoint : path-like, optional
            Folder for the state of this fit only, saved every 5 to 60 seconds, at the
            end of every epoch, and on an interrupt. A killed fit resumes from the last
            save when it is called again with the same parameters and data, and ends
            with the same bits as without the interruption; only `max_iter` may change,
            unless the schedule is "linear". If a save fails, for example on a full
            disk, the fit warns and continues.

        Returns
        -------
        self : NetworkLM

        Raises
        ------
        CheckpointError
            If the checkpoint is corrupt, belongs to another fit, or is in use by
            another fit.
        DivergenceError
            If training diverges; the message names the parameters to lower. As with
            any other error, the model is not changed. The checkpoint is removed.
        KeyboardInterrupt
            On an interrupt. The model is then fitted with the weights trained so
            far, or the best ones; a warning says which.
        """
        held_out = None if X_val is None and y_val is None else (X_val, y_val)
        request = FitRequest.of(self, (X, y), held_out)
        request.fit(checkpoint=checkpoint, progress=progress)
        return self

    def fit_texts(
        self,
        texts: Texts,
        held_out: Texts | None,
        *,
        further: bool = False,
        **options: Any,
    ) -> Self:
        FitRequest.of(self, texts, held_out, further=further).fit(**options)
        return self

    takes_fractions = True

    @property
    def reads_texts(self) -> bool:
        trained = vars(self).get("_trained")
        fitted = self if trained is None else trained.architecture
        return bool(fitted.n_memory)

    @refusing_weights
    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Train one more epoch on the given windows.

        The first call initialises the model; set `n_words` if its windows lack some of
        the vocabulary. The schedule of the learning rate continues from call to call,
        and each call counts as an epoch of it.

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
        FitRequest.of(self, (X, y), further=True).fit()
        return self

    def trainer(self, X: ArrayLike, y: ArrayLike) -> Trainer:
        """Return a trainer, which trains on some examples at a time.

        Parameters
        ----------
        X : array-like of int, shape (n_samples, n_context)
            Contexts, the nearest word in the last column.
        y : array-like of int, shape (n_samples,)
            Next words.

        Returns
        -------
        trainer : Trainer
            Like `partial_fit`, it starts with new weights, or with those of the last
            fit. Its ``keep`` changes this model. With ``learning_rate="linear"``, as
            many examples as there are windows count as an epoch, in any order.

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
        request = FitRequest.of(self, (X, y), further=True)
        return Trainer(request.training(), request.keeper())

    def _windows(
        self, data: Texts | Pair, held_out: HeldOut, *, reset: bool
    ) -> Windows:
        """Return the checked windows of a fit; `reset` sets what follows from them."""
        if isinstance(data, Texts):
            self._start_texts(data, reset=reset)
            windows = Windows.of_texts(data, self._nearest)
        else:
            windows = Windows(*self._start_fit(*data, reset=reset))
        if held_out is None:
            return windows
        if isinstance(held_out, Texts):
            check_ids(held_out.ids, "ids_val", ndim=1, n_words=self.n_words_)
            return replace(windows, held_out=Windows.of_texts(held_out, self._nearest))
        pair = self._check_held_out(*held_out)
        return replace(windows, held_out=pair and Windows(*pair))

    def _start_texts(self, texts: Texts, *, reset: bool) -> None:
        """Check texts, and set the attributes that `_start_fit` sets."""
        if not reset:
            self._check_fitted()
            check_ids(texts.ids, "ids", ndim=1, n_words=self.n_words_)
            return
        check_ids(texts.ids, "ids", ndim=1, n_words=self.n_words)
        self.order_ = self._checked_order(texts.n_context)
        self.n_words_ = size_of_vocabulary(self.n_words, texts.ids, texts.y)
        self.n_features_in_ = max(texts.n_context, self._columns_needed())
        self.__dict__.pop("feature_names_in_", None)

    def _recipe(self, before: TrainedNetwork | None) -> Recipe:
        """Return the checked recipe of a fit, for the sizes of its windows."""
        n_words, order = self.n_words_, self.order_
        if before is None and self.n_distant > self.n_features_in_:
            raise ValueError(
                f"n_distant={self.n_distant} needs as many columns of X, which has "
                f"{self.n_features_in_}; make wider windows "
                f"(n_context={self.n_distant}) or lower n_distant."
            )
        if before is not None:
            order = order if self.order is None else plain(self.order)
            n_initial = n_words - before.n_added
            if self.n_words is not None and self.n_words != n_initial:
                raise changed(f"n_words={self.n_words!r} is", f" ({n_initial})")
        recipe = recipe_of(self, n_words, order)
        recipe.check()
        return recipe.with_checked_arrays()
