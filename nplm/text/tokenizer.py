"""Tokenizer: split documents into tokens."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator, TransformerMixin

from nplm.base.pages import Documented
from nplm.text.joining import joined
from nplm.text.samples import lists_of_tokens, texts_of

__all__ = ["BETWEEN_BLANKS", "BLANKS", "FLAGS", "Tokenizer", "check_length", "compiled"]

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
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
SENTENCE_END = frozenset({".", "!", "?", "…"})
# All flags but re.DEBUG, which prints.
FLAGS = re.A | re.I | re.L | re.M | re.S | re.U | re.X
# Thousands of character classes take seconds to compile.
MAX_PATTERN_CHARS = 5000
PRONOUN_I = re.compile(r"I(?:['’]\w+)?")


class Tokenizer(TransformerMixin, Documented, BaseEstimator):
    r"""Split documents into tokens, with the preprocessing of the paper's AP News.

    Stateless and row-preserving: one list of tokens per document, so that a
    document stays one sample in a ``Pipeline`` and a grid search.

    Parameters
    ----------
    pattern : str or None, default=None
        Regular expression of one token; text that it does not match is dropped. None
        is a word with its decimals or apostrophe (``3.14``, ``don't``), or one
        punctuation mark. It is ``r"\w+(?:[.,]\d+)*(?:['’]\w+)?|[^\w\s]"``, except
        that combining marks and zero width joiners belong to the character before
        them: the vowel signs of Hindi, and accents of decomposed text.
        ``r"[^ \t\r\n]+"`` splits at ASCII blanks, as the n-gram toolkits do;
        ``r"\S+"`` at all white space of Unicode. At most 5,000 characters.
    lowercase : bool, default=False
        Whether to map upper case to lower case.
    number : str or None, default=None
        Symbol that replaces numbers: tokens of digits, with points or commas
        between them (``1995``, ``3,000.50``; not ``1990s``).
    proper_noun : str or None, default=None
        Symbol that replaces proper nouns: words that start with a capital, do
        not start a sentence, and are not ``I`` (``I'm``). The first word of a
        document starts a sentence, and so does the first word after one of
        ``. ! ? …``, even with quotes and brackets in between. This is a rule, not
        a tagger: it misses names at the start of a sentence, and also replaces
        titles and acronyms. It applies before `lowercase`.

    References
    ----------
    Bengio et al. (2003), section 4: AP News was reduced by "mapping upper case
    to lower case, mapping numeric forms to special symbols, mapping rare words
    to a special symbol and mapping proper nouns to another special symbol".
    `Vocabulary` maps the rare words.

    Examples
    --------
    >>> from nplm import Tokenizer
    >>> Tokenizer().transform(["Don't pay $3.50."])
    [["Don't", 'pay', '$', '3.50', '.']]
    >>> ap_news = Tokenizer(lowercase=True, number="<num>", proper_noun="<name>")
    >>> ap_news.transform(["On Monday I saw 2 men. They met Lincoln."])
    [['on', '<name>', 'i', 'saw', '<num>', 'men', '.', 'they', 'met', '<name>', '.']]
    >>> Tokenizer().inverse_transform([["Don't", "pay", "$", "3.50", "."]])
    ["Don't pay $3.50."]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "pattern": [str, re.Pattern, None],
        "lowercase": ["boolean"],
        "number": [str, None],
        "proper_noun": [str, None],
    }

    def __init__(
        self,
        pattern: str | None = None,
        *,
        lowercase: bool = False,
        number: str | None = None,
        proper_noun: str | None = None,
    ) -> None:
        self.pattern = pattern
        self.lowercase = lowercase
        self.number = number
        self.proper_noun = proper_noun

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Do nothing: a tokenizer learns nothing.

        Parameters
        ----------
        X : ignored
        y : ignored

        Returns
        -------
        self : Tokenizer
        """
        return self

    def transform(self, X: Iterable[str]) -> list[list[str]]:
        """Split each document.

        Parameters
        ----------
        X : sequence of str
            Documents: a list, an array, a Series, or a DataFrame of one column.

        Returns
        -------
        documents : list of list of str
            The tokens of each document; an empty list if there are none.

        Raises
        ------
        TypeError
            If `X` is one string, a dict or several columns, or a document is not a
            string.
        ValueError
            If `pattern` is not a regular expression, or is longer than 5,000
            characters.
        """
        return list(self._split(X))

    def _split(self, X: Iterable[str]) -> Iterator[list[str]]:
        """Split the documents one after another, as `transform`."""
        self._validate_params()
        split = self._splitter()
        for text in texts_of(X):
            yield split(text)

    def inverse_transform(self, X: Iterable[Sequence[str]]) -> list[str]:
        """Join the tokens of each document: the text that they may come from.

        Punctuation marks are written as in English (those of Hindi, Arabic, Chinese and
        Japanese as there), without a blank where a writer has none. Blanks are lost in
        `transform`, so the text may differ from the original in its blanks. Without
        `lowercase`, `number` and `proper_noun`, `transform` returns the same tokens
        again.

        Parameters
        ----------
        X : sequence of list of str
            The tokens of each document.

        Returns
        -------
        documents : list of str

        Examples
        --------
        >>> from nplm import Tokenizer
        >>> Tokenizer().inverse_transform([["Well", "-", "known", ",", "and", "?"]])
        ['Well-known, and?']
        """
        self._validate_params()
        split = self._finder()
        return [joined(list(map(str, tokens)), split) for tokens in lists_of_tokens(X)]

    @property
    def splits_at_blanks(self) -> bool:
        """Whether tokens are the words between ASCII blanks, as they are."""
        changes = self.lowercase, self.number, self.proper_noun
        return self.pattern == BETWEEN_BLANKS and changes == (False, None, None)

    def _finder(self) -> Callable[[str], list[str]]:
        """Return a function that finds the tokens of a string."""
        if self.pattern is None:
            return _words_and_marks().findall
        return _finder(compiled(self.pattern))

    def _splitter(self) -> Callable[[str], list[str]]:
        """Return a function that splits one string, without validation."""
        split = self._finder()
        if self.proper_noun is None and self.number is None and not self.lowercase:
            return split
        return lambda text: self._map(split(text))

    def _map(self, tokens: list[str]) -> list[str]:
        if self.proper_noun is not None:
            tokens = _mark_proper_nouns(tokens, self.proper_noun)
        if self.number is not None:
            tokens = [self.number if NUMBER.fullmatch(t) else t for t in tokens]
        if self.lowercase:
            symbols = {self.number, self.proper_noun}
            tokens = [t if t in symbols else t.lower() for t in tokens]
        return tokens

    def _fitted(self) -> dict[str, Any]:
        return {}

    def _restore(self, fitted: Any) -> None:
        """Do nothing: a tokenizer has parameters only."""

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.no_validation = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags


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
