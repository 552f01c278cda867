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
from nplm.base.exceptions import parameter_error
from nplm.base.files.atomic_files import check_regular, check_writable, opened
from nplm.base.files.compressed import reading, unpacked
from nplm.base.files.lines import NOT_UTF8
from nplm.formats._lines import MAX_LINE_BYTES, shown
from nplm.formats._model_files import counts_of, writing
from nplm.formats._words import StoredWords, check_marks, check_words
from nplm.formats.arpa.arpa_lines import NgramText, n_lines_in
from nplm.formats.counts.sources import TextSource, choose_words
from nplm.formats.open_model import Kind, open_model
from nplm.models.ngrams.stages.counts import MAX_TOTAL, NgramCounts, check_total
from nplm.models.ngrams.stages.runs import Packing, Run, write_runs_of_tables
from nplm.models.ngrams.trie.work import Work
from nplm.text.words.known_words import WordChoice
from nplm.text.words.splitting import BEGIN, END

if TYPE_CHECKING:
    from nplm.models.ngrams.kneser_ney import KneserNeyLM

MAX_ORDER = 9
CHUNK_BYTES = 1 << 20
COUNT = re.compile(rb"0*\d{1,16}")
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
    begin = known.index(BEGIN)
    ids, length, counts = parsed(data, EncodedWords.of(known), begin, path)
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
    data: bytes, text: EncodedWords, begin: int, path: str, n_before: int = 0
) -> tuple[Ids, Ids, Counts]:
    """Parse lines of n-grams and counts; `n_before` are before them in the file.

    Returns ids (n, MAX_ORDER), in the last columns of each row, the number of words and
    the count of each row. N-grams that end with <s>, the word `begin`, are left out: it
    is never predicted.
    """
    # A row has at least a word, a blank and a digit; blank lines make no rows.
    n_ends = data.count(b"\n")
    n = 1 + min(n_ends, (len(data) - n_ends) // 3)
    ids = np.empty((n, MAX_ORDER), dtype=np.int32)
    length, counts = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int64)
    reason, n_lines, start, n_rows = _ngram_parse.parse_counts(
        np.frombuffer(data, dtype=np.uint8),
        text.spelled_ids,
        ids,
        length,
        counts,
    )
    if reason != _ngram_parse.MORE:
        end = data.find(b"\n", start)
        line = data[start : end if end >= 0 else None].decode(errors="replace").strip()
        why = {
            _ngram_parse.BAD_LENGTH: f"is not 1 to {MAX_ORDER} words and a count",
            _ngram_parse.BAD_NUMBER: "does not end in a whole number, 0 or more",
            _ngram_parse.OUT_OF_RANGE: "has a count that overflows: 2**53 or more",
            _ngram_parse.UNKNOWN_WORD: "has a word that is neither a unigram of the "
            "file nor in `words`",
        }[reason]
        raise ValueError(f"{path}, line {n_before + n_lines}: {shown(line)} {why}.")
    predicted = np.flatnonzero(ids[:n_rows, -1] != begin)
    return ids[predicted], length[predicted], counts[predicted]


