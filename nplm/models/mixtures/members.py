"""The members of a mixture: their names, weights, fit parameters and columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.frozen import FrozenEstimator

from nplm.base.array_types import Floats
from nplm.base.estimators.checked_inputs import columns_needed
from nplm.base.estimators.scored_texts import context_of_texts, reads_texts
from nplm.base.warnings import warn
from nplm.models.training.em import checked_weights


def names_of(estimators: Any) -> list[str]:
    """Return the names of all members; raise ValueError if none is to be kept."""
    if not estimators:
        raise ValueError("estimators is empty: pass at least one (name, model).")
    try:
        names = [name for name, _ in estimators]
    except (TypeError, ValueError):
        names = []
    # Keys of two letters make a dict look like a list of pairs.
    if not names or isinstance(estimators, Mapping):
        raise ValueError(
            f"estimators must be a list of (name, model) pairs, got {estimators!r}."
        )
    if not kept_of(estimators):
        raise ValueError('all estimators are "drop": keep at least one.')
    return names


def kept_of(estimators: Sequence[tuple[str, object]]) -> list[tuple[str, Any]]:
    """Return the members that are not "drop"."""
    return [pair for pair in estimators if not _is_dropped(pair[1])]


def weights_of(
    weights: str | ArrayLike,
    names: list[str],
    estimators: Sequence[tuple[str, object]],
    has_held_out: bool,
) -> Floats | None:
    """Return the weights of the members kept; None if they must be learned."""
    models = dict(estimators)
    kept = np.array([not _is_dropped(models.get(name)) for name in names])
    if isinstance(weights, str):
        if weights not in ("auto", "uniform", "learned", "context"):
            raise ValueError(
                'weights must be "auto", "uniform", "learned", "context" or '
                f"numbers, got {weights!r}."
            )
        if weights == "uniform" or (weights == "auto" and not has_held_out):
            return np.full(kept.sum(), 1 / kept.sum())
        return None
    values = checked_weights(weights, len(names), max_error=1e-5)[kept]
    if not values.any():
        raise ValueError(
            f"weights={weights!r} are 0 for all members that are not "
            '"drop": set a positive one.'
        )
    return values / values.sum()


def fit_params_of(
    names: list[str], fit_params: dict[str, object]
) -> dict[str, dict[str, Any]]:
    """Group ``name__parameter`` by the names of members."""
    by_name: dict[str, dict[str, object]] = {name: {} for name in names}
    for key, value in fit_params.items():
        name, _, parameter = key.partition("__")
        if name not in by_name or not parameter:
            raise ValueError(
                f"fit got {key}, which is not the name of a member, two underscores "
                f"and a parameter: the members are {', '.join(names)}."
            )
        by_name[name][parameter] = value
    return by_name


def fit_members(
    kept: list[tuple[str, object]],
    fit: Callable[[str, object], tuple[object, KeyboardInterrupt | None]],
    begin: Callable[[str], object],
    mixture: str,
) -> tuple[list[Any], KeyboardInterrupt | None]:
    """Fit the members in turn; return them, and the interrupt of the last fit, if any.

    `fit` returns a member and its interrupt, and that of another member is raised.
    """
    members, interrupt = [], None
    for i, (name, model) in enumerate(kept):
        begin(f"{name} ({i + 1} of {len(kept)})")
        member, interrupt = fit(name, model)
        if interrupt is not None and i + 1 < len(kept):
            warn(
                f"{mixture}: interrupted while {name!r} was fitted, before "
                f"{kept[i + 1][0]!r}; the mixture stays as it was before the fit.",
                RuntimeWarning,
            )
            try:
                raise interrupt
            finally:
                del interrupt  # avoids a reference cycle with this frame
        members.append(member)
    return members, interrupt


def check_sizes(names: list[str], members: list[Any], n_words: int) -> None:
    """Raise ValueError unless members have one vocabulary, of `n_words` or more."""
    sizes = {name: member.n_words_ for name, member in zip(names, members)}
    if len(set(sizes.values())) > 1 or sizes[names[0]] < n_words:
        raise ValueError(
            f"the members and the windows disagree on the vocabulary: n_words is "
            f"{sizes} and at least {n_words} in X and y; set the same "
            "n_words in all members, or set n_words of the mixture."
        )


def columns_of_texts(member: Any) -> int:
    """Return the columns that a member to be fitted on texts needs."""
    if reads_texts(member):
        return int(member._columns_of_texts())
    if isinstance(member, FrozenEstimator):
        return context_of_texts(member)
    return columns_needed(member)


def _is_dropped(member: object) -> bool:
    return isinstance(member, str) and member == "drop"
