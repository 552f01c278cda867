"""Back-off models of classes expanded to the words of the classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nplm.base.array_types import Floats, Ids, Index, Mask
from nplm.base.blocks import BLOCK_SIZE, blocks
from nplm.base.exceptions import parameter_error
from nplm.models.ngrams.stages.mixing import mixed_trie, ngrams_in_blocks
from nplm.models.ngrams.text_ngrams import TextNgrams
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.work import Work
from nplm.text.words.known_words import unknown_among

if TYPE_CHECKING:
    from nplm.text.lm.text_lm import TextLM

# N-grams of an expanded model, by default: about 5 GB in memory while it is made.
MAX_EXPANDED = 100_000_000
# Rounding in a file may put the sum of the probabilities of a class off by this much.
MAX_ERROR_OF_SUM = 1e-3
# Takes the place of probability 0 in a product: classes whose probabilities are all 0
# are then equally probable.
LEAST_PROB = 1e-300
# Numbers of n-grams from here on are shown with three digits.
MAX_EXACT = 1e15


def expand_classes(
    lm: TextLM,
    classes: Mapping[Any, Mapping[Any, float]],
    *,
    order: int | None = None,
    max_ngrams: int = MAX_EXPANDED,
    index: bool = True,
) -> TextLM:
    r"""Expand a back-off model of classes to one of words.

    The model has n-grams of classes, or of words and classes mixed, as of a text in
    which words were replaced by their classes. Each n-gram becomes those of all words
    of its classes, as by SRILM's ``ngram -expand-classes``. If each word has one class
    :math:`g(w)`, the result has the probabilities of the class model,

    .. math:: P(w | c) = P(g(w) | g(c_1), \ldots, g(c_{n-1}))\, P(w | g(w)).

    A word may have several classes, and be a word of the model as well. Then the
    probability of an n-gram is the sum over its classes, and the average over the
    classes of its context, each weighted with its probability given the words of the
    context. Words that no n-gram has after a context back off as words, so that the
    result is close to the class model, and not equal to it.

    Parameters
    ----------
    lm : TextLM
        A text model over a `KneserNeyLM` or `BackoffLM`, in whose vocabulary the names
        of classes are words. It is not modified.
    classes : mapping of str to mapping of str to float
        The words of each class, and the probability of each given the class, above 0.
        Those of a class sum to 1. Classes that the model lacks are ignored. No word is
        the name of a class.
    order : int, optional
        Words in the longest n-gram of the result; by default that of `lm`.
    max_ngrams : int, default=100_000_000
        Maximum number of n-grams of the result. An n-gram of classes of 100 words is
        100 unigrams, or a million trigrams.
    index : bool, default=True
        Whether to build the hash table for look-ups; see ``read_arpa``.

    Returns
    -------
    expanded : TextLM
        A text model over a `BackoffLM`. Its probabilities after every context sum to 1.

    Raises
    ------
    TypeError
        If `lm` is not a text model over back-off n-grams, or `classes` is not a mapping
        of mappings.
    ValueError
        If the model has no words, or none of `classes`, if probabilities of a class do
        not sum to 1, a word of a class is a class, a mark is one, or `order` is out of
        range. If the result has more than `max_ngrams` n-grams.

    See Also
    --------
    nplm.formats.read_class_definitions : Reads classes from a file of SRILM.
    ClassLM : Finds classes, and estimates a model of them.

    Notes
    -----
    It is made in memory: about 50 bytes for each n-gram of the result. The command
    ``nplm expand`` makes it on disk. A class expands to single words, not to phrases.

    References
    ----------
    P. F. Brown, V. J. Della Pietra, P. V. deSouza, J. C. Lai and R. L. Mercer
    (1992). Class-based n-gram models of natural language. Computational
    Linguistics 18.

    A. Stolcke (2002). SRILM: an extensible language modeling toolkit. ICSLP.

    Examples
    --------
    >>> from nplm import KneserNeyLM, TextLM, expand_classes
    >>> text = ["the ANIMAL sat on the mat", "the ANIMAL saw a ANIMAL"]
    >>> lm = TextLM(KneserNeyLM(discount_fallback=0.5), n_context=2).fit(text)
    >>> words = expand_classes(lm, {"ANIMAL": {"cat": 0.75, "dog": 0.25}})
    >>> words.vocabulary_.words_[2:4].tolist()
    ['cat', 'dog']
    >>> log_prob = lm.score_samples(["the ANIMAL sat"])
    >>> of_words = words.score_samples(["the cat sat", "the dog sat"])
    >>> (of_words - log_prob).round(4).tolist()  # the logarithms of 0.75 and 0.25
    [-0.2877, -1.3863]
    """
    ngrams = expanded(TextNgrams.of(lm), classes, order, max_ngrams, Work())
    return ngrams.text_lm(index=index)


def expanded(
    ngrams: TextNgrams,
    classes: Mapping[Any, Mapping[Any, float]],
    order: int | None,
    max_ngrams: int,
    work: Work,
) -> TextNgrams:
    """Expand n-grams, in memory or in a folder with them; see `expand_classes`."""
    tokens = ngrams.words
    _check_classes(classes, ngrams)
    trie = ngrams.trie
    order = trie.order if order is None else order
    if not isinstance(order, Integral) or order not in range(1, trie.order + 1):
        message = "{order} must be from 1 to {0}, the order of the model."
        raise parameter_error(message, trie.order, order=order)
    ids: dict[Any, int] = {}
    rows: list[tuple[int, int, float]] = []
    of_token = {word: {word: 1.0} for word in tokens.words} | dict(classes)
    for token, words in of_token.items():
        if token in tokens.ids:
            total = sum(words.values())
            for word, prob in words.items():
                word_id = ids.setdefault(word, len(ids))
                rows.append((tokens.ids[token], word_id, prob / total))
    token_ids, word_ids, shares = zip(*rows)
    of_words = ExpandedTrie(
        trie,
        int(order),
        Choices.of(token_ids, word_ids, shares, len(tokens)),
        Choices.of(word_ids, token_ids, shares, len(ids)),
    )
    n_ngrams = of_words.n_ngrams(work)
    if n_ngrams > max_ngrams:
        shown = f"{n_ngrams:,.0f}" if n_ngrams < MAX_EXACT else f"{n_ngrams:.3g}"
        raise parameter_error(
            "the model expands to {0} n-grams of words, more than {max_ngrams}: lower "
            "{order}, prune the model first, or raise {max_ngrams:max_ngrams}.",
            shown, max_ngrams=max_ngrams,
        )  # fmt: skip
    unknown = unknown_among(ids) if tokens.unknown_id is None else tokens.unknown
    larger = ngrams.with_words(list(ids), unknown)
    return larger._replace(trie=mixed_trie([of_words], [1.0], work))


@dataclass(frozen=True, eq=False)
class ExpandedTrie:
    """A back-off trie of classes, as one of words."""

    trie: BackoffTrie  # n-grams of tokens: words and classes
    order: int  # words in the longest n-gram
    words: Choices  # those of each token, with their probabilities given the token
    tokens: Choices  # those of each word, with the same probabilities

    @property
    def n_words(self) -> int:
        """The number of words."""
        return len(self.tokens.n)

    def n_ngrams(self, work: Work) -> float:
        """Return the number of n-grams (with their classes), which may be infinite."""
        work.stage("counting", int(self.trie.n_ngrams[: self.order].sum()))
        with np.errstate(over="ignore"):
            return sum(
                float(self.words.n[ngrams].prod(axis=1, dtype=np.float64).sum())
                for level in range(self.order)
                for ngrams in ngrams_in_blocks(self.trie, level, work)
            )

    def ngrams(self, level: int, work: Work) -> Iterator[Ids]:
        """Yield the n-grams of words whose contexts have `level` words."""
        for ngrams in ngrams_in_blocks(self.trie, level, work):
            for chosen in self.words.sequences(ngrams, work.block):
                yield chosen.ids

    def next_word_prob(self, X: Ids, y: Ids) -> Floats:
        """Return the probability of each next word given its context (`Member`)."""
        n, several = len(y), np.any(self.tokens.n[X] > 1, axis=1)
        prob, weight = np.zeros(n), np.zeros(n)
        for contexts in self.tokens.sequences(X, BLOCK_SIZE):
            row = contexts.row
            joint = self._joint_prob(contexts, several[row])
            weight += np.bincount(row, joint, n)
            for chosen in self.tokens.sequences(y[row, np.newaxis], BLOCK_SIZE):
                share = self.trie.next_word_prob(
                    contexts.ids[chosen.row], chosen.ids[:, 0]
                )
                share *= chosen.prob[:, 0] * joint[chosen.row]
                prob += np.bincount(row[chosen.row], share, n)
        return prob / weight

    def _joint_prob(self, contexts: Sequences, several: Mask) -> Floats:
        """Return the probability of contexts' classes and words; 1 unless `several`."""
        joint, rows = np.ones(len(several)), np.flatnonzero(several)
        ids, prob = contexts.ids[rows], contexts.prob[rows]
        for k in range(ids.shape[1]):
            before = np.ascontiguousarray(ids[:, :k])
            joint[rows] *= (
                self.trie.next_word_prob(before, ids[:, k].copy()) * prob[:, k]
            )
        return np.maximum(joint, LEAST_PROB)


