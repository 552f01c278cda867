"""Estimate n-gram models in bounded memory, from text files to model files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from nplm.base.files.tensors import filling_arrays
from nplm.formats._model_files import check_writable
from nplm.formats._words import END, check_marks
from nplm.formats.arpa.arpa_lines import write_lines
from nplm.formats.arpa.arpa_on_disk import LinesOnDisk
from nplm.formats.binary.binary_files import ARRAYS, dtypes_of_trie, metadata_of
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
from nplm.models.training.parallel.threads import Threads, n_threads
from nplm.text.vocabulary import Vocabulary

__all__ = ["Estimated", "estimate_arpa", "estimate_binary"]

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
MIN_MEMORY_BYTES = 1 << 10
# Memory of Python and the libraries.
INTERPRETER_BYTES = 190 << 20


@dataclass(frozen=True, eq=False)
class Estimated:
    """Sizes and discounts of an estimated model.

    Attributes
    ----------
    n_lines, n_tokens : int
        Number of sentences, and of words in the text.
    n_unknown : int
        Number of words in the text that are not in the vocabulary.
    n_words : int
        Size of the vocabulary.
    n_ngrams : ndarray of int64, shape (order,)
        Number of stored n-grams of each order.
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
    blank_lines: bool = False,
) -> Estimated:
    r"""Estimate a Kneser-Ney model from texts that do not fit in memory.

    N-grams are sorted and counted in parts, written to a temporary folder and merged.
    The model is computed inside the mapped file. The file has the same bytes as one
    that `save_binary` writes after ``model.fit_stream`` on the same lines.

    Parameters
    ----------
    model : KneserNeyLM
        The parameters of the model; it is not modified. ``order`` is required;
        ``n_words`` and ``boundary`` are those of the vocabulary. All n-grams are kept:
        ``min_counts`` above 1 are refused.
    texts : iterable of path-like or binary file
        UTF-8 text, plain or compressed. Lines are sentences. Words are separated by
        ASCII blanks, as by lmplz and SRILM. Or `CountTables`: n-grams counted
        by another program.
    path : path-like
        The file to write, which `load_binary` maps. An existing file is replaced once
        the new one is complete.
    vocabulary : Vocabulary, optional
        Chooses the words; by default all words are kept. It is not modified. Not used
        with tables of counts, which have their own words.
    memory : int or str, default="2G"
        Memory in bytes, or with a unit K, M or G, powers of 1,024: 2G is 2,147 MB.
        Buffers get what remains after the interpreter (190 MB) and the words, and at
        least a quarter. With at least 200 MB plus 500 bytes per word of the
        vocabulary, it bounds the peak of a process that does nothing else
        (:doc:`/measured/estimation`).
    folder : path-like, optional
        Where to make the temporary folder; by default where temporary files usually
        are. It takes up to 4 bytes per word of the text and about 40 bytes per n-gram.
        It is removed at the end, also after an error or an interrupt. Temporary
        folders of killed estimations are removed first.
    n_jobs : int, optional
        Number of threads, as in joblib: None is 1, -1 all cores. The result does not
        depend on it.
    progress : callable, optional
        Called as ``progress(stage, done, total)``; ``total`` is 0 if it is unknown.
    blank_lines : bool, default=False
        Whether a line without words is a sentence, as it is for lmplz. By default such
        lines are left out, as by SRILM.

    Returns
    -------
    estimated : Estimated
        Sizes and discounts.

    Raises
    ------
    ValueError
        If a parameter is out of range, a text is not UTF-8, has no word or contains
        the boundary (or ``<s>``, if the boundary is ``</s>``), or there are more than
        2**31 - 1 n-grams.
    OSError
        If a file cannot be read or written. If a disk is full, the error names the
        folder.

    Warns
    -----
    UserWarning
        As `KneserNeyLM`.

    See Also
    --------
    estimate_arpa : Estimate a model into an ARPA file.
    nplm.KneserNeyLM.fit_stream : Fit in memory, with about 100 bytes per word.

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
    return _estimated(model, texts, vocabulary, blank_lines, work)


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
    blank_lines: bool = False,
) -> Estimated:
    r"""Estimate a Kneser-Ney model in bounded memory, into an ARPA file.

    Memory never holds all of the model or the file. The file has the same bytes as one
    that `write_arpa` writes after ``model.fit_stream`` on the same lines.

    Parameters
    ----------
    model, texts, vocabulary, memory, folder, n_jobs, progress, blank_lines
        As in `estimate_binary`. The temporary folder also holds the model.
    path : path-like
        The file to write; compressed if its name ends in ``.gz`` or ``.xz``. An
        existing file is replaced once the new one is complete.

    Returns
    -------
    estimated : Estimated
        Sizes and discounts.

    Raises
    ------
    ValueError, OSError
        As in `estimate_binary`. Also if ``<s>`` or ``</s>`` is a word other than the
        boundary, which is written as these marks.

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
    return _estimated(model, texts, vocabulary, blank_lines, work)


