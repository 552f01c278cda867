"""`nplm.save` and `nplm.load` restore models bit by bit."""

import os
import pickle
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import nplm
from nplm import (
    BackoffLM,
    InterpolatedTrigram,
    KneserNeyLM,
    LMClassifier,
    Rescorer,
    TextLM,
    Vocabulary,
    WordClasses,
)
from nplm.base.files.tensors import PADDING, read_tensors
from nplm.formats import read_arpa, write_arpa
from tests.helpers import energy_lm, paper_lm, small_text
from tests.helpers.saving import (
    IDS,
    LISTS,
    MODELS,
    N_WORDS,
    OTHERS,
    SMALL,
    TEXTS,
    X_VAL,
    Y_VAL,
    X,
    Y,
    pipeline,
)


def scored(model):
    return model.log_prob(X, Y), model.predict_proba(X[:50])


def same_bits(a, b):
    for one, other in zip(scored(a), scored(b)):
        assert type(one) is type(other) is np.ndarray
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("mmap", "optimizer"), [(True, True), (False, False)])
def test_loaded_model_computes_the_same_bits(tmp_path, fitted, name, mmap, optimizer):
    model, path = fitted[name], tmp_path / "model"
    nplm.save(model, path, optimizer=optimizer)
    loaded = nplm.load(path, mmap=mmap)
    assert type(loaded) is type(model)
    assert vars(loaded).keys() == vars(model).keys()
    assert re.sub("0x.*", "", repr(loaded)) == re.sub("0x.*", "", repr(model))
    assert loaded.n_parameters_ == model.n_parameters_
    assert getattr(loaded, "n_seen_", 0) == getattr(model, "n_seen_", 0)
    same_bits(loaded, model)
    nplm.save(loaded, tmp_path / "twice")
    assert (tmp_path / "twice").read_bytes() == path.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["model", "twice"]
    same_bits(pickle.loads(pickle.dumps(loaded)), model)
    if not optimizer:
        assert not [n for n in read_tensors(path, mmap=mmap)[0] if ".moments." in n]


@pytest.mark.parametrize("name", MODELS)
@small_text
@pytest.mark.filterwarnings("ignore:.*the best weights may gain")
def test_loaded_model_can_be_fitted_further_or_again(tmp_path, fitted, name):
    nplm.save(fitted[name], tmp_path / "model")
    loaded = nplm.load(tmp_path / "model")
    same = pickle.loads(pickle.dumps(fitted[name]))
    for model in (loaded, same):
        if hasattr(model, "partial_fit"):
            model.partial_fit(X_VAL, Y_VAL).partial_fit(X, Y)
        else:
            model.fit(X_VAL, Y_VAL, X_val=X, y_val=Y)
    same_bits(loaded, same)
    if name == "seed of its own":  # a state that the representation does not show
        held_out = dict(X_val=X_VAL, y_val=Y_VAL)
        same_bits(*(clone(lm).fit(X, Y, **held_out) for lm in (loaded, same)))


def used(model):
    """Return what an estimator computes of texts, windows or ids."""
    if hasattr(model, "log_prob"):
        return model.log_prob(X, Y)
    if isinstance(model, Rescorer):
        return model.totals(LISTS)
    if isinstance(model, LMClassifier):
        return model.predict_proba(TEXTS)
    if hasattr(model, "score_samples"):
        return model.score_samples(TEXTS)
    return model.transform({WordClasses: IDS, Vocabulary: [["a", "b"]]}.get(
        type(model), TEXTS
    ))  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.filterwarnings("ignore:X has .* unknown tokens")
def test_estimators_of_texts_are_restored(tmp_path, others, name):
    model, path = others[name], tmp_path / "model"
    nplm.save(model, path)
    loaded = nplm.load(path)
    public, again = ({n for n in vars(m) if n[-1] == "_"} for m in (model, loaded))
    assert public == again
    np.testing.assert_equal(used(loaded), used(model))
    np.testing.assert_equal(used(pickle.loads(pickle.dumps(loaded))), used(model))
    clone(loaded)
    nplm.save(loaded, tmp_path / "twice")
    assert (tmp_path / "twice").read_bytes() == path.read_bytes()


def test_learning_rate_schedule_continues_after_loading(tmp_path):
    model = paper_lm(**SMALL, learning_rate="linear").partial_fit(X, Y)
    nplm.save(model, tmp_path / "model")
    loaded = nplm.load(tmp_path / "model").partial_fit(X, Y)
    same_bits(loaded, model.partial_fit(X, Y))
    with pytest.raises(ValueError, match="has fallen to 0"):
        loaded.partial_fit(X, Y)


