"""flashlight_lm: decodes with the decoders of flashlight-text and torchaudio."""

import math
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import nplm
from nplm import InterpolatedTrigram, TextLM, flashlight_lm, kenlm
from nplm.formats import write_arpa
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
def test_scores_of_a_path_are_those_of_the_sentence(flashlight, name):
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


def test_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "flashlight.lib.text.decoder", None)
    with pytest.raises(ImportError, match="pip install flashlight-text"):
        flashlight_lm(models()["n-grams"], WORDS)


def test_model_without_words_is_refused(flashlight):
    ids = TextLM(InterpolatedTrigram(), 2).fit([[1, 2, 1]] * 9)
    for lm in (ids, ids.estimator_):
        with pytest.raises(TypeError, match="a fitted TextLM with a vocabulary"):
            flashlight_lm(lm, WORDS)
