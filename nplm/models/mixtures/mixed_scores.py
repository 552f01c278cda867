"""MixedScores: how the probabilities of the members of a mixture are mixed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from nplm.base.array_types import Array, Floats, Ids, Index
from nplm.base.blocks import BLOCK_WINDOWS, Texts, blocks
from nplm.base.checks import check_not_grown
from nplm.base.estimators.checked_inputs import HeldOut
from nplm.base.estimators.language_model import CompositeLM
from nplm.base.estimators.scored_texts import (
    context_of_texts,
    shown_blocks,
    texts_log_prob,
)
from nplm.base.estimators.stream_model import Stepped
from nplm.models.ngrams.interpolated_trigram import RelativeFrequencies


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
