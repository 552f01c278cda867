"""Read binary files of KenLM: the n-grams, without a model of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams.decoding._kenlm_files import KenlmIds
from nplm.base.encoded_words import EncodedWords
from nplm.formats._ngrams import Ngrams
from nplm.formats._words import BEGIN, END
from nplm.formats.kenlm.layout import layout_of
from nplm.models.ngrams.kenlm_trie import KenlmTrie
from nplm.text.words.known_words import UNKNOWN

__all__ = ["read_ngrams"]

NUL, LINE_FEED = 0, 10


def read_ngrams(
    file: BinaryIO, path: Path, *, verify: bool, mmap: bool = True
) -> Ngrams[KenlmTrie]:
    """Read the n-grams of an open file.

    - `file`: the file, as KenLM wrote it
    - `verify`: whether to check all of it
    - `mmap`: whether the n-grams stay in the file

    Raises ValueError if it is of another version, has no marks of sentences, or is
    damaged.
    """
    data = np.memmap(file, np.uint8, "r")
    try:
        layout = layout_of(data)
        memory = data if mmap else np.array(data)
        trie = KenlmTrie(os.fspath(path), memory, **layout.places)
        if trie.boundary is None:
            raise ValueError(
                f"it has no {BEGIN} or no {END}, the marks of the ends of lines: build "
                "it from an ARPA file that has them"
            )
        words: EncodedWords = HashedWords(trie)
        if layout.strings is not None:
            words = _words(data[layout.strings :], trie)
        if verify:
            _check(trie, words)
    except ValueError as error:
        raise ValueError(
            f"{path} is a binary file of KenLM that cannot be read: {error}."
        ) from error
    return Ngrams(trie, None, trie.boundary, words)


class HashedWords(EncodedWords):
    """The words of a file that has their hashes only (``build_binary -v``).

    They are found, but not listed: this raises ValueError.
    """

    def __init__(self, trie: KenlmTrie) -> None:
        self._trie = trie
        self.ids = KenlmIds(trie.kernel)

    def tolist(self) -> NoReturn:
        """Raise ValueError."""
        raise ValueError(
            f"{self._trie.name} has hashes in place of words (build_binary -v): it "
            "scores text, but its words cannot be listed. Build it without -v."
        )

    def check(self) -> None:
        """Check nothing: any hashes are those of some words."""

    def __len__(self) -> int:
        return self._trie.n_words

    def __getitem__(self, index: Any) -> Any:
        known = {0: UNKNOWN[0], self._trie.boundary: END}
        return known[index] if index in known else self.tolist()

    def __reduce__(self) -> Any:
        return type(self), (self._trie,)


def _words(text: NDArray[np.uint8], trie: KenlmTrie) -> EncodedWords:
    """Return the words without ``<s>``, whose letters follow the n-grams."""
    ends = np.flatnonzero(text == NUL)
    if len(ends) != trie.words[2] or len(text) != ends[-1] + 1:
        raise ValueError(f"it is truncated: it has {len(ends)} words")
    begin = trie.kernel.begin
    first, last = ends[begin - 1] + 1, ends[begin] + 1
    if text[:6].tobytes() != b"<unk>\0" or text[first:last].tobytes() != b"<s>\0":
        raise ValueError("its words are not at their places")
    own = np.concatenate([text[:first], text[last:]])[:-1]
    own[own == NUL] = LINE_FEED
    return EncodedWords.of_lines(own, trie.name)


def _check(trie: KenlmTrie, words: EncodedWords) -> None:
    """Raise ValueError if numbers are out of range, or words have other hashes."""
    trie.check()
    words.check()
    if not isinstance(words, HashedWords):
        ids = KenlmIds(trie.kernel)
        if [ids.get(word) for word in words.tolist()] != list(range(len(words))):
            raise ValueError("its words do not have its hashes")
