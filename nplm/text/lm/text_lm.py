"""TextLM: a language model of documents. Text in, text out."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from copy import deepcopy
from dataclasses import field
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils._param_validation import HasMethods, Hidden, StrOptions
from sklearn.utils.validation import check_is_fitted, check_scalar

from nplm.base.array_types import Floats
from nplm.base.atomic import all_or_nothing, fit_copy, shallow_copy
from nplm.base.checks import check_over_words, check_weights, plain
from nplm.base.estimators.bases import (
    DensityMixin,
    DocumentEstimator,
    Whole,
    hyperparameters,
)
from nplm.base.fitted import Fitted, Item, invalid_item
from nplm.base.generators import private_generator
from nplm.text.codec_fitting import repeated
from nplm.text.embeddings import learned_features, nearest_rows
from nplm.text.lm import text_fitting
from nplm.text.lm.drawing import check_drawing
from nplm.text.lm.fitted_text import FittedText, fitted_text
from nplm.text.lm.scorer import Scorer
from nplm.text.lm.text_scores import TextScores, TokenScores
from nplm.text.lm.window_scorer import WindowWordScorer
from nplm.text.subwords.subwords import Subwords
from nplm.text.tokenizer import Tokenizer
from nplm.text.vocabulary import Vocabulary
from nplm.text.words.known_words import KnownWords


@hyperparameters
class TextLM(DensityMixin, DocumentEstimator):
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

    # Scores single words with a model without n-grams.
    window_scorer: ClassVar[Any] = WindowWordScorer

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
        text = text_fitting.text_of_model(
            model, words, tokenizer, boundary, predict_boundary
        )
        lm = cls(
            FrozenEstimator(model),
            text.n_context,
            tokenizer=text.codec.tokenizer,
            vocabulary=text.codec.vocabulary,
            boundary=text.boundary,
            predict_boundary=predict_boundary,
        )
        lm._validate_params()
        lm._assign(text)
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
        text, interrupt = text_fitting.fit_documents(self, X, X_val, fit_params, method)
        self._assign(text)
        return interrupt

    def _assign(self, text: FittedText) -> None:
        """Set the fitted attributes."""
        self.estimator_, self.n_words_ = text.model, text.model.n_words_
        self.tokenizer_, self.vocabulary_ = text.codec.tokenizer, text.codec.vocabulary
        self.boundary_, self.n_context_ = text.boundary, text.n_context

    # -- scores -----------------------------------------------------------------

    def score_samples(self, X: Sequence[object]) -> Floats:
        """Return the log-probability of each document.

        Parameters
        ----------
        X : sequence of documents
            Of the kind that the model was fitted on.

        Returns
        -------
        log_prob : ndarray of float64, shape (n_documents,)
            Natural logarithm, summed over the tokens of the document; 0 for an
            empty document whose boundary is not predicted.
        """
        return fitted_text(self).score_samples(X)

    def score(
        self, X: Sequence[object], y: object = None, sample_weight: object = None
    ) -> float:
        """Return the mean natural-log probability per token of all documents.

        Parameters
        ----------
        X : sequence of documents
            Of the kind that the model was fitted on.
        y : ignored
        sample_weight : array-like of shape (n_documents,), optional
            How often the tokens of each document count.

        Returns
        -------
        score : float
        """
        tokens = fitted_text(self).tokens(X)
        weights = None
        if sample_weight is not None:
            weights = check_weights(sample_weight, len(tokens.lengths))
            weights = np.repeat(weights, tokens.lengths)
        return float(np.average(tokens.log_prob, weights=weights))

    def token_scores(
        self, X: Sequence[object], *, bos: bool = True, eos: bool | None = None
    ) -> list[TokenScores]:
        """Return the log-probability of each token, and how it was obtained.

        Parameters
        ----------
        X : sequence of documents
            Of the kind that the model was fitted on.
        bos : bool, default=True
            Whether each document begins a sentence. If False, the context of its first
            word is empty, as in KenLM; only backoff n-grams (`KneserNeyLM`,
            `BackoffLM`) support this.
        eos : bool, optional
            Whether the end of each document counts; ``predict_boundary`` by default.

        Returns
        -------
        scores : list of TokenScores
            One per document: ``words``, ``log_prob``, ``unknown``, and the ``order`` of
            the longest n-gram found or the ``weights`` of members.

        Raises
        ------
        ValueError
            If `bos` is False and the model needs whole windows.

        Examples
        --------
        >>> from nplm import InterpolatedTrigram, TextLM
        >>> lm = TextLM(InterpolatedTrigram()).fit(["to be or not to be"] * 9)
        >>> [scores] = lm.token_scores(["to see"])
        >>> scores.words, scores.unknown.tolist()
        (['to', '<unk>', '</s>'], [False, True, False])
        >>> scores.weights.shape  # of p_0 to p_3
        (3, 4)
        """
        scorer = self.scorer()
        tokens = scorer.tokens(X, bos=bos, eos=eos, details=True)
        words = scorer.codec.words
        return [
            TokenScores(words(d.ids), d.log_prob, d.unknown, d.order, d.weights)
            for d in tokens.documents()
        ]

    def scorer(self) -> Scorer:
        """Make a `Scorer`, which is fast in loops because it skips validation.

        Returns
        -------
        scorer : Scorer
            Uses the model as it is now.

        Examples
        --------
        >>> from nplm import InterpolatedTrigram, TextLM
        >>> lm = TextLM(InterpolatedTrigram()).fit(["to be or not to be"] * 9)
        >>> scorer = lm.scorer()
        >>> log_prob, state = scorer.step(scorer.begin(), "to")
        >>> abs(scorer.score("to be") - lm.score_samples(["to be"])[0]) < 1e-9
        np.True_
        """
        return fitted_text(self).scorer()

    def perplexity(
        self, X: Sequence[object], *, skip: object = None, per_document: bool = False
    ) -> Any:
        """Return ``exp(-score)`` of all documents together, or of each.

        Parameters
        ----------
        X : sequence of documents
            Of the kind that the model was fitted on.
        skip : word or int, optional
            A word that is not counted as next word, such as ``"<unk>"`` (its id where
            documents are ids): the toolkits' perplexity "excluding OOVs". It stays in
            the contexts.
        per_document : bool, default=False
            Whether to return the perplexity of each document instead.

        Returns
        -------
        perplexity : float, or ndarray of float64, shape (n_documents,)
            NaN for a document without tokens that count.

        Raises
        ------
        ValueError
            If no token is left to count, or `skip` is not in the vocabulary.
        """
        return fitted_text(self).perplexity(X, skip, per_document)

    def text_scores(self, X: Iterable[str]) -> TextScores:
        """Return scores that compare between models with different tokens.

        Parameters
        ----------
        X : iterable of str
            Documents, as in `fit`; they may be a stream. They are scored in blocks.

        Returns
        -------
        scores : TextScores
            Bits per character and per byte, perplexities of words and of tokens, and
            the counts behind them, of all documents together. Bits include how unknown
            words are spelled.

        Raises
        ------
        TypeError
            If the model was not fitted on strings.
        ValueError
            If there is no token.

        Warns
        -----
        UserWarning
            If there are unknown words and the model cannot spell them: bits per
            character are then NaN.

        Examples
        --------
        >>> from nplm import KneserNeyLM, Subwords, TextLM
        >>> texts = ["to be or not to be", "not to be or to be"] * 9
        >>> ngrams = KneserNeyLM(discount_fallback=(0.5, 1, 1.5))  # the text is small
        >>> words = TextLM(ngrams).fit(texts)
        >>> characters = TextLM(ngrams, tokenizer=Subwords("characters")).fit(texts)
        >>> scores = words.text_scores(["to be"])
        >>> scores.n_tokens, scores.n_words, scores.n_characters
        (3, 3, 6)
        >>> other = characters.text_scores(["to be"])
        >>> other.n_tokens, other.n_words, other.n_characters
        (6, 3, 6)
        >>> scores.perplexity == scores.word_perplexity
        True
        """
        return fitted_text(self).text_scores(X)

    # -- words ------------------------------------------------------------------

    def next_words(
        self,
        context: object = (),
        k: int = 5,
        *,
        exclude: Iterable[object] = (),
        unknown: bool = False,
    ) -> tuple[Any, Floats]:
        """Return the most probable next words.

        Parameters
        ----------
        context : document, default=()
            The start of one document, of the kind that the model was fitted on; its
            last ``n_context_`` words count.
        k : int, default=5
            Number of words.
        exclude : iterable of words, default=()
            Words to leave out, such as ``["</s>"]``.
        unknown : bool, default=False
            Whether the vocabulary's symbol for unknown words, ``<unk>``, may be among
            the words.

        Returns
        -------
        words : list of length k, or ndarray of int32
            The most probable first; ids where documents are ids. Fewer than `k` in a
            small vocabulary.
        proba : ndarray of float64, shape (k,)
            Their probabilities. If words are left out, ``<unk>`` or others, these are
            conditional on the next word being none of them.

        Raises
        ------
        ValueError
            If `k` is out of range, a word is not in the vocabulary, or no word is left
            that has any probability.

        Examples
        --------
        >>> from nplm import InterpolatedTrigram, TextLM
        >>> lm = TextLM(InterpolatedTrigram()).fit(["to be or not to be"] * 9)
        >>> words, proba = lm.next_words("not to", k=2)
        >>> words[0], bool(proba[0] > proba[1])
        ('be', True)
        """
        check_scalar(k, "k", Integral, min_val=1)
        text = fitted_text(self)
        document = text.codec.encode_one(context, "context")
        return text.words_after(document, k, text.excluded(exclude, unknown))

    def generate(
        self,
        context: Any = (),
        n: int | None = None,
        *,
        min_words: int = 0,
        max_words: int = 50,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        exclude: Iterable[object] = (),
        unknown: bool = False,
        with_context: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> Any:
        """Generate the words that follow a context, one by one, up to the boundary.

        Parameters
        ----------
        context : document, default=()
            The start of one document, of the kind that the model was fitted on.
        n : int, optional
            Number of texts to generate, returned as a list. By default one text, not
            in a list.
        min_words : int, default=0
            Do not draw the boundary before this many words: with 1, no text is empty.
        max_words : int, default=50
            Stop after this many words if no boundary was drawn before.
        temperature : float, default=1.0
            Probabilities are raised to the power of ``1 / temperature`` and
            renormalised: below 1, probable words become more probable.
        top_k : int, optional
            Draw from this many most probable words only.
        top_p : float, optional
            Draw from the fewest words whose probabilities sum to at least this
            (nucleus sampling), after `temperature` and `top_k`.
        exclude : iterable of words, default=()
            Words that are never drawn.
        unknown : bool, default=False
            Whether the vocabulary's symbol for unknown words, ``<unk>``, may be drawn.
        with_context : bool, default=False
            Whether the texts begin with `context`.
        random_state : int, RandomState instance or None, default=None
            An int draws the same words each time.

        Returns
        -------
        words : str, list of tokens, or ndarray of int32; or a list of them
            The generated words, of the kind that the model was fitted on, without the
            boundary, and without `context` by default. The tokenizer joins them to a
            string by its ``inverse_transform``; without one, spaces do.

        Raises
        ------
        ValueError
            If a number is out of range, a word is not in the vocabulary, or no word is
            left that has any probability.

        References
        ----------
        A. Holtzman, J. Buys, L. Du, M. Forbes and Y. Choi (2020). The curious case of
        neural text degeneration. ICLR.

        A. Fan, M. Lewis and Y. Dauphin (2018). Hierarchical neural story generation.
        ACL.

        Examples
        --------
        >>> from nplm import InterpolatedTrigram, TextLM
        >>> lm = TextLM(InterpolatedTrigram()).fit(["to be or not to be"] * 9)
        >>> lm.generate("or not", top_k=1)
        'to be'
        >>> lm.generate("or not", top_k=1, with_context=True)
        'or not to be'
        >>> len(lm.generate(n=3, random_state=0))
        3
        """
        check_drawing(
            n=n, min_words=min_words, max_words=max_words, temperature=temperature,
            top_k=top_k, top_p=top_p,
        )  # fmt: skip
        text, n_drawn = fitted_text(self), 1 if n is None else int(n)
        excluded = text.excluded(exclude, unknown)
        texts = text.generated(
            context, n_drawn, int(min_words), int(max_words), excluded,
            private_generator(random_state), with_context=with_context,
            temperature=plain(temperature), top_k=top_k, top_p=top_p,
        )  # fmt: skip
        return texts[0] if n is None else texts

    def sample(
        self,
        n_samples: int = 1,
        *,
        max_words: int = 1000,
        random_state: int | np.random.RandomState | None = None,
    ) -> list[Any]:
        """Draw documents from the model, unknown words included, as `generate` does.

        Parameters
        ----------
        n_samples : int, default=1
            Number of documents.
        max_words : int, default=1000
            End a document after this many words.
        random_state : int, RandomState instance or None, default=None
            An int draws the same documents each time.

        Returns
        -------
        documents : list
            Of the kind that the model was fitted on.

        Examples
        --------
        >>> from nplm import InterpolatedTrigram, TextLM
        >>> lm = TextLM(InterpolatedTrigram()).fit(["to be or not to be"] * 9)
        >>> len(lm.sample(3, random_state=0))
        3
        """
        check_scalar(n_samples, "n_samples", Integral, min_val=1)
        return self.generate(
            n=n_samples, max_words=max_words, unknown=True, random_state=random_state
        )

    def nearest(
        self, word: Hashable, k: int = 10, *, among: int | None = 2000
    ) -> tuple[Any, Floats]:
        """Return the words with the most similar features learned by a network.

        Parameters
        ----------
        word : str or other word of the vocabulary; int where documents are ids
            The word whose neighbours are returned.
        k : int, default=10
            Number of neighbours.
        among : int or None, default=2000
            Search only this many words of the lowest ids: with a `Vocabulary`, the
            most frequent. The features of rare words hardly differ from their initial
            values. None searches all words.

        Returns
        -------
        words : list, or ndarray of int32
            The nearest first.
        cosines : ndarray of float64
            Cosine similarity of their features to those of `word`, rows of ``C_``
            (section 2).

        Raises
        ------
        TypeError
            If neither the estimator nor a member of it has word features (``C_``).
        ValueError
            If `word` is not in the vocabulary.

        Examples
        --------
        >>> from nplm import NeuralLM, TextLM
        >>> texts = ["the cat sat", "the dog sat", "a cat ran", "a dog ran"] * 50
        >>> network = NeuralLM(n_hidden=10, embedding_dim=10, learning_rate_init=0.01,
        ...                    random_state=0)
        >>> lm = TextLM(network, n_context=2).fit(texts)
        >>> words, cosines = lm.nearest("cat", k=1)
        >>> words
        ['dog']
        """
        text = fitted_text(self)
        features = learned_features(text.model)
        [i] = text.codec.encode_words([word])
        ids, cosines = nearest_rows(features, i, k, among)
        return text.codec.words(ids), cosines

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

    @all_or_nothing
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
        # Words are added in several steps, to copies: an error leaves all unchanged.
        self.estimator_ = shallow_copy(self.estimator_)
        self.vocabulary_ = deepcopy(self.vocabulary_)
        text_fitting.add_words(self, X)
        self.n_words_ = self.estimator_.n_words_
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
