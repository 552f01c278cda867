"""Counting kernels against their references, and counts against a dictionary."""

from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from nplm import windows
from nplm._kernels.ngrams import _counts
from nplm.models.ngrams.stages.counts import NgramCounts
from nplm.models.ngrams.trie.trie_checks import arrays_of, check_sizes, check_structure
from tests.reference import ngrams as reference


@pytest.fixture
def stream():
    return (np.random.default_rng(0).zipf(1.3, size=3000) % 40).astype(np.int32)


def pairs(n, n_left, n_right, seed=0):
    rng = np.random.default_rng(seed)
    # Columns of one matrix: strided, as the windows of a stream are.
    columns = np.column_stack(
        [rng.integers(n_left, size=n), rng.integers(n_right, size=n)]
    ).astype(np.int32)
    return columns[:, 0], columns[:, 1]


SIZES = [
    (0, 1, 1),
    (1, 1, 1),
    (100, 1, 1),
    (500, 7, 3),
    (500, 3, 200),
    (300, 1000, 2**31 - 1),  # 41 bits: four digits of the radix sort
    (20_000, 1 << 20, 2**31 - 1),  # 51 bits: no room for rows beside them
]


@pytest.mark.parametrize("module", [_counts, reference], ids=["fast", "naive"])
@pytest.mark.parametrize(("n", "n_left", "n_right"), SIZES)
@pytest.mark.parametrize("range_size", [None, 1, 3, 1 << 30])
def test_pairs_are_ranked(module, n, n_left, n_right, range_size):
    """Also if they are sorted by ranges of left numbers, then by right ones."""
    left, right = pairs(n, n_left, n_right)
    if range_size is not None:
        order = np.lexsort((right, left // range_size))
        left, right = left[order], right[order]
    distinct = sorted(set(zip(left.tolist(), right.tolist())))
    start = np.empty(n_left + 1, dtype=np.int32)
    words, rank = np.empty((2, n), dtype=np.int32)
    found = module.rank_pairs(left, right, n_right, start, words, rank)
    assert found == len(distinct)
    assert_array_equal(words[:found], [w for _, w in distinct])
    assert_array_equal(
        np.repeat(np.arange(n_left), np.diff(start)), [d[0] for d in distinct]
    )
    number = {pair: i for i, pair in enumerate(distinct)}
    assert_array_equal(rank, [number[p] for p in zip(left.tolist(), right.tolist())])


def test_words_are_renamed_as_by_twin():
    rng = np.random.default_rng(0)
    words, new_ids = rng.integers(40, size=(2, 500), dtype=np.int32)
    out, expected = np.empty((2, 500), np.int32)
    _counts.rename(words, new_ids, out)
    reference.rename(words, new_ids, expected)
    assert_array_equal(out, expected)


@pytest.mark.parametrize(("n", "n_ranges"), [(0, 1), (1, 3), (50, 1), (500, 7)])
@pytest.mark.parametrize(("n_columns", "n_bits"), [(1, 1), (2, 31), (3, 6), (5, 20)])
def test_ngrams_are_packed_by_range_as_by_twin(n, n_ranges, n_columns, n_bits):
    rng = np.random.default_rng(0)
    n_words = min(1 << n_bits, 1000)
    ngrams = rng.integers(1 << n_bits, size=(n, n_columns)).astype(np.int32)
    column = n_columns // 2
    ngrams[:, column] %= n_words
    values = rng.choice(np.array([0.5, np.nan, 2], np.float32), n)
    range_of_word = np.sort(rng.integers(n_ranges, size=n_words, dtype=np.int32))
    size, results = _counts.record_bytes(n_columns, n_bits), []
    assert size == reference.record_bytes(n_columns, n_bits)
    for module in (_counts, reference):
        starts, records = np.full(n_ranges + 1, -1), np.zeros(n * size, np.uint8)
        arrays = starts, records
        module.pack_by_range(ngrams, values, column, range_of_word, n_bits, *arrays)
        m = starts[-1]
        rows, numbers = np.empty((m, n_columns), np.int32), np.empty(m, np.float32)
        # The second half before the first.
        places = np.array([[m - m // 2, m // 2], [0, m - m // 2]])
        module.unpack_rows(records[: m * size], n_bits, places, rows, numbers)
        results.append([*arrays, rows, numbers])
    for result, expected in zip(*results):
        assert_array_equal(result, expected)
    kept = ngrams[~np.isnan(values)]
    order = np.argsort(range_of_word[kept[:, column]], kind="stable")
    order = np.roll(order, len(order) - len(order) // 2)
    assert_array_equal(results[0][2], kept[order])


def test_records_of_wrong_sizes_are_refused():
    ngrams, values = np.zeros((2, 3), np.int32), np.ones(2, np.float32)
    starts, records = np.zeros(2, np.int64), np.zeros(20, np.uint8)
    words = np.zeros(1, np.int32)
    assert _counts.record_bytes(3, 16) == 10
    _counts.pack_by_range(ngrams, values, 1, words, 16, starts, records)
    for n_bits, column, out in [(0, 1, records), (32, 1, records), (16, 3, records)]:
        with pytest.raises(ValueError, match=r"bits|belong"):
            _counts.pack_by_range(ngrams, values, column, words, n_bits, starts, out)
    with pytest.raises(ValueError, match="belong together"):
        _counts.pack_by_range(ngrams, values, 1, words, 16, starts, records[1:])
    places = np.array([[1, 1], [0, 1]])
    _counts.unpack_rows(records, 16, places, ngrams, values)
    for wrong in [places[:1], places + 1, places - 1, np.array([[0, 3]])]:
        with pytest.raises(ValueError, match="belong together"):
            _counts.unpack_rows(records, 16, wrong, ngrams, values)
    with pytest.raises(ValueError, match="belong together"):
        _counts.unpack_rows(records[1:], 16, places, ngrams, values)


def dictionary(X, y, boundary):
    """Count (context, next word), with contexts that end at the boundary."""
    counts = Counter()
    for x, w in zip(X.tolist(), y.tolist()):
        for k in range(len(x) + 1):
            context = tuple(x[len(x) - k :])
            counts[context, w] += 1
            if k and context[0] == boundary:
                break
    return counts


def spelled_out(trie, values):
    """Return {(context, next word): value} of a trie, for values that are not 0."""
    contexts = [()] * len(trie.context_word)
    for c in range(len(trie.context_word)):
        for child in range(trie.child_start[c], trie.child_start[c + 1]):
            contexts[child] = (int(trie.context_word[child]), *contexts[c])
    return {
        (contexts[c], int(trie.words[i])): int(values[i])
        for c in range(len(contexts))
        for i in range(trie.start[c], trie.start[c + 1])
        if values[i]
    }


@pytest.mark.parametrize("boundary", [None, 1])
@pytest.mark.parametrize("n_context", [0, 1, 2, 4])
def test_counts_and_continuation_counts_agree_with_dictionary(
    stream, n_context, boundary
):
    X, y = windows(stream, max(n_context, 1), boundary=boundary)
    X = X[:, :n_context]
    trie = NgramCounts.from_windows(X, y, n_words=40, boundary=boundary)
    expected = dictionary(X, y, boundary)
    assert spelled_out(trie, trie.counts) == expected
    assert trie.order == n_context + 1

    distinct_before = Counter((c[1:], w) for c, w in expected if c)
    modified = {
        (c, w): count
        if len(c) == n_context or (c and c[0] == boundary)
        else distinct_before[c, w]
        for (c, w), count in expected.items()
    }
    assert spelled_out(trie, trie.continuation_counts()) == modified
    out = np.empty_like(trie.counts)
    slot = np.empty(40, dtype=np.int32)
    reference.continuation_counts(reference.Trie.of(trie), trie.counts, slot, out)
    assert_array_equal(out, trie.continuation_counts())


def test_arrays_are_sorted_and_the_root_is_dense(stream):
    X, y = windows(stream, 3)
    trie = NgramCounts.from_windows(X, y, n_words=50)
    check_sizes(arrays_of(trie), 50)
    check_structure(trie)
    assert_array_equal(trie.totals()[0], len(y))
