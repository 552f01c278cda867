"""RunningWordScorer: score documents that follow each other in one text."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm.base.blocks import Texts
from nplm.models.auto.fitting import CACHE_WORDS
from nplm.text.lm.window_scorer import WindowWordScorer

__all__ = ["RunningWordScorer"]

# Words before the documents of a call that are read again: all that a cache has.
MAX_BEFORE = CACHE_WORDS


class RunningWordScorer(WindowWordScorer):
    """Score documents as one text: the context of a document is the one before it.

    The text goes on from call to call of `tokens`. Words that are scored one by one
    begin a text.
    """

    _before = np.empty(0, np.int32)

    def restart(self) -> None:
        """Begin another text."""
        self._before = np.empty(0, np.int32)

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
        n_columns, before = max(self.model._n_context_of_texts(), 1), self._before
        whole = np.concatenate([before, text])
        texts = Texts.of([whole], n_columns, self.boundary, ends=False)
        self._before = whole[-MAX_BEFORE:]
        log_prob = self.model._texts_log_prob(texts)[len(before) :]
        by_token: dict[str, NDArray[Any]] = {}
        if details and hasattr(self.model, "_token_details"):
            by_token = self.model._token_details(texts.X[len(before) :])
        if not eos:
            ends = np.cumsum(lengths + 1) - 1
            log_prob = np.delete(log_prob, ends)
            by_token = {
                name: np.delete(of, ends, axis=0) for name, of in by_token.items()
            }
        return log_prob, by_token

    def _after(self, words: Any, i: int, *end: Any) -> Any:
        return (*words, i, *end)
