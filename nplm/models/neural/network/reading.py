"""The order in which texts are read, side by side in mini-batches."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from nplm.base.blocks import Texts
from nplm.models.neural.network.array_types import Index

__all__ = ["MOST_COLUMNS", "READ_AT_ONCE", "columns_of"]

# Rows of a mini-batch, and texts that are read side by side.
READ_AT_ONCE, MOST_COLUMNS = 512, 64


def columns_of(texts: Texts, part: slice) -> Iterator[tuple[Index, Index]]:
    """Yield the rows of mini-batches of several texts side by side, and their tokens.

    - `part`: the texts
    """
    first, lengths = texts.first[part].tolist(), texts.lengths[part].tolist()
    begin = texts.begin[part].tolist()
    waiting = (text for text in zip(first, begin, lengths) if text[2])
    going: list[tuple[int, int, int]] = []
    while True:
        going += islice(waiting, MOST_COLUMNS - len(going))
        if not going:
            return
        share = READ_AT_ONCE // len(going)
        pieces = [(row, at, min(left, share)) for row, at, left in going]
        yield (
            np.concatenate([np.arange(row, row + n) for row, _, n in pieces]),
            np.concatenate([np.arange(at, at + n) for _, at, n in pieces]),
        )
        going = [
            (row + n, at + n, left - n)
            for (row, at, n), (_, _, left) in zip(pieces, going)
            if left > n
        ]
