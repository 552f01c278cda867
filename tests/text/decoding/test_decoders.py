"""flashlight_lm and pyctcdecode_lm: other packages' decoders, and their interfaces."""

import importlib
import math
import pickle
import sys
import types
from abc import ABC, abstractmethod
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import nplm
from nplm import InterpolatedTrigram, TextLM, flashlight_lm, kenlm, pyctcdecode_lm
from nplm.formats import save_binary, write_arpa
from nplm.text.decoding.decoders import WordSteps
from tests.helpers import small_text
from tests.helpers.decoding import BLANK, SPACE, TOKENS, WORDS, models, word_errors

pytestmark = small_text
DATA = Path(__file__).parents[2] / "formats" / "kenlm_data"


@pytest.fixture(scope="module")
def flashlight():
    return pytest.importorskip(
        "flashlight.lib.text.decoder", reason="needs flashlight-text"
    )


def lexicon_decoder(flashlight, make_lm, weight=2.0):
    """Return the lexicon decoder of flashlight-text, and its words."""
    words = [*WORDS, "<unk>"]
    decoder_lm = make_lm(words)
    trie = flashlight.Trie(len(TOKENS), TOKENS.index(SPACE))
    start = decoder_lm.start(False)
    for i, word in enumerate(WORDS):
        score = decoder_lm.score(start, i)[1]
        trie.insert([TOKENS.index(t) for t in [*word, SPACE]], i, score)
    trie.smear(flashlight.SmearingMode.MAX)
    options = flashlight.LexiconDecoderOptions(
        beam_size=50,
        beam_size_token=len(TOKENS),
        beam_threshold=50.0,
        lm_weight=weight,
        word_score=0.0,
        unk_score=-math.inf,
        sil_score=0.0,
        log_add=False,
        criterion_type=flashlight.CriterionType.CTC,
    )
    decoder = flashlight.LexiconDecoder(
        options, trie, decoder_lm, TOKENS.index(SPACE), TOKENS.index(BLANK),
        words.index("<unk>"), [], False,
    )  # fmt: skip
    return decoder, decoder_lm, words


def decoded(flashlight, make_lm):
    decoder, kept, words = lexicon_decoder(flashlight, make_lm)

    def decode(frames):
        # A last space ends the last word.
        end = np.full((1, len(TOKENS)), -9.0, dtype=np.float32)
        end[0, TOKENS.index(SPACE)] = 0.0
        frames = np.concatenate([frames, end])
        best = decoder.decode(frames.ctypes.data, *frames.shape)[0]
        assert kept is not None
        return " ".join(words[i] for i in best.words if i >= 0)

    return decode


@pytest.mark.slow
def test_network_and_mixture_decode_better_than_ngrams(flashlight):
    errors = {
        name: word_errors(decoded(flashlight, partial(flashlight_lm, lm)))
        for name, lm in models().items()
    }
    assert errors["network"] < 0.5 * errors["n-grams"]
    assert errors["mixture"] < 0.5 * errors["n-grams"]


def over_kenlm(flashlight, model, words):
    """Return a program's own language model, over KenLM's module or nplm's."""

    class OverKenlm(flashlight.LM):
        def start(self, start_with_nothing):
            state, self.states = flashlight.LMState(), {}
            self.states[state] = kenlm.State()
            model.BeginSentenceWrite(self.states[state])
            return state

        def score(self, state, index):
            return self._score(state, index, words[index])

        def finish(self, state):
            return self._score(state, -1, "</s>")

        def _score(self, state, index, word):
            after = state.child(index)
            self.states[after] = kenlm.State()
            own = self.states[state], word, self.states[after]
            return after, model.BaseScore(*own)

    return OverKenlm()


def test_decoder_over_the_kenlm_module_finds_the_same_words(flashlight, tmp_path):
    lm = models()["n-grams"]
    write_arpa(lm.estimator_, tmp_path / "arpa", lm.vocabulary_.words_.tolist())
    model = kenlm.Model(str(tmp_path / "arpa"))
    wanted = word_errors(decoded(flashlight, partial(flashlight_lm, lm)))
    over_module = decoded(flashlight, partial(over_kenlm, flashlight, model))
    assert 0 < wanted == word_errors(over_module)


