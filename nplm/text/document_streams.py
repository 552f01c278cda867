"""Documents of any iterable, and their ids, in memory or in temporary files."""

from __future__ import annotations

import math
import os
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Mapping, Set, Sized
from contextlib import AbstractContextManager
from itertools import tee
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import IO, Any, Self

import numpy as np

from nplm.base.array_types import Ids
from nplm.base.files.atomic_files import allocate, full_disk_named
from nplm.base.files.lines import read_lines
from nplm.base.progress import counter
from nplm.text.documents import Documents
from nplm.text.samples import check_documents, is_missing
from nplm.text.words.splitting import BLANKS

# Documents that are tokenized at once, and their characters or tokens.
DOCUMENTS_A_BLOCK, LENGTH_A_BLOCK = 1000, 1 << 20
# Ids that are collected before they are written.
IDS_A_BLOCK = 1 << 18


def readable(X: object, item: str, name: str = "X") -> Any:
    """Return the documents of a sequence, or a stream of those of another iterable."""
    is_sequence = any(hasattr(X, name) for name in ("__len__", "collect", "columns"))
    is_other = isinstance(X, (str, bytes, bytearray, Mapping, Set))
    if not is_sequence and not is_other and (hasattr(X, "__iter__") or callable(X)):
        return DocumentStream(X, name)
    return check_documents(X, item, "A stream is an iterable of documents.", name)


class DocumentStream:
    """Documents that are read one after another, and read again by each iteration.

    `source` has documents, returns an iterator of them, or is a file, whose lines with
    words are documents. `first` is the first document that is not empty; else an empty
    string if there is one, else None.
    """

    def __init__(self, source: Any, name: str) -> None:
        self._source, self._name = source, name
        can_seek = hasattr(source, "readline") and source.seekable()
        self._position = source.tell() if can_seek else None
        beginning, documents = tee(self._opened())
        self.first = first_of(beginning)
        self._documents: Iterator[object] | None = documents

    def __iter__(self) -> Iterator[Any]:
        documents, self._documents = self._documents, None
        return self._reopened() if documents is None else documents

    def _opened(self) -> Iterator[object]:
        source = self._source
        if callable(source) and not hasattr(source, "__iter__"):
            source = source()
            is_text = isinstance(source, (str, bytes, bytearray))
            if is_text or not hasattr(source, "__iter__"):
                raise TypeError(
                    f"{self._name} is a function that returns a "
                    f"{type(source).__name__}: let it return an iterator of documents."
                )
        is_file = hasattr(source, "readline")
        return _lines(source, self._name) if is_file else iter(source)

    def _reopened(self) -> Iterator[object]:
        if self._position is not None:
            self._source.seek(self._position)
        # An iterator is exhausted by the first reading.
        elif hasattr(self._source, "__iter__") and iter(self._source) is self._source:
            raise TypeError(
                f"{self._name} is a {type(self._source).__name__}, which can be read "
                "only once, but the tokenizer learns from the documents before it "
                "splits them: pass a function that returns a new one, an object that "
                "can be iterated over again (such as nplm.datasets.TextLines), or a "
                "list."
            )
        return self._opened()


def _lines(file: Any, name: str) -> Iterator[str]:
    """Yield the lines of an open file that have words, without their ends."""
    lines = iter(file.readline, file.read(0))
    texts: Iterable[str] = (
        line.removeprefix("\ufeff").rstrip("\r\n") for line in lines
    )
    if isinstance(file.read(0), bytes):
        advice = " Or read it by nplm.datasets.TextLines, which can skip such lines."
        texts = (text for _, text in read_lines(lines, name, advice=advice))
    return (text for text in texts if text.strip(BLANKS))


def first_of(documents: Iterable[object]) -> Any:
    """Return the first document that is not empty, else an empty string, else None."""
    empty = None
    for document in documents:
        is_empty = hasattr(document, "__len__") and len(document) == 0
        if not is_empty and not is_missing(document):
            return document
        if is_empty and isinstance(document, str):
            empty = document
    return empty


