"""UniformLM: equal probabilities of all words, or of words unseen in training."""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from nplm.base.array_types import Floats, Ids
from nplm.base.checks import trusted_ids
from nplm.base.estimators.bases import hyperparameters
from nplm.base.estimators.checked_inputs import HeldOut
from nplm.base.estimators.language_model import CheapWords
from nplm.base.fitted import Fitted, Item


@hyperparameters
class UniformLM(CheapWords):
    """Assign the same probability to each word, in any context.

    A member for mixtures. Over all words it is the p_0 of the interpolated trigram
    (section 4.1). Over the words unseen in training it gives a mixture the probability
    of new words, which models of counts underestimate if the text to score differs from
    the training text.

    Parameters
    ----------
    words : {"all", "unseen"}, default="all"
        The words that share the probability: all words of the vocabulary, or those
        that are not in `y` of the training windows. If training has every word,
        "unseen" is the same as "all".
    n_words : int, optional
        Size of the vocabulary; inferred from the training windows by default.

    Attributes
    ----------
    proba_ : ndarray of float64, shape (n_words_,)
        The distribution.
    n_parameters_ : int
        0.
    order_, n_words_ : int
        1, and the vocabulary size in use.

    Examples
    --------
    >>> from nplm import UniformLM
    >>> model = UniformLM("unseen", n_words=4).fit([[0], [1]], [1, 0])
    >>> model.predict_proba([[1]]).tolist()
    [[0.0, 0.0, 0.5, 0.5]]
    """

    order = 1
    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        "words": [StrOptions({"all", "unseen"})],
    }

    words: str = field(default="all", kw_only=False)
    n_words: int | None = None

    def _fit(self, X: Ids, y: Ids, held_out: HeldOut | None) -> None:
        shared = np.ones(self.n_words_)
        if self.words == "unseen":
            shared[trusted_ids(y, self.n_words_)] = 0
            if not shared.any():
                shared[:] = 1
        self.proba_ = shared / shared.sum()
        self.n_parameters_ = 0

    _saved: ClassVar[dict[str, Item]] = {"proba": Item(Fitted.shares, (None,))}

    def _set_saved(self, values: dict[str, Any]) -> None:
        super()._set_saved(values)
        self.n_words_, self.n_parameters_ = len(self.proba_), 0

    def _n_known(self) -> int:
        return len(self.proba_)

    def _predict_proba(self, X: Ids) -> Floats:
        proba = np.empty((len(X), self.n_words_))
        for rows in self._blocks(len(X)):
            proba[rows] = self.proba_
        return proba

    def _log_prob(self, X: Ids, y: Ids) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(self.proba_)[trusted_ids(y, len(self.proba_))]
