"""Merge sorted runs into the levels of a trie."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams import _fold, _runs
from nplm.models.ngrams.external.runs import NUMBER_BYTES, Packing, Run
from nplm.models.ngrams.external.scratch import Scratch
from nplm.models.ngrams.trie.context_trie import MAX_NGRAMS

__all__ = ["Levels", "build_levels"]

# More runs are merged in several steps, so that the buffer of each is large enough.
MAX_RUNS = 64
# Rows merged in one kernel call. Interrupts are handled between calls.
MAX_MERGED_ROWS = 1 << 16
ARRAYS: dict[str, np.dtype[Any]] = {
    "context_word": np.dtype(np.int32),
    "child_start": np.dtype(np.int32),
    "start": np.dtype(np.int32),
    "words": np.dtype(np.int32),
    "counts": np.dtype(np.int64),
}
# Maximum size of an n-gram on disk: that of the only n-gram of a context.
LEVEL_BYTES = sum(dtype.itemsize for dtype in ARRAYS.values())


@dataclass(frozen=True)
class Part:
    """The levels of the contexts whose nearest word is in one range.

    Attributes
    ----------
    number : int
        Number of the part, used in its file names.
    sizes : list of (int, int)
        Numbers of contexts and n-grams of each level but the root.
    distinct : ndarray of int64, shape (n_words,)
        Number of distinct nearest words before each word.
    """

    number: int
    sizes: list[tuple[int, int]]
    distinct: NDArray[np.int64]


class Levels:
    """The levels of a trie on disk: one file per part, level and array.

    Parameters
    ----------
    n_words : int
        Size of the vocabulary.
    unigrams : ndarray of int64, shape (n_words,)
        Modified counts of the words.
    parts : list of Part
        Parts in the order of their words; empty for a unigram model.
    scratch : Scratch
        Folder of the files.
    """

    def __init__(
        self,
        n_words: int,
        unigrams: NDArray[np.int64],
        parts: list[Part],
        scratch: Scratch,
    ) -> None:
        self.n_words, self.unigrams = n_words, unigrams
        self._parts, self._scratch = parts, scratch
        sizes = np.array([part.sizes for part in parts], dtype=np.int64)
        sizes = sizes.sum(axis=0) if parts else np.empty((0, 2), dtype=np.int64)
        self.n_ngrams = np.append(n_words, sizes[:, 1])
        self.level_start = np.cumsum([0, 1, *sizes[:, 0]])
        for n, unit in (
            (self.n_ngrams.sum(), "n-grams"),
            (self.level_start[-1], "contexts"),
        ):
            if n > MAX_NGRAMS:
                raise ValueError(
                    f"{n} {unit}, more than {MAX_NGRAMS}; lower order, or count less "
                    "text."
                )

    @property
    def sizes(self) -> dict[str, int]:
        """Number of entries of each array of the trie."""
        n_contexts, n_ngrams = int(self.level_start[-1]), int(self.n_ngrams.sum())
        return {
            "level_start": len(self.level_start),
            "context_word": n_contexts,
            "child_start": n_contexts + 1,
            "start": n_contexts + 1,
            "words": n_ngrams,
        }

    def fill(self, arrays: dict[str, NDArray[Any]], counts: NDArray[np.int64]) -> None:
        """Fill the arrays of the trie from the files of the levels, and remove these.

        Parameters
        ----------
        arrays : dict of ndarray of int32
            Arrays of a ``ContextTrie`` by name, with the lengths of `sizes`.
        counts : ndarray of int64, shape (n_ngrams,)
            Filled with the modified counts of the n-grams.
        """
        scratch, level_start = self._scratch, self.level_start
        n_contexts = int(level_start[-1])
        first_ngram = np.cumsum([0, *self.n_ngrams])
        arrays["level_start"][:] = level_start
        # Every word is a follower and a child of the root.
        arrays["context_word"][0] = arrays["start"][0] = 0
        arrays["child_start"][0] = 1
        arrays["words"][: self.n_words] = np.arange(self.n_words, dtype=np.int32)
        counts[: self.n_words] = self.unigrams
        if self._parts:
            words = np.arange(self.n_words, dtype=np.int32)
            arrays["context_word"][1 : 1 + self.n_words] = words
        # The longest contexts have no children.
        childless = arrays["child_start"][level_start[-2] :]
        for first in range(0, len(childless), MAX_MERGED_ROWS):
            childless[first : first + MAX_MERGED_ROWS] = n_contexts
        arrays["start"][-1] = first_ngram[-1]
        scratch.stage("putting together", int(first_ngram[-1]))
        scratch.tell(self.n_words)
        outputs = arrays | {"counts": counts}
        for level in range(1, len(self.n_ngrams)):
            position = {name: int(level_start[level]) for name in ARRAYS}
            position["words"] = position["counts"] = int(first_ngram[level])
            next_context = 0
            next_ngram = 0
            for part in self._parts:
                shifts = {
                    "child_start": int(level_start[level + 1]) + next_context,
                    "start": int(first_ngram[level]) + next_ngram,
                }
                for name, dtype in ARRAYS.items():
                    position[name] = self._copy(
                        _name(part.number, level, name),
                        dtype.type(shifts.get(name, 0)),
                        outputs[name],
                        position[name],
                        dtype,
                    )
                n_own = part.sizes[level - 1]
                next_ngram += n_own[1]
                if level < len(part.sizes):
                    next_context += part.sizes[level][0]
                scratch.tell(n_own[1])

    def _copy(
        self, name: str, shift: Any, out: NDArray[Any], first: int, dtype: np.dtype[Any]
    ) -> int:
        """Copy a file into `out` from `first` on; return where it ends."""
        size = max(self._scratch.memory // 4 // dtype.itemsize, 16)
        with self._scratch.reading(name) as file:
            while len(part := np.fromfile(file, dtype, min(size, 1 << 20))):
                out[first : first + len(part)] = part + shift
                first += len(part)
                self._scratch.forget(out)
        self._scratch.remove(name)
        return first


def build_levels(packing: Packing, runs: Sequence[str], scratch: Scratch) -> Levels:
    """Merge runs, and write the levels of the trie of their n-grams.

    Parameters
    ----------
    packing : Packing
        Layout of the rows.
    runs : list of str
        Files of ``write_runs``. They are removed.
    scratch : Scratch
        Folder to which the levels are written.

    Returns
    -------
    levels : Levels

    Raises
    ------
    ValueError
        If there are more than 2**31 - 1 contexts or n-grams.
    """
    runs = _limit_runs(packing, list(runs), scratch)
    n_parts = min(scratch.threads.n, packing.n_words)
    parts: list[Part] = []
    with ExitStack() as stack:
        opened = [stack.enter_context(Run(scratch, run, packing)) for run in runs]
        bounds = _bounds(opened, packing.n_words, n_parts)
        n_rows = sum(run.n_rows for run in opened)
        scratch.stage("merging", n_rows)
        scratch.needs = n_rows * (packing.order - 1) * LEVEL_BYTES

        def build(_: int, number: int) -> None:
            parts.append(_build_part(packing, opened, number, bounds, scratch))

        scratch.each(build, range(n_parts))
    for run in runs:
        scratch.remove(run)
    parts.sort(key=lambda part: part.number)
    unigrams = np.stack([part.distinct for part in parts]).sum(axis=0)
    return Levels(packing.n_words, unigrams, parts, scratch)


def _name(part: int, level: int, array: str) -> str:
    return f"part.{part}.{level}.{array}"


def _limit_runs(packing: Packing, runs: list[str], scratch: Scratch) -> list[str]:
    """Merge runs until at most `MAX_RUNS` are left."""
    step = 0
    while len(runs) > MAX_RUNS:
        groups = [runs[i : i + MAX_RUNS] for i in range(0, len(runs), MAX_RUNS)]
        scratch.stage("merging runs", sum(map(scratch.size, runs)) // packing.row_bytes)
        merged = [f"merged.{step}.{i}" for i in range(len(groups))]

        def merge(_: int, i: int, groups: Any = groups, merged: Any = merged) -> None:
            with ExitStack() as stack:
                file = stack.enter_context(scratch.writing(merged[i]))
                opened = [
                    stack.enter_context(Run(scratch, run, packing)) for run in groups[i]
                ]
                ends = [(0, run.n_rows) for run in opened]
                for rows in _merged(opened, ends, scratch):
                    file.write(rows.data)
            for run in groups[i]:
                scratch.remove(run)

        scratch.each(merge, range(len(groups)))
        runs, step = merged, step + 1
    return runs


def _bounds(runs: list[Run], n_words: int, n_parts: int) -> list[int]:
    """Split the vocabulary into ranges of nearest words with similar row counts."""
    n_rows = sum(run.n_rows for run in runs)
    cuts = [
        bisect_left(
            range(n_words + 1),
            n_rows * i // n_parts,
            key=lambda word: sum(run.first_row(word) for run in runs),
        )
        for i in range(1, n_parts)
    ]
    return [0, *cuts, n_words]


def _merged(
    runs: list[Run], ends: list[tuple[int, int]], scratch: Scratch
) -> Iterator[NDArray[np.uint64]]:
    """Yield the merged rows of a range of each run, in a buffer that is reused."""
    active = [i for i, (first, last) in enumerate(ends) if first < last]
    width = runs[0].width
    n_bytes = scratch.memory // scratch.threads.n // 2 // (len(active) + 1)
    n_rows = min(max(n_bytes // (width * NUMBER_BYTES), 16), MAX_MERGED_ROWS)
    buffers = np.empty((len(active), n_rows, width), dtype=np.uint64)
    out = np.empty((n_rows, width), dtype=np.uint64)
    position, end = np.zeros((2, len(active)), dtype=np.int64)
    rest = [iter(range(*ends[i], n_rows)) for i in active]

    def refill(k: int) -> None:
        run = active[k]
        first = next(rest[k], None)
        if first is not None:
            last = min(first + n_rows, ends[run][1])
            position[k], end[k] = 0, last - first
            runs[run].read(first, buffers[k, : last - first])
            scratch.tell(last - first)

    for k in range(len(active)):
        refill(k)
    heap = np.arange(len(active), dtype=np.int32)
    _runs.make_heap(buffers, position, heap)
    n, n_live = 0, len(active)
    while n_live:
        n, n_live, exhausted = _runs.merge_runs(
            buffers, position, end, heap, n_live, out, n
        )
        if exhausted >= 0:
            refill(exhausted)
        elif n:
            yield out[:n]
            n = 0
    if n:
        yield out[:n]


def _build_part(
    packing: Packing,
    runs: list[Run],
    number: int,
    bounds: list[int],
    scratch: Scratch,
) -> Part:
    """Build the levels of one range of nearest words."""
    first, last = bounds[number : number + 2]
    ends = [(run.first_row(first), run.first_row(last)) for run in runs]
    levels = range(1, packing.order)
    fold = _fold.Fold(
        packing.order, packing.n_words, packing.boundary, packing.n_bits, first
    )
    with ExitStack() as stack:
        files: dict[tuple[int, str], BinaryIO] = {
            (level, name): stack.enter_context(
                scratch.writing(_name(number, level, name))
            )
            for level in levels
            for name in ARRAYS
        }

        def write() -> None:
            for level in levels:
                for name, array in fold.take(level).items():
                    files[level, name].write(array)

        for rows in _merged(runs, ends, scratch):
            fold.add(rows)
            write()
        fold.end(last)
        write()
    distinct = np.frombuffer(fold.distinct(), dtype=np.int32).astype(np.int64)
    return Part(number, [fold.sizes(level) for level in levels], distinct)
