"""Read ARPA files: the n-grams, without a model of them."""

from __future__ import annotations

import math
import os
import re
from array import array
from bisect import bisect_right
from collections.abc import Container, Iterator
from contextlib import nullcontext
from typing import Any, BinaryIO

import numpy as np

from nplm.base.array_types import Floats, Ids, Mask
from nplm.base.blocks import blocks
from nplm.base.encoded_words import LINE_FEED, EncodedWords
from nplm.base.files.compressed import reading
from nplm.formats._lines import Lines, shown
from nplm.formats._ngrams import Ngrams
from nplm.formats._words import INTERPRETER_BYTES
from nplm.models.ngrams.kenlm_trie import LOG_ZERO
from nplm.models.ngrams.stages.tables import (
    NO_CONTEXT,
    NOT_AN_NGRAM,
    DuplicateNgramError,
    NgramTable,
    NgramTables,
)
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.trie_checks import multiplies
from nplm.models.ngrams.trie.work import MAX_NGRAMS, MOST, Work
from nplm.text.words.known_words import UNKNOWN
from nplm.text.words.splitting import BEGIN, BETWEEN_BLANKS, BLANKS, END

# Rounding in a file may put the log10 of a probability above 0 by this much.
MAX_LOG10_PROB = 1e-4
# Largest log10 of a back-off weight, close to the largest of float32.
MAX_LOG10_WEIGHT = 38.0
LIMITS = LOG_ZERO, MAX_LOG10_PROB, MAX_LOG10_WEIGHT
# Lines that are read and sorted into ranges at once: the size that a file claims is not
# trusted.
MAX_ROWS = 1 << 18
# Comment lines above the header: toolkits write a few.
MAX_COMMENT_LINES = 10_000
# The numbers that the kernel reads in higher orders; float() accepts more, such as 1_0.
NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
UNIGRAM = re.compile(
    rf"({NUMBER})[{BLANKS}]+({BETWEEN_BLANKS})(?:[{BLANKS}]+({NUMBER}))?", re.A
)
# Texts whose first number is not the probability of their n-gram.
IRSTLM_KINDS = ("iARPA", "qARPA")
# Far above the order of any model; a trie takes time quadratic in the order.
MAX_ORDER = 255


def read_ngrams(
    path: str | os.PathLike[str],
    work: Work,
    *,
    add_unknown: bool,
    add_end: bool = False,
    file: BinaryIO | None = None,
) -> Ngrams[BackoffTrie]:
    """Read the n-grams of an ARPA file, in memory or to disk, as `read_arpa` does.

    `add_end` gives n-grams without marks the boundary, with probability 0. `file` is
    the file, decompressed, if it is open already.
    """
    work.reserve(MOST)  # the words may be many
    with reading(path) if file is None else nullcontext(file) as contents:
        lines = Lines(contents, path)
        counts = _read_header(lines)
        work.stage("reading", sum(counts))
        words, prob, bow = _read_unigrams(lines, counts[0], path)
        work.advance(counts[0])
        marks = Marks(words)
        tables = NgramTables(work, len(words), prob, marks.ids)
        for _, table in _tables(lines, counts, words, work):
            marks.see(table.ngrams)
            tables.add_stored(table)
            work.advance(len(table.ngrams))
        _expect(lines, "\\end\\")
    del lines  # the trie needs the memory
    stays, boundary = marks.settle(prob, bow)
    if not stays.any():
        raise _without_words(path)
    lacks_unknown = add_unknown and not any(mark in words for mark in UNKNOWN)
    lacks_end = add_end and boundary is None and not marks.remain
    if lacks_end:
        boundary = int(np.count_nonzero(stays)) + lacks_unknown
    added = [UNKNOWN[0]] * lacks_unknown + [END] * lacks_end
    words = _changed(words, stays, added)
    prob = np.append(prob[stays], [0.0] * len(added))
    bow = np.append(bow[stays], [1.0] * len(added))
    ids = np.arange(len(words), dtype=np.int32)[:, np.newaxis]
    work.reserve(INTERPRETER_BYTES + words.n_bytes)
    try:
        unigrams = NgramTable(ids, prob, bow)
        trie = tables.trie(len(counts), unigrams, marks.settled, new_ids=marks.new_ids)
    except DuplicateNgramError as error:
        gram = [words[w] for w in error.ngram]
        if boundary is not None:
            gram[:-1] = [BEGIN if word == END else word for word in gram[:-1]]
        line = _line_of_second(path, error.ngram, marks, work)
        raise ValueError(
            f"{os.fspath(path)}, line {line} (not counting blank lines among the "
            f"{len(gram)}-grams): {shown(' '.join(gram))} occurs twice."
        ) from error
    except ValueError as error:  # too many contexts for int32
        raise ValueError(f"{os.fspath(path)} has {error}") from error
    if not multiplies(trie):
        raise ValueError(
            f"{os.fspath(path)} has back-off weights whose product overflows: the file "
            "is damaged; estimate the model again."
        )
    return Ngrams(trie, None, boundary, words)


