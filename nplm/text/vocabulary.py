"""Vocabulary: map tokens to word ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

from nplm.base.array_types import Counts, Ids
from nplm.base.atomic import all_or_nothing, read_at_once
from nplm.base.checks import check_ids
from nplm.base.estimators.bases import DocumentEstimator, TransformerMixin, Whole
from nplm.base.fitted import Fitted, Item, invalid_item
from nplm.base.generators import private_generator
from nplm.text.embeddings import aligned, spelling_features
from nplm.text.samples import check_documents, check_tokens, lists_of_tokens, unpacked
from nplm.text.words.known_words import (
    KnownWords,
    UnknownSpelling,
    WordChoice,
    chosen_words,
    symbols_of,
)


class Vocabulary(WordChoice, TransformerMixin, DocumentEstimator):
    """Map tokens to word ids, and rare tokens to one symbol.

    The order of ids is: the boundary, the unknown symbol, then words by decreasing
    frequency, alphabetically where frequencies are equal. A token that spells a special
    symbol (the ``<unk>`` of Penn Treebank files) is that symbol. A token is a string or
    another hashable event, such as a tuple or a number. None and NaN are missing
    values, which are refused.

    Parameters
    ----------
    min_count : int, default=1
        Words seen fewer times become `unknown`. The paper's "frequency <= 3"
        (section 4) is ``min_count=4``.
    max_words : int or None, default=None
        Upper bound of ``n_words_``, special symbols included: only the most frequent
        words are kept.
    unknown : str or None, default="<unk>"
        Symbol for every word outside the vocabulary. None refuses such words.
    boundary : str or None, default="</s>"
        Symbol that ends a document, for `TextLM`; it has an id even if the
        tokens do not contain it. None for one stream of text without boundaries.
    words : sequence of hashable, optional
        The words, each once, instead of those of the documents: the id of a word is its
        index. Missing special symbols come first, in the usual order. `fit` then learns
        nothing, `min_count` and `max_words` are ignored, and all folds of a grid search
        have one vocabulary.

    Attributes
    ----------
    words_ : ndarray of object (str), shape (n_words_,)
        The word of each id. That of a mapped file is made when it is asked for.
    ids_ : dict of str to int
        The id of each word. That of a mapped file is made when it is asked for.
    n_words_ : int
        Size of the vocabulary, the paper's ``|V|``, special symbols included.
    boundary_id_ : int or None
        Id of the boundary: 0, or its index in `words`; None without a boundary.
    unknown_id_ : int or None
        Id of the unknown symbol: 1, or 0 without a boundary, or its index in `words`;
        None without an unknown symbol.

    Notes
    -----
    **Perplexities of different vocabularies are not comparable.** ``<unk>`` is easy
    to predict, so the smaller the vocabulary, the better the score; at
    ``min_count=60`` most of a small text is ``<unk>`` and the score is almost
    perfect. Never put ``min_count`` or ``max_words`` in a grid search, and
    compare models on one vocabulary. In a grid search each fold fits its own
    vocabulary, so folds differ a little for the same reason. Report
    `count_unknown` with a perplexity, and the perplexity without unknown words
    (``TextLM.perplexity(X, skip=vocabulary.unknown_id_)``).

    Examples
    --------
    >>> from nplm import Vocabulary
    >>> vocabulary = Vocabulary(min_count=2)
    >>> documents = [["a", "rose", "is", "a", "rose"], ["is", "it"]]
    >>> [ids.tolist() for ids in vocabulary.fit_transform(documents)]
    [[2, 4, 3, 2, 4], [3, 1]]
    >>> vocabulary.words_.tolist()
    ['</s>', '<unk>', 'a', 'is', 'rose']
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        "min_count": [Whole(1)],
        "max_words": [Whole(1), None],
        "unknown": [str, None],
        "boundary": [str, None],
        "words": ["array-like", None],
    }

    @classmethod
    def from_words(
        cls,
        words: Sequence[Hashable],
        *,
        unknown: str | None = "<unk>",
        boundary: str | None = "</s>",
    ) -> Self:
        """Make a fitted vocabulary from a list of words.

        Parameters
        ----------
        words : sequence of hashable
            Each once. Ids follow the order of words, after missing special symbols.
        unknown, boundary : str or None
            As in the class.

        Returns
        -------
        vocabulary : Vocabulary
            ``Vocabulary(words=words)``, fitted.

        Raises
        ------
        TypeError
            If `words` have no order, or a word is not hashable.
        ValueError
            If `words` is one string, or a word occurs twice.

        Examples
        --------
        >>> from nplm import Vocabulary
        >>> Vocabulary.from_words(["a", "rose"]).words_.tolist()
        ['</s>', '<unk>', 'a', 'rose']
        >>> vocabulary = Vocabulary.from_words(["a", "<unk>", "</s>"])
        >>> vocabulary.words_.tolist(), vocabulary.boundary_id_
        (['a', '<unk>', '</s>'], 2)
        """
        return cls(unknown=unknown, boundary=boundary, words=words).fit()

    @all_or_nothing
    def fit(
        self, X: Iterable[Sequence[Hashable]] | None = None, y: object = None
    ) -> Self:
        """Learn the words of documents.

        Parameters
        ----------
        X : sequence of sequence of str
            The tokens of each document. One stream of text is ``[tokens]``. Ignored if
            `words` are given.
        y : ignored

        Returns
        -------
        self : Vocabulary

        Raises
        ------
        TypeError
            If `X` is not a sequence of documents, a document is a string, or a token
            is missing or not hashable.
        ValueError
            If a parameter is out of range, or one of `words` occurs twice.
        """
        self._validate_params()
        return self.choose(self._counted(X) if self.words is None else {})

    def choose(self, counts: Mapping[Hashable, int]) -> Self:
        """Choose the words by their counts."""
        self._validate_params()
        self._fitted_words = chosen_words(self, counts)
        return self

    def _counted(self, X: object) -> Counter[Hashable]:
        """Count the words of documents."""
        counts: Counter[Hashable] = Counter()
        for document in lists_of_tokens(X):
            try:
                counts.update(document)
            except TypeError:  # a token that cannot be counted
                check_tokens(document)
                raise
        check_tokens(counts)
        return counts

    @all_or_nothing
    def add_words(self, words: Sequence[Hashable]) -> Ids:
        """Add words, with ids after the existing ones.

        For models that can grow, with the ``add_words`` of `EnergyLM` and `TextLM`.
        `min_count` and `max_words` are ignored here: they choose words in `fit`,
        which discards added words.

        Parameters
        ----------
        words : sequence of str
            Each once, in the order of their ids.

        Returns
        -------
        ids : ndarray of int32, shape (n_new,)
            Ids of the new words, starting at the previous ``n_words_``.

        Raises
        ------
        TypeError
            If `words` is one string, or a word is not hashable.
        ValueError
            If a word is in the vocabulary, or occurs twice. The vocabulary is then
            unchanged.

        Examples
        --------
        >>> from nplm import Vocabulary
        >>> vocabulary = Vocabulary().fit([["a", "rose", "is", "a", "rose"]])
        >>> vocabulary.add_words(["tulip"])
        array([5], dtype=int32)
        >>> vocabulary.transform([["a", "tulip"]])[0].tolist()
        [2, 5]
        """
        check_is_fitted(self)
        if isinstance(words, (str, bytes)):
            raise TypeError(f"words is a string, {words!r}: pass a list of words.")
        words = list(unpacked(words))
        check_tokens(words)
        ids_ = dict(self.ids_)
        for word in words:
            if word in ids_:
                place = "vocabulary" if word in self.ids_ else "list of words"
                raise ValueError(
                    f"{word!r} is already in the {place}, with the id {ids_[word]}: "
                    "add each new word once."
                )
            ids_[word] = len(ids_)
        known = self.known
        self._fitted_words = KnownWords(
            list(ids_), known.unknown, known.boundary, known.spelling
        )
        return np.arange(len(ids_) - len(words), len(ids_), dtype=np.int32)

    @read_at_once
    def transform(self, X: Iterable[Sequence[Hashable]]) -> list[Ids]:
        """Return the word ids of each document.

        Parameters
        ----------
        X : sequence of sequence of str
            The tokens of each document.

        Returns
        -------
        documents : list of ndarray of int32, each of shape (n_tokens,)
            No boundary is added: `TextLM` does that.

        Raises
        ------
        TypeError
            If `X` is not a sequence of documents, a document is a string, or a token
            is missing or not hashable.
        ValueError
            If a word is outside the vocabulary, and `unknown` is None.
        """
        ids, lengths = self.known.encode(X)
        ends = np.cumsum(lengths).tolist()
        return [ids[i:j] for i, j in zip([0, *ends], ends)]

    @read_at_once
    def inverse_transform(self, X: Iterable[ArrayLike]) -> list[list[str]]:
        """Return the words of each document's ids; unknown words become `unknown`.

        Parameters
        ----------
        X : sequence of array-like of int, each of shape (n_tokens,)
            Word ids of each document.

        Returns
        -------
        documents : list of list of str
        """
        n_words, words_of = self.n_words_, self.known.words_of
        return [
            words_of(check_ids(ids, f"X[{i}]", ndim=1, n_words=n_words))
            for i, ids in enumerate(check_documents(X, "an array of word ids"))
        ]

    @read_at_once
    def count_unknown(self, X: Iterable[Sequence[str]]) -> Counts:
        """Count the tokens of each document that are outside the vocabulary (OOV).

        Parameters
        ----------
        X : sequence of sequence of str
            The tokens of each document.

        Returns
        -------
        counts : ndarray of int64, shape (n_documents,)

        Examples
        --------
        >>> from nplm import Vocabulary
        >>> vocabulary = Vocabulary().fit([["a", "b"]])
        >>> vocabulary.count_unknown([["a", "c", "d"], ["b"]])
        array([2, 0])
        """
        ids, lengths = self.known.encode(X)
        document = np.repeat(np.arange(len(lengths)), lengths)
        return np.bincount(document[ids == self.unknown_id_], minlength=len(lengths))

    def embeddings(
        self,
        words: Sequence[str],
        vectors: ArrayLike,
        *,
        random_state: int | np.random.RandomState | None = None,
    ) -> NDArray[np.float32]:
        """Align word vectors with the ids, as initial embeddings of a `NeuralLM`.

        Parameters
        ----------
        words : sequence of str, shape (n,)
            Any words, as returned by `nplm.formats.read_vectors`.
        vectors : array-like of float, shape (n, m)
            The vector of each word.
        random_state : int, RandomState instance or None, default=None
            Seeds the vectors of words that are not among `words`: each feature is
            drawn from a normal distribution with the feature's mean and standard
            deviation over the words that are.

        Returns
        -------
        embeddings : ndarray of float32, shape (n_words_, m)
            The vector of each id, for ``Features(embeddings)``. A `TextLM` aligns
            vectors itself: set ``features=Features((words, vectors))`` of the network.

        Raises
        ------
        ValueError
            If there is not one vector per word, a value is not finite, a word occurs
            twice, or no word is in the vocabulary.

        Examples
        --------
        >>> from nplm import Vocabulary
        >>> vocabulary = Vocabulary().fit([["a", "rose"]])
        >>> vocabulary.words_.tolist()
        ['</s>', '<unk>', 'a', 'rose']
        >>> start = vocabulary.embeddings(["rose", "is", "a"], [[1.0], [2.0], [3.0]])
        >>> start[2:].tolist()
        [[3.0], [1.0]]
        """
        return aligned(self.words_, words, vectors, private_generator(random_state))

    def spelling_features(
        self, *, ngrams: tuple[int, int] = (2, 5), min_words: int = 3
    ) -> tuple[csr_array, list[str]]:
        """Compute spelling features of the words: character n-grams, shape and length.

        With ``Features(word_features=...)``, words with similar spelling share
        parameters, which helps rare words most. Inside a `TextLM`,
        ``word_features="spelling"`` computes them for its fitted vocabulary.

        Parameters
        ----------
        ngrams : tuple of (int, int), default=(2, 5)
            Least and greatest number of letters of an n-gram. ``<`` and ``>`` mark the
            ends of a word: "rose" has "<r", "ose>" and others.
        min_words : int, default=3
            Leave out features of fewer words.

        Returns
        -------
        features : csr_array of float32, shape (n_words_, n_features)
            A word with k features has 1 / sqrt(k) at each: the sum of its features
            then has the variance of a single one. `unknown`, `boundary` and events
            that are not strings have none.
        names : list of str
            Names of the features: ``ngram:<r``, ``shape:capital``, ``shape:digit``,
            ``length:4``.

        Raises
        ------
        ValueError
            If a parameter is out of range, or no feature is left.

        Examples
        --------
        >>> from nplm import Vocabulary
        >>> vocabulary = Vocabulary().fit([["rose", "roses", "is", "a", "Rose"]])
        >>> features, names = vocabulary.spelling_features(ngrams=(3, 4), min_words=2)
        >>> names
        ['length:4', 'ngram:<ro', 'ngram:<ros', 'ngram:ose', 'ngram:ose>', ...]
        >>> features.shape == (vocabulary.n_words_, len(names))
        True
        """
        symbols = symbols_of(self)
        is_spelt = [isinstance(w, str) and w not in symbols for w in self.words_]
        words = [w if spelt else "" for w, spelt in zip(self.words_, is_spelt)]
        return spelling_features(words, ngrams, min_words)

    @property
    def known(self) -> KnownWords:
        """The fitted words."""
        check_is_fitted(self)
        return self._fitted_words

    @property
    def words_(self) -> NDArray[np.object_]:
        """The word of each id."""
        return self.known.array

    @property
    def ids_(self) -> dict[Any, int]:
        """The id of each word."""
        return self.known.ids

    @property
    def n_words_(self) -> int:
        """Size of the vocabulary."""
        return len(self.known)

    @property
    def boundary_id_(self) -> int | None:
        """Id of the boundary."""
        return self.known.boundary_id

    @property
    def unknown_id_(self) -> int | None:
        """Id of the unknown symbol."""
        return self.known.unknown_id

    _saved: ClassVar[dict[str, Item]] = {
        "words": Item(Fitted.take, list, of=lambda v: v.words_.tolist()),
        "unknown_id": Item(Fitted.optional_id),
        "boundary_id": Item(Fitted.optional_id),
        "spelling": Item(
            Fitted.take,
            of=lambda v: v.known.spelling and v.known.spelling.params,
            is_optional=True,
        ),
    }

    def _set_saved(self, values: dict[str, Any]) -> None:
        words, spelling = values["words"], values["spelling"]
        check_tokens(words)
        symbols = []
        for name in ("unknown_id", "boundary_id"):
            i = values[name]
            if i is not None and i >= len(words):
                raise invalid_item(name, i)
            symbols.append(None if i is None else words[i])
        known = KnownWords(words, *symbols)
        if len(known.ids) != len(words):
            raise invalid_item("words", words)
        if spelling is not None:
            known.spelling = UnknownSpelling.of_params(spelling, known.unknown)
        self._fitted_words = known

    def __sklearn_is_fitted__(self) -> bool:
        return "_fitted_words" in vars(self)