def test_mapped_arrays_are_read_only_and_shared(tmp_path, fitted):
    nplm.save(fitted["Kneser-Ney"], tmp_path / "model")
    mapped = nplm.load(tmp_path / "model")
    base = mapped.trie_.prob
    while isinstance(base.base, np.ndarray):
        base = base.base
    assert isinstance(base, np.memmap)
    for array in (mapped.trie_.prob, mapped.counts_.counts):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    assert mapped.trie_.words is mapped.counts_.words
    own = nplm.load(tmp_path / "model", mmap=False)
    own.trie_.prob[0] = own.trie_.prob[0]
    nplm.save(fitted["softmax"], tmp_path / "model")
    network = nplm.load(tmp_path / "model")
    network.b_[0] = 1.0


def test_shared_member_is_saved_once(tmp_path, fitted, others):
    nplm.save(fitted["frozen"], tmp_path / "model")
    loaded = nplm.load(tmp_path / "model")
    assert loaded.estimators[0][1] is loaded.estimators_[0]
    nplm.save(others["text, quantized"], tmp_path / "model")
    loaded = nplm.load(tmp_path / "model")
    assert loaded.estimator_ is loaded.estimator.estimator


EVENTS = [["login", ("read", 3), "logout"], [7, frozenset({"c", 4, ("e",)}), True]] * 20
TEXT_MODELS = {
    "pipeline": (pipeline(KneserNeyLM()), TEXTS),
    "without ends": (pipeline(KneserNeyLM(), predict_boundary=False), TEXTS),
    "network": (pipeline(energy_lm(n_hidden=3, random_state=0)), TEXTS),
    "text": (TextLM(KneserNeyLM(), 2), TEXTS),
    "events": (TextLM(KneserNeyLM(), 2), EVENTS),
    "ids": (TextLM(KneserNeyLM(), 2), [[1, 2], [3, 1]] * 9),
}


@pytest.mark.parametrize("name", TEXT_MODELS)
@small_text
def test_text_models_are_restored(tmp_path, name):
    model, documents = TEXT_MODELS[name]
    model = clone(model).fit(documents)
    nplm.save(model, tmp_path / "model")
    loaded = nplm.load(tmp_path / "model")
    pairs = (getattr(m, "steps", [("lm", m)]) for m in (loaded, model))
    for (_, own), (_, other) in zip(*pairs):
        assert vars(own).keys() == vars(other).keys()
        assert repr(own) == repr(other)
        assert getattr(own, "ids_", None) == getattr(other, "ids_", None)
    options = dict(n=5, random_state=0, max_words=5)
    np.testing.assert_equal(own.generate(**options), other.generate(**options))
    np.testing.assert_array_equal(
        loaded.score_samples(documents), model.score_samples(documents)
    )
    clone(loaded).fit(documents)


@settings(max_examples=50)
@given(words=st.lists(st.text(st.characters(codec=None)), max_size=60, unique=True))
def test_words_of_any_characters_are_restored(words, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "words"
    vocabulary = Vocabulary(boundary=None).fit([words])
    nplm.save(vocabulary, path)
    loaded = nplm.load(path)
    assert loaded.words_.tolist() == vocabulary.words_.tolist()
    assert loaded.boundary_id_ is None


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_model_of_another_tool_is_restored(tmp_path, fitted, share):
    """A model must sum to one only if it did when it was saved."""
    words = [f"w{i}" for i in range(N_WORDS)]
    write_arpa(fitted["Kneser-Ney"], tmp_path / "arpa", words)
    model, _ = read_arpa(tmp_path / "arpa")
    trie = replace(model.trie_, prob=model.trie_.prob * np.float32(share))
    model = BackoffLM.from_trie(trie, boundary=model.boundary)
    nplm.save(model, tmp_path / "model")
    same_bits(nplm.load(tmp_path / "model"), model)


def test_feature_names_are_restored(tmp_path):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=["third", "second", "first"])
    model = InterpolatedTrigram(n_words=N_WORDS).fit(table, Y)
    nplm.save(model, tmp_path / "model")
    loaded = nplm.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.log_prob(table, Y), model.log_prob(table, Y))
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.log_prob(table[["first", "second", "third"]], Y)