def _tables(
    lines: Lines, counts: list[int], words: EncodedWords, work: Work
) -> Iterator[tuple[int, NgramTable]]:
    """Yield the n-grams of 2 words and more in parts, after the line of the first."""
    for k, count in enumerate(counts[1:], 2):
        _expect(lines, f"\\{k}-grams:")
        first_line = lines.n_read + 1
        for part in blocks(count, min(work.block, MAX_ROWS)):
            yield first_line + part.start, lines.ngrams(
                k, words, part.stop - part.start, LIMITS, weights=k < len(counts),
                n_before=part.start, n_in_all=count,
            )  # fmt: skip


def _line_of_second(
    path: str | os.PathLike[str], ngram: Ids, marks: Marks, work: Work
) -> int:
    """Return the line where an n-gram, of final ids, occurs for the second time."""
    lines_of_ngram: list[int] = []
    with reading(path) as contents:
        lines = Lines(contents, path)
        counts = _read_header(lines)
        words = _read_unigrams(lines, counts[0], path)[0]
        for first_line, table in _tables(lines, counts, words, work):
            ngrams, prob, _ = marks.settled(table)
            if ngrams.shape[1] == len(ngram):
                final = ngrams if marks.new_ids is None else marks.new_ids[ngrams]
                is_it = (final == ngram).all(axis=1) & ~np.isnan(prob)
                lines_of_ngram += (first_line + np.flatnonzero(is_it)).tolist()
    return lines_of_ngram[1]


def check_boundary(
    boundary: int | None, words: Container[str], path: str | os.PathLike[str]
) -> None:
    """Raise ValueError if an ARPA file has no boundary, which a text model needs."""
    if boundary is not None:
        return
    if BEGIN in words:
        lacks = f"has {BEGIN} but not {END}, of the marks of the ends of lines"
    else:
        lacks = f"has {END} as an ordinary word, and no n-grams that begin with {BEGIN}"
    raise ValueError(
        f"{os.fspath(path)} {lacks}: in Python, read it by nplm.formats.read_arpa, and "
        "give TextLM.from_model a boundary and predict_boundary=False."
    )


def _without_words(path: str | os.PathLike[str]) -> ValueError:
    return ValueError(f"{os.fspath(path)} has no words besides <s> and </s>.")


def _changed(words: EncodedWords, stays: Mask, added: list[str]) -> EncodedWords:
    """Return the words that stay, and others after them."""
    if stays.all() and not added:
        return words
    text: Any
    text, start, _ = words.arrays.values()
    lines = np.append(text, np.uint8(LINE_FEED))[np.repeat(stays, np.diff(start))]
    others = "".join(f"{word}\n" for word in added).encode()
    text = np.append(lines, np.frombuffer(others, np.uint8))
    return EncodedWords.of_lines(text[:-1], "the vocabulary")


def _expect(lines: Lines, wanted: str) -> None:
    line = lines.next()
    if line is None:
        raise lines.error(
            f"the file ends before {wanted!r}: it is truncated", ended=True
        )
    if line != wanted:
        raise lines.error(f"expected {wanted!r}, got {shown(line)}")


