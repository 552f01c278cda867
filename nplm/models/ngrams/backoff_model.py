"""BackoffModel: base class of models that score with a back-off trie."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams._trie import take_logs
from nplm.base.atomic import all_or_nothing
from nplm.base.estimators import WordsMass
from nplm.base.fitted import Fitted
from nplm.models.ngrams.look_ups import QuickLookUps
from nplm.models.ngrams.saved import arrays_of, restored_trie
from nplm.models.ngrams.stages.pruning import pruned_by_entropy
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.checks import sums_to_one
from nplm.models.ngrams.trie.hash_table import HashTable
from nplm.models.ngrams.trie.hashing import index_of
from nplm.models.ngrams.trie.word_scorer import NgramWordScorer
from nplm.models.ngrams.trie.work import Work

__all__ = ["BackoffModel"]


class BackoffModel(QuickLookUps):
    """Base class of models that look words up in a back-off trie.

    A subclass makes the trie and passes it to ``_set_trie``.

    Attributes
    ----------
    trie_ : BackoffTrie
        The probabilities and back-off weights.
    index_ : HashTable or None
        The same n-grams in a hash table, used to look up next words.
    n_ngrams_ : ndarray of int64, shape (order_,)
        Number of n-grams stored of each order. Every word of the vocabulary is a
        unigram.
    """

    trie_: BackoffTrie
    index_: HashTable | None
    _looked_up_in = "index_"
    n_ngrams_: NDArray[np.int64]

    @all_or_nothing
    def prune(self, threshold: float) -> Self:
        r"""Drop the n-grams whose removal raises perplexity least (Stolcke 1998).

        An n-gram (c, w) is dropped, and the back-off weight of its context recomputed,
        if removing it alone changes the perplexity of the model by less than the
        fraction `threshold`: with P the model and P' the model without the n-gram,

        .. math:: \exp D(P \| P') - 1 < threshold,
            \quad D(P \| P') = -P(c) \sum_v P(v|c) [\log P'(v|c) - \log P(v|c)].

        The longest n-grams are pruned first. n-grams that are the context of remaining
        longer ones, or that end such a context, are kept as in SRILM: an ARPA file has
        a line for them anyway. So are all unigrams. P(c) is the product of the model's
        probabilities of the words of c.

        Parameters
        ----------
        threshold : float
            Relative change of perplexity, 0 or more; 1e-8 to 1e-6 is usual. 0 keeps
            every n-gram.

        Returns
        -------
        self : BackoffModel
            The same model, with fewer n-grams.
        """
        trie = pruned_by_entropy(self.trie_, threshold, Work())
        if trie is not self.trie_:
            self._set_trie(trie, None if self.index_ is None else index_of(trie))
        return self

    @all_or_nothing
    def build_index(self) -> Self:
        """Build the hash table of a model that was read without one.

        Fitting a model and reading a file build it, unless you read the file with
        ``read_arpa(path, index=False)``. Without it every look-up walks the trie, which
        takes several times as long and returns the same bits.

        Returns
        -------
        self : BackoffModel
        """
        if self.index_ is None:
            self.index_ = index_of(self.trie_)
        return self

    @property
    def n_parameters_(self) -> int:
        """Number of probabilities and back-off weights stored."""
        # Computed on demand, so that loading a mapped file does not read it.
        n_contexts = int(np.count_nonzero(np.diff(self.trie_.start)))
        return int(self.n_ngrams_.sum()) + n_contexts

    def _n_known(self) -> int:
        return self.trie_.n_words

    def _set_trie(self, trie: BackoffTrie, index: HashTable | None) -> None:
        self.trie_, self.index_ = trie, index
        self.n_ngrams_ = trie.n_ngrams

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "index_" in state:
            # The index is larger than the trie and can be rebuilt: keep a flag only.
            state["index_"] = state["index_"] is not None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "index_" in state:
            self.index_ = index_of(self.trie_) if state["index_"] else None

    def _fitted(self) -> dict[str, Any]:
        return super()._fitted() | {"trie": arrays_of(self.trie_.verified())}

    def _restore(self, fitted: Fitted) -> None:
        trie = restored_trie(fitted.inner("trie"))
        self._restore_sizes(fitted, trie.n_words)
        if self.order_ != trie.order:
            raise fitted.invalid_item("order", self.order_)
        self._set_trie(trie, index_of(trie))

    def _check_sums(self) -> None:
        """Raise ValueError if the probabilities after some context do not sum to 1."""
        if not sums_to_one(self.trie_):
            raise ValueError("its probabilities do not sum to 1")

    def _predict_proba(self, X: NDArray[np.int32]) -> NDArray[np.float64]:
        return self.trie_.distribution(X)

    def _log_prob(
        self, X: NDArray[np.int32], y: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        if self.index_ is not None:
            # Ids are checked, but another thread may change the array.
            log_prob = self.index_.next_word_log_prob(X, y)
            if log_prob is not None:
                return log_prob
        # A file may contain words of probability 0.
        prob = self.trie_.next_word_prob(X, y)
        take_logs(prob)
        return prob

    def _candidate_log_prob(
        self, X: NDArray[np.int32], candidates: NDArray[np.int32], normalize: bool
    ) -> NDArray[np.float64]:
        prob = self.trie_.words_prob(X, candidates)
        with np.errstate(divide="ignore"):
            return np.log(prob, out=prob)

    def _word_scorer(
        self, boundary: int, ids: dict[Any, int] | None, unknown: int
    ) -> NgramWordScorer | None:
        """Return the word-by-word scorer, or None if there is no index."""
        index = self.index_
        if index is None:
            return None
        return NgramWordScorer.of(index, boundary, ids, unknown)

    def _words_mass(self, words: NDArray[np.int32]) -> WordsMass:
        return TrieMass(self, words)


class TrieMass(WordsMass):
    """Probability mass of a set of words, precomputed for each context of a trie.

    A context that is not in the trie has the mass of its longest suffix that is.
    """

    # Of which trie, and the mass after each of its contexts: one value, because threads
    # share it.
    _made: tuple[BackoffTrie, NDArray[np.float64]] | None = None

    def after(self, X: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the sum of the probabilities of the words after each context.

        Parameters
        ----------
        X : ndarray of int32, shape (n_samples, n_context)
            As wide as the model's windows.

        Returns
        -------
        mass : ndarray of float64, shape (n_samples,)
        """
        trie, made = self.model.trie_, self._made
        # Before the first call, or after the model has been pruned.
        if made is None or made[0] is not trie:
            made = self._made = trie, trie.masses(self.words)
        return made[1][trie.longest_contexts(self.model._check_X(X))]

    def __getstate__(self) -> dict[str, Any]:
        # The masses are quick to compute again.
        return {"model": self.model, "words": self.words}
