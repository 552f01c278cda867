"""`nplm.save` and `nplm.load`: the same bits again, or an error that names the file."""

import json
import os
import pickle
import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline

import nplm
from nplm import (
    ClassLM,
    EnergyLM,
    InterpolatedTrigram,
    KneserNeyLM,
    MixtureLM,
    ShortlistLM,
    TextLM,
    Tokenizer,
    UniformLM,
    Vocabulary,
    WordClasses,
    windows,
)
from nplm._tensors import read_tensors, write_tensors
from nplm.formats import read_arpa, save_binary, write_arpa
from tests.helpers import bfloat16_is_here, paper_lm, small_text, text

N_WORDS = 12
IDS = text(700, n_words=N_WORDS)
X, Y = windows(IDS[:500], 3, boundary=0)
X_VAL, Y_VAL = windows(IDS[500:], 3, boundary=0)
SIZE = dict(n_words=N_WORDS)
SMALL = dict(n_hidden=4, embedding_dim=3, max_iter=2, random_state=0, **SIZE)
TREE = np.array([[i, N_WORDS + 1 + i] for i in range(N_WORDS - 2)] + [[10, 11]])

NETWORKS = {
    "softmax": paper_lm(**SMALL),
    "direct, double": paper_lm(**SMALL, direct=True, precision="float64"),
    "no hidden units": paper_lm(**SMALL | dict(n_hidden=0), direct=True),
    "adam, distant": paper_lm(3, **SMALL, solver="adam", n_distant=3),
    "senses, adam": paper_lm(**SMALL, n_senses=2, solver="adam"),
    "tied": paper_lm(**SMALL, tied=True, dropout=(0.2, 0.5, 0.3)),
    "tied, direct, adam": paper_lm(**SMALL, tied=True, direct=True, solver="adam"),
    "of parts": paper_lm(**SMALL, word_features=np.eye(N_WORDS)[:, :5], solver="adam"),
    "tied, of parts": paper_lm(
        **SMALL, tied=True, word_features=csr_array(np.eye(N_WORDS)[:, :5]),
        solver="adam",
    ),
    "fixed": paper_lm(
        **SMALL, embeddings=np.arange(36).reshape(12, 3) / 36, train_embeddings=False
    ),
    "classes": paper_lm(**SMALL, output="classes"),
    "classes given": paper_lm(
        **SMALL, output="classes", word_classes=[i % 3 for i in range(N_WORDS)]
    ),
    "tree": paper_lm(**SMALL, output="tree", direct=True, solver="adam"),
    "tree given": paper_lm(**SMALL, output="tree", word_tree=TREE),
    "importance": paper_lm(**SMALL, loss="importance", n_samples=5),
    "tied, nce": paper_lm(**SMALL, tied=True, direct=True, loss="nce", n_samples=5),
    "nce": paper_lm(**SMALL, loss="nce", proposal=list(range(1, 13))),
    "seed of its own": paper_lm(
        **SMALL | dict(random_state=np.random.RandomState(3)), early_stopping=True
    ),
    "energy": EnergyLM(**SMALL),
    "energy, adam": EnergyLM(**SMALL, target_weights=True, solver="adam"),
    "energy, nce": EnergyLM(**SMALL, loss="nce", n_samples=5),
}  # fmt: skip
if bfloat16_is_here():
    NETWORKS["rounded"] = paper_lm(**SMALL, precision="bfloat16")
TRIGRAM = InterpolatedTrigram(**SIZE)
MIXED = [("nn", paper_lm(**SMALL)), ("tri", TRIGRAM)]
WINDOWED = NETWORKS | {
    "Kneser-Ney": KneserNeyLM(**SIZE),
    "Kneser-Ney, cut": KneserNeyLM(
        interpolate=False, min_counts=(1, 1, 2), boundary=0, discounts="plain", **SIZE
    ),
    "unigrams": KneserNeyLM(1, **SIZE),
    "trigram": TRIGRAM,
    "class model": ClassLM(n_classes=4, random_state=0, **SIZE),
    "class model of given": ClassLM(2, classes=np.arange(12) % 4, **SIZE),
    "uniform": UniformLM("unseen", **SIZE),
    "mixture": MixtureLM(MIXED, **SIZE),
    "mixture by context": MixtureLM(MIXED, "context", include_uniform=True, **SIZE),
    "mixture of mixtures": MixtureLM(
        [("inner", MixtureLM(MIXED, "learned")), ("kn", KneserNeyLM())],
        [0.25, 0.75], **SIZE,
    ),
    "short-list": ShortlistLM(
        paper_lm(**SMALL), KneserNeyLM(), n_shortlist=5, **SIZE
    ),
    "short-list, mixture": ShortlistLM(
        paper_lm(**SMALL), MixtureLM(MIXED), n_shortlist=5, **SIZE
    ),
}  # fmt: skip
TEXTS = ["a rose is a rose", "is a rose a rose", "", "a \\ r\n\\n"] * 10


