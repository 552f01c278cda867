"""Files of n-gram models written in bounded memory, from tries on disk."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nplm.base import system
from nplm.base.blocks import blocks
from nplm.base.files.tensors import filling_arrays
from nplm.formats._words import END, StoredWords, check_marks
from nplm.formats.arpa.arpa_lines import write_lines
from nplm.formats.arpa.arpa_on_disk import LinesOnDisk, PrunedLinesOnDisk
from nplm.formats.binary.arrays import ARRAYS, dtypes_of_trie, sizes_of_hashed
from nplm.formats.binary.binary_files import check_bits, write_quantized
from nplm.formats.binary.headers import header_of, metadata_of
from nplm.models.ngrams.external.estimation import (
    TableFullError,
    buckets_of_levels,
    fill_table,
)
from nplm.models.ngrams.external.scratch import Scratch
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.packed_trie import fill_packed

__all__ = [
    "ArpaFile", "MappedFile", "Output", "QuantizedFile", "StoredTrie", "TrieSource",
    "free_memory", "stored",
]  # fmt: skip

# Files of a control group, version 2 and 1: its limit and the use of memory.
GROUP_LIMITS = [
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
]


def free_memory() -> int:
    """Return three quarters of the memory that is available, in bytes.

    That of the system, or of the control group of a container if it is less. The rest
    is left for the pages of files and for other programs.
    """
    free = system.available_memory()
    for limit, used in GROUP_LIMITS:
        with suppress(OSError, ValueError):  # "max" is no number: there is no limit
            own = int(Path(limit).read_text()) - int(Path(used).read_text())
            free = min(free, max(own, 0))
    return free * 3 // 4


class TrieSource(Protocol):
    """A trie that fills its arrays, and knows their sizes.

    Attributes
    ----------
    n_words : int
        Size of the vocabulary.
    n_ngrams, level_start : ndarray of int64
        As in `ContextTrie`.
    is_whole : bool
        Whether each n-gram below the highest order that does not end a sentence is a
        context, each context is an n-gram, and all suffixes are there.
    """

    n_words: int
    n_ngrams: NDArray[np.int64]
    level_start: NDArray[np.int64]
    is_whole: bool

    def fill(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Fill the arrays of a `BackoffTrie`, by name; once, if the source says so."""


class StoredTrie:
    """A trie in memory or mapped from a file, as a source.

    Parameters
    ----------
    trie : BackoffTrie
        The n-grams.
    scratch : Scratch
        Says how much is copied at once.
    is_whole : bool, default=False
        As in `TrieSource`.
    """

    def __init__(
        self, trie: BackoffTrie, scratch: Scratch, *, is_whole: bool = False
    ) -> None:
        self.trie, self._scratch, self.is_whole = trie, scratch, is_whole
        self.n_words, self.n_ngrams = trie.n_words, trie.n_ngrams
        self.level_start = trie.level_start.astype(np.int64)

    def fill(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Copy the arrays."""
        for name in ARRAYS:
            own = getattr(self.trie, name)
            for part in blocks(len(own), self._scratch.block):
                arrays[name][part] = own[part]
                self._scratch.forget(own, arrays[name])


def stored(source: TrieSource, scratch: Scratch) -> StoredTrie:
    """Return the trie of a source, on disk."""
    if isinstance(source, StoredTrie):
        return source
    dtypes, sizes = dtypes_of_trie(), _sizes_of_trie(source)
    # The names may be taken, by a trie of which this one is a part.
    prefix = f"trie {len(scratch.arrays)}"
    arrays = {
        name: scratch.array(f"{prefix} {name}", dtypes[name], sizes[name])
        for name in ARRAYS
    }
    source.fill(arrays)
    trie = BackoffTrie(source.n_words, **arrays)
    return StoredTrie(trie, scratch, is_whole=source.is_whole)


def _sizes_of_trie(source: TrieSource) -> dict[str, int]:
    n_contexts, n_ngrams = int(source.level_start[-1]), int(source.n_ngrams.sum())
    return {
        "level_start": len(source.level_start),
        "context_word": n_contexts,
        "child_start": n_contexts + 1,
        "start": n_contexts + 1,
        "words": n_ngrams,
        "prob": n_ngrams,
        "bow": n_contexts,
    }


class Output(Protocol):
    """A file to be written."""

    path: str | os.PathLike[str]

    def write(self, source: TrieSource, words: StoredWords, scratch: Scratch) -> None:
        """Write the file of a trie."""


class MappedFile:
    """A file of mapped n-grams with their hash table.

    Parameters
    ----------
    path : path-like
        The file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path

    def write(self, source: TrieSource, words: StoredWords, scratch: Scratch) -> None:
        """Write the file of a trie."""
        header = metadata_of(header_of(words))
        text = words.sizes
        for bucket_start in buckets_of_levels(source.n_ngrams, source.level_start):
            if not len(bucket_start):
                dtypes, own = dtypes_of_trie(), _sizes_of_trie(source)
                text |= {name: (dtype, own[name]) for name, dtype in dtypes.items()}
                with filling_arrays(self.path, text, header) as arrays:
                    words.fill(arrays)
                    source.fill(arrays)
                return
            # The trie may have to be put into a larger table.
            source = stored(source, scratch)
            trie = source.trie
            n_contexts, n_ngrams = len(trie.context_word), len(trie.words)
            sizes = sizes_of_hashed(trie.n_words, n_contexts, n_ngrams, bucket_start)
            with (
                suppress(TableFullError),
                filling_arrays(self.path, text | sizes, header) as arrays,
            ):
                words.fill(arrays)
                arrays["bucket_start"][:] = bucket_start
                arrays["prob"][:] = trie.prob[: trie.n_words]
                arrays["bow"][:] = trie.bow[1 : trie.n_words + 1]
                closed = fill_table(trie, arrays["buckets"], bucket_start, scratch)
                arrays["closed"][:] = closed
                packed = [arrays[name] for name in sizes]
                fill_packed(
                    trie, arrays, partial(scratch.forget, *packed), scratch.block
                )
                return


class QuantizedFile:
    """A quantized file.

    Parameters
    ----------
    path : path-like
        The file.
    bits : int
        Bits of a code.
    """

    def __init__(self, path: str | os.PathLike[str], bits: int) -> None:
        self.path, self.bits = path, bits

    def write(self, source: TrieSource, words: StoredWords, scratch: Scratch) -> None:
        """Write the file of a trie; raise ValueError if its order has no such file."""
        check_bits(self.bits, len(source.n_ngrams))
        trie = stored(source, scratch).trie
        write_quantized(self.path, words, trie, self.bits, scratch)


class ArpaFile:
    """An ARPA file.

    Parameters
    ----------
    path : path-like
        The file; compressed if its name ends in ``.gz`` or ``.xz``.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path

    def write(self, source: TrieSource, words: StoredWords, scratch: Scratch) -> None:
        """Write the file of a trie."""
        spelled = words.spelled()
        check_marks(spelled, words.boundary)
        if words.boundary is not None:
            spelled[words.boundary] = END
        trie = stored(source, scratch).trie
        lines = LinesOnDisk if source.is_whole else PrunedLinesOnDisk
        write_lines(self.path, lines(trie, spelled, words.boundary, scratch))
