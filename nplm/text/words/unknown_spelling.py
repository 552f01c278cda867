"""UnknownSpelling: probabilities of how unknown words are spelled."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, Self

import numpy as np

__all__ = ["UnknownSpelling"]

# More words, or longer contexts, gain little.
MAX_WORDS, N_CONTEXT = 5000, 4
# Bytes after contexts whose probabilities are remembered: 20 MB.
MAX_STEPS = 1 << 17
# A word is its bytes in UTF-8 and this one, which UTF-8 never has.
END = b"\xff"
N_SYMBOLS = 257  # the bytes, and the end


class UnknownSpelling:
    """The probability of a word among all words that a vocabulary does not know.

    It is that of the word's bytes and its end, of a Witten-Bell model of the rarest
    words of the training text, interpolated down to equal probabilities. It sums to 1
    over all strings of bytes. Known words are among these, so the probabilities that a
    model and this one give to the words of a language sum to a little less than 1: what
    is computed from them is an upper bound of bits per character.

    - `words`: the rare words of the training text
    - `symbol`: the symbol for unknown words, if texts may have it in place of a word
    - `share`: the share of `symbol` among the unknown words of the training text
    """

    def __init__(
        self, words: Sequence[str], symbol: str | None = None, share: float = 0.0
    ) -> None:
        self.words, self.symbol, self.share = words, symbol, share

    @classmethod
    def of_counts(
        cls, counts: Mapping[Hashable, int], known: Mapping[Hashable, int], symbol: str
    ) -> Self | None:
        """Make that of a training text, by the counts and the ids of its words.

        Returns None if the text has no words: other events have no spelling.
        """
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

    @cached_property
    def _counts(self) -> dict[bytes, tuple[int, dict[int, int]]]:
        """How often each byte follows each context of up to `N_CONTEXT` bytes.

        Beside the counts is what their probabilities are divided by: the number of
        bytes that follow, and that of different ones.
        """
        counts: dict[bytes, dict[int, int]] = {}
        of_length: list[dict[bytes, int]] = [{} for _ in range(N_CONTEXT + 2)]
        for step, n in Counter(chain.from_iterable(map(_steps, self.words))).items():
            of_length[len(step)][step] = n
        for length in range(N_CONTEXT + 1, 0, -1):
            shorter = of_length[length - 1]
            for step, n in of_length[length].items():
                counts.setdefault(step[:-1], {})[step[-1]] = n
                shorter[step[1:]] = shorter.get(step[1:], 0) + n
        return {
            context: (sum(seen.values()) + len(seen), seen)
            for context, seen in counts.items()
        }

    @cached_property
    def _probs(self) -> dict[bytes, float]:
        """The probabilities of steps that words had, at most `MAX_STEPS`."""
        return {}

    def log_prob(self, word: str) -> float:
        """Return the natural logarithm of the probability of a word."""
        total, probs = 0.0, self._probs
        if len(probs) > MAX_STEPS:
            probs.clear()
        for step in _steps(word):
            prob = probs.get(step)
            total += math.log(self._prob(step) if prob is None else prob)
        if word != self.symbol:
            return total + math.log1p(-self.share)
        return math.log(self.share + (1 - self.share) * math.exp(total))

    def _prob(self, step: bytes) -> float:
        """Return the probability of the last byte of a step after the others."""
        if not step:
            return 1 / N_SYMBOLS
        prob = self._probs.get(step)
        if prob is None:
            prob = self._prob(step[1:])
            if (followers := self._counts.get(step[:-1])) is not None:
                divisor, seen = followers
                # Witten and Bell: as many unseen bytes as different ones were seen.
                prob = (seen.get(step[-1], 0) + len(seen) * prob) / divisor
            self._probs[step] = prob
        return prob


def _steps(word: str) -> list[bytes]:
    """Return each byte of a word, and its end, with its context before it."""
    data = END + word.encode("utf-8", "surrogatepass") + END
    return [data[max(i - N_CONTEXT, 0) : i + 1] for i in range(1, len(data))]
