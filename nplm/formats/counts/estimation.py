"""Estimation of n-gram models in bounded memory, from text files to model files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from nplm.formats._model_files import check_writable
from nplm.formats._words import END, check_marks
from nplm.formats.arpa.arpa_lines import write_lines
from nplm.formats.arpa.arpa_on_disk import LinesOnDisk
from nplm.formats.binary.arrays import filling_arrays
from nplm.formats.binary.binary_files import ARRAYS, dtypes_of_trie
from nplm.formats.counts.count_tables import CountTables, Tables
from nplm.formats.counts.sources import Source, Texts, Words
from nplm.models.ngrams.external.estimation import (
    fill_table,
    fill_trie,
    slots_of_levels,
)
from nplm.models.ngrams.external.levels import Levels, build_levels
from nplm.models.ngrams.external.runs import Packing
from nplm.models.ngrams.external.scratch import Scratch
from nplm.models.ngrams.kneser_ney import KneserNeyLM
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.hash_table import SLOT_BYTES
from nplm.text.vocabulary import Vocabulary
from nplm.training.parallel.threads import Threads, n_threads

__all__ = ["Estimated", "estimate_arpa", "estimate_binary"]

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
LEAST_MEMORY = 1 << 10
# What Python and the libraries take.
INTERPRETER_BYTES = 190 << 20


@dataclass(frozen=True, eq=False)
class Estimated:
    """What an estimation found on its way.

    Attributes
    ----------
    n_lines, n_tokens : int
        Lines that have words, and their words.
    n_unknown : int
        Words that are not in the vocabulary.
    n_words : int
        Size of the vocabulary.
    n_ngrams : ndarray of int64, shape (order,)
        n-grams stored of each order.
    discounts : ndarray of float64, shape (order, 3)
        The discounts of n-grams seen once, twice, and more often.
    """

    n_lines: int
    n_tokens: int
    n_unknown: int
    n_words: int
    n_ngrams: NDArray[np.int64]
    discounts: NDArray[np.float64]


def estimate_binary(
    model: KneserNeyLM,
    texts: Iterable[str | os.PathLike[str] | BinaryIO] | CountTables,
    path: str | os.PathLike[str],
    *,
    vocabulary: Vocabulary | None = None,
    memory: int | str = "2G",
    folder: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    progress: Callable[[str, int, int], Any] | None = None,
) -> Estimated:
    r"""Estimate a Kneser-Ney model of texts that memory need not hold.

    n-grams are sorted and counted a part at a time, written to a temporary folder,
    merged, and the model is filled in where it is saved: the very file that
    `save_binary` writes of the model that ``model.fit_stream`` gives of the same lines,
    byte for byte.

    Parameters
    ----------
    model : KneserNeyLM
        What to estimate, and how; it stays as it is. Its ``order`` has to be given;
        ``n_words`` and ``boundary`` are those of the vocabulary. All n-grams are kept:
        ``min_counts`` of more than 1 are refused.
    texts : iterable of path-like or binary file
        UTF-8 text, files gzipped or not. A line is a sentence, and a word what stands
        between blanks; lines without words are left out. Or `CountTables`: n-grams
        that another program has counted.
    path : path-like
        The file to write; `load_binary` maps it. It takes its place when all is
        written.
    vocabulary : Vocabulary, optional
        How words are chosen; by default all of them. It is left as it is. Tables of
        counts have their words.
    memory : int or str, default="2G"
        Bytes to work in, or so many K, M or G, each 1,024 of the one before: 2G are
        2,147 MB. What the interpreter (190 MB) and the words take is taken off, and
        buffers get the rest, a quarter at least: so from 200 MB and 500
        bytes a word of the vocabulary on it is above the peak of a process that does
        nothing else (:doc:`/measured/estimation`).
    folder : path-like, optional
        Where the temporary folder is made; by default where temporary files usually
        are. It takes up to 4 bytes a word of the text and some 40 bytes an n-gram, and
        is gone at the end, after an error or an interrupt too. What a kill left of
        others there is removed first.
    n_jobs : int, optional
        Threads, as joblib counts them: None is 1, -1 all cores. No bit depends on it.
    progress : callable, optional
        Called as ``progress(stage, done, total)``, ``total`` 0 where it is unknown.

    Returns
    -------
    estimated : Estimated
        Sizes and discounts.

    Raises
    ------
    ValueError
        If a parameter is out of range, a text is not UTF-8, has no word or has the
        boundary in it (or ``<s>``, where that is ``</s>``), or there are more than
        2**31 - 1 n-grams.
    OSError
        If a file cannot be read or written. Where a disk is full the error names the
        folder.

    Warns
    -----
    UserWarning
        As `KneserNeyLM`.

    See Also
    --------
    estimate_arpa : The same into an ARPA file.
    nplm.KneserNeyLM.fit_stream : The same in memory, in about 100 bytes a word.

    Examples
    --------
    >>> import io, tempfile
    >>> from nplm import KneserNeyLM
    >>> from nplm.formats import estimate_binary, load_binary
    >>> text = io.BytesIO(b"a rose is a rose\na rose is it\n")
    >>> model = KneserNeyLM(3, discount_fallback=(0.5, 1, 1.5))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/roses.nplm"
    ...     estimated = estimate_binary(model, [text], path, memory="1M")
    ...     model, words = load_binary(path)
    >>> estimated.n_tokens, estimated.n_ngrams
    (9, array([6, 7, 7]))
    >>> words
    ['</s>', '<unk>', 'a', 'rose', 'is', 'it']
    """
    check_writable(path)
    work = _Work(_fill_binary, os.fspath(path), memory, folder, n_jobs, progress)
    return _estimated(model, texts, vocabulary, work)


def estimate_arpa(
    model: KneserNeyLM,
    texts: Iterable[str | os.PathLike[str] | BinaryIO] | CountTables,
    path: str | os.PathLike[str],
    *,
    vocabulary: Vocabulary | None = None,
    memory: int | str = "2G",
    folder: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    progress: Callable[[str, int, int], Any] | None = None,
) -> Estimated:
    r"""Estimate a model as `estimate_binary` does, into an ARPA file.

    Neither the model nor the file is ever whole in memory. The file is the one that
    `write_arpa` writes of ``model.fit_stream`` of the same lines, byte for byte.

    Parameters
    ----------
    model, texts, vocabulary, memory, folder, n_jobs, progress
        As in `estimate_binary`. The temporary folder has the model too.
    path : path-like
        The file to write; packed if its name ends in ``.gz`` or ``.xz``. It takes its
        place when all is written.

    Returns
    -------
    estimated : Estimated
        Sizes and discounts.

    Raises
    ------
    ValueError, OSError
        As `estimate_binary`; and if ``<s>`` or ``</s>`` is a word beside the boundary,
        which is written so.

    Warns
    -----
    UserWarning
        As `KneserNeyLM`.

    Examples
    --------
    >>> import io, tempfile
    >>> from nplm import KneserNeyLM
    >>> from nplm.formats import estimate_arpa, read_arpa
    >>> text = io.BytesIO(b"a rose is a rose\na rose is it\n")
    >>> model = KneserNeyLM(3, discount_fallback=(0.5, 1, 1.5))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/roses.arpa.gz"
    ...     estimated = estimate_arpa(model, [text], path, memory="1M")
    ...     model, words = read_arpa(path)
    >>> estimated.n_ngrams, model.n_ngrams_
    (array([6, 7, 7]), array([6, 7, 7]))
    """
    check_writable(path)
    work = _Work(_write_arpa, os.fspath(path), memory, folder, n_jobs, progress)
    return _estimated(model, texts, vocabulary, work)


class _Work(NamedTuple):
    """Where an estimation goes, and how it works."""

    fill: Callable[[KneserNeyLM, Levels, str, Words, Scratch], NDArray[np.float64]]
    path: str
    memory: int | str
    folder: str | os.PathLike[str] | None
    n_jobs: int | None
    progress: Callable[[str, int, int], Any] | None


def _estimated(
    model: KneserNeyLM,
    texts: Iterable[str | os.PathLike[str] | BinaryIO] | CountTables,
    vocabulary: Vocabulary | None,
    work: _Work,
) -> Estimated:
    source = _source(texts, vocabulary, work.path)
    model = _checked(model)
    n_bytes, threads = memory_in_bytes(work.memory), Threads(n_threads(work.n_jobs))
    with Scratch(work.folder, n_bytes, threads, work.progress) as scratch:
        words = source.words(scratch)
        _check_sizes(model, words.n_words, words.boundary)
        # Of a word: its text, ids and counts, and in each thread a number for each
        # order (see ``_fold``) and the probability one order below.
        a_word = 40 + threads.n * (8 * model.order_ + 8)
        taken = INTERPRETER_BYTES + a_word * source.n_known
        scratch.memory = max(n_bytes - taken, n_bytes // 4)
        packing = Packing(model.order_, words.n_words, words.boundary)
        runs = source.runs(packing, scratch)
        counts = source.counts
        if model.order_ > 1:
            levels = build_levels(packing, runs, scratch)
        else:
            levels = Levels(words.n_words, counts, [], scratch)
        discounts = work.fill(model, levels, work.path, words, scratch)
        n_lines = int(counts[words.boundary])
        return Estimated(
            n_lines=n_lines,
            n_tokens=int(counts.sum()) - n_lines,
            n_unknown=int(counts[words.unknown]) if words.unknown >= 0 else 0,
            n_words=words.n_words,
            n_ngrams=levels.n_ngrams,
            discounts=discounts,
        )


def _source(texts: Any, vocabulary: Vocabulary | None, path: str) -> Source:
    if isinstance(texts, CountTables):
        if vocabulary is not None:
            raise ValueError(
                "vocabulary is given, but tables of counts have their words: leave it "
                "out."
            )
        return Tables(texts)
    if isinstance(texts, (str, bytes, os.PathLike)) or hasattr(texts, "read"):
        raise TypeError(
            f"texts is one {type(texts).__name__}: give a list of it, for there may be "
            "several."
        )
    vocabulary = Vocabulary() if vocabulary is None else clone(vocabulary)
    vocabulary._validate_params()
    if vocabulary.boundary is None:
        raise ValueError(
            "the vocabulary has boundary=None, but lines need a mark of their ends: "
            "give it one, '</s>' for example."
        )
    return Texts(_others(texts, path), vocabulary)


def _others(texts: Iterable[Any], path: str) -> Iterator[Any]:
    """Give the texts; the model must not take the place of one of them."""
    for text in texts:
        is_name = isinstance(text, (str, bytes, os.PathLike))
        both = is_name and os.path.exists(text) and os.path.exists(path)
        if both and os.path.samefile(text, path):
            raise ValueError(
                f"path={path!r} is one of the texts, whose place the model would "
                "take: give it another name."
            )
        yield text


def memory_in_bytes(memory: int | str) -> int:
    """Return bytes of a number or of text such as "2G" or "500M", or raise."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) *([KMGT]?)B?", str(memory).strip().upper())
    n_bytes = int(float(found[1]) * UNITS[found[2]]) if found else 0
    if isinstance(memory, bool) or n_bytes < LEAST_MEMORY:
        raise ValueError(
            f"memory={memory!r} must be a number of bytes, {LEAST_MEMORY} or more, or "
            "such as '500M' or '2G'."
        )
    return n_bytes


