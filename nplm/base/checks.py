"""Checks of word ids and of estimators' parameters."""

from __future__ import annotations

import contextlib
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import Interval

__all__ = [
    "COMMON",
    "MAX_N_WORDS",
    "Whole",
    "check_boundary",
    "check_classes",
    "check_ids",
    "check_not_grown",
    "check_over_words",
    "count_ids",
    "inferred_n_words",
    "non_negative",
    "own_ids",
    "plain",
    "plain_ids",
    "refuse_usual_mistakes",
]

MAX_N_WORDS = np.iinfo(np.int32).max
# A model has rows for all ids up to the largest. Where that is beyond MANY_WORDS, and a
# smaller share of the ids occurs, they are hashes or keys of a database.
MANY_WORDS, LEAST_SHARE = 1 << 20, 0.01
# Ids that are counted at once, at least: 4 MB of them.
BLOCK_IDS = 1 << 20
UNSIGNED = {np.dtype(np.int32): np.uint32, np.dtype(np.int64): np.uint64}


def check_ids(
    values: ArrayLike, name: str, *, ndim: int, n_words: int | None = None
) -> NDArray[np.int32]:
    """Word ids as int32, or an error that names the offending value.

    Whole numbers of any type pass; int32 input is returned without a copy.
    """
    try:
        ids = np.asarray(values)
    except ValueError:
        found = "of different lengths" if ndim > 1 else "in place of single ids"
        raise ValueError(
            f"{name} must have {ndim} dimension{'s' if ndim > 1 else ''}, got "
            f"sequences {found}."
        ) from None
    if ids.ndim != ndim:
        raise ValueError(
            f"{name} must have {ndim} dimension{'s' if ndim > 1 else ''}, "
            f"got an array of shape {ids.shape}."
        )
    if ids.size == 0:
        return ids.astype(np.int32)
    if ids.dtype == object:
        # Numbers in Python objects pass; words do not, and are refused below.
        with contextlib.suppress(ValueError):
            ids = ids.astype(np.float64)
    if ids.dtype.kind not in "iufb":
        raise ValueError(
            f"{name} must hold word ids, whole numbers from 0, got values of type "
            f"{ids.dtype}; map words to ids with nplm.Vocabulary first."
        )
    if ids.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            why = "which is no word id: neither NaN nor inf is"
            _refuse(ids, ~np.isfinite(ids), name, why)
            _refuse(ids, ids != np.floor(ids), name, "which is not a whole number")
    low, high = ids.min(), ids.max()
    if low < 0:
        why = "but word ids start at 0. Negative values in data cannot be word ids"
        _refuse(ids, ids < 0, name, why)
    limit = MAX_N_WORDS if n_words is None else n_words
    if high >= limit:
        why = f"but n_words={limit}: ids must be below it"
        if n_words is None:
            why = f"but ids must be below {MAX_N_WORDS}"
        _refuse(ids, ids >= limit, name, why)
    return ids.astype(np.int32, copy=False)


def inferred_n_words(
    ids: NDArray[np.int32], next_words: NDArray[np.int32], name: str = "X and y"
) -> int:
    """Give the largest id plus one, or raise where few of the ids below it occur."""
    n_words = int(max(ids.max(), next_words.max())) + 1
    if n_words <= MANY_WORDS:
        return n_words
    n_found = len(np.union1d(ids, next_words))
    if n_found < LEAST_SHARE * n_words:
        raise ValueError(
            f"{name} have {n_found} distinct word ids, of which the largest is "
            f"{n_words - 1}, and a model takes memory for every id up to the largest. "
            "Number the words from 0 with nplm.Vocabulary (TextLM does with "
            f"vocabulary=Vocabulary()). If there are so many words, set "
            f"n_words={n_words}."
        )
    return n_words


def check_classes(given: Any, name: str, n_words: int | None) -> NDArray[np.int32]:
    """Give the class of each word, of a fitted `WordClasses` or as they are given.

    A class that no word has is refused: a model would give it probability, and a file
    that numbers from elsewhere is put right by the reader, who then knows the numbers.
    """
    labels = getattr(given, "labels_", given)
    if hasattr(labels, "fit"):
        raise NotFittedError(
            f"{name}={given!r} is not fitted: fit it to the training text first, and "
            "give its labels_ (clones, which grid searches and TextLM fit, would have "
            "it unfitted again)."
        )
    labels = check_ids(labels, name, ndim=1)
    if not len(labels) or (n_words is not None and len(labels) != n_words):
        raise ValueError(
            f"{name} has a class for {len(labels)} words, but n_words={n_words}; "
            "give one class for each word of the vocabulary."
        )
    used = np.unique(labels)
    gap = np.flatnonzero(used != np.arange(len(used)))
    if len(gap):
        raise ValueError(
            f"{name} has class {used[gap[0]]} but no word of class {gap[0]}: number "
            f"the classes 0, 1, ... without gaps, as np.unique({name}, "
            "return_inverse=True)[1] does."
        )
    return labels


def plain_ids(values: Any, *, ndim: int, n_words: int) -> NDArray[np.int32] | None:
    """Word ids as int32 where they are an array in which all is well, else None.

    For a sentence of 20 words `check_ids` and scikit-learn's checks take longer
    than an n-gram model: here they take two microseconds.
    """
    if type(values) is not np.ndarray or values.ndim != ndim or values.size == 0:
        return None
    unsigned = UNSIGNED.get(values.dtype)
    # As unsigned numbers negative ones are beyond all ids: one pass for both ends.
    if unsigned is None or values.view(unsigned).max() >= n_words:
        return None
    return values.astype(np.int32, copy=False)