def _read_header(lines: Lines) -> list[int]:
    """Return the number of n-grams of each order."""
    line = lines.next()
    if line is not None and line.split()[0] in IRSTLM_KINDS:
        raise lines.error(
            f"{shown(line)} begins an IRSTLM file, whose numbers are not those of an "
            "ARPA file: write one by 'compile-lm --text=yes FILE model.arpa'"
        )
    # SRILM allows comments above the header.
    n_comments = 0
    while line is not None and line != "\\data\\":
        n_comments += 1
        if n_comments > MAX_COMMENT_LINES:
            raise lines.error(
                f"no line '\\data\\' within {MAX_COMMENT_LINES} lines: this is not an "
                "ARPA file"
            )
        line = lines.next()
    if line is None:
        raise lines.error("no line '\\data\\': this is not an ARPA file", ended=True)
    counts: list[int] = []
    while True:
        line = lines.next()
        if line is None:
            raise lines.error(
                "the file ends in its header: it is truncated", ended=True
            )
        if line == "\\1-grams:" and counts:
            return counts
        # At most 18 digits, which fit in int64.
        found = re.fullmatch(r"ngram\s+0*(\d{1,18})\s*=\s*0*(\d{1,18})", line, re.A)
        if not found or int(found[1]) != len(counts) + 1:
            raise lines.error(
                f"expected 'ngram {len(counts) + 1}=' and a number, got {shown(line)}"
            )
        counts.append(int(found[2]))
        if len(counts) > MAX_ORDER:
            raise lines.error(
                f"n-grams of more than {MAX_ORDER} words are not supported"
            )
        if sum(counts) > MAX_NGRAMS:
            raise lines.error(
                f"{sum(counts)} n-grams so far; more than {MAX_NGRAMS} are not "
                "supported"
            )


def _read_unigrams(
    lines: Lines, n: int, path: str | os.PathLike[str]
) -> tuple[EncodedWords, Floats, Floats]:
    text = bytearray()
    # They grow as lines come: the size in the header is not trusted.
    prob, bow = array("d"), array("d")
    # Rows with which parts begin, and their lines.
    first_rows, first_lines = [], []
    while len(prob) < n:
        first_rows.append(len(prob))
        first_lines.append(lines.n_read + 1)
        words, log_prob, log_bow = lines.unigrams(n - len(prob), LIMITS)
        if not words:
            word, *numbers = _unigram(lines, n, len(prob))
            words, (log_prob, log_bow) = f"{word}\n".encode(), np.array([numbers]).T
            first_lines[-1] = lines.n_read
        text += words
        prob.frombytes(log_prob.tobytes())
        bow.frombytes(log_bow.tobytes())
    if not text:
        raise _without_words(path)
    encoded = EncodedWords.of_lines(np.frombuffer(text, np.uint8)[:-1], os.fspath(path))
    if encoded.repeated is not None:
        part = bisect_right(first_rows, encoded.repeated) - 1
        raise lines.error(
            f"the 1-gram {shown(encoded[encoded.repeated])} occurs twice",
            line=first_lines[part] + encoded.repeated - first_rows[part],
        )
    return encoded, 10.0 ** np.array(prob), 10.0 ** np.array(bow)


def _unigram(lines: Lines, n: int, row: int) -> tuple[str, float, float]:
    """Return the word, the number and the weight (or 0) of a line of any form."""
    line = lines.next()
    if line is None or line.startswith("\\"):
        raise lines.error(
            f"{n} 1-grams in the header, but there are {row}", ended=line is None
        )
    match = UNIGRAM.fullmatch(line)
    log10 = [float(number) for number in match.group(1, 3) if number] if match else []
    if match is None or not all(map(math.isfinite, log10)):
        raise lines.error(
            f"{shown(line)} is not a number, a word and a number (a 1-gram), or a "
            "number is not finite"
        )
    if log10[0] > MAX_LOG10_PROB:
        raise lines.error(
            f"{log10[0]} in {shown(line)} is not the log10 of a probability: it is "
            "above 0"
        )
    if log10[-1] > MAX_LOG10_WEIGHT:
        raise lines.error(
            f"{log10[-1]} in {shown(line)} is not the log10 of a back-off weight: 10 "
            "to that power overflows"
        )
    number, weight = (-np.inf if x < LOG_ZERO else x for x in [*log10, 0.0][:2])
    return match[2], number, weight


