"""Quantized models have the same n-grams, with rounded probabilities and weights."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nplm.base.fitted import Fitted
from nplm.models.ngrams.looked_up_lm import QuantizedLM
from nplm.models.ngrams.stages import quantizing
from nplm.models.ngrams.stages.quantizing import Quantizing
from nplm.models.ngrams.stages.scratch import Scratch
from nplm.models.ngrams.trie.bits import pack_records, unpack_records
from nplm.models.ngrams.trie.quantized_trie import (
    Codebook,
    quantized_items,
    restored_quantized,
)
from tests.helpers import arpa
from tests.helpers.ngrams import cut_in_memory
from tests.reference import ngrams as reference


@pytest.fixture(scope="module", params=[2, 3, 5])
def fitted(request):
    model, X, y = arpa.fitted(request.param, n_words=41)
    return model, *arpa.with_unseen(X, y)


def quantized_of(trie, bits, memory=1 << 20):
    """Return a quantized trie, of nodes that were sorted in this much memory."""
    with Scratch(None, memory) as scratch:
        work = Quantizing(trie, bits, scratch)
        arrays = {name: np.zeros(n, kind) for name, (kind, n) in work.sizes.items()}
        work.fill(arrays)
        assert not scratch._open
    return restored_quantized(Fitted(arrays | work.header))


def codebook(values, bits, absent, parts=1):
    book = Codebook(bits, absent)
    for own in np.array_split(values, parts):
        book.add(own)
    book.learn()
    return book.codes(values), book.values


def tries(model):
    """Return the trie, and a pruned one that lacks suffixes of its n-grams."""
    keep = np.random.default_rng(0).random(len(model.trie_.words)) < 0.3
    return model.trie_, cut_in_memory(model.trie_, keep)


@pytest.mark.parametrize("width", [1, 7, 8, 33, 57])
@pytest.mark.parametrize("n", [0, 1, 8, 21])
def test_records_are_unpacked_as_packed(width, n):
    rng = np.random.default_rng(0)
    values = rng.integers(0, 1 << width, size=n, dtype=np.uint64)
    packed = pack_records(values, width)
    bits = values[:, np.newaxis] >> np.arange(width, dtype=np.uint64) & np.uint64(1)
    padded = np.zeros(8 * len(packed), dtype=np.uint8)
    padded[: bits.size] = bits.ravel()
    assert_array_equal(packed, np.packbits(padded, bitorder="little"))
    assert len(packed) == -(-n // 8) * width + 8
    assert_array_equal(unpack_records(packed, width, n), values)


def test_codebook_is_exact_if_codes_suffice():
    values = np.float32([0.5, 0.25, -1, 0.5, 0, 1e-30, 1.0])
    codes, book = codebook(values, 3, absent=-1)
    assert_allclose(book[codes], values, rtol=1e-6)
    assert codes[2] == 0


def test_codes_stand_for_the_nearest_value():
    values = np.random.default_rng(0).lognormal(-5, 3, size=2000).astype(np.float32)
    codes, book = codebook(values, 4, absent=-1)
    log = np.log(values)[:, np.newaxis]
    found = book[book > 0]
    nearest = np.abs(log - np.log(found)).argmin(axis=1) + 2
    assert np.mean(codes == nearest) > 0.999
    # Each value of the codebook is the mean of the values of its code.
    for code in range(2, 2 + len(found)):
        mean = np.log(values[codes == code], dtype=np.float64).mean()
        assert_allclose(np.log(book[code]), mean, rtol=1e-5)


@pytest.mark.parametrize("absent", [-1, 1])
def test_codes_do_not_depend_on_the_order_of_values(absent):
    rng = np.random.default_rng(0)
    values = rng.lognormal(-5, 3, size=5000).astype(np.float32)
    values[::7], values[::11] = absent, 0
    order = rng.permutation(len(values))
    codes, book = codebook(values, 6, absent)
    others, again = codebook(values[order], 6, absent, parts=9)
    assert_array_equal(book, again)
    assert_array_equal(codes[order], others)
    assert_array_equal(codes == 0, values == absent)
    assert_array_equal(codes == 1, values == 0)


def test_quantized_trie_does_not_depend_on_ranges(fitted, monkeypatch):
    monkeypatch.setattr(quantizing, "PACKED", 64)
    model, *_ = fitted
    for trie in tries(model):
        whole, parts = quantized_of(trie, 6), quantized_of(trie, 6, memory=1 << 10)
        (sizes, arrays), (again, others) = map(quantized_items, (whole, parts))
        assert sizes == again
        for name, own in arrays.items():
            assert_array_equal(own, others[name])


@pytest.mark.parametrize(("bits", "rtol"), [(4, 2), (12, 2e-3)])
def test_quantized_kernel_agrees_with_reference_and_trie(fitted, bits, rtol):
    """With enough codes the scores are those of the trie."""
    model, X, y = fitted
    X, y = X[::32], y[::32]
    for trie in tries(model):
        quantized = quantized_of(trie, bits)
        assert_array_equal(quantized.n_ngrams, trie.n_ngrams)
        found, expected = quantized.next_word_prob(X, y), np.empty(len(y))
        reference.quantized_prob(quantized, X, y, expected)
        assert_allclose(found, expected, rtol=1e-12)
        assert_allclose(found, trie.next_word_prob(X, y), rtol=rtol)


def test_quantized_model_scores_and_predicts(fitted):
    model, X, y = fitted
    quantized = QuantizedLM.from_trie(quantized_of(model.trie_, 8))
    assert quantized.perplexity(X, y) == pytest.approx(model.perplexity(X, y), rel=5e-3)
    proba = quantized.predict_proba(X[:9])
    assert_array_equal(
        np.log(proba[np.arange(9), y[:9]]), quantized.log_prob(X[:9], y[:9])
    )
    assert_allclose(proba.sum(axis=1), 1, atol=0.05)
    candidates = quantized.candidate_log_prob(X[:9], [1, 5])
    assert_array_equal(candidates, quantized.predict_log_proba(X[:9])[:, [1, 5]])
    again = pickle.loads(pickle.dumps(quantized))
    assert_array_equal(again.log_prob(X, y), quantized.log_prob(X, y))
    with pytest.raises(TypeError, match="is read from a file"):
        quantized.fit(X, y)
