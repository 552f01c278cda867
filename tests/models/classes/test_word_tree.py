"""word_tree: trees of words from classes."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from nplm import WordClasses, word_tree
from nplm.models.classes.word_tree import mergers


def information(pairs):
    """Return the log-likelihood of neighbouring classes, by its definition."""
    p = pairs / pairs.sum()
    independent = np.outer(p.sum(axis=1), p.sum(axis=0))
    seen = p > 0
    return (p[seen] * np.log(p[seen] / independent[seen])).sum()


@pytest.mark.parametrize("seed", range(5))
def test_each_merger_loses_the_least(seed):
    rng = np.random.default_rng(seed)
    pairs = rng.poisson(3.0, (7, 7)) * rng.integers(0, 2, (7, 7)) + np.eye(7, dtype=int)
    names = list(range(7))
    for t, (one, other) in enumerate(mergers(pairs)):
        losses = {}
        for i in range(len(names)):
            for j in range(i):
                merged = pairs.copy()
                merged[j] += merged[i]
                merged[:, j] += merged[:, i]
                kept = np.arange(len(names)) != i
                merged = merged[np.ix_(kept, kept)]
                losses[i, j] = information(pairs) - information(merged), merged
        chosen = tuple(sorted((names.index(one), names.index(other)), reverse=True))
        least = min(loss for loss, _ in losses.values())
        assert losses[chosen][0] == pytest.approx(least, abs=1e-12)
        pairs = losses[chosen][1]
        names[chosen[1]] = 7 + t
        del names[chosen[0]]


@pytest.mark.parametrize("n_classes", [1, 2, 5, 40])
def test_tree_has_all_words_and_unbroken_classes(n_classes):
    ids = np.random.default_rng(0).zipf(1.3, 2000) % 40
    labels = np.random.default_rng(1).permutation(np.arange(40) % n_classes)
    tree = word_tree(ids, labels)
    assert tree.shape == (39, 2)
    assert sorted(tree.ravel()) == [i for i in range(79) if i != 40]
    below = {}
    for row in range(38, -1, -1):  # parents come first
        one, other = (below.get(c, {c}) for c in tree[row].tolist())
        below[40 + row] = one | other
    assert below[40] == set(range(40))
    for label in range(n_classes):
        words = set(np.flatnonzero(labels == label))
        assert words in below.values() or len(words) == 1


def test_bad_input():
    with pytest.raises(ValueError, match="a class for 3 words, but n_words=4"):
        word_tree([0, 1], [0, 0, 1], n_words=4)
    with pytest.raises(ValueError, match="ids has 7 at 1, but n_words=3"):
        word_tree([0, 7], [0, 0, 1])
    with pytest.raises(ValueError, match="class 2 but no word of class 0: number the"):
        word_tree([0, 1], [2, 2, 3])
    with pytest.raises(NotFittedError, match=r"\(n_classes=3\) is not fitted: fit"):
        word_tree([0, 1], WordClasses(3))