class Marks:
    """The marks <s> and </s> of a file, which become one id, or are left out."""

    def __init__(self, words: EncodedWords) -> None:
        self._n_words = len(words)
        self._begin, self._end = (words.ids.get(mark, -1) for mark in (BEGIN, END))
        self.ids = [i for i in (self._begin, self._end) if i >= 0]
        # Whether one of them is still a word, and the final ids of all words.
        self.remain = max(self._begin, self._end) >= 0
        self.new_ids: Ids | None = None
        self._begin_is_context = self._end_is_context = self._end_is_last = False
        self._are_anywhere = self._is_stream = False
        self._boundary: int | None = None

    def see(self, ngrams: Ids) -> None:
        """Look for the marks in n-grams of the file."""
        begins, ends = ngrams[:, 0] == self._begin, ngrams[:, -1] == self._end
        n_marks = np.count_nonzero((ngrams == self._begin) | (ngrams == self._end))
        if n_marks > np.count_nonzero(begins) + np.count_nonzero(ends):
            self._are_anywhere = True
            never, after_end = self._unreachable(ngrams)
            begins, ends = begins & ~never & ~after_end, ends & ~never
            self._end_is_context |= bool((after_end & ~never).any())
        self._begin_is_context |= bool(begins.any())
        self._end_is_last |= bool(ends.any())

    def _unreachable(self, ngrams: Ids) -> tuple[Mask, Mask]:
        """Return which n-grams no text reaches, and which none of sentences does.

        No text has <s> after another word, or </s> in a sentence; but if sentences do
        not begin with <s>, </s> may be a word of a stream.
        """
        after_end = (ngrams[:, :-1] == self._end).any(axis=1)
        never = (ngrams[:, 1:] == self._begin).any(axis=1)
        return never | (after_end & (ngrams[:, 0] == self._begin)), after_end

    def settle(self, prob: Floats, bow: Floats) -> tuple[Mask, int | None]:
        """Return which words remain, and the boundary, once seen; change numbers."""
        begin, end = self._begin, self._end
        if begin >= 0:
            # <s> is never predicted, though KenLM writes a probability of 1.
            prob[begin] = 0
        begin_is_used = self._begin_is_context or (begin >= 0 and bow[begin] != 1)
        stays, boundary = np.ones(self._n_words, dtype=bool), None
        if begin >= 0 and end >= 0:
            self._is_stream = self._end_is_context and not begin_is_used
            end_is_used = self._end_is_context or self._end_is_last
            stays[begin] = False
            stays[end] = begin_is_used or end_is_used or prob[end] != 0
            self.remain = bool(stays[end])
            self._boundary = int(np.count_nonzero(stays[:end]))
            # Those of words that are left out do not matter, but are in range.
            self.new_ids = np.cumsum(stays, dtype=np.int32) - stays.astype(np.int32)
            self.new_ids[begin] = self._boundary
            self.new_ids.clip(max=max(stays.sum() - 1, 0), out=self.new_ids)
            if not self._is_stream:
                # Nothing follows </s>: the boundary as a context has the weights of
                # <s>, even if the file has some for </s>.
                bow[end] = bow[begin]
                # Pruning may remove all n-grams that begin with <s>, and unigrams have
                # none, but sentences end.
                boundary = self._boundary if stays[end] else None
        return stays, boundary

    def settled(self, table: NgramTable) -> NgramTable:
        """Return n-grams with final numbers; unreachable ones have NaN."""
        ngrams, prob, bow = table
        if self._boundary is None:
            # Without </s>, <s> is a word of a stream, but never predicted.
            return table._replace(prob=np.where(ngrams[:, -1] == self._begin, 0, prob))
        if bow is not None and not self._is_stream:
            ends = ngrams[:, -1] == self._end
            if ends.any():  # few files give </s> a weight
                bow = np.where(ends, NO_CONTEXT, bow)
        if self._are_anywhere:
            left_out, after_end = self._unreachable(ngrams)
            if not self._is_stream:
                left_out |= after_end
            prob = np.where(left_out, NOT_AN_NGRAM, prob)
            bow = None if bow is None else np.where(left_out, NO_CONTEXT, bow)
        return NgramTable(ngrams, prob, bow)