class Sequences(NamedTuple):
    """Sequences of ids that rows of other ids may stand for."""

    row: Index  # (n,): the row of each
    ids: Ids  # (n, n_columns)
    prob: Floats  # (n, n_columns): of each word given its token


class Choices(NamedTuple):
    """The ids that each of other ids may stand for: words of tokens, or the reverse."""

    start: Index  # (n_ids,): the first of those of each id
    n: Index  # (n_ids,): their number
    ids: Ids
    prob: Floats  # of the word given the token

    @classmethod
    def of(cls, keys: ArrayLike, ids: ArrayLike, prob: ArrayLike, n: int) -> Choices:
        """Return those of `n` ids, from pairs of `keys` and `ids`."""
        by_key = np.argsort(keys, kind="stable")
        n_of = np.bincount(np.asarray(keys), minlength=n)
        ids, prob = np.asarray(ids, np.int32), np.asarray(prob, np.float64)
        return cls(np.cumsum(n_of) - n_of, n_of, ids[by_key], prob[by_key])

    def sequences(self, X: Ids, size: int) -> Iterator[Sequences]:
        """Yield all sequences of the rows of X, `size` at once."""
        n_of = self.n[X].prod(axis=1)
        ends = np.cumsum(n_of)
        for part in blocks(int(ends[-1]) if len(ends) else 0, size):
            number = np.arange(part.start, part.stop)
            row = np.searchsorted(ends, number, side="right")
            number += n_of[row] - ends[row]
            # The digits of the number within its row, the last column first.
            entry = np.empty((len(row), X.shape[1]), dtype=np.intp)
            for k in reversed(range(X.shape[1])):
                column = X[row, k]
                number, digit = np.divmod(number, self.n[column])
                entry[:, k] = self.start[column] + digit
            yield Sequences(row, self.ids[entry], self.prob[entry])


