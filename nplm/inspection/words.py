"""Nearest neighbours of words, and next words after contexts of a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm.base.array_types import AnyArray, Index
from nplm.base.checks import check_word_of_each
from nplm.base.estimators.language_model import LanguageModel
from nplm.datasets import Corpus
from nplm.text.embeddings import nearest_rows
from nplm.text.lm.drawing import most_probable

# Neighbours are searched among this many most frequent words: rare words have poor
# features. Ids are in order of frequency.
N_FREQUENT = 2_000


def suggestions(
    model: LanguageModel, corpus: Corpus, *, n_contexts: int = 8, k: int = 5
) -> list[dict[str, Any]]:
    """Return the most probable next words after some contexts of the test part.

    Parameters
    ----------
    model : LanguageModel
        A fitted model.
    corpus : Corpus
        The corpus that the model was fitted on.
    n_contexts : int, default=8
        Number of contexts, evenly spaced among those without an unknown word or a
        boundary among the words that are shown.
    k : int, default=5
        Number of words for each context.

    Returns
    -------
    suggestions : list of dict
        ``context`` (list of str, the words of the model's order, or four before a
        network with ``n_memory``; it may see more), ``next`` (str, the next word of the
        text) and ``suggestions`` (list of (str, float), word and probability). Unknown
        words are not suggested: the probabilities are conditional on the next word
        being known.

    Examples
    --------
    >>> from nplm import InterpolatedTrigram, Vocabulary
    >>> from nplm.datasets import Corpus
    >>> from nplm.inspection import suggestions
    >>> text = "a rose is".split() * 20
    >>> vocabulary = Vocabulary(boundary=None).fit([text])
    >>> [ids] = vocabulary.transform([text])
    >>> corpus = Corpus("roses", ids[:48], ids[48:54], ids[54:], vocabulary, None)
    >>> (X, y), (X_val, y_val), _ = corpus.windows(2)
    >>> model = InterpolatedTrigram(n_words=corpus.n_words)
    >>> [shown] = suggestions(
    ...     model.fit(X, y, X_val=X_val, y_val=y_val), corpus, n_contexts=1, k=1
    ... )
    >>> shown["context"], [word for word, probability in shown["suggestions"]]
    (['rose', 'is'], ['a'])
    """
    X, y = corpus.windows(model.n_features_in_).test
    symbols = corpus.vocabulary.unknown_id_, corpus.boundary
    unknown = np.array([i for i in symbols[:1] if i is not None], dtype=np.int32)
    special = [i for i in symbols if i is not None]
    n_shown = 4 if getattr(model, "n_memory", 0) else model.order_ - 1
    near = X[:, max(X.shape[1] - n_shown, 0) :]
    plain = np.flatnonzero(~np.isin(np.column_stack([near, y]), special).any(axis=1))
    chosen = plain[_spread(len(plain), n_contexts)]
    shown = []
    for i in chosen:
        ids, proba = most_probable(model.predict_proba([X[i]]), k, unknown)
        shown.append(
            {
                "context": corpus.words[near[i]].tolist(),
                "next": corpus.words[y[i]],
                "suggestions": list(zip(corpus.words[ids].tolist(), proba.tolist())),
            }
        )
    return shown


def nearest_words(
    C: AnyArray,
    words: Sequence[str] | NDArray[np.object_],
    *,
    of: Sequence[str] | None = None,
    n_words: int = 8,
    k: int = 5,
) -> dict[str, list[str]]:
    """Return the words with the most similar features.

    Parameters
    ----------
    C : ndarray, shape (n_words, embedding_dim)
        Features of each word, the ``C_`` of `NeuralLM` (section 2).
    words : sequence of str
        The word of each id, by decreasing frequency.
    of : sequence of str, optional
        Words whose neighbours are returned; by default some frequent ones.
    n_words : int, default=8
        Number of frequent words if `of` is None: evenly spaced among those of the first
        500 with more than three letters.
    k : int, default=5
        Number of neighbours of each word, by cosine similarity, among the 2,000 most
        frequent words.

    Returns
    -------
    neighbours : dict of str to list of str
        Nearest first.

    Raises
    ------
    ValueError
        If `C` does not have one row per word, or a word of `of` is not in `words`.

    Examples
    --------
    >>> import numpy as np
    >>> from nplm.inspection import nearest_words
    >>> C = np.array([[1.0, 0.1], [0.0, 2.0], [3.0, 0.0], [0.1, 1.0]])
    >>> nearest_words(C, ["king", "apple", "queen", "pear"], of=["king", "pear"], k=1)
    {'king': ['queen'], 'pear': ['apple']}
    """
    check_word_of_each(words, len(C), "len(C)")
    if of is None:
        # Short words are mostly function words.
        long = [w for w in words[:500] if w.isalpha() and len(w) > 3]
        of = [long[i] for i in _spread(len(long), n_words)]
    neighbours = {}
    for word, i in zip(of, ids_of(of, words, "of")):
        nearest, _ = nearest_rows(C, i, k, N_FREQUENT)
        neighbours[word] = [words[j] for j in nearest]
    return neighbours


def ids_of(queries: Iterable[object], words: Iterable[object], name: str) -> list[int]:
    """Return the ids of words, or raise an error that names the parameter `name`."""
    ids = {word: i for i, word in enumerate(words)}
    queries = list(queries)
    missing = [word for word in queries if word not in ids]
    if missing:
        raise ValueError(
            f"{name} has {missing[0]!r}, which is not among the words: leave it out."
        )
    return [ids[word] for word in queries]


def _spread(size: int, n: int) -> Index:
    """Return at most n positions, evenly spaced in range(size)."""
    return np.unique(np.linspace(0, size - 1, min(n, size)).astype(np.intp))
