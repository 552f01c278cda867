"""The text of a fit of `AutoLM` in ids, and the part of it that is held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm.text.documents import Documents

__all__ = ["AutoText", "split"]

# Pieces, at equal distances, that are held out of a text; or its end, of fewer
# documents than this many.
N_PIECES = 10
MIN_DOCUMENTS = 100


@dataclass(frozen=True, eq=False)
class AutoText:
    """Training and held-out documents in ids.

    - `boundary`: id of the symbol that ends documents
    - `is_running`: whether the documents are one text in its order
    """

    train: Documents
    held_out: Documents | None
    n_words: int
    boundary: int
    is_running: bool

    @property
    def n_tokens(self) -> int:
        """Number of tokens to train on, ends of documents too."""
        return len(self.train.ids) + len(self.train.lengths)

    @property
    def n_held_out(self) -> int:
        """Number of held-out tokens."""
        if self.held_out is None:
            return 0
        return len(self.held_out.ids) + len(self.held_out.lengths)

    def joined(self, documents: Documents) -> NDArray[np.int32]:
        """Return documents as one text, with a boundary after each."""
        ends = np.cumsum(documents.lengths)
        return np.insert(documents.ids, ends, self.boundary).astype(np.int32)

    def of_network(self, documents: Documents, n_context: int) -> Any:
        """Return documents for a network, which predicts every token of them.

        They are one text or a list, with boundaries for the first contexts.
        """
        text, start = self.joined(documents), np.full(n_context, self.boundary)
        if self.is_running:
            return np.concatenate([start, text]).astype(np.int32)
        first = np.cumsum(documents.lengths + 1) - documents.lengths - 1
        where = np.repeat(first, n_context)
        padded = np.insert(text, where, self.boundary).astype(np.int32)
        return np.split(padded, (first + n_context * np.arange(len(first)))[1:])


def split(documents: Documents, n_tokens: int) -> tuple[Documents, Documents]:
    """Return documents without a part of about `n_tokens` tokens, and the part."""
    ids, lengths = documents.ids, documents.lengths
    if len(lengths) < MIN_DOCUMENTS:
        return _cut(documents, len(ids) - n_tokens)
    starts = np.cumsum(lengths) - lengths
    # Documents that begin in the last tokens of each of so many equal parts.
    a_part = len(ids) / N_PIECES
    is_held_out = starts % a_part >= a_part - n_tokens / N_PIECES
    if not is_held_out.any() or is_held_out.all():
        is_held_out = np.arange(len(lengths)) == len(lengths) - 1
    words = np.repeat(is_held_out, lengths)
    return (
        Documents(ids[~words], lengths[~is_held_out]),
        Documents(ids[words], lengths[is_held_out]),
    )


def _cut(documents: Documents, at: int) -> tuple[Documents, Documents]:
    """Cut documents at a token, which may be within one."""
    ends = np.cumsum(documents.lengths)
    before = np.clip(documents.lengths - np.maximum(ends - at, 0), 0, None)
    after = documents.lengths - before
    return (
        Documents(documents.ids[:at], before[before > 0]),
        Documents(documents.ids[at:], after[after > 0]),
    )
