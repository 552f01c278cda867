"""What an estimation in bounded memory begins with: texts, or tables of counts."""

from __future__ import annotations

import io
import os
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, BinaryIO, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from nplm.base.files.compressed import UNPACKING_ERRORS, reading
from nplm.formats._words import BEGIN, END, check_words
from nplm.models.ngrams.external.runs import Packing, write_runs
from nplm.models.ngrams.external.scratch import Scratch
from nplm.text.streams import WordStream
from nplm.text.vocabulary import Vocabulary

__all__ = ["Source", "Texts", "Words"]

IDS = "ids"


class Words:
    """A vocabulary as a file has it: no more Python words.

    Attributes
    ----------
    text : ndarray of uint8
        All words, a line each.
    n_words : int
        How many.
    boundary : int
        Id of the one that ends a line.
    unknown : int
        Id of the one that stands for all others, -1 if there is none.
    """

    def __init__(self, words: Sequence[str], boundary: int, unknown: int) -> None:
        self.text = np.frombuffer("\n".join(words).encode(), dtype=np.uint8)
        self.n_words, self.boundary, self.unknown = len(words), boundary, unknown

    def spelled(self) -> list[str]:
        """Return them as Python has them."""
        return self.text.tobytes().decode().split("\n")


class Source(Protocol):
    """Where n-grams come from."""

    @property
    def n_known(self) -> int:
        """Words that have a place in memory while n-grams are counted."""

    @property
    def counts(self) -> NDArray[np.int64]:
        """How often each word comes, when the runs have been written."""

    def words(self, scratch: Scratch) -> Words:
        """Find the words."""

    def runs(self, packing: Packing, scratch: Scratch) -> list[str]:
        """Write runs of n-grams (none of single words); name their files."""


class Texts:
    """Text files, and how their words are chosen."""

    def __init__(self, texts: Iterable[Any], vocabulary: Vocabulary) -> None:
        self._texts, self._vocabulary = texts, vocabulary

    def words(self, scratch: Scratch) -> Words:
        """Write the ids of all texts, in the order in which words come."""
        vocabulary = self._vocabulary
        # As lmplz: <s> and </s> in a text are not taken for words.
        boundary = cast(str, vocabulary.boundary)
        stream = WordStream(boundary, *([BEGIN] if boundary == END else []))
        scratch.stage("reading", 0)
        with scratch.writing(IDS) as out:
            for text in self._texts:
                with _opened(text) as (file, name):
                    for part in stream.read(file, name):
                        out.write(part.data)
                        scratch.tell(len(part))
        if stream.n_tokens == 0:
            raise ValueError(
                "the texts have no word: there is nothing to estimate from. If texts "
                "is an iterator, or one of them an open file, it gives its lines only "
                "once: open it anew."
            )
        spelled, counts = stream.words(), stream.counts
        seen: dict[Hashable, int] = {
            word: n for word, n in zip(spelled, counts.tolist()) if n > 0
        }
        vocabulary._choose(seen)
        words = check_words(vocabulary.words_.tolist(), vocabulary.n_words_)
        ids, unknown = vocabulary.ids_, vocabulary.unknown_id_
        if unknown is None:
            left = [word for word in seen if word not in ids]
            if left:
                vocabulary._check_unknown(left)
            unknown = -1
        end = cast(int, vocabulary.boundary_id_)
        # Of the words as they came, and last what stands after a line.
        found = [ids.get(word, unknown) for word in spelled]
        self._new_ids = np.array([*found, end], dtype=np.int32)
        self._counts = np.append(counts, stream.n_lines)
        self._n_words = len(words)
        del self._vocabulary
        return Words(words, end, unknown)

    @property
    def n_known(self) -> int:
        """Words that were met."""
        return max(len(self._new_ids), self._n_words)

    def runs(self, packing: Packing, scratch: Scratch) -> list[str]:
        """Write runs of n-grams (none of single words); name their files."""
        if packing.order == 1:
            return []
        return write_runs(packing, IDS, self._new_ids, scratch)

    @property
    def counts(self) -> NDArray[np.int64]:
        """How often each word comes."""
        counts = np.zeros(self._n_words, dtype=np.int64)
        np.add.at(counts, self._new_ids, self._counts)
        return counts


@contextmanager
def _opened(text: Any) -> Iterator[tuple[BinaryIO, str]]:
    is_file = hasattr(text, "read")
    if isinstance(text, io.TextIOBase) or not (
        is_file or isinstance(text, (str, bytes, os.PathLike))
    ):
        raise TypeError(
            f"texts has an item of type {type(text).__name__}: a text is the name of a "
            "file, or a file that is open for reading bytes (mode 'rb')."
        )
    name = str(getattr(text, "name", "the text")) if is_file else os.fspath(text)
    given = nullcontext(cast(BinaryIO, text)) if is_file else reading(text, pipes=True)
    with given as file:
        try:
            yield file, name
        except UNPACKING_ERRORS as error:  # of a file that the caller has opened
            raise ValueError(
                f"{name} cannot be unpacked ({error}): it is damaged or cut short."
            ) from None
