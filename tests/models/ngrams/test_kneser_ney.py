"""KneserNeyLM against its equations, evaluated on dictionaries."""

import re
from collections import Counter
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from nplm import KneserNeyLM, Vocabulary, windows
from nplm.models.ngrams.stages.discounts import counts_of_counts, find_discounts
from tests.helpers import small_text, text
from tests.helpers.ngrams import DictionaryKneserNey

N_WORDS = 12


def settings_of_models():
    return st.fixed_dictionaries(
        {
            "n_tokens": st.integers(6, 400),
            "n_words": st.integers(2, 12),
            "n_unseen": st.integers(0, 1),
            "order": st.integers(1, 9),
            "discounts": st.sampled_from(["modified", "plain"]),
            "interpolate": st.booleans(),
            "interpolate_unigrams": st.booleans(),
            "min_counts": st.sampled_from([(1,), (1, 1, 2), (2,), (1, 2, 3)]),
            "min_counts_of": st.sampled_from(["modified", "text"]),
            "boundary": st.sampled_from([None, 0, 1]),
            "seed": st.integers(0, 2**16),
        }
    )


@small_text
@settings(max_examples=60)
@given(settings_of_models())
def test_kneser_ney_agrees_with_dictionary(case):
    n_tokens, seed, n_seen = (case.pop(n) for n in ("n_tokens", "seed", "n_words"))
    n_words = n_seen + case.pop("n_unseen")
    order, boundary, given = case["order"], case["boundary"], case["min_counts"]
    # A word that is never seen must still have a positive probability. Without one, a
    # context may be followed by every word, and has none to back off to.
    ids, width = text(n_tokens, seed, n_seen), max(order - 1, 1)
    X, y = windows(np.resize(ids, max(n_tokens, order + 1)), width, boundary=boundary)
    model = KneserNeyLM(n_words=n_words, **case).fit(X, y)
    expected = DictionaryKneserNey(
        [x[width - (order - 1) :] for x in X.tolist()],
        y.tolist(),
        n_words,
        case["interpolate"],
        (given + (given[-1],) * order)[:order],
        boundary,
        case["min_counts_of"] == "text",
        case["interpolate_unigrams"],
        case["discounts"] == "plain",
    )
    assert_allclose(model.discounts_, expected.discounts)
    # Contexts that were seen, partly seen, and never seen.
    shuffled = np.random.default_rng(seed).permuted(X, axis=0)
    unseen = np.full((1, width), n_words - 1)
    contexts = np.concatenate([X[:20], shuffled[:20], unseen])
    proba, rows = model.predict_proba(contexts), []
    for x in contexts[:, width - (order - 1) :].tolist():
        while boundary in x[1:]:
            x = x[1:]
        rows.append(expected.row(tuple(x)))
    assert_allclose(proba, rows, rtol=2e-6)
    assert_allclose(proba.sum(axis=1), 1, atol=1e-6)
    assert (proba > 0).all()
    for w in range(n_words):
        scores = model.log_prob(contexts, np.full(len(contexts), w))
        assert_allclose(scores, np.log(proba[:, w]), rtol=1e-12, atol=1e-12)


@small_text
def test_cutoffs_drop_ngrams_and_empty_contexts():
    X, y = windows(text(20000, n_words=60), 3)
    every = KneserNeyLM().fit(X, y)
    cut = KneserNeyLM(min_counts=(1, 1, 2)).fit(X, y)
    assert_array_equal(every.discounts_, cut.discounts_)
    assert_array_equal(every.n_ngrams_[:2], cut.n_ngrams_[:2])
    assert (every.n_ngrams_[2:] > cut.n_ngrams_[2:]).all()
    kept = Counter(map(tuple, np.column_stack([X, y]).tolist()))
    assert cut.n_ngrams_[3] == sum(count >= 2 for count in kept.values())
    assert len(cut.trie_.words) == cut.n_ngrams_.sum()
    trie = cut.trie_
    leads_on = np.diff(trie.start) + np.diff(trie.child_start)
    assert (leads_on[1 + 60 :] > 0).all()
    assert cut.n_parameters_ < every.n_parameters_


@pytest.mark.parametrize(
    ("n", "kind", "interpolate", "used", "message"),
    [
        ([3, 0, 0, 1], "plain", True, [0.5] * 3, r"1-grams \(3 of count 1, 0 of .*2\)"),
        ([0, 3, 0, 0], "modified", True, [0.5, 1, 1.5],
         r"the 1-grams \(0 of count 1, 3 of count 2, 0 of count 3\): it uses 0\.5, 1 "),
        # n3 / n2 = 20 makes D2 negative.
        ([10, 5, 100, 10], "modified", True, [0.5, 1, 1.5],
         r"1-grams \(they come out as .*, -28"),
        # Without interpolation the discount of a whole count leaves nothing.
        ([8, 4, 3, 0], "modified", True, [0.5, 0.875, 3], None),
        ([8, 4, 3, 0], "modified", False, [0.5, 1, 1.5],
         r"discounts of the 1-grams \(they .* and 3\)"),
    ],
)  # fmt: skip
def test_discounts_that_cannot_be_estimated_fall_back(
    n, kind, interpolate, used, message
):
    counted = [counts_of_counts(np.repeat([1, 2, 3, 4], n))]
    warned = nullcontext() if message is None else pytest.warns(UserWarning)
    with warned as caught:
        found = find_discounts(counted, kind, interpolate=[interpolate])
    assert_allclose(found, [used])
    if message is not None:
        assert re.search(message, str(caught[0].message)) and len(caught) == 1


