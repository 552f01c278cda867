"""Models changed in a limited part of memory have the numbers of those in all of it."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nplm import KneserNeyLM, TextLM
from nplm.formats import save_binary
from nplm.formats.open_model import open_model
from nplm.models.mixtures.changed_words import limited
from nplm.models.mixtures.class_expansion import expanded
from nplm.models.mixtures.static_mixture import mixed
from nplm.models.ngrams.backoff_model import BackoffLM
from nplm.models.ngrams.stages.pruning import pruned_by_entropy
from nplm.models.ngrams.stages.scratch import Scratch
from nplm.models.ngrams.text_ngrams import TextNgrams
from nplm.models.ngrams.trie.trie_checks import arrays_of
from nplm.models.ngrams.trie.work import Work
from tests.helpers import small_text, text

pytestmark = small_text
WORDS = ["</s>", "<unk>", *(f"w{i}" for i in range(2, 12))]
# The word "a" is in both classes, and "w5" is a word of the model too.
CLASSES = {"w3": {"a": 0.5, "b": 0.5}, "w4": {"a": 0.25, "w5": 0.75}}
MEMORY = st.sampled_from([1 << 10, 6 << 10, 1 << 26])
THRESHOLDS = st.sampled_from([0.0, 1e-6, 1e-4, 1e-2, 1e6])


def fitted(seed, order, words=WORDS, threshold=0.0):
    """Return a text model of n-grams, which may have lost some."""
    model = KneserNeyLM(order, n_words=len(words), boundary=0)
    model.fit_stream(text(500, seed=seed, n_words=len(words)))
    model.prune(threshold)
    return TextLM.from_model(BackoffLM.from_trie(model.trie_, boundary=0), words)


def unpacked(lm, folder, work):
    """Save a model as mapped n-grams, and unpack it."""
    path = Path(folder) / "mapped"
    save_binary(lm.estimator_, path, lm.vocabulary_.words_.tolist())
    with open_model(path) as file:
        return file.text_ngrams(work)


def assert_same(found, expected):
    assert list(found.words.words) == list(expected.words.words)
    own = arrays_of(found.trie)
    for name, array in arrays_of(expected.trie).items():
        # The weight of the root is not used, and files lack it.
        first = 1 if name == "bow" else 0
        np.testing.assert_array_equal(own[name][first:], array[first:], err_msg=name)


def assert_same_in_limited_memory(models, change, memory):
    """Compare ``change(models, work)`` in all memory and in a limited part."""
    in_memory = [TextNgrams.of(lm) for lm in models]
    expected = change(in_memory, Work())
    with (
        tempfile.TemporaryDirectory() as folder,
        Scratch(folder, memory) as work,
    ):
        first = in_memory[0]
        others = [unpacked(lm, folder, work) for lm in models[1:]]
        assert_same(change([first, *others], work), expected)


@settings(max_examples=12)
@given(st.integers(1, 5), THRESHOLDS, THRESHOLDS, MEMORY, st.integers(0, 99))
def test_pruned_model_does_not_depend_on_memory(order, before, threshold, memory, seed):
    lm = fitted(seed, order, threshold=before)
    with tempfile.TemporaryDirectory() as folder:
        with Scratch(folder, memory) as work:
            mapped = unpacked(lm, folder, work)
            found = mapped._replace(
                trie=pruned_by_entropy(mapped.trie, threshold, work)
            )
            lm.estimator_.prune(threshold)
            assert_same(found, TextNgrams.of(lm))
        assert [own.name for own in Path(folder).iterdir()] == ["mapped"]


@settings(max_examples=8)
@given(st.integers(1, 5), MEMORY, st.sets(st.sampled_from(WORDS[2:]), min_size=1))
def test_limited_model_does_not_depend_on_memory(order, memory, kept):
    def change(models, work):
        return limited(models[0], kept, work)

    assert_same_in_limited_memory([fitted(order, order)], change, memory)


@settings(max_examples=8)
@given(st.integers(2, 4), st.integers(0, 1), MEMORY, st.integers(0, 99))
def test_expanded_model_does_not_depend_on_memory(order, shorter, memory, seed):
    def change(models, work):
        return expanded(models[0], CLASSES, order - shorter, 10**6, work)

    assert_same_in_limited_memory([fitted(seed, order)], change, memory)


@pytest.mark.slow
@settings(max_examples=12)
@given(
    orders=st.lists(st.integers(1, 5), min_size=2, max_size=3),
    memory=MEMORY,
    learned=st.booleans(),
    threshold=THRESHOLDS,
    seed=st.integers(0, 99),
)
def test_mixture_does_not_depend_on_memory(orders, memory, learned, threshold, seed):
    # Ids of equal words differ, and each model lacks some of the words.
    words = [WORDS, [*WORDS[:2], *reversed(WORDS[4:]), "x"], [*WORDS[:5], "y", "z"]]
    models = [
        fitted(seed + i, order, own, threshold)
        for i, (order, own) in enumerate(zip(orders, words))
    ]
    weights = None if learned else np.full(len(models), 1 / len(models))
    held_out = ["w2 w3 w4", "w5 x w2 y", "w9"] if learned else None
    found = []

    def change(models, work):
        mixture, learned, _ = mixed(models, weights, held_out, work)
        found.append(learned)
        return mixture

    assert_same_in_limited_memory(models, change, memory)
    np.testing.assert_array_equal(*found)
