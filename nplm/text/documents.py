"""Documents as word ids, and the windows over them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from nplm.base.blocks import Texts
from nplm.base.checks import check_ids
from nplm.text.samples import check_document, check_documents
from nplm.text.windows import windows

__all__ = ["Documents", "checked_document"]

# Words that are cut into windows at once.
WORDS_A_BLOCK = 1 << 18

ITEM = "an array of word ids"
ADVICE = (
    "Put a Tokenizer and a Vocabulary before the TextLM, or leave tokenizer and "
    "vocabulary at their defaults."
)
FITTED_ADVICE = (
    "This model was fitted on ids: pass ids, which are p[:-1].transform([text]) if it "
    "is the last step of a Pipeline p."
)


class Documents(NamedTuple):
    """The word ids of documents, concatenated.

    - `ids` (n_tokens,): ids of all documents, without boundaries between them
    - `lengths` (n_documents,): number of tokens in each document
    """

    ids: NDArray[np.int32]
    lengths: NDArray[np.intp]

    @classmethod
    def of_ids(cls, X: object, name: str, n_words: int | None, start: int = 0) -> Self:
        """Check documents of ids, or raise an error that names what is wrong.

        `start` is the index of the first, for errors.
        """
        documents = check_documents(X, ITEM, ADVICE, name)
        checked = [
            checked_document(ids, f"{name}[{i}]", n_words)
            for i, ids in enumerate(documents, start)
        ]
        lengths = np.array([len(ids) for ids in checked], dtype=np.intp)
        return cls(np.concatenate([np.empty(0, np.int32), *checked]), lengths)

    def find(self, i: int) -> tuple[int, int]:
        """Return the document of the i-th id, and its position in the document."""
        ends = np.cumsum(self.lengths)
        document = int(np.searchsorted(ends, i, side="right"))
        return document, int(i - ends[document] + self.lengths[document])

    def texts(self, n_context: int, boundary: int, *, ends: bool) -> Texts:
        """Put the documents into one array, whose windows are views; see `windows`.

        A boundary inside a document ends a text.
        """
        ends_of = np.cumsum(self.lengths)
        ids = np.insert(self.ids, ends_of, boundary) if ends else self.ids
        starts = np.concatenate(
            [[0], ends_of[:-1] + ends * np.arange(1, len(ends_of)),
             np.flatnonzero(ids[:-1] == boundary) + 1]
        )  # fmt: skip
        starts = np.unique(starts[(starts < len(ids)) | (starts == 0)])
        first = starts + n_context * np.arange(len(starts))
        lengths = np.diff(starts, append=len(ids))
        filled = np.full(len(ids) + n_context * len(starts), boundary, np.int32)
        filled[np.arange(len(ids)) + np.repeat(first - starts + n_context, lengths)] = (
            ids
        )
        return Texts(filled, n_context, first, lengths, 0)

    def windows(
        self, n_context: int, boundary: int, *, ends: bool
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Cut the documents into windows, none of which spans two documents.

        - `n_context`: words of context in each window
        - `boundary`: id of the boundary, which fills the context before a document
        - `ends`: whether the end of a document is a token
        - returns `contexts` (n_tokens, n_context): the words before each token, the
          nearest in the last column
        - returns `targets` (n_tokens,): id of each token

        Besides the windows it takes memory for one block of words only.
        """
        n_tokens = len(self.ids) + (len(self.lengths) if ends else 0)
        contexts = self._new_array((n_tokens, n_context))
        targets = self._new_array((n_tokens,))
        history, row = np.empty(0, np.int32), 0
        for stream, inside in self._with_boundaries(boundary):
            X, y = windows(stream, n_context, history=history, boundary=boundary)
            if not ends:
                X, y = X[inside], y[inside]
            contexts[row : row + len(y)], targets[row : row + len(y)] = X, y
            history = np.concatenate([history, stream])[-n_context:]
            row += len(y)
        return contexts, targets

    def _new_array(self, shape: tuple[int, ...]) -> NDArray[np.int32]:
        return np.empty(shape, np.int32)

    def _with_boundaries(
        self, boundary: int
    ) -> Iterator[tuple[NDArray[np.int32], NDArray[np.bool_]]]:
        """Yield blocks of ids with a boundary after each document.

        The second array says which ids are words.
        """
        ends = np.cumsum(self.lengths)
        first = np.intp(0)
        for start in range(0, max(len(self.ids), 1), WORDS_A_BLOCK):
            ids = self.ids[start : start + WORDS_A_BLOCK]
            last = np.searchsorted(ends, start + len(ids), side="right")
            after = ends[first:last] - start
            is_word = np.insert(np.ones(len(ids), dtype=bool), after, False)
            yield np.insert(ids, after, boundary), is_word
            first = last


def checked_document(ids: Any, name: str, n_words: int | None) -> NDArray[np.int32]:
    """Return the ids of one document as int32, or raise an error that names it."""
    if isinstance(ids, str):
        raise TypeError(
            f"{name} is a string, {ids[:30]!r}: a document must be an array of word "
            f"ids. {ADVICE if n_words is None else FITTED_ADVICE}"
        )
    check_document(ids, name, ITEM, ADVICE)
    if not isinstance(ids, Sequence) and np.ndim(ids) == 0:
        raise TypeError(
            f"{name} is {ids!r}: a document must be an array of word ids; pass a "
            "single document in a list."
        )
    try:
        return check_ids(ids, name, ndim=1, n_words=n_words)
    except TypeError:  # items that cannot be converted to numbers
        raise TypeError(
            f"{name} must hold word ids, whole numbers from 0, but some of its items "
            "are not numbers."
        ) from None
    except ValueError as error:
        if n_words is None or f"n_words={n_words}" not in str(error):
            raise
        raise ValueError(
            f"{error} To score words that are not in the training documents, set "
            "n_words of the TextLM's estimator to the size of the vocabulary."
        ) from None