def blocks_of(documents: Iterable[object]) -> Iterator[tuple[int, list[Any]]]:
    """Yield lists of documents of bounded size, each with the index of its first."""
    # The bar is that of the caller's thread; another one may read the blocks.
    count, n = counter(), len(documents) if isinstance(documents, Sized) else 0

    def blocks() -> Iterator[tuple[int, list[Any]]]:
        start, size, block = 0, 0, list[Any]()
        count("", 0, n, "")
        for document in documents:
            block.append(document)
            size += len(document) if hasattr(document, "__len__") else 0
            if len(block) == DOCUMENTS_A_BLOCK or size >= LENGTH_A_BLOCK:
                yield start, block
                start, size, block = start + len(block), 0, []
                count("", start, n, f"{start:,} documents")
        if block:
            yield start, block

    return blocks()


class IdCollector:
    """Collect the ids of documents, in memory or in a temporary file without a name.

    The file disappears with the last array of it, also after a kill. If the source of
    the documents forks, the new process goes on in a file of its own.
    """

    def __init__(self, *, on_disk: bool) -> None:
        self._ids, self._lengths, self._n_bytes = array("i"), array("q"), 0
        self._file: IO[bytes] | None = None
        if on_disk:
            with _full_disk_named():
                self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            with _full_disk_named():  # closing writes what a full disk refused
                self._file.close()  # an array that is mapped keeps its own

    def add(self, ids: list[int] | Ids) -> None:
        """Add the ids of a document."""
        if isinstance(ids, np.ndarray):
            self._ids.frombytes(ids.tobytes())
        else:
            self._ids.fromlist(ids)
        self._lengths.append(len(ids))
        if self._file is not None and len(self._ids) >= IDS_A_BLOCK:
            self._write()

    def _open(self) -> None:
        self._process = os.getpid()
        self._file = tempfile.TemporaryFile(prefix="nplm-")  # noqa: SIM115

    def _copy(self) -> None:
        """Go on in another file with the same ids."""
        assert self._file is not None
        with self._file as file:
            self._open()
            if self._n_bytes:
                with mmap(file.fileno(), self._n_bytes, access=ACCESS_READ) as written:
                    self._file.write(written)

    def _write(self) -> None:
        assert self._file is not None
        with _full_disk_named():
            if os.getpid() != self._process:  # the parent goes on in the file
                self._copy()
            self._n_bytes += self._file.write(self._ids.tobytes())
            self._file.flush()  # nothing is left that a fork would write again
        del self._ids[:]

    def documents(self) -> Documents:
        """Return all documents."""
        lengths = np.array(self._lengths, dtype=np.intp)
        is_empty = not lengths.any()
        if self._file is None:
            ids = np.empty(0, np.int32) if is_empty else np.frombuffer(self._ids, "i4")
            return Documents(ids, lengths)
        self._write()
        # An empty file cannot be mapped.
        ids = np.empty(0, np.int32) if is_empty else _mapped(self._file, (-1,))
        return StoredDocuments(ids, lengths)


class StoredDocuments(Documents):
    """Documents whose ids, texts and windows are in temporary files."""

    @staticmethod
    def new_array(shape: tuple[int, ...]) -> Ids:
        """Return an array for ids, in a temporary file."""
        with _full_disk_named(), tempfile.TemporaryFile(prefix="nplm-") as file:
            allocate(file, 4 * math.prod(shape), Path(tempfile.gettempdir()))
            return _mapped(file, shape)


def _full_disk_named() -> AbstractContextManager[None]:
    return full_disk_named(Path(tempfile.gettempdir()), "more is")


def _mapped(file: Any, shape: tuple[int, ...]) -> Ids:
    """Map a file of ids into memory; the array keeps the file."""
    return np.memmap(file, np.int32, "r+").view(np.ndarray).reshape(shape)
