"""Subwords: split documents into units below words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Self

from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import HasMethods, StrOptions

from nplm.base.atomic import all_or_nothing
from nplm.base.estimators.bases import DocumentEstimator, TransformerMixin, Whole
from nplm.base.fitted import Fitted, Item, invalid_item
from nplm.text.document_streams import DocumentStream, blocks_of, readable
from nplm.text.samples import check_documents, check_text, lists_of_tokens
from nplm.text.subwords.models import UnitModel, library_of, packed, trained, unit_model

TRAINED = ("bpe", "unigram")
UNTRAINED = ("characters", "bytes")


class Subwords(TransformerMixin, DocumentEstimator):
    """Split documents into subword units, characters or bytes.

    A vocabulary of units is open: it spells every text, so a model gives every text a
    probability, and scores of models with different units compare by
    `TextLM.text_scores`. A `TextLM` with ``tokenizer=Subwords(...)`` has all units in
    its vocabulary by default.

    Parameters
    ----------
    model : {"bpe", "unigram", "characters", "bytes"} or model, default="bpe"
        Which units:

        - "bpe" merges the most frequent pairs of units (byte pair encoding), and
          "unigram" keeps the units of the most probable splits. `fit` learns them from
          the documents, by the package ``tokenizers``. They consist of bytes, so no
          text is unknown.
        - "characters" are those of Unicode. One that is not in the training documents
          is unknown.
        - "bytes" are the 256 bytes of UTF-8.
        - A ``tokenizers.Tokenizer``, a ``sentencepiece.SentencePieceProcessor`` or a
          ``tiktoken.Encoding``, of which `fit` takes a copy. Its special tokens are
          neither added nor predicted; in a document they are split as other text.
          ``reverse`` of SentencePiece is kept; padding and truncation are not used.
    n_words : int, default=8000
        Number of units that "bpe" and "unigram" learn, at most. The 256 bytes are among
        them.

    Attributes
    ----------
    model_ : model or None
        The ``tokenizers.Tokenizer`` that was learned, or the given model; None for
        characters and bytes.
    words_ : list of str or None
        The units; None for characters, of which the documents' are known.
    unknown_ : str or None
        The unit for text that no other unit spells; None if there is no such text.

    Notes
    -----
    Units of bytes are spelled as in GPT-2: a printable character for each byte,
    ``Ġ`` for a blank and ``Ċ`` for a line feed.

    "bpe" learns the same units from the same documents each time. "unigram" does not:
    the package's training has no seed, and a few units and all scores differ a little.
    To fit such a model again, or to resume its checkpoint, pass the fitted ``model_``.

    References
    ----------
    R. Sennrich, B. Haddow and A. Birch (2016). Neural machine translation of rare words
    with subword units. ACL.

    T. Kudo (2018). Subword regularization. ACL.

    Examples
    --------
    >>> from nplm import Subwords
    >>> Subwords("characters").transform(["a rose"])
    [['a', ' ', 'r', 'o', 's', 'e']]
    >>> units = Subwords("bytes")
    >>> units.transform(["é a"])
    [['Ã', '©', 'Ġ', 'a']]
    >>> units.inverse_transform([["Ã", "©", "Ġ", "a"]])
    ['é a']

    Learned from the documents of a `TextLM`::

        lm = TextLM(NeuralLM(), tokenizer=Subwords("bpe", n_words=8000)).fit(texts)

    A model of a library::

        units = Subwords(tokenizers.Tokenizer.from_file("tokenizer.json"))
        units = Subwords(sentencepiece.SentencePieceProcessor(model_file="en.model"))
        units = Subwords(tiktoken.get_encoding("gpt2"))
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        "model": [StrOptions({*TRAINED, *UNTRAINED}), HasMethods(["encode", "decode"])],
        "n_words": [Whole(256)],
    }

    def __init__(self, model: Any = "bpe", n_words: int = 8000) -> None:
        self.model = model
        self.n_words = n_words

    def __sklearn_clone__(self) -> Self:
        """Share the library's model: a copy by the library may split otherwise."""
        return type(self)(self.model, self.n_words)

    @all_or_nothing
    def fit(self, X: Iterable[str] | None = None, y: object = None) -> Self:
        """Learn the units of "bpe" and "unigram"; for others, do nothing.

        Parameters
        ----------
        X : iterable of str
            Documents, also a stream as in `TextLM.fit`; ignored for units that are not
            learned.
        y : ignored

        Returns
        -------
        self : Subwords

        Raises
        ------
        TypeError
            If `X` is missing, one string, a dict or several columns, if a document is
            not a string, or if `model` is not a model of units.
        ValueError
            If `model` samples how it splits a text (``dropout``, ``alpha``,
            ``enable_sampling``), or has parts in Python, which no file holds.
        ImportError
            If the package ``tokenizers`` is missing.
        """
        self._check_model()
        model = self.model if self.model not in UNTRAINED else None
        if self.model in TRAINED:
            is_stream = isinstance(X, DocumentStream)
            documents: Any = X if is_stream else readable(X, "a string")
            # Blocks show how many documents are read.
            texts = (text for _, block in blocks_of(documents) for text in block)
            model = trained(self.model, _texts(texts), int(self.n_words))
        self._set_model(model)
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
            The units of each document; an empty list if there are none.

        Raises
        ------
        TypeError
            If `X` is one string, a dict or several columns, or a document is not a
            string.
        NotFittedError
            If the units are to be learned first.
        """
        return self._units().split(list(_texts(check_documents(X, "a string"))))

    def inverse_transform(self, X: Iterable[Sequence[str]]) -> list[str]:
        """Join the units of each document.

        For units of bytes the text is the original one, for SentencePiece it is as its
        model normalises text. Bytes that are not valid UTF-8, and lone surrogates of
        the text, become U+FFFD.

        Parameters
        ----------
        X : sequence of list of str
            The units of each document.

        Returns
        -------
        documents : list of str
        """
        units = self._units()
        return [units.join(list(map(str, tokens))) for tokens in lists_of_tokens(X)]

    def split_function(self) -> Callable[[str], list[str]]:
        """Return a function that splits one string, as `transform` does.

        It checks nothing, so it is faster in a loop.

        Returns
        -------
        split : callable
            Takes a string, and returns the list of its units.
        """
        split = self._units().split
        return lambda text: split([text])[0]

    def _units(self) -> UnitModel:
        units: UnitModel | None = vars(self).get("_fitted_units")
        if units is not None:
            return units
        self._check_model()
        if self.model in TRAINED:
            raise NotFittedError(
                f"Subwords({self.model!r}) learns its units from documents: call fit "
                "first."
            )
        return unit_model(self.model)

    def has_units_of(self, other: Subwords) -> bool:
        """Return whether another fitted transformer splits texts alike."""
        models = [fitted.model_ for fitted in (self, other)]
        if None in models:
            return models == [None, None] and bool(self.model == other.model)
        return packed(models[0]) == packed(models[1])

    def _check_model(self) -> None:
        self._validate_params()
        if not isinstance(self.model, str) and library_of(self.model) is None:
            kind = f"{type(self.model).__module__}.{type(self.model).__qualname__}"
            raise TypeError(
                f"model is a {kind}: pass a tokenizers.Tokenizer, a "
                "sentencepiece.SentencePieceProcessor, a tiktoken.Encoding, 'bpe', "
                "'unigram', 'characters' or 'bytes'."
            )

    def _set_model(self, model: object) -> None:
        self.model_ = model
        units = self._fitted_units = unit_model(self.model if model is None else model)
        self.words_, self.unknown_ = units.words, units.unknown

    _saved: ClassVar[dict[str, Item]] = {"model": Item(Fitted.take)}

    def _set_saved(self, values: dict[str, Any]) -> None:
        model = values["model"]
        is_right = model is None if self.model in UNTRAINED else library_of(model)
        if not is_right:
            raise invalid_item("model", model)
        self._set_model(model)

    def __sklearn_is_fitted__(self) -> bool:
        return "_fitted_units" in vars(self)


def with_methods(tokenizer: object) -> Any:
    """Return a tokenizer as a transformer: a library's model as `Subwords`."""
    is_transformer = tokenizer is None or hasattr(tokenizer, "transform")
    if is_transformer or isinstance(tokenizer, str):
        return tokenizer
    return Subwords(tokenizer).fit()


def _texts(X: Any) -> Iterator[str]:
    for i, document in enumerate(X):
        check_text(document, f"X[{i}]")
        yield document
