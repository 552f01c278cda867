"""`nplm.save` and `nplm.load` refuse invalid files with an error that names them."""

import json
import os
import pickle
import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline

import nplm
from nplm import (
    KneserNeyLM,
    MixtureLM,
    TextLM,
    Tokenizer,
    UniformLM,
    Vocabulary,
)
from nplm.base.files.tensors import read_tensors, write_tensors
from tests.helpers import neural_lm, peak_of
from tests.helpers.saving import (
    N_WORDS,
    TEXTS,
    X,
    Y,
    entry,
    mixture_of,
    pipeline,
    quiet,
)


def written(path, objects, **arrays):
    """Write a file of these objects, JSON or bytes, with valid checksums."""
    if not isinstance(objects, bytes):
        objects = json.dumps(objects).encode()
    arrays |= {"objects.json": np.frombuffer(objects, "u1")}
    write_tensors(path, arrays, {"format": "nplm model", "version": "4"})
    return path


def test_unsupported_values_are_refused(tmp_path, fitted):
    path = tmp_path / "model"
    with pytest.raises(TypeError, match="must be an estimator of nplm, got 3"):
        nplm.save(3, path)
    with pytest.raises(TypeError, match=r"got KneserNeyLM\(\): call save\(model, path"):
        nplm.save(path, KneserNeyLM())
    with pytest.raises(NotFittedError, match="KneserNeyLM instance is not fitted"):
        nplm.save(KneserNeyLM(), path)
    with pytest.raises(
        TypeError, match=r"does not support .* sklearn.*LogisticRegression"
    ):
        nplm.save(LogisticRegression().fit([[0], [1]], [0, 1]), path)
    with pytest.raises(
        TypeError, match=r"does not support .* sklearn.*CountVectorizer"
    ):
        nplm.save(Pipeline([("a", CountVectorizer()), ("b", Tokenizer())]), path)
    generator = clone(fitted["softmax"]).fit(X, Y)
    generator.random_state = np.random.RandomState(np.random.PCG64(0))
    with pytest.raises(TypeError, match="RandomState of PCG64"):
        nplm.save(generator, path)
    cached = pipeline(KneserNeyLM()).set_params(memory=str(tmp_path))
    with pytest.raises(TypeError, match="its cache consists of pickles"):
        nplm.save(quiet(lambda: cached.fit(TEXTS)), path)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        nplm.save(fitted["trigram"], tmp_path / "absent" / "model")
    assert not path.exists()


def test_files_of_other_formats_are_refused(tmp_path, fitted):
    kn = fitted["Kneser-Ney"]
    (tmp_path / "pickle").write_bytes(pickle.dumps(kn))
    (tmp_path / "empty").touch()
    np.save(tmp_path / "array.npy", np.zeros(3))
    for name in os.listdir(tmp_path):
        with pytest.raises(ValueError, match=rf"{name} (cannot be lo|is empty)"):
            nplm.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        nplm.load(tmp_path / "absent")


def test_other_versions_are_refused(tmp_path, fitted):
    path = tmp_path / "model"
    nplm.save(fitted["uniform"], path)
    arrays, metadata = read_tensors(path, mmap=False)
    selected = {"format": metadata["format"], "version": metadata["version"]}
    for changes, message in [
        ({"version": "1"}, "has format version '1', but .* reads version '4'"),
        ({"format": "pt"}, "cannot be loaded: it is not a model that nplm.save wrote"),
    ]:
        write_tensors(path, arrays, selected | changes)
        with pytest.raises(ValueError, match=f"model {message}"):
            nplm.load(path)
    kinds = json.loads(arrays.pop("objects.json").tobytes())
    for change, message in [
        (dict(kind="TransformerLM"), "it has a 'TransformerLM', which this nplm"),
        (dict(params={"dict": {"depth": 3}}), "has the parameter 'depth', which"),
        (dict(params={"dict": {"words": "some"}}), "The 'words' parameter of Uniform"),
    ]:
        written(path, [kinds[0] | change], **arrays)
        with pytest.raises(ValueError, match=message):
            nplm.load(path)


@pytest.mark.parametrize(
    "encoded",
    [b"", b"[]", b"{}", b"\xff", b"[" * 10**5, b"[1]", b'[{"kind": 1}]', b"NaN",
     b'[{"kind": "RandomState", "params": {"dict": {}}, "fitted": null}]',
     b'[{"kind": [], "params": {"dict": {}}, "fitted": null}]',
     b'[{"kind": "Pipeline", "params": {"dict": {"steps": 3}}, "fitted": null}]'],
    ids=len,
)  # fmt: skip
def test_other_json_is_refused(tmp_path, encoded):
    path = written(tmp_path / "tampered", encoded)
    with pytest.raises(ValueError, match="tampered cannot be loaded") as told:
        nplm.load(path)
    assert ".." not in str(told.value)


@pytest.mark.parametrize(
    "last",
    [
        entry("MixtureLM", estimators=[{"tuple": ["a", {"object": 11}]}], weights=3),
        entry("MixtureLM", {"dict": {}}, estimators={"object": 11}),
        entry("TextLM", {"dict": {}}, estimator={"object": 11}),
    ],
    ids=["weights", "estimators", "text"],
)
def test_chain_of_mixtures_is_refused_before_it_is_shown(tmp_path, last):
    """A walk over mixtures of the previous one twice takes 2**n steps.

    scikit-learn shows an estimator twice for each one that contains it.
    """
    path, first = tmp_path / "chain", entry("UniformLM")
    written(path, [first, *(mixture_of(n, n) for n in range(40)), last])
    with pytest.raises(ValueError, match=r"chain cannot be loaded: .* members, coun"):
        nplm.load(path)
    written(path, [first, *(mixture_of(n) for n in range(30))])
    with pytest.raises(ValueError, match="or they are nested too deeply"):
        nplm.load(path)
    shown = [
        first,
        *(mixture_of(n) for n in range(8)),
        entry("Tokenizer", {"dict": {}}),
    ]
    assert isinstance(nplm.load(written(path, shown)), Tokenizer)


