"""Checks of word ids, and of what a model says of its words."""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Sequence, Sized
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nplm.base.array_types import AnyArray, Counts, Floats, Ids, Mask

MAX_N_WORDS = np.iinfo(np.int32).max
# A model has a row for every id up to the largest. Beyond MAX_UNCHECKED_N_WORDS, if
# fewer than MIN_USED_SHARE of the ids occur, the ids are hashes or database keys.
MAX_UNCHECKED_N_WORDS, MIN_USED_SHARE = 1 << 20, 0.01
# Least number of ids counted at once: 4 MB of them.
BLOCK_IDS = 1 << 20
UNSIGNED = {np.dtype(np.int32): np.uint32, np.dtype(np.int64): np.uint64}


def check_ids(
    values: ArrayLike, name: str, *, ndim: int, n_words: int | None = None
) -> Ids:
    """Return whole numbers of any type as int32 ids, or name the invalid value."""
    if is_bytes(values):
        raise TypeError(
            f"{name} is of type {type(values).__name__}: map words to ids with "
            "nplm.Vocabulary first. If bytes are the ids, pass np.frombuffer(x, 'u1')."
        )
    try:
        ids = np.asarray(values)
    except ValueError:
        problem = (
            "of different lengths"
            if ndim > 1
            else "in place of single ids: join documents, each with the id of its end"
        )
        raise ValueError(
            f"{name} must have {ndim} dimension{'s' if ndim > 1 else ''}, got "
            f"sequences {problem}."
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
            # scikit-learn's estimator checks expect "NaN" and "inf" in the message.
            why = "which is not a word id: ids must not be NaN or inf"
            refuse_where(~np.isfinite(ids), ids, name, why)
            refuse_where(ids != np.floor(ids), ids, name, "which is not a whole number")
    low, high = ids.min(), ids.max()
    if low < 0:
        why = "but word ids start at 0. Negative values in data cannot be word ids"
        refuse_where(ids < 0, ids, name, why)
    limit = MAX_N_WORDS if n_words is None else n_words
    if high >= limit:
        why = f"but n_words={limit}: ids must be below it"
        if n_words is None:
            why = f"but ids must be below {MAX_N_WORDS}"
        refuse_where(ids >= limit, ids, name, why)
    return ids.astype(np.int32, copy=False)


def refuse_where(
    bad: Mask, values: AnyArray, name: str, why: str, rows: Sequence[object] = ()
) -> None:
    """Raise ValueError for the first of the bad values; `rows` has names of rows."""
    if bad.any():
        where = tuple(np.argwhere(bad)[0].tolist())
        position = f"row {where[0]}, column {where[1]}" if len(where) == 2 else where[0]
        of_row = f" (of {rows[where[0]]!r})" if len(rows) else ""
        raise ValueError(f"{name} has {values[where]} at {position}{of_row}, {why}.")


def check_word_of_each(
    words: Sized | None, n: int, of: str = "the model has n_words_"
) -> None:
    """Raise ValueError unless there is a word for each of `n` ids, as `of` says."""
    if words is None or len(words) != n:
        shown = "is None" if words is None else f"has {len(words)} words"
        raise ValueError(
            f"words {shown}, but {of}={n}: pass the word of each id, in order."
        )


def is_bytes(values: Any) -> bool:
    """Return whether values are bytes, which NumPy would take for ids."""
    if isinstance(values, (str, np.ndarray, array)):
        return False
    try:
        view = memoryview(values)
    except TypeError:
        return False
    return view.ndim > 0 and view.format in ("B", "b", "c")


def inferred_n_words(ids: Ids, next_words: Ids, name: str = "X and y") -> int:
    """Return the largest id plus one, or raise if few of the ids below it occur."""
    n_words = int(max(ids.max(), next_words.max())) + 1
    if n_words <= MAX_UNCHECKED_N_WORDS:
        return n_words
    n_used = len(np.union1d(ids, next_words))
    if n_used < MIN_USED_SHARE * n_words:
        raise ValueError(
            f"{name} have {n_used} distinct word ids, of which the largest is "
            f"{n_words - 1}, and a model takes memory for every id up to the largest. "
            "Number the words from 0 with nplm.Vocabulary (TextLM does with "
            "vocabulary=Vocabulary()). If the vocabulary is this large, set "
            f"n_words={n_words}."
        )
    return n_words


def size_of_vocabulary(n_words: int | None, ids: Ids, next_words: Ids) -> int:
    """Return the parameter `n_words`, or the size that windows or a text have."""
    return inferred_n_words(ids, next_words) if n_words is None else int(n_words)


def check_classes(classes: Any, name: str, n_words: int | None) -> Ids:
    """Return the class of each word, from a fitted `WordClasses` or an array."""
    labels = getattr(classes, "labels_", classes)
    if hasattr(labels, "fit"):
        # Imported here: files of n-grams are scored without scikit-learn.
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(
            f"{name}={classes!r} is not fitted: fit it to the training text first, and "
            "pass its labels_ (grid searches and TextLM fit clones, in which it would "
            "be unfitted again)."
        )
    labels = check_ids(labels, name, ndim=1)
    if not len(labels) or (n_words is not None and len(labels) != n_words):
        raise ValueError(
            f"{name} has a class for {len(labels)} words, but n_words={n_words}; "
            "pass one class for each word of the vocabulary."
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


def plain_ids(values: object, *, ndim: int, n_words: int) -> Ids | None:
    """Return word ids as int32 if they are a valid array, else None: in 2 us."""
    if type(values) is not np.ndarray or values.ndim != ndim or values.size == 0:
        return None
    unsigned = UNSIGNED.get(values.dtype)
    # Negative numbers read as unsigned exceed all ids: one pass checks both bounds.
    if unsigned is None or values.view(unsigned).max() >= n_words:
        return None
    return values.astype(np.int32, copy=False)


def trusted_ids(ids: Ids, n_words: int) -> Ids:
    """Copy checked ids; the last word replaces those that a thread made invalid.

    NumPy checks an index array, reads it again, and crashes if it changed in between.
    """
    return np.minimum(ids.view(np.uint32), np.uint32(n_words - 1)).view(np.int32)


MAX_COPIES = 100_000_000  # of documents by their weights: a gigabyte of numbers


def check_weights(
    sample_weight: object, n_documents: int, whole_of: str = ""
) -> Floats:
    """Return the weights of documents, or raise; those of `whole_of` are whole."""
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_documents,):
        raise ValueError(
            f"sample_weight has the shape {weights.shape}, but X has {n_documents} "
            "documents: pass a weight for each."
        )
    wrong = ~((weights >= 0) & np.isfinite(weights))
    if whole_of:
        wrong |= weights != np.floor(weights)
    if wrong.any():
        i, kind, advice = int(wrong.argmax()), "a number of times", ""
        if whole_of:
            kind = "a whole number of times"
            advice = f" for {whole_of}; scale and round them, or fit TextLM(NeuralLM())"
        raise ValueError(
            f"sample_weight[{i}]={weights[i]}: a document counts {kind}, 0 or "
            f"more{advice}."
        )
    if not weights.any():
        raise ValueError(
            "sample_weight is 0 for every document: give one a positive weight."
        )
    return weights


def copies_of(
    sample_weight: object, n_documents: int, whole_of: str
) -> tuple[list[int], Floats | None]:
    """Return copies of documents by their weights, and the weight of each copy.

    The weight of a copy is 1, or, of the last copy of a document, the fraction that is
    left. The weights are None if all are 1. See also `check_weights`.
    """
    weights = check_weights(sample_weight, n_documents, whole_of)
    if np.ceil(weights).sum() > n_documents + MAX_COPIES:
        i = int(weights.argmax())
        raise ValueError(
            f"sample_weight[{i}]={weights[i]:g}: documents are repeated by their "
            f"weights, {weights.sum():g} times in all, which is too many; divide the "
            "weights by a common factor."
        )
    counts = np.ceil(weights).astype(np.int64)
    copies = np.repeat(np.arange(n_documents), counts).tolist()
    if (weights == counts).all():
        return copies, None
    of_copies = np.ones(len(copies))
    has_copies = counts > 0
    of_copies[np.cumsum(counts)[has_copies] - 1] -= (counts - weights)[has_copies]
    return copies, of_copies


def count_ids(ids: Ids, n_words: int, weights: Floats | Counts | None = None) -> Counts:
    """Count how often each id occurs, or round the sums of their weights, (n_words,).

    ``np.bincount`` alone would take 16 GB for an id that another thread made large.
    """
    counts = np.zeros(n_words, dtype=np.int64 if weights is None else np.float64)
    size = max(n_words, BLOCK_IDS)
    for start in range(0, len(ids), size):
        some = slice(start, start + size)
        part = trusted_ids(ids[some], n_words)
        its_weights = None if weights is None else weights[some]
        counts += np.bincount(part, its_weights, minlength=n_words)
    return np.rint(counts).astype(np.int64, copy=False)


def refuse_usual_mistakes(X: object, y: object, model: str, *, need_y: bool) -> None:
    """Raise a helpful error for text, a stream or documents in place of windows."""
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
            "Expected 2D array, got 1D array instead: X is a stream of ids, not "
            "windows. Cut it first, X, y = nplm.windows(ids, n_context). (Reshape your "
            "data with X.reshape(1, -1) if it is a single context.)"
        )
    if need_y and y is None:
        raise ValueError(
            f"{model} requires y to be passed, but the target y is None: y are the "
            "next words, X, y = nplm.windows(ids, n_context). To fit documents without "
            f"y, use TextLM({model}(...))."
        )


