"""From raw text to word ids: Tokenizer and Vocabulary, a document a sample."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from nplm._checks import Whole, check_ids

__all__ = ["Tokenizer", "Vocabulary"]

TOKEN_PATTERN = r"\w+(?:[.,]\d+)*(?:['’]\w+)?|[^\w\s]"
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
SENTENCE_END = frozenset({".", "!", "?", "…"})
PRONOUN_I = re.compile(r"I(?:['’]\w+)?")


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


class Tokenizer(TransformerMixin, BaseEstimator):
    r"""Split documents into tokens, with the preprocessing of the paper's AP News.

    Stateless and row-preserving: one list of tokens a document, so that a
    document stays a sample in a ``Pipeline`` and a grid search.

    Parameters
    ----------
    pattern : str, default ``r"\w+(?:[.,]\d+)*(?:['’]\w+)?|[^\w\s]"``
        Regular expression of one token; what it does not match is dropped.
        By default a word with its decimals or apostrophe (``3.14``, ``don't``),
        or one punctuation mark.
    lowercase : bool, default=False
        Whether to map upper case to lower case.
    number : str or None, default=None
        Symbol to replace numbers by: tokens of digits, with points or commas
        between them (``1995``, ``3,000.50``; not ``1990s``).
    proper_noun : str or None, default=None
        Symbol to replace proper nouns by: words that start with a capital, do
        not start a sentence, and are not ``I`` (``I'm``). The first word of a
        document starts a sentence, and so does the first after one of
        ``. ! ? …``, quotes and brackets in between or not. A rule, not a
        tagger: it misses names at the start of a sentence, and takes titles
        and acronyms. It reads the case before `lowercase` removes it.

    References
    ----------
    Bengio et al. (2003), section 4: AP News was reduced by "mapping upper case
    to lower case, mapping numeric forms to special symbols, mapping rare words
    to a special symbol and mapping proper nouns to another special symbol".
    `Vocabulary` maps the rare words.

    Examples
    --------
    >>> from nplm import Tokenizer
    >>> Tokenizer().transform(["Don't pay $3.50."])
    [["Don't", 'pay', '$', '3.50', '.']]
    >>> ap_news = Tokenizer(lowercase=True, number="<num>", proper_noun="<name>")
    >>> ap_news.transform(["On Monday I saw 2 men. They met Lincoln."])
    [['on', '<name>', 'i', 'saw', '<num>', 'men', '.', 'they', 'met', '<name>', '.']]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "pattern": [str, re.Pattern],
        "lowercase": ["boolean"],
        "number": [str, None],
        "proper_noun": [str, None],
    }

    def __init__(
        self,
        pattern: str = TOKEN_PATTERN,
        *,
        lowercase: bool = False,
        number: str | None = None,
        proper_noun: str | None = None,
    ) -> None:
        self.pattern = pattern
        self.lowercase = lowercase
        self.number = number
        self.proper_noun = proper_noun

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Do nothing: a tokenizer learns nothing.

        Parameters
        ----------
        X : ignored
        y : ignored

        Returns
        -------
        self : Tokenizer
        """
        return self

    def transform(self, X: Iterable[str]) -> list[list[str]]:
        """Split each document.

        Parameters
        ----------
        X : sequence of str
            Documents: a list, an array, a Series, or a DataFrame of one column.

        Returns
        -------
        documents : list of list of str
            The tokens of each document; an empty list where there are none.

        Raises
        ------
        TypeError
            If `X` is one string, a dict or several columns, or a document is not a
            string.
        ValueError
            If `pattern` is not a regular expression.
        """
        self._validate_params()
        X = check_documents(X, "a string")
        try:
            find = re.compile(self.pattern).finditer
        except re.error as error:
            raise ValueError(
                f"pattern {self.pattern!r} is not a regular expression: {error}."
            ) from None
        documents = []
        for i, text in enumerate(X):
            if not isinstance(text, str):
                check_document(text, f"X[{i}]", "a string", "")
                raise TypeError(
                    f"X[{i}] is of type {type(text).__name__}: a document must be a "
                    "string; decode bytes with bytes.decode() first."
                )
            # The whole match, whatever groups the pattern has.
            documents.append(self._map([m[0] for m in find(text) if m[0]]))
        return documents

    def _map(self, tokens: list[str]) -> list[str]:
        if self.proper_noun is not None:
            tokens = _mark_proper_nouns(tokens, self.proper_noun)
        if self.number is not None:
            tokens = [self.number if NUMBER.fullmatch(t) else t for t in tokens]
        if self.lowercase:
            symbols = {self.number, self.proper_noun}
            tokens = [t if t in symbols else t.lower() for t in tokens]
        return tokens

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.no_validation = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags


def _mark_proper_nouns(tokens: list[str], symbol: str) -> list[str]:
    marked = []
    starts_sentence = True
    for token in tokens:
        is_name = (
            token[0].isupper()
            and not starts_sentence
            and not PRONOUN_I.fullmatch(token)
        )
        marked.append(symbol if is_name else token)
        if token in SENTENCE_END:
            starts_sentence = True
        elif token[0].isalnum():
            starts_sentence = False
    return marked


class Vocabulary(TransformerMixin, BaseEstimator):
    """Map tokens to word ids, rare ones to one symbol.

    Ids are given in this order: the boundary, the unknown symbol, then words by
    falling frequency, alphabetically where frequencies are equal. A token that
    spells a special symbol (the ``<unk>`` of Penn Treebank files) is that symbol.

    Parameters
    ----------
    min_count : int, default=1
        Words seen fewer times become `unknown`. The paper's "frequency <= 3"
        (section 4) is ``min_count=4``.
    max_words : int or None, default=None
        Keep only the most frequent words, so that ``n_words_``, special symbols
        included, is at most this.
    unknown : str, default="<unk>"
        Symbol for every word outside the vocabulary.
    boundary : str or None, default="</s>"
        Symbol that ends a document, for `TextLM`; it has an id even where the
        tokens do not contain it. None for one stream of text without any.

    Attributes
    ----------
    words_ : ndarray of object (str), shape (n_words_,)
        The word of each id.
    ids_ : dict of str to int
        The id of each word.
    n_words_ : int
        Size of the vocabulary, the paper's ``|V|``, special symbols included.
    boundary_id_ : int or None
        0, or None without a boundary.
    unknown_id_ : int
        1, or 0 without a boundary.

    Notes
    -----
    **Perplexities of different vocabularies do not compare.** ``<unk>`` is easy
    to predict, so the smaller the vocabulary, the better the score; at
    ``min_count=60`` most of a small text is ``<unk>`` and the score is almost
    perfect. Never put ``min_count`` or ``max_words`` in a grid search, and
    compare models on one vocabulary. Inside a grid search, where each fold
    fits its own vocabulary, folds differ a little for the same reason. Report
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "min_count": [Whole(1)],
        "max_words": [Whole(1), None],
        "unknown": [str],
        "boundary": [str, None],
    }

    def __init__(
        self,
        min_count: int = 1,
        max_words: int | None = None,
        *,
        unknown: str = "<unk>",
        boundary: str | None = "</s>",
    ) -> None:
        self.min_count = min_count
        self.max_words = max_words
        self.unknown = unknown
        self.boundary = boundary

    def fit(self, X: Iterable[Sequence[str]], y: Any = None) -> Self:
        """Choose the words.

        Parameters
        ----------
        X : sequence of sequence of str
            The tokens of each document. One stream of text is ``[tokens]``.
        y : ignored

        Returns
        -------
        self : Vocabulary

        Raises
        ------
        TypeError
            If `X` is no sequence of documents, a document is a string, or a token
            is not one.
        ValueError
            If a parameter is out of range.
        """
        self._validate_params()
        specials = self._specials()
        counts: Counter[str] = Counter()
        for document in self._documents(X):
            counts.update(document)
        _check_tokens(counts)
        words = [
            word
            for word, count in sorted(
                counts.items(), key=lambda item: (-item[1], item[0])
            )
            if count >= self.min_count and word not in specials
        ]
        if self.max_words is not None:
            words = words[: self.max_words - len(specials)]
        self.words_ = np.array(specials + words, dtype=object)
        self.ids_ = {word: i for i, word in enumerate(self.words_)}
        self.n_words_ = len(self.words_)
        self.unknown_id_ = self.ids_[self.unknown]
        self.boundary_id_ = None if self.boundary is None else self.ids_[self.boundary]
        return self

    def transform(self, X: Iterable[Sequence[str]]) -> list[NDArray[np.int32]]:
        """Word ids of each document.

        Parameters
        ----------
        X : sequence of sequence of str
            The tokens of each document.

        Returns
        -------
        documents : list of ndarray of int32, each of shape (n_tokens,)
            No boundary is added: `TextLM` does that.
        """
        check_is_fitted(self)
        get, unknown = self.ids_.get, self.unknown_id_
        documents = []
        for document in self._documents(X):
            ids = np.fromiter((get(token, unknown) for token in document), np.int32)
            if (ids == unknown).any():
                _check_tokens(document)
            documents.append(ids)
        return documents

    def inverse_transform(self, X: Iterable[ArrayLike]) -> list[list[str]]:
        """Words of each document's ids; what was unknown comes back as `unknown`.

        Parameters
        ----------
        X : sequence of array-like of int, each of shape (n_tokens,)
            Word ids of each document.

        Returns
        -------
        documents : list of list of str
        """
        check_is_fitted(self)
        return [
            self.words_[
                check_ids(ids, f"X[{i}]", ndim=1, n_words=self.n_words_)
            ].tolist()
            for i, ids in enumerate(check_documents(X, "an array of word ids"))
        ]

    def count_unknown(self, X: Iterable[Sequence[str]]) -> NDArray[np.int64]:
        """Tokens of each document that are outside the vocabulary (OOV).

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
        documents = self.transform(X)
        return np.array(
            [np.count_nonzero(ids == self.unknown_id_) for ids in documents],
            dtype=np.int64,
        )

    def _specials(self) -> list[str]:
        """Return the special symbols, in the order of their ids."""
        if self.unknown == self.boundary:
            raise ValueError(
                f"unknown={self.unknown!r} must be another string than "
                f"boundary={self.boundary!r}."
            )
        specials = [s for s in (self.boundary, self.unknown) if s is not None]
        if self.max_words is not None and self.max_words <= len(specials):
            raise ValueError(
                f"max_words must be None or a whole number above {len(specials)}, "
                f"the number of special symbols, got {self.max_words!r}."
            )
        return specials

    def _documents(self, X: Iterable[Sequence[str]]) -> Iterable[Sequence[str]]:
        advice = "Put a Tokenizer before the Vocabulary."
        item = "a list of tokens"
        for i, document in enumerate(check_documents(X, item, advice)):
            if isinstance(document, (str, bytes)):
                raise TypeError(
                    f"X[{i}] is a string, {document[:30]!r}: a document must be "
                    f"{item}. {advice}"
                )
            check_document(document, f"X[{i}]", item, advice)
            if not hasattr(document, "__iter__"):
                raise TypeError(
                    f"X[{i}] is {document!r}: a document must be {item}; a single "
                    "document is a list of one."
                )
            yield document

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.no_validation = True
        tags.input_tags.two_d_array = False
        return tags


def _check_tokens(tokens: Iterable[Any]) -> None:
    for token in tokens:
        if not isinstance(token, str):
            raise TypeError(
                f"tokens must be strings, got {token!r} of type "
                f"{type(token).__name__}; ids need no Vocabulary."
            )
