"""Base classes of language models: probabilities, scores, scikit-learn tags."""

from __future__ import annotations

from collections.abc import Iterator
from functools import wraps
from operator import attrgetter
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nplm.base.array_types import Array, Floats, Ids
from nplm.base.atomic import Method, fit_copy, read_at_once
from nplm.base.blocks import blocks_of_rows
from nplm.base.checks import (
    MAX_N_WORDS,
    check_not_grown,
    check_over_words,
    trusted_ids,
)
from nplm.base.estimators.bases import DensityMixin, Documented
from nplm.base.estimators.checked_inputs import HeldOut
from nplm.base.estimators.scored_texts import perplexity
from nplm.base.estimators.stream_model import StreamModel
from nplm.base.fitted import Fitted, Item, Saved, invalid_item


class WindowScores:
    """Mixin of models with a `log_prob` of windows: its mean, and the perplexity."""

    def log_prob(self, X: ArrayLike, y: ArrayLike | None = None) -> Floats:
        """Return the log-probability of each next word given its context.

        It is computed block by block: memory does not grow with
        ``n_samples * n_words_``.

        Parameters
        ----------
        X : array-like of int, shape (n_samples, n_context)
            Contexts, the nearest word in the last column.
        y : array-like of int, shape (n_samples,)
            Next words.

        Returns
        -------
        log_prob : ndarray of float64, shape (n_samples,)
            Natural logarithms.
        """
        raise NotImplementedError

    def score(self, X: ArrayLike, y: ArrayLike | None = None) -> float:
        """Return the mean log-probability per token, which a grid search maximises.

        Parameters
        ----------
        X : array-like of int, shape (n_samples, n_context)
            Contexts, the nearest word in the last column.
        y : array-like of int, shape (n_samples,)
            Next words. Every token counts, including boundaries and unknown words.

        Returns
        -------
        score : float
            Natural logarithm.
        """
        score = float(np.mean(self.log_prob(X, y)))
        self._check_width(X)
        return score

    def _check_width(self, X: ArrayLike) -> None:
        """Warn if windows are too narrow for what a model remembers."""

    def perplexity(self, X: ArrayLike, y: ArrayLike | None = None) -> float:
        """Return the perplexity, the geometric mean of 1 / P(next word).

        It is ``exp(-score)`` (section 2). Perplexities compare only between models
        with the same vocabulary.

        Parameters
        ----------
        X : array-like of int, shape (n_samples, n_context)
            Contexts, the nearest word in the last column.
        y : array-like of int, shape (n_samples,)
            Next words.

        Returns
        -------
        perplexity : float
        """
        return perplexity(self.score(X, y), 1)


def refusing_weights(method: Method) -> Method:
    """Make a fit name what is wrong with weights of samples, and what to do.

    A parameter of that name would tell scikit-learn that weights work.
    """

    @wraps(method)
    def fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        if "sample_weight" in kwargs:
            raise TypeError(
                f"sample_weight: {type(self).__name__} has no weights of windows. To "
                "count a window more often, repeat it in X and y."
            )
        return method(self, *args, **kwargs)

    return cast(Method, fit)


