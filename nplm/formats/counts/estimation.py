"""Count n-grams and estimate models in bounded memory, from text files to files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np

from nplm.base.array_types import Counts, Floats
from nplm.base.files.atomic_files import check_writable
from nplm.formats._words import StoredWords, check_marks
from nplm.formats.counts.count_files import CountedFiles, CountFiles, write_lines
from nplm.formats.counts.count_tables import CountTables, Tables
from nplm.formats.counts.sources import Texts, TextSource
from nplm.formats.ngrams_file import NgramsFile
from nplm.models.ngrams.stages.counts import NgramCounts
from nplm.models.ngrams.stages.runs import Packing
from nplm.models.ngrams.stages.scratch import Scratch
from nplm.models.ngrams.stages.smoothing import Smoothing, estimated
from nplm.text.words.known_words import WordChoice, symbols_of
from nplm.text.words.splitting import BEGIN, END, Splitter, finder_of

if TYPE_CHECKING:
    from nplm.models.ngrams.kneser_ney import KneserNeyLM
    from nplm.text.tokenizer import Tokenizer
    from nplm.text.vocabulary import Vocabulary

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
    n_ngrams: Counts
    discounts: Floats


def estimate_binary(
    model: KneserNeyLM,
    texts: Iterable[str | os.PathLike[str] | BinaryIO] | CountTables | CountFiles,
    path: str | os.PathLike[str],
    *,
    vocabulary: Vocabulary | None = None,
    memory: int | str = "2G",
    folder: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    progress: Callable[[str, int, int], object] | None = None,
    blank_lines: bool = False,
    tokenizer: Tokenizer | None = None,
    bits: int | None = None,
) -> Estimated:
    r"""Estimate a Kneser-Ney model from texts that do not fit in memory.

    N-grams are sorted and counted in parts, written to temporary files and merged.
    The model is computed in mapped arrays. The file has the same bytes as one
    that `save_binary` writes after ``model.fit_stream`` on the same lines.

    Parameters
    ----------
    model : KneserNeyLM
        The parameters of the model; it is not modified. ``order`` is required;
        ``n_words`` and ``boundary`` are those of the vocabulary.
    texts : iterable of path-like or binary file
        UTF-8 text, plain or compressed. Lines are sentences. Words are separated by
        ASCII blanks, as by lmplz and SRILM. Or `CountTables`: n-grams counted
        by another program. Or `CountFiles`: counts in SRILM's format.
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
        Folder of the temporary files; by default where these usually are. They take up
        to 4 bytes per word of the text and about 50 bytes per n-gram. They have no
        names: the system removes them when the process ends, also if it is killed.
    n_jobs : int, optional
        Number of threads; -1 is the number of cores. None is 1, or the number of
        ``joblib.parallel_config("threading", n_jobs=...)``. The result does not depend
        on it.
    progress : callable, optional
        Called as ``progress(stage, done, total)``; ``total`` is 0 if it is unknown.
    blank_lines : bool, default=False
        Whether a line without words is a sentence, as it is for lmplz. By default such
        lines are left out, as by SRILM.
    tokenizer : Tokenizer, optional
        Splits lines into words, by default at ASCII blanks. The file of
        `estimate_binary` has it, and :func:`nplm.load` gives it to the `TextLM`; its
        pattern must be a string then, not a compiled one.
    bits : int, optional
        Write a quantized file, as ``save_binary(bits=)`` does: 3 to 12.

    Returns
    -------
    estimated : Estimated
        Sizes and discounts.

    Raises
    ------
    ValueError
        If a parameter is out of range, a text is not UTF-8, has no word or has the
        boundary inside of a line, or there are more than 2**31 - 1 n-grams. At the end
        of a line the boundary stands for it, and ``<s>`` at its beginning if the
        boundary is ``</s>``.
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
    >>> import io
    >>> from nplm import KneserNeyLM
    >>> from nplm.formats import estimate_binary, load_binary
    >>> text = io.BytesIO(b"a rose is a rose\na rose is it\n")
    >>> model = KneserNeyLM(3, discount_fallback=(0.5, 1, 1.5))
    >>> estimated = estimate_binary(model, [text], "roses.nplm", memory="1M")
    >>> model, words = load_binary("roses.nplm")
    >>> estimated.n_tokens, estimated.n_ngrams
    (9, array([6, 7, 7]))
    >>> words
    ['</s>', '<unk>', 'a', 'rose', 'is', 'it']
    """
    output = NgramsFile(path, "binary", bits)
    inputs = texts, vocabulary, tokenizer, blank_lines
    return _estimated(model, output, inputs, folder, memory, n_jobs, progress)


def estimate_arpa(
    model: KneserNeyLM,
    texts: Iterable[str | os.PathLike[str] | BinaryIO] | CountTables | CountFiles,
    path: str | os.PathLike[str],
    *,
    vocabulary: Vocabulary | None = None,
    memory: int | str = "2G",
    folder: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    progress: Callable[[str, int, int], object] | None = None,
    blank_lines: bool = False,
    tokenizer: Tokenizer | None = None,
) -> Estimated:
    r"""Estimate a Kneser-Ney model in bounded memory, into an ARPA file.

    Memory never holds all of the model or the file. The file has the same bytes as one
    that `write_arpa` writes after ``model.fit_stream`` on the same lines.

    Parameters
    ----------
    model, texts, vocabulary, memory, folder, n_jobs, progress, blank_lines, tokenizer
        As in `estimate_binary`. Temporary files also hold the model.
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
    >>> import io
    >>> from nplm import KneserNeyLM
    >>> from nplm.formats import estimate_arpa, read_arpa
    >>> text = io.BytesIO(b"a rose is a rose\na rose is it\n")
    >>> model = KneserNeyLM(3, discount_fallback=(0.5, 1, 1.5))
    >>> estimated = estimate_arpa(model, [text], "roses.arpa.gz", memory="1M")
    >>> model, words = read_arpa("roses.arpa.gz")
    >>> estimated.n_ngrams, model.n_ngrams_
    (array([6, 7, 7]), array([6, 7, 7]))
    """
    output = NgramsFile(path, "arpa")
    inputs = texts, vocabulary, tokenizer, blank_lines
    return _estimated(model, output, inputs, folder, memory, n_jobs, progress)


def count_ngrams(
    texts: Iterable[str | os.PathLike[str] | BinaryIO] | CountFiles,
    path: str | os.PathLike[str],
    order: int,
    *,
    vocabulary: Vocabulary | None = None,
    memory: int | str = "2G",
    folder: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    progress: Callable[[str, int, int], object] | None = None,
    blank_lines: bool = False,
    tokenizer: Tokenizer | None = None,
) -> Counts:
    r"""Write the n-gram counts of texts, or merge count files, in bounded memory.

    The format is that of SRILM's ``ngram-count -write``, and merged files have the
    counts of ``ngram-merge``.

    Parameters
    ----------
    texts : iterable of path-like or binary file, or CountFiles
        Texts as in `estimate_binary`, or count files to merge.
    path : path-like
        The file to write; compressed if its name ends in ``.gz`` or ``.xz``.
    order : int
        Words in the longest n-grams, 1 or more; of count files 9 at most.
    vocabulary, memory, folder, n_jobs, progress, blank_lines, tokenizer
        As in `estimate_binary`.

    Returns
    -------
    n_ngrams : ndarray of int64, shape (order,)
        Number of n-grams of each order; every word of the vocabulary is a unigram.

    Raises
    ------
    ValueError
        If a parameter is out of range, a text is not UTF-8, has no word or has the
        boundary inside of a line, or count files are not those of complete lines.
    OSError
        If a file cannot be read or written.

    See Also
    --------
    write_counts : Write the counts of a fitted model.
    read_counts : Read a count file into memory.

    Examples
    --------
    >>> import io
    >>> from pathlib import Path
    >>> from nplm.formats import count_ngrams
    >>> text = io.BytesIO(b"a rose is a rose\n")
    >>> n_ngrams = count_ngrams([text], "counts", 2)
    >>> n_ngrams, Path("counts").read_text().splitlines()[-4:]
    (array([5, 5]), ['a rose\t2', 'rose </s>\t1', 'rose is\t1', 'is a\t1'])
    """
    check_writable(path)
    if not isinstance(order, int | np.integer) or order < 1:
        raise ValueError(f"order must be a whole number, 1 or more, got {order!r}.")
    source = source_of(texts, vocabulary, tokenizer, blank_lines, os.fspath(path))
    with Scratch(folder, memory, n_jobs, progress) as work:
        words = source.words(work)
        check_marks(words.words, words.boundary)
        packing = _packing(source, words, int(order), work)
        counts = NgramCounts.of_source(source, packing, work)
        write_lines(path, counts, words.words, words.boundary, work)
        return counts.n_ngrams


def _estimated(
    model: KneserNeyLM,
    output: NgramsFile,
    inputs: tuple[Any, Vocabulary | None, Tokenizer | None, bool],
    *resources: Any,
) -> Estimated:
    """Check estimators, and estimate a model with their parameters."""
    order = _checked_order(model)
    check_writable(output.path)
    output.check(order, inputs[2])
    source = source_of(*inputs, os.fspath(output.path))
    smoothing = model.smoothing(order)
    sizes = {"n_words": model.n_words, "boundary": model.boundary}
    with Scratch(*resources) as work:
        return estimate(smoothing, source, output, work, sizes)


def estimate(
    smoothing: Smoothing,
    source: TextSource,
    output: NgramsFile,
    work: Scratch,
    sizes: Mapping[str, int | None] = MappingProxyType({}),
    *,
    marks: bool = True,
) -> Estimated:
    """Estimate a model, as `KneserNeyLM` does, from a source to a file.

    `sizes` are parameters that the words must agree with. Without `marks` lines have no
    boundary around them, and it has probability 0.
    """
    words = source.words(work)
    for name, size in sizes.items():
        if size not in (None, getattr(words, name)):
            raise ValueError(
                f"the model has {name}={size!r}, but the vocabulary has "
                f"{getattr(words, name)}: leave it out of the model."
            )
    boundary, n_of_word = cast(int, words.boundary), source.counts
    if output.kind == "arpa":
        check_marks(words.words, boundary)
    n_counts = 2 if smoothing.cuts_by_text else 1
    packing = _packing(source, words, smoothing.order, work, n_counts, marks=marks)
    if not marks:
        smoothing = replace(smoothing, impossible=boundary)
    model, _ = estimated(source, packing, smoothing, work)
    output.write(model.trie, words, work, is_whole=model.is_whole)
    n_lines = int(n_of_word[boundary])
    return Estimated(
        n_lines=n_lines,
        n_tokens=int(n_of_word.sum()) - n_lines,
        n_unknown=int(n_of_word[words.unknown]) if words.unknown >= 0 else 0,
        n_words=words.n_words,
        n_ngrams=model.trie.n_ngrams,
        discounts=model.discounts,
    )


def _packing(
    source: TextSource,
    words: StoredWords,
    order: int,
    work: Scratch,
    n_counts: int = 2,
    *,
    marks: bool = True,
) -> Packing:
    """Give buffers the memory that words leave; return how n-grams are packed."""
    # A word takes its text, ids and counts, and in each thread numbers for each order
    # (see ``_fold``) and the probability of one order below.
    bytes_per_word = 40 + work.n_threads * (8 * n_counts * order + 8)
    work.reserve(INTERPRETER_BYTES + bytes_per_word * source.n_known)
    return Packing(order, words.n_words, cast(int, words.boundary), marks)


def source_of(
    texts: Any,
    vocabulary: WordChoice | None,
    tokenizer: Splitter | None,
    blank_lines: bool,
    path: str,
) -> TextSource:
    """Return what n-grams are counted from."""
    if isinstance(texts, CountTables):
        for name, value in (("vocabulary", vocabulary), ("tokenizer", tokenizer)):
            if value is not None:
                raise ValueError(
                    f"{name} is given, but tables of counts have their own words: "
                    "leave it out."
                )
        tables = copy(texts)
        tables.tables = _not_replaced(texts.tables, path)
        return Tables(tables)
    if isinstance(texts, (str, bytes, os.PathLike)) or hasattr(texts, "read"):
        raise TypeError(
            f"texts is a single {type(texts).__name__}: pass a list, [texts], as there "
            "may be several."
        )
    vocabulary = WordChoice() if vocabulary is None else vocabulary
    # Estimators check the types of their parameters, too.
    for words_of in (vocabulary, tokenizer):
        getattr(words_of, "_validate_params", lambda: None)()
    symbols_of(vocabulary)
    if vocabulary.boundary is None:
        raise ValueError(
            "the vocabulary has boundary=None, but estimation needs a word that ends "
            "lines: set boundary='</s>', for example."
        )
    words = () if vocabulary.words is None else list(vocabulary.words)
    if vocabulary.boundary == END and BEGIN in words:
        raise ValueError(
            f"words of the vocabulary has {BEGIN!r}, which stands for the beginning of "
            "a line and is no word: leave it out."
        )
    if isinstance(texts, CountFiles):
        if tokenizer is not None:
            raise ValueError(
                "tokenizer is given, but count files have words: leave it out."
            )
        texts = CountFiles(_not_replaced(texts.paths, path), texts.weights)
        return CountedFiles(texts, vocabulary)
    if tokenizer is not None:
        finder_of(tokenizer)
    return Texts(_not_replaced(texts, path), vocabulary, tokenizer, blank_lines)


def _not_replaced(texts: Iterable[Any], path: str) -> Iterator[Any]:
    """Yield the texts or tables; raise if the output would replace one of them."""
    for text in texts:
        is_name = isinstance(text, (str, bytes, os.PathLike))
        both = is_name and os.path.exists(text) and os.path.exists(path)
        if both and os.path.samefile(text, path):
            raise ValueError(
                f"path={path!r} is one of the files that are read, and would be "
                "replaced: choose another path."
            )
        yield text


def _checked_order(model: KneserNeyLM) -> int:
    """Return the order of a model, or raise if its parameters are invalid."""
    # Imported here: the commands estimate without scikit-learn.
    from nplm.models.ngrams.kneser_ney import KneserNeyLM

    if not isinstance(model, KneserNeyLM):
        raise TypeError(f"model must be a KneserNeyLM, got {type(model).__name__}.")
    model._validate_params()
    if model.order is None:
        raise ValueError(
            "order is None, but a text has no columns to infer it from: set order, "
            "KneserNeyLM(5) for example."
        )
    return int(model.order)
