"""Outputs beside the full softmax: classes and trees."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import AgglomerativeClustering
from threadpoolctl import threadpool_info, threadpool_limits

import nplm
from nplm import WordClasses, windows
from nplm.base.word_trees import bisected
from nplm.models.neural.network.outputs import tree
from tests.helpers import paper_lm

each_output = pytest.mark.parametrize("output", ["classes", "tree"])
SMALL = dict(n_hidden=5, embedding_dim=3, max_iter=2, batch_size=8, random_state=0)


def text_windows(n=600, n_words=20, seed=0):
    return windows(np.random.default_rng(seed).zipf(1.3, n) % n_words, 2)


@each_output
def test_continued_training_keeps_classes_and_trees(output, tmp_path):
    X, y = text_windows()
    whole = paper_lm(n_words=20, output=output, **SMALL).fit(X, y)
    steps = paper_lm(n_words=20, output=output, **SMALL)
    steps.partial_fit(X, y).partial_fit(X, y)
    np.testing.assert_array_equal(steps.U_, whole.U_)
    given = f"output__{output}"
    attribute = {"classes": "word_classes_", "tree": "tree_"}[output]
    fitted = getattr(whole, attribute)
    again = pickle.loads(pickle.dumps(whole)).set_params(**{given: fitted})
    rare = np.full((30, 2), 19), np.full(30, 19)  # other frequencies
    again.partial_fit(*rare)
    np.testing.assert_array_equal(getattr(again, attribute), fitted)
    other = np.roll(fitted, 1) if output == "classes" else fitted[:, ::-1]
    with pytest.raises(ValueError, match=f"{given} is not that of the fitted network"):
        again.set_params(**{given: other}).partial_fit(X, y)
    with pytest.raises(ValueError, match="output='softmax' is not that"):
        again.set_params(output="softmax").partial_fit(X, y)
    # A tree, or classes, of one's own are part of what a checkpoint is of.
    lm = paper_lm(n_words=20, output=output, **SMALL).set_params(**{given: fitted})
    lm.fit(X, y, checkpoint=tmp_path)
    np.testing.assert_array_equal(lm.U_, whole.U_)
    with pytest.raises(ValueError, match="checkpoint"):
        clone(lm).set_params(**{given: other}).fit(X, y, checkpoint=tmp_path)


def test_given_classes_are_used():
    X, y = text_windows()
    labels = np.arange(20) % 3
    found = WordClasses(4, n_words=20, random_state=0).fit(y)
    for given, want in (
        (labels.tolist(), labels),
        (np.arange(20), np.arange(20)),  # each word alone
        (np.zeros(20, int), np.zeros(20, int)),
        (found, found.labels_),
    ):
        lm = paper_lm(n_words=20, output="classes", classes=given, **SMALL)
        lm.fit(X, y)
        np.testing.assert_array_equal(lm.word_classes_, want)
        assert lm.tree_ is None
        assert len(lm.b_) == 20 + len(np.unique(want))
        np.testing.assert_allclose(lm.predict_proba(X).sum(axis=1), 1, atol=1e-5)


def test_frequency_bins_have_about_equal_weight():
    X, y = text_windows(5000, 400)
    lm = paper_lm(n_words=400, output="classes", **SMALL | {"max_iter": 1}).fit(X, y)
    counts = np.bincount(y, minlength=400) + 1
    assert len(np.unique(lm.word_classes_)) <= 20
    mass = np.bincount(lm.word_classes_, counts) / counts.sum()
    assert mass[1:].max() < 0.06 or mass.max() == counts.max() / counts.sum()
    by_class = [counts[lm.word_classes_ == c] for c in range(len(mass))]
    for more, fewer in pairwise(by_class):
        assert more.min() >= fewer.max()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros(19, int), "a class for 19 words, but n_words=20"),
        (-np.arange(20), r"classes has -1 at 1, but word ids start at 0"),
        (np.full(20, 0.5), "classes has 0.5 at 0, which is not a whole"),
        (WordClasses(3), "is not fitted: .* and pass its labels_"),
        (np.arange(20) % 3 * 5, "classes has class 5 but no word of class 1"),
        (np.zeros((20, 1)), "classes must have 1 dimension"),
    ],
)
def test_invalid_classes_are_refused(given, message):
    lm = paper_lm(n_words=20, output="classes", classes=given, **SMALL)
    with pytest.raises(ValueError, match=message):
        lm.fit(*text_windows())


def mean_depth(tree, weights):
    """Of the leaves, by their weights; parents come first."""
    depth = np.zeros(2 * len(tree) + 1)
    for row, pair in enumerate(tree):
        depth[pair] = depth[len(tree) + 1 + row] + 1
    return np.average(depth[: len(weights)], weights=weights)


def test_the_huffman_tree_has_the_least_mean_depth():
    X, y = text_windows()
    lm = paper_lm(n_words=20, output="tree", tree="huffman", **SMALL).fit(X, y)
    weights = np.bincount(y, minlength=20) + 1
    p = weights / weights.sum()
    depth, bits = mean_depth(lm.tree_, weights), -(p * np.log2(p)).sum()
    assert bits <= depth < bits + 1
    merges, total = sorted(weights.tolist()), 0
    while len(merges) > 1:
        total += merges[0] + merges[1]
        merges = sorted([merges[0] + merges[1], *merges[2:]])
    assert depth == pytest.approx(total / weights.sum())


def test_default_tree_groups_words_of_similar_contexts():
    # A word of each half of the vocabulary comes after any of the other half.
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 10, 4000) + 10 * (np.arange(4000) % 2)
    X, y = windows(ids, 2)
    lm = paper_lm(n_words=22, output="tree", **SMALL).fit(X, y)  # two never come
    tree, below = lm.tree_, [{i} for i in range(22)] + [set()] * 21
    for row in reversed(range(21)):
        below[22 + row] = below[tree[row, 0]] | below[tree[row, 1]]
    halves = [below[child] - {20, 21} for child in tree[0]]
    assert sorted(halves, key=min) == [set(range(10)), set(range(10, 20))]
    assert mean_depth(tree, np.bincount(y, minlength=22) + 1) < np.log2(22) + 1
    again = clone(lm).set_params(n_jobs=2, parallel="async").fit(X, y)
    np.testing.assert_array_equal(again.tree_, tree)


def pickled(lm, folder):
    return pickle.loads(pickle.dumps(lm))


def saved(lm, folder):
    nplm.save(lm, folder / "model")
    return nplm.load(folder / "model")


HUFFMAN = dict(tree="huffman")


@pytest.mark.parametrize("again", [pickled, saved], ids=["pickled", "saved"])
@pytest.mark.parametrize(
    ("fitted", "asked"), [(HUFFMAN, {}), ({}, HUFFMAN)], ids=["huffman", "default"]
)
def test_tree_of_another_origin_is_refused(fitted, asked, again, tmp_path):
    X, y = text_windows()
    lm = paper_lm(n_words=20, output="tree", **fitted, **SMALL).fit(X, y)
    lm = again(lm, tmp_path)
    tree = lm.partial_fit(X, y).tree_
    for other in (asked.get("tree"), tree[:, ::-1]):
        lm.set_params(output__tree=other)
        for go_on in (lm.partial_fit, lm.set_params(warm_start=True).fit):
            with pytest.raises(ValueError, match="output__tree is not that of the"):
                go_on(X, y)
    lm.set_params(output__tree=tree).partial_fit(X, y)
    lm.set_params(output__tree=fitted.get("tree")).partial_fit(X, y)
    np.testing.assert_array_equal(lm.tree_, tree)


def test_tree_of_a_scikit_learn_clustering():
    X, y = text_windows()
    features = np.random.default_rng(0).normal(size=(20, 3))
    children = AgglomerativeClustering().fit(features).children_
    lm = paper_lm(n_words=20, output="tree", tree=children, **SMALL).fit(X, y)
    P = lm.predict_proba(X[:5])
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-5)

    def words_below(tree):
        below = [{i} for i in range(20)] + [set()] * 19
        for _ in range(19):
            for row, pair in enumerate(tree):
                below[20 + row] = below[pair[0]] | below[pair[1]]
        return {frozenset(words) for words in below}

    assert words_below(lm.tree_) == words_below(children)
    # The attribute given back is the same network.
    again = clone(lm).set_params(output__tree=lm.tree_).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X[:5]), P)


CHAIN = [[0, 5], [1, 6], [2, 7], [3, 4]]  # of five words: nodes 5 to 8


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (CHAIN[:3], r"shape \(3, 2\), but a tree of n_words=5 words has 4 inner"),
        (
            [[0, 6], [1, 1], [2, 7], [3, 4]],
            "row 1 of tree has child 1 twice",
        ),
        ([[0, 6], [1, 7], [2, 8], [3, 9]], "tree has 9 at row 3, column 1; words"),
        ([[0, 6], [1, 7], [2, 8], [3, 0]], "tree has word 0 2 times"),
        ([[0, 6], [1, 7], [6, 8], [3, 4]], "has the node of row 1 2 times"),
        ([[0, 6], [1, 7], [5, 8], [3, 4]], "tree lacks word 2"),
        ([[0, 5], [1, 7], [2, 8], [3, 4]], "a cycle: 1 nodes cannot be reached"),
        ([[0, 6], [1, -1], [2, 8], [3, 4]], "tree has -1 at row 1, column 1"),
    ],
)
def test_invalid_trees_are_refused(tree, message):
    lm = paper_lm(n_words=5, output="tree", tree=tree, **SMALL)
    with pytest.raises(ValueError, match=message):
        lm.fit(*text_windows(n_words=5))


@pytest.mark.parametrize("n_words", [1, 2, 3])
@each_output
def test_few_words(output, n_words):
    X, y = text_windows(n_words=n_words)
    lm = paper_lm(n_words=n_words, output=output, **SMALL).fit(X, y)
    P = lm.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(
        lm.log_prob(X, y), np.log(P[np.arange(len(y)), y]), atol=1e-5
    )


def test_the_default_tree_is_made_with_one_thread_of_blas(monkeypatch):
    # Its many small products are slower with more, and may round differently.
    used = []

    def seen(points, weights):
        pools = (pool for pool in threadpool_info() if pool["user_api"] == "blas")
        used.extend(pool["num_threads"] for pool in pools)
        return bisected(points, weights)

    monkeypatch.setattr(tree, "bisected", seen)
    ids = np.random.default_rng(0).integers(0, 20, 100)
    with threadpool_limits(2, user_api="blas"):
        paper_lm(n_words=20, output="tree", max_iter=1).fit(*windows(ids, 2))
    assert set(used) == {1}
