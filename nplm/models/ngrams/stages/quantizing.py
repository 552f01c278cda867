"""Quantize a trie that may be larger than memory, a range of newest words at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm.base.array_types import AnyArray, Counts, Ids
from nplm.base.blocks import blocks
from nplm.base.exceptions import parameter_error
from nplm.models.ngrams.stages.levels import ranges_of_words
from nplm.models.ngrams.stages.tables import NgramTable, NgramTables, SortedRows
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.bits import (
    MAX_WIDTH,
    READ_BYTES,
    pack_records,
    put_offsets,
    word_bits,
)
from nplm.models.ngrams.trie.context_trie import TrieBuilder, blocks_of_contexts
from nplm.models.ngrams.trie.quantized_trie import (
    NO_PROB,
    NO_WEIGHT,
    Codebook,
    quantized_sizes,
    record_bits,
)
from nplm.models.ngrams.trie.trie_checks import SuffixTrie, check_values
from nplm.models.ngrams.trie.work import MAX_NGRAMS, Work

# Bytes of memory for each n-gram of a range: its words, numbers and ranks, for sorting.
ROW_BYTES = 160
# Larger ranges would save little time.
MAX_ROWS = 1 << 21
# Values and offsets that are packed at once; a multiple of 64.
PACKED = 1 << 16


@dataclass(frozen=True)
class Rows:
    """N-grams (n, k) whose newest word is in a range, or contexts, and codes (n,)."""

    words: Ids
    codes: NDArray[np.uint16]


class Quantizing:
    """A trie being quantized: its nodes in temporary files, and their numbers.

    The nodes of each length are all n-grams, the contexts with a weight, and the
    suffixes of both. They are sorted by their words, newest first, so that those of a
    range of newest words are adjacent. A range is processed in memory.
    """

    def __init__(self, trie: BackoffTrie, bits: int, work: Work) -> None:
        self._trie, self._work, self._bits = trie, work, bits
        order, n_words = trie.order, trie.n_words
        self._lengths = range(2, order + 1)
        self._files = {k: (f"values.{k}", f"offsets.{k}") for k in self._lengths}
        work.stage("choosing codes", int(trie.n_ngrams[1:].sum()))
        self._books = {k: self._learned(k) for k in self._lengths}
        self._start = np.zeros(n_words + 1, dtype=np.int64)
        self._n = dict.fromkeys(range(2, order + 2), 0)
        self._write_nodes()
        self._start[-1] = self._n[2]
        self._low = {k: self._chosen_low(k) for k in self._lengths}
        self.header = {
            "bits": bits,
            "n_ngrams": trie.n_ngrams.tolist(),
            "n_nodes": [self._n[k] for k in self._lengths],
            "low": [self._low[k] for k in self._lengths],
        }

    @property
    def sizes(self) -> dict[str, tuple[type[np.generic], int]]:
        """Type and length of each array of ``quantized_items``."""
        nodes, low = self.header["n_nodes"], self.header["low"]
        return quantized_sizes(self._trie.n_words, self._bits, nodes, low)

    def fill(self, arrays: Mapping[str, AnyArray]) -> None:
        """Fill arrays of zeros, which have these `sizes`, and remove the files."""
        trie, work = self._trie, self._work
        arrays["prob"][:] = trie.prob[: trie.n_words]
        arrays["bow"][:] = trie.bow[1 : trie.n_words + 1]
        arrays["start"][:] = self._start
        work.stage("packing", sum(self._n[k] for k in self._lengths))
        for k in self._lengths:
            prob, bow = self._books[k]
            arrays[f"prob_{k}"][:] = prob.values
            if k < trie.order:
                arrays[f"bow_{k}"][:] = bow.values
            self._pack(k, arrays)

    def _learned(self, k: int) -> tuple[Codebook, Codebook]:
        """Return the codes of the n-grams of `k` words: probabilities and weights."""
        trie, books = self._trie, []
        place = trie.followers(k - 1)
        prob = trie.prob[place]
        bow = trie.bow[:0]
        if k < trie.order:
            bow = trie.bow[trie.level_start[k] : trie.level_start[k + 1]]
        for values, absent in ((prob, NO_PROB), (bow, NO_WEIGHT)):
            book = Codebook(self._bits, absent)
            for part in blocks(len(values), self._work.block):
                book.add(values[part])
                self._release_pages()
                self._work.advance(part.stop - part.start if values is prob else 0)
            book.learn()
            books.append(book)
        return books[0], books[1]

    def _write_nodes(self) -> None:
        """Write the nodes of all lengths, a range of newest words at a time."""
        trie, work = self._trie, self._work
        n_rows = np.zeros(trie.n_words, dtype=np.int64)
        for k in self._lengths:
            words = trie.words[trie.followers(k - 1)]
            for part in blocks(len(words), work.block):
                n_rows += np.bincount(words[part], minlength=trie.n_words)
                self._release_pages()
        work.stage("quantizing", int(n_rows.sum()))
        max_rows = min(work.memory // ROW_BYTES, MAX_ROWS)
        ranges = np.array(list(ranges_of_words(n_rows, max_rows)))
        numbers = np.arange(len(ranges), dtype=np.int32)
        range_of_word = np.repeat(numbers, ranges[:, 1] - ranges[:, 0])
        n_bits = word_bits(max(len(trie.context_word), trie.n_words))
        pairs = SortedRows("pairs", len(ranges), range_of_word, n_bits, work)
        for k in self._lengths:
            self._sort(k, pairs)
        parents = trie.parents(work)
        for i, (first, last) in enumerate(ranges.tolist()):
            tables = {k: self._ngrams(k, i, pairs, parents) for k in self._lengths}
            pairs.remove_before(i + 1)
            self._write_range(first, last, tables, parents)
            work.advance(int(n_rows[first:last].sum()))
        work.drop(parents)

    def _write_range(
        self, first: int, last: int, tables: dict[int, Rows], parents: Ids
    ) -> None:
        """Append the nodes whose newest word is from `first` to before `last`."""
        trie, work = self._trie, self._work
        for k, rows in zip(self._lengths, self._weighted(first, last, parents)):
            tables[-k] = rows
        builder = TrieBuilder(trie.n_words)
        paths = {key: rows.words for key, rows in tables.items()}
        number = builder.add_contexts(trie.order, paths)
        own_start = builder.child_start[1][first:last] - builder.level_start[2]
        self._start[first:last] = own_start + np.int64(self._n[2])
        bits, width = self._bits, word_bits(trie.n_words)
        for k in self._lengths:
            begin, end = builder.level_start[k : k + 2]
            values = builder.context_word[k].astype(np.uint64)
            prob, bow = np.zeros((2, end - begin), dtype=np.uint16)
            prob[number[k]] = tables[k].codes
            values |= prob.astype(np.uint64) << np.uint64(width)
            if k < trie.order:
                bow[number[-k]] = tables[-k].codes
                values |= bow.astype(np.uint64) << np.uint64(width + bits)
                offsets = builder.child_start[k] - np.int32(end)
                offsets += np.int32(self._n[k + 1])
                work.append(self._files[k][1], offsets)
            work.append(self._files[k][0], values)
            self._n[k] += end - begin
            if self._n[k] > MAX_NGRAMS:
                raise parameter_error(
                    "more than {0} {1}-grams and suffixes of longer ones; lower "
                    "{order}, or prune the model.", MAX_NGRAMS, k,
                )  # fmt: skip

    def _sort(self, k: int, pairs: SortedRows) -> None:
        """Append the contexts, next words and probabilities of n-grams of `k` words."""
        trie = self._trie
        for first, last in trie.blocks(k - 1, self._work.block):
            start = trie.start[first : last + 1]
            place = slice(int(start[0]), int(start[-1]))
            contexts = np.arange(first, last, dtype=np.int32)
            context_and_word = np.empty((place.stop - place.start, 2), dtype=np.int32)
            context_and_word[:, 0] = contexts.repeat(np.diff(start))
            context_and_word[:, 1] = trie.words[place]
            pairs.add((k, 1), context_and_word, trie.prob[place])
            self._release_pages()

    def _ngrams(self, k: int, i: int, pairs: SortedRows, parents: Ids) -> Rows:
        """Return the n-grams of `k` words whose newest word is in range `i`."""
        context_and_word, prob = pairs.read((k, 1), 2, (i, i + 1))
        rows = np.empty((len(context_and_word), k), dtype=np.int32)
        rows[:, -1] = context_and_word[:, 1]
        for part in blocks(len(context_and_word), self._work.block):
            self._spell(context_and_word[part, 0], rows[part, :-1], parents)
            self._release_pages(parents)
        return Rows(rows, self._books[k][0].codes(prob))

    def _weighted(self, first: int, last: int, parents: Ids) -> Iterator[Rows]:
        """Yield the contexts of 2 words, 3, ... with a weight."""
        trie = self._trie
        begin, end = 1 + first, 1 + last
        for k in range(2, trie.order):
            # The contexts with these nearest words are adjacent.
            begin, end = map(int, trie.child_start[[begin, end]])
            parts = []
            for part in blocks(end - begin, self._work.block):
                bow = trie.bow[begin + part.start : begin + part.stop]
                chosen = np.flatnonzero(bow != NO_WEIGHT)
                rows = np.empty((len(chosen), k), dtype=np.int32)
                self._spell(begin + part.start + chosen, rows, parents)
                parts.append(Rows(rows, self._books[k][1].codes(bow[chosen])))
                self._release_pages(parents)
            yield _joined(k, parts)

    def _spell(self, contexts: AnyArray, out: Ids, parents: Ids) -> None:
        """Fill in the words of contexts, the nearest in the last column."""
        for column in range(out.shape[1]):
            out[:, column] = self._trie.context_word[contexts]
            contexts = parents[contexts]

    def _chosen_low(self, k: int) -> int:
        """Return the number of low bits of an offset, which records hold."""
        if k == self._trie.order:
            return 0
        width = word_bits(self._trie.n_words) + 2 * self._bits
        # Chosen so that the high parts grow by about one per n-gram.
        low = int(self._n[k + 1] // max(self._n[k], 1)).bit_length() - 1
        return max(0, min(low, MAX_WIDTH - width))

    def _pack(self, k: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Pack the nodes of `k` words from their files."""
        work, n = self._work, self._n[k]
        ends, low = k == self._trie.order, self._low[k]
        width = record_bits(self._trie.n_words, self._bits, low, ends=ends)
        place = np.uint64(width - low)
        records, high, sample = (
            arrays[f"{name}_{k}"] for name in ("records", "high", "sample")
        )
        names = self._files[k]
        # The last offset is that of the end, in a record of its own.
        for part in blocks(n if ends else n + 1, PACKED):
            place_in_file = part.start, min(part.stop, n) - part.start
            values = work.at(names[0], np.uint64, place_in_file)
            if not ends:
                after = work.at(names[1], np.int32, place_in_file).astype(np.int64)
                if part.stop > n:
                    values = np.append(values, np.uint64(0))
                    after = np.append(after, self._n[k + 1])
                values = values | (after & ((1 << low) - 1)).astype(np.uint64) << place
                put_offsets(after, part.start, low, high, sample)
            packed = pack_records(values, width)[:-READ_BYTES]
            at = part.start // 8 * width
            records[at : at + len(packed)] = packed
            work.advance(len(values))
            work.release_pages(records, high)
        work.remove(*names)

    def _release_pages(self, *arrays: AnyArray) -> None:
        self._work.release_pages(*self._trie.every_array, *arrays)


