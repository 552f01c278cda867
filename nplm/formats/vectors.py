"""Word vectors in word2vec's files: text, and the binary with 4 bytes a number."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nplm.base.checks import MAX_N_WORDS
from nplm.base.files.compressed import reading
from nplm.formats._lines import Lines, shown
from nplm.formats._model_files import writing
from nplm.formats._words import check_words

__all__ = ["read_vectors", "write_vectors"]

CHUNK_BYTES = 1 << 24
# What a header may claim: more is no vector of a word, nor a word.
MAX_FEATURES = 1 << 16
MAX_WORD_BYTES = 1 << 16
IS_IT_BINARY = "if this is a binary file of word2vec's, give binary=True"
# Binary files hold numbers so, whichever processor wrote them.
BINARY = np.dtype("<f4")


def write_vectors(
    path: str | os.PathLike[str],
    words: Sequence[str],
    vectors: ArrayLike,
    *,
    binary: bool = False,
) -> None:
    """Write word vectors as word2vec does, which gensim and others read.

    Parameters
    ----------
    path : path-like
        The file, packed if its name ends in ``.gz`` or ``.xz``; replaced where it
        exists.
    words : sequence of str, shape (n_words,)
        The words, in the order of their ids (``Vocabulary.words_``).
    vectors : array-like of float, shape (n_words, m)
        The vector of each word, such as ``NeuralLM.C_``; finite in float32.
    binary : bool, default=False
        4 bytes a number, instead of as many digits as float32 has.

    Raises
    ------
    ValueError
        If there is not one vector a word, a number is not finite, or a word is empty,
        occurs twice, or has a blank in it.

    Examples
    --------
    >>> import tempfile
    >>> from nplm.formats import read_vectors, write_vectors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_vectors(folder + "/vectors.txt", ["a", "rose"], [[1, 2.5], [0, -3]])
    ...     words, vectors = read_vectors(folder + "/vectors.txt")
    >>> words, vectors.tolist()
    (['a', 'rose'], [[1.0, 2.5], [0.0, -3.0]])
    """
    with np.errstate(over="ignore"):
        numbers = np.asarray(vectors).astype(BINARY)
    if numbers.ndim != 2 or not numbers.size:
        raise ValueError(
            "vectors must have 2 dimensions, a row a word, one at least, got shape "
            f"{numbers.shape}."
        )
    _check_finite(numbers, "vectors")
    found = check_words(words, len(numbers), of="len(vectors)")
    with writing(path) as file:
        file.write(f"{len(numbers)} {numbers.shape[1]}\n".encode())
        for word, vector in zip(found, numbers):
            if binary:
                file.write(word.encode() + b" " + vector.tobytes() + b"\n")
            else:
                # NumPy's shortest digits that give the same float32.
                text = " ".join(map(str, vector))
                file.write(f"{word} {text}\n".encode())


def read_vectors(
    path: str | os.PathLike[str],
    words: Collection[str] | None = None,
    *,
    binary: bool = False,
) -> tuple[list[str], NDArray[np.float32]]:
    """Read word vectors from a file of word2vec's, text or binary.

    Inside a `TextLM`, ``NeuralLM(embeddings=read_vectors(path))`` matches them with the
    words of its vocabulary. ``Vocabulary.embeddings`` lines them up with its ids.

    Parameters
    ----------
    path : path-like
        The file, plain, or packed by gzip or xz: a first line with the numbers of
        words and of features, then a word and its numbers at a time.
    words : collection of str, optional
        Keep the vectors of these only, in the order of the file. The rest is looked
        at, but takes no memory.
    binary : bool, default=False
        Whether it is a binary file, with 4 bytes a number.

    Returns
    -------
    words : list of str
        In the order of the file.
    vectors : ndarray of float32, shape (n_words, m)
        The vector of each.

    Raises
    ------
    ValueError
        If the file is cut short or damaged, has more or fewer vectors than it says or
        vectors of other lengths, a number that is not finite, or a word twice. The
        error names the line of a text file, the vector of a binary one.
    OSError
        If the file cannot be read.
    """
    wanted = None if words is None else frozenset(words)
    read = _read_binary if binary else _read_text
    name = os.fspath(path)
    seen: dict[str, str] = {}
    kept: list[str] = []
    vectors: list[NDArray[np.float32]] = []
    with reading(path) as file:
        for where, word, vector in read(file, name):
            if word in seen:
                raise ValueError(
                    f"{name}, {where}: {word!r} has a vector already, at {seen[word]}; "
                    "remove one of them."
                )
            if not np.isfinite(vector).all():
                bad = vector[~np.isfinite(vector)][0]
                raise ValueError(
                    f"{name}, {where}: the vector of {word!r} has {bad}, which is no "
                    "finite float32."
                )
            seen[word] = where
            if wanted is None or word in wanted:
                kept.append(word)
                vectors.append(vector)
    if not vectors:
        raise ValueError(
            f"{name} has no vector"
            + ("." if wanted is None else " of any of the words that were asked for.")
        )
    return kept, np.stack(vectors)


Row = tuple[str, str, NDArray[np.float32]]  # where, the word, its vector


def _read_text(file: BinaryIO, name: str) -> Iterator[Row]:
    lines = Lines(
        file, name, f"{IS_IT_BINARY}; if not, convert it, with iconv for example"
    )
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
                f"the file ends after {i} of {n_words} vectors: it is cut short, or "
                "its first line is wrong",
                ended=True,
            )
        word, _, rest = line.partition(" ")
        fields = rest.split()
        if len(fields) != m:
            hint = "" if line.isprintable() else f"; {IS_IT_BINARY}"
            raise lines.error(
                f"{shown(line)} is not a word and {m} numbers, the size that the first "
                f"line gives: it has {len(fields)} after the word{hint}"
            )
        try:
            if "_" in rest:  # which Python allows in numbers
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
            f"{shown(more)} after the {n_words} vectors of the first line"
        )


def _read_binary(file: BinaryIO, name: str) -> Iterator[Row]:
    source = _Bytes(file, name)
    first = source.until(b"\n", "the first line")
    try:
        n_words, m = _sizes(first.decode("utf-8", errors="replace"))
    except ValueError as error:
        raise ValueError(f"{name}, the first line: {error}.") from None
    for i in range(n_words):
        where = f"vector {i + 1} of {n_words}"
        raw = source.until(b" ", where).lstrip(b"\n")
        try:
            word = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{name}, {where}: a word is not UTF-8 ({error.reason}): the file is "
                "damaged, or in another encoding."
            ) from None
        if not word or "\n" in word:
            raise ValueError(
                f"{name}, {where}: {shown(word)} is no word; is this a text file, or "
                "are its vectors of another size than its first line says?"
            )
        vector = np.frombuffer(source.take(m * BINARY.itemsize, where), BINARY)
        yield where, word, vector.astype(np.float32)
    if source.rest().strip():
        raise ValueError(
            f"{name} has more than the {n_words} vectors that its first line gives: "
            "that is wrong, or the file is damaged."
        )


class _Bytes:
    """The bytes of a binary file, some at a time; a file that ends is an error."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self._name = file, name
        self._buffer, self._at = b"", 0

    def until(self, mark: bytes, where: str) -> bytes:
        """Take what comes before a mark, and the mark."""
        while (end := self._buffer.find(mark, self._at)) < 0:
            if len(self._buffer) - self._at > MAX_WORD_BYTES:
                raise ValueError(
                    f"{self._name}, {where}: no word ends within {MAX_WORD_BYTES} "
                    "bytes: this is no binary file of word2vec's."
                )
            self._fill(where)
        taken = self._buffer[self._at : end]
        self._at = end + 1
        return taken

    def take(self, n: int, where: str) -> bytes:
        """Take n bytes."""
        while len(self._buffer) - self._at < n:
            self._fill(where)
        self._at += n
        return self._buffer[self._at - n : self._at]

    def rest(self) -> bytes:
        """Take what is left, if it is much not all of it."""
        return self._buffer[self._at :] + self._read()

    def _fill(self, where: str) -> None:
        more = self._read()
        if not more:
            raise ValueError(
                f"{self._name} ends in {where}: it is cut short, or its first line is "
                "wrong."
            )
        self._buffer = self._buffer[self._at :] + more
        self._at = 0

    def _read(self) -> bytes:
        return self._file.read(CHUNK_BYTES)


def _sizes(line: str) -> tuple[int, int]:
    """Give the numbers of words and features, of which nothing is believed yet."""
    fields = line.split()
    plain = all(f.isascii() and f.isdigit() and len(f) < 20 for f in fields)
    if len(fields) != 2 or not plain:
        raise ValueError(
            f"{shown(line)} is not the number of words and that of their features "
            "(GloVe's files lack that line: put it first)"
        )
    n_words, m = map(int, fields)
    if not (1 <= n_words <= MAX_N_WORDS and 1 <= m <= MAX_FEATURES):
        raise ValueError(
            f"{n_words} words of {m} features are none, or beyond {MAX_N_WORDS} of "
            f"{MAX_FEATURES}"
        )
    return n_words, m


def _check_finite(numbers: NDArray[Any], name: str) -> None:
    bad = np.argwhere(~np.isfinite(numbers))
    if len(bad):
        row, column = bad[0].tolist()
        raise ValueError(
            f"{name} has {numbers[row, column]} at row {row}, column {column}, which "
            "is no finite float32."
        )
