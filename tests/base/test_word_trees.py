"""Trees of words: by repeated bisection of points, and with more branches."""

import numpy as np
import pytest

from nplm.base.word_trees import MIN_SHARE, bisected, huffman, joined
from nplm.models.neural.network.outputs.tree import checked_tree


def words_below(tree):
    """The words below each inner node; the root comes first."""
    n = len(tree) + 1
    below = [{word} for word in range(n)] + [set() for _ in range(n - 1)]
    for row in reversed(range(n - 1)):
        below[n + row] = below[tree[row, 0]] | below[tree[row, 1]]
    return below


def best_cut(points, weights):
    """Every cut across the first principal axis, by plain sums of squares."""
    centred = points - np.average(points, axis=0, weights=weights)
    axis = np.linalg.svd(np.sqrt(weights)[:, None] * centred)[2][0]
    values = centred @ axis
    order = np.argsort(values)
    found = []
    for k in range(1, len(order)):
        sides = order[:k], order[k:]
        share = min(weights[side].sum() for side in sides) / weights.sum()
        means = [np.average(values[side], weights=weights[side]) for side in sides]
        between = sum(
            weights[side].sum() * mean**2
            for side, mean in zip(sides, means, strict=True)
        )
        found.append((share >= MIN_SHARE, between, set(sides[0].tolist())))
    return max(found, key=lambda cut: cut[:2])[2]


@pytest.mark.parametrize(
    ("n_axes", "outlier"), [(3, 0), (30, 0), (3, 1e4)],
    ids=["few axes", "more axes than words", "a word far from the others"],
)  # fmt: skip
def test_the_cut_has_the_largest_scatter_between_its_sides(n_axes, outlier):
    rng = np.random.default_rng(0)
    for _ in range(10):
        points, weights = rng.normal(size=(20, n_axes)), rng.integers(1, 10, 20)
        points[-1] += outlier
        tree = bisected(points, weights)
        sides = [words_below(tree)[child] for child in tree[0]]
        assert best_cut(points, weights) in sides


def test_each_word_is_a_leaf_even_if_points_are_equal():
    weights = np.array([10**6, *[1] * 30])
    tree = bisected(np.zeros((31, 4)), weights)
    np.testing.assert_array_equal(checked_tree(tree, 31), tree)


def paths(branches, starts, n_words):
    """The choices on the path to each word, as the numbers of branches."""
    found = {n_words if n_words > 1 else 0: ()}
    for node in range(len(starts) - 1):  # parents come first
        for place, child in enumerate(branches[starts[node] : starts[node + 1]]):
            found[child] = (*found[n_words + node], place)
    return [found[word] for word in range(n_words)]


@pytest.mark.parametrize("n_words", [1, 2, 3, 40])
@pytest.mark.parametrize("n_branches", [2, 3, 8, 64])
def test_a_joined_tree_has_the_choices_of_the_binary_one(n_words, n_branches):
    tree = huffman(np.random.default_rng(0).integers(1, 1000, n_words))
    binary = paths(tree.ravel(), 2 * np.arange(n_words), n_words)
    nodes = joined(tree, n_branches)
    wide = paths(nodes.branches, nodes.starts, n_words)
    # A node's branches are in the order of the binary choices that they stand for.
    order = sorted(range(n_words), key=binary.__getitem__)
    assert order == sorted(range(n_words), key=wide.__getitem__)
    assert np.diff(nodes.starts).max(initial=2) <= n_branches
    assert nodes.deepest()[0] == max(map(len, wide))


@pytest.mark.parametrize("n_branches", [2, 3, 8, 39, 40])
def test_a_joined_node_takes_in_the_first_rows_below_it(n_branches):
    n = 40
    tree = bisected(np.random.default_rng(0).normal(size=(n, 4)), np.arange(1, n + 1))

    def expected(row):
        own = tree[row].tolist()
        while len(own) < n_branches and max(own) >= n:
            first = own.index(min(child for child in own if child >= n))
            own[first : first + 1] = tree[own[first] - n].tolist()
        return [child if child < n else expected(child - n) for child in own]

    def found(node):
        own = nodes.branches[nodes.starts[node] : nodes.starts[node + 1]].tolist()
        return [child if child < n else found(child - n) for child in own]

    nodes = joined(tree, n_branches)
    assert found(0) == expected(0)
    inner = nodes.branches[nodes.branches >= n]  # from the root, each once
    assert sorted(inner) == list(range(n + 1, n + len(nodes.starts) - 1))


def test_rows_of_a_bisected_tree_are_in_the_order_of_weight():
    weights = np.random.default_rng(0).integers(1, 1000, 40)
    tree = bisected(np.random.default_rng(1).normal(size=(40, 4)), weights)
    below = words_below(tree)[40:]
    assert below[0] == set(range(40))
    masses = [weights[list(words)].sum() for words in below]
    assert masses == sorted(masses, reverse=True)


def test_the_mass_of_a_branch_is_that_of_the_words_below_it():
    weights = np.random.default_rng(0).integers(1, 1000, 40)
    nodes = joined(huffman(weights), 4)
    wide, masses = paths(nodes.branches, nodes.starts, 40), nodes.masses(weights)
    for place in range(nodes.starts[1]):  # of the root
        below = [word for word in range(40) if wide[word][0] == place]
        assert masses[place] == weights[below].sum()


def test_a_joined_tree_of_two_branches_is_the_binary_one():
    tree = huffman(np.arange(1, 30))
    nodes = joined(tree, 2)
    np.testing.assert_array_equal(nodes.branches.reshape(-1, 2), tree)
    np.testing.assert_array_equal(nodes.parents[30:], [
        np.flatnonzero((tree == row + 29).any(axis=1))[0] for row in range(1, 28)
    ])  # fmt: skip
