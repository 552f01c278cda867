"""BackoffLM: an n-gram model that was estimated elsewhere."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from nplm.base.fitted import Fitted
from nplm.models.ngrams.backoff_model import BackoffModel
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.checks import sums_to_one
from nplm.models.ngrams.trie.hash_table import HashTable

__all__ = ["BackoffLM"]


class BackoffLM(BackoffModel):
    """An n-gram model that backs off, as read from a file.

    Scores, and gives the distribution of the next word, like any other model; it
    cannot be fitted. ``KneserNeyLM`` estimates one.

    Parameters
    ----------
    order : int, optional
        Words in the longest n-gram.
    n_words : int, optional
        Size of the vocabulary.
    boundary : int, optional
        Id of the mark between sentences, for windows made with this `boundary`.

    Attributes
    ----------
    trie_ : BackoffTrie
        The probabilities and back-off weights.
    index_ : HashTable or None
        The same n-grams in a hash table, which look-ups of next words use; None for
        orders 1 and above 16, and where it was not wanted (`build_index` makes it).
    n_ngrams_ : ndarray of int64, shape (order_,)
        n-grams stored of each order; every word of the vocabulary is a unigram.
    n_parameters_ : int
        Probabilities and back-off weights stored.
    order_, n_words_ : int
        The order and vocabulary size in use.

    Notes
    -----
    Look-ups go by the hash table ``index_``. A binary has it; a model that is read
    from another file makes it then, from about 24 bytes an n-gram.

    See Also
    --------
    nplm.formats.read_arpa : Read one from a file of SRILM, KenLM or nplm.

    References
    ----------
    A. Stolcke (1998). Entropy-based pruning of backoff language models. DARPA
    Broadcast News Transcription and Understanding Workshop.
    """

    def __init__(
        self,
        order: int | None = None,
        *,
        n_words: int | None = None,
        boundary: int | None = None,
    ) -> None:
        self.order = order
        self.n_words = n_words
        self.boundary = boundary

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
    ) -> Self:
        """Raise an error: there is nothing to estimate.

        Raises
        ------
        TypeError
            Always.
        """
        raise TypeError(
            f"{type(self).__name__} is read from a file (nplm.formats.read_arpa) and "
            "not fitted; to score documents by it, use TextLM.from_model, and to "
            "estimate a model from windows, KneserNeyLM."
        )

    def _fitted(self) -> dict[str, Any]:
        # A file from elsewhere may have given anything.
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
        """Make a fitted model of a trie.

        Parameters
        ----------
        trie : BackoffTrie
            The n-grams.
        index : HashTable, optional
            Of this trie; without it look-ups walk the trie.
        boundary : int, optional
            Id of the mark between sentences.

        Returns
        -------
        model : BackoffLM
        """
        model = cls(trie.order, n_words=trie.n_words, boundary=boundary)
        model.order_, model.n_words_ = trie.order, trie.n_words
        model.classes_ = np.arange(trie.n_words)
        model.n_features_in_ = max(trie.order - 1, 1)
        model._set_trie(trie, index)
        return model
