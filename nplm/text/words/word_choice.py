"""WordChoice: choose the words of a vocabulary by their counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence, Set
from operator import itemgetter

from nplm.base.encoded_words import EncodedWords
from nplm.text.samples import check_tokens, unpacked
from nplm.text.words.known_words import KnownWords, TrainingText
from nplm.text.words.unknown_spelling import UnknownSpelling

__all__ = ["WordChoice"]


class WordChoice:
    """Choose the words of a text by their counts: a `Vocabulary` without scikit-learn.

    N-grams are estimated and counted with it.

    Parameters
    ----------
    min_count, max_words, unknown, boundary, words
        As of `Vocabulary`.
    """

    def __init__(
        self,
        min_count: int = 1,
        max_words: int | None = None,
        *,
        unknown: str | None = "<unk>",
        boundary: str | None = "</s>",
        words: Sequence[Hashable] | None = None,
    ) -> None:
        self.min_count = min_count
        self.max_words = max_words
        self.unknown = unknown
        self.boundary = boundary
        self.words = words

    def check(self) -> None:
        """Raise an error if a parameter is invalid."""
        self.symbols()

    def chosen(self, counts: Mapping[Hashable, int]) -> KnownWords:
        """Return the words, by the counts of those of a text."""
        symbols = self.symbols()
        if isinstance(self.words, EncodedWords) and all(
            symbol in self.words for symbol in symbols
        ):
            known = KnownWords(self.words, self.unknown, self.boundary)
        else:
            is_listed = self.words is not None
            words = self._listed() if is_listed else self._frequent(counts, symbols)
            words = [s for s in symbols if s not in words] + words
            known = KnownWords(words, self.unknown, self.boundary)
            if len(known.ids) != len(words):
                (twice, n), *_ = Counter(words).most_common(1)
                raise ValueError(
                    f"words has {twice!r} {n} times: pass each word once, because its "
                    "index is its id."
                )
        unknown = (
            n for w, n in counts.items() if w not in known.lookup or w == self.unknown
        )
        known.text = TrainingText(sum(counts.values()), sum(unknown))
        if self.unknown is not None:
            known.spelling = UnknownSpelling.of_counts(
                counts, known.lookup, self.unknown
            )
        return known

    def symbols(self) -> list[str]:
        """Return the special symbols, in the order of their ids."""
        if self.unknown == self.boundary is not None:
            raise ValueError(
                f"unknown={self.unknown!r} must differ from boundary={self.boundary!r}."
            )
        symbols = [s for s in (self.boundary, self.unknown) if s is not None]
        if self.max_words is not None and self.max_words <= len(symbols):
            raise ValueError(
                f"max_words must be None or a whole number above {len(symbols)}, "
                f"the number of special symbols, got {self.max_words!r}."
            )
        return symbols

    def _frequent(
        self, counts: Mapping[Hashable, int], symbols: list[str]
    ) -> list[Hashable]:
        """Return the words that are frequent enough, the most frequent first."""
        # Events of different types have no order, but their strings have one.
        ranked = sorted(counts.items(), key=lambda item: str(item[0]))
        # The sort is stable: words of equal counts stay in this order.
        ranked.sort(key=itemgetter(1), reverse=True)
        words = [
            word
            for word, count in ranked
            if count >= self.min_count and word not in symbols
        ]
        if self.max_words is not None:
            words = words[: self.max_words - len(symbols)]
        return words

    def _listed(self) -> list[Hashable]:
        if isinstance(self.words, (Set, Mapping)):
            raise TypeError(
                f"words is of type {type(self.words).__name__}, but ids follow the "
                "order of words: pass a list."
            )
        words: list[Hashable] = list(unpacked(self.words))
        check_tokens(words)
        return words
