"""WordChoice: choose the words of a vocabulary by their counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import KW_ONLY, dataclass
from operator import itemgetter

from nplm.base.encoded_words import EncodedWords
from nplm.base.exceptions import parameter_error
from nplm.text.samples import check_tokens, unpacked
from nplm.text.words.known_words import KnownWords, TrainingText, UnknownSpelling


@dataclass(repr=False, eq=False)
class WordChoice:
    """The parameters of a `Vocabulary`, without scikit-learn: for counts of n-grams."""

    min_count: int = 1
    max_words: int | None = None
    _: KW_ONLY
    unknown: str | None = "<unk>"
    boundary: str | None = "</s>"
    words: Sequence[Hashable] | None = None


def chosen_words(choice: WordChoice, counts: Mapping[Hashable, int]) -> KnownWords:
    """Choose words by the counts of those of a text."""
    symbols, listed = symbols_of(choice), choice.words
    if isinstance(listed, EncodedWords) and all(symbol in listed for symbol in symbols):
        known = KnownWords(listed, choice.unknown, choice.boundary)
    else:
        words = (
            _frequent(choice, counts, symbols) if listed is None else _listed(listed)
        )
        words = [s for s in symbols if s not in words] + words
        known = KnownWords(words, choice.unknown, choice.boundary)
        if len(known.ids) != len(words):
            (twice, n), *_ = Counter(words).most_common(1)
            raise ValueError(
                f"words has {twice!r} {n} times: pass each word once, because its "
                "index is its id."
            )
    lookup, symbol = known.lookup, choice.unknown
    unknown = (n for w, n in counts.items() if w not in lookup or w == symbol)
    known.text = TrainingText(sum(counts.values()), sum(unknown))
    if symbol is not None:
        known.spelling = UnknownSpelling.of_counts(counts, lookup, symbol)
    return known


def symbols_of(choice: WordChoice) -> list[str]:
    """Return the special symbols in the order of their ids, or raise if invalid."""
    unknown, boundary, max_words = choice.unknown, choice.boundary, choice.max_words
    if unknown == boundary is not None:
        raise ValueError(f"unknown={unknown!r} must differ from boundary={boundary!r}.")
    symbols = [s for s in (boundary, unknown) if s is not None]
    if max_words is not None and max_words <= len(symbols):
        raise parameter_error(
            "{max_words} must be None or a whole number above {0}, the number of "
            "special symbols, got {1!r}.", len(symbols), max_words,
        )  # fmt: skip
    return symbols


def _frequent(
    choice: WordChoice, counts: Mapping[Hashable, int], symbols: list[str]
) -> list[Hashable]:
    """Return the words that are frequent enough, the most frequent first."""
    # Events of different types have no order, but their strings have one.
    ranked = sorted(counts.items(), key=lambda item: str(item[0]))
    # The sort is stable: words of equal counts stay in this order.
    ranked.sort(key=itemgetter(1), reverse=True)
    words = [
        word
        for word, count in ranked
        if count >= choice.min_count and word not in symbols
    ]
    if choice.max_words is not None:
        words = words[: choice.max_words - len(symbols)]
    return words


def _listed(words: object) -> list[Hashable]:
    if isinstance(words, (Set, Mapping)):
        raise TypeError(
            f"words is of type {type(words).__name__}, but ids follow the order of "
            "words: pass a list."
        )
    listed: list[Hashable] = list(unpacked(words))
    check_tokens(listed)
    return listed
