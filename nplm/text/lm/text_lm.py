"""TextLM: a language model on documents. Text in, text out."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils._param_validation import HasMethods, Hidden, StrOptions
from sklearn.utils.validation import check_is_fitted

from nplm.base.atomic import fit_aside, fitted_or_interrupted
from nplm.base.checks import Whole, check_boundary, check_over_words, inferred_n_words
from nplm.base.fitted import Fitted
from nplm.base.pages import Documented
from nplm.text.codecs import codec_of, learned
from nplm.text.lm.continuing import Continuing
from nplm.text.lm.scoring import Scoring
from nplm.text.tokenizer import BETWEEN_BLANKS, Tokenizer
from nplm.text.vocabulary import UNKNOWN, Vocabulary
from nplm.text.word_rows import matched_rows

__all__ = ["TextLM"]


class TextLM(Scoring, Continuing, DensityMixin, Documented, BaseEstimator):
    """A language model on documents: text in, text out.

    The samples are documents, and there are three kinds: strings, lists of tokens (or
    of any hashable events, such as the lines of a log), and arrays of word ids. What
    the model is fitted on is what it scores and what it answers in. Documents are ids
    if all their tokens are numbers. If one token is not a number, all are events.

    No window crosses from one document into another: before its first word a document
    has the boundary, as many times as the window is wide.

    Parameters
    ----------
    estimator : estimator of windows
        A language model such as `KneserNeyLM` or `NeuralLM`. It is cloned, and
        where its ``n_words`` or ``boundary`` is None (or that of an estimator
        inside it), it is told the size of the vocabulary, and the boundary.
        ``embeddings`` and ``word_features`` of a network may be given by word, as
        `NeuralLM` says, and are matched with the vocabulary.
    n_context : int, default=4
        Words of context in a window. An ``order`` of the estimator may be at
        most ``n_context + 1``; a grid search over ``estimator__order`` then
        scores all orders on the same windows.
    tokenizer : "auto", transformer or None, default="auto"
        What splits strings. It is cloned. "auto" is a `Tokenizer` where the
        documents are strings, else None.
    vocabulary : "auto", Vocabulary or None, default="auto"
        What gives words their ids. It is cloned, and fitted to the documents, unless
        it has ``words`` of its own. "auto" is a `Vocabulary` of all their words,
        and None where the documents are numbers, which are then the ids.
    boundary : int or "auto", default="auto"
        Id of the boundary. "auto" is the ``boundary_id_`` of the vocabulary. Without a
        vocabulary it is 0, and a document in which that occurs is refused: it may be a
        word there. A number says that the id is a mark wherever it occurs, and no
        context reaches past it. For ids of your own take one that no word has.
    predict_boundary : bool, default=True
        Whether the end of a document is a token: predicted in training and
        counted in every score, as Penn Treebank's ``</s>`` is in published
        figures. It changes perplexities by ten per cent and more, so say which
        it was.

    Attributes
    ----------
    estimator_ : estimator
        The fitted clone.
    tokenizer_ : transformer or None
        What splits strings.
    vocabulary_ : Vocabulary or None
        The fitted vocabulary; None where documents are ids.
    n_words_ : int
        Size of the vocabulary: ids must be below this.
    boundary_ : int
        The id of the boundary.

    See Also
    --------
    nplm.formats.read_arpa : ``TextLM.from_model(*read_arpa(path))`` is the model of a
        file.

    Notes
    -----
    A vocabulary fitted inside a grid search makes ``<unk>`` win: do not search
    ``vocabulary__min_count`` (see `Vocabulary`). Every token counts, ``<unk>``
    included; `perplexity` can leave it out with `skip`.

    With ids of your own, set ``n_words`` of the estimator, and `boundary`. A
    `Tokenizer` and a `Vocabulary` may also stand before a `TextLM` in a ``Pipeline``,
    which then sees ids.

    Examples
    --------
    >>> from nplm import InterpolatedTrigram, TextLM
    >>> texts = ["a rose is a rose", "is a rose a rose"] * 10
    >>> lm = TextLM(InterpolatedTrigram(), n_context=2).fit(texts)
    >>> likely, unlikely = lm.score_samples(["a rose", "rose rose is"])
    >>> bool(likely > unlikely)
    True
    >>> lm.next_words("a rose is", k=1)[0]
    ['a']
    >>> lm.generate("a rose is", temperature=0.01, max_words=2, random_state=0)
    'a rose'

    Events that are no words:

    >>> sessions = [["login", ("read", 3), "logout"], ["login", "logout"]] * 20
    >>> lm = TextLM(InterpolatedTrigram(), n_context=2).fit(sessions)
    >>> lm.score_samples([["login", "login"]]).shape
    (1,)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_context": [Whole(1)],
        "tokenizer": [StrOptions({"auto"}), HasMethods(["fit", "transform"]), None],
        # A list of words gets an error that names `Vocabulary.from_words`.
        "vocabulary": [StrOptions({"auto"}), Vocabulary, None, Hidden("array-like")],
        # None, as of a Vocabulary without a boundary, gets an error of its own.
        "boundary": [StrOptions({"auto"}), Whole(0), Hidden(None)],
        "predict_boundary": ["boolean"],
    }

    def __init__(
        self,
        estimator: Any,
        n_context: int = 4,
        *,
        tokenizer: Any = "auto",
        vocabulary: Vocabulary | str | None = "auto",
        boundary: int | str = "auto",
        predict_boundary: bool = True,
    ) -> None:
        self.estimator = estimator
        self.n_context = n_context
        self.tokenizer = tokenizer
        self.vocabulary = vocabulary
        self.boundary = boundary
        self.predict_boundary = predict_boundary

    @classmethod
    def from_model(
        cls,
        model: Any,
        words: Sequence[Any] | Vocabulary | None = None,
        *,
        tokenizer: Any = "auto",
        boundary: int | None = None,
        predict_boundary: bool = True,
    ) -> Self:
        """Make a text model of a fitted model of windows, and of its words.

        Parameters
        ----------
        model : language model
            Fitted, or read from a file. It is used as it is, and its windows are as
            wide as they were when it was fitted; of a `BackoffLM`, as its longest
            n-gram needs.
        words : sequence of hashable, shape (n_words_,), or Vocabulary, optional
            The word of each id. Where ``<unk>`` (or ``<UNK>``) is among them it
            stands for unknown words; else these are refused (of an ARPA file,
            ``read_arpa(path, add_unknown=True)`` adds it). Without words documents
            are ids.
        tokenizer : "auto", transformer or None, default="auto"
            What splits strings: "auto" takes what stands between blanks, as the
            toolkits that write such files do. None for documents of tokens.
        boundary : int, optional
            Id of the boundary: by default the model's own, or the vocabulary's.
        predict_boundary : bool, default=True
            Whether the end of a document is a token.

        Returns
        -------
        lm : TextLM
            A fitted one. To `fit` it again learns nothing.

        Raises
        ------
        TypeError
            If ``model`` is no language model.
        NotFittedError
            If it is not fitted.
        ValueError
            If there is not a word for each id, no boundary, or one that is no id.

        Examples
        --------
        >>> from nplm import InterpolatedTrigram, TextLM, windows
        >>> X, y = windows([1, 2, 3, 0] * 20, 2, boundary=0)
        >>> model = InterpolatedTrigram().fit(X, y)
        >>> words = ["</s>", "good", "morning", "world"]
        >>> lm = TextLM.from_model(model, words, boundary=0)
        >>> lm.next_words("good", k=1)[0]
        ['morning']

        A file of KenLM or SRILM::

            lm = TextLM.from_model(*nplm.formats.read_arpa("model.arpa.gz"))
        """
        _check_model(model)
        check_is_fitted(model)
        check_over_words(model, "the model")
        if boundary is None:
            boundary = getattr(model, "boundary", None)
        if boundary is None and isinstance(words, Vocabulary):
            boundary = words.boundary_id_
        if boundary is None:
            raise ValueError(
                f"this {type(model).__name__} has no boundary: give the id of the mark "
                "that ends a document, boundary=0 for example."
            )
        check_boundary(boundary, model.n_words_)
        if words is None:
            tokenizer, vocabulary = None, None
        else:
            vocabulary = _vocabulary_of(words, model.n_words_, int(boundary))
        if isinstance(tokenizer, str) and tokenizer == "auto":
            tokenizer = Tokenizer(BETWEEN_BLANKS)
        lm = cls(
            FrozenEstimator(model),
            model.n_features_in_,
            tokenizer=tokenizer,
            vocabulary=vocabulary,
            boundary=int(boundary),
            predict_boundary=predict_boundary,
        )
        lm._validate_params()
        lm.tokenizer_, lm.vocabulary_ = tokenizer, vocabulary
        lm.boundary_ = int(boundary)
        lm.estimator_, lm.n_words_ = model, model.n_words_
        return lm

    def fit(
        self, X: Sequence[Any], y: Any = None, *, X_val: Any = None, **fit_params: Any
    ) -> Self:
        """Learn the vocabulary, and fit a clone of the estimator to the windows.

        Parameters
        ----------
        X : sequence of str, of sequence of hashable, or of array-like of int
            Documents: strings, lists of tokens or events, or word ids. A list, an
            array, a Series, or a DataFrame of one column.
        y : ignored
        X_val : sequence of documents, optional
            Held-out documents, for the estimator's early stopping or weights.
        **fit_params
            Handed to the estimator's ``fit``, such as ``checkpoint="folder"`` of a
            network.

        Returns
        -------
        self : TextLM

        Raises
        ------
        TypeError
            If `X` is one document, a dict or several columns, or its documents are of
            different kinds.
        ValueError
            If ids are negative or not whole, if there is no token at all, or if a
            document of ids has the id 0 and no `boundary` is given. If the estimator
            has an array of embeddings, features or classes of words, or a
            ``FrozenEstimator``, but the vocabulary is fitted here: the ids of words are
            then not known beforehand.
        KeyboardInterrupt
            On an interrupt. If the estimator keeps what it has learned so far, as a
            network does, this model is fitted with it; else it stays as it was before
            the fit.
        """
        return fit_aside(self, lambda model: model._fit(X, y, X_val, fit_params))

    def _fit(
        self, X: Sequence[Any], y: Any, X_val: Any, fit_params: dict[str, Any]
    ) -> KeyboardInterrupt | None:
        """Fit, and give the interrupt after which the estimator is fitted, if any."""
        self._validate_params()
        _check_model(self.estimator)
        _check_vocabulary(self.vocabulary)
        _refuse_windows(X, y)
        codec, documents = learned(X, self.tokenizer, self.vocabulary)
        self.tokenizer_, self.vocabulary_ = codec.tokenizer, codec.vocabulary
        self.boundary_ = self._check_boundary()
        contexts, targets, _ = self._tokens(documents, "X")
        estimator = clone(self.estimator)
        n_words = int(max(targets.max(), self.boundary_)) + 1
        if self.vocabulary_ is not None:
            n_words = self.vocabulary_.n_words_
        known = {"n_words": n_words, "boundary": self.boundary_}
        unset = {
            name: known[name.split("__")[-1]]
            for name, value in estimator.get_params().items()
            if name.split("__")[-1] in known and value is None
        }
        if self.vocabulary_ is None and n_words in unset.values():
            inferred_n_words(targets, np.array([self.boundary_]), "X and boundary")
        told = unset | matched_rows(estimator, self.vocabulary_)
        if told:  # what is frozen can be told nothing
            estimator.set_params(**told)
        held_out = {}
        if X_val is not None:
            own = codec.encode(X_val, "X_val", None)
            tokens = self._tokens(own, "X_val", n_known=n_words)
            held_out = {"X_val": tokens.contexts, "y_val": tokens.targets}
        fitted, interrupt = fitted_or_interrupted(
            estimator, contexts, targets, **held_out, **fit_params
        )
        if isinstance(fitted, FrozenEstimator):
            fitted = fitted.estimator
        check_over_words(fitted, "the estimator")
        if self.vocabulary_ is not None and fitted.n_words_ != n_words:
            raise ValueError(
                f"the vocabulary has {n_words} words, but the estimator "
                f"n_words={fitted.n_words_}: leave n_words to the TextLM, or give the "
                "vocabulary that a fitted model was made with."
            )
        self.estimator_, self.n_words_ = fitted, fitted.n_words_
        return interrupt

    def add_words(self, X: Sequence[Any]) -> Self:
        """Add words that training never saw, where the estimator can take them.

        Parameters
        ----------
        X : sequence of documents
            In which they occur: strings or tokens, all whose unknown words are added,
            also those that were too rare for the vocabulary. Or ids, new ones
            following on from ``n_words_``. Contexts that have the word itself, or one
            that comes later, do not count.

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
        >>> from nplm import EnergyLM, TextLM
        >>> texts = ["a rose is a rose"] * 20
        >>> lm = TextLM(EnergyLM(random_state=0), n_context=2).fit(texts)
        >>> lm.add_words(["is a tulip"]).vocabulary_.words_.tolist()
        ['</s>', '<unk>', 'a', 'rose', 'is', 'tulip']
        """
        check_is_fitted(self)
        if not hasattr(self.estimator_, "add_words"):
            raise TypeError(
                f"{type(self.estimator_).__name__} cannot take new words: fit a "
                "TextLM(EnergyLM()), which can."
            )
        vocabulary = deepcopy(self.vocabulary_)
        codec = codec_of(self.tokenizer_, vocabulary)
        codec.add_unknown(X)
        documents = codec.encode(X, "X", None)
        contexts, targets, _ = self._tokens(documents, "X", n_known=self.n_words_)
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
        self.vocabulary_ = vocabulary
        return self

    def _check_boundary(self) -> int:
        boundary: Any = self.boundary
        if isinstance(boundary, str) and boundary == "auto":
            if self.vocabulary_ is None:
                return 0
            boundary = self.vocabulary_.boundary_id_
        if boundary is None:
            raise ValueError(
                "boundary=None: documents need the id of a mark that ends them; give "
                "the Vocabulary a boundary, and its boundary_id_ here."
            )
        return int(boundary)

    def _fitted(self) -> dict[str, Any]:
        return {
            "estimator": self.estimator_,
            "tokenizer": self.tokenizer_,
            "vocabulary": self.vocabulary_,
            "boundary": self.boundary_,
        }

    def _restore(self, fitted: Fitted) -> None:
        self.estimator_ = fitted.estimator("estimator")
        _check_model(self.estimator_)
        check_over_words(self.estimator_, "the estimator")
        self.n_words_ = self.estimator_.n_words_
        self.boundary_ = fitted.whole("boundary", 0, self.n_words_ - 1)
        self.tokenizer_ = fitted.take("tokenizer", Tokenizer, type(None))
        self.vocabulary_ = fitted.take("vocabulary", Vocabulary, type(None))
        known = self.n_words_ if self.vocabulary_ is None else self.vocabulary_.n_words_
        if known != self.n_words_:
            raise ValueError(f"its vocabulary has {known} words, not {self.n_words_}")

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


