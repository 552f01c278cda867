"""Base classes of language models: checks, scores, scikit-learn tags."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, wraps
from numbers import Integral, Real
from typing import Any, ClassVar, Self, TypeVar, cast, dataclass_transform

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils._param_validation import Interval, validate_parameter_constraints
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from nplm.base.atomic import Method, fit_copy, read_at_once
from nplm.base.blocks import BLOCK_WINDOWS, Texts, blocks, blocks_of_rows
from nplm.base.checks import (
    MAX_N_WORDS,
    check_boundary,
    check_ids,
    check_not_grown,
    check_over_words,
    inferred_n_words,
    plain,
    plain_ids,
    refuse_usual_mistakes,
    trusted_ids,
)
from nplm.base.fitted import Fitted
from nplm.base.pages import Documented

__all__ = [
    "COMMON", "CheapWords", "CompositeLM", "HeldOut", "LanguageModel", "Stepped",
    "Whole", "WordsMass", "columns_needed", "hyperparameters", "non_negative",
    "reads_texts", "refusing_weights", "unless_none",
]  # fmt: skip

Kind = TypeVar("Kind")
# Log-probabilities of all words after some contexts, and the states after these.
Stepped = tuple[NDArray[np.floating], Sequence[Any]]
HeldOut = tuple[NDArray[np.int32], NDArray[np.int32]]  # contexts, next words

# scikit-learn leaves the values unchecked: `check_ids` checks them, and its messages
# are about word ids, whereas scikit-learn's suggest other estimators for NaN.
UNCHECKED: dict[str, Any] = {"dtype": None, "order": None, "ensure_all_finite": False}


class Whole(Interval):
    """Whole numbers from `least` to `most`, for ``_parameter_constraints``.

    Unlike scikit-learn's interval, it does not accept True for 1.
    """

    def __init__(self, least: int, most: int | None = None) -> None:
        closed = "left" if most is None else "both"
        super().__init__(Integral, least, most, closed=closed)

    def is_satisfied_by(self, val: object) -> bool:
        """Return whether `val` is one of them."""
        return not isinstance(val, bool) and super().is_satisfied_by(val)


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
def hyperparameters(kind: type[Kind]) -> type[Kind]:
    """Make the ``__init__`` of an estimator from its fields, those of a dataclass.

    It has those of base classes too, and takes them by keyword. Its signature is what
    scikit-learn reads.
    """
    return dataclass(eq=False, repr=False, match_args=False, kw_only=True)(kind)


# Parameters that have the same meaning in every model.
COMMON: dict[str, list[object]] = {
    "order": [Whole(1), None],
    "n_words": [Whole(1, MAX_N_WORDS), None],
    "boundary": [Whole(0), None],
}


# Columns of windows for a model that uses all of them.
USUAL_COLUMNS = 4


def columns_needed(estimator: Any) -> int:
    """Return the words of context that a model of windows is fitted or used with.

    A frozen model needs the columns that it was fitted on. `USUAL_COLUMNS` are those of
    a model that uses all columns.
    """
    if isinstance(estimator, FrozenEstimator):
        return int(getattr(estimator, "n_features_in_", USUAL_COLUMNS))
    if isinstance(estimator, LanguageModel):
        return estimator._columns_needed()
    return unless_none(getattr(estimator, "order", None), -1)


def reads_texts(estimator: Any) -> bool:
    """Return whether a state of an estimator goes on within the texts that it fits."""
    is_frozen = isinstance(estimator, FrozenEstimator)
    return not is_frozen and getattr(estimator, "_reads_texts", False)


def unless_none(value: object, change: int = 0) -> int:
    """Return a parameter plus `change`, at least 1, or `USUAL_COLUMNS` for None.

    A value that is no number counts as None: the fit refuses it.
    """
    if isinstance(value, Integral) and not isinstance(value, bool):
        return max(int(value) + change, 1)
    return USUAL_COLUMNS


def non_negative() -> Interval:
    """Return the interval of real numbers from 0, including infinity."""
    return Interval(Real, 0, np.inf, closed="both")


class WindowScores:
    """Mixin of models with a `log_prob` of windows: its mean, and the perplexity."""

    def log_prob(self, X: ArrayLike, y: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return the log-probability of each next word given its context."""
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
        with np.errstate(over="ignore"):
            return float(np.exp(-self.score(X, y)))


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


