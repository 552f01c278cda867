"""TextLM: a language model on documents. Text in, text out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, DensityMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Hidden, StrOptions
from sklearn.utils.validation import check_is_fitted

from nplm._base import all_or_nothing
from nplm._blocks import blocks_of_rows
from nplm._checks import Whole, check_boundary, plain
from nplm._fitted import Fitted
from nplm._pages import Documented
from nplm.text.codecs import Codec, codec_of, learned
from nplm.text.documents import Documents, Tokens
from nplm.text.drawing import check_drawing, drawn, sharpened, without
from nplm.text.embeddings import nearest_rows
from nplm.text.scorer import Scorer, splitter_of
from nplm.text.token_scores import TokenScores
from nplm.text.tokenizer import BETWEEN_BLANKS, Tokenizer
from nplm.text.vocabulary import Vocabulary
from nplm.text.walkers import WindowWalker

__all__ = ["TextLM", "features_of"]

# The toolkits' symbols of unknown words.
UNKNOWN = ("<unk>", "<UNK>")


class TextLM(DensityMixin, Documented, BaseEstimator):
    """A language model on documents: text in, text out.

    The samples are documents, and there are three kinds: strings, lists of tokens (or
    of any hashable events, such as the lines of a log), and arrays of word ids. What
    the model is fitted on is what it scores and what it answers in.

    No window crosses from one document into another: before its first word a document
    has the boundary, as many times as the window is wide.

    Parameters
    ----------
    estimator : estimator of windows
        A language model such as `KneserNeyLM` or `NeuralLM`. It is cloned, and
        where its ``n_words`` or ``boundary`` is None (or that of an estimator
        inside it), it is told the size of the vocabulary, and the boundary.
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
        "vocabulary": [StrOptions({"auto"}), Vocabulary, None],
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
            stands for unknown words; else these are refused. Without words documents
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

    @all_or_nothing
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
            document of ids has the id 0 and no `boundary` is given.
        """
        self._validate_params()
        _check_model(self.estimator)
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
        if unset:  # what is frozen can be told nothing
            estimator.set_params(**unset)
        held_out = {}
        if X_val is not None:
            own = codec.encode(X_val, "X_val", None)
            tokens = self._tokens(own, "X_val", n_known=n_words)
            held_out = {"X_val": tokens.contexts, "y_val": tokens.targets}
        fitted = estimator.fit(contexts, targets, **held_out, **fit_params)
        if isinstance(fitted, FrozenEstimator):
            fitted = fitted.estimator
        if self.vocabulary_ is not None and fitted.n_words_ != n_words:
            raise ValueError(
                f"the vocabulary has {n_words} words, but the estimator "
                f"n_words={fitted.n_words_}: leave n_words to the TextLM, or give the "
                "vocabulary that a fitted model was made with."
            )
        self.estimator_, self.n_words_ = fitted, fitted.n_words_
        return self

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

    def score_samples(self, X: Sequence[Any]) -> NDArray[np.float64]:
        """Log-probability of each document.

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
        sentences = self._codec.sentences(X)
        walker = None
        if sentences is not None:
            walker = self._own_walker(at_least=len(sentences))
        if walker is not None:
            return walker.sentences(sentences, True, bool(self.predict_boundary))
        log_prob, tokens = self._log_prob(X)
        return np.bincount(tokens.document, weights=log_prob, minlength=len(X)).astype(
            np.float64, copy=False
        )

    def score(self, X: Sequence[Any], y: Any = None) -> float:
        """Mean natural-log probability a token, over the tokens of all documents.

        Parameters
        ----------
        X : sequence of documents
            Of the kind that the model was fitted on.
        y : ignored

        Returns
        -------
        score : float
        """
        return float(np.mean(self._log_prob(X)[0]))

    def token_scores(
        self, X: Sequence[Any], *, bos: bool = True, eos: bool | None = None
    ) -> list[TokenScores]:
        """Log-probability of each token, and where it comes from.

        Parameters
        ----------
        X : sequence of documents
            Of the kind that the model was fitted on.
        bos : bool, default=True
            Whether documents begin where they begin. False is a piece of text: before
            its first word there is nothing, as KenLM has it, which only n-grams that
            back off (`KneserNeyLM`, `BackoffLM`) can take for a context.
        eos : bool, optional
            Whether documents end where they end; `predict_boundary` by default.

        Returns
        -------
        scores : list of TokenScores
            One a document: ``words``, ``log_prob``, ``unknown``, and the ``order`` of
            the n-gram found or the ``weights`` of members.

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
        codec = self._codec
        eos = bool(self.predict_boundary if eos is None else eos)
        documents = codec.encode(X, "X", self.n_words_)
        self._refuse_marks(documents, lambda i: f"X[{i}]", self.n_words_)
        log_prob, details = self._walker().tokens(*documents, bool(bos), eos)
        last = np.cumsum(documents.lengths + eos)
        ids = np.full(len(log_prob), self.boundary_, dtype=np.int32)
        inside = np.ones(len(ids), dtype=bool)
        if eos:
            inside[last - 1] = False
        ids[inside] = documents.ids
        unknown = np.zeros(len(ids), dtype=bool)
        if self.vocabulary_ is not None:
            unknown = ids == self.vocabulary_.unknown_id_
        return [
            TokenScores(
                codec.words(ids[i:j]), log_prob[i:j], unknown[i:j],
                **{name: values[i:j] for name, values in details.items()},
            )
            for i, j in zip([0, *last.tolist()], last.tolist())
        ]  # fmt: skip

    def scorer(self) -> Scorer:
        """Make what scores in a loop, and checks nothing again.

        Returns
        -------
        scorer : Scorer
            Of the model as it is now.

        Notes
        -----
        n-grams that back off are put into a hash table, which takes as long as to score
        a window for every few of them; it is kept for all later scores.

        Examples
        --------
        >>> from nplm import InterpolatedTrigram, TextLM
        >>> lm = TextLM(InterpolatedTrigram()).fit(["to be or not to be"] * 9)
        >>> scorer = lm.scorer()
        >>> log_prob, state = scorer.step(scorer.begin(), "to")
        >>> abs(scorer.score("to be") - lm.score_samples(["to be"])[0]) < 1e-9
        np.True_
        """
        split = splitter_of(self._codec.tokenizer)
        return Scorer(self._walker(), split, eos=bool(self.predict_boundary))

    def perplexity(
        self, X: Sequence[Any], *, skip: Any = None, per_document: bool = False
    ) -> Any:
        """``exp(-score)``, pooled over the tokens of all documents, or of each.

        Parameters
        ----------
        X : sequence of documents
            Of the kind that the model was fitted on.
        skip : word or int, optional
            A word that is not counted where it is the next word, such as ``"<unk>"``
            (its id where documents are ids): the toolkits' perplexity "excluding
            OOVs". It stays in the contexts.
        per_document : bool, default=False
            Whether to give the perplexity of each document instead.

        Returns
        -------
        perplexity : float, or ndarray of float64, shape (n_documents,)
            NaN for a document of which no token counts.

        Raises
        ------
        ValueError
            If no token is left to count, or `skip` is no word of the vocabulary.
        """
        log_prob, tokens = self._log_prob(X)
        document = tokens.document
        if skip is not None:
            [skipped] = self._codec.encode_words([skip], self.n_words_)
            counts = tokens.targets != skipped
            log_prob, document = log_prob[counts], document[counts]
            if len(log_prob) == 0:
                raise ValueError(
                    f"every token of X is skip={skip!r}: none is left to count."
                )
        with np.errstate(over="ignore", invalid="ignore"):
            if not per_document:
                return float(np.exp(-np.mean(log_prob)))
            total = np.bincount(document, weights=log_prob, minlength=len(X))
            return np.exp(-total / np.bincount(document, minlength=len(X)))

    def next_words(
        self, context: Any = (), k: int = 5, *, exclude: Iterable[Any] = ()
    ) -> tuple[Any, NDArray[np.float64]]:
        """Most probable next words.

        Parameters
        ----------
        context : document, default=()
            The start of a document, of the kind that the model was fitted on; its
            last `n_context` words count.
        k : int, default=5
            How many words.
        exclude : iterable of words, default=()
            Words that are not wanted, such as ``["<unk>", "</s>"]``. The probabilities
            are then those of the others among themselves.

        Returns
        -------
        words : list of length k, or ndarray of int32
            The most probable first; ids where documents are ids. Fewer than `k` in a
            small vocabulary.
        proba : ndarray of float64, shape (k,)
            Their probabilities.

        Examples
        --------
        >>> from nplm import InterpolatedTrigram, TextLM
        >>> lm = TextLM(InterpolatedTrigram()).fit(["to be or not to be"] * 9)
        >>> words, proba = lm.next_words("not to", k=2)
        >>> words[0], bool(proba[0] > proba[1])
        ('be', True)
        """
        if k < 1:
            raise ValueError(f"k must be 1 or more, got {k}.")
        codec, start = self._codec, self._start(context)
        excluded = codec.encode_words(exclude, self.n_words_)
        [proba] = without(self._next_proba(start[np.newaxis]), excluded)
        best = np.argsort(-proba, kind="stable")[: min(k, len(proba) - len(excluded))]
        return codec.words(best.astype(np.int32)), proba[best]

    def generate(
        self,
        context: Any = (),
        n: int | None = None,
        *,
        max_words: int = 50,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        exclude: Iterable[Any] = (),
        random_state: int | np.random.RandomState | None = None,
    ) -> Any:
        """Draw the words that follow, one by one, up to the boundary.

        Parameters
        ----------
        context : document, default=()
            The start of a document, of the kind that the model was fitted on.
        n : int, optional
            How many times, for a list; once by default.
        max_words : int, default=50
            Stop after this many words if no boundary was drawn before.
        temperature : float, default=1.0
            Probabilities are raised to ``1 / temperature`` and renormalised:
            below 1 the probable words are drawn more often still.
        top_k : int, optional
            Draw from this many words only, the most probable.
        top_p : float, optional
            Draw from the fewest words that have this much probability together
            (nucleus sampling), after `temperature` and `top_k`.
        exclude : iterable of words, default=()
            Words never drawn, such as ``["<unk>"]``.
        random_state : int, RandomState instance or None, default=None
            An int draws the same words each time.

        Returns
        -------
        words : str, list of tokens, or ndarray of int32; or a list of them
            What follows, as the documents of the fit were given, without `context`
            and without the boundary. The words of a string have blanks between them.

        Raises
        ------
        ValueError
            If a number is out of range, or a word is not in the vocabulary.

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
        >>> len(lm.generate(n=3, random_state=0))
        3
        """
        check_drawing(
            n=n, max_words=max_words, temperature=temperature, top_k=top_k, top_p=top_p
        )
        codec, start = self._codec, self._start(context)
        excluded = codec.encode_words(exclude, self.n_words_)
        random = check_random_state(random_state)
        shape = {"temperature": plain(temperature), "top_k": top_k, "top_p": top_p}
        n_drawn = 1 if n is None else int(n)
        last = np.tile(start, (n_drawn, 1))
        words = np.full((n_drawn, int(max_words)), self.boundary_, dtype=np.int32)
        # Those that go on: the others have drawn their boundary.
        live = np.arange(n_drawn)
        for step in range(int(max_words)):
            for rows in blocks_of_rows(len(live), self.n_words_):
                proba = without(self._next_proba(last[live[rows]]), excluded)
                words[live[rows], step] = drawn(sharpened(proba, **shape), random)
            live = live[words[live, step] != self.boundary_]
            if len(live) == 0:
                break
            last[live] = np.column_stack([last[live, 1:], words[live, step]])
        ends = np.column_stack([words == self.boundary_, np.ones(n_drawn, bool)])
        lengths = ends.argmax(axis=1)
        texts = [codec.decode(row[:length]) for row, length in zip(words, lengths)]
        return texts[0] if n is None else texts

    def nearest(
        self, word: Any, k: int = 10, *, among: int | None = 2000
    ) -> tuple[Any, NDArray[np.float64]]:
        """Words with the most similar features, where a network has learned some.

        Parameters
        ----------
        word : str or other word of the vocabulary; int where documents are ids
            Whose neighbours.
        k : int, default=10
            How many.
        among : int or None, default=2000
            Look among so many words, those of the lowest ids: the most frequent, of
            a `Vocabulary`. Rare words have features that hardly moved from where they
            began. None looks among all.

        Returns
        -------
        words : list, or ndarray of int32
            The nearest first.
        cosines : ndarray of float64
            Of the angle between their features and those of `word`, rows of ``C_``
            (section 2).

        Raises
        ------
        TypeError
            If the estimator has no features of words: no ``C_``, nor has a member.
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
        check_is_fitted(self)
        features = features_of(self.estimator_)
        if features is None:
            raise TypeError(
                f"{type(self.estimator_).__name__} has no features of words: fit a "
                "TextLM of a NeuralLM, an EnergyLM, or a mixture with one."
            )
        codec = self._codec
        [i] = codec.encode_words([word], self.n_words_)
        ids, cosines = nearest_rows(features, i, k, among)
        return codec.words(ids), cosines

    # -- from documents to windows -------------------------------------------------

    @property
    def _codec(self) -> Codec:
        check_is_fitted(self)
        return codec_of(self.tokenizer_, self.vocabulary_)

    def _walker(self) -> Any:
        """Return what looks words up one by one."""
        walker = self._own_walker()
        if walker is not None:
            return walker
        ids, unknown = self._ids_and_unknown()
        n_context = int(self.n_context)
        return WindowWalker(self.estimator_, n_context, self.boundary_, ids, unknown)

    def _own_walker(self, *, at_least: int | None = None) -> Any:
        """Return what the model has for it; None if that is not worth it for so few."""
        check_is_fitted(self)
        make = getattr(self.estimator_, "_walker", None)
        if make is None:
            return None
        return make(self.boundary_, *self._ids_and_unknown(), at_least=at_least)

    def _ids_and_unknown(self) -> tuple[dict[Any, int] | None, int]:
        if self.vocabulary_ is None:
            return None, -1
        unknown = self.vocabulary_.unknown_id_
        return self.vocabulary_.ids_, -1 if unknown is None else unknown

    def _log_prob(self, X: Sequence[Any]) -> tuple[NDArray[np.float64], Tokens]:
        """Log-probability of each token, and the tokens."""
        documents = self._codec.encode(X, "X", self.n_words_)
        tokens = self._tokens(documents, "X", n_known=self.n_words_)
        return self.estimator_.log_prob(tokens.contexts, tokens.targets), tokens

    def _next_proba(self, last: NDArray[np.int32]) -> NDArray[np.float64]:
        """Probability of every word after the last `n_context` words of documents."""
        return self.estimator_.predict_proba(last).astype(np.float64, copy=False)

    def _start(self, context: Any) -> NDArray[np.int32]:
        """Return the last `n_context` words of the start of a document."""
        codec = self._codec
        ids = np.empty(0, dtype=np.int32)
        if not isinstance(context, tuple) or len(context):
            ids = codec.encode_one(context, "context", self.n_words_)
        document = Documents(ids, np.array([len(ids)]))
        self._refuse_marks(document, lambda i: "context", self.n_words_)
        # The last window has all of it before it, whatever word follows.
        stream = document.tokens(int(self.n_context), self.boundary_, ends=True)
        return stream.contexts[-1]

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

    def _tokens(self, documents: Documents, name: str, *, n_known: int = 0) -> Tokens:
        """Cut the windows of documents; ids below `n_known` may be words of others."""
        n = len(documents.lengths)
        self._refuse_marks(documents, lambda i: f"{name}[{i}]", n_known)
        if len(documents.ids) + (n if self.predict_boundary else 0) == 0:
            raise ValueError(
                f"{name} has {n} documents and no token: give at least one document "
                "that is not empty."
            )
        return documents.tokens(
            int(self.n_context), self.boundary_, ends=self.predict_boundary
        )

    def _refuse_marks(
        self, documents: Documents, name_of: Callable[[int], str], n_known: int
    ) -> None:
        """Raise where ids have a 0 and nobody said that it is a mark."""
        if self.boundary != "auto" or self.vocabulary_ is not None:
            return
        zeros = np.flatnonzero(documents.ids == 0)
        if len(zeros) == 0:
            return
        document, place = documents.find(int(zeros[0]))
        largest = max(int(documents.ids.max()), n_known - 1)
        raise ValueError(
            f"{name_of(document)} has the id 0 at {place}, and TextLM takes 0 "
            "for the boundary unless it is told which id that is. Where 0 is "
            "a word, set boundary to an id that no word has (here the largest "
            f"is {largest}: boundary={largest + 1}); where it ends a sentence "
            "inside a document, set boundary=0; where numbers are events, and no ids, "
            "set vocabulary=Vocabulary(). Then fit."
        )

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


def features_of(model: Any) -> NDArray[Any] | None:
    """Return the features of words that a model, or a member of it, has learned."""
    members = *getattr(model, "estimators_", ()), getattr(model, "network_", None)
    for part in (model, *members):
        features = getattr(part, "C_", None)
        if features is not None:
            return features
    return None
