"""Sources of an estimation in bounded memory: texts, or tables of counts."""

from __future__ import annotations

import io
import os
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, BinaryIO, cast

import numpy as np

from nplm.base.array_types import Counts
from nplm.base.exceptions import parameter_error
from nplm.base.files.compressed import reading, unpacking_errors
from nplm.formats._words import StoredWords
from nplm.models.ngrams.stages.runs import Packing, Run, Source, streams, write_runs
from nplm.models.ngrams.trie.work import Work
from nplm.text.streams import Tokens, WordStream
from nplm.text.words.known_words import KnownWords, WordChoice, chosen_words
from nplm.text.words.splitting import Splitter, marks_of

IDS = "ids"


def choose_words(choice: WordChoice, counts: Mapping[Any, int]) -> KnownWords:
    """Choose the words of a model among those counted, or raise if one is refused."""
    known = chosen_words(choice, {word: n for word, n in counts.items() if n > 0})
    if known.unknown_id is None:
        known.refuse_unknown([word for word in counts if word not in known.ids])
    return known


class TextSource(Source):
    """N-grams of lines of words, with `counts` (n_words,) once the runs are written.

    `n_known` words take memory while n-grams are counted.
    """

    n_known: int
    counts: Counts

    def words(self, work: Work) -> StoredWords:
        """Find and return the words."""
        raise NotImplementedError


class Texts(TextSource):
    """Text files, and the choice of their words."""

    def __init__(
        self,
        texts: Iterable[Any],
        choice: WordChoice,
        splitter: Splitter | None,
        blank_lines: bool,
    ) -> None:
        self._texts, self._choice, self._splitter = texts, choice, splitter
        self._blank_lines = blank_lines

    def words(self, work: Work) -> StoredWords:
        """Choose the words, and write all texts as ids in order of appearance."""
        boundary = cast(str, self._choice.boundary)
        stream = WordStream(*marks_of(boundary), blank_lines=self._blank_lines)
        work.stage("reading", 0)
        for text in self._texts:
            with _opened(text) as (file, name):
                if self._splitter is not None:
                    tokens = Tokens(file, self._splitter, name, boundary)
                    file = cast(BinaryIO, tokens)
                for part in stream.read(file, name):
                    work.append(IDS, part)
                    work.advance(len(part))
        if stream.n_tokens == 0:
            raise parameter_error(
                "the texts have no word: there is nothing to estimate from.",
                advice=" If texts is an iterator, or one of them an open file, it can "
                "be read only once: open it again.",
            )
        spelled, counts = stream.words(), stream.counts
        seen: dict[Hashable, int] = {
            word: n for word, n in zip(spelled, counts.tolist()) if n > 0
        }
        known = choose_words(self._choice, seen)
        ids, unknown = known.ids_and_unknown
        end = cast(int, known.boundary_id)
        # New ids of the words in order of appearance, then that of the line end.
        new_ids = [ids.get(word, unknown) for word in spelled]
        self._new_ids = np.array([*new_ids, end], dtype=np.int32)
        self.counts = np.zeros(len(known), dtype=np.int64)
        np.add.at(self.counts, self._new_ids, np.append(counts, stream.n_lines))
        self.n_known = max(len(self._new_ids), len(known))
        return StoredWords.of(known, end, self._splitter)

    def runs(self, packing: Packing, work: Work) -> tuple[list[Run], Counts]:
        if packing.order == 1:
            return [], self.counts
        n_tokens = work.size(IDS) // 4
        work.stage("sorting n-grams", n_tokens, n_tokens * packing.row_bytes)
        runs = write_runs(packing, streams(packing, IDS, self._new_ids, work), work)
        work.remove(IDS)
        return runs, self.counts


@contextmanager
def _opened(text: Any) -> Iterator[tuple[BinaryIO, str]]:
    is_file = hasattr(text, "read")
    if isinstance(text, io.TextIOBase) or not (
        is_file or isinstance(text, (str, bytes, os.PathLike))
    ):
        raise TypeError(
            f"texts has an item of type {type(text).__name__}: pass the name of a "
            "file, or a file open for reading bytes (mode 'rb')."
        )
    name = str(getattr(text, "name", "the text")) if is_file else os.fspath(text)
    opened = nullcontext(cast(BinaryIO, text)) if is_file else reading(text, pipes=True)
    with opened as file:
        try:
            yield file, name
        except unpacking_errors() as error:  # of a file that the caller opened
            raise ValueError(
                f"{name} cannot be decompressed ({error}): it is damaged or truncated."
            ) from None