@pytest.mark.parametrize("kind", ["tuple", "dict", "list"])
def test_deeply_nested_values_are_refused(tmp_path, kind):
    """The representation of an estimator recurses into them."""

    words = node = ["a"]
    for _ in range(100):
        words = {"tuple": (words,), "dict": {"a": words}, "list": [words]}[kind]
        node = {"tuple": {"tuple": [node]}, "dict": {"dict": {"a": node}},
                "list": [node]}[kind]  # fmt: skip
    path = written(tmp_path / "deep", [entry("Vocabulary", words=node)])
    with pytest.raises(ValueError, match=r"deep cannot be loaded: 'Voc.* nested too"):
        nplm.load(path)
    fitted = Vocabulary().fit([["a"]])
    with pytest.raises(ValueError, match=r"'Vocabulary' has .* nested too deep"):
        nplm.save(fitted.set_params(words=words), tmp_path / "model")


def test_mixture_of_many_members_is_loaded(tmp_path, fitted):
    frozen = FrozenEstimator(fitted["trigram"])
    members = [(f"m{i}", frozen) for i in range(100)]
    mixture = MixtureLM(members, n_words=N_WORDS).fit(X, Y)
    words = [f"w{i}" for i in range(N_WORDS)]
    nplm.save(TextLM.from_model(mixture, words, boundary=0), tmp_path / "model")
    loaded = nplm.load(tmp_path / "model")
    assert len(loaded.estimator_.estimators_) == 100


LONG = np.frombuffer("\n".join(f"word{i}" for i in range(20_000)).encode(), "u1")


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ({"words": {"array": "long"}}, "'long' is used twice"),
        ({"array": "long"}, "refers to its arrays more than 16 times"),
        (
            {"sparse": [[1, 1], {"array": "long"}, {"array": "long"}, [0, 0]]},
            "refers to its arrays more than 16 times",
        ),
    ],
    ids=["words", "array", "sparse"],
)
def test_repeated_references_to_an_array_are_refused(tmp_path, parameter, message):
    repeated = entry("Vocabulary", words=[parameter] * 500)
    path = written(tmp_path / "repeated", [repeated], long=LONG)

    def refused():
        match = rf"repeated cannot be loaded: .*{message}"
        with pytest.raises(ValueError, match=match):
            nplm.load(path)

    assert peak_of(refused) < (64 << 20) + 100 * path.stat().st_size


def test_shared_array_is_loaded(tmp_path):
    features = np.random.default_rng(0).normal(size=(N_WORDS, 50))
    networks = [
        (f"n{i}", neural_lm(embeddings=features, n_words=N_WORDS)) for i in range(10)
    ]
    mixture = MixtureLM([*networks, ("u", UniformLM())], n_words=N_WORDS)
    mixture.set_params(**{name: "drop" for name, _ in networks}).fit(X, Y)
    nplm.save(mixture.set_params(**dict(networks)), tmp_path / "model")
    loaded = nplm.load(tmp_path / "model")
    for _, network in loaded.estimators[:10]:
        np.testing.assert_array_equal(network.features.embeddings, features)


def test_total_length_of_patterns_is_bounded(tmp_path):
    sets = ["a" * 2000 + str(i) for i in range(3)]
    tokenizers = [
        entry("Tokenizer", {"dict": {}}, pattern={"pattern": [p, 34]}) for p in sets
    ]
    path = written(tmp_path / "patterns", tokenizers)
    with pytest.raises(ValueError, match=r"patterns cannot be loaded: .* at most 5000"):
        nplm.load(path)
    for flags in (-1, 128, 2**40, None):  # 128 prints debug output
        given = entry("Tokenizer", {"dict": {}}, pattern={"pattern": ["a", flags]})
        with pytest.raises(ValueError, match="is not a valid pattern"):
            nplm.load(written(path, [given]))
    nplm.save(Tokenizer(re.compile("a|b" * 1600, re.I)), tmp_path / "of a user")
    assert nplm.load(tmp_path / "of a user").transform(["A"]) == [["A"]]


def mixture_of_a_network(n):
    """Return a mixture that was fitted with this member alone."""
    state = {"names": ["m0"], "members": [{"object": n}], "weights": {"array": "one"},
            "n_iter": 0, "n_context": 2, "order": 3}  # fmt: skip
    return mixture_of(n, fitted={"dict": state})


def text_of_a_network(n):
    state = {"estimator": {"object": n}, "boundary": 0, "tokenizer": None,
            "vocabulary": None}  # fmt: skip
    return entry("TextLM", {"dict": state}, estimator={"object": n})


@pytest.mark.parametrize(
    ("made_of", "name"),
    [(mixture_of_a_network, "member 'm0'"), (text_of_a_network, "the estimator")],
)
def test_network_of_a_shortlist_is_refused_in_another_model(
    tmp_path, fitted, made_of, name
):
    """It has a probability for each output of the short-list, not for each word."""
    nplm.save(fitted["short-list"], tmp_path / "model")
    arrays, _ = read_tensors(tmp_path / "model", mmap=False)
    objects = json.loads(arrays.pop("objects.json").tobytes())
    n = objects[-1]["fitted"]["dict"]["network"]["object"]
    one = {"one": np.ones(1)} if made_of is mixture_of_a_network else {}
    path = written(tmp_path / "tampered", [*objects, made_of(n)], **arrays, **one)
    with pytest.raises(ValueError, match=rf"{name} predicts \d+ outputs of a short-li"):
        nplm.load(path)
