"""UnknownSpelling: probabilities of how unknown words are spelled."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np

from nplm._kernels.ngrams.decoding._spelled import ByteNgrams

MAX_WORDS = 5000  # more gain little


class UnknownSpelling:
    """The probability of a word among all words that a vocabulary does not know.

    It is that of the word's bytes and its end, of a Witten-Bell model of the rarest
    words of the training text, interpolated down to equal probabilities. It sums to 1
    over all strings of bytes. Known words are among these, so the probabilities that a
    model and this one give to the words of a language sum to a little less than 1: what
    is computed from them is an upper bound of bits per character.

    `share` is that of `symbol`, if texts may have it, among unknown words of the text.
    """

    def __init__(
        self, words: Sequence[str], symbol: str | None = None, share: float = 0.0
    ) -> None:
        self.words, self.symbol, self.share = words, symbol, share

    @classmethod
    def of_counts(
        cls, counts: Mapping[Hashable, int], known: Mapping[Hashable, int], symbol: str
    ) -> Self | None:
        """Make that of a training text, None of events, which have no spelling."""
        words = [word for word in counts if type(word) is str and word != symbol]
        if not words:
            return None
        n = np.fromiter(map(counts.__getitem__, words), np.int64, len(words))
        last = min(MAX_WORDS, len(n)) - 1
        rare = np.flatnonzero(n <= np.partition(n, last)[last])
        # In order, so that counts of a text in another order give the same.
        chosen = sorted(words[i] for i in rare)[:: -(-len(rare) // MAX_WORDS)]
        n_unknown = int(n[[word not in known for word in words]].sum())
        n_symbols = counts.get(symbol, 0)
        # As if one more word were unknown.
        share = n_symbols / (n_symbols + n_unknown + 1)
        return cls(chosen, symbol, share)

    @classmethod
    def of_params(cls, params: Any, symbol: str | None) -> Self:
        """Make that of a file; raise ValueError if its parameters are invalid."""
        is_valid = isinstance(params, dict) and params.keys() == {"words", "share"}
        words, share = params.values() if is_valid else (None, None)
        if (
            not isinstance(words, list)
            or not all(type(word) is str for word in words)
            or type(share) is not float
            or not 0 <= share < 1
        ):
            raise ValueError(f"its spelling of unknown words is {params!r:.80}")
        return cls(words, symbol, share)

    @property
    def params(self) -> dict[str, Any]:
        """What a file says of it."""
        return {"words": list(self.words), "share": self.share}

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.words, self.symbol, self.share)

    @cached_property
    def _ngrams(self) -> ByteNgrams:
        """The n-grams of the bytes of the words."""
        return ByteNgrams(list(map(_encoded, self.words)))

    def log_prob(self, word: str) -> float:
        """Return the natural logarithm of the probability of a word."""
        total: float = self._ngrams.log_prob(_encoded(word))
        if word != self.symbol:
            return total + math.log1p(-self.share)
        return math.log(self.share + (1 - self.share) * math.exp(total))


def _encoded(word: str) -> bytes:
    return word.encode("utf-8", "surrogatepass")
