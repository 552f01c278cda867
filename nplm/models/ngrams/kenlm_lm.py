"""KenlmLM: n-grams in a binary file of KenLM, which are scored as they are."""

from __future__ import annotations

from nplm.models.ngrams.looked_up_lm import LookedUpLM

__all__ = ["KenlmLM"]


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