def pipeline(lm, **options):
    steps = [("tokens", Tokenizer(re.compile(r"\S+"), lowercase=True)),
             ("ids", Vocabulary()), ("lm", TextLM(lm, 2, **options))]  # fmt: skip
    return Pipeline(steps)


def quiet(fit):
    """Fit without the word on discounts of small texts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return fit()


@pytest.fixture(scope="module")
def fitted():
    def fit(model):
        return quiet(lambda: model.fit(X, Y, X_val=X_VAL, y_val=Y_VAL))

    models = {name: fit(clone(model)) for name, model in WINDOWED.items()}
    models["pruned"] = fit(KneserNeyLM(**SIZE)).prune(0.001)
    own = models["energy, adam"]
    own.add_words([[1, 2, 3], [2, 1, 1]], [12, 13])
    frozen = [("kn", FrozenEstimator(models["Kneser-Ney"]))]
    models["frozen"] = fit(MixtureLM([*frozen, ("tri", TRIGRAM)], "learned", **SIZE))
    return models


MODELS = [*WINDOWED, "pruned", "frozen"]


def scored(model):
    return model.log_prob(X, Y), model.predict_proba(X[:50])


def same_bits(a, b):
    for one, other in zip(scored(a), scored(b)):
        assert type(one) is type(other) is np.ndarray
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("mmap", [True, False])
def test_the_same_bits_again(tmp_path, fitted, name, mmap):
    model, path = fitted[name], tmp_path / "model"
    nplm.save(model, path)
    again = nplm.load(path, mmap=mmap)
    assert type(again) is type(model)
    assert vars(again).keys() == vars(model).keys()
    assert re.sub("0x.*", "", repr(again)) == re.sub("0x.*", "", repr(model))
    assert again.n_parameters_ == model.n_parameters_
    same_bits(again, model)
    nplm.save(again, tmp_path / "twice")
    assert (tmp_path / "twice").read_bytes() == path.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["model", "twice"]
    same_bits(pickle.loads(pickle.dumps(again)), model)


@pytest.mark.parametrize("name", MODELS)
@small_text
@pytest.mark.filterwarnings("ignore:.*the weights still gained")
def test_a_fit_goes_on_or_begins_anew(tmp_path, fitted, name):
    nplm.save(fitted[name], tmp_path / "model")
    again = nplm.load(tmp_path / "model")
    same = pickle.loads(pickle.dumps(fitted[name]))
    for model in (again, same):
        if hasattr(model, "partial_fit"):
            model.partial_fit(X_VAL, Y_VAL).partial_fit(X, Y)
        else:
            model.fit(X_VAL, Y_VAL, X_val=X, y_val=Y)
    same_bits(again, same)
    anew = [clone(model).fit(X, Y, X_val=X_VAL, y_val=Y_VAL) for model in (again, same)]
    same_bits(*anew)


def test_a_step_that_falls_to_0_goes_on_falling(tmp_path):
    model = paper_lm(**SMALL, learning_rate="linear").partial_fit(X, Y)
    nplm.save(model, tmp_path / "model")
    again = nplm.load(tmp_path / "model").partial_fit(X, Y)
    same_bits(again, model.partial_fit(X, Y))
    with pytest.raises(ValueError, match="has fallen to 0"):
        again.partial_fit(X, Y)


def test_what_is_mapped_is_read_only_and_shared(tmp_path, fitted):
    nplm.save(fitted["Kneser-Ney"], tmp_path / "model")
    mapped = nplm.load(tmp_path / "model")
    base = mapped.tree_.prob
    while isinstance(base.base, np.ndarray):
        base = base.base
    assert isinstance(base, np.memmap)
    for array in (mapped.tree_.prob, mapped.counts_.counts):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    assert mapped.tree_.words is mapped.counts_.words
    own = nplm.load(tmp_path / "model", mmap=False)
    own.tree_.prob[0] = own.tree_.prob[0]
    nplm.save(fitted["softmax"], tmp_path / "model")
    network = nplm.load(tmp_path / "model")
    network.b_[0] = 1.0


def test_a_member_in_two_places_is_saved_once(tmp_path, fitted):
    nplm.save(fitted["frozen"], tmp_path / "model")
    again = nplm.load(tmp_path / "model")
    assert again.estimators[0][1] is again.estimators_[0]


@pytest.mark.parametrize("predict_boundary", [True, False])
@pytest.mark.parametrize("lm", [KneserNeyLM(), EnergyLM(n_hidden=3, random_state=0)])
def test_text_models(tmp_path, lm, predict_boundary):
    model = quiet(lambda: pipeline(lm, predict_boundary=predict_boundary).fit(TEXTS))
    nplm.save(model, tmp_path / "model")
    again = nplm.load(tmp_path / "model")
    np.testing.assert_array_equal(
        again.score_samples(TEXTS), model.score_samples(TEXTS)
    )
    tokens, vocabulary, _ = (step for _, step in again.steps)
    assert tokens.get_params() == model["tokens"].get_params()
    assert vocabulary.ids_ == model["ids"].ids_
    assert vars(vocabulary).keys() == vars(model["ids"]).keys()
    assert (vocabulary.unknown_id_, vocabulary.boundary_id_) == (1, 0)
    quiet(lambda: clone(again).fit(TEXTS))
    words = [again["lm"].generate(random_state=i).tolist() for i in range(5)]
    assert words == [model["lm"].generate(random_state=i).tolist() for i in range(5)]


@pytest.mark.parametrize(
    "documents",
    [
        TEXTS,
        [["login", ("read", 3), "logout"], [7, 2.5, True]] * 20,
        [[1, 2], [3, 1]] * 9,
    ],
    ids=["text", "events", "ids"],
)
@small_text
def test_text_in_text_out(tmp_path, documents):
    model = TextLM(KneserNeyLM(), 2).fit(documents)
    nplm.save(model, tmp_path / "model")
    again = nplm.load(tmp_path / "model")
    assert vars(again).keys() == vars(model).keys()
    options = dict(n=5, random_state=0, max_words=5)
    np.testing.assert_equal(again.generate(**options), model.generate(**options))
    np.testing.assert_array_equal(
        again.score_samples(documents), model.score_samples(documents)
    )
    clone(again).fit(documents)


def test_the_text_model_of_a_file(tmp_path, fitted):
    words = [f"w{i}" for i in range(N_WORDS)]
    model = TextLM.from_model(fitted["Kneser-Ney"], words, boundary=0)
    nplm.save(model, tmp_path / "model")
    again = nplm.load(tmp_path / "model")
    assert again.score(["w1 w2 w3"]) == model.score(["w1 w2 w3"])
    with pytest.raises(ValueError, match="'w99' is not among the 12 words"):
        again.score(["w99"])


@settings(max_examples=50, deadline=None)
@given(words=st.lists(st.text(st.characters(codec=None)), max_size=300, unique=True))
def test_any_words(words, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "words"
    vocabulary = Vocabulary(boundary=None).fit([words])
    nplm.save(vocabulary, path)
    again = nplm.load(path)
    assert again.words_.tolist() == vocabulary.words_.tolist()
    assert again.boundary_id_ is None


def test_word_classes_and_tokenizers(tmp_path):
    classes = WordClasses(4, n_words=N_WORDS, random_state=0).fit(IDS)
    nplm.save(classes, tmp_path / "classes")
    again = nplm.load(tmp_path / "classes")
    np.testing.assert_array_equal(again.transform(IDS), classes.transform(IDS))
    assert vars(again).keys() == vars(classes).keys()
    assert again.history_ == classes.history_
    tokenizer = Tokenizer(number="<n>")
    nplm.save(tokenizer, tmp_path / "tokens")
    assert nplm.load(tmp_path / "tokens").transform(["1 a"]) == [["<n>", "a"]]


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_model_of_another_tool(tmp_path, fitted, share):
    """What sums to one must; what never did may stay so."""
    words = [f"w{i}" for i in range(N_WORDS)]
    write_arpa(fitted["Kneser-Ney"], tmp_path / "arpa", words)
    model, _ = read_arpa(tmp_path / "arpa")
    model.tree_.prob[:] *= share
    nplm.save(model, tmp_path / "model")
    same_bits(nplm.load(tmp_path / "model"), model)


def test_names_of_columns(tmp_path):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=["third", "second", "first"])
    model = InterpolatedTrigram(n_words=N_WORDS).fit(table, Y)
    nplm.save(model, tmp_path / "model")
    again = nplm.load(tmp_path / "model")
    np.testing.assert_array_equal(again.log_prob(table, Y), model.log_prob(table, Y))
    with pytest.raises(ValueError, match="feature names should match"):
        again.log_prob(table[["first", "second", "third"]], Y)


def test_the_package_of_the_format_reads_and_writes_it(tmp_path, fitted):
    st_numpy = pytest.importorskip("safetensors.numpy")
    nplm.save(fitted["mixture of mixtures"], tmp_path / "model")
    ours, _ = read_tensors(tmp_path / "model", mmap=False)
    theirs = st_numpy.load_file(tmp_path / "model")
    assert theirs.keys() == ours.keys()
    for name, array in theirs.items():
        np.testing.assert_array_equal(array, ours[name])
    st_numpy.save_file({"a": np.zeros(3)}, tmp_path / "theirs")
    with pytest.raises(ValueError, match="theirs cannot be loaded: its header is none"):
        nplm.load(tmp_path / "theirs")


# -- what is refused -----------------------------------------------------------------


def test_what_cannot_be_saved(tmp_path, fitted):
    path = tmp_path / "model"
    with pytest.raises(TypeError, match="must be an estimator of nplm's, got 3"):
        nplm.save(3, path)
    with pytest.raises(NotFittedError, match="KneserNeyLM instance is not fitted"):
        nplm.save(KneserNeyLM(), path)
    with pytest.raises(TypeError, match=r"knows no sklearn.*LogisticRegression"):
        nplm.save(LogisticRegression().fit([[0], [1]], [0, 1]), path)
    with pytest.raises(TypeError, match=r"knows no sklearn.*CountVectorizer"):
        nplm.save(Pipeline([("a", CountVectorizer()), ("b", Tokenizer())]), path)
    generator = clone(fitted["softmax"]).fit(X, Y)
    generator.random_state = np.random.RandomState(np.random.PCG64(0))
    with pytest.raises(TypeError, match="RandomState of PCG64"):
        nplm.save(generator, path)
    cached = pipeline(KneserNeyLM()).set_params(memory=str(tmp_path))
    with pytest.raises(TypeError, match="its cache is made of pickles"):
        nplm.save(quiet(lambda: cached.fit(TEXTS)), path)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        nplm.save(fitted["trigram"], tmp_path / "absent" / "model")
    assert not path.exists()


def test_an_error_leaves_the_old_file(tmp_path, fitted, monkeypatch):
    path = tmp_path / "model"
    nplm.save(fitted["trigram"], path)
    before = path.read_bytes()

    def full(_fd):
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="full"):
        nplm.save(fitted["softmax"], path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]


def test_files_of_other_kinds(tmp_path, fitted):
    kn, words = fitted["Kneser-Ney"], [f"w{i}" for i in range(N_WORDS)]
    write_arpa(kn, tmp_path / "arpa", words)
    save_binary(kn, tmp_path / "binary", words)
    (tmp_path / "pickle").write_bytes(pickle.dumps(kn))
    (tmp_path / "empty").touch()
    np.save(tmp_path / "array.npy", np.zeros(3))
    for name in os.listdir(tmp_path):
        with pytest.raises(ValueError, match=rf"{name} cannot be loaded: it does not"):
            nplm.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        nplm.load(tmp_path / "absent")
    with pytest.raises(IsADirectoryError):
        nplm.load(tmp_path)


def test_other_versions(tmp_path, fitted):
    path = tmp_path / "model"
    nplm.save(fitted["uniform"], path)
    arrays, metadata = read_tensors(path, mmap=False)
    own = {"format": metadata["format"], "version": metadata["version"]}
    for changes, message in [
        ({"version": "2"}, "it is of version '2', and this nplm reads version '1'"),
        ({"format": "pt"}, "it is no model that nplm.save wrote"),
    ]:
        write_tensors(path, arrays, own | changes)
        with pytest.raises(ValueError, match=rf"model cannot be loaded: {message}"):
            nplm.load(path)
    kinds = json.loads(arrays["objects.json"].tobytes())
    for change, message in [
        (dict(kind="TransformerLM"), "it has a 'TransformerLM', of which this nplm"),
        (dict(params={"dict": {"depth": 3}}), "has the parameter 'depth', of which"),
        (dict(params={"dict": {"words": "some"}}), "The 'words' parameter of Uniform"),
    ]:
        text = json.dumps([kinds[0] | change]).encode()
        write_tensors(path, arrays | {"objects.json": np.frombuffer(text, "u1")}, own)
        with pytest.raises(ValueError, match=message):
            nplm.load(path)


FILES = ["adam, distant", "senses, adam", "tied, of parts", "classes", "tree given",
         "energy, adam", "Kneser-Ney, cut", "trigram", "class model",
         "mixture by context", "frozen", "short-list"]  # fmt: skip


@pytest.fixture(scope="module")
def saved(fitted, tmp_path_factory):
    """The bytes of files, and where to write them again."""
    folder = tmp_path_factory.mktemp("saved")
    for name in FILES:
        nplm.save(fitted[name], folder / name)
    return folder, {name: (folder / name).read_bytes() for name in FILES}


def refused_or_sound(path):
    """Load it: an error that names it, or a model that gives distributions."""
    try:
        model = nplm.load(path)
    except ValueError as error:
        assert str(path) in str(error)
        assert "Copy it again, or save" in str(error)
        return None
    contexts = X[:20, -model.n_features_in_ :]
    try:
        proba = model.predict_proba(contexts)
    except ValueError as error:  # a parameter like any other, which scoring reads
        assert "n_jobs" in str(error)
        return None
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=3e-3)
    assert np.isfinite(model.log_prob(contexts, Y[:20])).any()
    return model


@pytest.mark.parametrize("name", FILES)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_damaged_bytes(saved, name, data):
    folder, whole = saved[0], bytearray(saved[1][name])
    kind = data.draw(st.sampled_from(["flip", "cut", "more", "zeros", "swap"]))
    at = data.draw(st.integers(0, len(whole) - 1))
    n = data.draw(st.integers(1, 64))
    if kind == "flip":
        whole[at] ^= data.draw(st.integers(1, 255))
    elif kind == "cut":
        del whole[at:]
    elif kind == "more":
        whole[at:at] = data.draw(st.binary(min_size=1, max_size=64))
    elif kind == "zeros":
        whole[at : at + n] = bytes(len(whole[at : at + n]))
    else:
        to = data.draw(st.integers(0, len(whole) - 1))
        whole[at : at + n], whole[to : to + n] = whole[to : to + n], whole[at : at + n]
    path = folder / "damaged"
    path.write_bytes(bytes(whole))
    if refused_or_sound(path) is not None:  # blanks in its header, or nothing at all
        assert len(whole) == len(saved[1][name])


@pytest.mark.parametrize("name", FILES)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_tampered_arrays_with_the_right_checksums(saved, name, data):
    """Kernels trust what they are given: nothing of this may reach them."""
    folder, path = saved[0], saved[0] / "tampered"
    arrays, metadata = read_tensors(folder / name, mmap=False)
    which = data.draw(st.sampled_from(sorted(arrays.keys() - {"objects.json"})))
    array = arrays[which] = arrays[which].copy()
    kind = data.draw(
        st.sampled_from(["number", "number", "cut", "type", "turn", "lose"])
    )
    if kind == "number" and array.size:
        at = data.draw(st.integers(0, array.size - 1))
        values = [0, 1, -1, 2**31 - 1, -(2**31), 7]
        if array.dtype.kind == "f":
            values = [0.0, -1.0, 2.0, np.nan, np.inf, -np.inf, 1e30, 3e38, -3e38]
        value = data.draw(st.sampled_from(values))
        array.reshape(-1)[at] = np.array(value).astype(array.dtype)
    elif kind == "cut":
        arrays[which] = array[: data.draw(st.integers(0, len(array)))]
    elif kind == "type":
        to = data.draw(st.sampled_from(["i4", "i8", "f4", "f8", "u1", "?"]))
        with np.errstate(invalid="ignore"):
            arrays[which] = array.astype(to)
    elif kind == "turn":
        arrays[which] = array.T if array.ndim > 1 else array[::-1]
    elif kind == "lose":
        del arrays[which]
    write_tensors(path, arrays, {k: metadata[k] for k in ("format", "version")})
    refused_or_sound(path)


def nodes_of(node):
    """The places of a tree of JSON, each as (list or dict, key)."""
    if isinstance(node, (list, dict)):
        keys = range(len(node)) if isinstance(node, list) else list(node)
        for key in keys:
            yield node, key
            yield from nodes_of(node[key])


ODD = [None, True, -1, 0, 1, 3, 2**40, 0.5, "", "softmax", "NeuralLM", [], {},
       {"object": 0}, {"object": -1}, {"object": 99}, {"array": "absent"}, {"dict": 3},
       {"tuple": [[1, 2]]}, {"float": "nan"}, {"sparse": [[1, 1]]}, {"words": 3},
       {"pattern": ["(", 0]}, {"eval": "1"}]  # fmt: skip


@pytest.mark.parametrize("name", FILES)
@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(["odd", "lose", "other"]),
    at=st.floats(0, 1, exclude_max=True),
    odd=st.integers(0, len(ODD) - 1),
    to=st.floats(0, 1, exclude_max=True),
)
def test_tampered_json_with_the_right_checksums(saved, name, kind, at, odd, to):
    folder, path = saved[0], saved[0] / "tampered"
    arrays, metadata = read_tensors(folder / name, mmap=False)
    objects = json.loads(arrays["objects.json"].tobytes())
    places = list(nodes_of(objects))
    where, key = places[int(at * len(places))]
    if kind == "odd":
        where[key] = ODD[odd]
    elif kind == "lose":
        del where[key]
    else:
        other, place = places[int(to * len(places))]
        where[key] = json.loads(json.dumps(other[place]))
    text = json.dumps(objects).encode()
    own = {k: metadata[k] for k in ("format", "version")}
    write_tensors(path, arrays | {"objects.json": np.frombuffer(text, "u1")}, own)
    refused_or_sound(path)


@pytest.mark.parametrize(
    "encoded",
    [b"", b"[]", b"{}", b"\xff", b"[" * 10**5, b"[1]", b'[{"kind": 1}]', b"NaN",
     b'[{"kind": "RandomState", "params": {"dict": {}}, "fitted": null}]',
     b'[{"kind": [], "params": {"dict": {}}, "fitted": null}]',
     b'[{"kind": "Pipeline", "params": {"dict": {"steps": 3}}, "fitted": null}]'],
    ids=len,
)  # fmt: skip
def test_json_of_something_else(saved, encoded):
    _, metadata = read_tensors(saved[0] / "frozen", mmap=False)
    own = {k: metadata[k] for k in ("format", "version")}
    path = saved[0] / "tampered"
    write_tensors(path, {"objects.json": np.frombuffer(encoded, "u1")}, own)
    with pytest.raises(ValueError, match="tampered cannot be loaded") as told:
        nplm.load(path)
    assert ".." not in str(told.value)


def test_a_folder_is_no_model(tmp_path):
    with pytest.raises(
        IsADirectoryError, match=f"{tmp_path} is a folder: name the file"
    ):
        nplm.load(tmp_path)


def test_probabilities_that_do_not_sum_to_one(saved):
    arrays, metadata = read_tensors(saved[0] / "Kneser-Ney, cut", mmap=False)
    arrays["KneserNeyLM.tree.prob"][-1] *= 0.5
    own = {k: metadata[k] for k in ("format", "version")}
    write_tensors(saved[0] / "tampered", arrays, own)
    with pytest.raises(ValueError, match="KneserNeyLM, its probabilities do not sum"):
        nplm.load(saved[0] / "tampered")
