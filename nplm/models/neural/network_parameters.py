"""Describe a fit: turn the hyper-parameters of a network into a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import InvalidParameterError

from nplm.base.checks import plain
from nplm.base.estimators.language_model import LanguageModel
from nplm.base.exceptions import ParameterMessage
from nplm.models.neural.architecture import Architecture
from nplm.models.neural.network.dropout import Dropout
from nplm.models.neural.network.hidden import checked_sizes
from nplm.models.neural.options.base import Option
from nplm.models.neural.options.features import Features
from nplm.models.neural.options.losses import LOSSES
from nplm.models.neural.options.outputs import OUTPUTS, Energy, Output, Softmax
from nplm.models.neural.options.solvers import SOLVERS
from nplm.models.neural.recipe import Recipe
from nplm.models.neural.tiers import kernel_tier, multiplies_bfloat16
from nplm.models.training.parallel.threads import n_threads

# Options of each parameter that takes one, by the strings that select them.
OPTIONS: dict[str, Mapping[str, type[Option]]] = {
    "solver": SOLVERS, "loss": LOSSES, "output": OUTPUTS,
    "features": {"learned": Features},
}  # fmt: skip
# Parameters that a recipe has as they are.
AS_GIVEN = (
    "learning_rate_init", "max_iter", "early_stopping", "validation_fraction",
    "n_iter_no_change", "tol", "batch_size", "random_state",
)  # fmt: skip
# Importance sampling is faster with more words than this times n_noise.
MIN_WORDS_PER_NOISE_SAMPLE = 4
# precision="auto" rounds from as many examples of an update and weights of an output
# unit on.
ROUNDED_BATCH, ROUNDED_WIDTH = 16, 64


def options_of(lm: LanguageModel) -> dict[str, Any]:
    """Return plain copies of the checked options, by parameter; "auto" for a loss."""
    # Not of `get_params`, which reads a signature at each call.
    return {
        name: _option_of(lm, name, getattr(lm, name))
        for name in OPTIONS
        if hasattr(lm, name)
    }


def _option_of(lm: LanguageModel, name: str, value: object) -> Option | str:
    kinds, others = OPTIONS[name], ["auto"] if name == "loss" else []
    if isinstance(value, str):
        value = str(value)  # may be a NumPy string
        if value in others:
            return value
        if value in kinds:
            return kinds[value]().plain_copy()
    if not isinstance(value, Option) or not isinstance(value, tuple(kinds.values())):
        names = ", ".join(map(repr, [*others, *kinds]))
        options = ", ".join(f"{kind.__name__}(...)" for kind in kinds.values())
        message = ParameterMessage(
            f"{{{name}:The {name!r} parameter of {type(lm).__name__}}} must be one of "
            "{0}, {1}. Got {2!r} instead.", names, options, value,
            advice="", **{name: value},
        )  # fmt: skip
        raise InvalidParameterError(message)
    value._validate_params()
    return value.plain_copy()


def option_to_change(lm: LanguageModel, key: str) -> Option | None:
    """Return a copy of the option whose parameter `key` is to be set, if there is one.

    Raises ValueError if "auto" is to choose it.
    """
    name, _, inner = key.partition("__")
    params = lm.get_params(deep=False)
    if name not in params:
        return None
    if name not in OPTIONS:
        raise ValueError(f"{key} is not a parameter: {name} is not an option.")
    value, kinds = params[name], OPTIONS[name]
    if isinstance(value, Option):
        return copy(value)
    if isinstance(value, str) and value in kinds:
        return kinds[value]()
    options_of(lm)  # raises, unless the string is "auto"
    options = " or ".join(
        f"{name}={kind!r}" for kind, option in kinds.items() if hasattr(option(), inner)
    )
    raise ValueError(
        f"{name}={value!r} chooses the {name} itself, so {key} cannot be set with "
        f"it: also set {options}."
    )


def check_parameters(lm: LanguageModel) -> None:
    """Raise ValueError if parameters are invalid by themselves."""
    lm._validate_params()
    check_random_state(lm.random_state)
    n_threads(lm.n_jobs)
    kernel_tier("float32" if lm.precision == "auto" else lm.precision)
    for name in ("n_distant", "n_memory"):
        if getattr(lm, name) and lm.order is None:
            raise ValueError(
                f"{name}={getattr(lm, name)} requires order; set it to the number of "
                "words of the window plus one."
            )


def recipe_of(lm: LanguageModel, n_words: int, order: int) -> Recipe:
    """Turn the parameters into a recipe; arrays by word are not yet checked."""
    options = options_of(lm)
    output = options.get("output")
    if output is None:  # of an `EnergyLM`
        output = Energy(target_weights=plain(lm.target_weights))
    architecture = Architecture(
        n_words=n_words,
        order=order,
        n_hidden=checked_sizes(lm.n_hidden),
        embedding_dim=plain(lm.embedding_dim),
        n_distant=plain(lm.n_distant),
        n_memory=plain(lm.n_memory),
        features=options.get("features", Features()),
        output=output,
    )
    loss = options["loss"]
    if loss == "auto":
        samples = _would_sample(output, n_words, lm.parallel)
        loss = LOSSES["importance" if samples else "exact"]()
    return Recipe(
        estimator=type(lm).__name__,
        architecture=architecture,
        loss=loss,
        solver=options["solver"],
        alpha=None if lm.alpha == "auto" else plain(lm.alpha),
        n_epochs=plain(lm.max_iter),
        dropout=Dropout.from_parameter(getattr(lm, "dropout", 0.0)),
        shuffle=bool(lm.shuffle),
        precision=_precision(str(lm.precision), architecture, lm.batch_size),
        n_jobs=n_threads(lm.n_jobs),
        parallel=str(lm.parallel),
        **{name: plain(getattr(lm, name)) for name in AS_GIVEN},
    )


def _would_sample(output: Output, n_words: int, parallel: str) -> bool:
    """Return whether the loss "auto" is importance sampling."""
    # No proposal is restricted to the outcomes of a short-list.
    all_words = output.has_samples and output.n_outputs is None
    is_required = output.tied and parallel != "sync"
    n_noise = LOSSES["importance"]().n_noise
    return all_words and (is_required or n_words > MIN_WORDS_PER_NOISE_SAMPLE * n_noise)


def _precision(precision: str, architecture: Architecture, batch_size: int) -> str:
    """Return the precision; "auto" chooses by the kernels in use and by sizes."""
    if precision != "auto":
        return precision
    width, output = architecture.embedding_dim, architecture.output
    if not output.tied:
        h = np.ravel(architecture.n_hidden)[0]
        width = h + output.direct * (architecture.order - 1) * width
    rounds = isinstance(output, Softmax) and multiplies_bfloat16()
    is_faster = batch_size >= ROUNDED_BATCH and width >= ROUNDED_WIDTH
    return "bfloat16" if rounds and is_faster else "float32"
