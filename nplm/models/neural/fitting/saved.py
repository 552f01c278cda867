"""Convert a trained network to the items of a file, and back."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nplm.base.checks import check_classes
from nplm.base.fitted import Fitted
from nplm.models.neural.network.architecture import Architecture
from nplm.models.neural.network.features import checked_parts
from nplm.models.neural.network.hidden import Block, checked_sizes
from nplm.models.neural.network.inputs import MixedSenses
from nplm.models.neural.network.network import Parts
from nplm.models.neural.network.outputs.estimates import (
    Estimate,
    Importance,
    NoiseContrastive,
    Proposal,
)
from nplm.models.neural.network.outputs.tree import MAX_BRANCHES, checked_tree
from nplm.models.neural.network.parameters import Parameters
from nplm.models.neural.network.solvers import Adam, Schedule, State
from nplm.models.neural.network.soundness import check_sums
from nplm.models.neural.recipe import HISTORY_COLUMNS, TrainedNetwork

__all__ = ["from_items", "lightened", "to_items"]

# The state of Adam does not depend on its settings.
ANY_ADAM = Adam(Schedule(0.0, 0.0, 0.0), 0.0, 0.0, 1.0)
FLAGS = ("trained", "direct", "tied", "target_weights")
MADE_FROM = ("given", "huffman", "contexts")


class ZeroGenerator(np.random.RandomState):
    """A random generator that returns zeros, for parameters that are overwritten."""

    def normal(self, loc: Any = 0, scale: Any = 1, size: Any = None) -> Any:
        """Return zeros."""
        return np.zeros(size)


def lightened(
    trained: TrainedNetwork, *, optimizer: bool, dtype: str | None
) -> TrainedNetwork:
    """Return a network whose items take less room.

    - `trained`: the network, which is not changed
    - `optimizer`: whether the state of the solver is kept
    - `dtype`: type of the weights, "float16"; None keeps theirs

    The result is for `to_items` only: no kernel computes with float16. Raises
    ValueError if the weights are not float32, or too large for `dtype`.
    """
    if not optimizer:
        trained = replace(trained, solver_state={})
    if dtype is None:
        return trained
    own = trained.parameters
    if own.dtype != np.float32:
        raise ValueError(
            f"dtype={dtype!r} is for networks of float32, and this one has "
            f"precision={own.dtype.name!r}: leave dtype out."
        )
    most = float(np.finfo(dtype).max)
    for name, array in own.trained().items():
        if array.size and np.abs(array).max() > most:
            raise ValueError(
                f"dtype={dtype!r} has numbers up to {most:.0f}, and the weights {name} "
                f"have {np.abs(array).max():.4g}: leave dtype out."
            )
    halves = {name: array.astype(dtype) for name, array in own.trained().items()}
    return replace(trained, parameters=own.with_arrays(halves))


def to_items(trained: TrainedNetwork) -> dict[str, Any]:
    """Return a trained network as numbers, text and arrays.

    The padding of rows is not included.
    """
    own, architecture = trained.parameters, trained.architecture
    items: dict[str, Any] = {
        "architecture": {
            field.name: getattr(architecture, field.name)
            for field in fields(architecture)
        },
        "arrays": {k: own.without_padding(k, a) for k, a in own.trained().items()},
        "moments": {
            k: own.without_padding(k.split("_", 1)[1], a)
            for k, a in trained.solver_state.items()
        },
        "loss": _loss_items(trained.loss),
        "history": trained.history,
        "val_loss": trained.val_loss,
        "n_seen": trained.n_seen,
        "n_updates": trained.n_updates,
        "n_epochs": trained.n_epochs,
        "n_added": trained.n_added,
    }
    # A network of a file without a generator has NumPy's global one.
    if trained.generator not in (None, np.random.mtrand._rand):
        items["random_state"] = trained.generator
    return items


def from_items(fitted: Fitted, outputs: tuple[str, ...]) -> TrainedNetwork:
    """Return the network of `to_items`, or raise ValueError if the items are invalid.

    `outputs` are the kinds of output that the estimator supports.
    """
    arrays, is_rounded = _in_full(fitted.take("arrays", dict))
    _check_arrays(arrays)
    architecture = _architecture(fitted.inner("architecture"), outputs, arrays)
    n_words = architecture.n_words
    n_added = fitted.whole("n_added", 0, n_words - 1)
    # A proposal is of the words that training knew.
    loss = _loss(fitted.inner("loss"), range(n_words - n_added, n_words + 1))
    architecture.check(loss)
    parts = architecture.parts(loss)
    _check_sizes(architecture, parts, arrays)
    counts = np.zeros(n_words, np.int64)
    own = parts.initial(n_words, counts, ZeroGenerator(0), arrays["d"].dtype)
    _fill(own, own.trained(), arrays, "arrays")
    if is_rounded:
        parts.features.settle(own)
    check_sums(own, parts)
    generator = np.random.mtrand._rand
    if "random_state" in fitted:
        generator = fitted.take("random_state", np.random.RandomState)
    return TrainedNetwork(
        architecture=architecture,
        parameters=own,
        solver_state=_moments(own, fitted.take("moments", dict)),
        loss=loss,
        generator=generator,
        history=fitted.history("history", *HISTORY_COLUMNS),
        val_loss=float(fitted.take("val_loss", int, float)),
        n_seen=fitted.whole("n_seen"),
        n_updates=fitted.number("n_updates", 0),
        n_epochs=fitted.number("n_epochs", 0),
        n_added=n_added,
    )


# -- the architecture and the loss ---------------------------------------------------


def _architecture(
    items: Fitted, outputs: tuple[str, ...], arrays: dict[str, Any]
) -> Architecture:
    """Return an architecture, after checking its sizes against the arrays."""
    n_words = items.whole("n_words", 1)
    if n_words != len(arrays.get("C", arrays["E"])):
        raise items.invalid_item("n_words", n_words)
    output = items.take("output", str)
    if output not in outputs:
        raise items.invalid_item("output", output)
    tree_from = items.take("tree_from", str)
    if tree_from not in MADE_FROM:
        raise items.invalid_item("tree_from", tree_from)
    given = {name: items.take(name) for name in ("word_features", "classes", "tree")}
    for name in ("classes", "tree"):
        if (given[name] is not None) != (output == name):
            raise items.invalid_item(name, given[name])
    if given["word_features"] is not None:
        if not isinstance(given["word_features"], csr_array):
            raise items.invalid_item("word_features", given["word_features"])
        given["word_features"] = checked_parts(given["word_features"], n_words)
    if given["classes"] is not None:
        given["classes"] = check_classes(given["classes"], "classes", n_words)
    if given["tree"] is not None:
        given["tree"] = checked_tree(given["tree"], n_words)
    n_branches = 2
    if "n_branches" in items:
        n_branches = items.whole("n_branches", 2, MAX_BRANCHES)
    elif output == "tree":
        raise ValueError(
            "nplm 0.1 made its tree, with a row of weights for each inner node, and "
            "not for each branch as now: fit the network again"
        )
    n_outputs = items.take("n_outputs", int, type(None))
    if n_outputs is not None and n_outputs != len(arrays["E"]):
        raise items.invalid_item("n_outputs", n_outputs)
    flags = {name: items.take(name, bool) for name in FLAGS}
    for name, owner in (("tied", "softmax"), ("target_weights", "energy")):
        if flags[name] and output != owner:
            raise items.invalid_item(name, True)
    if flags["direct"] and output == "energy":
        raise items.invalid_item("direct", True)
    return Architecture(
        n_words=n_words,
        order=items.whole("order", 1),
        n_hidden=_hidden_sizes(items),
        embedding_dim=items.whole("embedding_dim", 1),
        n_distant=items.whole("n_distant"),
        # Files of nplm 0.1 have none.
        n_memory=items.whole("n_memory") if "n_memory" in items else 0,
        n_senses=items.whole("n_senses", 1),
        output=output,
        n_outputs=n_outputs,
        tree_from=tree_from,
        n_branches=n_branches,
        **given,
        **flags,
    )


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


def _loss_items(loss: Estimate | None) -> dict[str, Any]:
    if loss is None:
        return {"loss": "exact"}
    weights = loss.proposal.weights
    items = {
        "loss": loss.loss,
        "n_noise": loss.n_noise,
        "proposal": None if weights is None else np.asarray(weights, np.float64),
        "proposal_power": float(loss.proposal.power),
    }
    if isinstance(loss, Importance):
        items["min_effective_samples"] = float(loss.min_effective_samples)
    return items


def _loss(items: Fitted, sizes: range) -> Estimate | None:
    loss = items.take("loss", str)
    if loss == "exact":
        return None
    if loss not in ("importance", "nce"):
        raise items.invalid_item("loss", loss)
    n_noise = items.whole("n_noise", 1)
    weights = items.take("proposal", np.ndarray, type(None))
    proposal = Proposal(weights, items.number("proposal_power", 0, 1))
    if weights is not None:
        if weights.ndim != 1 or len(weights) not in sizes:
            raise items.invalid_item("proposal", weights)
        proposal.check(len(weights))
    if loss == "nce":
        return NoiseContrastive(n_noise, proposal)
    return Importance(n_noise, proposal, items.number("min_effective_samples", 0))


# -- the arrays ----------------------------------------------------------------------


def _in_full(arrays: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return arrays of float16 as float32, and whether any was float16."""
    half = {
        name: array.astype(np.float32)
        for name, array in arrays.items()
        if isinstance(array, np.ndarray) and array.dtype == np.float16
    }
    return arrays | half, bool(half)


