"""nplm.kenlm: KenLM's interface, and its numbers for the same ARPA file."""

import copy
import math
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

import nplm
from nplm import (
    InterpolatedTrigram,
    KneserNeyLM,
    TextLM,
    Tokenizer,
    kenlm,
)
from nplm.formats import read_arpa, save_binary, write_arpa
from tests.helpers import small_text
from tests.helpers.models import BLANKS, fitted_to_texts
from tests.helpers.models import SCORED as MODELS
from tests.helpers.texts import texts

pytestmark = small_text

WINDOWS = ["unigrams", "trigram", "network", "classes", "mixture"]


SENTENCES = [
    *texts(8, 14, seed=2),
    "",
    "  w1\tw2  w1 ",
    "w1 zoo <unk> w1",
    "zoö w1\u00a0w2",
    " ".join(texts(20, seed=3)),
    "w1 w2 </s>",
    "w1 w2 </s> w1 w2 w3 </s> w1",
]


@pytest.fixture(scope="module")
def lms(tmp_path_factory):
    found = {name: fitted_to_texts(model) for name, model in MODELS.items()}
    path, lm = tmp_path_factory.mktemp("quantized") / "model", found["Kneser-Ney"]
    save_binary(lm.estimator_, path, lm.vocabulary_.words_.tolist(), bits=8)
    return found | {"quantized": nplm.load(path)}


@pytest.fixture(scope="module")
def models(lms):
    return {name: kenlm.Model.from_text_lm(lm) for name, lm in lms.items()}


@pytest.fixture(scope="module", params=[2, 3, 5])
def both(request, tmp_path_factory):
    """Our model and KenLM's, of the same ARPA file."""
    theirs = pytest.importorskip("kenlm", reason="needs KenLM's module")
    lm = fitted_to_texts(KneserNeyLM(), request.param - 1)
    path = str(tmp_path_factory.mktemp("arpa") / "model.arpa")
    write_arpa(lm.estimator_, path, lm.vocabulary_.words_)
    return kenlm.Model(path), theirs.Model(path), theirs


def stepped(module, model, words, bos, method="BaseScore"):
    """Return what a method returns for each word, and the states before and after."""
    state, states = module.State(), []
    (model.BeginSentenceWrite if bos else model.NullContextWrite)(state)
    found = []
    for word in words:
        states.append(copy.copy(state))
        after = module.State()
        found.append(getattr(model, method)(state, word, after))
        state = after
    return found, [*states, state]


@pytest.mark.parametrize("bos", [True, False])
@pytest.mark.parametrize("eos", [True, False])
def test_scores_of_sentences_are_those_of_kenlm(both, bos, eos):
    ours, theirs, _ = both
    for text in SENTENCES:
        expected = list(theirs.full_scores(text, bos=bos, eos=eos))
        found = list(ours.full_scores(text, bos=bos, eos=eos))
        assert_allclose([s[0] for s in found], [s[0] for s in expected], atol=2e-6)
        assert [s[1:] for s in found] == [s[1:] for s in expected], text
        n = max(1, len(found))
        assert_allclose(
            ours.score(text, bos, eos), theirs.score(text, bos, eos), atol=2e-6 * n
        )
        assert ours.score(text.encode(), bos, eos) == ours.score(text, bos, eos)
    assert ours.order == theirs.order


def test_perplexities_and_vocabulary_are_those_of_kenlm(both):
    ours, theirs, _ = both
    for text in SENTENCES:
        assert_allclose(ours.perplexity(text), theirs.perplexity(text), rtol=1e-5)
    for word in ("w1", "zoo", "<unk>", "<s>", "</s>", "", b"w1", "W1"):
        assert (word in ours) is (word in theirs), word


