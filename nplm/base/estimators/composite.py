"""Base class of models that are made of other models."""

from __future__ import annotations

from typing import Any

from nplm.base.array_types import Ids
from nplm.base.checks import check_not_grown, check_over_words
from nplm.base.estimators.language_model import LanguageModel


class CompositeLM(LanguageModel):
    """Base class of models that are made of others, perhaps frozen: their parts."""

    order = None  # each part has its own

    def _set_n_words(self, part: Any, n_words: int | None) -> None:
        """Set `n_words` of a part that has this parameter, if it is None there."""
        parameters = part.get_params(deep=False)
        if n_words is not None and parameters.get("n_words", n_words) is None:
            part.set_params(n_words=n_words)

    def _check_part(self, part: Any, name: str) -> None:
        """Raise unless a fitted part predicts words, from columns that X has."""
        check_over_words(part, name)
        if part.n_features_in_ > self.n_features_in_:
            raise ValueError(
                f"{name} was fitted on {part.n_features_in_} words of context, but X "
                f"has {self.n_features_in_} columns; pass wider windows."
            )

    def _take_n_words(self, part: Any, name: str) -> None:
        """Take the vocabulary of a fitted part, which has all words of the windows."""
        n_words: int = part.n_words_
        if n_words < self.n_words_ or self.n_words not in (None, n_words):
            raise ValueError(
                f"{name} has n_words={n_words}, but {type(self).__name__} and its "
                f"windows {self.n_words_}: set n_words of {type(self).__name__} alone, "
                "or the same in both."
            )
        self.n_words_ = n_words

    def _nearest_of(self, part: Any, X: Ids) -> Ids:
        """Keep the columns that a part was fitted on."""
        check_not_grown(part, self.n_words_, type(self).__name__)
        return X[:, X.shape[1] - part.n_features_in_ :]
