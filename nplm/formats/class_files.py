"""Files of word classes: lines of mkcls, and definitions of classes of SRILM."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from nplm.base.array_types import Ids
from nplm.base.checks import MAX_N_WORDS, check_ids
from nplm.base.files.compressed import reading
from nplm.base.files.lines import read_lines
from nplm.formats._lines import MAX_LINE_BYTES, shown
from nplm.formats._model_files import writing
from nplm.formats._words import check_words
from nplm.text.words.splitting import BEGIN, BETWEEN_BLANKS, END

# A probability, as of a definition of a class: a second field of this form is one, or
# the logarithm of one, which is refused.
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.A | re.I)


def write_classes(
    path: str | os.PathLike[str], words: Sequence[str], labels: ArrayLike
) -> None:
    """Write a class file: a line ``word<TAB>class`` for each word, in UTF-8.

    Parameters
    ----------
    path : path-like
        The file to write; an existing file is replaced. It is compressed if its name
        ends in ``.gz`` or ``.xz``.
    words : sequence of str, shape (n_words,)
        The words, in the order of their ids (``Vocabulary.words_``).
    labels : array-like of int, shape (n_words,)
        The class of each word (``WordClasses.labels_``).

    Raises
    ------
    ValueError
        If lengths differ, a class is not a whole number from 0, or a word is empty,
        occurs twice, or contains a tab or a line break.

    Examples
    --------
    >>> from nplm.formats import read_classes, write_classes
    >>> write_classes("classes.tsv", ["a", "the", "rose"], [1, 1, 0])
    >>> words, labels = read_classes("classes.tsv")
    >>> words, labels
    (['a', 'the', 'rose'], array([1, 1, 0], dtype=int32))
    """
    classes = check_ids(labels, "labels", ndim=1)
    if len(words) != len(classes):
        raise ValueError(
            f"{len(words)} words but {len(classes)} labels: pass one class per word."
        )
    seen: set[str] = set()
    for i, word in enumerate(words):
        # Compared with [word], as "a\n".splitlines() has one line too.
        if word in seen or word.splitlines() != [word] or "\t" in word:
            raise ValueError(
                f"words[{i}] is {word!r}: the words of a class file must be distinct, "
                "without tabs and line breaks."
            )
        seen.add(word)
    lines = [f"{word}\t{label}\n" for word, label in zip(words, classes)]
    with writing(path) as file:
        file.write("".join(lines).encode())


def read_classes(path: str | os.PathLike[str]) -> tuple[list[str], Ids]:
    r"""Read a class file: a line ``word<TAB>class`` for each word, in UTF-8.

    Parameters
    ----------
    path : path-like
        The file, as `write_classes` or mkcls writes it; plain, gzip, bzip2, xz or zstd.

    Returns
    -------
    words : list of str
        In the order of the file.
    labels : ndarray of int32, shape (n_words,)
        The class of each word.

    Raises
    ------
    ValueError
        If a line is invalid, or a word occurs twice; the error names the line. If a
        compressed file is damaged or decompresses to more than 64 times its size.
    OSError
        If the file cannot be read.
    """
    words: list[str] = []
    labels: list[int] = []
    line_of: dict[str, int] = {}
    for number, (where, line) in enumerate(_lines(path), 1):
        word, tab, label = line.partition("\t")
        if not (word and tab and label.isascii() and label.isdigit()):
            raise ValueError(
                f"{where}: expected word<TAB>class, with class a whole number from 0, "
                f"got {shown(line)}."
            )
        if word in line_of:
            raise ValueError(
                f"{where}: {shown(word)} has a class already, on line {line_of[word]}."
            )
        # The length first: int refuses thousands of digits.
        if len(label) > len(str(MAX_N_WORDS)) or int(label) >= MAX_N_WORDS:
            raise ValueError(
                f"{where}: class {label[:20]} must be below {MAX_N_WORDS}."
            )
        line_of[word] = number
        words.append(word)
        labels.append(int(label))
    return words, np.array(labels, dtype=np.int32)


def write_class_definitions(
    path: str | os.PathLike[str], classes: Mapping[str, Mapping[str, float]]
) -> None:
    """Write definitions of classes: a line ``class probability word`` for each word.

    The format is SRILM's classes-format(5), in UTF-8.

    Parameters
    ----------
    path : path-like
        The file to write; an existing file is replaced. It is compressed if its name
        ends in ``.gz`` or ``.xz``.
    classes : mapping of str to mapping of str to float
        The words of each class, and the probability of each given the class, above 0
        and at most 1.

    Raises
    ------
    ValueError
        If a probability is out of range, a class has no words, or a class or a word is
        empty, has a blank, or is ``<s>`` or ``</s>``.

    See Also
    --------
    nplm.expand_classes : Makes a model of words of one of classes.

    Examples
    --------
    >>> from nplm.formats import read_class_definitions, write_class_definitions
    >>> animals = {"ANIMAL": {"cat": 0.75, "dog": 0.25}}
    >>> write_class_definitions("definitions", animals)
    >>> read_class_definitions("definitions")
    {'ANIMAL': {'cat': 0.75, 'dog': 0.25}}
    """
    lines = []
    check_words(list(classes), len(classes))
    for name, words in classes.items():
        check_words(list(words), len(words))
        if not words:
            raise ValueError(f"class {shown(name)} has no words: leave it out.")
        for word, prob in words.items():
            if {name, word} & {BEGIN, END}:
                raise ValueError(_marks(f"{name} {word}"))
            if not 0 < prob <= 1:
                raise ValueError(_out_of_range(name, word, prob))
            lines.append(f"{name} {prob:.9g} {word}\n")
    with writing(path) as file:
        file.write("".join(lines).encode())


def read_class_definitions(path: str | os.PathLike[str]) -> dict[str, dict[str, float]]:
    """Read definitions of classes: lines ``class [probability] word``, in UTF-8.

    The format is SRILM's classes-format(5), as its ``ngram-class -classes`` and
    ``replace-words-with-classes`` write it. Probabilities may be left out for all words
    of a class: then the words are equally probable. (SRILM takes 1 for each, unless
    its ``uniform-classes`` fills them in.)

    Parameters
    ----------
    path : path-like
        The file; plain, gzip, bzip2, xz or zstd. Blank lines are skipped. A number in
        the second field is the probability.

    Returns
    -------
    classes : dict of str to dict of str to float
        The words of each class, and the probability of each given the class, for
        `nplm.expand_classes`.

    Raises
    ------
    ValueError
        If a line is invalid, expands a class to a phrase of several words, repeats a
        word of a class, or lacks the probability that other lines of its class have;
        the error names the line. If a compressed file is damaged or decompresses to
        more than 64 times its size.
    OSError
        If the file cannot be read.
    """
    classes: dict[str, dict[str, float]] = {}
    are_given: dict[str, bool] = {}
    for where, line in _lines(path):
        fields = re.findall(BETWEEN_BLANKS, line)
        if not fields:
            continue
        name, *words = fields
        prob = None
        # A word may begin with "-", but a phrase is refused: of two, it is a number.
        is_word = len(words) == 1 and words[0].startswith("-")
        if words and NUMBER.fullmatch(words[0]) and not is_word:
            prob = float(words.pop(0))
        if len(words) != 1:
            raise ValueError(
                f"{where}: expected a class, its probability if any, and a word, got "
                f"{shown(line)}."
                + (
                    " Phrases are not supported: join the words of each with '_', "
                    "in the text too."
                    if words
                    else ""
                )
            )
        (word,) = words
        members = classes.setdefault(name, {})
        if word in members:
            raise ValueError(f"{where}: class {shown(name)} has {shown(word)} already.")
        if {name, word} & {BEGIN, END}:
            raise ValueError(f"{where}: {_marks(line)}")
        if are_given.setdefault(name, prob is not None) != (prob is not None):
            raise ValueError(
                f"{where}: class {shown(name)} has words with a probability and words "
                "without: give it for all of them, or for none."
            )
        if prob is not None and not 0 < prob <= 1:
            raise ValueError(f"{where}: {_out_of_range(name, word, prob)}")
        members[word] = 1.0 if prob is None else prob
    return {
        name: words if are_given[name] else dict.fromkeys(words, 1 / len(words))
        for name, words in classes.items()
    }


def _marks(line: str) -> str:
    return (
        f"{shown(line)} has {BEGIN} or {END}, which mark the ends of lines, and are in "
        "no class."
    )


def _out_of_range(name: str, word: str, prob: float) -> str:
    return (
        f"{shown(word)} has the probability {prob} in class {shown(name)}: it must be "
        "above 0, and at most 1."
    )


def _lines(path: str | os.PathLike[str]) -> Iterator[tuple[str, str]]:
    """Yield each line after its location, for error messages."""
    with reading(path) as file:
        lines = iter(partial(file.readline, MAX_LINE_BYTES + 1), b"")
        yield from read_lines(lines, os.fspath(path), max_bytes=MAX_LINE_BYTES)
