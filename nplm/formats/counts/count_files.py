"""SRILM's count files: each line is an n-gram of any order and its count."""

from __future__ import annotations

import os
import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from nplm._kernels.files import _ngram_format, _ngram_parse
from nplm.base.array_types import Counts, Ids
from nplm.base.encoded_words import EncodedWords
from nplm.base.files.atomic_files import check_writable
from nplm.base.files.compressed import reading
from nplm.base.files.lines import NOT_UTF8
from nplm.formats._lines import shown
from nplm.formats._model_files import counts_of, writing
from nplm.formats._words import check_marks, check_words
from nplm.formats.arpa.arpa_lines import NgramText, n_lines_in
from nplm.models.ngrams.stages.counts import NgramCounts, check_total
from nplm.models.ngrams.trie.work import Work
from nplm.text.words.splitting import BEGIN, END

if TYPE_CHECKING:
    from nplm.models.ngrams.kneser_ney import KneserNeyLM

MAX_ORDER = 9
# A word and its count, or what is in its place: `parsed` refuses that, and a count that
# overflows.
UNIGRAM = re.compile(rb"^[ \t\r]*([^ \t\r\n]+)[ \t\r]+([^ \t\r\n]+)[ \t\r]*$", re.M)


def write_counts(
    model: KneserNeyLM, path: str | os.PathLike[str], words: Sequence[str]
) -> None:
    """Write the n-gram counts of a model, in the format of SRILM's ``ngram-count``.

    Parameters
    ----------
    model : KneserNeyLM
        A fitted model; its ``counts_`` are written.
    path : path-like
        The file to write; compressed if its name ends in ``.gz`` or ``.xz``.
    words : sequence of str, shape (n_words_,)
        The word of each id. A ``boundary`` is written as ``</s>`` at the end of an
        n-gram and as ``<s>`` elsewhere.

    Raises
    ------
    TypeError
        If the model keeps no counts.
    NotFittedError
        If it is not fitted.
    ValueError
        If the words are not one per id, distinct, and without blanks.
    OSError
        If `path` cannot be written, before any work is done.
    """
    check_writable(path)
    trie, boundary = counts_of(model), model.boundary
    words = check_words(words, trie.n_words)
    check_marks(words, boundary)
    write_lines(path, trie, words, boundary, Work())


def write_lines(
    path: str | os.PathLike[str],
    trie: NgramCounts,
    words: Sequence[str],
    boundary: int | None,
    work: Work,
) -> None:
    """Write n-grams and their counts."""
    text = NgramText(trie, words, boundary, work)
    work.stage("writing", int(trie.n_ngrams.sum()))
    with writing(path) as file:
        for level in range(trie.order):
            of_level = trie.counts[trie.followers(level)]
            for part in text.parts(level, 1, _ngram_format.format_counts, of_level):
                file.write(part)
                work.advance(n_lines_in(part))
                work.release_pages()


