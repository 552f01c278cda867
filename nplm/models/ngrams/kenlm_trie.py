"""KenlmTrie: the n-grams in a binary file of KenLM, which are looked up as they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams.decoding._kenlm_files import KenlmNgrams
from nplm.base.array_types import Bytes, Counts, Floats, Ids
from nplm.base.blocks import blocks
from nplm.models.ngrams.trie import trie_checks
from nplm.models.ngrams.trie.hash_table import WindowLookUps

# SRILM and KenLM write -99 or -100 for log10 of 0.
LOG_ZERO = -98.0
# Far above the log10 of any back-off weight; SRILM writes -99 for 0.
MAX_LOG10_WEIGHT = 100.0


@dataclass(frozen=True, eq=False)
class KenlmTrie(WindowLookUps, trie_checks.SuffixTrie):
    """The n-grams of a binary file of KenLM, of any kind; the fields are its kernel's.

    Ids are KenLM's without ``<s>``. Hash tables (not `is_trie`) have no words of their
    n-grams, which thus cannot be listed.
    """

    name: str
    memory: Bytes
    counts: list[int]
    words: tuple[int, int, int]
    unigrams: int
    levels: list[tuple[object, ...]]
    is_trie: bool
    # Each context is an n-gram, and each suffix is there: build_binary sees to it.
    closed = True

    @cached_property
    def kernel(self) -> KenlmNgrams:
        """The n-grams in the form that kernels take."""
        layout = self.words, self.unigrams, self.levels, self.is_trie
        return KenlmNgrams(self.memory, *layout)

    @cached_property
    def n_ngrams(self) -> Counts:  # type: ignore[override]
        """Number of n-grams of each order, with those that KenLM inserted."""
        return np.array([self.kernel.n_words, *self.counts[1:]])

    @property
    def boundary(self) -> int | None:
        """Id of the boundary; None if ``<s>`` or ``</s>`` is no word."""
        boundary = int(self.kernel.boundary)
        return boundary if boundary >= 0 else None

    def __getstate__(self) -> dict[str, object]:
        # Not the kernel, which is quick to make again.
        state = {field.name: getattr(self, field.name) for field in fields(self)}
        return state | {"memory": np.asarray(self.memory)}

    def check(self, size: int = 1 << 16) -> None:
        """Raise ValueError if numbers are out of range; of hash tables, of words."""
        if self.is_trie:
            trie_checks.check_suffix_trie(self, size)
        else:
            self.word_values()

    def word_values(self) -> tuple[Floats, Floats]:
        return self._powers(self.kernel.unigram_prob, self.kernel.unigram_bow)

    def n_nodes(self, i: int) -> int:
        return self.counts[i + 1]

    def starts(self, i: int, size: int) -> Iterator[Counts]:
        if not self.is_trie:
            raise ValueError(
                f"{self.name} is a hash table of KenLM (probing): it has hashes of its "
                "n-grams, so they cannot be listed, only looked up. Give the ARPA file "
                "that it was built from, or a trie."
            )

        def parts() -> Iterator[Counts]:
            for part in blocks(self.counts[i] + 1, size):
                starts = np.empty(part.stop - part.start, np.int64)
                self.kernel.fill_starts(i - 1, part.start, starts)
                yield starts

        return trie_checks.offsets_in_order(parts(), i + 1, self.n_nodes(i))

    def nodes(self, i: int, begin: int, end: int) -> tuple[Ids, Floats, Floats]:
        words = np.empty(end - begin, np.int32)
        prob, bow = np.empty((2, end - begin), np.float32)
        self.kernel.fill_records(i, begin, words, prob, bow)
        if len(words) and not 0 <= words.min() <= words.max() < self.counts[0]:
            raise self._damaged(f"its {i + 2}-grams have words")
        return words, *self._powers(prob, bow)

    def mapped(self, i: int) -> list[NDArray[Any]]:
        return [self.memory]

    def settled(self, table: Any) -> Any:
        """Return n-grams with ids of nplm; those with a mark inside have NaN."""
        ngrams, prob, bow = table
        begin, end = self.kernel.begin, self.kernel.end
        never = (ngrams[:, 1:] == begin).any(axis=1) | (ngrams[:, :-1] == end).any(1)
        ids: NDArray[Any] = ngrams - (ngrams > begin)
        ids = np.where(ngrams == begin, self.kernel.boundary, ids)
        return table._replace(
            ngrams=ids.astype(np.int32),
            prob=np.where(never, np.nan, prob),
            bow=np.where(never | (ngrams[:, -1] == end), np.nan, bow),
        )

    def _powers(
        self, prob: NDArray[np.float32], bow: NDArray[np.float32]
    ) -> tuple[Floats, Floats]:
        """Return probabilities and weights of their log10."""
        if not ((prob <= 0).all() and (np.abs(bow) <= MAX_LOG10_WEIGHT).all()):
            raise self._damaged("its n-grams have numbers")
        return _power(prob), _power(bow)

    def _damaged(self, what: str) -> ValueError:
        return ValueError(
            f"{self.name} is damaged: {what} out of range; build it again."
        )


def _power(log10: NDArray[np.float32]) -> Floats:
    """Return 10 to the given power, 0 for -99."""
    return np.where(log10 < LOG_ZERO, 0.0, 10.0 ** log10.astype(np.float64))
