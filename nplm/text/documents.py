"""A language model on documents, and what counts as documents."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, DensityMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Hidden, StrOptions
from sklearn.utils.validation import check_is_fitted

from nplm._base import all_or_nothing
from nplm._checks import Whole, check_boundary, check_ids
from nplm.text.windows import windows

__all__ = ["TextLM"]

ITEM = "an array of word ids"
IDS_ADVICE = "Put a Tokenizer and a Vocabulary before the TextLM."


def check_documents(X: Any, item: str, advice: str = "", name: str = "X") -> Any:
    """Return the documents of `X`, else raise an error that says what can be them.

    They are the items of a sequence, or the one column of a DataFrame. What gives
    its keys when it is gone through, or has no order, is not a sequence.
    """
    kind = type(X).__name__
    if isinstance(X, Mapping):
        raise TypeError(
            f"{name} is a {kind}, which goes through its keys, "
            f"{', '.join(map(repr, list(X)[:5]))}: give the documents under one of "
            "them, or list(X.values())."
        )
    if hasattr(X, "columns") and hasattr(X, "__getitem__"):
        columns = list(X.columns)
        if len(columns) == 1:
            return X[columns[0]]
        raise TypeError(
            f"{name} is a {kind} of {len(columns)} columns, and documents are one: "
            f"choose the column that has them, {name}[column], from "
            f"{', '.join(map(repr, columns[:10]))}."
        )
    if (
        isinstance(X, (str, bytes, bytearray, Set))
        or not hasattr(X, "__len__")
        or not hasattr(X, "__iter__")
    ):
        raise TypeError(
            f"{name} must be a list of documents, each {item}, got {kind}; "
            f"a single document is a list of one. {advice}".rstrip()
        )
    return X


def check_document(document: Any, name: str, item: str, advice: str) -> None:
    """Raise an error where there is no document, or none whose items have an order."""
    missing = document is None or type(document).__name__ in ("NAType", "NaTType")
    if isinstance(document, (float, np.floating)):
        missing = math.isnan(document)
    if missing:
        raise TypeError(
            f"{name} is missing ({document!r}), and a document must be {item}: leave "
            "it out, or put an empty one in its place."
        )
    if isinstance(document, (Mapping, Set)):
        raise TypeError(
            f"{name} is a {type(document).__name__}: a document must be {item}. "
            f"{advice}".rstrip()
        )


class TextLM(DensityMixin, BaseEstimator):
    """A language model on documents: windows in, scores of documents out.

    The samples are documents, arrays of word ids. No window crosses from one
    document into another: before its first word a document has the boundary,
    as many times as the window is wide.

    Parameters
    ----------
    estimator : estimator of windows
        A language model such as `KneserNeyLM` or `NeuralLM`. It is cloned, and
        where its ``n_words`` or ``boundary`` is None (or that of an estimator
        inside it), it is told the largest id of the training documents plus
        one, and this `boundary`.
    n_context : int, default=4
        Words of context in a window. An ``order`` of the estimator may be at
        most ``n_context + 1``; a grid search over ``estimator__order`` then
        scores all orders on the same windows.
    boundary : int or "auto", default="auto"
        Id of the boundary. "auto" is 0, the ``boundary_id_`` of a `Vocabulary`, and
        a document in which that occurs is refused: it may be a word there. A
        number says that the id is a mark wherever it occurs, and no context reaches
        past it. For ids of your own take one that no word has.
    predict_boundary : bool, default=True
        Whether the end of a document is a token: predicted in training and
        counted in every score, as Penn Treebank's ``</s>`` is in published
        figures. It changes perplexities by ten per cent and more, so say which
        it was.

    Attributes
    ----------
    estimator_ : estimator
        The fitted clone.
    n_words_ : int
        Ids must be below this.
    boundary_ : int
        The id of the boundary.

    Notes
    -----
    A vocabulary fitted inside a grid search makes ``<unk>`` win: do not search
    ``min_count`` (see `Vocabulary`). Every token counts, ``<unk>`` included;
    `perplexity` can leave it out with `skip`.

    A `Vocabulary` before a `TextLM` in a ``Pipeline`` gives its special symbols
    the lowest ids, so no id of a test fold is above those of the training fold.
    With ids of your own, set ``n_words`` of the estimator, and `boundary`.

    Examples
    --------
    >>> from sklearn.pipeline import Pipeline
    >>> from nplm import InterpolatedTrigram, TextLM, Tokenizer, Vocabulary
    >>> texts = ["a rose is a rose", "is a rose a rose"] * 10
    >>> model = Pipeline([("tokens", Tokenizer()), ("ids", Vocabulary()),
    ...                   ("lm", TextLM(InterpolatedTrigram(), n_context=2))])
    >>> likely, unlikely = model.fit(texts).score_samples(["a rose", "rose rose is"])
    >>> bool(likely > unlikely)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_context": [Whole(1)],
        # None, as of a Vocabulary without a boundary, gets an error of its own.
        "boundary": [StrOptions({"auto"}), Whole(0), Hidden(None)],
        "predict_boundary": ["boolean"],
    }

    def __init__(
        self,
        estimator: Any,
        n_context: int = 4,
        *,
        boundary: int | str = "auto",
        predict_boundary: bool = True,
    ) -> None:
        self.estimator = estimator
        self.n_context = n_context
        self.boundary = boundary
        self.predict_boundary = predict_boundary

    @all_or_nothing
    def fit(
        self,
        X: Sequence[ArrayLike],
        y: Any = None,
        *,
        X_val: Sequence[ArrayLike] | None = None,
    ) -> Self:
        """Fit a clone of the estimator to the windows of the documents.

        Parameters
        ----------
        X : sequence of array-like of int, each of shape (n_tokens,)
            Word ids of each document, without its closing boundary.
        y : ignored
        X_val : sequence of array-like of int, optional
            Held-out documents, for the estimator's early stopping or weights.

        Returns
        -------
        self : TextLM

        Raises
        ------
        TypeError
            If a document is a string, or `X` is one document, a dict or several
            columns.
        ValueError
            If ids are negative or not whole, if there is no token at all, or if a
            document has the id 0 and no `boundary` is given.
        """
        self._validate_params()
        _check_model(self.estimator)
        self.boundary_ = self._check_boundary()
        contexts, targets, _ = self._windows(X, "X")
        estimator = clone(self.estimator)
        n_words = int(max(targets.max(), self.boundary_)) + 1
        known = {"n_words": n_words, "boundary": self.boundary_}
        unset = {
            name: known[name.split("__")[-1]]
            for name, value in estimator.get_params().items()
            if name.split("__")[-1] in known and value is None
        }
        estimator.set_params(**unset)
        held_out = {}
        if X_val is not None:
            held_out["X_val"], held_out["y_val"], _ = self._windows(
                X_val, "X_val", n_known=n_words
            )
        self.estimator_ = estimator.fit(contexts, targets, **held_out)
        self.n_words_ = self.estimator_.n_words_
        return self

    @classmethod
    def from_model(
        cls,
        model: Any,
        *,
        boundary: int | None = None,
        predict_boundary: bool = True,
    ) -> Self:
        """Score documents by a model that is fitted already, or was read from a file.

        Parameters
        ----------
        model : language model
            It is used as it is, and its windows are as wide as they were when it
            was fitted; of a `BackoffLM`, as its longest n-gram needs.
        boundary : int, optional
            Id of the boundary: by default the model's own.
        predict_boundary : bool, default=True
            Whether the end of a document is a token.

        Returns
        -------
        lm : TextLM
            A fitted one.

        Raises
        ------
        TypeError
            If `model` is no language model.
        NotFittedError
            If it is not fitted.
        ValueError
            If it has no boundary of its own and none is given, or one that is none
            of its words.

        Examples
        --------
        >>> from nplm import InterpolatedTrigram, TextLM
        >>> lm = TextLM(InterpolatedTrigram(), n_context=2).fit([[1, 2, 1, 2, 1]] * 9)
        >>> again = TextLM.from_model(lm.estimator_, boundary=0)
        >>> bool(again.score([[2, 1]]) == lm.score([[2, 1]]))
        True
        """
        _check_model(model)
        check_is_fitted(model)
        own = getattr(model, "boundary", None)
        if boundary is None and own is None:
            raise ValueError(
                f"this {type(model).__name__} has no boundary: give the id of the mark "
                "that ends a document, boundary=0 for example."
            )
        boundary = int(own if boundary is None else boundary)
        check_boundary(boundary, model.n_words_)
        lm = cls(
            model,
            n_context=model.n_features_in_,
            boundary=boundary,
            predict_boundary=predict_boundary,
        )
        lm._validate_params()
        lm.boundary_, lm.estimator_, lm.n_words_ = boundary, model, model.n_words_
        return lm

    def add_words(self, X: Sequence[ArrayLike]) -> Self:
        """Add words that training never saw, where the estimator can take them.

        Parameters
        ----------
        X : sequence of array-like of int, each of shape (n_tokens,)
            Documents in which they occur, by ids that follow on from ``n_words_``: a
            `Vocabulary`'s after its ``add_words``. Contexts that have the word itself,
            or one with a larger id, do not count.

        Returns
        -------
        self : TextLM

        Raises
        ------
        TypeError
            If the estimator has no ``add_words``, as `EnergyLM` has.
        ValueError
            If an id leaves a gap, or a new word has no context of words before it. The
            model then stays as it was.

        Examples
        --------
        >>> from nplm import EnergyLM, TextLM, Vocabulary
        >>> texts = [["a", "rose", "is", "a", "rose"]] * 20
        >>> vocabulary = Vocabulary().fit(texts)
        >>> lm = TextLM(EnergyLM(random_state=0), n_context=2)
        >>> lm = lm.fit(vocabulary.transform(texts))
        >>> new = [["is", "a", "tulip"]]
        >>> ids = vocabulary.add_words(["tulip"])
        >>> lm.add_words(vocabulary.transform(new)).n_words_ == vocabulary.n_words_
        True
        """
        check_is_fitted(self)
        if not hasattr(self.estimator_, "add_words"):
            raise TypeError(
                f"{type(self.estimator_).__name__} cannot take new words: fit a "
                "TextLM(EnergyLM()), which can."
            )
        contexts, targets, _ = self._windows(X, "X", n_known=self.n_words_)
        known = contexts.max(axis=1, initial=-1) < targets
        new = np.flatnonzero(known & (targets >= self.n_words_))
        new = new[np.argsort(targets[new], kind="stable")]
        # No array of all ids up to the largest: that may be any number.
        last, found = targets.max(), np.unique(targets[new])
        n_met = int((found == self.n_words_ + np.arange(len(found))).sum())
        missing = self.n_words_ + n_met
        if missing <= last:
            raise ValueError(
                f"X has the id {last}, but {missing} is nowhere after words "
                f"with smaller ids only: ids of new words follow on from "
                f"n_words_={self.n_words_}, in the order in which they are met."
            )
        # As many at once as have no other new word in their contexts.
        while len(new):
            together = contexts[new].max(axis=1, initial=-1) < self.n_words_
            whole = targets[new] < targets[new][~together].min(initial=missing)
            self.estimator_.add_words(contexts[new[whole]], targets[new[whole]])
            self.n_words_, new = self.estimator_.n_words_, new[~whole]
        return self

    def score_samples(self, X: Sequence[ArrayLike]) -> NDArray[np.float64]:
        """Log-probability of each document.

        Parameters
        ----------
        X : sequence of array-like of int, each of shape (n_tokens,)
            Word ids of each document.

        Returns
        -------
        log_prob : ndarray of float64, shape (n_documents,)
            Natural logarithm, summed over the tokens of the document; 0 for an
            empty document whose boundary is not predicted.
        """
        log_prob, _, document = self._log_prob(X)
        return np.bincount(document, weights=log_prob, minlength=len(X)).astype(
            np.float64, copy=False
        )

    def score(self, X: Sequence[ArrayLike], y: Any = None) -> float:
        """Mean natural-log probability a token, over the tokens of all documents.

        Parameters
        ----------
        X : sequence of array-like of int, each of shape (n_tokens,)
            Word ids of each document.
        y : ignored

        Returns
        -------
        score : float
        """
        return float(np.mean(self._log_prob(X)[0]))

    def perplexity(self, X: Sequence[ArrayLike], *, skip: int | None = None) -> float:
        """``exp(-score)``, pooled over the tokens of all documents.

        Parameters
        ----------
        X : sequence of array-like of int, each of shape (n_tokens,)
            Word ids of each document.
        skip : int, optional
            A word that is not counted where it is the next word, the
            ``unknown_id_`` of a `Vocabulary`: the toolkits' perplexity
            "excluding OOVs". It stays in the contexts.

        Returns
        -------
        perplexity : float

        Raises
        ------
        ValueError
            If no token is left to count.
        """
        log_prob, targets, _ = self._log_prob(X)
        if skip is not None:
            log_prob = log_prob[targets != skip]
            if len(log_prob) == 0:
                raise ValueError(
                    f"every token of X is skip={skip}: none is left to count."
                )
        with np.errstate(over="ignore"):
            return float(np.exp(-np.mean(log_prob)))

    def next_words(
        self, context: ArrayLike = (), k: int = 5
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Most probable next words.

        Parameters
        ----------
        context : array-like of int, shape (n_tokens,), default=()
            Word ids from the start of a document; the nearest `n_context` count.
        k : int, default=5
            How many words.

        Returns
        -------
        words : ndarray of int32, shape (k,)
            Ids, the most probable first; fewer than `k` in a small vocabulary.
        proba : ndarray of float64, shape (k,)
            Their probabilities.
        """
        if k < 1:
            raise ValueError(f"k must be 1 or more, got {k}.")
        proba = self._next_proba(self._check_document(context, "context"))
        words = np.argsort(-proba, kind="stable")[:k].astype(np.int32)
        return words, proba[words]

    def generate(
        self,
        context: ArrayLike = (),
        *,
        max_words: int = 50,
        temperature: float = 1.0,
        random_state: Any = None,
    ) -> NDArray[np.int32]:
        """Draw the words that follow, one by one, up to the boundary.

        Parameters
        ----------
        context : array-like of int, shape (n_tokens,), default=()
            Word ids from the start of a document.
        max_words : int, default=50
            Stop after this many words if no boundary was drawn before.
        temperature : float, default=1.0
            Probabilities are raised to ``1 / temperature`` and renormalised:
            below 1 the probable words are drawn more often still.
        random_state : int, RandomState instance or None, default=None
            An int draws the same words each time.

        Returns
        -------
        words : ndarray of int32, shape (n_drawn,)
            Ids, without `context` and without the boundary.
        """
        if max_words < 0:
            raise ValueError(f"max_words must be 0 or more, got {max_words}.")
        if not temperature > 0:
            raise ValueError(f"temperature must be above 0, got {temperature}.")
        random = check_random_state(random_state)
        start = self._check_document(context, "context")
        words = start.tolist()
        while len(words) < len(start) + int(max_words):
            proba = self._next_proba(words[-int(self.n_context) :])
            # Relative to the largest, so that a low temperature cannot underflow.
            proba = (proba / proba.max()) ** (1 / temperature)
            word = int(random.choice(len(proba), p=proba / proba.sum()))
            if word == self.boundary_:
                break
            words.append(word)
        return np.array(words[len(start) :], dtype=np.int32)

    def _next_proba(self, context: ArrayLike) -> NDArray[np.float64]:
        # The last window has all of `context` before it, whatever word follows.
        stream = np.append(np.asarray(context, dtype=np.int32), self.boundary_)
        contexts, _ = windows(stream, self.n_context, boundary=self.boundary_)
        return self.estimator_.predict_proba(contexts[-1:])[0].astype(np.float64)

    def _log_prob(
        self, X: Sequence[ArrayLike]
    ) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.intp]]:
        """Log-probability, id and document of each token."""
        check_is_fitted(self)
        contexts, targets, document = self._windows(X, "X", self.n_words_)
        return self.estimator_.log_prob(contexts, targets), targets, document

    def _check_boundary(self) -> int:
        if isinstance(self.boundary, str) and self.boundary == "auto":
            return 0
        if self.boundary is None:
            raise ValueError(
                "boundary=None: documents need the id of a mark that ends them; give "
                "the Vocabulary a boundary, and its boundary_id_ here."
            )
        return int(self.boundary)

    def _check_document(self, ids: ArrayLike, name: str) -> NDArray[np.int32]:
        check_is_fitted(self)
        document = _checked_ids(ids, name, self.n_words_)
        self._refuse_marks([document], [name], self.n_words_)
        return document

    def _refuse_marks(
        self, documents: list[NDArray[np.int32]], names: list[str], n_known: int
    ) -> None:
        """Raise where a document has the id 0 and nobody said that it is a mark.

        Ids below `n_known` may be words of other documents.
        """
        if self.boundary != "auto":
            return
        for ids, name in zip(documents, names):
            if not ids.all():
                largest = max(int(ids.max(initial=0)) for ids in documents)
                largest = max(largest, n_known - 1)
                raise ValueError(
                    f"{name} has the id 0 at {int(ids.argmin())}, and TextLM takes 0 "
                    "for the boundary unless it is told which id that is. Where 0 is "
                    "a word, set boundary to an id that no word has (here the largest "
                    f"is {largest}: boundary={largest + 1}); where it ends a sentence "
                    "inside a document, set boundary=0. Then fit."
                )

    def _windows(
        self,
        X: Sequence[ArrayLike],
        name: str,
        n_words: int | None = None,
        *,
        n_known: int = 0,
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.intp]]:
        """Contexts, next words, and the document of each."""
        X = check_documents(X, ITEM, IDS_ADVICE, name)
        names = [f"{name}[{i}]" for i in range(len(X))]
        documents = [_checked_ids(ids, where, n_words) for ids, where in zip(X, names)]
        self._refuse_marks(documents, names, n_words or n_known)
        lengths = np.array([len(ids) + 1 for ids in documents], dtype=np.intp)
        if lengths.sum() == (0 if self.predict_boundary else len(documents)):
            raise ValueError(
                f"{name} has {len(documents)} documents and no token: give at least "
                "one document that is not empty."
            )
        end = np.array([self.boundary_], dtype=np.int32)
        stream = np.concatenate([part for ids in documents for part in (ids, end)])
        contexts, targets = windows(stream, self.n_context, boundary=self.boundary_)
        document = np.repeat(np.arange(len(documents)), lengths)
        if self.predict_boundary:
            return contexts, targets, document
        inside = np.ones(len(stream), dtype=bool)
        inside[np.cumsum(lengths) - 1] = False
        return contexts[inside], targets[inside], document[inside]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.no_validation = True
        tags.input_tags.two_d_array = False
        return tags


def _check_model(estimator: Any) -> None:
    if not hasattr(estimator, "log_prob"):
        raise TypeError(
            "estimator must be a language model with log_prob, such as KneserNeyLM, "
            f"got {estimator!r}."
        )


def _checked_ids(ids: ArrayLike, name: str, n_words: int | None) -> NDArray[np.int32]:
    if isinstance(ids, (str, bytes)):
        raise TypeError(
            f"{name} is a string, {ids[:30]!r}: a document must be an array of word "
            f"ids. {IDS_ADVICE}"
        )
    check_document(ids, name, ITEM, IDS_ADVICE)
    if not isinstance(ids, Sequence) and np.ndim(ids) == 0:
        raise TypeError(
            f"{name} is {ids!r}: a document must be an array of word ids; a single "
            "document is a list of one."
        )
    try:
        return check_ids(ids, name, ndim=1, n_words=n_words)
    except TypeError as error:  # items of which no number can be made
        raise TypeError(f"{name} must hold word ids, whole numbers: {error}.") from None
    except ValueError as error:
        if n_words is None or f"n_words={n_words}" not in str(error):
            raise
        raise ValueError(
            f"{error} To score words that the training documents lack, set n_words "
            "of the TextLM's estimator to the size of the vocabulary."
        ) from None