def read_counts(
    path: str | os.PathLike[str], words: Sequence[str] | None = None
) -> tuple[list[Ids], list[Counts], list[str]]:
    """Read n-gram counts, for ``KneserNeyLM.fit_counts``.

    Parameters
    ----------
    path : path-like
        The file, plain, gzip, bzip2, xz or zstd, with n-grams of up to 9 words. Lines
        may be in any order.
    words : sequence of str, optional
        The word of each id; by default the unigrams in the order of the file.

    Returns
    -------
    ngrams : list of ndarray of int32, shape (n, k)
        The n-grams of k = 1, 2, ... words.
    counts : list of ndarray of int64, shape (n,)
        The count of each n-gram.
    words : list of str
        The word of each id.

    Raises
    ------
    ValueError
        If a line is not words and a whole number, or has a word that is not in
        `words`; the error names the line. If counts add up to 2**53 or more.
    OSError
        If the file cannot be read.

    Notes
    -----
    If the file has both ``<s>`` and ``</s>``, they become one id, with the word
    ``</s>``: set it as the model's ``boundary``. The count of ``<s>`` itself is
    left out, since it is never predicted.

    Examples
    --------
    >>> from nplm import KneserNeyLM
    >>> from nplm.formats import read_counts, write_counts
    >>> model = KneserNeyLM(2, boundary=0, discount_fallback=(0.5, 1, 1.5))
    >>> model = model.fit_stream([[1, 2, 1], [1]])
    >>> write_counts(model, "counts", ["</s>", "a", "b"])
    >>> ngrams, counts, words = read_counts("counts")
    >>> words, ngrams[1].tolist(), counts[1].tolist()
    (['</s>', 'a', 'b'], [[0, 1], [1, 0], [1, 2], [2, 1]], [2, 2, 1, 1])
    """
    path = os.fspath(path)
    with reading(path) as file:
        data = file.read().removeprefix(BOM_UTF8)
    if not data or data.isspace():
        raise ValueError(f"{path} is empty: there is no n-gram in it.")
    if words is None:
        words = list(decoded(dict.fromkeys(m[1] for m in UNIGRAM.finditer(data)), path))
    known = list(words)
    if BEGIN not in known:
        known.append(BEGIN)
    ids, length, counts = parsed(data, EncodedWords.of(known), path)
    begin = known.index(BEGIN)
    predicted = ids[:, -1] != begin
    ids, length, counts = ids[predicted], length[predicted], counts[predicted]
    if END in known:
        ids[ids == begin] = known.index(END)
    elif (ids == begin).any():
        raise ValueError(
            f"{path} has n-grams that begin with <s>, but its words do not include "
            "</s>: add it to `words`, or count with both marks or none."
        )
    del known[begin]
    ids[ids > begin] -= 1
    orders = range(1, int(length.max(initial=0)) + 1)
    tables = [np.ascontiguousarray(ids[length == k, -k:]) for k in orders]
    counts_of = [counts[length == k] for k in orders]
    for k, of_order in zip(orders, counts_of):
        what = f"{path}: the counts of its {k}-grams"
        check_total(float(of_order.sum(dtype=np.float64)), what)
    return tables, counts_of, known


def decoded(words: Iterable[bytes], path: str) -> Iterator[str]:
    """Yield words of a file as strings; raise ValueError if one is not UTF-8."""
    for word in words:
        try:
            yield word.decode()
        except UnicodeDecodeError as error:
            with reading(path) as file:
                matches = ((n, UNIGRAM.match(line)) for n, line in enumerate(file, 1))
                places = (n for n, match in matches if match and match[1] == word)
                line = next(places, 1)
            wrong = NOT_UTF8.format(error.reason, "")
            raise ValueError(f"{path}, line {line}: {wrong}") from error


def parsed(
    data: bytes, text: EncodedWords, path: str, n_before: int = 0
) -> tuple[Ids, Ids, Counts]:
    """Parse lines of n-grams and counts; `n_before` are before them in the file.

    Returns ids (n, MAX_ORDER), in the last columns of each row, the number of words and
    the count of each row.
    """
    # A row has at least a word, a blank and a digit; blank lines make no rows.
    n_ends = data.count(b"\n")
    n = 1 + min(n_ends, (len(data) - n_ends) // 3)
    ids = np.empty((n, MAX_ORDER), dtype=np.int32)
    length, counts = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int64)
    reason, n_lines, begin, rows = _ngram_parse.parse_counts(
        np.frombuffer(data, dtype=np.uint8),
        text.spelled_ids,
        ids,
        length,
        counts,
    )
    if reason != _ngram_parse.MORE:
        end = data.find(b"\n", begin)
        line = data[begin : end if end >= 0 else None].decode(errors="replace").strip()
        why = {
            _ngram_parse.BAD_LENGTH: f"is not 1 to {MAX_ORDER} words and a count",
            _ngram_parse.BAD_NUMBER: "does not end in a whole number, 0 or more",
            _ngram_parse.OUT_OF_RANGE: "has a count that overflows: 2**53 or more",
            _ngram_parse.UNKNOWN_WORD: "has a word that is neither a unigram of the "
            "file nor in `words`",
        }[reason]
        raise ValueError(f"{path}, line {n_before + n_lines}: {shown(line)} {why}.")
    return ids[:rows], length[:rows], counts[:rows]
