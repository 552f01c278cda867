"""Models made on disk, of one or several, have the numbers of those in memory."""

import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nplm import (
    KneserNeyLM,
    TextLM,
    expand_classes,
    limit_vocabulary,
    static_mixture,
)
from nplm.formats import load_binary, save_binary, write_arpa
from nplm.formats.ngrams.opening import unpacked_lm
from nplm.models.mixtures.class_expansion import expanded
from nplm.models.mixtures.limited_vocabulary import limited
from nplm.models.mixtures.static_mixture import mixed
from nplm.models.ngrams.backoff_lm import BackoffLM
from nplm.models.ngrams.saved import arrays_of
from nplm.models.ngrams.stages.scratch import Scratch
from nplm.models.training.parallel.threads import Threads
from tests.helpers import small_text, text
from tests.helpers.ngrams import arpa_lm

pytestmark = small_text
WORDS = ["</s>", "<unk>", *(f"w{i}" for i in range(2, 12))]


def fitted(seed, order, words=WORDS, threshold=0.0):
    """Return a text model of n-grams, which may have lost some."""
    model = KneserNeyLM(order, n_words=len(words), boundary=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit_stream(text(500, seed=seed, n_words=len(words)))
    model.prune(threshold)
    return TextLM.from_model(BackoffLM.from_trie(model.trie_, boundary=0), words)


def mapped(lm, folder, name):
    """Save a model as mapped n-grams, and load it."""
    path = Path(folder) / name
    save_binary(lm.estimator_, path, lm.vocabulary_.words_.tolist())
    return TextLM.from_model(*load_binary(path))


def scratch_in(folder, memory):
    return Scratch(folder, memory, Threads(1))


def assert_same(found, expected):
    assert found.vocabulary_.words_.tolist() == expected.vocabulary_.words_.tolist()
    own = arrays_of(found.estimator_.trie_)
    for name, array in arrays_of(expected.estimator_.trie_.verified()).items():
        # The weight of the root is not used, and files lack it.
        first = 1 if name == "bow" else 0
        np.testing.assert_array_equal(own[name][first:], array[first:], err_msg=name)


MEMORY = st.sampled_from([1 << 10, 6 << 10, 1 << 26])
ORDERS = st.integers(1, 5)
SEEDS = st.integers(0, 99)
THRESHOLDS = st.sampled_from([0.0, 1e-6, 1e-4, 1e-2, 1e6])


@settings(max_examples=12)
@given(order=ORDERS, before=THRESHOLDS, threshold=THRESHOLDS, memory=MEMORY, seed=SEEDS)
def test_pruned_model_is_that_in_memory(order, before, threshold, memory, seed):
    lm = fitted(seed, order, threshold=before)
    with tempfile.TemporaryDirectory() as folder:
        source = mapped(lm, folder, "mapped")
        with scratch_in(folder, memory) as scratch:
            found = unpacked_lm(source, scratch)
            found.estimator_.prune_within(scratch, threshold)
            lm.estimator_.prune(threshold)
            assert_same(found, lm)
        assert [own.name for own in Path(folder).iterdir()] == ["mapped"]


@settings(max_examples=8)
@given(
    order=ORDERS,
    memory=MEMORY,
    kept=st.sets(st.sampled_from(WORDS[2:]), min_size=1),
    seed=SEEDS,
)
def test_limited_model_is_that_in_memory(order, memory, kept, seed):
    lm = fitted(seed, order)
    with (
        tempfile.TemporaryDirectory() as folder,
        scratch_in(folder, memory) as scratch,
    ):
        found = limited(unpacked_lm(lm, scratch), kept, scratch)
        assert_same(found, limit_vocabulary(lm, kept))


@settings(max_examples=8)
@given(order=st.integers(2, 4), shorter=st.integers(0, 1), memory=MEMORY, seed=SEEDS)
def test_expanded_model_is_that_in_memory(order, shorter, memory, seed):
    lm, order = fitted(seed, order), order - shorter
    # The word "a" is in both classes, and "w5" is a word of the model too.
    classes = {"w3": {"a": 0.5, "b": 0.5}, "w4": {"a": 0.25, "w5": 0.75}}
    with (
        tempfile.TemporaryDirectory() as folder,
        scratch_in(folder, memory) as scratch,
    ):
        found = expanded(unpacked_lm(lm, scratch), classes, order, 10**6, scratch)
        assert_same(found, expand_classes(lm, classes, order=order))


@settings(max_examples=12)
@given(
    orders=st.lists(ORDERS, min_size=2, max_size=3),
    memory=MEMORY,
    learned=st.booleans(),
    threshold=THRESHOLDS,
    seed=SEEDS,
)
def test_mixture_is_that_in_memory(orders, memory, learned, threshold, seed):
    # Ids of equal words differ, and each model lacks some of the words.
    words = [WORDS, [*WORDS[:2], *reversed(WORDS[4:]), "x"], [*WORDS[:5], "y", "z"]]
    models = [
        fitted(seed + i, order, own, threshold)
        for i, (order, own) in enumerate(zip(orders, words))
    ]
    weights = None if learned else np.full(len(models), 1 / len(models))
    held_out = ["w2 w3 w4", "w5 x w2 y", "w9"] if learned else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        expected = static_mixture(models, weights, X_val=held_out)
        with tempfile.TemporaryDirectory() as folder:
            sources = [mapped(lm, folder, str(i)) for i, lm in enumerate(models[1:])]
            arpa = Path(folder) / "arpa"
            write_arpa(models[0].estimator_, arpa, WORDS)
            with scratch_in(folder, memory) as scratch:
                first = unpacked_lm(models[0], scratch)
                own = [first, *(unpacked_lm(lm, scratch) for lm in sources)]
                found = mixed(own, weights, held_out, scratch)
                np.testing.assert_array_equal(found.weights, expected.weights)
                assert_same(found.lm, expected.lm)


@pytest.mark.parametrize("threshold", [np.nan, np.inf, -1, "1"])
def test_threshold_out_of_range_is_refused(tmp_path, threshold):
    with (
        scratch_in(tmp_path, 1 << 12) as scratch,
        pytest.raises(ValueError, match="threshold must be 0 or more"),
    ):
        fitted(0, 2).estimator_.prune_within(scratch, threshold)


def test_arpa_file_is_read_as_in_memory(tmp_path):
    lm = fitted(0, 3)
    write_arpa(lm.estimator_, tmp_path / "arpa", WORDS)
    import nplm

    with scratch_in(tmp_path, 1 << 12) as scratch:
        assert_same(
            arpa_lm(tmp_path / "arpa", scratch),
            nplm.load(tmp_path / "arpa"),
        )


def test_arpa_file_without_boundary_is_refused(tmp_path):
    model = KneserNeyLM(2, n_words=12, discount_fallback=0.5)
    model.fit_stream(text(300, seed=0, n_words=12))
    write_arpa(model, tmp_path / "arpa", [f"w{i}" for i in range(12)])
    with (
        scratch_in(tmp_path, 1 << 12) as scratch,
        pytest.raises(ValueError, match="has no n-grams with <s> or </s>"),
    ):
        arpa_lm(tmp_path / "arpa", scratch)
