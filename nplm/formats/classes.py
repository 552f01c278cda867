"""Class files: a word and its class per line, as mkcls writes them."""

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


def read_classes(
    path: str | os.PathLike[str],
) -> tuple[list[str], NDArray[np.int32]]:
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


def _lines(path: str | os.PathLike[str]) -> Iterator[tuple[str, str]]:
    """Yield each line after its location, for error messages."""
    with reading(path) as file:
        number = 0
        while raw := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            where = f"{os.fspath(path)}, line {number}"
            if len(raw) > MAX_LINE_BYTES:
                raise ValueError(
                    f"{where}: longer than {MAX_LINE_BYTES} bytes: this is not a class "
                    "file."
                )
            try:
                line = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                raise ValueError(f"{where}: not UTF-8 ({error.reason}).") from None
            yield where, line.removesuffix("\n").removesuffix("\r")
