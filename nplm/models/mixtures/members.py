"""The members of a mixture: their names, weights and fits, and how scores are mixed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.frozen import FrozenEstimator

from nplm.base.array_types import Array, Floats, Ids, Index
from nplm.base.blocks import BLOCK_WINDOWS, Texts, blocks
from nplm.base.checks import check_not_grown
from nplm.base.estimators.checked_inputs import HeldOut, columns_needed
from nplm.base.estimators.language_model import CompositeLM
from nplm.base.estimators.scored_texts import (
    context_of_texts,
    reads_texts,
    shown_blocks,
    texts_log_prob,
)
from nplm.base.estimators.stream_model import Stepped
from nplm.base.warnings import warn
from nplm.models.ngrams.interpolated_trigram import RelativeFrequencies
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


def columns_of_member(member: Any) -> int:
    """Return the columns that a member to be fitted on texts needs."""
    if reads_texts(member):
        return int(member.columns_of_texts())
    if isinstance(member, FrozenEstimator):
        return context_of_texts(member)
    return columns_needed(member)


def _is_dropped(member: object) -> bool:
    return isinstance(member, str) and member == "drop"


class MixedScores(CompositeLM):
    """Base class of `MixtureLM`: how fitted members are mixed."""

    estimators_: list[Any]
    weights_: Floats
    # With "context" weights the contexts whose frequency selects a row of them.
    _contexts: RelativeFrequencies | None

    def n_context_of_texts(self) -> int:
        least = 2 if self._contexts is not None else 0
        return max(context_of_texts(member, least) for member in self.estimators_)

    def _rows(self, X: Ids) -> Index:
        """Return the row of `weights_` of each context: 0 unless "context"."""
        if self._contexts is None:
            return np.zeros(len(X), dtype=np.intp)
        return self._contexts.bin_of(X[:, -2:])

    def member_weights(self, X: Ids) -> Floats:
        """Return the weights of each context, shape (n_samples, n_members)."""
        return np.atleast_2d(self.weights_)[self._rows(X)]

    def _predict_proba(self, X: Ids) -> Floats:
        weights = self.member_weights(X)
        proba = np.zeros((len(X), self.n_words_))
        for i, member in enumerate(self.estimators_):
            part = member.predict_proba(self._nearest_of(member, X))
            proba += weights[:, i : i + 1] * part
        return proba

    @property
    def sums_over_words(self) -> bool:
        """Whether a member sums over all words to score one."""
        return any(getattr(m, "sums_over_words", False) for m in self.estimators_)

    def member_log_probs(
        self, data: HeldOut | Texts, begin: Callable[[str], None] = lambda stage: None
    ) -> Floats:
        """Return the scores by each member, (n_samples, n_members)."""
        scores = []
        for i, member in enumerate(self.estimators_, 1):
            begin(f"scores ({i} of {len(self.estimators_)})")
            if isinstance(data, Texts):
                check_not_grown(member, self.n_words_, type(self).__name__)
                scores.append(texts_log_prob(member, data))
            else:
                scores.append(self._log_prob_of(member, *data))
        return np.column_stack(scores)

    def _log_prob_of(self, member: Any, X: Ids, y: Ids) -> Floats:
        """Return the scores by a member; a fit shows how far it is."""
        out, X = np.empty(len(y)), self._nearest_of(member, X)
        for part in shown_blocks(type(member).__name__, out, BLOCK_WINDOWS):
            out[part] = member.log_prob(X[part], y[part])
        return out

    def _mixed(self, log_probs: ArrayLike, X: Ids) -> Floats:
        """Return the log-probabilities of the mixture, of those of each member."""
        weights = self.member_weights(X).T
        weights = weights[..., np.newaxis] if np.ndim(log_probs) == 3 else weights
        return logsumexp(log_probs, axis=0, b=weights)

    def log_prob_of_texts(self, texts: Texts) -> Floats:
        log_probs, X = self.member_log_probs(texts).T, texts.X
        out = np.empty(len(texts))
        for tokens in blocks(len(out), BLOCK_WINDOWS):
            out[tokens] = self._mixed(log_probs[:, tokens], X[texts.rows(tokens)])
        return out

    def state_of_text(self, ids: Ids) -> Any:
        # A text begins with as many boundaries as a context has words.
        n = self.n_context_of_texts()
        return tuple(
            member.state_of_text(ids[n - context_of_texts(member, 0) :])
            for member in self.estimators_
        )

    def step_members(
        self, X: Ids, states: Sequence[Any]
    ) -> tuple[list[Array], list[Any]]:
        """Return the log-probabilities by each member, and the states."""
        parts, after = [], []
        for i, member in enumerate(self.estimators_):
            check_not_grown(member, self.n_words_, type(self).__name__)
            before = [state[i] if state else None for state in states]
            log_proba, states_after = member.step_states(X, before)
            parts.append(log_proba)
            after.append(states_after)
        return parts, list(zip(*after))

    def step_states(self, X: Ids, states: Sequence[object]) -> Stepped:
        log_probs, after = self.step_members(X, states)
        return self._mixed(log_probs, X), after

    def _log_prob(self, X: Ids, y: Ids) -> Floats:
        return self._mixed(self.member_log_probs((X, y)).T, X)

    def _candidate_log_prob(self, X: Ids, candidates: Ids, normalize: bool) -> Floats:
        # Only normalised probabilities of members can be summed.
        log_probs = [
            member.candidate_log_prob(self._nearest_of(member, X), candidates)
            for member in self.estimators_
        ]
        return self._mixed(log_probs, X)
