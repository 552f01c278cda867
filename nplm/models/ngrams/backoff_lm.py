"""BackoffLM: a back-off n-gram model read from a file."""

from __future__ import annotations

from typing import Any, Self

from nplm.base.fitted import Fitted
from nplm.models.ngrams.backoff_model import BackoffModel
from nplm.models.ngrams.look_ups import ReadFromFile
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.checks import sums_to_one
from nplm.models.ngrams.trie.hash_table import HashTable

__all__ = ["BackoffLM"]


class BackoffLM(ReadFromFile, BackoffModel):
    """Back-off n-gram model read from a file.

    The model scores windows and predicts the next word like any other, but cannot be
    fitted; ``KneserNeyLM`` estimates a model from windows.

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
    trie_ : BackoffTrie
        The probabilities and back-off weights.
    index_ : HashTable or None
        The same n-grams in a hash table, used to look up next words. None for order 1
        and orders above 16, and if the file was read without it (`build_index` makes
        it).
    n_ngrams_ : ndarray of int64, shape (order_,)
        Number of n-grams stored of each order. Every word of the vocabulary is a
        unigram.
    n_parameters_ : int
        Number of probabilities and back-off weights stored.
    order_, n_words_ : int
        The order and vocabulary size in use.

    Notes
    -----
    Look-ups use the hash table ``index_``. A binary file contains it; for any other
    format it is built when the file is read, from about 16 bytes per n-gram.

    See Also
    --------
    nplm.formats.read_arpa : Read an ARPA file of SRILM, KenLM or nplm.

    References
    ----------
    A. Stolcke (1998). Entropy-based pruning of backoff language models. DARPA
    Broadcast News Transcription and Understanding Workshop.
    """

    _reader = "read_arpa"

    def _fitted(self) -> dict[str, Any]:
        # The probabilities of a file of another toolkit need not sum to 1.
        return super()._fitted() | {"sums_to_one": sums_to_one(self.trie_)}

    def _restore(self, fitted: Fitted) -> None:
        super()._restore(fitted)
        if fitted.take("sums_to_one", bool):
            self._check_sums()

    @classmethod
    def from_trie(
        cls,
        trie: BackoffTrie,
        index: HashTable | None = None,
        *,
        boundary: int | None = None,
    ) -> Self:
        """Make a fitted model from a trie.

        Parameters
        ----------
        trie : BackoffTrie
            The n-grams.
        index : HashTable, optional
            The hash table of this trie. Without it, look-ups walk the trie.
        boundary : int, optional
            Id of the sentence boundary.

        Returns
        -------
        model : BackoffLM
        """
        model = cls._of_sizes(trie.order, trie.n_words, boundary)
        model._set_trie(trie, index)
        return model
