"""Spelling features of words: character n-grams, shape and length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils._param_validation import validate_parameter_constraints

from nplm.base.estimators.constraints import Whole

# Added to both ends of a word: "<un" is an n-gram at the beginning of a word.
BEGIN, END = "<", ">"


def spelling_features(
    words: Sequence[str], ngrams: tuple[int, int], min_words: int
) -> tuple[csr_array, list[str]]:
    """Return `Vocabulary.spelling_features`; an empty word has no features."""
    least, most = _checked(ngrams, min_words)
    features = [sorted(set(_features_of(word, least, most))) for word in words]
    n_words = Counter(name for names in features for name in names)
    names = sorted(name for name, n in n_words.items() if n >= min_words)
    if not names:
        raise ValueError(
            f"no feature occurs in min_words={min_words} of the {len(words)} words: "
            "lower min_words."
        )
    column = {name: j for j, name in enumerate(names)}
    rows = [
        [column[name] for name in of_word if name in column] for of_word in features
    ]
    indptr = np.cumsum([0, *map(len, rows)])
    indices = [j for row in rows for j in row]
    # The sum of a word's features then has the variance of a single feature.
    values = [1 / np.sqrt(len(row)) for row in rows for _ in row]
    data = np.array(values, np.float32), np.array(indices, np.int32), indptr
    return csr_array(data, shape=(len(words), len(names))), names


def _checked(ngrams: tuple[int, int], min_words: int) -> tuple[int, int]:
    """Return the bounds of `ngrams`, or raise an error if a parameter is invalid."""
    try:
        least, most = ngrams
    except (TypeError, ValueError):
        raise ValueError(
            "ngrams must be a pair of the least and the greatest number of letters, "
            f"got {ngrams!r}."
        ) from None
    params = {"ngrams[0]": least, "ngrams[1]": most, "min_words": min_words}
    allowed: dict[str, list[object]] = {name: [Whole(1)] for name in params}
    validate_parameter_constraints(allowed, params, "spelling_features")
    if least > most:
        raise ValueError(f"ngrams={ngrams!r} has its bounds reversed: swap them.")
    return least, most


def _features_of(word: str, least: int, most: int) -> Iterator[str]:
    """Yield the names of a word's features."""
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
