"""RunningWordScorer: score documents that follow each other in one text."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm.base.blocks import Texts
from nplm.base.estimators.scored_texts import context_of_texts
from nplm.models.auto.fitting import CACHE_WORDS
from nplm.text.lm.window_scorer import WindowWordScorer

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
        self._before = whole[-MAX_BEFORE:]
        columns = context_of_texts(self.model)
        texts = Texts.of([whole], columns, self.boundary, ends=False)
        return texts, len(before) + tokens

    def _after(self, words: Any, i: int, *end: Any) -> Any:
        return (*words, i, *end)