class CountFiles:
    r"""Count files of SRILM's format, for `estimate_binary` and `count_ngrams`.

    The counts of equal n-grams add up, each multiplied by the weight of its file: MAP
    adaptation (Bacchiani and Roark, 2003) gives the counts of a small text of the
    domain a larger weight than those of a large one.

    The files have the counts of complete texts: those of every order up to that of the
    model or more, from ``<s>`` to ``</s>``, without cut-offs, as ``nplm count``
    and SRILM's ``ngram-count -write`` write them.

    Parameters
    ----------
    paths : iterable of path-like
        The files, plain, gzip, bzip2, xz or zstd, with n-grams of up to 9 words. Lines
        may be in any order.
    weights : sequence of float, optional
        Weight of each file, above 0; by default 1.

    Raises
    ------
    TypeError
        If `paths` is a single name.
    ValueError
        If there is no file, or there are not as many weights, above 0.

    See Also
    --------
    read_counts : Read one file into memory, also with cut-offs.

    Notes
    -----
    Kneser-Ney's discounts are estimated from the numbers of n-grams that occur once,
    twice and so on, so that counts stay whole numbers. Those of a file whose weight is
    not a whole number are multiplied and rounded to the nearest one, halves up, but
    never below 1, line by line: an n-gram that occurs in a file stays, so that every
    context and every word of an n-gram has a count of its own. With the weights 0.5 and
    0.25 an n-gram that occurs once counts as 1 in both files; 2 and 1 keep the ratio.

    Weights are those of the longest n-grams, and of those that begin with ``<s>``. The
    counts of shorter ones are the sums of these. Kneser-Ney estimates the shorter ones
    from the number of distinct words before them, which no weight changes. To weight
    models of all orders, mix them: `static_mixture`.

    References
    ----------
    M. Bacchiani and B. Roark (2003). Unsupervised language model adaptation. ICASSP.

    Examples
    --------
    >>> import io
    >>> from pathlib import Path
    >>> from nplm.formats import CountFiles, count_ngrams
    >>> talk, news = io.BytesIO(b"a rose\n"), io.BytesIO(b"a rose is a rose\n")
    >>> for text, path in zip([talk, news], ["talk", "news"]):
    ...     _ = count_ngrams([text], path, 2)
    >>> _ = count_ngrams(CountFiles(["talk", "news"], weights=[3, 1]), "both", 2)
    >>> Path("both").read_text().splitlines()[-4:]
    ['a rose\t5', 'rose </s>\t4', 'rose is\t1', 'is a\t1']
    """

    def __init__(
        self,
        paths: Iterable[str | os.PathLike[str]],
        weights: Sequence[float] | None = None,
    ) -> None:
        if isinstance(paths, (str, bytes, os.PathLike)):
            raise TypeError(
                f"paths is a single {type(paths).__name__}: pass a list, [path], as "
                "there may be several."
            )
        self.paths = [os.fspath(path) for path in paths]
        values = np.ones(len(self.paths)) if weights is None else np.array(weights)
        if not self.paths:
            raise ValueError("paths is empty: pass the name of a count file.")
        if values.shape != (len(self.paths),) or not (
            np.issubdtype(values.dtype, np.number)
            and ((values > 0) & (values < np.inf)).all()
        ):
            raise parameter_error(
                "{weights} must be numbers above 0, one for each file, of which there "
                "are {0}.", len(self.paths), weights=weights,
            )  # fmt: skip
        self.weights = values.astype(np.float64).tolist()


class CountedFiles(TextSource):
    """`CountFiles` as the source of an estimation."""

    def __init__(self, files: CountFiles, choice: WordChoice) -> None:
        if choice.boundary != END:
            raise ValueError(
                f"the vocabulary has boundary={choice.boundary!r}, but the ends of "
                f"lines in count files are {END!r}: leave it out."
            )
        self._files, self._choice = files, choice

    def words(self, work: Work) -> StoredWords:
        """Choose the words by their counts."""
        for path in self._files.paths:
            check_regular(path)  # it is read for words, and again for n-grams
        sizes = [os.path.getsize(path) for path in self._files.paths]
        work.stage("reading", sum(sizes))
        counts_of: dict[str, int] = {}
        self._n_ngrams = 0
        for path, weight, size in zip(self._files.paths, self._files.weights, sizes):
            of_file: dict[bytes, int] = {}
            n_read = 0
            for _, data, position in _chunks(path):
                lines = UNIGRAM.findall(data)
                numbers = np.array(
                    [int(n) if COUNT.fullmatch(n) else 0 for _, n in lines],
                    dtype=np.int64,
                )
                # Line by line, as the n-grams: a word may have several lines.
                for (word, _), n in zip(lines, _weighted(numbers, weight).tolist()):
                    of_file[word] = of_file.get(word, 0) + n
                self._n_ngrams += data.count(b"\n")
                work.advance(position - n_read)
                n_read = position
            work.advance(size - n_read)
            if END.encode() not in of_file:
                raise ValueError(_without_ends(path))
            for word, count in zip(decoded(of_file, path), of_file.values()):
                counts_of[word] = counts_of.get(word, 0) + count
        for mark in (BEGIN, END):
            counts_of.pop(mark, None)
        known = choose_words(self._choice, counts_of)
        ids, unknown = known.ids_and_unknown
        self._boundary = end = known.ids[END]
        self._text = EncodedWords.of([*counts_of, BEGIN, END])
        new_ids = [*(ids.get(word, unknown) for word in counts_of), end, end]
        self._new_ids = np.array(new_ids, dtype=np.int32)
        self._begin = len(new_ids) - 2
        self.counts = np.zeros(len(known), dtype=np.int64)
        self.n_known = max(len(new_ids), len(known))
        return StoredWords.of(known, end)

    def runs(self, packing: Packing, work: Work) -> tuple[list[Run], Counts]:
        if packing.order > MAX_ORDER:
            raise parameter_error(
                "{order}, but count files have n-grams of up to {0} words: lower "
                "{order:order}.", MAX_ORDER, order=packing.order,
            )  # fmt: skip
        tables = self._tables(packing.order, work)
        runs = write_runs_of_tables(packing, tables, work, self._n_ngrams)
        if self.counts.sum() == self.counts[self._boundary]:
            raise ValueError(
                "the count files have no word that occurs: count text that has words."
            )
        return runs, self.counts

    def _tables(self, order: int, work: Work) -> Iterator[tuple[Ids, Counts]]:
        """Yield n-grams of `order` words, with those that begin with <s> filled up."""
        total = 0.0
        for path, weight in zip(self._files.paths, self._files.weights):
            # Counts of the last words of these n-grams, and of the unigrams.
            ends, unigrams = np.zeros((2, len(self._new_ids)), dtype=np.int64)
            for n_lines, data, _ in _chunks(path):
                ids, length, counts = parsed(
                    data, self._text, self._begin, path, n_lines
                )
                alone = length == 1
                np.add.at(unigrams, ids[alone, -1], counts[alone])
                oldest = ids[np.arange(len(ids)), MAX_ORDER - length]
                chosen = (length == order) | (
                    (length < order) & (length > 1) & (oldest == self._begin)
                )
                ids, counts = ids[chosen, -order:], counts[chosen]
                np.add.at(ends, ids[:, -1], counts)
                ngrams = np.where(ids < 0, self._boundary, self._new_ids[ids])
                counts = _weighted(counts, weight)
                total += float(counts.sum(dtype=np.float64))
                check_total(total, f"{path}: the counts", "lower the weights")
                ngrams, counts = ngrams[counts > 0], counts[counts > 0]
                # Those that are not sorted, which tells of the others.
                work.advance(max(0, data.count(b"\n") - len(ngrams)))
                np.add.at(self.counts, ngrams[:, -1], counts)
                yield ngrams.astype(np.int32, copy=False), counts
            self._check_complete(path, order, ends, unigrams)

    def _check_complete(
        self, path: str, order: int, ends: Counts, unigrams: Counts
    ) -> None:
        differ = np.flatnonzero(ends != unigrams)
        if len(differ):
            word = int(differ[0])
            raise parameter_error(
                "{0} does not have the counts of complete lines: {1!r} has the count "
                "{2}, but the n-grams of {3} words, and shorter ones from {4} on, that "
                "end with it add up to {5}. Count n-grams of up to {3} words or more, "
                "without cut-offs, or lower {order}.",
                path, self._text[word], unigrams[word], order, BEGIN, ends[word],
            )  # fmt: skip


