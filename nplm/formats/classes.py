"""Class files: a word and its class a line, as mkcls writes them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nplm.base.checks import MAX_N_WORDS, check_ids
from nplm.base.files.compressed import reading
from nplm.formats._lines import MAX_LINE_BYTES, shown
from nplm.formats._model_files import writing

__all__ = ["read_classes", "write_classes"]


def write_classes(
    path: str | os.PathLike[str], words: Sequence[str], labels: ArrayLike
) -> None:
    """Write a class file: a line ``word<TAB>class`` for each word, in UTF-8.

    Parameters
    ----------
    path : path-like
        The file, packed if its name ends in ``.gz`` or ``.xz``; replaced where it
        exists.
    words : sequence of str, shape (n_words,)
        The words, in the order of their ids (``Vocabulary.words_``).
    labels : array-like of int, shape (n_words,)
        The class of each word (``WordClasses.labels_``).

    Raises
    ------
    ValueError
        If lengths differ, a class is no whole number from 0, or a word is empty,
        occurs twice, or holds a tab or the end of a line.

    Examples
    --------
    >>> import tempfile
    >>> from nplm.formats import read_classes, write_classes
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_classes(folder + "/classes.tsv", ["a", "the", "rose"], [1, 1, 0])
    ...     words, labels = read_classes(folder + "/classes.tsv")
    >>> words, labels
    (['a', 'the', 'rose'], array([1, 1, 0], dtype=int32))
    """
    classes = check_ids(labels, "labels", ndim=1)
    if len(words) != len(classes):
        raise ValueError(
            f"{len(words)} words but {len(classes)} labels: give one class a word."
        )
    seen: set[str] = set()
    for i, word in enumerate(words):
        # Not even at its end: "a\n".splitlines() has one line too.
        if word in seen or word.splitlines() != [word] or "\t" in word:
            raise ValueError(
                f"words[{i}] is {word!r}: the words of a class file are distinct and "
                "hold no tab and no end of a line."
            )
        seen.add(word)
    lines = [f"{word}\t{label}\n" for word, label in zip(words, classes)]
    with writing(path) as file:
        file.write("".join(lines).encode())


def read_classes(
    path: str | os.PathLike[str],
) -> tuple[list[str], NDArray[np.int32]]:
    r"""Read a class file: a line ``word<TAB>class`` for each word, in UTF-8.

    Parameters
    ----------
    path : path-like
        The file, as `write_classes` or mkcls writes it; plain, or packed by gzip or xz.

    Returns
    -------
    words : list of str
        In the order of the file.
    labels : ndarray of int32, shape (n_words,)
        The class of each word.

    Raises
    ------
    ValueError
        If a line is anything else, or a word occurs twice; it names the line. If a
        packed file is damaged or unpacks to more than 64 times its size.
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
                f"{where}: expected word<TAB>class, class a whole number from 0, got "
                f"{shown(line)}."
            )
        if word in line_of:
            raise ValueError(
                f"{where}: {shown(word)} has a class already, on line {line_of[word]}."
            )
        # By its digits first: int refuses thousands of them.
        if len(label) > len(str(MAX_N_WORDS)) or int(label) >= MAX_N_WORDS:
            raise ValueError(
                f"{where}: class {label[:20]} must be below {MAX_N_WORDS}."
            )
        line_of[word] = number
        words.append(word)
        labels.append(int(label))
    return words, np.array(labels, dtype=np.int32)


def _lines(path: str | os.PathLike[str]) -> Iterator[tuple[str, str]]:
    """Give where each line is, for the errors, and the line."""
    with reading(path) as file:
        number = 0
        while raw := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            where = f"{os.fspath(path)}, line {number}"
            if len(raw) > MAX_LINE_BYTES:
                raise ValueError(
                    f"{where}: longer than {MAX_LINE_BYTES} bytes: no line of such a "
                    "file is."
                )
            try:
                line = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                raise ValueError(f"{where}: not UTF-8 ({error.reason}).") from None
            yield where, line.removesuffix("\n").removesuffix("\r")
