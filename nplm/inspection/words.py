"""Words that a network takes for similar, and those that a model expects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm.base.estimators import LanguageModel
from nplm.datasets import Corpus
from nplm.text.embeddings import nearest_rows
from nplm.text.lm.drawing import without

__all__ = ["ids_of", "nearest_words", "suggestions"]

# Words whose neighbours are worth showing were seen often: ids go by frequency.
FREQUENT = 2_000


def suggestions(
    model: LanguageModel, corpus: Corpus, *, n_contexts: int = 8, k: int = 5
) -> list[dict[str, Any]]:
    """Most probable next words after some contexts of the test part.

    Parameters
    ----------
    model : LanguageModel
        A fitted model.
    corpus : Corpus
        Its corpus.
    n_contexts : int, default=8
        Contexts, spread evenly over those without an unknown word or a boundary.
    k : int, default=5
        Words for each.

    Returns
    -------
    suggestions : list of dict
        ``context`` (list of str), ``next`` (str, what the text has) and
        ``suggestions`` (list of (str, float), word and probability). Unknown words are
        not suggested: the probabilities are given that the next word is a known one.

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
    marks = corpus.vocabulary.unknown_id_, corpus.boundary
    unknown = np.array([m for m in marks[:1] if m is not None], dtype=np.int32)
    special = [mark for mark in marks if mark is not None]
    clear = np.flatnonzero(~np.isin(np.column_stack([X, y]), special).any(axis=1))
    chosen = clear[_spread(len(clear), n_contexts)]
    shown = []
    for context, word in zip(X[chosen], y[chosen]):
        proba = model.predict_proba([context]).astype(np.float64)
        [proba] = without(proba, unknown)
        best = np.argsort(-proba, kind="stable")[: min(k, len(proba) - len(unknown))]
        shown.append(
            {
                "context": corpus.words[context].tolist(),
                "next": corpus.words[word],
                "suggestions": [(corpus.words[i], float(proba[i])) for i in best],
            }
        )
    return shown


def nearest_words(
    C: NDArray[Any],
    words: Sequence[str] | NDArray[np.object_],
    *,
    of: Sequence[str] | None = None,
    n_words: int = 8,
    k: int = 5,
) -> dict[str, list[str]]:
    """Words with the most similar features.

    Parameters
    ----------
    C : ndarray, shape (n_words, embedding_dim)
        Features of each word, the ``C_`` of `NeuralLM` (section 2).
    words : sequence of str
        The word of each id, by falling frequency.
    of : sequence of str, optional
        Words to show the neighbours of; by default some frequent ones.
    n_words : int, default=8
        How many frequent words, where `of` names none: of the first 500, spread
        evenly over those of more than three letters.
    k : int, default=5
        Neighbours of each, by the cosine, among the 2,000 most frequent words.

    Returns
    -------
    neighbours : dict of str to list of str
        Nearest first.

    Raises
    ------
    ValueError
        If `C` has not a row for each word, or a word of `of` is not in `words`.

    Examples
    --------
    >>> import numpy as np
    >>> from nplm.inspection import nearest_words
    >>> C = np.array([[1.0, 0.1], [0.0, 2.0], [3.0, 0.0], [0.1, 1.0]])
    >>> nearest_words(C, ["king", "apple", "queen", "pear"], of=["king", "pear"], k=1)
    {'king': ['queen'], 'pear': ['apple']}
    """
    if len(C) != len(words):
        raise ValueError(f"C has {len(C)} rows, and words {len(words)} words.")
    if of is None:
        # Long enough to mean something.
        meant = [w for w in words[:500] if w.isalpha() and len(w) > 3]
        of = [meant[i] for i in _spread(len(meant), n_words)]
    neighbours = {}
    for word, i in zip(of, ids_of(of, words, "of")):
        nearest, _ = nearest_rows(C, i, k, FREQUENT)
        neighbours[word] = [words[j] for j in nearest]
    return neighbours


def ids_of(asked: Iterable[Any], words: Iterable[Any], name: str) -> list[int]:
    """Look up words; one that is not there is an error of the parameter `name`."""
    ids = {word: i for i, word in enumerate(words)}
    asked = list(asked)
    absent = [word for word in asked if word not in ids]
    if absent:
        raise ValueError(f"{name} has {absent[0]!r}, which is not among the words.")
    return [ids[word] for word in asked]


def _spread(size: int, n: int) -> NDArray[np.intp]:
    """At most n positions, evenly spread over range(size)."""
    return np.unique(np.linspace(0, size - 1, min(n, size)).astype(np.intp))