def test_warning_of_a_fit_is_at_its_line():
    X, y = windows(np.tile([0, 1, 0, 2, 1, 2], 50), 1)
    with pytest.warns(UserWarning, match="the 1-grams .*, the 2-grams .* in") as caught:
        KneserNeyLM(n_words=5).fit(X, y)
    assert {warning.filename for warning in caught} == {__file__}


SENTENCES = """the log is a log
the log is a log
the cat sat on the mat
the mat is on the floor
the mouse saw a cat and a dog
on the floor sat a mouse
the log is a log
the mat is on the floor
on the floor sat a mouse
a cat is a cat"""
# Discounts, and log10 of probabilities, of `lmplz -o 2` (KenLM at 4cb443e) on these
# sentences, which have no unigram of adjusted count 4.
LMPLZ_DISCOUNTS = [[0.333333, 1.6, 3], [0.466667, 0.95, 2.37778]]
LMPLZ = {
    ("log", "</s>"): -0.6700207,
    ("</s>", "the"): -0.31507125,
    ("a", "mouse"): -0.80633134,
    ("on", "the"): -0.25817505,
    ("log", "cat"): -0.100949995 - 1.2392844,  # backs off
    ("dog", "<unk>"): -0.33099324 - 1.3454491,
}


def test_discounts_without_a_count_of_four_agree_with_lmplz():
    vocabulary = Vocabulary()
    documents = vocabulary.fit_transform(
        [line.split() for line in SENTENCES.split("\n")]
    )
    model = KneserNeyLM(2, n_words=vocabulary.n_words_, boundary=0)
    model.fit_stream(documents)  # without a warning
    assert_allclose(model.discounts_, LMPLZ_DISCOUNTS, rtol=1e-5)
    X, y = np.hsplit(np.array(vocabulary.transform(list(LMPLZ))), 2)
    found = model.log_prob(X, y.ravel()) / np.log(10)
    assert_allclose(found, list(LMPLZ.values()), atol=2e-6)


def test_boundary_inside_a_sentence_is_refused():
    with pytest.raises(ValueError, match=r"ids\[1\] has the boundary, 0, at 2"):
        KneserNeyLM(2, boundary=0).fit_stream([[1, 2], [1, 2, 0, 1]])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"min_counts": (1, 0)}, r"min_counts .* got \(1, 0\)"),
        ({"min_counts": 2}, "min_counts .* got 2"),
        ({"min_counts": ()}, r"min_counts .* got \(\)"),
        ({"min_counts": (1.5,)}, r"min_counts .* got \(1.5,\)"),
        ({"boundary": 99}, "boundary .* from 0 to 11 .* got 99"),
        ({"boundary": -1}, "'boundary' .* Got -1"),
        ({"boundary": 2**40}, f"boundary must .* got {2**40}"),
        ({"boundary": True}, "'boundary' .* an int .* Got True"),
        ({"min_counts": (2**70,)}, r"min_counts must .*below 2\*\*53"),
        ({"order": 4}, "order=4 needs contexts of 3 words, but X has 2 columns"),
        ({"n_words": 3}, "n_words=3"),
    ],
)
def test_invalid_parameters_are_refused(parameters, message):
    X, y = windows(text(500), 2)
    with pytest.raises(ValueError, match=message):
        KneserNeyLM(**{"n_words": N_WORDS, **parameters}).fit(X, y)


@small_text
def test_grid_search_finds_the_order():
    """The last two words determine the next one, so the best order is 3."""
    ids = text(1500)
    for i in range(2, len(ids)):
        ids[i] = (ids[i] + 3 * ids[i - 1] + ids[i - 2]) % N_WORDS
    X, y = windows(ids, 3)
    lm = KneserNeyLM(n_words=N_WORDS)
    search = GridSearchCV(lm, {"order": [1, 2, 3, 4]}, cv=3).fit(X, y)
    assert search.best_params_ == {"order": 3}
    assert search.best_estimator_.order_ == 3
    lm.set_params(order=3)
    thirds = np.array_split(np.arange(len(y)), 3)  # contiguous folds
    scores = [
        clone(lm).fit(np.delete(X, part, 0), np.delete(y, part)).score(X[part], y[part])
        for part in thirds
    ]
    assert search.best_score_ == pytest.approx(np.mean(scores))
