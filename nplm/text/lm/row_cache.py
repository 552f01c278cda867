"""RowCache: the distributions after the contexts that a decoder asks for again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm.base.array_types import Floats

MAX_BYTES = 1 << 26

Context = tuple[Any, ...]
# The row of a context, and what the states of the words after it go on with.
Kept = tuple[NDArray[Any], Any]


class RowCache:
    """Log-probabilities of all words after the contexts that were used last.

    For a model that sums over all words to score one, such as a network with a softmax:
    hypotheses with the same context, whatever their next words, then cost one sum. At
    least one row is kept.

    The bits of a row do not depend on the other contexts of a call. Threads may share a
    cache: two of them may compute a row twice, and one that finds another thread
    keeping rows does not keep its own.
    """

    def __init__(self, model: Any, max_bytes: int = MAX_BYTES) -> None:
        self.model, self.max_bytes = model, max_bytes
        self._rows: OrderedDict[Context, Kept] = OrderedDict()
        self._keeping = Lock()
        self.capacity = max(1, max_bytes // (np.dtype(float).itemsize * model.n_words_))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.model, self.max_bytes)

    def row(self, context: Context) -> NDArray[Any]:
        """Return the log-probabilities (n_words_,) of all words after a context."""
        return self._rows_of([context])[context][0]

    def after(self, contexts: Sequence[Context]) -> list[Any]:
        """Return what the states of the words after each context go on with."""
        after: list[object] = []
        for start in range(0, len(contexts), self.capacity):
            part = contexts[start : start + self.capacity]
            rows = self._rows_of(part)
            after += [rows[context][1] for context in part]
        return after

    def log_prob(self, contexts: Sequence[Context], ids: Sequence[int]) -> Floats:
        """Return the log-probability (n,) of a word after each context."""
        out = np.empty(len(ids))
        for start in range(0, len(ids), self.capacity):
            part = slice(start, start + self.capacity)
            rows = self._rows_of(contexts[part])
            log_probs = [rows[c][0][i] for c, i in zip(contexts[part], ids[part])]
            out[part] = log_probs
        return out

    def _computed(self, contexts: list[Context]) -> Iterable[Kept]:
        rows = self.model.predict_log_proba(np.array(contexts, dtype=np.int32))
        return ((row, None) for row in rows)

    def _rows_of(self, contexts: Sequence[Context]) -> dict[Context, Kept]:
        """Return the row of each distinct context; at most `capacity` of them."""
        kept = {context: self._rows.get(context) for context in contexts}
        rows = {context: row for context, row in kept.items() if row is not None}
        missing = [context for context in kept if context not in rows]
        if missing:
            for context, (row, after) in zip(missing, self._computed(missing)):
                # A view would keep the rows of all of them in memory.
                rows[context] = row.copy(), after
        # Without waiting: a fork may lack the thread that holds the lock.
        if self._keeping.acquire(blocking=False):
            try:
                self._keep(rows)
            finally:
                self._keeping.release()
        return rows

    def _keep(self, rows: dict[Context, Kept]) -> None:
        for context, row in rows.items():
            self._rows[context] = row
            self._rows.move_to_end(context)
        for _ in range(len(self._rows) - self.capacity):
            self._rows.popitem(last=False)


class StateCache(RowCache):
    """The same for a model that reads texts: a context ends with a state, or None."""

    def _computed(self, contexts: list[Context]) -> Iterable[Kept]:
        X = np.array([context[:-1] for context in contexts], dtype=np.int32)
        return zip(*self.model._step(X, [context[-1] for context in contexts]))
