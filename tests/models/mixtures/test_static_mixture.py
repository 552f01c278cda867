"""Static interpolation against its definition, in dictionaries."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.frozen import FrozenEstimator

from nplm import (
    KneserNeyLM,
    MixtureLM,
    TextLM,
    Vocabulary,
    aligned,
    static_mixture,
)
from nplm.formats import read_arpa, write_arpa
from nplm.models.ngrams.stages.mixing import AlignedTrie, mixed_trie
from nplm.models.ngrams.trie.work import Work
from tests.helpers.ngrams import DictionaryBackoff, lines_of

pytestmark = pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate")

A = [f"a{i}" for i in range(12)]
SHARED = [f"s{i}" for i in range(6)]
B = [f"b{i}" for i in range(9)]


def dictionary(lm):
    return DictionaryBackoff(lm.estimator_.trie_, lm.vocabulary_.words_)


class DictionaryMixture:
    """The definition: weighted averages, and weights that make sums 1."""

    def __init__(self, members, weights):
        self.words = set().union(*(m.words for m in members))
        grams = sorted(set().union(*(m.prob for m in members)), key=len)
        self.prob = {
            g: sum(a * m.p(g[:-1], g[-1]) for a, m in zip(weights, members))
            for g in grams
        }
        self.bow = {}
        for context in sorted({g[:-1] for g in grams if len(g) > 1}, key=len):
            seen = [w for w in self.words if (*context, w) in self.prob]
            left = 1 - sum(self.prob[(*context, w)] for w in seen)
            below = sum(self.p(context[1:], w) for w in self.words - set(seen))
            self.bow[context] = left / below if below else 1.0

    p = DictionaryBackoff.p


def trained(lines, order, **parameters):
    model = KneserNeyLM(order, discount_fallback=0.5, **parameters)
    return TextLM(model, n_context=max(order - 1, 1)).fit(lines)


def named(lines, **symbols):
    """Return a bigram model with other names for its symbols."""
    words, model = Vocabulary(**symbols), KneserNeyLM(2, discount_fallback=0.5)
    documents = [line.split() for line in lines]
    return TextLM(model, n_context=1, vocabulary=words).fit(documents)


@pytest.fixture(scope="module")
def models():
    return [
        trained(lines_of(400, ["", "", *SHARED, *A], seed=1), 3),
        trained(lines_of(300, ["", "", *SHARED[::-1], *B], seed=2), 4),
    ]


def check_definition(models, weights):
    lm = static_mixture(models, weights).lm
    expected = DictionaryMixture([dictionary(m) for m in models], weights)
    made = dictionary(lm)
    assert made.prob.keys() == expected.prob.keys()
    for gram, p in expected.prob.items():
        assert made.prob[gram] == pytest.approx(p, rel=1e-5, abs=1e-7), gram
    trie = lm.estimator_.trie_
    mass = trie.masses(np.arange(trie.n_words, dtype=np.int32))
    assert_allclose(mass, 1, atol=2e-6)
    for context, word in itertools.product(list(expected.bow)[:40], expected.words):
        assert made.p(context, word) == pytest.approx(
            expected.p(context, word), rel=1e-3, abs=2e-6
        )


@pytest.mark.parametrize("weights", [[0.5, 0.5], [0.9, 0.1], [1.0, 0.0]])
def test_probabilities_are_the_averages_of_the_backed_off_ones(models, weights):
    check_definition(models, weights)


@pytest.mark.slow
@settings(max_examples=25)
@given(
    texts=st.lists(
        st.lists(st.text("abcdefg", min_size=3, max_size=12), min_size=2, max_size=8),
        min_size=2,
        max_size=3,
    ),
    orders=st.lists(st.integers(2, 4), min_size=3, max_size=3),
    weight=st.floats(0.01, 0.99),
)
def test_sums_are_one_for_any_texts(texts, orders, weight):
    members = [
        trained([" ".join(line) for line in lines], order)
        for lines, order in zip(texts, orders)
    ]
    rest = (1 - weight) / (len(members) - 1)
    check_definition(members, [weight] + [rest] * (len(members) - 1))


def test_sums_are_one_where_every_word_follows_a_context():
    lines = [f"{v} {w}" for v, w in itertools.product("abc", repeat=2)] * 3
    members = [trained(lines, 2), trained([*lines[:9], "a", ""], 3)]
    check_definition(members, [0.3, 0.7])


@pytest.mark.parametrize("orders", [(1, 3), (3, 1), (1, 1)])
def test_orders_may_differ_and_be_1(orders):
    texts = lines_of(60, ["", "", *SHARED], 1), lines_of(60, ["", "", *SHARED, *B], 2)
    check_definition([trained(t, n) for t, n in zip(texts, orders)], [0.3, 0.7])


def test_pruned_models_are_mixed(models):
    pruned = trained(lines_of(300, ["", "", *SHARED[::-1], *B], seed=2), 4)
    before = pruned.estimator_.n_ngrams_.sum()
    pruned.estimator_.prune(0.003)
    assert pruned.estimator_.n_ngrams_.sum() < before
    check_definition([pruned, models[0]], [0.3, 0.7])


def test_words_that_a_model_lacks_have_probability_0_in_it(models):
    trie = models[1].estimator_.trie_
    aligned = AlignedTrie(trie, np.arange(1, trie.n_words + 1, dtype=np.int32), 99)
    y = np.array([0, 1, 98], dtype=np.int32)
    X = np.array([[98, 3, 4]] * 3, dtype=np.int32)
    prob = aligned.next_word_prob(X, y)
    assert_array_equal(prob[[0, 2]], 0)
    shorter = np.array([[2, 3]], dtype=np.int32)
    assert prob[1] == trie.next_word_prob(shorter, np.zeros(1, dtype=np.int32))[0]


def test_aligned_models_have_one_vocabulary_and_the_same_numbers(models):
    made = aligned(models)
    words = made[0].vocabulary_.words_
    assert set(words) == {w for lm in models for w in lm.vocabulary_.words_}
    for before, after in zip(models, made):
        assert_array_equal(after.vocabulary_.words_, words)
        text = lines_of(100, ["", "", *SHARED], seed=6)
        assert_array_equal(after.score_samples(text), before.score_samples(text))
        after, before = dictionary(after), dictionary(before)
        lacking = set(words) - set(before.words)
        assert {w for w in words if after.p((), w) == 0} == lacking
        assert after.prob.items() >= before.prob.items()
        assert after.bow.items() >= before.bow.items()


def test_a_mixture_of_aligned_models_has_the_averages(models):
    members = aligned(models)
    text = lines_of(100, ["", "", *SHARED, *A[:3], *B[:3]], seed=7)
    mixture = MixtureLM(
        [(f"m{i}", FrozenEstimator(lm.estimator_)) for i, lm in enumerate(members)],
        [0.3, 0.7],
    )
    words = Vocabulary.from_words(members[0].vocabulary_.words_)
    lm = TextLM(mixture, n_context=3, vocabulary=words).fit(text)
    dictionaries = [dictionary(m) for m in models]
    for line, log_prob in zip(text, lm.score_samples(text)):
        tokens, expected = ["</s>", *line.split(), "</s>"], 0.0
        for i in range(1, len(tokens)):
            c, w = tuple(tokens[max(i - 3, 0) : i]), tokens[i]
            p = [d.p(c[-2:] if d is dictionaries[0] else c, w) for d in dictionaries]
            expected += np.log(0.3 * p[0] + 0.7 * p[1])
        assert log_prob == pytest.approx(expected, rel=1e-6)


def test_learned_weights_are_those_of_the_highest_likelihood(models):
    """There the mean of P_i / P over the tokens is 1 for each model i."""
    text = lines_of(200, ["", "", *SHARED, *A[:3], *B[:3]], seed=4)
    weights = static_mixture(models, X_val=text).weights
    dictionaries, rows = [dictionary(lm) for lm in models], []
    for line in text:
        tokens = ["</s>", *line.split(), "</s>"]
        for i in range(1, len(tokens)):
            c = tuple(tokens[max(i - 3, 0) : i])
            contexts = c[-2:], c
            rows.append([d.p(c, tokens[i]) for d, c in zip(dictionaries, contexts)])
    probs = np.array(rows)
    assert_allclose((probs / (probs @ weights)[:, None]).mean(axis=0), 1, atol=1e-4)


def test_names_of_the_boundary_and_unknown_words_may_differ():
    lines = ["a b", "b a a"]
    plain, other = named(lines), named(lines, unknown="<UNK>", boundary="<end>")
    lm = static_mixture([plain, other], [0.5, 0.5]).lm
    assert lm.vocabulary_.words_.tolist() == plain.vocabulary_.words_.tolist()
    documents = [line.split() for line in lines]
    expected = plain.score_samples(documents)
    assert_allclose(lm.score_samples(documents), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("symbols", "others", "word", "meanings"),
    [
        ({"unknown": "<UNK>"}, {}, "<UNK>", ("symbol for unknown", "an ordinary word")),
        ({"boundary": "END"}, {}, "</s>", ("an ordinary word", "the boundary")),
        ({"boundary": "END"}, {}, "END", ("the boundary", "an ordinary word")),
        (
            {"boundary": "X", "unknown": None},
            {"unknown": "X"},
            "X",
            ("the boundary", "symbol for unknown"),
        ),
    ],
)
def test_a_symbol_that_is_a_word_of_another_model_is_refused(
    symbols, others, word, meanings
):
    text = ["a b", "b a a"]
    with_word = [f"a {word} b", f"{word} a"]
    is_first_symbol = word in symbols.values()
    first = named(text if is_first_symbol else with_word, **symbols)
    second = named(with_word if is_first_symbol else text, **others)
    for models, said in [
        ([first, second], meanings),
        ([second, first], meanings[::-1]),
    ]:
        for mix in (aligned, lambda models: static_mixture(models, [0.5, 0.5])):
            with pytest.raises(ValueError, match=rf"^'{word}' is ") as refused:
                mix(models)
            for i, meaning in enumerate(said):
                of_model = rf"{meaning}[^.]* in models\[{i}\]"
                assert re.search(of_model, str(refused.value))


@pytest.mark.slow
@settings(max_examples=50, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.data())
def test_sums_are_one_whatever_symbols_are_called_or_the_models_are_refused(data):
    """Every model of two or three draws its symbols and its words from one pool."""
    pool = {"a", "b", "END", "</s>", "<unk>", "<UNK>"}
    models = []
    for _ in range(data.draw(st.integers(2, 3))):
        boundary = data.draw(st.sampled_from(["END", "</s>"]))
        unknown = data.draw(st.sampled_from(["<unk>", "<UNK>", None]))
        words = sorted(pool - {boundary, unknown})
        words = data.draw(st.permutations(words))[: data.draw(st.integers(1, 2))]
        line = st.lists(st.sampled_from(words), min_size=2, max_size=6).map(" ".join)
        lines = data.draw(st.lists(line, min_size=2, max_size=5))
        models.append(named(lines, boundary=boundary, unknown=unknown))
    outcomes = []
    for order in itertools.permutations(models):
        try:
            made = aligned(order)
        except ValueError as error:
            assert re.search(r"is the (boundary|symbol).* in models\[", str(error))
            outcomes.append(None)
        else:
            outcomes.append(len(made[0].vocabulary_.words_))
            for own in made:
                trie = own.estimator_.trie_
                mass = trie.masses(np.arange(trie.n_words, dtype=np.int32))
                assert_allclose(mass, 1, atol=2e-6)
    assert len(set(outcomes)) == 1


def test_a_symbol_may_be_a_word_of_a_model_without_one():
    """As a text with ``<unk>`` in it is, whose vocabulary is closed."""
    text = ["a <unk> b", "b a <unk>"]
    closed, open_ = named(text, unknown=None), named(text)
    for models in ([closed, open_], [open_, closed]):
        made = static_mixture(models, [0.5, 0.5]).lm
        assert sorted(made.vocabulary_.words_) == ["</s>", "<unk>", "a", "b"]
        documents = [line.split() for line in text]
        expected = open_.score_samples(documents)
        assert_allclose(made.score_samples(documents), expected, rtol=1e-5)


def test_an_arpa_file_of_the_mixture_scores_alike(models, tmp_path):
    lm = static_mixture(models, [0.4, 0.6]).lm
    text = lines_of(100, ["", "", *SHARED, *A[:3], *B[:3]], seed=5)
    path = tmp_path / "mixture.arpa"
    write_arpa(lm.estimator_, path, lm.vocabulary_.words_.tolist())
    again = TextLM.from_model(*read_arpa(path))
    assert_allclose(again.score_samples(text), lm.score_samples(text), rtol=1e-5)


def test_blocks_of_contexts_do_not_change_a_mixture(models, monkeypatch):
    before = static_mixture(models, [0.4, 0.6]).lm.estimator_.trie_
    monkeypatch.setattr(Work, "block", 3)
    tries = [
        AlignedTrie(before, np.arange(before.n_words, dtype=np.int32), before.n_words)
    ]
    again = mixed_trie(tries, [1.0], Work())
    assert_allclose(again.prob, before.prob, rtol=1e-6)
    assert_allclose(again.bow, before.bow, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("weights", [[0.5, 0.6], [1.5, -0.5], [1.0], [np.nan, 1.0]])
def test_weights_that_are_no_distribution_are_refused(models, weights):
    with pytest.raises(ValueError, match=r"weights=.* must be numbers, 0 .*are 2"):
        static_mixture(models, weights)


def test_models_that_cannot_be_mixed_are_refused(models):
    tokens = TextLM.from_model(
        models[0].estimator_, models[0].vocabulary_, tokenizer=None
    )
    endless = TextLM.from_model(
        models[0].estimator_,
        models[0].vocabulary_,
        tokenizer=models[0].tokenizer_,
        predict_boundary=False,
    )
    for other, message in [
        (tokens, "splits text in another way"),
        (endless, "predict_boundary=False"),
    ]:
        with pytest.raises(ValueError, match=message):
            static_mixture([models[0], other], [0.5, 0.5])
    with pytest.raises(ValueError, match="two models or more"):
        static_mixture(models[:1], [1.0])
    with pytest.raises(ValueError, match="you passed neither"):
        static_mixture(models)
    with pytest.raises(ValueError, match="0 documents and no token"):
        static_mixture(models, X_val=[])
    with pytest.raises(ValueError, match="you passed both"):
        static_mixture(models, [0.5, 0.5], X_val=["a"])
