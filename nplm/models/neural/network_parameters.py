"""NetworkParameters: hyper-parameters of all neural models, and recipes of them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import field
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from nplm.base.atomic import replace_state, shallow_copy
from nplm.base.checks import plain
from nplm.base.estimators.bases import Whole, hyperparameters, unless_none
from nplm.models.neural.architecture import Architecture
from nplm.models.neural.fitted_network import FittedNetworkLM
from nplm.models.neural.network.dropout import NO_DROPOUT, Dropout
from nplm.models.neural.options.base import Option, expanded
from nplm.models.neural.options.losses import LOSSES
from nplm.models.neural.options.solvers import SOLVERS
from nplm.models.neural.recipe import Recipe
from nplm.models.neural.tiers import kernel_tier
from nplm.models.training.parallel.threads import n_threads

# Parameters that a recipe has as they are.
AS_GIVEN = (
    "learning_rate_init", "max_iter", "early_stopping", "validation_fraction",
    "n_iter_no_change", "tol", "batch_size", "random_state",
)  # fmt: skip
# Importance sampling is faster with more words than this times n_noise.
MIN_WORDS_PER_NOISE_SAMPLE = 4


@hyperparameters
class NetworkParameters(FittedNetworkLM):
    """Base of `NetworkLM`: the hyper-parameters, and the recipe that they make."""

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

    option_kinds: ClassVar[dict[str, Mapping[str, type[Option]]]] = {
        "solver": SOLVERS,
        "loss": LOSSES,
    }
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
        self : NetworkParameters

        Raises
        ------
        ValueError
            If a parameter is unknown, or belongs to an option that ``loss="auto"``
            chooses.
        """
        # Set on a copy, options too, so that an error leaves the model unchanged.
        changed = shallow_copy(self)
        inner = {k: v for k, v in params.items() if "__" in k}
        super(NetworkParameters, changed).set_params(
            **{k: v for k, v in params.items() if "__" not in k}
        )
        for key in inner:
            name = key.partition("__")[0]
            if name in self.option_kinds:
                setattr(changed, name, copy(changed._inner_option(name, key)))
            elif name in self.get_params(deep=False):
                raise ValueError(f"{key} is not a parameter: {name} is not an option.")
        super(NetworkParameters, changed).set_params(**inner)
        replace_state(self, changed)
        return self

    def _inner_option(self, name: str, key: str) -> object:
        """Return the option whose parameter `key` is to be set."""
        value, kinds = getattr(self, name), self.option_kinds[name]
        if isinstance(value, Option):
            return value
        if isinstance(value, str) and value in kinds:
            return kinds[value]()
        self._option(name)  # raises, unless the string is "auto"
        options = " or ".join(
            f"{name}={kind!r}"
            for kind, option in kinds.items()
            if hasattr(option(), key.partition("__")[2])
        )
        raise ValueError(
            f"{name}={value!r} chooses the {name} itself, so {key} cannot be set with "
            f"it: also set {options}."
        )

    def _validate_params(self) -> None:
        super()._validate_params()
        for name in self.option_kinds:
            self._option(name)

    def _option(self, name: str) -> Any:
        """Return a plain copy of the validated option of a parameter, or "auto"."""
        others = ("auto",) if name == "loss" else ()
        return expanded(
            getattr(self, name), name, self.option_kinds[name], *others,
            model=type(self).__name__,
        )  # fmt: skip

    def _check_parameters(self) -> None:
        """Raise ValueError if parameters are invalid by themselves."""
        self._validate_params()
        check_random_state(self.random_state)
        n_threads(self.n_jobs)
        kernel_tier("float32" if self.precision == "auto" else self.precision)
        for name in ("n_distant", "n_memory"):
            if getattr(self, name) and self.order is None:
                raise ValueError(
                    f"{name}={getattr(self, name)} requires order; set it to the "
                    "number of words of the window plus one."
                )

    def check_settings(self) -> None:
        """Raise ValueError if parameters are invalid or incompatible, before a fit."""
        self._check_parameters()
        n_words = 0 if self.n_words is None else plain(self.n_words)
        order = 2 if self.order is None else plain(self.order)
        self.recipe_for(n_words, order).check()

    def recipe_for(self, n_words: int, order: int) -> Recipe:
        """Turn the parameters into a recipe; arrays by word are not yet checked."""
        architecture = self._architecture(n_words, order)
        return Recipe(
            estimator=type(self).__name__,
            architecture=architecture,
            loss=self._chosen_loss(n_words),
            solver=self._option("solver"),
            alpha=None if self.alpha == "auto" else plain(self.alpha),
            n_epochs=plain(self.max_iter),
            dropout=self._dropout(),
            shuffle=bool(self.shuffle),
            precision=self._chosen_precision(architecture),
            n_jobs=n_threads(self.n_jobs),
            parallel=str(self.parallel),
            **{name: plain(getattr(self, name)) for name in AS_GIVEN},
        )

    def _architecture(self, n_words: int, order: int) -> Architecture:
        """Return the architecture of the parameters."""
        raise NotImplementedError

    def _dropout(self) -> Dropout:
        return NO_DROPOUT

    def _chosen_loss(self, n_words: int) -> Any:
        """Return the loss; "auto" chooses importance sampling if that is faster."""
        loss = self._option("loss")
        if loss != "auto":
            return loss
        return LOSSES["importance" if self._would_sample(n_words) else "exact"]()

    def _would_sample(self, n_words: int) -> bool:
        """Return whether "auto" chooses importance sampling."""
        n_noise = LOSSES["importance"]().n_noise
        return bool(n_words > MIN_WORDS_PER_NOISE_SAMPLE * n_noise)

    def _chosen_precision(self, architecture: Architecture) -> str:
        """Return the precision; "auto" chooses by the kernels in use and by sizes."""
        return str(self.precision)

    def _columns_needed(self) -> int:
        n_memory = unless_none(getattr(self, "n_memory", 0))
        return max(self._columns_of_inputs(), n_memory)

    def _columns_of_inputs(self) -> int:
        return max(super()._columns_needed(), unless_none(self.n_distant))

    def columns_of_texts(self) -> int:
        # The memory of a network needs no columns: it goes on from row to row.
        super().columns_of_texts()
        return self._columns_of_inputs()
