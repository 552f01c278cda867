"""A fitted network for a file, and back: from numbers that nothing is believed of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nplm.base.fitted import Fitted
from nplm.models.neural.network.inputs import MixedSenses
from nplm.models.neural.network.network import Parts
from nplm.models.neural.network.outputs.tree import Tree
from nplm.models.neural.network.parameters import Parameters
from nplm.models.neural.network.solvers import Adam, Schedule, State
from nplm.models.neural.network.soundness import check_sums

__all__ = ["UNMADE", "fitted_network", "restore_network"]

# Of the parameters that may not change while training goes on, those that arrays tell.
UNMADE = ("n_words", "precision")
# In the place of the windows of a fit.
A_WINDOW = np.zeros((1, 1), np.int32)
# A state that an Adam of any settings keeps.
MOMENTS = Adam(Schedule(0.0, 0.0, 0.0), 0.0, 0.0, 1.0)


class NoDraws(np.random.RandomState):
    """In the place of a random generator: what it draws is replaced anyway."""

    def normal(self, loc: Any = 0, scale: Any = 1, size: Any = None) -> Any:
        """Give zeros."""
        return np.zeros(size)


def fitted_network(lm: Any) -> dict[str, Any]:
    """Say what the fit of a network leaves.

    The network is told by the parameters that make it, and the arrays that it then has.
    What fills rows up to whole vectors is left out.
    """
    own = lm._parameters
    fitted = {
        "made_with": lm._made_with(),
        "arrays": {k: own.packed(k, a) for k, a in own.trained().items()},
        "moments": {
            k: own.packed(k.split("_", 1)[1], a) for k, a in lm._solver_state.items()
        },
        "history": lm.history_,
        "n_seen": lm.n_seen_,
        "n_updates": lm._n_updates,
        "n_epochs": lm._n_epochs,
    }
    # Without a seed it is NumPy's own: to go on is then to draw from that.
    if lm._rng is not np.random.mtrand._rand:
        fitted["random_state"] = lm._rng
    if lm._n_outputs is not None:
        fitted["n_outputs"] = lm._n_outputs
    return fitted


def restore_network(lm: Any, fitted: Fitted) -> None:
    """Take what `fitted_network` said, or raise ValueError where no fit leaves it."""
    made_with = fitted.take("made_with", dict)
    arrays = fitted.take("arrays", dict)
    _check_kinds(arrays)
    n_words = len(arrays.get("C", arrays["E"]))
    lm._restore_sizes(fitted, n_words)
    if "n_outputs" in fitted:
        lm._n_outputs = fitted.whole("n_outputs", 1, len(arrays["E"]))
    parts = _parts_again(lm, made_with, arrays)
    own = parts.initial(n_words, np.zeros(1, np.int32), NoDraws(0), arrays["d"].dtype)
    _fill(own, own.trained(), arrays, "arrays")
    check_sums(own, parts)
    lm._parameters = own
    lm._n_distant = 0 if own.P is None else own.P.shape[1]
    lm._made_of = parts._replace(features=replace(parts.features, start=None))
    lm._solver_state = _moments(own, fitted.take("moments", dict))
    lm.history_ = fitted.history("history", "loss", "val_loss", "seconds")
    lm.n_iter_ = len(lm.history_["loss"])
    lm.n_seen_ = fitted.whole("n_seen")
    lm._n_updates = fitted.number("n_updates", 0)
    lm._n_epochs = fitted.number("n_epochs", 0)
    lm._rng = np.random.mtrand._rand
    if "random_state" in fitted:
        lm._rng = fitted.take("random_state", np.random.RandomState)


def _check_kinds(arrays: dict[str, Any]) -> None:
    """Refuse what are no numbers of one type, or finite."""
    for name, ndim in (("H", 2), ("d", 1), ("E", 2)):
        if getattr(arrays.get(name), "ndim", None) != ndim:
            raise ValueError(f"arrays.{name} is no array of {ndim} dimensions")
    dtype = arrays["d"].dtype
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or array.dtype != dtype:
            raise ValueError(f"arrays.{name} is no array of {dtype}, as the others are")
        if dtype not in (np.float32, np.float64) or not np.isfinite(array).all():
            raise ValueError(f"arrays.{name} has numbers that are none, or not finite")


def _parts_again(lm: Any, made_with: dict[str, Any], arrays: dict[str, Any]) -> Parts:
    """Make the parts as a fit does, of parameters that are checked as it checks them.

    Before anything is made of the size that they give, that is compared with what
    there is.
    """
    unknown = made_with.keys() - lm.get_params(deep=False).keys() | {"n_words"}
    if made_with.keys() & unknown:
        raise ValueError(f"made_with has {sorted(made_with)}, not parameters alone")
    twin = type(lm)(**made_with, n_words=lm.n_words_)
    twin.order_, twin.n_words_, twin._n_outputs = lm.order_, lm.n_words_, lm._n_outputs
    if not made_with.get("train_embeddings", True):
        twin.embeddings = arrays.get("C")
    twin._check_parameters()
    if twin.order != lm.order_:
        raise ValueError(f"made_with.order is {twin.order}, but order {lm.order_}")
    H, m = arrays["H"], twin.embedding_dim
    C = arrays["E"][:, :m] if made_with.get("tied") else arrays.get("C")
    if len(H) != twin.n_hidden or getattr(C, "shape", None) != (lm.n_words_, m):
        raise ValueError("its arrays are not as large as its parameters say")
    parts: Parts = twin._parts()
    output = parts.output.learn(lm.n_words_, A_WINDOW, A_WINDOW[0])
    if isinstance(output, Tree):  # the estimator's parameter has how it was asked for
        output = replace(output, given=lm.word_tree)
    parts = parts._replace(output=output)
    n_parts = getattr(getattr(parts.features, "matrix", None), "shape", (0, 0))[1]
    of_senses = (0, 0)
    if isinstance(parts.inputs, MixedSenses):
        of_senses = parts.inputs.shape(lm.n_words_)
    if (
        H.shape[1] != parts.inputs.n_inputs
        or len(arrays["E"]) != parts.n_rows(lm.n_words_)
        or len(arrays.get("G", ())) != n_parts
        or parts.inputs.n_context > lm.n_features_in_
        or getattr(arrays.get("P"), "shape", (0,))[-1] != twin.n_distant
        or getattr(arrays.get("S"), "shape", (0, 0)) != of_senses
    ):
        raise ValueError("its arrays are not as large as its parameters say")
    return parts


def _fill(
    own: Parameters, to: State, given: dict[str, Any], where: str, prefix: str = ""
) -> None:
    """Copy arrays into those that a network has, if they are the same."""
    if given.keys() != to.keys():
        raise ValueError(f"{where} are {sorted(given)}, where {sorted(to)} should be")
    for name, array in to.items():
        room = own.packed(name.removeprefix(prefix), array)
        if given[name].shape != room.shape or given[name].dtype != room.dtype:
            raise ValueError(
                f"{where}.{name} is of shape {given[name].shape}, where {room.shape} "
                "should be"
            )
        room[...] = given[name]


def _moments(own: Parameters, given: dict[str, Any]) -> State:
    """Make what a solver kept beside the parameters: Adam's moments, or nothing."""
    if not given:
        return {}
    state = MOMENTS.kept(MOMENTS.initial_state(own))
    for moment in ("first_", "second_"):
        part = {k: a for k, a in state.items() if k.startswith(moment)}
        found = {k: a for k, a in given.items() if k.startswith(moment)}
        if not all(isinstance(a, np.ndarray) for a in found.values()):
            raise ValueError("moments are no arrays")
        _fill(own, part, found, "moments", moment)
    if given.keys() != state.keys() or not all(
        np.isfinite(a).all() and (name.startswith("first_") or (a >= 0).all())
        for name, a in state.items()
    ):
        raise ValueError("moments has numbers that no fit leaves")
    return state