def own_ids(ids: NDArray[np.int32], n_words: int) -> NDArray[np.int32]:
    """Copy ids that were checked, for code that trusts them.

    The array stays the caller's. Where another thread has written to it since what
    is no id, the copy has the last word's, as kernels take it. NumPy checks an index
    array once and reads it again, and crashes where it changed in between.
    """
    return np.minimum(ids.view(np.uint32), np.uint32(n_words - 1)).view(np.int32)


def count_ids(ids: NDArray[np.int32], n_words: int) -> NDArray[np.int64]:
    """Count how often each id occurs, shape (n_words,), whoever writes to the array.

    ``np.bincount`` of an id that is too large would give a longer array: of 2**31 - 1
    one of 16 GB.
    """
    counts = np.zeros(n_words, dtype=np.int64)
    size = max(n_words, BLOCK_IDS)
    for start in range(0, len(ids), size):
        part = own_ids(ids[start : start + size], n_words)
        counts += np.bincount(part, minlength=n_words)
    return counts


def refuse_usual_mistakes(X: Any, y: Any, model: str, *, need_y: bool) -> None:
    """Say what to do with a text, a stream or documents that came as windows.

    scikit-learn's checks refuse them too, in words of samples and features.
    """
    documents = (
        f"{model} takes windows of word ids, and TextLM({model}(...)) takes documents"
    )
    if isinstance(X, (str, bytes)):
        raise TypeError(
            f"X is a string, {X[:30]!r}: {documents}, a list of strings for example."
        )
    rows = X[:1000] if isinstance(X, (list, tuple)) else []
    kinds = getattr(getattr(X, "dtype", None), "kind", "")
    words = [row[0] if isinstance(row, (list, tuple)) and row else row for row in rows]
    if kinds == "U" or any(isinstance(word, str) for word in words):
        raise ValueError(
            f"X holds strings: {documents}. Or map words to ids with nplm.Vocabulary, "
            "and cut windows with nplm.windows."
        )
    lengths = {len(row) for row in rows if hasattr(row, "__len__")}
    if len(lengths) > 1:
        raise ValueError(
            f"X has rows of {min(lengths)} to {max(lengths)} ids, and must have 2 "
            f"dimensions: {documents}, of any lengths. Or cut windows of equal length "
            "with nplm.windows."
        )
    if getattr(X, "ndim", 1 if rows and not lengths else 2) == 1:
        raise ValueError(
            "Expected 2D array, got 1D array instead: a stream of ids is no windows. "
            "Cut them first, X, y = nplm.windows(ids, n_context). (Reshape your data "
            "with X.reshape(1, -1) if it is a single context.)"
        )
    if need_y and y is None:
        raise ValueError(
            f"{model} requires y to be passed, but the target y is None: y are the "
            "next words, X, y = nplm.windows(ids, n_context). Of documents "
            f"TextLM({model}(...)) needs no y."
        )


def _refuse(ids: NDArray[Any], bad: NDArray[np.bool_], name: str, why: str) -> None:
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        position = f"row {where[0]}, column {where[1]}" if len(where) == 2 else where[0]
        raise ValueError(f"{name} has {ids[where]} at {position}, {why}.")


def plain(value: Any) -> Any:
    """Give Python's number for one of NumPy's, anything else as it is.

    Arithmetic on a NumPy scalar stays in its type: int8's ends at 127.
    """
    return value.item() if isinstance(value, np.generic) else value


class Whole(Interval):
    """Whole numbers from `least` to `most`, for ``_parameter_constraints``.

    scikit-learn's interval takes True for 1.
    """

    def __init__(self, least: int, most: int | None = None) -> None:
        closed = "left" if most is None else "both"
        super().__init__(Integral, least, most, closed=closed)

    def is_satisfied_by(self, val: Any) -> bool:
        """Whether `val` is one of them."""
        return not isinstance(val, bool) and super().is_satisfied_by(val)


# Parameters that mean the same wherever they are.
COMMON: dict[str, list[Any]] = {
    "order": [Whole(1), None],
    "n_words": [Whole(1, MAX_N_WORDS), None],
    "boundary": [Whole(0), None],
}


def check_not_grown(member: Any, n_words: int, model: str) -> None:
    """Raise where words were added to a member since `model` was fitted with it."""
    if member.n_words_ != n_words:
        raise ValueError(
            f"a member of this {model} knows {member.n_words_} words, and it was "
            f"fitted with n_words={n_words}, before words were added: fit it again, of "
            "members that all know the same words."
        )


def check_over_words(model: Any, name: str) -> None:
    """Raise if a fitted model predicts places in a short-list instead of words."""
    n_outputs = getattr(model, "_n_outputs", None)
    if n_outputs is not None:
        raise ValueError(
            f"{name} predicts {n_outputs} places of a short-list instead of "
            f"{model.n_words_} words: it is the network of a ShortlistLM, so give the "
            "ShortlistLM."
        )


def non_negative() -> Interval:
    """Real numbers from 0, infinity among them."""
    return Interval(Real, 0, np.inf, closed="both")


def check_boundary(boundary: int | None, n_words: int) -> None:
    """Raise unless `boundary` is None or below `n_words`."""
    if boundary is not None and not 0 <= boundary < n_words:
        raise ValueError(
            f"boundary must be None or a word id from 0 to {n_words - 1} "
            f"(n_words={n_words}), got {boundary!r}."
        )
