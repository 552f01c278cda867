"""A corpus: three parts of a text as word ids, and their windows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nplm.text.vocabulary import Vocabulary
from nplm.text.windows import windows

PARTS = ("train", "valid", "test")
KEYS = (*PARTS, "words", "n_words", "boundary", "vocabulary", "DESCR")
Windows = tuple[NDArray[np.int32], NDArray[np.int32]]


class CorpusWindows(NamedTuple):
    """Windows ``(X, y)`` of the three parts of a corpus, as from `nplm.windows`."""

    train: Windows
    valid: Windows
    test: Windows


@dataclass(frozen=True, repr=False, eq=False)
class Corpus(Mapping[str, Any]):
    """A text as word ids: a training, a validation and a test part.

    The functions of `nplm.datasets` return it. Its values are attributes and items:
    ``corpus.train`` is ``corpus["train"]``.

    Parameters
    ----------
    name : str
        Name of the corpus.
    train, valid, test : ndarray of int32, shape (n_tokens,)
        Word ids of the consecutive parts, in text order.
    vocabulary : Vocabulary
        The fitted vocabulary, which maps tokens of other texts to ids.
    boundary : int or None
        Id of the mark that ends each document or sentence; None for one stream of
        text.
    DESCR : str, default=""
        The origin of the text, a blank line, and figures.

    Attributes
    ----------
    words : ndarray of object (str), shape (n_words,)
        The word of each id.
    n_words : int
        Size of the vocabulary, special symbols included.

    Notes
    -----
    A corpus is immutable. ``dataclasses.replace(corpus, boundary=None)`` returns the
    same text as one stream, and ``replace(corpus, train=corpus.train[:100_000])``
    one with a shorter training part.

    Examples
    --------
    >>> from nplm import Vocabulary
    >>> from nplm.datasets import Corpus
    >>> text = "a rose is a rose is a rose".split()
    >>> vocabulary = Vocabulary(boundary=None).fit([text])
    >>> [ids] = vocabulary.transform([text])
    >>> corpus = Corpus("roses", ids[:4], ids[4:6], ids[6:], vocabulary, None)
    >>> corpus
    <Corpus roses: one stream of 4 types
     train 4, valid 2, test 2 tokens>
    >>> X, y = corpus.windows(2).test
    >>> corpus.words[X].tolist(), corpus.words[y].tolist()
    ([['rose', 'is'], ['is', 'a']], ['a', 'rose'])
    """

    name: str
    train: NDArray[np.int32]
    valid: NDArray[np.int32]
    test: NDArray[np.int32]
    vocabulary: Vocabulary
    boundary: int | None
    DESCR: str = ""

    @property
    def words(self) -> NDArray[np.object_]:
        """The word of each id."""
        return self.vocabulary.words_

    @property
    def n_words(self) -> int:
        """Size of the vocabulary, special symbols included."""
        return self.vocabulary.n_words_

    def windows(self, n_context: int) -> CorpusWindows:
        """Return the contexts and next words of each part.

        Every token has a window, except the first few of a stream. If there is a
        boundary, no context crosses it. In one stream, the first words of a part
        have the end of the previous part as context.

        Parameters
        ----------
        n_context : int
            Words of context in each window: the order of a model minus one.

        Returns
        -------
        train, valid, test : tuple of (X, y)
            Windows of each part, as `nplm.windows` returns them; none for an empty
            part. Also available by name, as ``corpus.windows(4).test``.
        """
        train = self._cut(self.train, n_context, None)
        before_test = np.concatenate([self.train[-n_context:], self.valid])
        return CorpusWindows(
            train,
            self._cut(self.valid, n_context, self.train),
            self._cut(self.test, n_context, before_test),
        )

    def documents(self, part: str) -> list[list[Any]]:
        """Return the documents of a part as lists of words, for a `TextLM`.

        Parameters
        ----------
        part : {"train", "valid", "test"}
            Name of the part.

        Returns
        -------
        documents : list of list of str
            The documents without the boundary. The first and the last may be
            incomplete, as a part may begin and end within a document.

        Raises
        ------
        ValueError
            If the corpus is one stream, without documents, or there is no such part.
        """
        if part not in PARTS:
            raise ValueError(f'part must be "train", "valid" or "test", got {part!r}.')
        if self.boundary is None:
            raise ValueError(
                f"{self.name} is one stream, without documents: use its windows, or "
                "set its boundary with dataclasses.replace."
            )
        ids = self[part]
        ends = np.flatnonzero(ids == self.boundary)
        pieces = np.split(ids, ends + 1)
        return [
            self.words[piece[piece != self.boundary]].tolist()
            for piece in pieces
            if len(piece)
        ]

    def _cut(
        self, ids: NDArray[np.int32], n_context: int, before: NDArray[np.int32] | None
    ) -> Windows:
        if len(ids) == 0:
            return np.empty((0, n_context), np.int32), np.empty(0, np.int32)
        if self.boundary is not None:
            return windows(ids, n_context, boundary=self.boundary)
        return windows(ids, n_context, history=before)

    def oov_rates(self) -> dict[str, float]:
        """Return the fraction of tokens outside the vocabulary, for each part.

        Returns
        -------
        rates : dict of str to float
            Rates of "train", "valid" and "test"; 0 for an empty part.
        """
        unknown = self.vocabulary.unknown_id_
        return {
            part: np.count_nonzero(self[part] == unknown) / max(len(self[part]), 1)
            for part in PARTS
        }

    def __getitem__(self, key: str) -> Any:
        if key not in KEYS:
            raise KeyError(key)
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return iter(KEYS)

    def __len__(self) -> int:
        return len(KEYS)

    # Compared by identity: arrays have no single truth value and no hash.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        kind = "one stream"
        if self.boundary is not None:
            kind = f"documents that end with {self.words[self.boundary]}"
        tokens = ", ".join(f"{part} {len(self[part]):,}" for part in PARTS)
        lines = [
            f"<Corpus {self.name}: {kind} of {self.n_words:,} types",
            f"{tokens} tokens",
            # The origin only: the figures are in the lines above.
            *self.DESCR.partition("\n\n")[0].splitlines(),
        ]
        return "\n ".join(lines) + ">"