class LanguageModel(WindowScores, DensityMixin, Documented, BaseEstimator):
    """Base class of the models: a conditional distribution of the next word.

    A density estimator, not a classifier: its ``score`` is a mean
    log-likelihood, and scikit-learn then cuts the windows of a text into
    contiguous folds instead of interleaving them by next word.

    A subclass implements ``_fit`` and ``_predict_proba``. It overrides ``_log_prob`` or
    ``_predict_log_proba`` where it needs less than the full matrix. These methods get
    checked int32 ids and only the nearest ``order_ - 1`` columns. `nplm.save` and
    `nplm.load` call ``_fitted`` and ``_restore``.
    """

    order: int | None
    n_words: int | None
    _parameter_constraints: ClassVar[dict[str, list[object]]] = {}

    @cached_property
    def classes_(self) -> NDArray[np.int_]:
        """The ids, ``arange(n_words_)``: those of the columns of probabilities."""
        # Set by a fit; of a model in a mapped file made when it is asked for.
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

    def fit_stream(
        self,
        ids: ArrayLike | Sequence[ArrayLike],
        ids_val: ArrayLike | Sequence[ArrayLike] | None = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the model to a text, or to documents.

        Parameters
        ----------
        ids : array-like of int, shape (n_tokens,), or a list of them
            Word ids in text order: one text, or a list of documents. No context spans
            two documents. A model with a ``boundary`` predicts every token: boundaries
            fill the contexts at the start of a text, and one is appended to each
            document of a list, in which it must not occur, as KenLM refuses ``</s>``
            inside a line. Without one, the first words of a text, as many as a context
            has, are context only. (A `KneserNeyLM` counts shorter n-grams of them, if
            they are in a list.)
        ids_val : array-like of int, or a list of them, optional
            Held-out text or documents, for what `fit` uses held-out windows for.
        **fit_params
            Passed to `fit`, such as ``checkpoint`` of a network.

        Returns
        -------
        self : object
            The model that `fit` makes of the windows of the same text. Those of one
            text are views of `ids`, and take no memory of their own. Documents are
            copied once, and networks keep 4 more bytes a token.

        Raises
        ------
        ValueError
            If ``order`` is None, no token has a whole context, or a document contains
            the boundary. See also `fit`.

        Examples
        --------
        >>> from nplm import InterpolatedTrigram
        >>> lm = InterpolatedTrigram().fit_stream([0, 1, 2, 0, 1, 3] * 20)
        >>> lm.log_prob_stream([0, 1, 2]).round(2)
        array([-0.7])
        """
        return self._fit_streams(ids, ids_val, **fit_params)

    # -- methods that subclasses implement ------------------------------------

    def _fit(
        self, X: NDArray[np.int32], y: NDArray[np.int32], held_out: HeldOut | None
    ) -> KeyboardInterrupt | None:
        """Set the fitted attributes from checked windows of ``order_ - 1`` columns.

        Returns the interrupt that ended the fit early, if it left the model fitted.
        """
        raise NotImplementedError

    def _predict_proba(self, X: NDArray[np.int32]) -> NDArray[np.floating]:
        raise NotImplementedError

    def _predict_log_proba(self, X: NDArray[np.int32]) -> NDArray[np.floating]:
        proba = self._predict_proba(X)
        with np.errstate(divide="ignore"):
            for rows in self._blocks(len(X)):
                np.log(proba[rows], out=proba[rows])
        return proba

    def _log_prob(
        self, X: NDArray[np.int32], y: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        out = np.empty(len(y))
        for rows in self._blocks(len(y)):
            log_proba = self._predict_log_proba(X[rows])
            words = trusted_ids(y[rows], log_proba.shape[1])
            out[rows] = log_proba[np.arange(len(log_proba)), words]
        return out

    def _fit_streams(self, ids: Any, ids_val: Any, **fit_params: Any) -> Self:
        return self._fit_texts(*self._streams(ids, ids_val), **fit_params)

    def _fit_texts(
        self, texts: Texts, held_out: Texts | None, **fit_params: Any
    ) -> Self:
        """Fit the model to checked texts."""
        X, y = texts.windows()
        X_val, y_val = (None, None) if held_out is None else held_out.windows()
        return self.fit(X, y, X_val=X_val, y_val=y_val, **fit_params)

    @property
    def _reads_texts(self) -> bool:
        """Whether a state goes on within a text, further than windows reach."""
        return False

    def _texts_log_prob(self, texts: Texts) -> NDArray[np.float64]:
        """Return the log-probability of the tokens of checked texts."""
        X, y, out = self._nearest(texts.X), texts.y, np.empty(len(texts))
        for part in blocks(len(out), BLOCK_WINDOWS):
            rows = texts.rows(part)
            out[part] = self._log_prob(X[rows], y[rows])
        return out

    def _step(self, X: NDArray[np.int32], states: Sequence[Any]) -> Stepped:
        """Return the log-probabilities of all words after contexts, and the states.

        - `states`: those before the nearest word of each context, None at the start of
          a text. Most models have none
        """
        return self._predict_log_proba(self._nearest(X)), [None] * len(X)

    def _state(self, ids: NDArray[np.int32]) -> Any:
        """Return the state before the last word of a text, for `_step`."""
        return None

    def _n_context_of_texts(self) -> int:
        """Return the words of context before the first token of a text to be scored."""
        return self.order_ - 1

    def _candidate_log_prob(
        self, X: NDArray[np.int32], candidates: NDArray[np.int32], normalize: bool
    ) -> NDArray[np.float64]:
        out = np.empty(candidates.shape)
        for rows in self._blocks(len(X)):
            log_proba = self._predict_log_proba(X[rows])
            words = trusted_ids(candidates[rows], log_proba.shape[1])
            out[rows] = np.take_along_axis(log_proba, words, axis=1)
        return out

    def _words_mass(self, words: NDArray[np.int32]) -> WordsMass:
        """Return the object that computes the total probability of these words."""
        return WordsMass(self, words)

    # -- probabilities --------------------------------------------------------

    @read_at_once
    def predict_proba(self, X: ArrayLike) -> NDArray[np.floating]:
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
    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.floating]:
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
    def predict(self, X: ArrayLike) -> NDArray[np.int32]:
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
    def log_prob(self, X: ArrayLike, y: ArrayLike | None = None) -> NDArray[np.float64]:
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
        return self._log_prob(*self._check_Xy(X, y))

    @read_at_once
    def log_prob_stream(
        self, ids: ArrayLike | Sequence[ArrayLike]
    ) -> NDArray[np.float64]:
        """Return the log-probability of each token of a text, or of documents.

        Parameters
        ----------
        ids : array-like of int, shape (n_tokens,), or a list of them
            Word ids in text order: one text, or a list of documents, which do not
            depend on each other. As in `fit_stream`, a model with a ``boundary`` scores
            every token, and one that it appends to each document of a list; without a
            boundary, the first words of each text are context only.

        Returns
        -------
        log_prob : ndarray of float64, shape (n_scored,)
            Natural logarithms of all scored tokens, in text order. The memory besides
            them does not grow with the text.
        """
        return self._texts_log_prob(self._scored_texts(ids))

    def _scored_texts(self, ids: ArrayLike | Sequence[ArrayLike]) -> Texts:
        self._check_fitted()
        n_context = max(self._n_context_of_texts(), 1)
        return self._texts(ids, "ids", n_context, self.n_words_)

    def score_stream(
        self, ids: ArrayLike | Sequence[ArrayLike], **options: Any
    ) -> float:
        """Return the mean of `log_prob_stream`; the perplexity is ``exp(-score)``.

        Parameters
        ----------
        ids : array-like of int, shape (n_tokens,), or a list of them
            One text, or a list of documents.
        **options
            Passed to `log_prob_stream`, such as ``n_columns`` of a network.

        Returns
        -------
        score : float
            Mean natural-log probability per token.
        """
        return float(np.mean(self.log_prob_stream(ids, **options)))

    @read_at_once
    def candidate_log_prob(
        self, X: ArrayLike, candidates: ArrayLike, *, normalize: bool = True
    ) -> NDArray[np.float64]:
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

    # -- checks ---------------------------------------------------------------

    def _validate_params(self) -> None:
        """Check types and ranges; the fit checks relations between parameters."""
        validate_parameter_constraints(
            COMMON | self._parameter_constraints,
            self.get_params(deep=False),
            caller_name=type(self).__name__,
        )

    def _columns_needed(self) -> int:
        """Return the columns of X that the parameters ask for; see `columns_needed`."""
        return unless_none(self.order, -1)

    def _columns_of_texts(self) -> int:
        """Return the columns of the windows of a stream; it has none to infer from."""
        self._validate_params()
        if self.get_params(deep=False).get("order", 1) is None:
            raise ValueError(
                "order is None, but a stream has no columns to infer it from: set "
                f"order, for example {type(self).__name__}(order=5)."
            )
        return self._columns_needed()

    def _checked_texts(
        self, ids: Any, name: str, n_words: int | None
    ) -> tuple[list[NDArray[np.int32]], bool]:
        """Return the checked ids of each text, and whether they are a list."""
        self._validate_params()
        boundary = getattr(self, "boundary", None)
        check_boundary(boundary, MAX_N_WORDS if n_words is None else n_words)
        listed = list(ids) if isinstance(ids, (list, tuple)) else []
        is_list = len(listed) > 0 and np.ndim(listed[0]) == 1
        names = [f"{name}[{i}]" for i in range(len(ids))] if is_list else [name]
        with self._inferred_n_words():
            texts = [
                check_ids(own, its_name, ndim=1, n_words=n_words)
                for own, its_name in zip(ids if is_list else [ids], names)
            ]
        if not is_list and len(texts[0]) == 0:
            raise ValueError(f"{name} is empty: there is no token.")
        for its_name, text in zip(names, texts):
            inside = np.flatnonzero(text == boundary)
            if is_list and len(inside):
                raise ValueError(
                    f"{its_name} has the boundary, {boundary}, at {inside[0]}; a list "
                    "of documents has one added to each: remove it, or split the "
                    "document there."
                )
        return texts, is_list

    def _streams(self, ids: Any, ids_val: Any) -> tuple[Texts, Texts | None]:
        """Check the text or documents of a fit, and held-out ones."""
        n_context, n_words = self._columns_of_texts(), self.n_words
        texts = self._texts(ids, "ids", n_context, n_words)
        if ids_val is None:
            return texts, None
        return texts, self._texts(ids_val, "ids_val", n_context, n_words)

    def _texts(self, ids: Any, name: str, n_context: int, n_words: int | None) -> Texts:
        """Check one text or a list of documents, and put them into one array."""
        checked, is_list = self._checked_texts(ids, name, n_words)
        boundary = getattr(self, "boundary", None)
        texts = Texts.of(checked, n_context, boundary, ends=is_list)
        if len(texts) == 0:
            raise ValueError(
                f"{name} has {sum(map(len, checked))} tokens, of which none has "
                f"{n_context} words of context before it; pass more ids."
            )
        return texts

    def _start_fit(
        self, X: ArrayLike, y: ArrayLike | None, *, reset: bool = True
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Check parameters and windows; set ``order_``, ``n_words_``, ``classes_``.

        With ``reset=False`` (a further ``partial_fit``) these attributes stay as they
        are, and the windows must agree with them.
        """
        self._validate_params()
        refuse_usual_mistakes(X, y, type(self).__name__, need_y=True)
        contexts, target = validate_data(self, X, y, reset=reset, **UNCHECKED)
        target = column_or_1d(target, warn=True)
        if not reset:
            self._check_fitted()
            return self._check_ids(contexts, target)
        n_context = contexts.shape[1]
        order = n_context + 1 if self.order is None else plain(self.order)
        if order - 1 > n_context:
            raise ValueError(
                f"order={order} needs contexts of {order - 1} words, but X has "
                f"{n_context} column{'s' if n_context > 1 else ''} "
                f"(n_features={n_context}); make wider windows "
                f"(n_context={order - 1}) or lower order."
            )
        ids = check_ids(contexts, "X", ndim=2, n_words=self.n_words)
        next_words = check_ids(target, "y", ndim=1, n_words=self.n_words)
        self._set_sizes(int(order), ids, next_words)
        return self._nearest(ids), next_words

    def _set_sizes(
        self, order: int, ids: NDArray[np.int32], next_words: NDArray[np.int32]
    ) -> None:
        self.order_ = order
        if self.n_words is None:
            self.n_words_ = inferred_n_words(ids, next_words)
        else:
            self.n_words_ = int(self.n_words)
        self.classes_ = np.arange(self.n_words_)

    def _check_held_out(
        self, X_val: ArrayLike | None, y_val: ArrayLike | None
    ) -> HeldOut | None:
        """Return the checked held-out windows, or None if there are none."""
        if X_val is None and y_val is None:
            return None
        if X_val is None or y_val is None:
            raise ValueError("X_val and y_val go together: give both, or neither.")
        try:
            return self._check_windows(X_val, y_val)
        except ValueError as error:
            raise ValueError(f"In X_val, y_val: {error}") from error

    def _check_X(self, X: ArrayLike) -> NDArray[np.int32]:
        plain = self._plain_ids(X, ndim=2)
        if plain is not None:
            return self._nearest(plain)
        self._check_fitted()
        refuse_usual_mistakes(X, None, type(self).__name__, need_y=False)
        contexts = validate_data(self, X, reset=False, **UNCHECKED)
        return self._check_ids(contexts)[0]

    def _check_Xy(
        self, X: ArrayLike, y: ArrayLike | None
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        plain, next_words = self._plain_ids(X, ndim=2), self._plain_ids(y, ndim=1)
        if (
            plain is not None
            and next_words is not None
            and len(plain) == len(next_words)
        ):
            return self._nearest(plain), next_words
        self._check_fitted()
        return self._check_windows(X, y)

    def _check_fitted(self) -> None:
        """Raise unless the model is fitted and ``n_words_`` is as the fit set it."""
        check_is_fitted(self)
        if self.n_words_ != self._n_known():
            raise ValueError(
                f"n_words_={self.n_words_!r}, but this {type(self).__name__} was "
                f"fitted with {self._n_known()} words: setting n_words_ adds no words "
                "to a fitted model. Set it back; for a larger vocabulary fit again, "
                f"with {type(self).__name__}(n_words=...)."
            )

    def _n_known(self) -> int:
        """Return the size of the vocabulary, from the shapes of the fitted arrays."""
        return self.n_words_

    def _check_windows(
        self, X: ArrayLike, y: ArrayLike | None
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        refuse_usual_mistakes(X, y, type(self).__name__, need_y=True)
        contexts, target = validate_data(self, X, y, reset=False, **UNCHECKED)
        return self._check_ids(contexts, column_or_1d(target, warn=True))

    def _plain_ids(self, values: object, *, ndim: int) -> NDArray[np.int32] | None:
        """Return ids that pass a quick check, or None if the full checks must decide.

        Contexts must have the columns of the fit. If these have names, scikit-learn
        checks them.
        """
        fitted = vars(self)
        if not {"n_words_", "n_features_in_"} <= fitted.keys():
            return None
        if "feature_names_in_" in fitted:
            return None
        ids = plain_ids(values, ndim=ndim, n_words=self.n_words_)
        if ids is None or ndim == 1:
            return ids
        is_as_fitted = (
            ids.shape[1] == fitted["n_features_in_"]
            and fitted["n_words_"] == self._n_known()
        )
        return ids if is_as_fitted else None

    def _check_ids(
        self, X: NDArray[Any], y: NDArray[Any] | None = None
    ) -> tuple[NDArray[np.int32], Any]:
        with self._inferred_n_words():
            X = check_ids(X, "X", ndim=2, n_words=self.n_words_)
            if y is not None:
                y = check_ids(y, "y", ndim=1, n_words=self.n_words_)
        return self._nearest(X), y

    @contextlib.contextmanager
    def _inferred_n_words(self) -> Iterator[None]:
        """Add advice on `n_words` to the error of an id, if `n_words` was inferred."""
        try:
            yield
        except ValueError as error:
            if self.n_words is None and "n_words=" in str(error):
                raise ValueError(
                    f"{error} n_words was inferred from the training windows; to "
                    f"score words they lack, set it to the size of the vocabulary: "
                    f"{type(self).__name__}(n_words=...)."
                ) from None
            raise

    def _check_candidates(
        self, candidates: ArrayLike, n_samples: int
    ) -> NDArray[np.int32]:
        """Return checked candidates, a row for each of `n_samples` contexts."""
        with contextlib.suppress(ValueError):  # ragged: `check_ids` explains it
            candidates = np.asarray(candidates)
        ndim = 1 if getattr(candidates, "ndim", 2) == 1 else 2
        ids = plain_ids(candidates, ndim=ndim, n_words=self.n_words_)
        if ids is None:
            with self._inferred_n_words():
                ids = check_ids(
                    candidates, "candidates", ndim=ndim, n_words=self.n_words_
                )
        if ndim == 1:
            return np.broadcast_to(ids, (n_samples, len(ids)))
        if len(ids) != n_samples:
            raise ValueError(
                f"candidates has {len(ids)} rows, but X has {n_samples}: give each "
                "context its row of candidates, or one list (1-dimensional) for all."
            )
        return ids

    def _nearest(self, X: NDArray[np.int32]) -> NDArray[np.int32]:
        """Keep the columns of the nearest ``order_ - 1`` words."""
        return X[:, X.shape[1] - (self.order_ - 1) :]

    def _blocks(self, n_samples: int) -> Iterator[slice]:
        """Yield slices of rows whose probabilities fit in one block."""
        return blocks_of_rows(n_samples, self.n_words_)

    # -- files ----------------------------------------------------------------

    def _fitted(self) -> dict[str, object]:
        """Return the fitted state for `nplm.save`; a subclass adds its own."""
        fitted: dict[str, object] = {
            "order": self.order_, "n_context": self.n_features_in_,
        }  # fmt: skip
        columns = getattr(self, "feature_names_in_", None)
        return fitted if columns is None else fitted | {"columns": columns.tolist()}

    def _restore(self, fitted: Fitted) -> None:
        """Restore the state that `_fitted` returned, or raise ValueError if invalid."""
        raise NotImplementedError

    def _restore_sizes(self, fitted: Fitted, n_words: int) -> None:
        """Restore the attributes of all models; `n_words` is known from the arrays."""
        self.n_features_in_ = fitted.whole("n_context", 1, MAX_N_WORDS)
        self.order_ = fitted.whole("order", 1, self.n_features_in_ + 1)
        if "columns" in fitted:
            columns = fitted.texts("columns")
            if len(columns) != self.n_features_in_:
                raise fitted.invalid_item("columns", columns)
            self.feature_names_in_ = np.array(columns, dtype=object)
        self.n_words_ = n_words
        self.classes_ = np.arange(n_words)

    # -- scikit-learn ---------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.positive_only = True
        tags.target_tags.required = True
        return tags


class CompositeLM(LanguageModel):
    """Base class of models that are made of other models, their parts.

    A part may be a ``FrozenEstimator``, which was fitted on the same columns or fewer.
    """

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
        self.classes_ = np.arange(n_words)

    def _texts_log_prob_of(self, part: Any, texts: Texts) -> NDArray[np.float64]:
        """Return the log-probability of the tokens of texts by a part."""
        check_not_grown(part, self.n_words_, type(self).__name__)
        if hasattr(part, "_texts_log_prob"):
            return part._texts_log_prob(texts)
        out, X, y = np.empty(len(texts)), texts.X, texts.y
        for tokens in blocks(len(out), BLOCK_WINDOWS):
            rows = texts.rows(tokens)
            out[tokens] = part.log_prob(self._nearest_of(part, X[rows]), y[rows])
        return out

    def _nearest_of(self, part: Any, X: NDArray[np.int32]) -> NDArray[np.int32]:
        """Keep the columns that a part was fitted on."""
        check_not_grown(part, self.n_words_, type(self).__name__)
        return X[:, X.shape[1] - part.n_features_in_ :]


class CheapWords(LanguageModel):
    """Base class of models that score a word in the same time in any vocabulary."""

    def _candidate_log_prob(
        self, X: NDArray[np.int32], candidates: NDArray[np.int32], normalize: bool
    ) -> NDArray[np.float64]:
        out = np.empty(candidates.shape)
        n = candidates.shape[1]
        for rows in blocks_of_rows(len(X), n) if n else ():
            words = candidates[rows]
            log_prob = self._log_prob(np.repeat(X[rows], n, axis=0), words.ravel())
            out[rows] = log_prob.reshape(words.shape)
        return out


class WordsMass:
    """Total probability of a set of words after each context.

    - `model`: the model of the probabilities
    - `words` (n,): distinct ids
    """

    def __init__(self, model: LanguageModel, words: NDArray[np.int32]) -> None:
        self.model, self.words = model, words

    def after(self, X: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the sum of the words' probabilities after each context.

        `X` (n_samples, n_context): contexts, with the columns that the model was fitted
        with. Returns `mass`, (n_samples,).
        """
        mass = np.empty(len(X))
        for rows in blocks_of_rows(len(X), self.model.n_words_):
            proba = self.model.predict_proba(X[rows])
            mass[rows] = proba[:, self.words].sum(axis=1, dtype=np.float64)
        return mass