class LanguageModel(WindowScores, DensityMixin, Saved, Documented, StreamModel):
    """Base class of the models: a conditional distribution of the next word.

    A density estimator, not a classifier: scikit-learn then cuts a text into contiguous
    folds. A subclass implements ``_fit`` and ``_predict_proba``, and overrides others
    where it needs less than the full matrix. They get checked int32 ids and only the
    nearest ``order_ - 1`` columns.
    """

    @property
    def classes_(self) -> NDArray[np.int_]:
        """The ids, ``arange(n_words_)``: those of the columns of probabilities."""
        return np.arange(self.n_words_)

    @refusing_weights
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
    ) -> Self:
        """Fit the model to windows of a text.

        Parameters
        ----------
        X : array-like of int, shape (n_samples, n_context)
            Contexts, the nearest word in the last column.
        y : array-like of int, shape (n_samples,)
            Next words.
        X_val : array-like of int, shape (n_held_out, n_context), optional
            Held-out contexts. The description of the class says what it estimates
            from them; if nothing, they are checked and not used.
        y_val : array-like of int, shape (n_held_out,), optional
            Held-out next words.

        Returns
        -------
        self : object
            The fitted estimator. After an error it is as it was before.

        Raises
        ------
        ValueError
            If ids or parameters are out of range, or X has too few columns or rows.
        """

        def fit(model: Self) -> KeyboardInterrupt | None:
            ids, next_words = model._start_fit(X, y)
            return model._fit(ids, next_words, model._check_held_out(X_val, y_val))

        return fit_copy(self, fit)

    # -- methods that subclasses implement ------------------------------------

    def _fit(
        self, X: Ids, y: Ids, held_out: HeldOut | None
    ) -> KeyboardInterrupt | None:
        """Set the attributes of a fit; return the interrupt that ended it early."""
        raise NotImplementedError

    def _predict_proba(self, X: Ids) -> Array:
        raise NotImplementedError

    def _predict_log_proba(self, X: Ids) -> Array:
        proba = self._predict_proba(X)
        with np.errstate(divide="ignore"):
            for rows in self._blocks(len(X)):
                np.log(proba[rows], out=proba[rows])
        return proba

    def _log_prob(self, X: Ids, y: Ids) -> Floats:
        candidates = y[:, np.newaxis]
        # Not that of `CheapWords`, which scores candidates by this method.
        return LanguageModel._candidate_log_prob(self, X, candidates, True)[:, 0]

    def _candidate_log_prob(self, X: Ids, candidates: Ids, normalize: bool) -> Floats:
        out = np.empty(candidates.shape)
        for rows in self._blocks(len(X)):
            log_proba = self._predict_log_proba(X[rows])
            words = trusted_ids(candidates[rows], log_proba.shape[1])
            out[rows] = np.take_along_axis(log_proba, words, axis=1)
        return out

    def words_mass(self, words: Ids) -> WordsMass:
        """Return the object that computes the total probability of these words."""
        return WordsMass(self, words)

    # -- probabilities --------------------------------------------------------

    @read_at_once
    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the probability of every word of the vocabulary after each context.

        Parameters
        ----------
        X : array-like of int, shape (n_samples, n_context)
            Contexts, the nearest word in the last column.

        Returns
        -------
        proba : ndarray, shape (n_samples, n_words_)
            Rows sum to 1; column j is the word with id j.
        """
        return self._predict_proba(self._check_X(X))

    @read_at_once
    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Return the natural logarithm of `predict_proba`.

        Parameters
        ----------
        X : array-like of int, shape (n_samples, n_context)
            Contexts, the nearest word in the last column.

        Returns
        -------
        log_proba : ndarray, shape (n_samples, n_words_)
        """
        return self._predict_log_proba(self._check_X(X))

    @read_at_once
    def predict(self, X: ArrayLike) -> Ids:
        """Return the id of the most probable next word after each context.

        Parameters
        ----------
        X : array-like of int, shape (n_samples, n_context)
            Contexts, the nearest word in the last column.

        Returns
        -------
        y : ndarray of int32, shape (n_samples,)
        """
        X = self._check_X(X)
        best = np.empty(len(X), dtype=np.int32)
        for rows in self._blocks(len(X)):
            best[rows] = self._predict_proba(X[rows]).argmax(axis=1)
        return best

    @read_at_once
    def log_prob(self, X: ArrayLike, y: ArrayLike | None = None) -> Floats:
        return self._log_prob(*self.checked_windows(X, y))

    @read_at_once
    def candidate_log_prob(
        self, X: ArrayLike, candidates: ArrayLike, *, normalize: bool = True
    ) -> Floats:
        """Return the log-probability of candidate words after each context.

        For lattice arcs, n-best lists, or choices to be ranked. N-gram models look up
        the candidates alone. A network computes its hidden units once for each context,
        and its normaliser over all words, unless `normalize` is
        False: "if the language model is coupled to a speech recognizer, then only the
        scores (unnormalized probabilities) of the acoustically ambiguous words need to
        be computed" (Bengio et al. 2003, section 5.2, item 3).

        Parameters
        ----------
        X : array-like of int, shape (n_samples, n_context)
            Contexts, the nearest word in the last column.
        candidates : array-like of int, shape (n_samples, n_candidates) or \
(n_candidates,)
            Ids of the words to score: a row for each context, or one list for all
            contexts. Words may repeat, to pad a row.
        normalize : bool, default=True
            If False, scores compare within a row only: they are log-probabilities up to
            a constant of the row, which is not computed. With a softmax they are
            the logits, at a cost that does not depend on the size of the vocabulary.
            Models without unnormalized scores return log-probabilities.

        Returns
        -------
        log_prob : ndarray of float64, shape (n_samples, n_candidates)
            Natural logarithms: columns of `predict_log_proba`, up to rounding.

        Raises
        ------
        ValueError
            If a candidate is not an id of the vocabulary, or if candidates and X have
            different numbers of rows.

        Examples
        --------
        >>> from nplm import InterpolatedTrigram, windows
        >>> X, y = windows([0, 1, 2, 0, 1, 3] * 20, 2)
        >>> lm = InterpolatedTrigram().fit(X, y)
        >>> lm.candidate_log_prob([[0, 1]], [2, 3]).round(2)
        array([[-0.7, -0.7]])
        """
        X = self._check_X(X)
        words = self._check_candidates(candidates, len(X))
        return self._candidate_log_prob(X, words, normalize)

    def _blocks(self, n_samples: int) -> Iterator[slice]:
        """Yield slices of rows whose probabilities fit in one block."""
        return blocks_of_rows(n_samples, self.n_words_)

    # -- files ----------------------------------------------------------------

    _saved: ClassVar[dict[str, Item]] = {
        "order": Item(Fitted.whole, 1),
        "n_context": Item(
            Fitted.whole, 1, MAX_N_WORDS, of=attrgetter("n_features_in_")
        ),
        "columns": Item(
            Fitted.texts,
            of=lambda lm: getattr(lm, "feature_names_in_", None),
            is_optional=True,
        ),
    }

    def _set_saved(self, values: dict[str, Any]) -> None:
        """Set the attributes of all models but `n_words_`: a subclass sets that."""
        super()._set_saved(values)
        self.n_features_in_, columns = values["n_context"], values["columns"]
        if self.order_ > self.n_features_in_ + 1:
            raise invalid_item("order", self.order_)
        if columns is not None:
            if len(columns) != self.n_features_in_:
                raise invalid_item("columns", columns)
            self.feature_names_in_ = np.array(columns, dtype=object)

    # -- scikit-learn ---------------------------------------------------------

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.positive_only = True
        tags.target_tags.required = True
        return tags


class CheapWords(LanguageModel):
    """Base class of models that score a word in the same time in any vocabulary."""

    def _candidate_log_prob(self, X: Ids, candidates: Ids, normalize: bool) -> Floats:
        out = np.empty(candidates.shape)
        n = candidates.shape[1]
        for rows in blocks_of_rows(len(X), n) if n else ():
            words = candidates[rows]
            log_prob = self._log_prob(np.repeat(X[rows], n, axis=0), words.ravel())
            out[rows] = log_prob.reshape(words.shape)
        return out


class WordsMass:
    """Total probability of distinct `words` after each context, by a model."""

    def __init__(self, model: LanguageModel, words: Ids) -> None:
        self.model, self.words = model, words

    def after(self, X: Ids) -> Floats:
        """Return the sum of the words' probabilities after each context."""
        mass = np.empty(len(X))
        for rows in blocks_of_rows(len(X), self.model.n_words_):
            proba = self.model.predict_proba(X[rows])
            mass[rows] = proba[:, self.words].sum(axis=1, dtype=np.float64)
        return mass


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
