"""What words are made of, as far as their spelling shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils._param_validation import validate_parameter_constraints

from nplm.base.checks import Whole

__all__ = ["spelling_features"]

# Marks at the ends of a word in its n-grams: "<un" begins one.
BEGIN, END = "<", ">"


def spelling_features(
    words: Sequence[str], ngrams: tuple[int, int], min_words: int
) -> tuple[csr_array, list[str]]:
    """Give the features of `Vocabulary.spelling_features`; an empty word has none."""
    least, most = _checked(ngrams, min_words)
    own = [sorted(set(_features_of(word, least, most))) for word in words]
    n_words = Counter(name for names in own for name in names)
    names = sorted(name for name, n in n_words.items() if n >= min_words)
    if not names:
        raise ValueError(
            f"no feature is in {min_words} words or more of the {len(words)} of this "
            "vocabulary: lower min_words."
        )
    column = {name: j for j, name in enumerate(names)}
    rows = [[column[name] for name in found if name in column] for found in own]
    indptr = np.cumsum([0, *map(len, rows)])
    indices = [j for row in rows for j in row]
    # The sum of a word's features then varies as much as one of them, however many.
    values = [1 / np.sqrt(len(row)) for row in rows for _ in row]
    data = np.array(values, np.float32), np.array(indices, np.int32), indptr
    return csr_array(data, shape=(len(words), len(names))), names


def _checked(ngrams: tuple[int, int], min_words: int) -> tuple[int, int]:
    """Give the least and the most letters, or raise where a parameter is none."""
    try:
        least, most = ngrams
    except (TypeError, ValueError):
        raise ValueError(
            f"ngrams must be the least and the most letters, got {ngrams!r}."
        ) from None
    given = {"ngrams[0]": least, "ngrams[1]": most, "min_words": min_words}
    allowed: dict[str, list[Any]] = {name: [Whole(1)] for name in given}
    validate_parameter_constraints(allowed, given, "spelling_features")
    if least > most:
        raise ValueError(f"ngrams={ngrams!r} ends before it begins: swap them.")
    return least, most


def _features_of(word: str, least: int, most: int) -> Iterator[str]:
    """Name the features of a word, by their kinds."""
    if not word:
        return
    marked = BEGIN + word + END
    for n in range(least, most + 1):
        for i in range(len(marked) - n + 1):
            yield f"ngram:{marked[i : i + n]}"
    if word[0].isupper():
        yield "shape:capital"
    if any(letter.isdigit() for letter in word):
        yield "shape:digit"
    yield f"length:{len(word)}"