def _check_classes(
    classes: Mapping[Any, Mapping[Any, float]], ngrams: TextNgrams
) -> None:
    """Raise an error unless classes are distributions over words."""
    known = ngrams.words
    values = classes.values() if isinstance(classes, Mapping) else [classes]
    for words in values:
        if not isinstance(words, Mapping):
            raise TypeError(
                f"classes has a {type(words).__name__} in place of a mapping: map each "
                'class to its words, and these to their probabilities, as in {"CITY": '
                '{"rome": 0.5, "oslo": 0.5}}.'
            )
    if not classes:
        raise ValueError("there are no classes: give one or more, with their words.")
    if not classes.keys() & known.ids.keys():
        example = next(iter(classes))
        raise ValueError(
            f"the model has none of the {len(classes)} classes, such as {example!r}: "
            "the names of classes are words of its text."
        )
    marks = {known.words[ngrams.boundary], "<s>", "</s>"}
    for name, words in classes.items():
        if name in marks or name == known.unknown:
            raise ValueError(f"{name!r} is a mark, which cannot be a class.")
        for word, prob in words.items():
            if word in classes:
                raise ValueError(
                    f"class {name!r} has the word {word!r}, which is a class: a class "
                    "expands to words."
                )
            if word in marks:
                raise ValueError(
                    f"class {name!r} has {word!r}, which marks the ends of lines, and "
                    "is in no class."
                )
            if not 0 < prob <= 1 + MAX_ERROR_OF_SUM:
                raise ValueError(
                    f"{word!r} has the probability {prob} in class {name!r}: it must "
                    "be above 0, and at most 1."
                )
        total = sum(words.values())
        if abs(total - 1) > MAX_ERROR_OF_SUM:
            raise ValueError(
                f"the probabilities of class {name!r} sum to {total:.6g}: they must "
                "sum to 1."
            )
