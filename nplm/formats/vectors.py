"""Word vectors in word2vec's formats: text, or binary with 4 bytes per number."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from io import BufferedReader

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nplm.base.checks import MAX_N_WORDS, refuse_where
from nplm.base.files.compressed import reading
from nplm.formats._lines import Lines, shown
from nplm.formats._model_files import writing
from nplm.formats._words import check_words

CHUNK_BYTES = 1 << 24
# Beyond these limits a file does not have word vectors.
MAX_FEATURES = 1 << 16
MAX_WORD_BYTES = 1 << 16
IS_IT_BINARY = "if this is a binary word2vec file, set binary=True"
# Binary files are little-endian on every processor.
BINARY = np.dtype("<f4")


def write_vectors(
    path: str | os.PathLike[str],
    words: Sequence[str],
    vectors: ArrayLike,
    *,
    binary: bool = False,
) -> None:
    """Write word vectors in word2vec's format, which gensim and others read.

    Parameters
    ----------
    path : path-like
        The file to write; an existing file is replaced. It is compressed if its name
        ends in ``.gz`` or ``.xz``.
    words : sequence of str, shape (n_words,)
        The words, in the order of their ids (``Vocabulary.words_``).
    vectors : array-like of float, shape (n_words, m)
        The vector of each word, such as ``NeuralLM.C_``; finite in float32.
    binary : bool, default=False
        Whether to write 4 bytes per number, instead of all digits of a float32.

    Raises
    ------
    ValueError
        If the numbers of words and vectors differ, a number is not finite, or a word
        is empty, occurs twice, or contains a blank.

    Examples
    --------
    >>> from nplm.formats import read_vectors, write_vectors
    >>> write_vectors("vectors.txt", ["a", "rose"], [[1, 2.5], [0, -3]])
    >>> words, vectors = read_vectors("vectors.txt")
    >>> words, vectors.tolist()
    (['a', 'rose'], [[1.0, 2.5], [0.0, -3.0]])
    """
    with np.errstate(over="ignore"):
        numbers = np.asarray(vectors).astype(BINARY)
    if numbers.ndim != 2 or not numbers.size:
        raise ValueError(
            "vectors must have 2 dimensions, with a row for each word and at least one "
            f"row, got shape {numbers.shape}."
        )
    why = "which is not a finite float32"
    refuse_where(~np.isfinite(numbers), numbers, "vectors", why)
    texts = check_words(words, len(numbers), of="len(vectors)")
    with writing(path) as file:
        file.write(f"{len(numbers)} {numbers.shape[1]}\n".encode())
        for word, vector in zip(texts, numbers):
            if binary:
                file.write(word.encode() + b" " + vector.tobytes() + b"\n")
            else:
                # NumPy's shortest digits that round to the same float32.
                text = " ".join(map(str, vector))
                file.write(f"{word} {text}\n".encode())


def read_vectors(
    path: str | os.PathLike[str],
    words: Collection[str] | None = None,
    *,
    binary: bool = False,
) -> tuple[list[str], NDArray[np.float32]]:
    """Read word vectors from a word2vec file, text or binary.

    Inside a `TextLM`, ``NeuralLM(embeddings=read_vectors(path))`` matches them with the
    words of its vocabulary. ``Vocabulary.embeddings`` aligns them with its ids.

    Parameters
    ----------
    path : path-like
        The file, plain, gzip, bzip2, xz or zstd. Its first line has the number of words
        and the number of features; then follow the words, each with its vector.
    words : collection of str, optional
        Words whose vectors to keep, in the order of the file; by default all. The
        others are checked, but take no memory.
    binary : bool, default=False
        Whether it is a binary file, with 4 bytes per number.

    Returns
    -------
    words : list of str
        In the order of the file.
    vectors : ndarray of float32, shape (n_words, m)
        The vector of each.

    Raises
    ------
    ValueError
        If the file is truncated or damaged, its first line has the wrong number or
        size of vectors, a number is not finite, or a word occurs twice. The
        error names the line of a text file, the vector of a binary one.
    OSError
        If the file cannot be read.
    """
    with reading(path) as file:
        return vectors_in(file, os.fspath(path), words, binary=binary)


def vectors_in(
    file: BufferedReader,
    name: str,
    words: Collection[str] | None = None,
    *,
    binary: bool = False,
) -> tuple[list[str], NDArray[np.float32]]:
    """Read word vectors from an open file, which errors call `name`."""
    wanted = None if words is None else frozenset(words)
    read = _read_binary if binary else _read_text
    seen: dict[str, str] = {}
    kept: list[str] = []
    vectors: list[NDArray[np.float32]] = []
    for where, word, vector in read(file, name):
        if word in seen:
            raise ValueError(
                f"{name}, {where}: {word!r} has a vector already, at {seen[word]}; "
                "remove one of them."
            )
        if not np.isfinite(vector).all():
            bad = vector[~np.isfinite(vector)][0]
            raise ValueError(
                f"{name}, {where}: the vector of {word!r} has {bad}, which is not "
                "a finite float32."
            )
        seen[word] = where
        if wanted is None or word in wanted:
            kept.append(word)
            vectors.append(vector)
    if not vectors:
        raise ValueError(
            f"{name} has no vector"
            + ("." if wanted is None else " of any of the requested words.")
        )
    return kept, np.stack(vectors)


Row = tuple[str, str, NDArray[np.float32]]  # location, word, vector


def _read_text(file: BufferedReader, name: str) -> Iterator[Row]:
    lines = Lines(file, name, f" Or, {IS_IT_BINARY}.")
    first = lines.next()
    if first is None:
        raise ValueError(f"{name} is empty: there is no vector in it.")
    try:
        n_words, m = _sizes(first)
    except ValueError as error:
        raise lines.error(str(error)) from None
    for i in range(n_words):
        line = lines.next()
        if line is None:
            raise lines.error(
                f"the file ends after {i} of {n_words} vectors: it is truncated, or "
                "its first line is wrong",
                ended=True,
            )
        word, _, rest = line.partition(" ")
        fields = rest.split()
        if len(fields) != m:
            hint = "" if line.isprintable() else f"; {IS_IT_BINARY}"
            raise lines.error(
                f"{shown(line)} is not a word and {m} numbers, the size in the first "
                f"line: it has {len(fields)} after the word{hint}"
            )
        try:
            if "_" in rest:  # Python allows it in numbers
                raise ValueError
            with np.errstate(over="ignore"):
                vector = np.array(fields, dtype=np.float64).astype(np.float32)
        except ValueError:
            raise lines.error(
                f"{shown(line)} is not a word and {m} numbers: one is not a number"
            ) from None
        yield f"line {lines.n_read}", word, vector
    more = lines.next()
    if more is not None:
        raise lines.error(
            f"{shown(more)} after the {n_words} vectors that the first line announces"
        )


def _read_binary(file: BufferedReader, name: str) -> Iterator[Row]:
    first = _until(file, b"\n", f"{name}, the first line")
    try:
        n_words, m = _sizes(first.decode("utf-8", errors="replace"))
    except ValueError as error:
        raise ValueError(f"{name}, the first line: {error}.") from None
    for i in range(n_words):
        where = f"vector {i + 1} of {n_words}"
        raw = _until(file, b" ", f"{name}, {where}").lstrip(b"\n")
        try:
            word = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{name}, {where}: a word is not UTF-8 ({error.reason}): the file is "
                "damaged, or in another encoding."
            ) from None
        if not word or "\n" in word:
            raise ValueError(
                f"{name}, {where}: {shown(word)} is not a word; is this a text file, "
                "or is the size of vectors in its first line wrong?"
            )
        data = file.read(m * BINARY.itemsize)
        if len(data) < m * BINARY.itemsize:
            raise _ended(f"{name}, {where}")
        yield where, word, np.frombuffer(data, BINARY).astype(np.float32)
    if file.read(CHUNK_BYTES).strip():
        raise ValueError(
            f"{name} has more than the {n_words} vectors that its first line "
            "announces: that line is wrong, or the file is damaged."
        )


def _until(file: BufferedReader, separator: bytes, where: str) -> bytes:
    """Return the bytes before the next separator, and skip it."""
    taken = b""
    while len(taken) <= MAX_WORD_BYTES:
        data = file.peek()
        if not data:
            raise _ended(where)
        end = data.find(separator) + 1
        taken += file.read(end or len(data))
        if end:
            return taken[:-1]
    raise ValueError(
        f"{where}: no word ends within {MAX_WORD_BYTES} bytes: this is not a binary "
        "word2vec file."
    )


def _ended(where: str) -> ValueError:
    name, _, place = where.rpartition(", ")
    return ValueError(
        f"{name} ends in {place}: it is truncated, or its first line is wrong."
    )


def _sizes(line: str) -> tuple[int, int]:
    """Return the numbers of words and features in the first line, or raise."""
    fields = line.split()
    plain = all(f.isascii() and f.isdigit() and len(f) < 20 for f in fields)
    if len(fields) != 2 or not plain:
        raise ValueError(
            f"{shown(line)} is not a number of words and a number of features "
            "(GloVe's files lack that line: put it first)"
        )
    n_words, m = map(int, fields)
    if not (1 <= n_words <= MAX_N_WORDS and 1 <= m <= MAX_FEATURES):
        raise ValueError(
            f"{n_words} words of {m} features are out of range, 1 to {MAX_N_WORDS} "
            f"words of 1 to {MAX_FEATURES} features"
        )
    return n_words, m