def plain(value: object) -> Any:
    """Return a NumPy scalar as a Python number, whose arithmetic does not overflow."""
    return value.item() if isinstance(value, np.generic) else value


def check_not_grown(member: Any, n_words: int, model: str) -> None:
    """Raise if words were added to a member since `model` was fitted with it."""
    if member.n_words_ != n_words:
        raise ValueError(
            f"a member of this {model} has {member.n_words_} words, but the {model} "
            f"was fitted with n_words={n_words}, before words were added: fit it again "
            "with members that all have the same words."
        )


def check_over_words(model: Any, name: str) -> None:
    """Raise if a fitted model predicts the outputs of a short-list, not words."""
    n_outcomes = getattr(model, "n_outcomes", model.n_words_)
    if n_outcomes != model.n_words_:
        raise ValueError(
            f"{name} predicts {n_outcomes} outputs of a short-list instead of "
            f"{model.n_words_} words: it is the network of a ShortlistLM, so pass the "
            "ShortlistLM."
        )


def check_boundary(boundary: int | None, n_words: int) -> None:
    """Raise unless `boundary` is None or below `n_words`."""
    if boundary is None:
        return
    if not isinstance(boundary, Integral) or not 0 <= boundary < n_words:
        raise ValueError(
            f"boundary must be None or a word id from 0 to {n_words - 1} "
            f"(n_words={n_words}), got {boundary!r}."
        )
