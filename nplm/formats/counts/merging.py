"""Count files merged and weighted, as the source of an estimation."""

from __future__ import annotations

import os
import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from nplm.base.array_types import Counts, Ids
from nplm.base.encoded_words import EncodedWords
from nplm.base.exceptions import parameter_error
from nplm.base.files.atomic_files import check_regular, opened
from nplm.base.files.compressed import unpacked
from nplm.formats._lines import MAX_LINE_BYTES
from nplm.formats._words import StoredWords
from nplm.formats.counts.count_files import MAX_ORDER, UNIGRAM, decoded, parsed
from nplm.formats.counts.sources import TextSource, choose_words
from nplm.formats.open_model import Kind, open_model
from nplm.models.ngrams.stages.counts import MAX_TOTAL, check_total
from nplm.models.ngrams.stages.runs import Packing, Run, write_runs_of_tables
from nplm.models.ngrams.trie.work import Work
from nplm.text.words.known_words import WordChoice
from nplm.text.words.splitting import BEGIN, END

CHUNK_BYTES = 1 << 20
COUNT = re.compile(rb"0*\d{1,16}")


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
                ids, length, counts = parsed(data, self._text, path, n_lines)
                # <s> is never predicted.
                ids, length, counts = (
                    a[ids[:, -1] != self._begin] for a in (ids, length, counts)
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
