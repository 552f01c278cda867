"""Tokenizer: split documents into tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Self

from sklearn.utils import Tags

from nplm.base.estimators.bases import DocumentEstimator, TransformerMixin
from nplm.text.samples import lists_of_tokens
from nplm.text.words.splitting import OF_LOGS, Splitter, finder_of

# No blank follows an opening mark, and none precedes a closing one.
OPENING = frozenset("([{“‘«„‚¿¡$£€¥#@")  # noqa: RUF001
CLOSING = frozenset(".,;:!?…%)]}”’»‰°")
# Nor does one precede those of Hindi and its relatives, Arabic, Urdu and Ethiopic.
CLOSING |= frozenset("।॥؟،؛۔።፣፤")  # noqa: RUF001
# Chinese and Japanese have no blanks at all.
WIDE = frozenset("。、，．！？：；・（）「」『』【】《》〈〉")  # noqa: RUF001
# Between two words, these have no blank on either side.
INSIDE = frozenset("-/‐‑—")  # noqa: RUF001
# Alternately opening and closing.
STRAIGHT = frozenset("\"'")


class Tokenizer(Splitter, TransformerMixin, DocumentEstimator):
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
    identifier : str or None, default=None
        Symbol that replaces all other tokens with a digit: addresses, dates,
        identifiers (``10.0.0.1:80``, ``blk_-69``, ``0x1f``), and words such as
        ``ipv4``. Without `number`, numbers too. See `for_logs`.

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

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        "pattern": [str, re.Pattern, None],
        "lowercase": ["boolean"],
        "number": [str, None],
        "proper_noun": [str, None],
        "identifier": [str, None],
    }

    @classmethod
    def for_logs(cls, **params: object) -> Self:
        """Make a tokenizer of log lines, with symbols for what differs in each line.

        A token is a word with the parts that ``-``, ``.``, ``:``, ``/``, ``@`` and
        ``$`` join to it, or one other mark. Numbers are ``<num>``, and other tokens
        with a digit are ``<id>``, and so is a date such as ``Dec  1``, ``Sun Dec 04``
        or ``Sun, 04 Dec``. So lines of one kind become one sequence of tokens, without
        templates that are learned before.

        Parameters
        ----------
        **params
            Parameters to set otherwise.

        Returns
        -------
        tokenizer : Tokenizer

        Examples
        --------
        >>> from nplm import Tokenizer
        >>> logs = Tokenizer.for_logs()
        >>> [tokens] = logs.transform(["Received blk_-16 of size 91 from /10.0.0.1:80"])
        >>> " ".join(tokens)
        'Received <id> of size <num> from / <id>'
        """
        return cls(**(OF_LOGS | params))

    def fit(self, X: object = None, y: object = None) -> Self:
        """Check the parameters: a tokenizer learns nothing.

        Parameters
        ----------
        X : ignored
        y : ignored

        Returns
        -------
        self : Tokenizer
        """
        self._validate_params()
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
        self._validate_params()
        return super().transform(X)

    def inverse_transform(self, X: Iterable[Sequence[str]]) -> list[str]:
        """Join the tokens of each document: the text that they may come from.

        Punctuation marks are written as in English (those of Hindi, Arabic, Chinese and
        Japanese as there), without a blank where a writer has none. Blanks are lost in
        `transform`, so the text may differ from the original in its blanks. Without
        `lowercase` and symbols, `transform` returns the same tokens again.

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
        find = finder_of(self)
        return [_joined(list(map(str, tokens)), find) for tokens in lists_of_tokens(X)]

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


def _joined(tokens: Sequence[str], split: Callable[[str], list[str]]) -> str:
    """Join tokens: the inverse of a tokenizer, as far as it has one.

    Two tokens are written without a blank between them if a writer would do so, and
    if the text is then still split into the same tokens.
    """
    if split(" "):  # blanks are tokens
        return "".join(tokens)
    chunks: list[str] = []
    n_straight = dict.fromkeys(STRAIGHT, 0)
    # The tokens of the last chunk, and whether no blank should follow it.
    inside: list[str] = []
    opens = False
    for i, token in enumerate(tokens):
        before = tokens[i - 1] if i else ""
        after = tokens[i + 1] if i + 1 < len(tokens) else ""
        is_straight = token in STRAIGHT
        closes = token in CLOSING or (is_straight and n_straight[token] % 2 == 1)
        links = token in INSIDE and _is_word(before) and _is_word(after)
        is_wide = token in WIDE
        glued = (opens or closes or links or is_wide) and chunks
        pieces = split(token)
        if glued and split(chunks[-1] + token) == inside + pieces:
            chunks[-1] += token
            inside += pieces
        else:
            chunks.append(token)
            inside = pieces
        opens = links or is_wide or token in OPENING or (is_straight and not closes)
        if is_straight:
            n_straight[token] += 1
    return " ".join(chunks)


def _is_word(token: str) -> bool:
    return token[:1].isalnum()