class _Work(NamedTuple):
    """Output and resources of an estimation."""

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
    blank_lines: bool,
    work: _Work,
) -> Estimated:
    source = _source(texts, vocabulary, blank_lines, work.path)
    model = _checked(model)
    n_bytes, threads = memory_in_bytes(work.memory), Threads(n_threads(work.n_jobs))
    with Scratch(work.folder, n_bytes, threads, work.progress) as scratch:
        words = source.words(scratch)
        _check_sizes(model, words.n_words, words.boundary)
        # A word takes its text, ids and counts, and in each thread a number for each
        # order (see ``_fold``) and the probability of one order below.
        bytes_per_word = 40 + threads.n * (8 * model.order_ + 8)
        used = INTERPRETER_BYTES + bytes_per_word * source.n_known
        scratch.memory = max(n_bytes - used, n_bytes // 4)
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


def _source(
    texts: Any, vocabulary: Vocabulary | None, blank_lines: bool, path: str
) -> Source:
    if isinstance(texts, CountTables):
        if vocabulary is not None:
            raise ValueError(
                "vocabulary is given, but tables of counts have their own words: leave "
                "it out."
            )
        return Tables(texts)
    if isinstance(texts, (str, bytes, os.PathLike)) or hasattr(texts, "read"):
        raise TypeError(
            f"texts is a single {type(texts).__name__}: pass a list, [texts], as there "
            "may be several."
        )
    vocabulary = Vocabulary() if vocabulary is None else clone(vocabulary)
    vocabulary._validate_params()
    if vocabulary.boundary is None:
        raise ValueError(
            "the vocabulary has boundary=None, but estimation needs a word that ends "
            "lines: set boundary='</s>', for example."
        )
    return Texts(_not_replaced(texts, path), vocabulary, blank_lines)


def _not_replaced(texts: Iterable[Any], path: str) -> Iterator[Any]:
    """Yield the texts; raise if the model would replace one of them."""
    for text in texts:
        is_name = isinstance(text, (str, bytes, os.PathLike))
        both = is_name and os.path.exists(text) and os.path.exists(path)
        if both and os.path.samefile(text, path):
            raise ValueError(
                f"path={path!r} is one of the texts, which the model would replace: "
                "choose another path."
            )
        yield text


def memory_in_bytes(memory: int | str) -> int:
    """Return the bytes of a number or of text such as "2G" or "500M", or raise."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) *([KMGT]?)B?", str(memory).strip().upper())
    n_bytes = int(float(found[1]) * UNITS[found[2]]) if found else 0
    if isinstance(memory, bool) or n_bytes < MIN_MEMORY_BYTES:
        raise ValueError(
            f"memory={memory!r} must be a number of bytes, at least "
            f"{MIN_MEMORY_BYTES}, or a size such as '500M' or '2G'."
        )
    return n_bytes


def _checked(model: KneserNeyLM) -> KneserNeyLM:
    """Return a validated copy of the model, with ``order_``, or raise."""
    if not isinstance(model, KneserNeyLM):
        raise TypeError(f"model must be a KneserNeyLM, got {type(model).__name__}.")
    model = clone(model)
    model._validate_params()
    if model.order is None:
        raise ValueError(
            "order is None, but a text has no columns to infer it from: set order, "
            "KneserNeyLM(5) for example."
        )
    model.order_ = int(model.order)
    model._check_fallback()
    if (model._check_min_counts() > 1).any():
        raise ValueError(
            f"min_counts={model.min_counts!r} is not supported in bounded memory; "
            "leave it out, and prune the model afterwards if it is too large."
        )
    return model


def _check_sizes(model: KneserNeyLM, n_words: int, boundary: int) -> None:
    """Raise if the model's parameters differ from those of the vocabulary."""
    for name, own in (("n_words", n_words), ("boundary", boundary)):
        given = getattr(model, name)
        if given is not None and given != own:
            raise ValueError(
                f"the model has {name}={given!r}, but the vocabulary has {own}: leave "
                "it out of the model."
            )


def _fill_binary(
    model: KneserNeyLM, levels: Levels, path: str, words: Words, scratch: Scratch
) -> NDArray[np.float64]:
    """Write the mapped file; return the discounts."""
    slot_start = slots_of_levels(levels)
    n_slots = int(slot_start[-1]) if len(slot_start) else 0
    sizes = _sizes_of_trie(levels) | {"vocabulary": len(words.text)}
    sizes |= {"slots": n_slots * SLOT_BYTES, "slot_start": len(slot_start)}
    sizes["closed"] = int(n_slots > 0)
    dtypes = dtypes_of_trie(levels.n_words)
    header = {"n_words": levels.n_words, "boundary": words.boundary}
    typed = {name: (dtype, sizes[name]) for name, dtype in dtypes.items()}
    with filling_arrays(path, typed, metadata_of(header)) as arrays:
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
    """Write the ARPA file; return the discounts."""
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
