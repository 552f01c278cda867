"""Windows over a stream of word ids, and contiguous splits of a stream."""

from __future__ import annotations

import numbers
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from nplm.base.array_types import Ids
from nplm.base.checks import MAX_N_WORDS, check_ids


def windows(
    ids: ArrayLike,
    n_context: int,
    *,
    history: ArrayLike | None = None,
    boundary: int | None = None,
) -> tuple[Ids, Ids]:
    """Cut a stream of word ids into contexts and next words.

    Parameters
    ----------
    ids : array-like of int, shape (n_tokens,)
        Word ids in text order.
    n_context : int
        Words of context in each window, the order of a model minus one.
    history : array-like of int, optional
        The ids before `ids` in the text (a validation part follows the training
        part): its last `n_context` ids are the context of the first token, which
        then has a window too.
    boundary : int, optional
        The id of a symbol that ends a sentence, such as ``</s>``. No context
        reaches past it: it replaces all ids before the nearest boundary, and all
        before the start of the stream.

    Returns
    -------
    X : ndarray of int32, shape (n_windows, n_context)
        Contexts in text order, the nearest word in the last column. Without a
        boundary this is a read-only view: a stream of any length costs no copy.
    y : ndarray of int32, shape (n_windows,)
        The id of the word after each context; read-only too.

    Notes
    -----
    There is one window per token if `history` or `boundary` is given, else
    ``len(ids) - n_context``.

    Examples
    --------
    >>> from nplm import windows
    >>> X, y = windows([7, 8, 9, 7], 2)
    >>> X.tolist(), y.tolist()
    ([[7, 8], [8, 9]], [9, 7])
    >>> X, y = windows([7, 8, 0, 9], 2, boundary=0)
    >>> X.tolist(), y.tolist()
    ([[0, 0], [0, 7], [7, 8], [0, 0]], [7, 8, 0, 9])
    """
    _check_whole(n_context, "n_context", 1)
    n_context = int(n_context)  # NumPy's int8 overflows in sums
    stream = check_ids(ids, "ids", ndim=1)
    if len(stream) == 0:
        raise ValueError("ids is empty: there is no token to make a window of.")
    if boundary is not None:
        _check_whole(boundary, "boundary", 0)

    before = np.empty(0, dtype=np.int32)
    if history is not None:
        before = check_ids(history, "history", ndim=1)
        if len(before) < n_context and boundary is None:
            raise ValueError(
                f"history has {len(before)} ids, but windows with n_context="
                f"{n_context} need {n_context} before the first token; pass a "
                "longer history or history=None."
            )
        before = before[len(before) - min(n_context, len(before)) :]
    if boundary is not None:
        missing = n_context - len(before)
        padding = np.full(missing, boundary, dtype=np.int32)
        before = np.concatenate([padding, before])
    if len(before):
        stream = np.concatenate([before, stream])
    if len(stream) <= n_context:
        raise ValueError(
            f"{len(stream)} ids are too few for a window of {n_context} words of "
            "context and the next word; pass more ids, a history or a boundary."
        )

    X = np.lib.stride_tricks.sliding_window_view(stream[:-1], n_context)
    y = stream[n_context:]
    y.flags.writeable = False
    if boundary is not None:
        X = X.copy()
        # Spread each boundary from the nearest word to all earlier columns.
        for column in range(n_context - 2, -1, -1):
            X[X[:, column + 1] == boundary, column] = boundary
    return X, y


def _check_whole(value: object, name: str, least: int) -> None:
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or not least <= cast(int, value) < MAX_N_WORDS:
        raise ValueError(
            f"{name} must be a whole number from {least} and below {MAX_N_WORDS}, "
            f"got {value!r}."
        )


def contiguous_split(
    ids: ArrayLike, *, valid: float | int = 0.1, test: float | int = 0.1
) -> tuple[Ids, Ids, Ids]:
    """Split a stream into a training, a validation and a test part, in that order.

    Text is not exchangeable: neighbouring windows share words, so each part is
    contiguous (the paper, section 4), never drawn at random.

    Parameters
    ----------
    ids : array-like of int, shape (n_tokens,)
        Word ids in text order.
    valid, test : float or int, default=0.1
        Size of each part: a fraction of the stream (float) or tokens (int).

    Returns
    -------
    train, valid, test : ndarray of int32
        Views of the stream.

    Examples
    --------
    >>> from nplm import contiguous_split
    >>> [part.tolist() for part in contiguous_split(range(10), valid=2, test=0.1)]
    [[0, 1, 2, 3, 4, 5, 6], [7, 8], [9]]
    """
    stream = check_ids(ids, "ids", ndim=1)
    n = len(stream)
    sizes = {}
    for name, size in (("valid", valid), ("test", test)):
        is_fraction = isinstance(size, (float, np.floating))
        is_number = is_fraction or (
            isinstance(size, numbers.Integral) and not isinstance(size, bool)
        )
        if not is_number or not size >= 0 or (is_fraction and size >= 1):
            raise ValueError(
                f"{name}={size!r} must be a number of tokens (int, 0 or more) or a "
                "fraction of the stream (float, from 0 to below 1)."
            )
        sizes[name] = round(float(size) * n) if is_fraction else int(size)
        if sizes[name] == 0 and size > 0:
            raise ValueError(
                f"{name}={size!r} of {n} tokens rounds to 0 tokens: the corpus is too "
                "small for its splits; pass more text or a larger part."
            )
    n_train = n - sizes["valid"] - sizes["test"]
    if n_train < 1:
        raise ValueError(
            f"{n} tokens leave nothing to train on after {sizes['valid']} for "
            f"validation and {sizes['test']} for test: the corpus is too small for "
            "its splits; pass more text or smaller parts."
        )
    end = n_train + sizes["valid"]
    return stream[:n_train], stream[n_train:end], stream[end:]
