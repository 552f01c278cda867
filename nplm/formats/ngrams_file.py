"""NgramsFile: a file of n-grams to be written."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from nplm.formats._words import StoredWords
from nplm.formats.arpa import arpa_lines as arpa
from nplm.formats.arpa.text_fst import BACKOFF, write_fst_of
from nplm.formats.binary import writing
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.work import Work
from nplm.text.words.splitting import Splitter


@dataclass
class NgramsFile:
    """A file of n-grams to be written; a code of a quantized file has `bits`."""

    path: str | os.PathLike[str]
    kind: Literal["arpa", "binary", "fst"]
    bits: int | None = None
    symbols: str | os.PathLike[str] | None = None
    backoff: str = BACKOFF

    def check(self, order: int, splitter: Splitter | None) -> None:
        """Raise ValueError if no file of this kind holds such a model."""
        if self.kind == "binary" and splitter is not None:
            writing.check_tokenizer(splitter)
        if self.bits is not None:
            writing.check_bits(self.bits, order)

    def write(
        self,
        trie: BackoffTrie,
        words: StoredWords,
        work: Work,
        *,
        is_whole: bool = False,
    ) -> None:
        """Write the file in memory, or in a folder with the trie; see `Estimate`."""
        if self.kind == "arpa":
            arguments = words.words, words.boundary, work
            arpa.write_ngrams(self.path, trie, *arguments, is_whole=is_whole)
        elif self.kind == "fst":
            arguments = words.words, words.boundary, work
            write_fst_of(trie, self.path, *arguments, self.symbols, self.backoff)
        elif self.bits is not None:
            writing.check_bits(self.bits, trie.order)
            writing.write_quantized(self.path, words, trie, self.bits, work)
        else:
            writing.write_mapped(self.path, words, trie, work)