@pytest.mark.parametrize("bos", [True, False])
def test_steps_are_those_of_kenlm(both, bos):
    ours, theirs, module = both
    seen = {}
    for text in SENTENCES:
        [words] = BLANKS.transform([text])
        found, states = stepped(kenlm, ours, words, bos)
        expected, their_states = stepped(module, theirs, words, bos)
        assert_allclose(found, expected, atol=2e-6)
        full, _ = stepped(kenlm, ours, words, bos, "BaseFullScore")
        their_full, _ = stepped(module, theirs, words, bos, "BaseFullScore")
        for a, b in zip(full, their_full):
            assert (a.ngram_length, a.oov) == (b.ngram_length, b.oov)
            assert a.log_prob == pytest.approx(b.log_prob, abs=2e-6)
        for mine, other in zip(states, their_states):
            # States that are equal are equal in KenLM, which merges some more.
            assert seen.setdefault(mine, other) == other
    assert len(seen) > 5


def test_new_state_is_the_null_context(both):
    ours, theirs, module = both
    for name, model in ((kenlm, ours), (module, theirs)):
        null, after, other = name.State(), name.State(), name.State()
        model.NullContextWrite(null)
        assert name.State() == null
        assert hash(name.State()) == hash(null)
        assert model.BaseScore(name.State(), "w1", after) == model.BaseScore(
            null, "w1", other
        )
        assert after == other


@pytest.mark.parametrize("name", [*MODELS, "quantized"])
def test_every_model_scores_as_its_scorer_does(lms, models, name):
    lm, model = lms[name], models[name]
    scorer = lm.scorer()
    for text in [text for text in SENTENCES if "</s>" not in text]:
        for eos in (True, False):
            expected = scorer.score(text, eos=eos) / math.log(10)
            assert_allclose(model.score(text, eos=eos), expected, rtol=1e-5)
            full = list(model.full_scores(text, eos=eos))
            assert_allclose(sum(s[0] for s in full), expected, rtol=1e-5)
            [scores] = lm.token_scores([text], eos=eos)
            assert [s[2] for s in full] == scores.unknown.tolist()
        words = [*BLANKS.transform([text])[0], "</s>"]
        found, states = stepped(kenlm, model, words, True)
        whole = model.score(text)
        assert_allclose(sum(found), whole, rtol=1e-5)
        full, _ = stepped(kenlm, model, words, True, "BaseFullScore")
        assert_allclose([s.log_prob for s in full], found, rtol=1e-12)
        assert_allclose(model.perplexity(text), 10 ** (-whole / len(words)))
        assert pickle.loads(pickle.dumps(states)) == states
    assert model.order == {"unigrams": 1, "trigram": 3}.get(name, 4)
    assert {s.ngram_length for s in full} <= set(range(1, model.order + 1))


@pytest.mark.parametrize("name", WINDOWS)
def test_models_of_windows_begin_after_the_end(models, name):
    model = models[name]
    a, b = (model.score(text, eos=False) for text in ("w1 w2 </s> w3", "w1 w2 </s>"))
    assert_allclose(a - b, model.score("w3", eos=False), rtol=1e-5)
    for use in (
        lambda: model.score("w1", bos=False),
        lambda: model.NullContextWrite(kenlm.State()),
        lambda: model.BaseScore(kenlm.State(), "w1", kenlm.State()),
    ):
        with pytest.raises(ValueError, match="only backoff n-grams"):
            use()


def test_states_compare_copy_and_overwrite(models):
    model = models["Kneser-Ney"]
    begin, null, state = (kenlm.State() for _ in range(3))
    model.BeginSentenceWrite(begin)
    model.NullContextWrite(null)
    assert begin != null
    assert (null < begin) is not (begin < null)
    assert null <= null >= null
    assert sorted([begin, null]) == sorted([null, begin])
    assert begin != "something else"
    assert len({begin, null, kenlm.State()}) == 2
    model.BaseScore(begin, "w1", state)
    kept, deep = copy.copy(state), copy.deepcopy(state)
    first = model.BaseScore(state, "w2", state)  # in place
    assert kept == deep != state
    assert model.BaseScore(kept, "w2", kept) == first
    assert kept == state
    with pytest.raises(TypeError):
        begin < 3  # noqa: B015


