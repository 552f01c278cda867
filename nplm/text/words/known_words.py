"""KnownWords: the words of a vocabulary, their choice and their ids; unknown words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams.decoding._spelled import ByteNgrams
from nplm._kernels.ngrams.decoding._word_ids import WordIds
from nplm.base.array_types import Ids
from nplm.base.encoded_words import EncodedWords
from nplm.base.exceptions import parameter_error
from nplm.text.documents import Documents
from nplm.text.samples import (
    ADVICE,
    TOKENS,
    check_documents,
    check_tokens,
    tokens_of,
    unknown_word,
    unpacked,
)

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


# Symbols for unknown words in the toolkits' files; the first is more common.
UNKNOWN = ("<unk>", "<UNK>")


def unknown_among(words: Any) -> str | None:
    """Return the symbol for unknown words that is among the words, if any."""
    return next((symbol for symbol in UNKNOWN if symbol in words), None)


class TrainingText(NamedTuple):
    """The numbers of tokens, and of unknown ones, of a text."""

    n_tokens: int
    n_unknown: int


class KnownWords:
    """The words of a vocabulary by their ids, and the ids by words.

    Scorers of files of n-grams look words up in it, without scikit-learn. Those of a
    mapped file become strings when they are asked for.

    - `lookup`: the id of each word, with ``get`` and ``in``
    - `unknown_id`, `boundary_id`: ids of the symbols; None if they are no words
    - `text`: the text that the words were chosen by; None unless they just were
    """

    text: TrainingText | None = None

    def __init__(
        self,
        words: Sequence[Any],
        unknown: str | None,
        boundary: str | None,
        spelling: UnknownSpelling | None = None,
    ) -> None:
        self.words, self.unknown, self.boundary = words, unknown, boundary
        self.spelling = spelling
        self.lookup: Any
        self.lookup = words.ids if isinstance(words, EncodedWords) else self.ids
        find = self.lookup.get
        self.unknown_id: int | None = None if unknown is None else find(unknown)
        self.boundary_id: int | None = None if boundary is None else find(boundary)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.words, self.unknown, self.boundary, self.spelling)

    def __len__(self) -> int:
        return len(self.words)

    @property
    def known(self) -> Self:
        """These words: a `Vocabulary` has them under this name."""
        return self

    @property
    def ids_and_unknown(self) -> tuple[Any, int]:
        """The `lookup`, and the id of unknown words, -1 without one."""
        return self.lookup, -1 if self.unknown_id is None else self.unknown_id

    @cached_property
    def array(self) -> NDArray[np.object_]:
        """The word of each id."""
        return np.fromiter(self.words, dtype=object, count=len(self))

    @cached_property
    def ids(self) -> dict[Any, int]:
        """The id of each word."""
        return {word: i for i, word in enumerate(self.words)}

    @cached_property
    def word_ids(self) -> WordIds | None:
        """The ids of words by their bytes; None if UTF-8 does not spell all words."""
        if isinstance(self.words, EncodedWords):
            return self.words.word_ids
        if not all(type(word) is str for word in self.words):
            return None
        try:
            return EncodedWords.of(self.words).word_ids
        except UnicodeEncodeError:
            return None

    def words_of(self, ids: Ids) -> list[Any]:
        """Return the words of ids."""
        return [self.words[i] for i in ids.tolist()]

    def encode(
        self, X: object, name: str = "X", start: int = 0, *, refuse: bool = False
    ) -> Documents:
        """Return the word ids of documents; `refuse`: unknown words are an error."""
        documents = check_documents(X, TOKENS, ADVICE, name)
        return self.encode_each(documents, name, start, refuse=refuse)

    def encode_each(
        self, documents: Iterable[object], name: str, start: int, *, refuse: bool
    ) -> Documents:
        """Return the word ids of any iterable of documents."""
        flat: list[int] = []
        lengths: list[int] = []
        for i, document in enumerate(documents, start):
            n_before = len(flat)
            flat += self.encode_one(document, f"{name}[{i}]", refuse=refuse)
            lengths.append(len(flat) - n_before)
        ids = np.fromiter(flat, np.int32, len(flat))
        return Documents(ids, np.array(lengths, dtype=np.intp))

    def encode_one(
        self, document: object, name: str, *, refuse: bool = False
    ) -> list[int]:
        """Return the word ids of one document, which errors call `name`."""
        get, unknown = self.lookup.get, None if refuse else self.unknown_id
        tokens = tokens_of(document, name)
        try:
            ids = [get(token, unknown) for token in tokens]
        except TypeError:  # a token that cannot be looked up
            check_tokens(tokens)
            raise
        if unknown in ids:
            self.check_one_document(document, name)
            self.refuse_unknown((t for t in tokens if get(t) is None), refuse=refuse)
        return ids

    def check_one_document(self, document: object, name: str) -> None:
        """Raise an error if a word or an event stands in place of a list of tokens.

        A tuple is a document or an event. It is taken for an event if it is one of the
        vocabulary, or if events are tuples and none of its items is known.
        """
        if isinstance(document, str):
            raise TypeError(
                f"{name} is a string, {document[:30]!r}, where a list of tokens is "
                "needed: pass a single token in a list."
            )
        if not isinstance(document, tuple) or not document:
            return
        try:
            unknown = [item for item in document if item not in self.lookup]
            is_event = document in self.lookup
        except TypeError:  # an item that cannot be looked up is refused as a token
            return
        if unknown and len(unknown) == len(document) and not is_event:
            is_event = any(isinstance(word, tuple) for word in self.words)
        if unknown and is_event:
            raise TypeError(
                f"{name} is {document!r}, a tuple like events of the vocabulary, which "
                f"has no event {unknown[0]!r}: a document is a list of events; pass "
                f"[{document!r}]."
            )

    def refuse_unknown(
        self, words: Iterable[Hashable], *, refuse: bool = False
    ) -> None:
        """Raise an error if a word is missing, or unknown words are refused."""
        words = list(words)
        check_tokens(words)
        if not words or (self.unknown is not None and not refuse):
            return
        remedy = (
            'set handle_unknown="symbol"'
            if self.unknown is not None
            else 'give the vocabulary an unknown symbol (unknown="<unk>") and fit again'
        )
        raise unknown_word(words[0], len(self), remedy)


def known_words_of(words: Sequence[str], boundary: int) -> KnownWords:
    """Make the words of a file; raise ValueError if they are damaged."""
    known = KnownWords(words, unknown_among(words), words[boundary])
    if known.boundary_id is None or known.unknown == known.boundary:
        raise ValueError(f"{known.boundary!r} cannot be the word of the boundary")
    return known


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