def test_safetensors_package_reads_and_writes_the_files(tmp_path, fitted):
    st_numpy = pytest.importorskip("safetensors.numpy")
    nplm.save(fitted["mixture of mixtures"], tmp_path / "model")
    ours, _ = read_tensors(tmp_path / "model", mmap=False)
    theirs = st_numpy.load_file(tmp_path / "model")
    # What stands between arrays is theirs too.
    assert {n for n in theirs if not n.startswith(PADDING)} == ours.keys()
    for name, array in ours.items():
        np.testing.assert_array_equal(theirs[name], array)
    st_numpy.save_file({"a": np.zeros(3)}, tmp_path / "theirs")
    with pytest.raises(
        ValueError, match="theirs cannot be loaded: its header is not one"
    ):
        nplm.load(tmp_path / "theirs")


def test_vocabulary_of_the_words_of_another_is_saved(tmp_path):
    texts = [" ".join(f"w{i}" for i in range(300))]
    known = nplm.Vocabulary().fit([texts[0].split()])
    vocabulary = nplm.Vocabulary.from_words(known.words_)
    lm = nplm.TextLM(nplm.InterpolatedTrigram(), 2, vocabulary=vocabulary).fit(texts)
    for estimator in (vocabulary, lm):
        nplm.save(estimator, tmp_path / "saved")
        again = nplm.load(tmp_path / "saved")
        own = getattr(again, "vocabulary_", again)
        assert own.words_.tolist() == known.words_.tolist()
        assert own.ids_ == known.ids_
    assert again.score(texts) == lm.score(texts)


# -- smaller files ---------------------------------------------------------------------


def test_network_without_the_optimizer_trains_on_with_new_moments(tmp_path):
    model = paper_lm(**SMALL, solver="adam").fit(X, Y)
    assert model._trained.solver_state
    nplm.save(model, tmp_path / "light", optimizer=False)
    loaded = nplm.load(tmp_path / "light")
    assert loaded._trained.solver_state == {}
    assert model._trained.solver_state  # of the model itself nothing is lost
    # As after a fit with a solver that has no moments.
    by_sgd = pickle.loads(pickle.dumps(model))
    by_sgd._trained = replace(by_sgd._trained, solver_state={})
    same_bits(loaded.partial_fit(X, Y), by_sgd.partial_fit(X, Y))
    assert loaded._trained.solver_state.keys() == model._trained.solver_state.keys()
    whole = pickle.loads(pickle.dumps(model)).partial_fit(X, Y)
    assert not np.array_equal(whole.C_, loaded.C_)


@pytest.mark.parametrize(
    "name",
    [
        "adam, distant", "tied, of parts", "energy, adam", "classes", "tree", "mixture",
        "short-list",
    ],
)  # fmt: skip
def test_half_precision_rounds_the_weights(tmp_path, fitted, name):
    model = fitted[name]
    nplm.save(model, tmp_path / "half", dtype="float16")
    arrays, _ = read_tensors(tmp_path / "half", mmap=False)
    kinds = {a.dtype for n, a in arrays.items() if ".arrays." in n}
    assert kinds == {np.dtype(np.float16)}
    loaded = nplm.load(tmp_path / "half")
    assert type(loaded) is type(model)
    scores, ours = loaded.log_prob(X, Y), model.log_prob(X, Y)
    np.testing.assert_allclose(scores, ours, atol=0.01)
    assert not np.array_equal(scores, ours)
    np.testing.assert_allclose(loaded.predict_proba(X).sum(axis=1), 1, atol=1e-5)
    if hasattr(model, "C_"):
        assert loaded.C_.dtype == np.float32
        if "of parts" not in name:  # theirs are sums of two that are rounded
            rounded = model.C_.astype(np.float16).astype(np.float32)
            np.testing.assert_array_equal(loaded.C_, rounded)
        loaded.partial_fit(X, Y)


def test_half_precision_is_refused_where_it_would_lose_more(tmp_path, fitted):
    path = tmp_path / "half"
    for name, message in [
        ("Kneser-Ney", r"of the weights of a network, and this KneserNeyLM has none"),
        ("direct, double", r"has precision='float64': leave it out"),
    ]:
        with pytest.raises(ValueError, match=message):
            nplm.save(fitted[name], path, dtype="float16")
    large = paper_lm(**SMALL).fit(X, Y)
    large.d_[0] = 7e4
    with pytest.raises(ValueError, match=r"up to 65504, and the weights d have 7e\+04"):
        nplm.save(large, path, dtype="float16")
    with pytest.raises(
        ValueError, match="dtype must be \"float16\" or None, got 'int8'"
    ):
        nplm.save(fitted["softmax"], path, dtype="int8")
    assert not path.exists()
