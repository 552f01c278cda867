"""pyctcdecode_lm: decodes with pyctcdecode, and by its interface without it."""

import importlib
import math
import pickle
import sys
import types
from abc import ABC, abstractmethod

import numpy as np
import pytest
from numpy.testing import assert_allclose

import nplm
import nplm.kenlm
from nplm import pyctcdecode_lm
from tests.helpers import small_text
from tests.helpers.decoding import BLANK, SPACE, TOKENS, models

pytestmark = small_text


class AbstractLanguageModel(ABC):
    """The abstract methods of pyctcdecode's class of this name."""

    @property
    @abstractmethod
    def order(self): ...

    @abstractmethod
    def get_start_state(self): ...

    @abstractmethod
    def score_partial_token(self, partial_token): ...

    @abstractmethod
    def score(self, prev_state, word, is_last_word=False): ...


@pytest.fixture
def interface(monkeypatch):
    """Put the interface of pyctcdecode, which requires NumPy below 2, in its place."""
    module = types.ModuleType("pyctcdecode.language_model")
    module.AbstractLanguageModel = AbstractLanguageModel
    monkeypatch.setitem(sys.modules, "pyctcdecode", types.ModuleType("pyctcdecode"))
    monkeypatch.setitem(sys.modules, "pyctcdecode.language_model", module)


@pytest.mark.parametrize("name", ["n-grams", "network", "mixture"])
def test_scores_of_a_path_are_those_of_the_sentence(interface, name):
    lm = models()[name]
    own = pyctcdecode_lm(lm, alpha=0.7, beta=1.1)
    assert own.order == 3
    state, total = own.get_start_state(), 0.0
    words = ["da", "oft", "bax"]
    for word in words:
        score, state = own.score(state, word, is_last_word=word == words[-1])
        total += score
    expected = 0.7 * lm.scorer().score("da oft bax") + 3 * 1.1
    assert_allclose(total, expected, rtol=1e-5)


def test_unknown_words_get_the_offset(interface):
    lm = models()["n-grams"]
    own = pyctcdecode_lm(lm, alpha=1.0, beta=0.0, unk_score_offset=-3.0)
    start = own.get_start_state()
    log_prob, _ = lm.scorer().step(lm.scorer().begin(), "zoo")
    assert_allclose(own.score(start, "zoo")[0], log_prob - 3 * math.log(10))
    own.reset_params(unk_score_offset=0.0, score_boundary=False)
    assert_allclose(own.score(start, "zoo")[0], log_prob)
    known, _ = lm.scorer().step(lm.scorer().begin(bos=False), "da")
    open_start = own.get_start_state()
    assert_allclose(own.score(open_start, "da", is_last_word=True)[0], known)


@pytest.mark.parametrize(
    ("unigrams", "others"),
    [(None, ["zoo"]), (["da", "zoo"], ["zoo", "oft"]), ([], ["zoo"])],
)
def test_words_that_the_model_lacks_get_the_offset_too(interface, unigrams, others):
    lm = models()["n-grams"]
    own = pyctcdecode_lm(lm, unigrams, alpha=1.0, beta=0.0, unk_score_offset=-3.0)
    for word in ("da", "oft", "zoo"):
        log_prob, _ = lm.scorer().step(lm.scorer().begin(), word)
        offset = -3 * math.log(10) if word in others else 0
        assert_allclose(own.score(own.get_start_state(), word)[0], log_prob + offset)
    assert own.score_partial_token("zo") == -3.0
    assert own.score_partial_token("d") == (-3.0 if unigrams == [] else 0.0)


def test_pieces_that_begin_no_word_are_penalised(interface):
    own = pyctcdecode_lm(models()["n-grams"], unk_score_offset=-3.0)
    assert [own.score_partial_token(t) for t in ("b", "bo", "bax", "fas")] == [0.0] * 4
    assert own.score_partial_token("x") == own.score_partial_token("<unk") == -3.0
    assert own.score_partial_token("x" * 12) == -6.0
    few = pyctcdecode_lm(models()["n-grams"], ["fast"], unk_score_offset=-3.0)
    assert few.score_partial_token("b") == -3.0


def test_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyctcdecode", None)
    monkeypatch.setitem(sys.modules, "pyctcdecode.language_model", None)
    with pytest.raises(ImportError, match="--no-deps pyctcdecode"):
        pyctcdecode_lm(models()["n-grams"])


