"""`open_model`: a file of any kind, opened once and recognised by its contents."""

from __future__ import annotations

import codecs
import io
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, auto
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nplm.base.exceptions import damaged_file
from nplm.base.files.atomic_files import check_regular, opened
from nplm.base.files.compressed import UnpackingError, refuse_foreign, unpacked
from nplm.base.files.tensors import (
    CHECKSUM,
    NotTensorsError,
    TensorFile,
    begins_as_tensors,
)
from nplm.formats._model_files import NGRAMS, SAVED
from nplm.formats._ngrams import Ngrams, StoredTrie
from nplm.formats._words import reserve_for_words
from nplm.formats.binary.binary_reading import read_ngrams as read_binary
from nplm.formats.kenlm_files import MAGIC
from nplm.formats.kenlm_files import read_ngrams as read_kenlm
from nplm.models.ngrams.text_ngrams import NoNgramsError, TextNgrams
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.hashing import index_of
from nplm.models.ngrams.trie.quantized_trie import QuantizedTrie
from nplm.models.ngrams.trie.work import Work
from nplm.text.lm.scorer import Scorer
from nplm.text.words.splitting import BEGIN, END

if TYPE_CHECKING:
    from nplm.text.lm.text_lm import TextLM

START_BYTES = 512
BLOCK_BYTES = 1 << 20
# A line of ARPA files, near their beginning.
ARPA = b"\\data\\"
# The numbers of words and features; then, in text, a word and its first number.
# Editors may add a byte order mark, blanks and blank lines to text.
VECTORS = re.compile(rb"\d+ \d+\n")
TEXT_VECTORS = re.compile(
    rb"(\xef\xbb\xbf)?\s*\d+[ \t]+\d+[ \t\r]*\n\s*\S+ +[-+.\d]+(e[-+]?\d+)?\s", re.I
)
# All lines of classes and of counts end so.
TABLE = re.compile(rb"([^\t\n]+\t\d+\r?\n)+")


class Kind(Enum):
    """The kind of a file, as far as its first bytes show."""

    KENLM = auto()  # of KenLM's build_binary
    TENSORS = auto()  # of nplm.save, of save_binary, of a checkpoint, or of others
    TEXT_VECTORS = auto()
    BINARY_VECTORS = auto()
    TABLE = auto()  # classes or counts
    ARPA = auto()
    TEXT = auto()  # the reader of ARPA says what is wrong
    OTHER = auto()

    @property
    def is_vectors(self) -> bool:
        """Whether it has word vectors."""
        return self in (Kind.TEXT_VECTORS, Kind.BINARY_VECTORS)

    @property
    def is_text(self) -> bool:
        """Whether it is read as an ARPA file."""
        return self in (Kind.ARPA, Kind.TEXT)


# What files have that are no models, and their readers.
NO_MODELS = {
    Kind.TEXT_VECTORS: "word vectors, not a model: nplm.formats.read_vectors(path) "
    "reads them, and Features(embeddings=...) starts a network with them.",
    Kind.BINARY_VECTORS: "word vectors, not a model: nplm.formats.read_vectors(path, "
    "binary=True) reads them, and Features(embeddings=...) starts a network with them.",
    Kind.TABLE: "words and whole numbers, not a model: nplm.formats.read_classes reads "
    "classes of words, and nplm.formats.read_counts n-gram counts.",
}


@contextmanager
def open_model(
    path: str | os.PathLike[str], *, mmap: bool = True, verify: bool = False
) -> Iterator[OpenModel]:
    """Open a file and recognise it by its first bytes, decompressed.

    Raises OSError if it cannot be read or is a pipe, and ValueError if it is compressed
    by another program, or is a model of another tool. Other errors are its reader's.
    """
    check_regular(path)
    with opened(path) as raw:
        yield OpenModel(raw, Path(path), mmap=mmap, verify=verify)


