"""Documents as word ids, and the texts that they make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from nplm.base.array_types import Floats, Ids, Index
from nplm.base.blocks import Texts, blocks
from nplm.base.checks import check_ids
from nplm.text.samples import check_document, check_documents

# Words that are put into texts at once.
WORDS_A_BLOCK = 1 << 18

ITEM = "an array of word ids"
ADVICE = (
    "Put a Tokenizer and a Vocabulary before the TextLM, or leave tokenizer and "
    "vocabulary at their defaults."
)
VALIDATION_ADVICE = (
    "In a Pipeline pass raw X_val by metadata routing: set_fit_request(X_val=True) of "
    "the TextLM, and transform_input=['X_val'] of the Pipeline."
)
FITTED_ADVICE = (
    "This model was fitted on ids: pass ids, which are p[:-1].transform([text]) if it "
    "is the last step of a Pipeline p."
)


class Documents(NamedTuple):
    """The word ids of documents, concatenated without boundaries, and their lengths."""

    ids: Ids
    lengths: Index

    @classmethod
    def of_ids(cls, X: object, name: str, n_words: int | None, start: int = 0) -> Self:
        """Check documents of ids, or raise an error that names what is wrong."""
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

    def texts(
        self,
        n_context: int,
        boundary: int,
        *,
        ends: bool,
        weights: Floats | None = None,
    ) -> Texts:
        """Put the documents into one array, whose windows are views.

        No window spans two documents: boundaries fill the context before each. With
        `ends` the end of a document is a token. A boundary inside a document ends a
        text.
        """
        last = np.cumsum(self.lengths)
        inside = np.flatnonzero(self.ids == boundary)
        stops = np.empty(0, np.intp)  # the tokens that end documents
        if ends:
            inside += np.searchsorted(last, inside, side="right")
            stops = last + np.arange(len(last))
            last = stops + 1
        last_of_documents = last
        if len(inside):
            last = np.sort(np.concatenate([last, inside + 1]), kind="stable")
        lengths = np.diff(last, prepend=0)
        if lengths.any() and not lengths.all():  # of empty documents
            last, lengths = last[lengths > 0], lengths[lengths > 0]
        first = last - lengths + n_context * np.arange(len(last))
        n_tokens = len(self.ids) + len(stops)
        ids = self.new_array((n_tokens + n_context * len(last),))
        ids[:] = boundary
        if weights is not None:
            weights = weights[np.searchsorted(last_of_documents, last)]
        texts = Texts(ids, n_context, first, lengths, 0, self.new_array, weights)
        for part in blocks(n_tokens, WORDS_A_BLOCK):
            i, j = np.searchsorted(stops, (part.start, part.stop))
            words = self.ids[part.start - i : part.stop - j]
            at = stops[i:j] - part.start - np.arange(j - i)
            texts.y[texts.rows(part)] = np.insert(words, at, boundary)
        return texts

    @staticmethod
    def new_array(shape: tuple[int, ...]) -> Ids:
        """Return an array for ids."""
        return np.empty(shape, np.int32)


def checked_document(ids: Any, name: str, n_words: int | None) -> Ids:
    """Return the ids of one document as int32, or raise an error that names it."""
    if isinstance(ids, str):
        advice = ADVICE if n_words is None else FITTED_ADVICE
        if name.startswith("X_val"):  # X was ids
            advice = VALIDATION_ADVICE
        raise TypeError(
            f"{name} is a string, {ids[:30]!r}: a document must be an array of word "
            f"ids. {advice}"
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
