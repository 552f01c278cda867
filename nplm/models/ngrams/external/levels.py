"""Merge sorted runs into the levels of a trie."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams import _fold, _runs
from nplm.models.ngrams.external.runs import NUMBER_BYTES, Packing, Run
from nplm.models.ngrams.external.scratch import Scratch
from nplm.models.ngrams.trie.context_trie import MAX_NGRAMS

__all__ = ["Levels", "Part", "build_levels", "name_in_part", "ranges_of_words"]

# More runs are merged in several steps, so that the buffer of each is large enough.
MAX_RUNS = 64
# Rows merged in one kernel call. Interrupts are handled between calls.
MAX_MERGED_ROWS = 1 << 16
# Arrays with an entry for each context, and with one for each n-gram: modified counts
# and those in the text, or probabilities and weights.
OF_CONTEXTS = {
    "context_word": "<i4",
    "child_start": "<i4",
    "start": "<i4",
    "bow": "<f4",
}
OF_NGRAMS = {"words": "<i4", "counts": "<i8", "raw": "<i8", "prob": "<f4"}
DTYPES = {name: np.dtype(kind) for name, kind in (OF_CONTEXTS | OF_NGRAMS).items()}
STRUCTURE = ("context_word", "child_start", "start", "words")


@dataclass(frozen=True)
class Part:
    """The levels of the contexts whose nearest word is in one range.

    Attributes
    ----------
    number : int
        Number of the part, used in its file names.
    sizes : list of (int, int)
        Numbers of contexts and n-grams of each level but the root.
    distinct : ndarray of int64, shape (n_words,), optional
        Number of distinct nearest words before each word.
    """

    number: int
    sizes: list[tuple[int, int]]
    distinct: NDArray[np.int64] | None = None


class Levels:
    """The levels of a trie on disk: one file per part, level and array.

    Parameters
    ----------
    n_words : int
        Size of the vocabulary.
    unigrams : dict of ndarray, shape (n_words,)
        Entries of the words in the arrays of n-grams, by name: their modified counts
        (``counts``) and those in the text (``raw``), or probabilities (``prob``).
    parts : list of Part
        Parts in the order of their words; empty for a unigram model.
    scratch : Scratch
        Folder of the files.
    """

    def __init__(
        self,
        n_words: int,
        unigrams: dict[str, NDArray[Any]],
        parts: list[Part],
        scratch: Scratch,
    ) -> None:
        self.n_words, self._unigrams = n_words, unigrams
        # Probabilities come with weights.
        weights = ["bow"] if "prob" in unigrams else []
        self._names = [*STRUCTURE, *unigrams, *weights]
        self._parts, self._scratch = parts, scratch
        # N-grams of a text have their suffixes, and a file's may lack some.
        self.is_whole = "counts" in unigrams
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

    def fill(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Fill the arrays of the trie from the files of the levels, and remove these.

        Parameters
        ----------
        arrays : dict of ndarray
            Arrays of a ``ContextTrie`` by name, with the lengths of `sizes`, and those
            of `unigrams`, with an entry for each n-gram. With probabilities there are
            weights, ``bow``, with an entry for each context.
        """
        scratch, level_start = self._scratch, self.level_start
        n_contexts = int(level_start[-1])
        first_ngram = np.cumsum([0, *self.n_ngrams])
        arrays["level_start"][:] = level_start
        # Every word is a follower and a child of the root.
        arrays["context_word"][0] = arrays["start"][0] = 0
        arrays["child_start"][0] = 1
        arrays["words"][: self.n_words] = np.arange(self.n_words, dtype=np.int32)
        for name, values in self._unigrams.items():
            arrays[name][: self.n_words] = values
        if "bow" in self._names:
            arrays["bow"][0] = 1
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
        for level in range(1, len(self.n_ngrams)):
            firsts = {True: int(level_start[level]), False: int(first_ngram[level])}
            position = {name: firsts[name in OF_CONTEXTS] for name in self._names}
            next_context = 0
            next_ngram = 0
            for part in self._parts:
                shifts = {
                    "child_start": int(level_start[level + 1]) + next_context,
                    "start": int(first_ngram[level]) + next_ngram,
                }
                for name in self._names:
                    position[name] = self._copy(
                        name_in_part(part.number, level, name),
                        DTYPES[name].type(shifts.get(name, 0)),
                        arrays[name],
                        position[name],
                        DTYPES[name],
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


def build_levels(
    packing: Packing,
    runs: Sequence[str],
    scratch: Scratch,
    raw: NDArray[np.int64] | None = None,
) -> Levels:
    """Merge runs, and write the levels of the trie of their n-grams.

    Parameters
    ----------
    packing : Packing
        Layout of the rows.
    runs : list of str
        Files of ``write_runs``. They are removed.
    scratch : Scratch
        Folder to which the levels are written.
    raw : ndarray of int64, shape (n_words,), optional
        Counts of the words in the text, if those of all n-grams are wanted, too.

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
        names = [*STRUCTURE, "counts", *(["raw"] if raw is not None else [])]
        # The maximum is that of n-grams that are alone in their contexts.
        needs = sum(DTYPES[name].itemsize for name in names)
        scratch.needs = n_rows * (packing.order - 1) * needs

        def build(_: int, number: int) -> None:
            parts.append(_build_part(packing, opened, number, bounds, names, scratch))

        scratch.each(build, range(n_parts))
    for run in runs:
        scratch.remove(run)
    parts.sort(key=lambda part: part.number)
    distinct = [part.distinct for part in parts if part.distinct is not None]
    unigrams = {"counts": np.stack(distinct).sum(axis=0)}
    if raw is not None:
        unigrams["raw"] = raw
    return Levels(packing.n_words, unigrams, parts, scratch)


def name_in_part(part: int, level: int, array: str) -> str:
    """Return the name of the file of an array."""
    return f"part.{part}.{level}.{array}"


def ranges_of_words(
    n_rows: NDArray[np.int64], max_rows: int
) -> Iterator[tuple[int, int]]:
    """Yield ranges of words, first and end, that have at most `max_rows` rows together.

    A word with more rows is alone.

    Examples
    --------
    >>> import numpy as np
    >>> list(ranges_of_words(np.array([2, 1, 9, 0, 3]), 3))
    [(0, 2), (2, 3), (3, 5)]
    """
    ends, first = np.cumsum(n_rows), 0
    while first < len(ends):
        before = ends[first - 1] if first else 0
        last = int(np.searchsorted(ends, before + max_rows, side="right"))
        last = max(last, first + 1)
        yield first, last
        first = last


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
    names: Sequence[str],
    scratch: Scratch,
) -> Part:
    """Build the levels of one range of nearest words."""
    first, last = bounds[number : number + 2]
    ends = [(run.first_row(first), run.first_row(last)) for run in runs]
    levels = range(1, packing.order)
    fold = _fold.Fold(
        packing.order,
        packing.n_words,
        packing.boundary,
        packing.n_bits,
        first,
        "raw" in names,
    )
    with ExitStack() as stack:
        files: dict[tuple[int, str], BinaryIO] = {
            (level, name): stack.enter_context(
                scratch.writing(name_in_part(number, level, name))
            )
            for level in levels
            for name in names
        }

        def write() -> None:
            for level in levels:
                taken = fold.take(level)
                for name in names:
                    files[level, name].write(taken[name])

        for rows in _merged(runs, ends, scratch):
            fold.add(rows)
            write()
        fold.end(last)
        write()
    distinct = np.frombuffer(fold.distinct(), dtype=np.int32).astype(np.int64)
    return Part(number, [fold.sizes(level) for level in levels], distinct)
