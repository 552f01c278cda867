"""Splitter: split strings into tokens; LineMarks: the marks at the ends of a line."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, fields
from functools import lru_cache
from itertools import chain
from typing import Any

from nplm.text.samples import texts_of

# A word, or a punctuation mark. Python's \w lacks combining marks. The lookahead makes
# words without them as fast as with \w alone.
MARKS = r"(?![\x00-\u02ff])[{marks}]+"
LETTERS = rf"\w+(?:{MARKS}\w*)*"
PATTERN = rf"{LETTERS}(?:[.,]\d+)*(?:['’]{LETTERS})?|[^\w\s](?:{MARKS})?"
# The planes of Unicode that have combining marks.
PLANES_OF_MARKS = (range(0x300, 0x20000), range(0xE0000, 0xE0200))
# Zero width joiners are inside of words in Persian and in Indian scripts.
JOINERS = "\u200c\u200d"
# White space of lmplz, SRILM and ARPA files; others, such as U+00A0, are part of words.
BLANKS = " \t\r\n"
BETWEEN_BLANKS = r"[^ \t\r\n]+"
# Words of logs keep what joins the parts of addresses, paths, dates and identifiers.
# A date is one token, or the names of days and months would be unknown later.
DAY = "(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? +)?"
MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
DATE = rf"{DAY}(?:{MONTH} +\d{{1,2}}|\d{{1,2}} +{MONTH})\b"
OF_LOGS: dict[str, Any] = {
    "pattern": rf"{DATE}|\w+(?:[-.:/@$]+\w+)*|[^\w\s]",
    "number": "<num>",
    "identifier": "<id>",
}
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
ONE_POINT = re.compile(r"\d+(?:[.,]\d+)?")
DIGIT = re.compile(r"\d")
SENTENCE_END = frozenset({".", "!", "?", "…"})
# All flags but re.DEBUG, which prints.
FLAGS = re.A | re.I | re.L | re.M | re.S | re.U | re.X
# Thousands of character classes take seconds to compile.
MAX_PATTERN_CHARS = 5000
PRONOUN_I = re.compile(r"I(?:['’]\w+)?")


@dataclass(repr=False, eq=False)
class Splitter:
    """A `Tokenizer` without scikit-learn, for scorers of files of n-grams."""

    pattern: str | None = None
    _: KW_ONLY
    lowercase: bool = False
    number: str | None = None
    proper_noun: str | None = None
    identifier: str | None = None

    def transform(self, X: Iterable[str]) -> list[list[str]]:
        """Return the tokens of each document, as `Tokenizer.transform` does."""
        return list(map(self.split_function(), texts_of(X)))

    def split_function(self) -> Callable[[str], list[str]]:
        """Return a function that splits one string, as `transform` does.

        It checks nothing, so it is faster in a loop.

        Returns
        -------
        split : callable
            Takes a string, and returns the list of its tokens.
        """
        find = finder_of(self)
        return find if _changes_nothing(self) else lambda text: self._map(find(text))

    @property
    def splits_at_blanks(self) -> bool:
        """Whether tokens are the words between ASCII blanks, as they are."""
        return self.pattern == BETWEEN_BLANKS and _changes_nothing(self)

    def _map(self, tokens: list[str]) -> list[str]:
        if self.proper_noun is not None:
            tokens = _mark_proper_nouns(tokens, self.proper_noun)
        if self.number is not None:
            # Of two points, as in an address, it is an identifier if there is a symbol.
            number = NUMBER if self.identifier is None else ONE_POINT
            tokens = [self.number if number.fullmatch(t) else t for t in tokens]
        symbols = {self.number, self.proper_noun, self.identifier}
        if self.identifier is not None:
            tokens = [
                self.identifier if t not in symbols and DIGIT.search(t) else t
                for t in tokens
            ]
        if self.lowercase:
            tokens = [t if t in symbols else t.lower() for t in tokens]
        return tokens


def params_of(splitter: Splitter) -> dict[str, Any]:
    """Return the parameters of a splitter by name."""
    return {field.name: getattr(splitter, field.name) for field in fields(splitter)}


def finder_of(splitter: Splitter) -> Callable[[str], list[str]]:
    """Return a function that finds the tokens of a string, before they are changed."""
    if splitter.pattern is None:
        return _words_and_marks().findall
    return _finder(compiled(splitter.pattern))


def _changes_nothing(splitter: Splitter) -> bool:
    return (
        splitter.proper_noun is None
        and splitter.number is None
        and splitter.identifier is None
        and not splitter.lowercase
    )


@lru_cache(maxsize=1)
def _words_and_marks() -> re.Pattern[str]:
    """Return the pattern of words and punctuation marks."""
    codes = [
        code
        for code in chain(*PLANES_OF_MARKS)
        if unicodedata.category(chr(code)) in ("Mn", "Mc", "Me")
    ]
    # Ranges, because a class of single characters is slower.
    known = set(codes)
    starts = [code for code in codes if code - 1 not in known]
    ends = [code for code in codes if code + 1 not in known]
    marks = "".join(f"{chr(i)}-{chr(j)}" for i, j in zip(starts, ends))
    return re.compile(PATTERN.format(marks=marks + JOINERS))


def compiled(pattern: str | re.Pattern[str], flags: int = 0) -> re.Pattern[str]:
    """Compile a regular expression, or raise a ValueError that says what is wrong."""
    check_length(pattern if isinstance(pattern, str) else pattern.pattern)
    if flags & ~FLAGS:
        raise ValueError(f"pattern {pattern!r:.200} has unknown flags: {flags}.")
    try:
        return re.compile(pattern, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(
            f"pattern {pattern!r:.200} is not a regular expression: {error}."
        ) from None


def check_length(pattern: str) -> None:
    """Raise an error if a regular expression would take long to compile."""
    if len(pattern) > MAX_PATTERN_CHARS:
        raise ValueError(
            f"pattern {pattern[:40]!r}... has {len(pattern)} characters, and at most "
            f"{MAX_PATTERN_CHARS} are allowed, because longer ones may take minutes to "
            "compile: shorten it, or split the text yourself and pass lists of tokens."
        )


def _finder(pattern: re.Pattern[str]) -> Callable[[str], list[str]]:
    """Return the fastest function that finds the tokens of a pattern."""
    # str.split is several times as fast.
    if pattern.pattern == r"\S+" and pattern.flags == re.UNICODE:
        return str.split
    if pattern.pattern == BETWEEN_BLANKS and pattern.flags == re.UNICODE:
        # The only blank in text that is printable is a space.
        find = pattern.findall
        return lambda text: text.split() if text.isprintable() else find(text)
    if pattern.groups == 0:
        return lambda text: [token for token in pattern.findall(text) if token]
    # The whole match: findall would return the groups of the pattern.
    return lambda text: [m[0] for m in pattern.finditer(text) if m[0]]


def _mark_proper_nouns(tokens: list[str], symbol: str) -> list[str]:
    marked = []
    starts_sentence = True
    for token in tokens:
        is_name = (
            token[0].isupper()
            and not starts_sentence
            and not PRONOUN_I.fullmatch(token)
        )
        marked.append(symbol if is_name else token)
        if token in SENTENCE_END:
            starts_sentence = True
        elif token[0].isalnum():
            starts_sentence = False
    return marked


# The toolkits' sentence marks: <s> is never predicted, </s> is never a context.
BEGIN, END = "<s>", "</s>"


def marks_of(boundary: str) -> list[str]:
    """Return the mark of the end of a line, and that of its beginning, if any."""
    return [END, BEGIN] if boundary == END else [boundary]


def inside(mark: str, boundary: str) -> str:
    """Say what is wrong with a mark inside of a line."""
    where = "end" if mark == boundary else "beginning"
    return (
        f"it has {mark!r} inside, which stands for the {where} of a line: split the "
        "line, or remove it (or choose another boundary of the Vocabulary)."
    )


class LineMarks:
    """The marks in lines of a text.

    One at the beginning or the end of a line stands for it, as in SRILM. Elsewhere, one
    that is a token, if `split` is there to tell, is an error. All contain `sign`.
    """

    def __init__(
        self, boundary: str, split: Callable[[str], list[str]] | None = None
    ) -> None:
        self._marks, self._split = marks_of(boundary), split
        self.sign = "s>" if boundary == END else boundary
        self._begins = [mark + blank for mark in self._marks[1:] for blank in BLANKS]
        self._ends = [blank + boundary for blank in BLANKS]

    def removed(self, line: str) -> str:
        """Return a line without the marks at its ends."""
        if self.sign not in line:
            return line
        line = line.strip(BLANKS)
        if line.startswith(tuple(self._begins)) or line in self._marks[1:]:
            line = line[len(self._marks[1]) :].strip(BLANKS)
        if line.endswith(tuple(self._ends)) or line == self._marks[0]:
            line = line[: -len(self._marks[0])].strip(BLANKS)
        return line

    def error(self, line: str) -> str | None:
        """Say what is wrong with a line that has other marks, None if nothing."""
        marks = [mark for mark in self._marks if mark in line]
        if not marks or self._split is None:
            return None
        tokens = self._split(line)
        bad = next((mark for mark in marks if mark in tokens), None)
        return None if bad is None else inside(bad, self._marks[0])

    def replaced(self, line: str) -> str:
        """Return a line with U+FFFD in place of other marks."""
        for mark in self._marks:
            line = line.replace(mark, "\ufffd")
        return line
