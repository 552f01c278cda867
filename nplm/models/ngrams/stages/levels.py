"""Count n-grams: merge sorted runs of them into the arrays of a trie."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams import _fold, _runs
from nplm.base.array_types import Counts
from nplm.base.blocks import blocks
from nplm.base.exceptions import parameter_error
from nplm.models.ngrams.stages.runs import NUMBER_BYTES, Packing, Run, Source
from nplm.models.ngrams.trie.work import MAX_NGRAMS, Work

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

    - `sizes` (order - 1, 2): numbers of contexts and n-grams of each level but the root
    - `distinct` (n_words,): number of distinct nearest words before each word
    """

    number: int
    sizes: Counts
    distinct: Counts | None = None


def join_parts(
    n_words: int, unigrams: dict[str, NDArray[Any]], parts: list[Part], work: Work
) -> dict[str, NDArray[Any]]:
    """Make the arrays of a trie of the files of its parts, and remove these.

    `unigrams` (n_words,) are entries of the words in the arrays of n-grams, by name:
    their modified counts (``counts``) and those in the text (``raw``), or probabilities
    (``prob``), with which there are weights (``bow``) of contexts.
    """
    sizes = np.empty((0, 2), dtype=np.int64)
    if parts:
        sizes = np.sum([part.sizes for part in parts], axis=0)
    first_ngram = np.cumsum([0, n_words, *sizes[:, 1]])
    level_start = np.cumsum([0, 1, *sizes[:, 0]])
    n_ngrams, n_contexts = int(first_ngram[-1]), int(level_start[-1])
    for n, unit in ((n_ngrams, "n-grams"), (n_contexts, "contexts")):
        if n > MAX_NGRAMS:
            message = "{0} {1}, more than {2}; lower {order}, or count less text."
            raise parameter_error(message, n, unit, MAX_NGRAMS)
    lengths = {"context_word": n_contexts, "child_start": n_contexts + 1}
    lengths |= {"start": n_contexts + 1, "words": n_ngrams}
    lengths |= dict.fromkeys(unigrams, n_ngrams)
    if "prob" in unigrams:
        lengths["bow"] = n_contexts
    arrays = {name: work.array(DTYPES[name], n) for name, n in lengths.items()}
    # Every word is a follower and a child of the root.
    every_word = np.arange(n_words, dtype=np.int32)
    arrays["child_start"][0] = 1
    for name, values in (unigrams | {"words": every_word}).items():
        arrays[name][:n_words] = values
    if "bow" in arrays:
        arrays["bow"][0] = 1
    if parts:
        arrays["context_word"][1 : 1 + n_words] = every_word
    # The longest contexts have no children.
    childless = arrays["child_start"][level_start[-2] :]
    for rows in blocks(len(childless), MAX_MERGED_ROWS):
        childless[rows] = n_contexts
    arrays["start"][-1] = n_ngrams
    work.stage("putting together", n_ngrams)
    work.advance(n_words)
    for level in range(1, len(level_start) - 1):
        position = {
            name: int((level_start if name in OF_CONTEXTS else first_ngram)[level])
            for name in arrays
        }
        next_context, next_ngram = int(level_start[level + 1]), int(first_ngram[level])
        for part in parts:
            shifts = {"child_start": next_context, "start": next_ngram}
            for name, out in arrays.items():
                file = name_in_part(part.number, level, name)
                size = min(max(work.memory // 4 // out.itemsize, 16), 1 << 20)
                for values in work.read(file, out.dtype, size):
                    at = slice(position[name], position[name] + len(values))
                    if name in shifts:
                        values = values + out.dtype.type(shifts[name])
                    work.put(out[at], values)
                    position[name] = at.stop
                    work.release_pages(out)
                work.remove(file)
            n_own = int(part.sizes[level - 1, 1])
            next_ngram += n_own
            if level < len(part.sizes):
                next_context += int(part.sizes[level, 0])
            work.advance(n_own)
    return {"level_start": level_start.astype(np.int32)} | arrays


def counted(
    source: Source, packing: Packing, work: Work, *wanted: str
) -> dict[str, NDArray[Any]]:
    """Sort and count the n-grams of a source: return the arrays of their trie.

    Modified counts (``counts``), those in the text (``raw``), or both are `wanted`.
    """
    runs: Sequence[Run]
    runs, counts = source.runs(packing, work)
    if not packing.marks:
        counts = counts.copy()
        counts[packing.boundary] = 0
    if packing.order == 1:
        of_words = dict.fromkeys(wanted, counts)
        return join_parts(packing.n_words, of_words, [], work)
    runs = _limit_runs(packing, runs, work)
    n_parts = min(work.n_threads, packing.n_words)
    parts: list[Part] = []
    bounds = _bounds(runs, packing.n_words, n_parts)
    n_rows = sum(run.n_rows for run in runs)
    # The maximum is that of n-grams that are alone in their contexts.
    names = (*STRUCTURE, *wanted)
    n_bytes = n_rows * (packing.order - 1)
    n_bytes *= sum(DTYPES[name].itemsize for name in names)
    work.stage("merging", n_rows, n_bytes)

    def build(_: int, number: int) -> None:
        parts.append(_build_part(packing, runs, number, bounds, names, work))

    work.each(build, range(n_parts))
    work.remove(*(run.file for run in runs))
    parts.sort(key=lambda part: part.number)
    distinct = [part.distinct for part in parts if part.distinct is not None]
    n_before = np.stack(distinct).sum(axis=0)
    if not (packing.marks or n_before.any()):  # all lines have one word
        n_before = counts
    of_words = {"counts": n_before, "raw": counts}
    of_words = {name: of_words[name] for name in wanted}
    return join_parts(packing.n_words, of_words, parts, work)


def name_in_part(part: int, level: int, array: str) -> str:
    """Return the name of the file of an array."""
    return f"part.{part}.{level}.{array}"


def ranges_of_words(n_rows: Counts, max_rows: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of words with at most `max_rows` rows; a word with more is alone."""
    ends, first = np.cumsum(n_rows), 0
    while first < len(ends):
        before = ends[first - 1] if first else 0
        last = int(np.searchsorted(ends, before + max_rows, side="right"))
        last = max(last, first + 1)
        yield first, last
        first = last


def _limit_runs(packing: Packing, runs: Sequence[Run], work: Work) -> Sequence[Run]:
    """Merge runs until at most `MAX_RUNS` are left."""
    step = 0
    while len(runs) > MAX_RUNS:
        groups = [runs[i : i + MAX_RUNS] for i in range(0, len(runs), MAX_RUNS)]
        work.stage("merging runs", sum(run.n_rows for run in runs))
        longer: list[Run] = []

        def merge(
            thread: int, group: Sequence[Run], step: int = step, out: Any = longer
        ) -> None:
            run = Run(work, f"merged.{step}.{thread}", packing)
            for rows in _merged(group, [(0, other.n_rows) for other in group], work):
                run.append(rows)
            out.append(run)

        work.each(merge, groups)
        work.remove(*(run.file for run in runs))
        runs, step = longer, step + 1
    return runs


def _bounds(runs: Sequence[Run], n_words: int, n_parts: int) -> list[int]:
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
    runs: Sequence[Run], ends: list[tuple[int, int]], work: Work
) -> Iterator[NDArray[np.uint64]]:
    """Yield the merged rows of a range of each run, perhaps in a buffer reused."""
    active = [i for i, (first, last) in enumerate(ends) if first < last]
    width = runs[0].width
    n_bytes = work.memory // work.n_threads // 2 // (len(active) + 1)
    n_rows = min(max(n_bytes // (width * NUMBER_BYTES), 16), MAX_MERGED_ROWS)
    if len(active) == 1 and runs[active[0]].is_distinct:
        run, (first, last) = runs[active[0]], ends[active[0]]
        for part in blocks(last - first, n_rows):
            yield run.rows(first + part.start, first + part.stop)
            work.advance(part.stop - part.start)
        return
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
            buffers[k, : last - first] = runs[run].rows(first, last)
            work.advance(last - first)

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
    runs: Sequence[Run],
    number: int,
    bounds: list[int],
    names: Sequence[str],
    work: Work,
) -> Part:
    """Build the levels of one range of nearest words."""
    first, last = bounds[number : number + 2]
    ends = [(run.first_row(first), run.first_row(last)) for run in runs]
    levels = range(1, packing.order)
    numbers = packing.order, packing.n_words, packing.boundary, packing.n_bits, first
    fold = _fold.Fold(*numbers, "raw" in names, packing.marks)

    def write() -> None:
        for level in levels:
            taken = fold.take(level)
            for name in names:
                work.append(name_in_part(number, level, name), taken[name])

    for rows in _merged(runs, ends, work):
        fold.add(rows)
        write()
    fold.end(last)
    write()
    distinct = np.frombuffer(fold.distinct(), dtype=np.int32).astype(np.int64)
    sizes = np.array([fold.sizes(level) for level in levels], dtype=np.int64)
    return Part(number, sizes, distinct)
