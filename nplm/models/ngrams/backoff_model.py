"""BackoffModel, base class of models that score with a back-off trie; BackoffLM."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from nplm.base.array_types import Counts, Floats, Ids
from nplm.base.atomic import all_or_nothing
from nplm.base.estimators.language_model import WordsMass
from nplm.base.fitted import Fitted, Item, invalid_item
from nplm.models.ngrams.looked_up_lm import QuickLookUps, ReadFromFile
from nplm.models.ngrams.stages.pruning import pruned_by_entropy
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.hash_table import HashTable
from nplm.models.ngrams.trie.hashing import index_of
from nplm.models.ngrams.trie.packed_trie import MappedTrie
from nplm.models.ngrams.trie.trie_checks import arrays_of, restored_trie, sums_to_one
from nplm.models.ngrams.trie.word_scorer import word_scorer_of
from nplm.models.ngrams.trie.work import Work


class BackoffModel(QuickLookUps):
    """Base class of models that look words up in a back-off trie."""

    trie_: BackoffTrie | MappedTrie
    index_: HashTable | None
    _looked_up_in = "index_"
    n_ngrams_: Counts

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
        trie = self.trie_.unpacked()
        pruned = pruned_by_entropy(trie, threshold, Work())
        if pruned is not trie:
            self._set_trie(pruned, None if self.index_ is None else index_of(pruned))
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
            self.index_ = index_of(self.trie_.unpacked())
        return self

    @property
    def n_parameters_(self) -> int:
        """Number of probabilities and back-off weights stored."""
        # Computed on demand, so that loading a mapped file does not read it.
        n_contexts = int(np.count_nonzero(np.diff(self.trie_.unpacked().start)))
        return int(self.n_ngrams_.sum()) + n_contexts

    def _set_trie(
        self, trie: BackoffTrie | MappedTrie, index: HashTable | None
    ) -> None:
        self.trie_, self.index_ = trie, index
        self.n_ngrams_ = trie.n_ngrams

    def __getstate__(self) -> dict[str, object]:
        state = dict(super().__getstate__())
        if "index_" in state:
            # The index is larger than the trie and can be rebuilt: keep a flag only.
            state["index_"] = state["index_"] is not None
        return state

    def __setstate__(self, state: dict[str, object]) -> None:
        super().__setstate__(state)
        if "index_" in state:
            trie = self.trie_.unpacked()
            self.index_ = index_of(trie) if state["index_"] else None

    _saved: ClassVar[dict[str, Item]] = {
        "trie": Item(
            lambda fitted, name: restored_trie(fitted.inner(name)),
            of=lambda lm: arrays_of(lm.trie_.unpacked()),
        )
    }

    def _set_saved(self, values: dict[str, Any]) -> None:
        super()._set_saved(values)
        trie = values["trie"]
        if self.order_ != trie.order:
            raise invalid_item("order", self.order_)
        # The probabilities of a file of another toolkit need not sum to 1.
        if values.get("sums_to_one", True) and not sums_to_one(trie):
            raise ValueError("its probabilities do not sum to 1")
        self.n_words_ = trie.n_words
        self._set_trie(trie, index_of(trie))

    def _predict_proba(self, X: Ids) -> Floats:
        return self.trie_.distribution(X)

    def _candidate_log_prob(self, X: Ids, candidates: Ids, normalize: bool) -> Floats:
        prob = self.trie_.words_prob(X, candidates)
        with np.errstate(divide="ignore"):
            return np.log(prob, out=prob)

    def word_scorer(
        self, boundary: int, ids: dict[Any, int] | None, unknown: int
    ) -> object:
        """Return the word-by-word scorer, or None if there is no index."""
        if self.index_ is None:
            return None
        return word_scorer_of(self.index_, boundary, ids, unknown)

    def words_mass(self, words: Ids) -> WordsMass:
        return TrieMass(self, words)


class TrieMass(WordsMass):
    """Probability mass of a set of words after each context, or its longest suffix."""

    # Of which trie, and the mass after each of its contexts: one value, because threads
    # share it.
    _masses: tuple[BackoffTrie, Floats] | None = None

    def after(self, X: Ids) -> Floats:
        trie, masses = self.model.trie_.unpacked(), self._masses
        # Before the first call, or after the model has been pruned.
        if masses is None or masses[0] is not trie:
            masses = self._masses = trie, trie.masses(self.words)
        return masses[1][trie.longest_contexts(self.model._check_X(X))]

    def __getstate__(self) -> dict[str, object]:
        # The masses are quick to compute again.
        return {"model": self.model, "words": self.words}


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
    trie_ : BackoffTrie, or MappedTrie of a mapped file
        The probabilities and back-off weights; ``trie_.unpacked()`` has the arrays.
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

    _saved: ClassVar[dict[str, Item]] = {
        "sums_to_one": Item(
            Fitted.take, bool, of=lambda lm: sums_to_one(lm.trie_.unpacked())
        )
    }

    @classmethod
    def from_trie(
        cls,
        trie: BackoffTrie | MappedTrie,
        index: HashTable | None = None,
        *,
        boundary: int | None = None,
    ) -> Self:
        """Make a fitted model from a trie.

        Parameters
        ----------
        trie : BackoffTrie or MappedTrie
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
