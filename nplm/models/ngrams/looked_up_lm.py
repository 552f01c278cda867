"""Models that look n-grams up: QuantizedLM, KenlmLM, and base classes of others."""

from __future__ import annotations

from dataclasses import field
from operator import or_
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from nplm._kernels.ngrams._trie import quick_log_prob, take_logs
from nplm.base.array_types import Floats, Ids
from nplm.base.estimators.bases import hyperparameters
from nplm.base.estimators.language_model import CheapWords, LanguageModel
from nplm.base.fitted import Item, invalid_item
from nplm.models.ngrams.trie.quantized_trie import quantized_items, restored_quantized
from nplm.models.ngrams.trie.word_scorer import word_scorer_of


class QuickLookUps(LanguageModel):
    """Base class of models whose kernel checks ids itself.

    A sentence is looked up in less time than the checks of all inputs take. So windows
    of int32 go to the kernel at once; the base class has other inputs and all errors.
    """

    # All n-grams, and the attribute with those that a kernel looks up, if there are.
    trie_: Any
    _looked_up_in: ClassVar[str]

    def log_prob(self, X: ArrayLike, y: ArrayLike | None = None) -> Floats:
        # The attributes are read from one dictionary, which a fit replaces as a whole.
        log_prob = quick_log_prob(self.__dict__, self._looked_up_in, X, y)
        return super().log_prob(X, y) if log_prob is None else log_prob

    def _log_prob(self, X: Ids, y: Ids) -> Floats:
        ngrams: Any = getattr(self, self._looked_up_in)
        # Ids are checked, but another thread may change the array: then it is None.
        log_prob = None if ngrams is None else ngrams.next_word_log_prob(X, y)
        if log_prob is None:
            log_prob = self.trie_.next_word_prob(X, y)
            take_logs(log_prob)  # a file may contain words of probability 0
        return log_prob

    def _n_known(self) -> int:
        return int(self.trie_.n_words)


@hyperparameters
class ReadFromFile(QuickLookUps):
    """Base class of models that are read from a file, not fitted."""

    _reader: ClassVar[str]  # the function of nplm.formats that reads the file

    order: int | None = field(default=None, kw_only=False)
    n_words: int | None = None
    boundary: int | None = None

    @classmethod
    def _of_sizes(cls, order: int, n_words: int, boundary: int | None) -> Self:
        """Return a model with the parameters and attributes of these sizes."""
        model = cls(order, n_words=n_words, boundary=boundary)
        model.order_, model.n_words_ = order, n_words
        model.n_features_in_ = max(order - 1, 1)
        return model

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
    ) -> Self:
        """Raise TypeError: the model is read from a file, not fitted.

        Parameters
        ----------
        X, y, X_val, y_val : array-like of int
            Ignored.

        Raises
        ------
        TypeError
            Always.
        """
        raise TypeError(
            f"{type(self).__name__} is read from a file (nplm.formats.{self._reader}) "
            "and cannot be fitted. To score documents with it, use TextLM.from_model; "
            "to estimate a model from windows, use KneserNeyLM."
        )


class LookedUpLM(ReadFromFile, CheapWords):
    """Base class of back-off models whose n-grams a kernel looks up, and lists none."""

    _looked_up_in = "trie_"

    @classmethod
    def from_trie(cls, trie: Any, *, boundary: int | None = None) -> Self:
        """Make a fitted model from a ``QuantizedTrie`` or a ``KenlmTrie``."""
        model = cls._of_sizes(trie.order, trie.n_words, boundary)
        model._set_trie(trie)
        return model

    def _set_trie(self, trie: Any) -> None:
        self.trie_, self.n_ngrams_ = trie, trie.n_ngrams

    def word_scorer(
        self, boundary: int, ids: dict[Any, int] | None, unknown: int
    ) -> object:
        """Return the word-by-word scorer."""
        return word_scorer_of(self.trie_, boundary, ids, unknown)

    def _predict_proba(self, X: Ids) -> Floats:
        every_word = np.arange(self.n_words_, dtype=np.int32)
        words = np.broadcast_to(every_word, (len(X), self.n_words_))
        return self.trie_.words_prob(X, words)


class QuantizedLM(LookedUpLM):
    """Quantized back-off n-gram model.

    Probabilities and back-off weights are stored as codes of a few bits, with one
    codebook for each n-gram length; words and offsets take no more bits than they need.
    Windows are scored from the quantized file itself, which is mapped into memory.
    ``nplm.formats.save_binary(model, path, words, bits=8)`` quantizes any
    `KneserNeyLM` or `BackoffLM`.

    Parameters
    ----------
    order, n_words, boundary
        As of `BackoffLM`.

    Attributes
    ----------
    trie_ : QuantizedTrie
        The n-grams.
    n_ngrams_, order_, n_words_
        As of `BackoffLM`.

    Notes
    -----
    Quantized probabilities sum to 1 only approximately. On Brown with 8 bits and order
    5, over 200 contexts, the sums have mean 0.9995, standard deviation 0.007 and
    minimum 0.92. Test perplexity is 0.04% higher. The distribution of the next word
    costs one look-up per word of the vocabulary: if you need it often, keep the
    original model.

    References
    ----------
    M. Federico and N. Bertoldi (2006). How many bits are needed to store
    probabilities for phrase-based translation? Workshop on Statistical Machine
    Translation.

    K. Heafield (2011). KenLM: faster and smaller language model queries. Workshop on
    Statistical Machine Translation.

    G. E. Pibiri and R. Venturini (2019). Handling massive n-gram datasets
    efficiently. ACM Transactions on Information Systems 37(2).
    """

    _reader = "load_binary"

    _saved: ClassVar[dict[str, Item]] = {
        "trie": Item(
            lambda fitted, name: restored_quantized(fitted.inner(name)),
            of=lambda lm: or_(*quantized_items(lm.trie_)),
        )
    }

    def _set_saved(self, values: dict[str, Any]) -> None:
        super()._set_saved(values)
        trie = values["trie"]
        if self.order_ != len(trie.n_ngrams):
            raise invalid_item("order", self.order_)
        self.n_words_ = trie.n_words
        self._set_trie(trie)


class KenlmLM(LookedUpLM):
    """n-gram model in a binary file of KenLM, as its ``build_binary`` writes it.

    ``nplm.load`` makes it of files of hash tables ("probing") and of tries, quantized
    or not, with or without arrays. Windows and sentences are scored in the file as it
    is, with KenLM's numbers. `nplm.TextLM` and `nplm.Scorer` take it like any model;
    ``nplm convert`` makes an ARPA file, or one of nplm, of a trie.

    Parameters
    ----------
    order, n_words, boundary
        As of `BackoffLM`.

    Attributes
    ----------
    trie_ : KenlmTrie
        The n-grams.
    n_ngrams_, order_, n_words_
        As of `BackoffLM`. The n-grams of tries include the suffixes of n-grams that the
        ARPA file lacked, which KenLM inserts with the probability of their back-off.

    Notes
    -----
    An unknown word of a file without ``<unk>`` has log10 -100, as KenLM gives it.

    The distribution of the next word costs one look-up per word of the vocabulary.

    References
    ----------
    K. Heafield (2011). KenLM: faster and smaller language model queries. Workshop on
    Statistical Machine Translation.
    """

    _reader = "load"
    can_be_saved = False