class OpenModel:
    """An open file, which is read once it is asked for a model; see `open_model`."""

    def __init__(
        self, raw: io.BufferedReader, path: Path, *, mmap: bool, verify: bool
    ) -> None:
        self.path, self._raw, self._mmap, self._verify = path, raw, mmap, verify
        if raw.peek(len(MAGIC)).startswith(MAGIC):  # it is mapped as it is
            self.kind = Kind.KENLM
            return
        try:
            with self.contents() as file:
                start = file.read(START_BYTES)
        except UnpackingError:
            self.kind = Kind.TEXT
        else:
            if not start:
                raise ValueError(f"{path} is empty: copy or save the model again.")
            refuse_foreign(start, os.fspath(path))
            self.kind = _kind_of(start)

    @contextmanager
    def contents(self) -> Iterator[io.BufferedReader]:
        """Yield the file at its beginning, decompressed."""
        self._raw.seek(0)
        with unpacked(self._raw, os.fspath(self.path)) as file:
            yield file

    @cached_property
    def tensors(self) -> TensorFile:
        """The file as a safetensors file. A ValueError does not name it."""
        return TensorFile(self.path, self._raw)

    def checksum(self) -> str:
        """Return the size and the CRC-32 of a file, of a safetensors file its header's.

        A ValueError does not name it.
        """
        try:
            checksum = self.tensors.metadata[CHECKSUM]
        except NotTensorsError:
            crc = 0
            self._raw.seek(0)
            while block := self._raw.read(BLOCK_BYTES):
                crc = zlib.crc32(block, crc)
            checksum = f"{crc:08x}"
        return f"{os.fstat(self._raw.fileno()).st_size}-{checksum}"

    def vectors(self) -> tuple[list[str], NDArray[np.float32]]:
        """Return the words and vectors of a file of vectors."""
        from nplm.formats.vectors import vectors_in

        is_binary = self.kind is Kind.BINARY_VECTORS
        with self.contents() as file:
            return vectors_in(file, os.fspath(self.path), binary=is_binary)

    def arpa_ngrams(self, work: Work) -> Ngrams[BackoffTrie]:
        """Return the n-grams of an ARPA file, in memory or on disk, without a table."""
        # Imported here: it would slow the start with other files.
        from nplm.formats.arpa.arpa_reading import read_ngrams

        with self.contents() as file:
            source = self.path, work
            return read_ngrams(*source, add_unknown=True, add_end=True, file=file)

    def scorer(self) -> Scorer:
        """Return the scorer of a model of words; of n-grams without scikit-learn."""
        if not self._has_ngrams():
            return self.text_lm().scorer()
        ngrams = self._ngrams()
        with self._named_words():
            return ngrams.scorer()

    def text_lm(self, work: Work | None = None, *, index: bool = True) -> TextLM:
        """Return the model of words; a detector's is that of usual documents."""
        from nplm.text.lm.text_lm import TextLM
        from nplm.text.tasks.lm_detector import LMDetector

        model = self.load(work, index=index)
        if isinstance(model, LMDetector):
            model = model.estimator_
        if not isinstance(model, TextLM):
            raise ValueError(
                f"{self.path} has a {type(model).__name__}, not a TextLM: in Python, "
                "make one with TextLM.from_model(model, words), and save that."
            )
        if model.vocabulary_ is None:
            raise ValueError(
                f"{self.path} has a model of ids, not of text: in Python, fit a TextLM "
                "to strings, or give TextLM.from_model the words."
            )
        return model

    def text_ngrams(self, work: Work, *, quantized: bool = False) -> TextNgrams:
        """Return back-off n-grams of text, whose arrays can be read in order.

        Raises NoNgramsError if it has another model, or is quantized unless
        `quantized`.
        """
        if not self._has_ngrams():
            ngrams = TextNgrams.of(self.text_lm(), os.fspath(self.path))
            reserve_for_words(work, len(ngrams.words))
            return ngrams
        of_file = self._ngrams(work, index=False)
        if isinstance(of_file.trie, QuantizedTrie) and not quantized:
            raise NoNgramsError(os.fspath(self.path), "QuantizedLM")
        with self._named_words():
            return of_file.text_ngrams(work)

    def load(self, work: Work | None = None, *, index: bool = True) -> Any:
        """Return the model, as `nplm.load` does; ARPA files are sorted in `work`."""
        if self._has_ngrams():
            ngrams = self._ngrams(work, index=index)
            with self._named_words():
                return ngrams.text_lm()
        # Imported here: files of n-grams are read without scikit-learn.
        from nplm.formats.saving.files import read_saved

        if SAVED.holds(self.tensors):
            SAVED.check_version(self.tensors)
        try:
            return read_saved(self.tensors, mmap=self._mmap)
        except (ValueError, TypeError, RecursionError) as error:
            raise self._unreadable(error) from error

    def _has_ngrams(self) -> bool:
        """Whether it has n-grams; raise ValueError if it is recognised as no model."""
        if self.kind in NO_MODELS:
            raise ValueError(f"{self.path} has {NO_MODELS[self.kind]}")
        if self.kind.is_text or self.kind is Kind.KENLM:
            return True
        try:
            return NGRAMS.holds(self.tensors)
        except ValueError as error:
            raise self._unreadable(error) from error

    def _ngrams(
        self, work: Work | None = None, *, index: bool = True
    ) -> Ngrams[StoredTrie]:
        """Return n-grams; raise ValueError if they have no boundary."""
        if self.kind is Kind.KENLM:
            source = self._raw, self.path
            return read_kenlm(*source, verify=self._verify, mmap=self._mmap)
        if not self.kind.is_text:
            ngrams = read_binary(self.tensors, verify=self._verify, mmap=self._mmap)
            if ngrams.boundary is not None:
                return ngrams
            if {BEGIN, END} & set(ngrams.words):
                raise ValueError(
                    f"{self.path} has no boundary, the mark of the ends of lines, and "
                    f"{BEGIN} or {END} as an ordinary word: in Python, read it by "
                    "nplm.formats.load_binary, and give TextLM.from_model a boundary "
                    "and predict_boundary=False."
                )
            in_memory = ngrams.with_boundary(work or Work())
        else:
            from nplm.formats.arpa.arpa_reading import check_boundary

            in_memory = self.arpa_ngrams(work or Work())
            check_boundary(in_memory.boundary, in_memory.words, self.path)
        if index:
            in_memory = in_memory._replace(table=index_of(in_memory.trie))
        return in_memory

    @contextmanager
    def _named_words(self) -> Iterator[None]:
        """Name the file in the error of words that are not those of their table."""
        try:
            yield
        except ValueError as error:
            raise damaged_file(self.path, error) from error

    def _unreadable(self, error: Exception) -> ValueError:
        return ValueError(
            f"{self.path} cannot be loaded: {str(error).rstrip('.')}. Copy it again, "
            "or save the model again with this nplm; if nplm.save did not write it, "
            "nplm.formats may read it."
        )


def _kind_of(start: bytes) -> Kind:
    if begins_as_tensors(start):
        return Kind.TENSORS
    if TEXT_VECTORS.match(start):
        return Kind.TEXT_VECTORS
    if VECTORS.match(start):
        return Kind.BINARY_VECTORS
    is_text = b"\0" not in start and start[:1] != b"{"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        is_text = False
    if is_text and TABLE.fullmatch(start[: start.rfind(b"\n") + 1]):
        return Kind.TABLE
    # Also with NULs, as in UTF-16, or other bytes: its reader names the line.
    if ARPA in start.replace(b"\0", b""):
        return Kind.ARPA
    return Kind.TEXT if is_text else Kind.OTHER