def test_begin_of_a_sentence_is_no_word(models):
    model = models["Kneser-Ney"]
    assert "<s>" in model
    for use in (
        lambda: model.score("<s> w1"),
        lambda: list(model.full_scores("<s> w1")),
    ):
        with pytest.raises(ValueError, match="'<s>' is the context"):
            use()


@pytest.mark.parametrize("name", ["Kneser-Ney", "quantized", "network"])
def test_begin_mark_as_a_step_begins_a_sentence(models, name):
    """As ESPnet steps first."""
    model, state, begin = models[name], kenlm.State(), kenlm.State()
    model.BeginSentenceWrite(begin)
    assert model.BaseScore(state, "<s>", state) == -100.0
    assert state == begin
    model.BaseScore(begin, "w1", state)
    full = model.BaseFullScore(state, "<s>", state)
    assert (full.log_prob, full.ngram_length, full.oov) == (-100.0, 1, False)
    assert state == begin


def test_begin_mark_as_a_step_begins_a_sentence_in_kenlm(both):
    *two, module = both
    for model, make in zip(two, (kenlm.State, module.State)):
        state, begin = make(), make()
        model.NullContextWrite(state)
        model.BaseScore(state, "<s>", state)
        model.BeginSentenceWrite(begin)
        assert state == begin


def test_bytes_that_are_not_utf_8_are_unknown_words(both):
    ours, theirs, _ = both
    for text in (b"w1 \xff w2", b"w1 w2\xc3", b"\xff\xfe", b"w1 \xed\xa0\x80 w1"):
        expected, found = theirs.full_scores(text), list(ours.full_scores(text))
        assert [oov for *_, oov in found] == [oov for *_, oov in expected]
        assert ours.score(text) == pytest.approx(theirs.score(text), abs=1e-5)
        assert ours.perplexity(text) == pytest.approx(theirs.perplexity(text), rel=1e-4)
        assert (text in ours) is (text in theirs) is False


def test_suffix_of_a_longer_ngram_has_its_length_as_in_kenlm(tmp_path):
    """The file lacks "b c", and "b" has a weight."""
    path = tmp_path / "model.arpa"
    path.write_text(
        "\\data\\\nngram 1=7\nngram 2=7\nngram 3=1\n\n\\1-grams:\n-99\t<s>\t-0.1\n"
        "-0.6\t</s>\n-0.7\ta\t-0.2\n-0.8\tb\t-0.3\n-0.9\tc\t-0.4\n-2\t<unk>\n-2\tx\n\n"
        "\\2-grams:\n-0.1\ta b\t-0.5\n-0.2\t<s> b\t-0.6\n-0.2\tc a\n"
        "-0.1\tx x\n-0.1\tx a\n-0.1\tx b\n-0.1\tx c\n\n"
        "\\3-grams:\n-0.05\ta b c\n\n\\end\\\n"
    )
    own, words = read_arpa(path)
    save_binary(own, tmp_path / "quantized", words, bits=8)
    lines = ["a b c", "b c", "b c a", "c b c", "c c", "b b c"]
    expected = [[1, 2, 3], [2, 2], [2, 2, 2], [1, 1, 2], [1, 1], [2, 1, 2]]
    for file in (path, tmp_path / "quantized"):
        model = kenlm.Model(file)
        found = [[n for _, n, _ in model.full_scores(t, eos=False)] for t in lines]
        assert found == expected
    theirs = pytest.importorskip("kenlm", reason="needs KenLM's module")
    other = theirs.Model(str(path))
    for line, lengths in zip(lines, found):
        assert [n for _, n, _ in other.full_scores(line, eos=False)] == lengths
        assert other.score(line) == pytest.approx(model.score(line), abs=1e-5)


def test_types_of_kenlm_are_asked_for(models, tmp_path):
    with pytest.raises(FileNotFoundError):
        kenlm.Model(tmp_path / "absent")
    model, state = models["Kneser-Ney"], kenlm.State()
    with pytest.raises(TypeError):
        model.BaseScore(state, b"w1", state)
    with pytest.raises(TypeError):
        model.BaseScore(None, "w1", state)
    with pytest.raises(TypeError, match="got int: 3"):
        model.score(3)
    assert model.score(np.str_("w1 w2")) == model.score(b"w1 w2")
    other = kenlm.State()
    models["network"].BeginSentenceWrite(other)
    with pytest.raises(TypeError):
        model.BaseScore(other, "w1", state)


