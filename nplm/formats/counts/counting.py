"""Count the n-grams of texts, or merge count files, in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from nplm.formats._model_files import check_writable
from nplm.formats._words import check_marks
from nplm.formats.arpa.arpa_lines import NgramText
from nplm.formats.counts.count_files import write_lines
from nplm.formats.counts.estimation import Resources, counted, source_of
from nplm.formats.counts.merging import CountFiles
from nplm.text.words.marks import END

if TYPE_CHECKING:
    from nplm.text.tokenizer import Tokenizer
    from nplm.text.vocabulary import Vocabulary


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
) -> NDArray[np.int64]:
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
    with Resources(memory, folder, n_jobs, progress).scratch() as work:
        words = source.words(work)
        boundary = cast(int, words.boundary)
        check_marks(words.words, boundary)
        trie, counts = counted(source, words, int(order), work, "raw")
        spelled = words.words.tolist()
        spelled[boundary] = END
        text = NgramText(trie, spelled, boundary, trie.parents(work))
        write_lines(path, trie, counts["raw"], text, work)
        return trie.n_ngrams