def unquantized(trie: SuffixTrie, work: Work) -> BackoffTrie:
    """Return the n-grams of a trie that only look-ups read, of nplm or of KenLM."""
    unigrams = trie.word_values()
    ids = np.arange(len(unigrams[0]), dtype=np.int32)[:, np.newaxis]
    tables = NgramTables(work, len(ids), unigrams[0])
    work.stage("reading", sum(map(trie.n_nodes, range(trie.order - 1))))
    arrays: dict[int, Ids] = {}
    for i in range(trie.order - 1):
        k = i + 2
        arrays[k] = work.array(np.int32, trie.n_nodes(i) * k)
        for first, offsets in _extensions(trie, i, work.block):
            begin, end = int(offsets[0]), int(offsets[-1])
            parents = np.arange(first, first + len(offsets) - 1, dtype=np.int32)
            newer = parents[:, np.newaxis]
            if i:
                newer = arrays[k - 1].reshape(-1, k - 1)[parents]
            words, prob, bow = trie.nodes(i, begin, end)
            nodes = arrays[k].reshape(-1, k)[begin:end]
            nodes[:, 0] = words
            nodes[:, 1:] = np.repeat(newer, np.diff(offsets), axis=0)
            # Suffixes of n-grams that the model lacks have neither.
            rows = ~np.isnan(prob) | (bow != NO_WEIGHT)
            table = NgramTable(nodes[rows], prob[rows], bow[rows])
            tables.add(trie.settled(table))
            work.advance(end - begin)
            work.release_pages(*trie.mapped(i))
        if i:
            work.drop(arrays.pop(k - 1))
    result = tables.trie(trie.order, NgramTable(ids, *unigrams))
    check_values(result)
    return result


def _extensions(trie: SuffixTrie, i: int, size: int) -> Iterator[tuple[int, Counts]]:
    """Yield a first node one word shorter than level `i`, and where extensions begin.

    The last of the offsets is the end of the block.
    """
    first, before = 0, np.empty(0, dtype=np.int64)
    for starts in trie.starts(i, size):
        offsets = np.concatenate([before, starts])
        for begin, end in blocks_of_contexts(offsets, 0, len(offsets) - 1, size):
            yield first + begin, offsets[begin : end + 1]
        first += len(offsets) - 1
        before = offsets[-1:]


def _joined(k: int, parts: list[Rows]) -> Rows:
    if not parts:
        return Rows(np.empty((0, k), dtype=np.int32), np.empty(0, dtype=np.uint16))
    return Rows(
        np.concatenate([part.words for part in parts]),
        np.concatenate([part.codes for part in parts]),
    )