def _check_arrays(arrays: dict[str, Any]) -> None:
    """Raise ValueError unless all are finite floats of one dtype."""
    for name, ndim in (("H", 2), ("d", 1), ("E", 2)):
        if getattr(arrays.get(name), "ndim", None) != ndim:
            raise ValueError(f"arrays.{name} is not an array of {ndim} dimensions")
    dtype = arrays["d"].dtype
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or array.dtype != dtype:
            raise ValueError(f"arrays.{name} is not an array of {dtype}")
        if dtype not in (np.float32, np.float64) or not np.isfinite(array).all():
            raise ValueError(f"arrays.{name} has NaN or infinite numbers")


def _check_sizes(
    architecture: Architecture, parts: Parts, arrays: dict[str, NDArray[Any]]
) -> None:
    """Raise ValueError unless the shapes of the arrays match the architecture.

    This prevents allocations of a size that only a corrupt file claims.
    """
    n_words, m = architecture.n_words, architecture.embedding_dim
    H = arrays["H"]
    C = arrays["E"][:, :m] if architecture.tied else arrays.get("C")
    matrix = architecture.word_features
    senses = (0, 0)
    if isinstance(parts.inputs, MixedSenses):
        senses = parts.inputs.shape(n_words)
    output, n_inputs = parts.output, parts.inputs.n_inputs
    n_columns = 1 + (parts.hidden.n_activations if output.weighted else 0)
    n_columns += n_inputs if output.direct else 0
    h, widths = architecture.h, architecture.widths
    of_hidden: dict[str, tuple[int, ...]] = {}
    if architecture.n_memory:
        of_hidden = {"F": (3 * h, h), "f": (3 * h,)}
    for i, n in enumerate(widths, 1):
        of_hidden |= zip(Block.names(i), ((n, h), (n,), (h, n)), strict=True)
    if (
        getattr(C, "shape", None) != (n_words, m)
        or arrays["d"].shape != (h,)
        or H.shape != (h, n_inputs)
        or any(getattr(arrays.get(k), "shape", 0) != n for k, n in of_hidden.items())
        or arrays["E"].shape != (parts.n_rows(n_words), n_columns)
        or len(arrays.get("G", ())) != (0 if matrix is None else matrix.shape[1])
        or getattr(arrays.get("P"), "shape", (0,))[-1] != architecture.n_distant
        or getattr(arrays.get("S"), "shape", (0, 0)) != senses
    ):
        raise ValueError("the shapes of its arrays do not match its architecture")


