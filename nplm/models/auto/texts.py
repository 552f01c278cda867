"""The text of a fit of `AutoLM` in ids, what is held out, and running text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm.base.blocks import Texts
from nplm.base.estimators.scored_texts import context_of_texts
from nplm.models.ngrams.trie.work import Work
from nplm.text.documents import Documents
from nplm.text.lm.window_scorer import WindowWordScorer

# Words of a cache, and of the documents before those of a call that are read again.
CACHE_WORDS = 500
# Pieces, at equal distances, that are held out of a text; or its end, of fewer
# documents than this many.
N_PIECES = 30
MIN_DOCUMENTS = 100


@dataclass(frozen=True, eq=False)
class AutoText:
    """Training and held-out documents in ids."""

    train: Documents
    held_out: Documents | None
    n_words: int
    boundary: int | None  # id of the symbol that ends documents; None if none does
    is_running: bool = False  # whether the documents are one text in its order
    n_columns: int = 0  # of windows, whose runs the documents are; 0 of others

    @property
    def n_tokens(self) -> int:
        """Number of tokens to train on, ends of documents too."""
        return self._n_tokens(self.train)

    @property
    def n_held_out(self) -> int:
        """Number of held-out tokens."""
        return 0 if self.held_out is None else self._n_tokens(self.held_out)

    def _n_tokens(self, documents: Documents) -> int:
        more = -self.n_columns if self.n_columns else 1
        return int(np.maximum(documents.lengths + more, 0).sum())

    def joined(self, documents: Documents) -> NDArray[np.int32]:
        """Return documents as one text, with a boundary after each."""
        ends = np.cumsum(documents.lengths)
        return np.insert(documents.ids, ends, self.boundary or 0)

    def texts(self, documents: Documents, n_context: int) -> Texts:
        """Return documents as texts, of which every token is predicted."""
        boundary = self.boundary or 0
        if self.n_columns:
            fill = np.full(max(n_context - self.n_columns, 0), boundary, np.int32)
            runs = np.split(documents.ids, np.cumsum(documents.lengths)[:-1])
            runs = [np.concatenate([fill, run]) for run in runs]
            return Texts.of(runs, self.n_columns + len(fill), None, ends=False)
        if self.is_running:
            whole = [self.joined(documents)]
            return Texts.of(whole, n_context, boundary, ends=False)
        return documents.texts(n_context, boundary, ends=True)

    def fit_ngrams(self, model: Any, work: Work) -> Any:
        """Fit n-grams of words or classes, in memory or on disk."""
        held_out = self.held_out and self._windows(self.held_out, model.order)
        return model.fit_windows(
            work, *self._windows(self.train, model.order), held_out
        )

    def _windows(
        self, documents: Documents, order: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the windows that n-grams are counted in."""
        n_context = max(order - 1, 1)
        if self.n_columns:
            texts = self.texts(documents, n_context)
        else:
            joined = [self.joined(documents)]
            texts = Texts.of(joined, n_context, self.boundary, ends=False)
        X, y = texts.windows()
        return X[:, X.shape[1] - n_context :], y

    def fit_cache(self, model: Any) -> Any:
        """Fit a cache; a text of joined documents takes less memory than texts do."""
        if self.n_columns:
            return model.fit_texts(self.texts(self.train, model.length), None)
        return model.fit_stream(self.joined(self.train))


def runs_of(X: NDArray[np.int32], y: NDArray[np.int32]) -> Documents:
    """Return the runs of windows: rows of which each continues the one before.

    A run has the context of its first row, and the next words of all.
    """
    follows = (X[1:, :-1] == X[:-1, 1:]).all(axis=1) & (X[1:, -1] == y[:-1])
    first = np.flatnonzero(np.insert(~follows, 0, True))
    n_columns = X.shape[1]
    ids = np.insert(y, np.repeat(first, n_columns), X[first].ravel())
    return Documents(ids, np.diff(first, append=len(y)) + n_columns)


def split(documents: Documents, n_tokens: int) -> tuple[Documents, Documents]:
    """Return documents without a part of about `n_tokens` tokens, and the part."""
    ids, lengths = documents.ids, documents.lengths
    if len(lengths) < MIN_DOCUMENTS:
        return _cut(documents, len(ids) - n_tokens)
    starts = np.cumsum(lengths) - lengths
    # Documents that begin in the last tokens of each of so many equal parts.
    a_part = len(ids) / N_PIECES
    is_held_out = starts % a_part >= a_part - n_tokens / N_PIECES
    if not is_held_out.any() or is_held_out.all():
        is_held_out = np.arange(len(lengths)) == len(lengths) - 1
    words = np.repeat(is_held_out, lengths)
    return (
        Documents(ids[~words], lengths[~is_held_out]),
        Documents(ids[words], lengths[is_held_out]),
    )


def _cut(documents: Documents, at: int) -> tuple[Documents, Documents]:
    """Cut documents at a token, which may be within one."""
    ends = np.cumsum(documents.lengths)
    before = np.clip(documents.lengths - np.maximum(ends - at, 0), 0, None)
    after = documents.lengths - before
    return (
        Documents(documents.ids[:at], before[before > 0]),
        Documents(documents.ids[at:], after[after > 0]),
    )


class RunningWordScorer(WindowWordScorer):
    """Score documents as one text: the context of a document is the one before it.

    The text goes on from call to call of `tokens`. Words that are scored one by one
    begin a text.
    """

    _before = np.empty(0, np.int32)

    def restart(self) -> None:
        """Begin another text."""
        self._before = np.empty(0, np.int32)

    def _texts(
        self, ids: NDArray[np.int32], lengths: NDArray[np.intp], eos: bool
    ) -> tuple[Texts, NDArray[np.intp]]:
        if len(lengths) == 0:
            return super()._texts(ids, lengths, eos)
        before = self._before
        text = np.insert(ids, np.cumsum(lengths), self.boundary).astype(np.int32)
        tokens = np.arange(len(text))
        if not eos:
            tokens = np.delete(tokens, np.cumsum(lengths + 1) - 1)
        whole = np.concatenate([before, text])
        self._before = whole[-CACHE_WORDS:]
        columns = context_of_texts(self.model)
        texts = Texts.of([whole], columns, self.boundary, ends=False)
        return texts, len(before) + tokens

    def _after(self, words: Any, i: int, *end: Any) -> Any:
        return (*words, i, *end)