def _without_ends(path: str) -> str:
    """Say what is wrong with a file that has no count of line ends."""
    with open_model(path) as file:
        kind = file.kind
    if kind is Kind.TABLE:
        return (
            f"{path} has no count of {END}, the end of a line: count lines from "
            f"{BEGIN} to {END}, as nplm count does."
        )
    what = "has no lines of an n-gram, a tab and its count"
    if kind.is_text:
        what = "is an ARPA file: a model" if kind is Kind.ARPA else "is plain text"
    return (
        f"{path} {what}, not counts of n-grams: nplm count writes these, from the "
        "text that the model is to be estimated from."
    )


def _chunks(path: str) -> Iterator[tuple[int, bytes, int]]:
    """Yield the number of lines before some, these, and how far the file is read."""
    n_lines = 0
    with opened(path) as raw, unpacked(raw, path) as file:
        rest = file.read(len(BOM_UTF8)).removeprefix(BOM_UTF8)
        while data := file.read(CHUNK_BYTES):
            data = rest + data
            end = data.rfind(b"\n") + 1
            rest = data[end:]
            if len(rest) > MAX_LINE_BYTES:
                raise ValueError(
                    f"{path}, line {n_lines + 1}: longer than {MAX_LINE_BYTES} bytes: "
                    "the file is not a count file."
                )
            if end:
                yield n_lines, data[:end], raw.tell()
            n_lines += data.count(b"\n")
        if rest:
            yield n_lines, rest, raw.tell()


def _weighted(counts: Counts, weight: float) -> Counts:
    """Return counts times a weight, rounded to whole numbers, halves up.

    Those above 0 stay above 0: the n-grams of a text without some of them are not those
    of any text, and may lack the contexts of others.
    """
    if weight == 1:
        return counts
    if float(counts.max(initial=0)) * weight >= MAX_TOTAL:
        raise parameter_error(
            "a count of {0} times the weight {1:g} overflows: lower "
            "{weights:the weights}.", counts.max(), weight,
        )  # fmt: skip
    rounded = np.floor(counts * weight + 0.5).astype(np.int64)
    return np.maximum(rounded, counts > 0)