def _checked(model: KneserNeyLM) -> KneserNeyLM:
    """Return a copy of a model that says what to estimate, or raise."""
    if not isinstance(model, KneserNeyLM):
        raise TypeError(f"model must be a KneserNeyLM, got {type(model).__name__}.")
    model = clone(model)
    model._validate_params()
    if model.order is None:
        raise ValueError(
            "order is None, but a text has no columns to tell it: set order, "
            "KneserNeyLM(5) for example."
        )
    model.order_ = int(model.order)
    model._check_fallback()
    if (model._check_min_counts() > 1).any():
        raise ValueError(
            f"min_counts={model.min_counts!r}: n-grams are not cut in bounded memory; "
            "leave it out, and prune the model afterwards if it is too large."
        )
    return model


def _check_sizes(model: KneserNeyLM, n_words: int, boundary: int) -> None:
    """Refuse other sizes than those of the vocabulary."""
    for name, own in (("n_words", n_words), ("boundary", boundary)):
        given = getattr(model, name)
        if given is not None and given != own:
            raise ValueError(
                f"{name}={given!r} of the model, but {own} of the vocabulary: leave it "
                "out."
            )


def _fill_binary(
    model: KneserNeyLM, levels: Levels, path: str, words: Words, scratch: Scratch
) -> NDArray[np.float64]:
    """Write the mapped file; returns the discounts."""
    slot_start = slots_of_levels(levels)
    n_slots = int(slot_start[-1]) if len(slot_start) else 0
    sizes = _sizes_of_trie(levels) | {"vocabulary": len(words.text)}
    sizes |= {"slots": n_slots * SLOT_BYTES, "slot_start": len(slot_start)}
    sizes["closed"] = int(n_slots > 0)
    dtypes = dtypes_of_trie(levels.n_words)
    header = {"n_words": levels.n_words, "boundary": words.boundary}
    with filling_arrays(
        path, header, {name: (dtype, sizes[name]) for name, dtype in dtypes.items()}
    ) as arrays:
        arrays["vocabulary"][:] = words.text
        arrays["slot_start"][:] = slot_start
        trie, discounts = _filled_trie(model, levels, arrays, scratch)
        if n_slots:
            closed = fill_table(trie, arrays["slots"], slot_start, scratch)
            arrays["closed"][:] = closed
    return discounts


