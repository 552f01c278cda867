"""QuantizedLM and KenlmLM: n-gram models that score in a file, as it is."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nplm.base.estimators.language_model import CheapWords
from nplm.base.fitted import Fitted
from nplm.models.ngrams.look_ups import ReadFromFile
from nplm.models.ngrams.trie.quantized_trie import (
    quantized_items,
    restored_quantized,
)
from nplm.models.ngrams.trie.word_scorer import word_scorer_of

__all__ = ["KenlmLM", "LookedUpLM", "QuantizedLM"]


class LookedUpLM(ReadFromFile, CheapWords):
    """Base class of back-off models whose n-grams a kernel looks up, and lists none."""

    _looked_up_in = "trie_"

    @classmethod
    def from_trie(cls, trie: Any, *, boundary: int | None = None) -> Self:
        """Make a fitted model from n-grams.

        Parameters
        ----------
        trie : QuantizedTrie or KenlmTrie
            The n-grams.
        boundary : int, optional
            Id of the sentence boundary.

        Returns
        -------
        model : LookedUpLM
        """
        model = cls._of_sizes(trie.order, trie.n_words, boundary)
        model._set_trie(trie)
        return model

    def _set_trie(self, trie: Any) -> None:
        self.trie_, self.n_ngrams_ = trie, trie.n_ngrams

    def _word_scorer(
        self, boundary: int, ids: dict[Any, int] | None, unknown: int
    ) -> Any:
        """Return the word-by-word scorer."""
        return word_scorer_of(self.trie_, boundary, ids, unknown)

    def _predict_proba(self, X: NDArray[np.int32]) -> NDArray[np.float64]:
        every_word = np.arange(self.n_words_, dtype=np.int32)
        words = np.broadcast_to(every_word, (len(X), self.n_words_))
        prob: NDArray[np.float64] = self.trie_.words_prob(X, words)
        return prob


class QuantizedLM(LookedUpLM):
    """Quantized back-off n-gram model.

    Probabilities and back-off weights are stored as codes of a few bits, with one
    codebook for each n-gram length; words and offsets take no more bits than they need.
    Windows are scored from the quantized file itself, which is mapped into memory.
    ``nplm.formats.save_binary(model, path, words, bits=8)`` quantizes any
    `KneserNeyLM` or `BackoffLM`.

    Parameters
    ----------
    order : int, optional
        Words in the longest n-gram.
    n_words : int, optional
        Size of the vocabulary.
    boundary : int, optional
        Id of the sentence boundary, for windows made with the same `boundary`.

    Attributes
    ----------
    trie_ : QuantizedTrie
        The n-grams.
    n_ngrams_ : ndarray of int64, shape (order_,)
        Number of n-grams stored of each order. Every word of the vocabulary is a
        unigram.
    order_, n_words_ : int
        The order and vocabulary size in use.

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

    def _fitted(self) -> dict[str, Any]:
        sizes, arrays = quantized_items(self.trie_)
        return super()._fitted() | {"trie": sizes | arrays}

    def _restore(self, fitted: Fitted) -> None:
        trie = restored_quantized(fitted.inner("trie"))
        self._restore_sizes(fitted, trie.n_words)
        if self.order_ != len(trie.n_ngrams):
            raise fitted.invalid_item("order", self.order_)
        self._set_trie(trie)


class KenlmLM(LookedUpLM):
    """n-gram model in a binary file of KenLM, as its ``build_binary`` writes it.

    ``nplm.load`` makes it of files of hash tables ("probing") and of tries, quantized
    or not, with or without arrays. Windows and sentences are scored in the file as it
    is, with KenLM's numbers. `nplm.TextLM` and `nplm.Scorer` take it like any model;
    ``nplm convert`` makes an ARPA file, or one of nplm, of a trie.

    Parameters
    ----------
    order : int, optional
        Words in the longest n-gram.
    n_words : int, optional
        Size of the vocabulary.
    boundary : int, optional
        Id of the sentence boundary.

    Attributes
    ----------
    trie_ : KenlmTrie
        The n-grams.
    n_ngrams_ : ndarray of int64, shape (order_,)
        Number of n-grams stored of each order. For tries these include the suffixes of
        n-grams that the ARPA file lacked, which KenLM inserts with the probability of
        their back-off.
    order_, n_words_ : int
        The order and vocabulary size in use.

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
