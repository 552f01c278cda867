"""RunningWordScorer: score documents that follow each other in one text."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm.text.lm.window_scorer import WindowWordScorer
from nplm.text.windows import windows

__all__ = ["RunningWordScorer"]


class RunningWordScorer(WindowWordScorer):
    """Score documents as one text: the context of a document is the one before it.

    The text goes on from call to call of `tokens`. Words that are scored one by one
    begin a text.
    """

    _before: NDArray[np.int32] | None = None

    def restart(self) -> None:
        """Begin another text."""
        self._before = None

    def tokens(
        self,
        ids: NDArray[np.int32],
        lengths: NDArray[np.intp],
        bos: bool,
        eos: bool,
        details: bool = False,
    ) -> tuple[NDArray[np.float64], dict[str, NDArray[Any]]]:
        """Return the log-probability of each token; see `WindowWordScorer.tokens`."""
        self._check(bos)
        text = np.insert(ids, np.cumsum(lengths), self.boundary).astype(np.int32)
        if len(text) == 0:
            return np.empty(0), {}
        if self._before is None:
            self._before = np.full(self.n_context, self.boundary, np.int32)
        X, y = windows(text, self.n_context, history=self._before)
        self._before = np.concatenate([self._before, text])[-self.n_context :]
        if not eos:
            ends = np.cumsum(lengths + 1) - 1
            X, y = np.delete(X, ends, axis=0), np.delete(y, ends)
        weights_of = getattr(self.model, "_token_details", None) if details else None
        return self.model.log_prob(X, y), {} if weights_of is None else weights_of(X)

    def _after(self, state: tuple[int, ...], i: int) -> tuple[int, ...]:
        return (*state[1:], i)
