"""WordSteps: steps over the words of a decoder, in KenLM's unit."""

from __future__ import annotations

import math
from collections.abc import Hashable

from nplm.text.lm.text_lm import TextLM

LN10 = math.log(10)
# log10 of probability 0, as KenLM has it: infinity would hide all other scores.
LOG10_ZERO = -100.0


def check_words(lm: object, caller: str) -> None:
    """Raise an error unless `lm` is a fitted text model of words."""
    if not isinstance(lm, TextLM) or getattr(lm, "vocabulary_", None) is None:
        raise TypeError(
            f"{caller} needs a fitted TextLM with a vocabulary, got "
            f"{type(lm).__name__}: fit a TextLM on words, or make one by "
            "TextLM.from_model(model, words)."
        )


class WordSteps:
    """Steps of a fitted text model with log10 scores, which are never infinite."""

    def __init__(self, lm: TextLM, caller: str) -> None:
        check_words(lm, caller)
        self.scorer = lm.scorer()

    def begin(self, bos: bool) -> Hashable:
        """Return the state before the first word."""
        return self.scorer.begin(bos=bos)

    def step(self, state: Hashable, word: str) -> tuple[float, Hashable]:
        """Return log10 of the probability of a word, and the state after it."""
        log_prob, after = self.scorer.step(state, word)
        return max(log_prob / LN10, LOG10_ZERO), after

    def end(self, state: Hashable) -> float:
        """Return log10 of the probability that the sentence ends here."""
        return max(self.scorer.end(state) / LN10, LOG10_ZERO)