def _write_arpa(
    model: KneserNeyLM, levels: Levels, path: str, words: Words, scratch: Scratch
) -> NDArray[np.float64]:
    """Write the ARPA file; returns the discounts."""
    spelled = words.spelled()
    check_marks(spelled, words.boundary)
    spelled[words.boundary] = END
    dtypes = dtypes_of_trie(levels.n_words)
    arrays = {
        name: scratch.array(f"model.{name}", dtypes[name], size)
        for name, size in _sizes_of_trie(levels).items()
    }
    trie, discounts = _filled_trie(model, levels, arrays, scratch)
    write_lines(path, LinesOnDisk(trie, spelled, words.boundary, scratch))
    return discounts


def _sizes_of_trie(levels: Levels) -> dict[str, int]:
    own = levels.sizes
    return own | {"prob": own["words"], "bow": own["context_word"]}


def _filled_trie(
    model: KneserNeyLM,
    levels: Levels,
    arrays: dict[str, NDArray[Any]],
    scratch: Scratch,
) -> tuple[BackoffTrie, NDArray[np.float64]]:
    discounts = fill_trie(
        levels,
        arrays,
        scratch,
        interpolate=model.interpolate,
        min_counts=model._check_min_counts(),
        kind=model.discounts,
        fallback=model._check_fallback(),
    )
    own = {name: arrays[name] for name in ARRAYS}
    return BackoffTrie(levels.n_words, **own), discounts