@pytest.mark.parametrize("suffix", [".arpa", ".nplm"])
def test_module_of_nplm_stands_in_for_kenlm(monkeypatch, tmp_path, suffix):
    """``build_ctcdecoder`` of scripts, after the line of the guide: KenLM's beams."""
    pytest.importorskip("pyctcdecode", reason="needs pyctcdecode")
    theirs = pytest.importorskip("kenlm", reason="needs KenLM's module")
    from nplm.formats import write_arpa

    lm = models()["n-grams"]
    words = lm.vocabulary_.words_.tolist()
    arpa, path = tmp_path / "model.arpa", tmp_path / f"model{suffix}"
    write_arpa(lm.estimator_, arpa, words)
    if suffix == ".nplm":
        nplm.save(lm, path)
    labels = ["", *(t for t in TOKENS if t not in (BLANK, SPACE)), " "]
    logits = np.random.default_rng(0).normal(size=(40, len(labels)))
    beams = {}
    for module, model in (theirs, arpa), (nplm.kenlm, path):
        for name in [n for n in sys.modules if n.split(".")[0] == "pyctcdecode"]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "kenlm", module)
        pyctcdecode = importlib.import_module("pyctcdecode")
        decoder = pyctcdecode.build_ctcdecoder(
            labels, str(model), nplm.load(path).unigrams()
        )
        beams[module] = decoder.decode_beams(logits)
    first, second = beams.values()
    assert len(first) > 1
    assert [beam[0] for beam in first] == [beam[0] for beam in second]
    assert_allclose([b[-2:] for b in first], [b[-2:] for b in second], rtol=1e-5)


@pytest.mark.parametrize("own", [None, [], ["da", "zoo", "bex"], ["zoo"]])
def test_scores_are_those_of_pyctcdecode_with_kenlm(tmp_path, own):
    """Its own class, given this model by the interface of KenLM's module."""
    module = pytest.importorskip(
        "pyctcdecode.language_model", reason="needs pyctcdecode"
    )
    kenlm = pytest.importorskip("kenlm", reason="needs KenLM's module")
    from nplm.formats import write_arpa

    lm = models()["n-grams"]
    path = str(tmp_path / "model.arpa")
    write_arpa(lm.estimator_, path, lm.vocabulary_.words_)
    words = [w for w in lm.vocabulary_.words_.tolist() if not w.startswith("<")]
    theirs = module.LanguageModel(kenlm.Model(path), words if own is None else own)
    ours = pyctcdecode_lm(lm, own)
    for sentence in ("da oft bax", "zoo nie bex pax", "ki"):
        a, b = theirs.get_start_state(), ours.get_start_state()
        for i, word in enumerate(split := sentence.split()):
            last = i == len(split) - 1
            x, a = theirs.score(a, word, last)
            y, b = ours.score(b, word, last)
            assert_allclose(y, x, atol=1e-4)
    for piece in ("d", "du", "bo", "xx", "x" * 9):
        ours_of = ours.score_partial_token(piece)
        assert_allclose(ours_of, theirs.score_partial_token(piece))
    assert pickle.loads(pickle.dumps(b.get_mp_safe_state())) == b


def test_unigrams_are_the_words_of_every_file(tmp_path):
    from nplm.formats import save_binary, write_arpa

    lm = models()["n-grams"]
    every = lm.vocabulary_.words_.tolist()
    words = [word for word in every if word not in ("</s>", "<unk>")]
    write_arpa(lm.estimator_, tmp_path / "lm.arpa", every)
    nplm.save(lm, tmp_path / "lm.nplm")
    save_binary(lm.estimator_, tmp_path / "lm.bin", every)
    for model in (lm, *map(nplm.load, tmp_path.iterdir()), models()["network"]):
        assert sorted(model.unigrams()) == sorted(words)
    lines = (tmp_path / "lm.arpa").read_text().split("\n\n")[1].splitlines()[1:]
    in_file = {line.split("\t")[1] for line in lines}
    assert in_file - {"<s>", "</s>", "<unk>"} == set(words)
    of_ids = nplm.TextLM(nplm.UniformLM()).fit([[1, 2], [3]])
    with pytest.raises(TypeError, match="was fitted on ids"):
        of_ids.unigrams()