@pytest.mark.parametrize("name", ["model.arpa", "probing", "trie-q-b-a"])
def test_files_of_kenlm_are_decoded_with_its_own_scores(flashlight, name):
    path = DATA / name
    model, words = kenlm.Model(str(path)), ["a", "b", "c", "unseen"]
    decoder_lm = flashlight_lm(nplm.load(path), words)
    found, state = decoder_lm.start(False), kenlm.State()
    model.BeginSentenceWrite(state)
    for i in (0, 1, 3, 2, 0, 1):
        before, state = state, kenlm.State()
        score = model.BaseScore(before, words[i], state)
        found, log10 = decoder_lm.score(found, i)
        assert log10 == pytest.approx(score, rel=1e-5)
    end = model.BaseScore(state, "</s>", kenlm.State())
    assert decoder_lm.finish(found)[1] == pytest.approx(end, rel=1e-5)


@pytest.mark.parametrize("name", ["n-grams", "network", "mixture"])
def test_scores_of_flashlight_are_those_of_the_sentence(flashlight, name):
    lm = models()[name]
    decoder_lm = flashlight_lm(lm, WORDS)
    state, total = decoder_lm.start(False), 0.0
    for word in ("da", "oft", "bax"):
        before = state
        state, score = decoder_lm.score(state, WORDS.index(word))
        assert decoder_lm.score(before, WORDS.index(word)) == (state, score)
        total += score
    total += decoder_lm.finish(state)[1]
    assert_allclose(total, lm.scorer().score("da oft bax") / math.log(10), rtol=1e-5)
    with pytest.raises(IndexError, match="words has 34"):
        decoder_lm.score(state, 34)
    decoder_lm.start(False)
    with pytest.raises(RuntimeError, match="not of this utterance"):
        decoder_lm.score(state, 0)


def test_dictionary_of_flashlight_names_the_words(flashlight):
    from flashlight.lib.text.dictionary import Dictionary

    dictionary = Dictionary()
    for word in WORDS:
        dictionary.add_entry(word)
    lm = models()["n-grams"]
    scores = [
        own.score(own.start(False), 3)[1]
        for own in (flashlight_lm(lm, dictionary), flashlight_lm(lm, WORDS))
    ]
    assert scores[0] == scores[1]


def test_probability_0_is_that_of_kenlm():
    steps = WordSteps(models()["n-grams"], "a test")
    steps.scorer = SimpleNamespace(
        step=lambda state, word: (-math.inf, "after"), end=lambda state: -math.inf
    )
    assert steps.step("before", "da") == (-100.0, "after")
    assert steps.end("before") == -100.0


def test_model_without_words_is_refused(flashlight):
    ids = TextLM(InterpolatedTrigram(), 2).fit([[1, 2, 1]] * 9)
    for lm in (ids, ids.estimator_):
        with pytest.raises(TypeError, match="a fitted TextLM with a vocabulary"):
            flashlight_lm(lm, WORDS)


# -- pyctcdecode ----------------------------------------------------------------------


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
def test_scores_of_pyctcdecode_are_those_of_the_sentence(interface, name):
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


@pytest.mark.parametrize(
    ("module", "decoder_lm", "command"),
    [
        ("flashlight.lib.text.decoder", lambda lm: flashlight_lm(lm, WORDS),
         "pip install flashlight-text"),
        ("pyctcdecode.language_model", pyctcdecode_lm, "--no-deps pyctcdecode"),
    ],
)  # fmt: skip
def test_missing_package_is_named(monkeypatch, module, decoder_lm, command):
    monkeypatch.setitem(sys.modules, module.split(".")[0], None)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=command):
        decoder_lm(models()["n-grams"])


@pytest.mark.parametrize("suffix", [".arpa", ".nplm"])
def test_module_of_nplm_stands_in_for_kenlm(monkeypatch, tmp_path, suffix):
    """``build_ctcdecoder`` of scripts, after the line of the guide: KenLM's beams."""
    pytest.importorskip("pyctcdecode", reason="needs pyctcdecode")
    theirs = pytest.importorskip("kenlm", reason="needs KenLM's module")
    lm = models()["n-grams"]
    words = lm.vocabulary_.words_.tolist()
    arpa, path = tmp_path / "model.arpa", tmp_path / f"model{suffix}"
    write_arpa(lm.estimator_, arpa, words)
    if suffix == ".nplm":
        nplm.save(lm, path)
    labels = ["", *(t for t in TOKENS if t not in (BLANK, SPACE)), " "]
    logits = np.random.default_rng(0).normal(size=(40, len(labels)))
    beams = {}
    for module, model in (theirs, arpa), (kenlm, path):
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
    of_kenlm = pytest.importorskip("kenlm", reason="needs KenLM's module")
    lm = models()["n-grams"]
    path = str(tmp_path / "model.arpa")
    write_arpa(lm.estimator_, path, lm.vocabulary_.words_)
    words = [w for w in lm.vocabulary_.words_.tolist() if not w.startswith("<")]
    theirs = module.LanguageModel(of_kenlm.Model(path), words if own is None else own)
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
