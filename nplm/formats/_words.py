"""The words of a model for files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nplm.base.checks import check_word_of_each
from nplm.base.encoded_words import EncodedWords
from nplm.text.words.known_words import UNKNOWN, KnownWords, UnknownSpelling
from nplm.text.words.splitting import BEGIN, BLANKS, END, Splitter

if TYPE_CHECKING:
    from nplm.models.ngrams.trie.work import Work

NOT_IN_WORDS = frozenset(BLANKS + "\0")
# Memory of Python, the libraries and a chunk of text.
INTERPRETER_BYTES = 230 << 20
# Bytes of a word of the vocabulary: Python's strings and numbers, and arrays.
WORD_BYTES = 400


def reserve_for_words(work: Work, n_words: int) -> None:
    """Give buffers the memory that the interpreter and the words leave."""
    work.reserve(INTERPRETER_BYTES + WORD_BYTES * n_words)


def check_words(
    words: Sequence[str], n_words: int, of: str = "the model has n_words_"
) -> list[str]:
    """Return the words as a list; raise unless one per id, distinct, without blanks."""
    texts = [str(word) for word in words]
    check_word_of_each(texts, n_words, of)
    distinct, spelled = set(texts), "".join(texts)
    blanks = any(character in spelled for character in NOT_IN_WORDS)
    if len(distinct) == n_words and "" not in distinct and not blanks:
        return texts
    seen: dict[str, int] = {}
    for i, word in enumerate(texts):
        if not word or NOT_IN_WORDS.intersection(word):
            raise ValueError(
                f"words has {word!r} at {i}: a word in a text format must not be "
                "empty, nor contain a blank or NUL; replace these, by '_' for example."
            )
        if word in seen:
            raise ValueError(
                f"words has {word!r} twice, at {seen[word]} and {i}: ids would be "
                "confused; make the words distinct."
            )
        seen[word] = i
    return texts


def check_marks(words: Sequence[str], boundary: int | None) -> None:
    """Raise if the toolkits would confuse a word with one of their marks."""
    if all(mark in words for mark in UNKNOWN):
        raise ValueError(
            "words has both '<unk>' and '<UNK>', which KenLM reads as one word; "
            "rename one of them."
        )
    for mark in (BEGIN, END):
        if boundary is not None and mark in words and words[boundary] != mark:
            raise ValueError(
                f"words has {mark!r} at {words.index(mark)}, but the model's boundary "
                f"is {boundary}, which is written as <s> and </s>; rename the word."
            )


@dataclass(frozen=True, eq=False)
class StoredWords:
    """The words of a model for its file, and how text is split into them.

    `unknown` is -1 without an unknown word; `tokenizer` is None if it splits at blanks.
    """

    words: EncodedWords
    boundary: int | None
    unknown: int = -1
    tokenizer: Splitter | None = None
    spelling: UnknownSpelling | None = None

    @classmethod
    def of(
        cls, known: KnownWords, boundary: int | None, tokenizer: object = None
    ) -> StoredWords:
        """Return words without the tokenizer if it is no `Splitter`."""
        words = EncodedWords.of(check_words(known.words, len(known)))
        splitter = tokenizer if isinstance(tokenizer, Splitter) else None
        unknown = -1 if known.unknown_id is None else known.unknown_id
        return cls(words, boundary, unknown, splitter, known.spelling)

    @property
    def n_words(self) -> int:
        """Size of the vocabulary."""
        return len(self.words)
