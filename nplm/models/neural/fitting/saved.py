"""Convert a trained network to the items of a file, and back.

What a file must have follows from declarations: the constraints of the parameters of
options, and the shapes of the arrays of parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import (
    InvalidParameterError,
    validate_parameter_constraints,
)

from nplm.base.array_types import State
from nplm.base.exceptions import parameter_error
from nplm.base.fitted import Fitted, invalid_item
from nplm.models.neural.architecture import OUTPUT_PARAMETERS, Architecture
from nplm.models.neural.network.hidden import checked_sizes
from nplm.models.neural.network.parameters import Parameters
from nplm.models.neural.network.parts import check_sums
from nplm.models.neural.network.solver_updates import Adam, Schedule
from nplm.models.neural.network.word_features import checked_parts
from nplm.models.neural.options.base import Option
from nplm.models.neural.options.features import Features
from nplm.models.neural.options.losses import LOSSES, NCE, Loss
from nplm.models.neural.options.outputs import Output, Tree
from nplm.models.neural.recipe import HISTORY_COLUMNS, TrainedNetwork

# The state of Adam does not depend on its settings.
ANY_ADAM = Adam(Schedule(0.0, 0.0, 0.0), 0.0, 0.0, 1.0)
# Fields of a trained network that a file has as they are, and their checks.
FIGURES: dict[str, tuple[Any, ...]] = {
    "history": (Fitted.history, *HISTORY_COLUMNS),
    "val_loss": (Fitted.take, int, float),  # NaN without held-out windows
    "n_seen": (Fitted.whole,),
    "n_updates": (Fitted.number, 0),
    "n_epochs": (Fitted.number, 0),
    "n_added": (Fitted.whole,),
    "precision": (Fitted.take, str),
}
ORIGINS_OF_TREES = ("given", "huffman", "contexts")

Kind = TypeVar("Kind", bound=Option)


def lightened(
    trained: TrainedNetwork, *, optimizer: bool, dtype: str | None
) -> TrainedNetwork:
    """Return a network whose items take less room; raise ValueError if they cannot."""
    if not optimizer:
        trained = replace(trained, solver_state={})
    if dtype is None:
        return trained
    parameters = trained.parameters
    if parameters.dtype != np.float32:
        raise parameter_error(
            "{dtype} is for networks of float32, and this one has {precision}: leave "
            "it out.", dtype=dtype, precision=parameters.dtype.name,
        )  # fmt: skip
    most = float(np.finfo(dtype).max)
    for name, array in parameters.trained().items():
        if array.size and np.abs(array).max() > most:
            raise parameter_error(
                "{dtype} has numbers up to {0:.0f}, and the weights {1} have {2:.4g}: "
                "leave it out.", most, name, np.abs(array).max(), dtype=dtype,
            )  # fmt: skip
    halves = {name: array.astype(dtype) for name, array in parameters.trained().items()}
    return replace(trained, parameters=parameters.with_arrays(halves))


def arrays_of(trained: TrainedNetwork) -> State:
    """Return the parameters, without padding."""
    parameters = trained.parameters
    return {
        k: parameters.without_padding(k, a) for k, a in parameters.trained().items()
    }


def moments_of(trained: TrainedNetwork) -> State:
    """Return the state of the solver, without padding."""
    return {
        name: trained.parameters.without_padding(name.split("_", 1)[1], array)
        for name, array in trained.solver_state.items()
    }


def from_items(
    items: Mapping[str, Any], outputs: Mapping[str, type[Output]]
) -> TrainedNetwork:
    """Return the network of a file, whose output is one of `outputs`."""
    arrays, is_rounded = _in_full(items["arrays"])
    if "F" in arrays:
        raise ValueError(
            "its hidden units have the quasi-recurrent memory of a development version "
            "after nplm 0.1, which alone reads it, and which LSTM cells have replaced: "
            "fit the network again"
        )
    architecture = _architecture(items["architecture"], outputs, arrays)
    n_words, n_added = architecture.n_words, items["n_added"]
    if n_added >= n_words:
        raise invalid_item("n_added", n_added)
    # A proposal is of the words that training knew.
    loss = _loss(items["loss"], range(n_words - n_added, n_words + 1))
    architecture.check(loss)
    parts = architecture.parts(loss)
    dtype = getattr(arrays.get("d"), "dtype", None)
    if dtype not in (np.float32, np.float64):
        raise ValueError("arrays.d is not an array of float32 or float64")
    # All shapes are checked before memory is allocated for them.
    untrusted, shapes = Fitted(arrays, "arrays."), parts.shapes(n_words)
    checked = {name: untrusted.array(name, dtype, shapes[name]) for name in shapes}
    untrusted.done()
    parameters = parts.parameters(parts.zeros(n_words, dtype))
    for name, array in parameters.trained().items():
        parameters.without_padding(name, array)[...] = checked[name]
    if is_rounded:
        parts.features.settle(parameters)
    check_sums(parameters, parts)
    # Files of earlier versions have no precision.
    precision = items["precision"] or np.dtype(dtype).name
    if precision != np.dtype(dtype).name and (precision, dtype) != (
        "bfloat16",
        np.float32,
    ):
        raise invalid_item("precision", precision)
    return TrainedNetwork(
        architecture=architecture,
        parameters=parameters,
        solver_state=_moments(parameters, items["moments"]),
        loss=loss,
        # A network of a file without a generator has NumPy's global one.
        generator=items["random_state"] or check_random_state(None),
        **{name: items[name] for name in FIGURES} | {"precision": precision},
    )


# -- the architecture and the loss ---------------------------------------------------


def _architecture(
    items: Fitted, outputs: Mapping[str, type[Output]], arrays: dict[str, object]
) -> Architecture:
    """Return an architecture, after checking its number of words against the arrays."""
    n_words = items.whole("n_words", 1)
    rows = arrays.get("C", arrays.get("E"))
    if not isinstance(rows, np.ndarray) or n_words != rows.shape[0]:
        raise items.invalid_item("n_words", n_words)
    features = _option(Features, items, ("n_senses", "trained", "word_features"))
    if features.word_features is not None:
        if not isinstance(features.word_features, csr_array):
            raise items.invalid_item("word_features", features.word_features)
        features.word_features = checked_parts(features.word_features, n_words)
    return Architecture(
        n_words=n_words,
        order=items.whole("order", 1),
        n_hidden=_hidden_sizes(items),
        embedding_dim=items.whole("embedding_dim", 1),
        n_distant=items.whole("n_distant"),
        # Files of nplm 0.1 have none.
        n_memory=items.whole("n_memory") if "n_memory" in items else 0,
        features=features,
        output=_output(items, outputs, n_words),
    )


def _option(kind: type[Kind], items: Fitted, names: Iterable[str]) -> Kind:
    """Return an option with parameters of a file, in the range of their constraints."""
    params = {}
    for name in names:
        constraints = {name: kind._parameter_constraints[name]}
        value = params[name] = items.take(name)
        try:
            validate_parameter_constraints(constraints, params, kind.__name__)
            is_valid = isinstance(value, bool) == ("boolean" in constraints[name])
        except InvalidParameterError:
            is_valid = False
        if not is_valid:
            raise items.invalid_item(name, value)
    return kind(**params)


def _output(items: Fitted, outputs: Mapping[str, type[Output]], n_words: int) -> Output:
    """Return the output, after checking its classes or tree."""
    name = items.take("output", str)
    if name not in outputs:
        raise items.invalid_item("output", name)
    tree_from = items.take("tree_from", str)
    if tree_from not in ORIGINS_OF_TREES:
        raise items.invalid_item("tree_from", tree_from)
    params = outputs[name]._get_param_names()
    if "n_branches" not in items and "n_branches" in params:
        raise ValueError(
            "nplm 0.1 made its tree, with a row of weights for each inner node, and "
            "not for each branch as now: fit the network again"
        )
    for other in OUTPUT_PARAMETERS:
        # Files of nplm 0.1 have no n_branches.
        is_old = other == "n_branches" and other not in items
        if other not in (*params, "tree_from") and not is_old:
            value, default = items.take(other), getattr(Output, other)
            if type(value) is not type(default) or value != default:
                raise items.invalid_item(other, value)
    output = _option(outputs[name], items, params)
    if name in ("classes", "tree") and not isinstance(
        getattr(output, name), np.ndarray
    ):
        raise items.invalid_item(name, getattr(output, name))
    output = output.checked(n_words)
    if isinstance(output, Tree):
        output.tree_from = tree_from
    return output


def _hidden_sizes(items: Fitted) -> int | tuple[int, ...]:
    """Return `n_hidden` in the form that a fit gives it."""
    n_hidden: int | tuple[int, ...] = items.take("n_hidden", int, tuple)
    try:
        is_valid = checked_sizes(n_hidden) == n_hidden
    except ValueError:
        is_valid = False
    if not is_valid:
        raise items.invalid_item("n_hidden", n_hidden)
    return n_hidden


def loss_items(loss: Loss) -> dict[str, object]:
    """Return the name and the settings of a loss."""
    settings = loss.settings()
    if settings.get("proposal") is not None:
        settings["proposal"] = np.asarray(settings["proposal"], np.float64)
    return {"loss": loss.name} | settings


def _loss(items: Fitted, sizes: range) -> Loss:
    name = items.take("loss", str)
    if name not in LOSSES:
        raise items.invalid_item("loss", name)
    kind = LOSSES[name]
    names = set(kind._get_param_names())
    loss = _option(kind, items, sorted(names - {"proposal"}))
    if not isinstance(loss, NCE):
        return loss
    weights = items.take("proposal", np.ndarray, type(None))
    if weights is not None:
        if weights.ndim != 1 or len(weights) not in sizes:
            raise items.invalid_item("proposal", weights)
        loss.proposal = weights
        loss.estimate().check(len(weights))
    return loss.plain_copy()


# -- the arrays ----------------------------------------------------------------------


def _in_full(arrays: dict[str, object]) -> tuple[dict[str, object], bool]:
    """Return arrays of float16 as float32, and whether any was float16."""
    half = {
        name: array.astype(np.float32)
        for name, array in arrays.items()
        if isinstance(array, np.ndarray) and array.dtype == np.float16
    }
    return arrays | half, bool(half)


def _moments(parameters: Parameters, items: Fitted) -> State:
    """Return the moments of Adam, or an empty state."""
    if "first_H" not in items:
        return {}
    state = ANY_ADAM.kept(ANY_ADAM.initial_state(parameters))
    for name, array in state.items():
        view = parameters.without_padding(name.partition("_")[2], array)
        view[...] = items.array(name, view.dtype, view.shape)
        is_signed = name.startswith("first_")
        if not np.isfinite(view).all() or not (is_signed or (view >= 0).all()):
            raise ValueError("moments has NaN, infinite or negative values")
    return state