def _fill(
    own: Parameters, target: State, given: dict[str, Any], where: str, prefix: str = ""
) -> None:
    """Copy arrays into those of a network, after checking names and shapes."""
    if given.keys() != target.keys():
        raise ValueError(f"{where} has {sorted(given)}, expected {sorted(target)}")
    for name, array in target.items():
        view = own.without_padding(name.removeprefix(prefix), array)
        if given[name].shape != view.shape or given[name].dtype != view.dtype:
            raise ValueError(
                f"{where}.{name} has shape {given[name].shape} and dtype "
                f"{given[name].dtype}, expected {view.shape} and {view.dtype}"
            )
        view[...] = given[name]


def _moments(own: Parameters, given: dict[str, Any]) -> State:
    """Return the moments of Adam, or an empty state."""
    if not given:
        return {}
    state = ANY_ADAM.kept(ANY_ADAM.initial_state(own))
    for moment in ("first_", "second_", "paused_"):
        part = {k: a for k, a in state.items() if k.startswith(moment)}
        found = {k: a for k, a in given.items() if k.startswith(moment)}
        if not all(isinstance(a, np.ndarray) for a in found.values()):
            raise ValueError("moments has values that are not arrays")
        _fill(own, part, found, "moments", moment)
    if given.keys() != state.keys() or not all(
        np.isfinite(a).all() and (name.startswith("first_") or (a >= 0).all())
        for name, a in state.items()
    ):
        raise ValueError("moments has NaN, infinite or negative values")
    return state
