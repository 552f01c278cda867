"""KneserNeyLM: Kneser-Ney models of windows, streams or tables of counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from numbers import Real
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import StrOptions

from nplm.base.array_types import Ids
from nplm.base.atomic import all_or_nothing
from nplm.base.checks import check_boundary, check_ids
from nplm.base.estimators.bases import hyperparameters
from nplm.base.estimators.checked_inputs import HeldOut
from nplm.base.estimators.language_model import refusing_weights
from nplm.base.fitted import Fitted, Item, invalid_item
from nplm.models.ngrams.backoff_model import BackoffModel
from nplm.models.ngrams.stages.counts import (
    NgramCounts,
    check_counts,
    check_total,
    taken_counts,
)
from nplm.models.ngrams.stages.runs import Packing, Windows
from nplm.models.ngrams.stages.smoothing import (
    Estimate,
    Smoothing,
    estimated,
    smoothed,
)
from nplm.models.ngrams.trie.hashing import index_of
from nplm.models.ngrams.trie.trie_checks import arrays_of
from nplm.models.ngrams.trie.work import Work


@hyperparameters
class KneserNeyLM(BackoffModel):
    r"""n-gram model with Kneser-Ney smoothing, interpolated or back-off.

    The model of Chen and Goodman (1999) has absolute discounts
    :math:`D_1, D_2, D_{3+}` for each order, and estimates the lower orders from the
    number of distinct words before an n-gram instead of its count (Kneser and Ney
    1995),

    .. math:: P(w | c) = \frac{a(c, w) - D(a(c, w))}{\sum_v a(c, v)}
        + \gamma(c) P(w | c'),

    where c' is the context without its oldest word. The back-off model uses only the
    first term for words seen after c, and only the second for the others. The order
    below the unigrams is the uniform distribution, so every word of the vocabulary has
    a positive probability. The back-off model assigns the mass discounted from the
    unigrams to unseen words.

    Parameters
    ----------
    order : int, optional
        Words in the longest n-gram. By default, every column of the windows and the
        next word.
    n_words : int, optional
        Size of the vocabulary; inferred from the training windows by default.
    interpolate : bool, default=True
        Whether to interpolate all orders or to back off to the lower ones.
    interpolate_unigrams : bool, default=True
        Whether the mass discounted from the unigrams goes to all words, as by KenLM.
        False divides it among the words that do not occur, as ``lmplz
        --interpolate_unigrams 0`` and SRILM's ``ngram-count -unk`` do: all of it goes
        to ``<unk>`` if each word of the text has an id of its own.
    min_counts : sequence of int, optional
        Minimum (modified) count of the n-grams to keep, one per order; the last one
        applies to all higher orders. By default every n-gram is kept. Unigrams are
        kept in any case. The discounts are those of all n-grams.
    min_counts_of : {"modified", "text"}, default="modified"
        The counts that `min_counts` is compared with. "modified" takes the counts that
        the model is estimated from, as SRILM does: for lower orders the number of
        distinct words before. ``(1, 1, 2)`` is its default. The mass of the dropped
        n-grams goes to the words that are not kept. "text" takes the counts in the
        text, as KenLM does: ``lmplz --prune 0 0 1`` is ``(1, 1, 2)``. Each context and
        suffix of a kept n-gram is kept, and the mass of the dropped n-grams is
        interpolated over all words. The minimum counts must not decrease.
    boundary : int, optional
        Id of the sentence boundary: a context ends at the nearest boundary, and
        n-grams that begin with it keep their raw counts. For windows made with the
        same `boundary`.
    discounts : {"modified", "plain"}, default="modified"
        "modified" estimates three discounts per order, for n-grams seen once, twice
        and more often (Chen and Goodman 1999); "plain" estimates a single one,
        n1 / (n1 + 2 n2) (Kneser and Ney 1995).
    discount_fallback : float or sequence of 3 floats, optional
        Discounts of an order whose counts give no estimate, as happens with a small
        text or a vocabulary without rare words: three, for n-grams seen once, twice and
        more often, or one for all. None uses 0.5, 1 and 1.5 (0.5 with plain discounts)
        and warns.

    Attributes
    ----------
    discounts_ : ndarray of float64, shape (order_, 3)
        The discounts of n-grams seen once, twice, and more often.
    n_ngrams_ : ndarray of int64, shape (order_,)
        Number of n-grams stored of each order. Every word of the vocabulary is a
        unigram.
    trie_ : BackoffTrie
        The probabilities and back-off weights.
    index_ : HashTable or None
        The same n-grams in a hash table, used to look up next words. None for order 1
        and orders above 16. It is neither saved nor pickled, but rebuilt on loading.
    counts_ : NgramCounts or None
        The counts, to which `partial_fit` adds; None of n-grams in an `AutoLM` or a
        `ClassLM`, which keep no counts.
    n_parameters_ : int
        Number of probabilities and back-off weights stored.
    order_, n_words_ : int
        The order and vocabulary size in use.

    Warns
    -----
    UserWarning
        Once per fit, if `discount_fallback` is None and the counts of counts of an
        order give no usable discounts: one of n1 to n3 is 0 (or n4, without
        interpolation), or a discount is out of range.

    References
    ----------
    S. F. Chen and J. Goodman (1999). An empirical study of smoothing techniques
    for language modeling. Computer Speech and Language 13.

    R. Kneser and H. Ney (1995). Improved backing-off for m-gram language
    modeling. ICASSP.

    A. Stolcke (1998). Entropy-based pruning of backoff language models. DARPA
    Broadcast News Transcription and Understanding Workshop.

    A. Stolcke (2002). SRILM: an extensible language modeling toolkit. ICSLP.

    Examples
    --------
    >>> import numpy as np
    >>> from nplm import KneserNeyLM, windows
    >>> ids = np.random.default_rng(0).zipf(1.5, size=5000) % 100
    >>> X, y = windows(ids, 2)
    >>> model = KneserNeyLM(n_words=100).fit(X, y)
    >>> len(model.n_ngrams_), int(model.n_ngrams_[0])  # orders; words
    (3, 100)
    >>> proba = model.predict_proba([[1, 2], [98, 99]])
    >>> proba.shape, bool(np.allclose(proba.sum(axis=1), 1))
    ((2, 100), True)
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        "interpolate": ["boolean"],
        "interpolate_unigrams": ["boolean"],
        "min_counts_of": [StrOptions({"modified", "text"})],
        "discounts": [StrOptions({"modified", "plain"})],
        "discount_fallback": [Real, "array-like", None],
    }

    order: int | None = field(default=None, kw_only=False)
    n_words: int | None = None
    interpolate: bool = True
    interpolate_unigrams: bool = True
    min_counts: Sequence[int] | None = None
    min_counts_of: Literal["modified", "text"] = "modified"
    boundary: int | None = None
    discounts: Literal["modified", "plain"] = "modified"
    discount_fallback: float | Sequence[float] | None = None

    def _fit(self, X: Ids, y: Ids, held_out: HeldOut | None) -> None:
        self.fit_source(Windows(X, y), Work(), keep_counts=True)

    def fit_windows(
        self, work: Work, X: Ids, y: Ids, held_out: HeldOut | None = None
    ) -> Self:
        """Fit to windows as `fit`, in memory or on disk, and keep no counts."""
        return self.fit_source(Windows(*self._start_fit(X, y)), work)

    def fit_source(
        self,
        windows: Windows,
        work: Work,
        *,
        keep_counts: bool = False,
        warned_from: int = 1,
    ) -> Self:
        """Fit to checked windows; n-grams on disk get no hash table."""
        smoothing = self._smoothing()
        packing = Packing.of(self.order_, self.n_words_, self.boundary)
        estimate, counts = estimated(
            windows, packing, smoothing, work,
            keep_counts=keep_counts, warned_from=warned_from,
        )  # fmt: skip
        work.release_pages(*estimate.trie.every_array)
        return self._set_estimate(estimate, counts, indexed=not work.on_disk)

    @refusing_weights
    @all_or_nothing
    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Add the counts of more windows, and re-estimate the model.

        After any number of calls, with or without a `fit` before them, the model is
        bit for bit the one of a single `fit` of all the windows.

        Parameters
        ----------
        X : array-like of int, shape (n_samples, n_context)
            Contexts, the nearest word in the last column.
        y : array-like of int, shape (n_samples,)
            Next words. Set `n_words` if the first windows do not contain every word.

        Returns
        -------
        self : KneserNeyLM

        Raises
        ------
        ValueError
            See `fit`.
        """
        first, before = not hasattr(self, "counts_"), None
        if not first:
            before = self.counts_
            if before is None:
                raise ValueError(
                    "this model keeps no counts, to which partial_fit would add: fit a "
                    "KneserNeyLM to all windows."
                )
        X, y = self._start_fit(X, y, reset=first)
        self._smoothing()
        counts = NgramCounts.from_windows(
            X, y, n_words=self.n_words_, boundary=self.boundary
        )
        merged = counts if before is None else before.merged(counts)
        return self._estimate_counts(merged)

    def _fit_streams(
        self, ids: object, ids_val: object, sample_weight: object, **fit_params: object
    ) -> Self:
        ids, _ = self._copies(ids, sample_weight)  # a whole number of each
        texts, is_list = self._checked_texts(ids, "ids", self.n_words)
        if is_list and self.boundary is None:
            self.columns_of_texts()
            if not any(map(len, texts)):
                raise ValueError("ids has documents, but no token; pass more ids.")
            if ids_val is not None:
                self._checked_texts(ids_val, "ids_val", self.n_words)
            return self._fit_sentences(texts, **fit_params)
        if is_list:  # a context ends at the boundary of the sentence before
            end = np.array([self.boundary], np.int32)
            ids = np.concatenate([part for text in texts for part in (text, end)])
        return super()._fit_streams(ids, ids_val, None, **fit_params)

    @all_or_nothing
    def _fit_sentences(self, sentences: list[Ids]) -> Self:
        """Fit sentences without boundaries; at their starts shorter n-grams count."""
        n_context = self._columns_needed()
        ids = np.concatenate([np.zeros(n_context, np.int32), *sentences])
        view = np.lib.stride_tricks.sliding_window_view
        self._start_fit(view(ids[:-1], n_context), ids[n_context:])
        self._smoothing()
        position = np.concatenate([np.arange(len(sentence)) for sentence in sentences])
        tables = [
            view(ids, k + 1)[n_context - k :][position >= k] for k in range(self.order_)
        ]
        ones = [np.ones(len(table), dtype=np.int64) for table in tables]
        counts = NgramCounts.from_tables(tables, ones, n_words=self.n_words_)
        return self._estimate_counts(counts)

    @all_or_nothing
    def fit_counts(
        self,
        ngrams: ArrayLike | Sequence[ArrayLike],
        counts: ArrayLike | Sequence[ArrayLike],
    ) -> Self:
        """Estimate the model from tables of n-gram counts.

        Parameters
        ----------
        ngrams : array-like of int, shape (n, k), or a list of them
            n-grams of k words, the next word in the last column; the counts of equal
            rows add up. Or a list of tables of 1, 2, ... words with the raw counts of
            each order, as ``nplm.formats.read_counts`` returns. The counts must come
            from one text: every suffix of an n-gram is counted, at least as often as
            all n-grams that end with it.
        counts : array-like of int, shape (n,), or a list of them
            How often each occurs.

        Returns
        -------
        self : KneserNeyLM

        Raises
        ------
        ValueError
            If a count is negative or not a whole number, the counts add up to 2**53 or
            more, the counts of different orders contradict each other, or ids are out
            of range.

        Examples
        --------
        >>> import numpy as np
        >>> from nplm import KneserNeyLM, windows
        >>> ids = np.random.default_rng(0).zipf(1.5, size=5000) % 100
        >>> X, y = windows(ids, 2)
        >>> rows = np.column_stack([X, y])
        >>> rows, counts = np.unique(rows, axis=0, return_counts=True)
        >>> model = KneserNeyLM(n_words=100).fit_counts(rows, counts)
        >>> bool(model.score(X, y) == KneserNeyLM(n_words=100).fit(X, y).score(X, y))
        True
        """
        self._validate_params()
        if len(cast(Any, ngrams)) == 0:
            raise ValueError("ngrams is empty: there is nothing to estimate from.")
        is_list = isinstance(ngrams, (list, tuple)) and np.ndim(ngrams[0]) == 2
        tables: list[Any] = list(cast(Any, ngrams)) if is_list else [ngrams]
        counts_of: list[Any] = list(cast(Any, counts)) if is_list else [counts]
        if len(tables) != len(counts_of):
            raise ValueError(
                f"got {len(tables)} tables of n-grams, but {len(counts_of)} of counts; "
                "pass one of each per order."
            )
        columns, totals = [], []
        for table, of_table in zip(tables, counts_of):
            rows = check_ids(table, "ngrams", ndim=2, n_words=self.n_words)
            n = check_counts(of_table, len(rows))
            # A row of count 0 does not occur in the text.
            columns.append(rows[n > 0])
            totals.append(n[n > 0])
        longest = columns[-1].shape[1]
        for k, table in enumerate(columns, 1 if is_list else max(longest, 1)):
            if table.shape[1] == 0:
                raise ValueError(
                    "ngrams must have at least one column, got n-grams of no words."
                )
            if table.shape[1] != k:
                raise ValueError(
                    f"ngrams[{k - 1}] must have {k} columns, the n-grams of {k} words, "
                    f"got an array of shape {table.shape}."
                )
        if longest == 1 and self.order != 1:
            raise ValueError(
                f"ngrams are single words, but order is {self.order!r}: for a unigram "
                "model set order=1; for a higher order pass longer n-grams as well."
            )
        # Windows of all ids: their number of columns and words is checked.
        width = max(longest, 2)
        wide = np.concatenate(
            [np.pad(rows, ((0, 0), (width - rows.shape[1], 0))) for rows in columns]
        )
        self._start_fit(wide[:, :-1], wide[:, -1])
        del wide
        self._smoothing()
        k = self.order_
        if is_list:
            tables, totals = columns[:k], totals[:k]
            of_orders = NgramCounts.from_tables(
                tables, totals, n_words=self.n_words_, boundary=self.boundary
            )
            of_orders.check_suffixes()
            return self._estimate_counts(of_orders)
        check_total(float(totals[0].sum(dtype=np.float64)))
        rows = columns[0][:, -k:]
        windows = Windows(rows[:, :-1], rows[:, -1], totals[0])
        return self.fit_source(windows, Work(), keep_counts=True)

    def _estimate_counts(self, counts: NgramCounts) -> Self:
        modified, smoothing = counts.continuation_counts(), self._smoothing()
        estimate = smoothed(counts, modified, counts.counts, smoothing, Work())
        return self._set_estimate(estimate, counts)

    def _set_estimate(
        self, estimate: Estimate, counts: NgramCounts | None, *, indexed: bool = True
    ) -> Self:
        self.discounts_, self.counts_ = estimate.discounts, counts
        self._set_trie(estimate.trie, index_of(estimate.trie) if indexed else None)
        return self

    def _smoothing(self) -> Smoothing:
        check_boundary(self.boundary, self.n_words_)
        return self.smoothing(self.order_)

    def smoothing(self, order: int) -> Smoothing:
        """Return the parameters of an estimation of this order, or raise ValueError."""
        sizes = {"order", "n_words", "boundary"}
        settings = self.get_params(deep=False)
        return Smoothing.of(
            order, **{k: value for k, value in settings.items() if k not in sizes}
        )

    _saved: ClassVar[dict[str, Item]] = {
        "counts": Item(
            lambda fitted, name: (
                None if fitted.is_none(name) else taken_counts(fitted, name)
            ),
            of=lambda lm: lm.counts_ and arrays_of(lm.counts_),
        ),
        "discounts": Item(Fitted.array, np.float64, (None, 3), 0),
    }

    def _set_saved(self, values: dict[str, Any]) -> None:
        super()._set_saved(values)
        self.counts_ = counts = values["counts"]
        sizes = self.n_words_, self.order_
        if counts is not None and (counts.n_words, counts.order) != sizes:
            raise ValueError("counts and trie differ in vocabulary size or order")
        if len(self.discounts_) != self.order_:
            raise invalid_item("discounts", self.discounts_)
