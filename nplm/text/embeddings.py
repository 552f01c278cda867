"""Vectors of words: initial embeddings of a network, those it has learned, spelling."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from numbers import Integral
from operator import matmul
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import qr
from scipy.sparse import coo_array, csr_array
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import validate_parameter_constraints
from sklearn.utils.validation import check_scalar

from nplm.base.array_types import AnyArray, Floats, Ids, Index
from nplm.base.blocks import blocks
from nplm.base.checks import check_ids, refuse_where, trusted_ids
from nplm.base.estimators.bases import Whole

ROOT_MEAN_SQUARE = 0.1
# Of the randomised decomposition: vectors beyond those asked for, and products with the
# matrix that sharpen them.
N_MORE, N_PRODUCTS, COLUMNS_AT_A_TIME = 10, 2, 64
PAIRS_AT_A_TIME = 2**20


def aligned(
    vocabulary: NDArray[Any],
    words: Sequence[str],
    vectors: ArrayLike,
    rng: np.random.RandomState,
) -> NDArray[np.float32]:
    """Return `Vocabulary.embeddings`: a row for each word; missing ones are drawn."""
    rows = np.asarray(vectors, dtype=np.float64)
    if rows.ndim != 2 or len(rows) != len(words):
        raise ValueError(
            f"vectors must have a row for each of the {len(words)} words, got shape "
            f"{rows.shape}."
        )
    # Values beyond float32 would become infinite in the result.
    bad = ~(np.abs(rows) <= np.finfo(np.float32).max)
    refuse_where(bad, rows, "vectors", "which is not a finite float32", words)
    indices = indices_of(vocabulary, words)
    has_vector = indices >= 0
    rows_of_ids = np.empty((len(vocabulary), rows.shape[1]))
    rows_of_ids[has_vector] = rows[indices[has_vector]]
    known = rows_of_ids[has_vector]
    mean, deviation = known.mean(axis=0), known.std(axis=0)
    drawn = rng.normal(size=(len(rows_of_ids) - len(known), len(mean)))
    rows_of_ids[~has_vector] = mean + deviation * drawn
    return rows_of_ids.astype(np.float32)


def indices_of(vocabulary: AnyArray, words: Sequence[object]) -> Index:
    """Return the index in `words` of each word of a vocabulary, -1 if it is missing."""
    rows = {word: i for i, word in enumerate(words)}
    if len(rows) != len(words):
        twice = next(word for i, word in enumerate(words) if rows[word] != i)
        raise ValueError(f"words has {twice!r} twice: leave one of them out.")
    indices = np.array([rows.get(word, -1) for word in vocabulary], dtype=np.intp)
    if not (indices >= 0).any():
        raise ValueError(
            f"none of the words is in the vocabulary: compare {list(words[:3])} with "
            f"{vocabulary[-3:].tolist()}; upper and lower case differ."
        )
    return indices


def cooccurrence_embeddings(
    ids: ArrayLike,
    n_words: int,
    embedding_dim: int,
    *,
    window: int = 2,
    random_state: int | np.random.RandomState | None = None,
) -> NDArray[np.float32]:
    """Compute word embeddings from co-occurrence counts.

    Words that occur in similar contexts get similar features: the first principal
    components of co-occurrence counts. The paper tried these "as fixed word features"
    (section 1.2); Latent Semantic Indexing does the same with documents.

    Parameters
    ----------
    ids : array-like of int, shape (n_tokens,)
        Word ids in text order, of the training part only.
    n_words : int
        Size of the vocabulary.
    embedding_dim : int
        Features of a word, m; at most `n_words`.
    window : int, default=2
        Number of neighbours that count on either side. Neighbours before a word and
        after it are counted separately.
    random_state : int, RandomState instance or None, default=None
        Seeds the randomised decomposition (Halko, Martinsson and Tropp, 2011).

    Returns
    -------
    embeddings : ndarray of float32, shape (n_words, embedding_dim)
        For ``Features(embeddings)``, scaled like the network's own initial
        features (a mean square of 0.01 over the words that occur). A word that does
        not occur has zeros.

    Raises
    ------
    ValueError
        If a parameter is out of range, or no two words are within `window`.

    Notes
    -----
    N(w, c) counts word w with neighbour c. The square roots of the relative
    frequencies, (N(w, c) / N(w))^(1/2), are decomposed into U S V': without the root
    a few frequent neighbours would dominate. The features are U S^(1/2), up to a
    scale. As initial embeddings on Brown they did better than logarithms of the counts
    or their positive mutual information (:ref:`figures <decision-features>`).

    References
    ----------
    Deerwester, Dumais, Furnas, Landauer and Harshman (1990), Indexing by Latent
    Semantic Analysis. Lebret and Collobert (2014), Word Embeddings through Hellinger
    PCA.

    Examples
    --------
    >>> import numpy as np
    >>> from nplm import cooccurrence_embeddings
    >>> text = "a red rose and a red wine , the red rose and the red wine ,".split()
    >>> words, ids = np.unique(text * 20, return_inverse=True)
    >>> C = cooccurrence_embeddings(ids, len(words), 3, random_state=0)
    >>> distance = np.linalg.norm(C - C[words == "rose"], axis=1)
    >>> words[np.argsort(distance)[:2]].tolist()
    ['rose', 'wine']
    """
    whole = {"n_words": n_words, "embedding_dim": embedding_dim, "window": window}
    allowed: dict[str, list[object]] = {name: [Whole(1)] for name in whole}
    validate_parameter_constraints(allowed, whole, "cooccurrence_embeddings")
    if embedding_dim > n_words:
        raise ValueError(
            f"embedding_dim={embedding_dim} is more than n_words={n_words}: there are "
            "only as many components as words; lower embedding_dim."
        )
    tokens = check_ids(ids, "ids", ndim=1, n_words=n_words)
    if len(tokens) < 2:
        raise ValueError(
            f"ids has {len(tokens)} tokens: give a text of two words or more."
        )
    distances = range(1, min(window, len(tokens) - 1) + 1)
    pairs = (
        (tokens[d:][part], tokens[:-d][part], None)
        for d in distances
        for part in blocks(len(tokens) - d, PAIRS_AT_A_TIME)
    )
    rng = check_random_state(random_state)
    return components(neighbour_counts(pairs, n_words), embedding_dim, rng)


def neighbour_counts(
    pairs: Iterable[tuple[Ids, Ids, Floats | None]], n_words: int
) -> csr_array:
    """Count words (rows) and words before them (columns), in blocks with weights."""
    counts = csr_array((n_words, n_words), dtype=np.float32)
    for words, neighbours, weights in pairs:
        index = [trusted_ids(ids, n_words) for ids in (words, neighbours)]
        numbers = np.ones(len(index[0]), np.float32)
        if weights is not None:
            numbers[:] = weights
        counts += coo_array((numbers, tuple(index)), shape=counts.shape).tocsr()
    return counts


def components(
    counts: csr_array,
    m: int,
    rng: np.random.RandomState,
    times: Callable[[csr_array, NDArray[Any]], NDArray[Any]] = matmul,
) -> NDArray[np.float32]:
    """Compute the features of `cooccurrence_embeddings` from `neighbour_counts`."""
    n_words = counts.shape[0]
    totals = counts.sum(axis=1) + counts.sum(axis=0)
    scale = 1 / np.sqrt(np.maximum(totals, 1))[:, None]
    before = counts.sqrt()
    after = csr_array(before.T)

    def product(Q: NDArray[Any]) -> NDArray[Any]:
        # With the frequencies A of both sides' neighbours, A A' Q: in the order in
        # which LAPACK decomposes it in place.
        out = np.empty(Q.shape, np.float32, order="F")
        for some in blocks(Q.shape[1], COLUMNS_AT_A_TIME):
            part = np.ascontiguousarray(scale * Q[:, some])
            part = times(before, times(after, part)) + times(after, times(before, part))
            out[:, some] = scale * part
        return out

    Q = rng.standard_normal((n_words, min(m + N_MORE, n_words))).astype(np.float32)
    for _ in range(N_PRODUCTS):
        Q, _ = qr(product(Q), overwrite_a=True, mode="economic", check_finite=False)
    squares, W = np.linalg.eigh(Q.T @ product(Q))  # in ascending order
    roots = np.maximum(squares[::-1][:m], 0) ** 0.25
    features = np.asarray(Q @ (W[:, ::-1][:, :m] * roots), np.float32, order="C")
    squares = np.einsum("ij,ij->i", features, features)[totals > 0]
    features *= ROOT_MEAN_SQUARE / np.sqrt(np.mean(squares) / features.shape[1])
    return features


def nearest_rows(
    C: NDArray[Any], i: int, k: int, among: int | None
) -> tuple[Ids, Floats]:
    """Return the `k` rows of `C` (n_words, m) most similar to row `i`, and cosines."""
    check_scalar(k, "k", Integral, min_val=1)
    rows = C[:among]
    tiny = np.finfo(C.dtype).tiny
    lengths = np.maximum(np.linalg.norm(rows, axis=1), tiny)
    direction = C[i] / max(np.linalg.norm(C[i]), tiny)
    cosines = (rows @ direction / lengths).astype(np.float64)
    nearest = np.argsort(-cosines, kind="stable")
    nearest = nearest[nearest != i][:k]
    return nearest.astype(np.int32), cosines[nearest]


def learned_features(model: object) -> AnyArray:
    """Return the word features of a model, or raise TypeError if it has none."""
    features = features_of(model)
    if features is None:
        raise TypeError(
            f"{type(model).__name__} has no features of words: fit a NeuralLM, an "
            "EnergyLM, or a mixture with one."
        )
    return features


def features_of(model: object) -> AnyArray | None:
    """Return the word features of a model or of one of its members, else None."""
    members = *getattr(model, "estimators_", ()), getattr(model, "network_", None)
    for part in (model, *members):
        features = getattr(part, "C_", None)
        if features is not None:
            return features
    return None


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