def test_words_of_probability_0_are_not_infinite(tmp_path):
    path = tmp_path / "model.arpa"
    path.write_text(
        "\\data\\\nngram 1=4\nngram 2=1\n\n\\1-grams:\n-99\t<s>\t0\n-0.3\t</s>\n"
        "-0.4\ta\t-0.2\n-0.9\tb\t0\n\n\\2-grams:\n-0.1\t<s> a\n\n\\end\\\n"
    )
    model = kenlm.Model(path)
    assert model.score("a b", eos=False) == pytest.approx(-1.2, abs=1e-5)
    [_, zoo, _] = model.full_scores("b zoo b", eos=False)
    assert zoo == (-100.0, 1, True)
    assert model.score("b zoo b", eos=False) == pytest.approx(-101.8, abs=1e-5)
    state = kenlm.State()
    assert model.BaseScore(state, "zoo", state) == -100.0
    theirs = pytest.importorskip("kenlm", reason="needs KenLM's module")
    other = theirs.Model(str(path))
    # After b, whose back-off weight is 1; KenLM adds others to -100.
    assert other.score("b zoo b") == pytest.approx(model.score("b zoo b"), abs=1e-5)


def test_every_kind_of_file_is_read(lms, tmp_path):
    lm = lms["Kneser-Ney"]
    words = lm.vocabulary_.words_.tolist()
    write_arpa(lm.estimator_, tmp_path / "a.arpa.gz", words)
    save_binary(lm.estimator_, tmp_path / "a.binary", words)
    nplm.save(lm, tmp_path / "a.nplm")
    expected = kenlm.Model.from_text_lm(lm).score("w1 w2 zoo")
    config = kenlm.Config()
    for method in (
        kenlm.LoadMethod.LAZY,
        kenlm.LoadMethod.POPULATE_OR_READ,
        kenlm.LoadMethod.READ,
    ):
        config.load_method = method
        for name in ("a.arpa.gz", "a.binary", "a.nplm"):
            for path in (tmp_path / name, str(tmp_path / name)):
                model = kenlm.LanguageModel(path, config)
                assert isinstance(model, kenlm.Model)
                assert model.score("w1 w2 zoo") == pytest.approx(expected, abs=1e-5)
                assert model.path == str(tmp_path / name).encode()
                assert repr(model) == f"<Model from {name}>"
    again = pickle.loads(pickle.dumps(model))
    assert again.score("w1 w2 zoo") == model.score("w1 w2 zoo")
    assert type(again) is kenlm.LanguageModel


@pytest.mark.parametrize("name", ["Kneser-Ney", "network", "mixture"])
def test_models_of_files_and_of_memory_pickle(lms, tmp_path, name):
    nplm.save(lms[name], tmp_path / "model")
    of_memory = kenlm.Model.from_text_lm(lms[name])
    for model in (kenlm.Model(tmp_path / "model"), of_memory):
        again = pickle.loads(pickle.dumps(model))
        assert again.score("w1 w2 zoo") == model.score("w1 w2 zoo")


def test_models_of_other_tokens_split_as_they_were_trained():
    lm = TextLM(InterpolatedTrigram(), 2, tokenizer=Tokenizer(lowercase=True))
    model = kenlm.Model.from_text_lm(lm.fit(["A rose. Is it?"] * 9))
    assert len(list(model.full_scores("a ROSE.", eos=False))) == 3
    events = TextLM(InterpolatedTrigram(), 2).fit([["a.", "b"], ["b", "a."]] * 9)
    model = kenlm.Model.from_text_lm(events)
    assert [s[2] for s in model.full_scores("a. b. b", eos=False)] == [0, 1, 0]
