"""Match parameters that have a row per word with the ids of a vocabulary."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state

from nplm.text.embeddings import aligned, indices_of
from nplm.text.vocabulary import Vocabulary

SPELLING = "spelling"
STARTS = ("auto", "counts")  # strings of embeddings, computed in a fit
# Parameters whose arrays have a row per id; those of BY_WORD may be given by word.
BY_WORD = {"embeddings", "word_features"}
BY_ID = BY_WORD | {"classes", "proposal", "tree"}


def is_keyed_vectors(value: object) -> bool:
    """Return whether a value has the words and vectors of gensim's ``KeyedVectors``."""
    return hasattr(value, "key_to_index") and hasattr(value, "vectors")


def is_by_word(value: object) -> bool:
    """Return whether a value is a dict of rows, `KeyedVectors` or (words, rows)."""
    if issparse(value):  # SciPy's dok_array is a Mapping
        return False
    if isinstance(value, Mapping) or is_keyed_vectors(value):
        return True
    if not isinstance(value, tuple) or len(value) != 2:
        return False
    rows = value[1]
    if isinstance(rows, (list, tuple)) and len(rows):
        rows = rows[0]  # rows of unequal lengths are refused later
        return np.ndim(rows) == 1
    return issparse(rows) or np.ndim(rows) == 2


def matched_rows(estimator: Any, vocabulary: Vocabulary | None) -> dict[str, Any]:
    """Return the parameters of an estimator that are given by word, as rows of ids.

    Raises ValueError if rows are given by word and documents are ids; if rows are given
    by id, or a part is frozen, and the vocabulary is fitted in this fit; if rows cannot
    be matched.
    """
    matched = {}
    params = estimator.get_params()
    if any(
        isinstance(value, FrozenEstimator) for value in (estimator, *params.values())
    ):
        _check_ids_are_given("a FrozenEstimator uses the ids", "", vocabulary)
    for name, value in params.items():
        part = name.split("__")[-1]
        if part not in BY_ID or value is None or hasattr(value, "get_params"):
            continue
        is_start = isinstance(value, str) and value in STARTS
        is_name = isinstance(value, (str, os.PathLike)) and not is_start
        if part == "embeddings" and is_name:
            read = f"nplm.formats.read_vectors({os.fspath(value)!r})"
            raise ValueError(f"embeddings={value!r} is a path: set embeddings={read}.")
        is_spelling = part == "word_features" and isinstance(value, str)
        if is_spelling or (part in BY_WORD and is_by_word(value)):
            network = name.removesuffix(f"features__{part}")
            seed = params.get(f"{network}random_state")
            matched[name] = _rows_of_ids(part, value, vocabulary, seed)
        elif not isinstance(value, str):
            by_word = f"pass the words too, {part}=(words, rows), or "
            remedy = by_word if part in BY_WORD else ""
            _check_ids_are_given(f"{part} is an array for the ids", remedy, vocabulary)
    return matched


def _check_ids_are_given(what: str, remedy: str, vocabulary: Vocabulary | None) -> None:
    """Raise an error if rows are given by id but the vocabulary is fitted here."""
    if vocabulary is None or vocabulary.words is not None:
        return
    raise ValueError(
        f"{what} of words, but the vocabulary is fitted to the documents and may give "
        f"words other ids: {remedy}set vocabulary=Vocabulary.from_words(words) to the "
        "words of these ids."
    )


def _rows_of_ids(
    name: str, value: object, vocabulary: Vocabulary | None, seed: object
) -> NDArray[np.float32] | csr_array:
    if vocabulary is None:
        raise ValueError(
            f"{name} are given by word, but the documents are ids: pass an array with "
            "a row for each id."
        )
    if isinstance(value, str):
        if value != SPELLING:
            raise ValueError(
                f"{name}={value!r} must be {SPELLING!r}, a dict of word to row, a "
                "tuple of words and matrix, a matrix, or None."
            )
        return vocabulary.spelling_features()[0]
    try:
        words, rows = _words_and_rows(value, vocabulary)
        if name == "embeddings":
            # A checkpoint is resumed only if the initial embeddings are the same.
            rng = check_random_state(0 if seed is None else seed)
            return aligned(vocabulary.words_, words, rows, rng)
        return _features(vocabulary, words, rows)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from error


def _words_and_rows(value: Any, vocabulary: Vocabulary) -> tuple[Sequence[Any], Any]:
    """Return words and their rows; of `KeyedVectors`, those in the vocabulary."""
    if is_keyed_vectors(value):
        rows_of = value.key_to_index
        known = [w for w in rows_of if w in vocabulary.ids_] or list(rows_of)[:3]
        return known, value.vectors[[rows_of[word] for word in known]]
    pair = (value, value.values()) if isinstance(value, Mapping) else value
    words, rows = list(pair[0]), pair[1]
    if not hasattr(rows, "shape"):
        rows = [np.asarray(row) for row in rows]
        shapes = {row.shape for row in rows}
        if len(shapes) != 1 or rows[0].ndim != 1:
            raise ValueError(
                "each word must have a list of numbers, and all lists the same length, "
                f"got shapes {sorted(shapes, key=str)[:3]}."
            )
        rows = np.stack(rows)
    return words, rows


def _features(
    vocabulary: Vocabulary, words: Sequence[Hashable], rows: object
) -> csr_array:
    """Return the rows of a vocabulary's words; a missing word has no entries."""
    matrix = csr_array(rows)
    if matrix.shape[0] != len(words):
        raise ValueError(
            f"there must be a row for each of the {len(words)} words, got shape "
            f"{matrix.shape}."
        )
    indices = indices_of(vocabulary.words_, words)
    known = np.flatnonzero(indices >= 0)
    chosen = (np.ones(len(known)), (known, indices[known]))
    shape = vocabulary.n_words_, len(words)
    return csr_array(csr_array(chosen, shape=shape) @ matrix)
