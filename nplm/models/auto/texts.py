"""The text of a fit of `AutoLM` in ids, and the part of it that is held out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nplm.base.blocks import Texts
from nplm.text.documents import Documents

__all__ = ["AutoText", "split"]

# Pieces, at equal distances, that are held out of a text; or its end, of fewer
# documents than this many.
N_PIECES = 30
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

    def texts(self, documents: Documents, n_context: int) -> Texts:
        """Return documents as texts, of which every token is predicted."""
        if self.is_running:
            whole = [self.joined(documents)]
            return Texts.of(whole, n_context, self.boundary, ends=False)
        return documents.texts(n_context, self.boundary, ends=True)


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
