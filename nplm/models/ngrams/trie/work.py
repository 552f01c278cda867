"""Memory and files of passes over n-grams: as much as they like, or a limited part."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nplm.base.array_types import AnyArray
from nplm.base.blocks import blocks
from nplm.base.progress import counter

T = TypeVar("T")
Progress = Callable[[str, int, int], object]
MAX_NGRAMS = np.iinfo(np.int32).max
# More bytes than any memory has.
MOST = 1 << 62
# Followers per block of contexts. Interrupts are handled between blocks.
BLOCK_FOLLOWERS = 1 << 20


class Work:
    """Memory, files and threads of passes over n-grams: all of memory, and one thread.

    `Scratch` has arrays and files on disk, more threads, and a limit of memory.

    - `memory`: bytes that buffers may take
    - `on_disk`: whether arrays are mapped, so that random accesses are to be avoided
    - `block`: number of n-grams that one thread processes at a time
    - `n_at_once`: number of float64 that are held in memory at once
    - `n_at_random`: number of accesses at random between two calls of `release_pages`
    - `progress`: called with the name of the stage, the amount done, and the total
    """

    on_disk = False
    n_threads = 1
    memory = MOST
    block = BLOCK_FOLLOWERS
    n_at_once = n_at_random = MAX_NGRAMS

    def __init__(self, progress: Progress | None = None) -> None:
        self._files: defaultdict[str, list[bytes]] = defaultdict(list)
        self._progress = progress or counter()
        self._stage, self._done, self._total = "", 0, 0

    def reserve(self, n_bytes: int) -> None:
        """Leave bytes to others: buffers get the rest, or at least a quarter."""

    def array(self, dtype: DTypeLike, size: int) -> NDArray[Any]:
        """Make an array of zeros."""
        return np.zeros(size, dtype=dtype)

    def put(self, array: AnyArray, values: AnyArray) -> None:
        """Copy values into an array that `array` returned, or a slice of one."""
        array[:] = values

    def drop(self, *arrays: AnyArray | None) -> None:
        """Remove arrays that `array` returned, which have no further use."""

    def release_pages(self, *arrays: AnyArray) -> None:
        """Release the memory of arrays on disk: `arrays`, and those made."""

    def append(self, name: str, data: Any) -> None:
        """Append bytes, or the contents of an array, to a file."""
        self._files[name].append(bytes(data))

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""
        return sum(map(len, self._files[name]))

    def read(self, name: str, dtype: DTypeLike, size: int) -> Iterator[NDArray[Any]]:
        """Yield the numbers in a file, at most `size` at once."""
        for data in self._files[name]:
            numbers = np.frombuffer(data, dtype)
            for part in blocks(len(numbers), size):
                yield numbers[part]

    def at(self, name: str, dtype: DTypeLike, *spans: tuple[int, int]) -> NDArray[Any]:
        """Return numbers of a file: of each span, its first and how many."""
        self._files[name] = [b"".join(self._files[name])]
        numbers = np.frombuffer(self._files[name][0], dtype)
        parts = [numbers[first : first + n] for first, n in spans]
        return parts[0] if len(parts) == 1 else np.concatenate([numbers[:0], *parts])

    def remove(self, *names: str) -> None:
        """Remove files."""
        for name in names:
            self._files.pop(name, None)

    def stage(self, name: str, total: int, n_bytes: int = 0) -> None:
        """Begin a stage up to `total`, which writes `n_bytes` at most (0: unknown)."""
        self._stage, self._done, self._total = name, 0, total
        self.advance(0)

    def advance(self, n: int) -> None:
        """Report that `n` more units of the stage are done."""
        self._done += n
        self._progress(self._stage, self._done, self._total)

    def each(self, work: Callable[[int, T], object], parts: Iterable[T]) -> None:
        """Call ``work(thread, part)`` for each part, by all threads."""
        for part in parts:
            work(0, part)
