"""TextLM: a language model of documents. Text in, text out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import field
from typing import Any, ClassVar, Self

from sklearn.frozen import FrozenEstimator
from sklearn.utils._param_validation import HasMethods, Hidden, StrOptions
from sklearn.utils.validation import check_is_fitted

from nplm.base.atomic import fit_copy
from nplm.base.checks import check_over_words
from nplm.base.estimators.bases import (
    DensityMixin,
    DocumentEstimator,
    Whole,
    hyperparameters,
)
from nplm.base.fitted import Fitted, Item, invalid_item
from nplm.text.codec_fitting import repeated
from nplm.text.lm import text_fitting
from nplm.text.lm.continuing import Continuing
from nplm.text.lm.text_scoring import Scoring
from nplm.text.subwords.subwords import Subwords
from nplm.text.tokenizer import Tokenizer
from nplm.text.vocabulary import Vocabulary
from nplm.text.words.known_words import KnownWords


@hyperparameters
class TextLM(Scoring, Continuing, DensityMixin, DocumentEstimator):
    """A language model of documents: text in, text out.

    The samples are documents of one of three kinds: strings, lists of tokens (or
    of any hashable events, such as the lines of a log), and arrays of word ids. A model
    scores and returns the kind of documents that it was fitted on. Documents are ids
    if all their tokens are numbers. If one token is not a number, all are events.

    A document may be a tuple instead of a list. The items of a document are its events,
    so a tuple inside a document is one event: ``[("read", 3)]`` is a document of one
    event. Methods take a list of documents as `X`, and one document as `context`.

    No window spans two documents: the context of the first word of a document consists
    of boundaries.

    Parameters
    ----------
    estimator : estimator of windows
        A language model such as `KneserNeyLM` or `NeuralLM`. It is cloned. If its
        ``n_words`` or ``boundary`` is None (or that of an estimator inside it), it is
        set to the size of the vocabulary, or to the boundary. ``embeddings`` and
        ``word_features`` of a network may be given by word (see `Features`), and are
        matched with the vocabulary.
    n_context : int or "auto", default="auto"
        Words of context in a window. "auto" is what the estimator needs: ``order - 1``
        words, more for its ``n_distant``, ``n_memory`` or ``length``, and 4 where these
        do not say (``order=None`` uses all words of the window). Every token of a
        document is scored with any `n_context`, so a grid search over
        ``estimator__order`` scores all orders on the same tokens.
    tokenizer : "auto", transformer or None, default="auto"
        Splits strings into tokens. It is cloned, and fitted to the documents. "auto" is
        a `Tokenizer` if the documents are strings, else None. `Subwords` splits words
        into units; a ``tokenizers.Tokenizer``, a SentencePiece model or a
        ``tiktoken.Encoding`` in its place is one of these.
    vocabulary : "auto", Vocabulary or None, default="auto"
        Maps words to ids. It is cloned, and fitted to the documents unless its
        ``words`` are given. "auto" is a `Vocabulary` of all words of the documents,
        or of all units of `Subwords`, or None if the documents are numbers, which are
        then the ids.
    boundary : int or "auto", default="auto"
        Id of the boundary. "auto" is the ``boundary_id_`` of the vocabulary. Without a
        vocabulary it is 0, and documents that contain 0 are refused, because 0 may be
        a word there. If you give an id, it ends a sentence wherever it occurs, and no
        context reaches past it. For your own ids, choose one that no word has.
    predict_boundary : bool, default=True
        Whether the end of a document is a token: predicted in training and
        counted in every score, as Penn Treebank's ``</s>`` is in published
        figures. It changes perplexities by ten per cent and more, so report it.
    handle_unknown : {"symbol", "error"}, default="symbol"
        What a fitted model does with words or events that are not in its vocabulary:
        count them as its symbol for unknown words, ``<unk>``, or raise an error. It may
        be set after the fit.

    Attributes
    ----------
    estimator_ : estimator
        The fitted clone.
    tokenizer_ : transformer or None
        The fitted tokenizer.
    vocabulary_ : Vocabulary or None
        The fitted vocabulary; None where documents are ids.
    n_words_ : int
        Size of the vocabulary: ids must be below this.
    n_context_ : int
        Words of context in a window.
    boundary_ : int
        The id of the boundary.

    See Also
    --------
    nplm.formats.read_arpa : Read a model from a file, for
        ``TextLM.from_model(*read_arpa(path))``.

    Notes
    -----
    A grid search over ``vocabulary__min_count`` prefers the vocabulary with the most
    ``<unk>``: do not search it (see `Vocabulary`). Every token counts, ``<unk>``
    included; `perplexity` can leave it out with `skip`.

    For your own ids, set ``n_words`` of the estimator, and `boundary`. A `Tokenizer`
    and a `Vocabulary` may also precede a `TextLM` in a ``Pipeline``; the documents of
    the `TextLM` are then ids.

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

    Events instead of words:

    >>> sessions = [["login", ("read", 3), "logout"], ["login", "logout"]] * 20
    >>> lm = TextLM(InterpolatedTrigram(), n_context=2).fit(sessions)
    >>> lm.score_samples([["login", "login"]]).shape
    (1,)
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        "n_context": [StrOptions({"auto"}), Whole(1)],
        "tokenizer": [
            StrOptions({"auto"}),
            HasMethods(["fit", "transform"]),
            HasMethods(["encode", "decode"]),  # a model of subwords
            None,
        ],
        # A list of words gets an error that names `Vocabulary.from_words`.
        "vocabulary": [StrOptions({"auto"}), Vocabulary, None, Hidden("array-like")],
        # None, the boundary_id_ of a Vocabulary without one, gets an error of its own.
        "boundary": [StrOptions({"auto"}), Whole(0), Hidden(None)],
        "predict_boundary": ["boolean"],
        "handle_unknown": [StrOptions({"symbol", "error"})],
    }

    estimator: Any = field(kw_only=False)
    n_context: int | str = field(default="auto", kw_only=False)
    tokenizer: Any = "auto"
    vocabulary: Vocabulary | str | None = "auto"
    boundary: int | str = "auto"
    predict_boundary: bool = True
    handle_unknown: str = "symbol"

    def set_params(self, **params: object) -> Self:
        """Set parameters of this model, or ``name__parameter`` of a part.

        Parameters
        ----------
        **params
            Parameters by name. ``tokenizer__lowercase`` and ``vocabulary__min_count``
            are set on a `Tokenizer` and a `Vocabulary` also where "auto" chooses them.

        Returns
        -------
        self : TextLM
        """
        for name, part in (("tokenizer", Tokenizer), ("vocabulary", Vocabulary)):
            value = params.get(name, getattr(self, name))
            is_auto = isinstance(value, str) and value == "auto"
            prefix = f"{name}__"
            inner = [key for key in params if key.startswith(prefix)]
            if is_auto and inner:
                inner_params = {
                    key.removeprefix(prefix): params.pop(key) for key in inner
                }
                params[name] = part().set_params(**inner_params)
        return super().set_params(**params)

    @classmethod
    def from_model(
        cls,
        model: object,
        words: Sequence[object] | Vocabulary | KnownWords | None = None,
        *,
        tokenizer: object = "auto",
        boundary: int | None = None,
        predict_boundary: bool = True,
    ) -> Self:
        """Make a text model from a fitted model of windows and its words.

        Parameters
        ----------
        model : language model
            Fitted, or read from a file. It is used without a copy. The width of its
            windows is that of its fit; for a `BackoffLM`, that of its longest n-gram.
        words : sequence of hashable, shape (n_words_,), or Vocabulary, optional
            The word of each id. If ``<unk>`` (or ``<UNK>``) is among them, it stands
            for unknown words; else unknown words are refused (for an ARPA file,
            ``read_arpa(path, add_unknown=True)`` adds it). Without words, documents
            are ids.
        tokenizer : "auto", transformer or None, default="auto"
            Splits strings into tokens. "auto" splits at whitespace, as the toolkits
            that write such files do. None for documents of tokens.
        boundary : int, optional
            Id of the boundary; by default that of the model, else of the vocabulary.
        predict_boundary : bool, default=True
            Whether the end of a document is a token.

        Returns
        -------
        lm : TextLM
            A fitted text model. Its `fit` learns nothing.

        Raises
        ------
        TypeError
            If ``model`` is not a language model.
        NotFittedError
            If it is not fitted.
        ValueError
            If `words` does not have one word per id, or if the boundary is missing or
            not an id of the model.

        Examples
        --------
        >>> from nplm import InterpolatedTrigram, TextLM, windows
        >>> X, y = windows([1, 2, 3, 0] * 20, 2, boundary=0)
        >>> model = InterpolatedTrigram().fit(X, y)
        >>> words = ["</s>", "good", "morning", "world"]
        >>> lm = TextLM.from_model(model, words, boundary=0)
        >>> lm.next_words("good", k=1)[0]
        ['morning']

        A model file of KenLM or SRILM::

            lm = TextLM.from_model(*nplm.formats.read_arpa("model.arpa.gz"))
        """
        parts = text_fitting.parts_of_model(model, words, tokenizer, boundary)
        tokenizer, vocabulary, boundary, n_context = parts
        lm = cls(
            FrozenEstimator(model),
            n_context,
            tokenizer=tokenizer,
            vocabulary=vocabulary,
            boundary=boundary,
            predict_boundary=predict_boundary,
        )
        lm._validate_params()
        text_fitting.set_fitted(lm, model, *parts)
        return lm

    def fit(
        self,
        X: Iterable[object],
        y: object = None,
        *,
        X_val: object = None,
        sample_weight: object = None,
        **fit_params: object,
    ) -> Self:
        """Fit the vocabulary, and a clone of the estimator to the windows.

        Parameters
        ----------
        X : iterable of str, of sequence of hashable, or of array-like of int
            Documents: strings, lists of tokens or events, or word ids. A list, an
            array, a Series, or a DataFrame of one column. Or a stream, of any size: an
            iterable without a length, such as `nplm.datasets.TextLines`, a generator,
            a function that returns one, or an open file, whose lines with words are
            documents.
        y : ignored
        X_val : iterable of documents, optional
            Held-out documents, for the estimator's early stopping or weights.
        sample_weight : array-like of shape (n_documents,), optional
            How often each document of `X`, not a stream, counts. Whole numbers make the
            model of documents that are repeated so often in place. `NeuralLM` and
            `EnergyLM` take fractions, too. See the Notes.
        **fit_params
            Passed to ``fit`` of the estimator, such as ``checkpoint="folder"`` of a
            network.

        Returns
        -------
        self : TextLM

        Raises
        ------
        TypeError
            If `X` is one document, a dict or several columns, or its documents are of
            different kinds. If it is an iterator, and the tokenizer has to read it
            first.
        ValueError
            If ids or weights are negative or not whole, if there is no token at all, or
            if a document of ids has the id 0 and no `boundary` is given. If the
            estimator has an array of embeddings, features or classes of words, or a
            ``FrozenEstimator``, but the vocabulary is fitted here: the ids of words are
            then not known in advance.
        OSError
            If the disk of a stream's temporary files is full.
        KeyboardInterrupt
            On an interrupt. If the estimator keeps what it has learned, as a network
            does, this model is fitted with it; else it stays as it was before the fit.

        Notes
        -----
        A stream gives the same model as a list of its documents. It is read once (twice
        if the tokenizer learns from it), and its documents are not kept: ids (8 bytes a
        token, and ``4 * n_context_`` a document) and windows (``4 * (n_context_ + 1)``
        bytes a token) go to files in the folder of temporary files,
        ``tempfile.gettempdir()``, which the system keeps in memory as long as there is
        room. Networks with LSTM cells read ids, without windows. Besides, the text
        takes memory for the distinct tokens and 50 bytes a document. The first document
        of a stream decides whether documents are text, tokens or ids.

        The estimator takes memory of its own. A network takes 4 bytes a token, besides
        its weights. The memory of n-grams grows with the distinct ones: a `KneserNeyLM`
        took 55 bytes a token of 16 million at order 3, and 210 of 2 million at order 5.
        `nplm.formats.estimate_binary` estimates n-grams on disk.

        **Weights.** A network visits a document of weight 2.3 twice in each epoch, and
        three tenths of its tokens once more: those from a random place on, another in
        each epoch. On average, the gradients of an epoch are those of the weighted sum
        of losses, and an epoch has as many tokens as the weights say, so that weights
        with a mean of 1 leave its duration and the learning rate as they were. Held-out
        losses are weighted means. The tokenizer and the vocabulary read a document as
        often as its weight says, rounded up; of weight 0, not at all.

        Examples
        --------
        >>> from nplm import InterpolatedTrigram, TextLM
        >>> def texts():
        ...     for i in range(100):
        ...         yield "a rose is a rose"
        >>> lm = TextLM(InterpolatedTrigram(), n_context=2).fit(texts)
        >>> lm.next_words("a rose is", k=1)[0]
        ['a']
        """
        if sample_weight is not None:
            text_fitting.refuse_windows(X, y)
            takes_fractions = getattr(type(self.estimator), "takes_fractions", False)
            whole_of = "" if takes_fractions else type(self.estimator).__name__
            X, weights = repeated(X, sample_weight, whole_of)
            if weights is not None:
                fit_params["sample_weight"] = weights
        return fit_copy(self, lambda model: model._fit(X, y, X_val, fit_params))

    def partial_fit(
        self, X: Iterable[object], y: object = None, **fit_params: object
    ) -> Self:
        """Train further on documents, by ``partial_fit`` of the estimator.

        The first call fits the vocabulary to its documents, as `fit` does; words that
        occur only in later ones are unknown. To choose the words beforehand, set
        ``vocabulary=Vocabulary(words=words)``. After `fit`, a call continues from the
        fitted model.

        Parameters
        ----------
        X : iterable of documents
            As in `fit`; of later calls, of the kind of the first.
        y : ignored
        **fit_params
            Passed to ``partial_fit`` of the estimator.

        Returns
        -------
        self : TextLM

        Raises
        ------
        TypeError
            If the estimator has no ``partial_fit``; networks and `KneserNeyLM` have.
        ValueError
            As in `fit`.

        Notes
        -----
        A network trains one epoch on the documents of each call. It sees them in an
        order that is random within a call only, and has no early stopping. If you can
        read all documents again, `fit` of a stream is better. A `KneserNeyLM` estimates
        its probabilities again in each call, in a time that grows with all the
        documents so far: make few calls, or `fit` a stream.

        Examples
        --------
        >>> from nplm import NeuralLM, TextLM, Vocabulary
        >>> vocabulary = Vocabulary(words=["a", "rose", "is"])
        >>> lm = TextLM(NeuralLM(random_state=0), vocabulary=vocabulary)
        >>> for _ in range(3):
        ...     lm = lm.partial_fit(["a rose is a rose"] * 100)
        >>> lm.next_words("a rose is a", k=1)[0]
        ['rose']
        """
        if not hasattr(self.estimator, "partial_fit"):
            raise TypeError(
                f"{type(self.estimator).__name__} has no partial_fit: fit all "
                "documents at once, which may be a stream of any size."
            )
        if not hasattr(self, "estimator_"):
            return fit_copy(
                self, lambda model: model._fit(X, y, None, fit_params, "partial_fit")
            )
        text_fitting.refuse_windows(X, y)
        text_fitting.fit_further(self, X, fit_params)
        return self

    def _fit(
        self,
        X: Iterable[object],
        y: object,
        X_val: object,
        fit_params: dict[str, object],
        method: str = "fit",
    ) -> KeyboardInterrupt | None:
        """Fit; return the interrupt if one came and left the estimator fitted."""
        self._validate_params()
        text_fitting.refuse_windows(X, y)
        return text_fitting.fit_documents(self, X, X_val, fit_params, method)

    def unigrams(self) -> list[Any]:
        """Return the words of the model, for decoders.

        Those of n-grams are their unigrams.

        Returns
        -------
        words : list of str, or of other tokens
            All words in the order of their ids, without the boundary and the symbol for
            unknown words.

        Raises
        ------
        TypeError
            If documents are word ids, without words.

        Examples
        --------
        >>> from nplm import InterpolatedTrigram, TextLM
        >>> TextLM(InterpolatedTrigram()).fit(["a rose is a rose"] * 9).unigrams()
        ['a', 'rose', 'is']
        """
        check_is_fitted(self)
        if self.vocabulary_ is None:
            raise TypeError(
                "unigrams() needs words, but this model was fitted on ids; fit it on "
                "strings or tokens, or give its words to TextLM.from_model."
            )
        symbols = {self.boundary_, self.vocabulary_.unknown_id_}
        words = enumerate(self.vocabulary_.words_.tolist())
        return [word for i, word in words if i not in symbols]

    def add_words(self, X: Sequence[object]) -> Self:
        """Add words that were not in training, if the estimator supports it.

        Parameters
        ----------
        X : sequence of documents
            Documents with the new words. All unknown words of strings or tokens are
            added, also those that were too rare for the vocabulary. New ids must
            continue from ``n_words_``. Contexts with the word itself, or with a later
            new word, are ignored.

        Returns
        -------
        self : TextLM

        Raises
        ------
        TypeError
            If the estimator has no ``add_words``; `EnergyLM` has.
        ValueError
            If ids have a gap, or a new word has no context of earlier words. The model
            is then unchanged.

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
        text_fitting.add_words(self, X, vocabulary)
        self.vocabulary_, self.n_words_ = vocabulary, self.estimator_.n_words_
        return self

    _saved: ClassVar[dict[str, Item]] = {
        "estimator": Item(Fitted.estimator),
        "tokenizer": Item(Fitted.take, Tokenizer, Subwords, type(None)),
        "vocabulary": Item(Fitted.take, Vocabulary, type(None)),
        "boundary": Item(Fitted.whole),
    }

    def _set_saved(self, values: dict[str, Any]) -> None:
        super()._set_saved(values)
        model, vocabulary = self.estimator_, self.vocabulary_
        text_fitting.check_model(model)
        check_over_words(model, "the estimator")
        if self.tokenizer_ is not None:
            check_is_fitted(self.tokenizer_)
        self.n_words_, self.n_context_ = model.n_words_, model.n_features_in_
        if self.boundary_ >= self.n_words_:
            raise invalid_item("boundary", self.boundary_)
        n_known = self.n_words_ if vocabulary is None else vocabulary.n_words_
        if n_known != self.n_words_:
            raise ValueError(f"its vocabulary has {n_known} words, not {self.n_words_}")