def _check_vocabulary(vocabulary: Any) -> None:
    """Raise where a list of words is given in place of a vocabulary."""
    if not (vocabulary is None or isinstance(vocabulary, (str, Vocabulary))):
        raise TypeError(
            f"vocabulary must be a Vocabulary, 'auto' or None, got "
            f"{type(vocabulary).__name__}: make one of these words, "
            "vocabulary=Vocabulary.from_words(words)."
        )


def _vocabulary_of(
    words: Sequence[Any] | Vocabulary, n_words: int, boundary: int
) -> Vocabulary:
    """Make the vocabulary of a model's words, which stays as it is when cloned."""
    known = list(words.words_ if isinstance(words, Vocabulary) else words)
    if len(known) != n_words:
        raise ValueError(
            f"words are {len(known)}, but the model has n_words_={n_words}: give the "
            "word of each id, in order."
        )
    if isinstance(words, Vocabulary):
        unknown = words.unknown
    else:
        unknown = next((mark for mark in UNKNOWN if mark in known), None)
    return Vocabulary.from_words(known, unknown=unknown, boundary=known[boundary])


def _refuse_windows(X: Any, y: Any) -> None:
    """Raise where windows and next words came instead of documents."""
    if y is not None and isinstance(X, np.ndarray) and X.ndim == 2:
        raise ValueError(
            f"X and y, of shapes {X.shape} and {np.shape(y)}, look like windows and "
            "next words: fit the estimator itself to them. A TextLM takes documents, "
            "and makes the windows."
        )
