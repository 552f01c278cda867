"""A file is opened once; the scorer of its n-grams is that of their model."""

import bz2
import gzip
import lzma
import os
import pickle
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nplm
from nplm import InterpolatedTrigram, KneserNeyLM, TextLM, Tokenizer, kenlm
from nplm.base.files.tensors import TensorFile
from nplm.cli import main
from nplm.formats import (
    estimate_binary,
    load_binary,
    read_arpa,
    save_binary,
    write_arpa,
    write_classes,
    write_counts,
    write_vectors,
)
from nplm.formats.open_model import Kind, open_model
from tests.helpers import small_text, text

pytestmark = small_text

TEXTS = ["a rose is a rose", "is a rose a rose", "the rose is red", "<unk> is red"] * 5
WORDS = ["a", "rose", "is", "the", "red", "tulip", "</s>", "<unk>", "A", "Rose"]
FORMS = {"mapped": {}, "8 bits": {"bits": 8}}
NAMES = [*FORMS, "arpa", "no unknown", "with a tokenizer"]


def scorer_of(path):
    """The scorer of a file."""
    with open_model(path) as file:
        return file.scorer()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of n-grams of every kind."""
    folder = tmp_path_factory.mktemp("scorers")
    lm = TextLM(KneserNeyLM(3), 2, tokenizer=Tokenizer(r"\S+")).fit(TEXTS)
    words = lm.vocabulary_.words_.tolist()
    for name, form in FORMS.items():
        save_binary(lm.estimator_, folder / name, words, **form)
    write_arpa(lm.estimator_, folder / "arpa", words)
    others = ["odd" if word == "<unk>" else word for word in words]
    save_binary(lm.estimator_, folder / "no unknown", others)
    (folder / "text").write_text("\n".join(TEXTS))
    tokenizer = Tokenizer(
        r"\w+|</?\w+>", lowercase=True, number="<num>", identifier="<id>"
    )
    path = folder / "with a tokenizer"
    estimate_binary(KneserNeyLM(3), [folder / "text"], path, tokenizer=tokenizer)
    return folder


@pytest.fixture(scope="module")
def pairs(folder):
    """The scorer of each file, and that of the model that is loaded."""
    return {
        name: (scorer_of(folder / name), nplm.load(folder / name).scorer())
        for name in NAMES
    }


def outcome(call, scorer):
    """What a call returns, or the message of its error."""
    try:
        return call(scorer)
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=30)
@given(
    words=st.lists(st.sampled_from(WORDS), max_size=6),
    blank=st.sampled_from([" ", "  ", "\t", "\u00a0"]),
    bos=st.booleans(),
    eos=st.booleans(),
)
def test_scores_are_those_of_the_model(pairs, name, words, blank, bos, eos):
    text = blank.join(words)
    for call in (
        lambda scorer: scorer.score(text, bos=bos, eos=eos),
        lambda scorer: scorer.score(words, bos=bos, eos=eos),
        lambda scorer: scorer.score_many([text, words], bos=bos, eos=eos).tolist(),
        lambda scorer: scorer.codec.encode([text]).ids.tolist(),
        lambda scorer: scorer.codec.tokenizer.transform([text]),
    ):
        ours, models = pairs[name]
        assert outcome(call, ours) == outcome(call, models)


@pytest.mark.parametrize("name", NAMES)
def test_orders_and_boundaries_are_those_of_the_model(pairs, folder, name):
    scorer = pickle.loads(pickle.dumps(pairs[name][0]))
    lm = nplm.load(folder / name)
    assert scorer.score("a rose is red") == pairs[name][0].score("a rose is red")
    [scores] = lm.token_scores(["a rose is red"])
    ids, lengths = scorer.codec.encode(["a rose is red"])
    log_prob, details = scorer.word_scorer.tokens(ids, lengths, True, True)
    np.testing.assert_array_equal(log_prob, scores.log_prob)
    np.testing.assert_array_equal(details["order"], scores.order)
    assert scorer.word_scorer.boundary == lm.boundary_
    assert scorer.word_scorer.order == lm.estimator_.order_
    assert scorer.codec.known.unknown_id == lm.vocabulary_.unknown_id_


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "file is empty: copy or save the model again"),
        (b"\x80\x04\x95", "file cannot be loaded: it does not begin like"),
        (b"{}", "file cannot be loaded: it does not begin like"),
        (b"caf\xe9\n", "file cannot be loaded: it does not begin like"),
        (b"a text of\nsome lines\n", "file, after line 2: .*not an ARPA file"),
        (gzip.compress(b"line\n" * 99, mtime=0)[:-9], "file cannot be decompressed"),
        (b"BZh91AY&SY", "file cannot be decompressed"),
        (b"\\data\\\nngram 1=3\n\0\n", "file, line 3: expected 'ngram 2='"),
        (b"\n\\data\\\nngram 1=\xff\n", "file, line 3: not UTF-8"),
        ("a\n\\data\\\n".encode("utf-16"), "file, line 1: not UTF-8"),
        ("\\data\\\nngram 1=2\n".encode("utf-16-le"), "file, after line .: no line"),
    ],
)
def test_other_files_and_damaged_ones_are_named(tmp_path, contents, message):
    (tmp_path / "file").write_bytes(contents)
    with pytest.raises(ValueError, match=message):
        nplm.load(tmp_path / "file")


def test_other_files_have_the_scorer_of_their_model_or_are_refused(tmp_path):
    lm = TextLM(InterpolatedTrigram(), 2).fit(TEXTS)
    nplm.save(lm, tmp_path / "saved")
    unigrams = KneserNeyLM(1, n_words=3, boundary=0).fit_stream([1, 2, 0, 1, 1, 0])
    words = ["</s>", "a", "rose"]
    save_binary(unigrams, tmp_path / "unigrams", words)
    write_arpa(unigrams, tmp_path / "unigrams.arpa", words)
    stream = KneserNeyLM(2, n_words=3).fit_stream([1, 2, 0, 1, 1, 0] * 9)
    save_binary(stream, tmp_path / "stream", words)
    (tmp_path / "classes").write_text("a\t1\nrose\t2\n")
    (tmp_path / "cut").write_bytes((tmp_path / "saved").read_bytes()[:100])
    nplm.save(lm.estimator_, tmp_path / "no words")
    nplm.save(TextLM.from_model(unigrams), tmp_path / "ids")
    for name in ("saved", "unigrams", "unigrams.arpa"):
        model = nplm.load(tmp_path / name)
        assert scorer_of(tmp_path / name).score("a rose") == model.scorer().score(
            "a rose"
        )
    for name, message in [
        ("stream", "has no boundary"),
        ("classes", "has words and whole numbers"),
        ("cut", "cannot be loaded: it is truncated"),
        ("no words", "has a InterpolatedTrigram, not a TextLM"),
        ("ids", "has a model of ids, not of text"),
    ]:
        with pytest.raises(ValueError, match=f"{name} {message}"):
            scorer_of(tmp_path / name)
        with pytest.raises(OSError, match=f"Cannot read model .*{name} {message}"):
            kenlm.Model(tmp_path / name)


@pytest.fixture(scope="module")
def openings():
    """The files that are opened, for as long as the process lives."""
    opened = []
    sys.addaudithook(
        lambda event, arguments: (
            opened.append(arguments[0]) if event == "open" else None
        )
    )
    return opened


@pytest.mark.parametrize("name", [*NAMES, "saved", "unigrams"])
def test_file_is_opened_once(folder, openings, tmp_path, name):
    path = folder / name
    if name == "saved":
        nplm.save(TextLM(InterpolatedTrigram(), 2).fit(TEXTS), path)
    elif name == "unigrams":
        unigrams = KneserNeyLM(1, n_words=3, boundary=0).fit_stream([1, 2, 0, 1, 1, 0])
        write_arpa(unigrams, path, ["</s>", "a", "rose"])
    file, text, saved = nplm.ModelFile(path), tmp_path / "text", tmp_path / "saved"
    text.write_text("a rose\n")

    def command(*arguments):
        main(list(map(str, arguments)), standalone_mode=False)

    for read in (
        nplm.load,
        kenlm.Model,
        lambda path: file.load(),
        lambda path: command("score", path, text),
        lambda path: command("convert", path, saved),
    ):
        openings.clear()
        read(path)
        assert [os.fspath(p) for p in openings].count(os.fspath(path)) == 1


def test_words_without_the_boundary_in_their_table_are_refused(folder, tmp_path):
    path = tmp_path / "damaged"
    data = bytearray((folder / "mapped").read_bytes())
    slots = TensorFile(folder / "mapped").arrays(mmap=False, check=[])["word_slots"]
    start = data.find(slots.tobytes())
    data[start : start + slots.nbytes] = bytes(slots.nbytes)
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"damaged is damaged: '</s>' cannot be the"):
        scorer_of(path)


# -- `nplm.load` of files of every kind, recognised by their contents
N_WORDS = 30
SPELLED = ["</s>", "<unk>", *(f"wörd{i}" for i in range(2, N_WORDS))]
LINES = ["wörd2 wörd3 wörd2", "wörd5 new"]


@pytest.fixture(scope="module")
def model():
    # Also when the test of another file asks for warnings.
    with pytest.warns(UserWarning, match="Kneser-Ney"):
        stream = text(2000, n_words=N_WORDS)
        return KneserNeyLM(3, n_words=N_WORDS, boundary=0).fit_stream(stream)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_arpa_files_are_text_models(tmp_path, model, pack):
    path = tmp_path / "model.nplm"  # the name says nothing
    write_arpa(model, path, SPELLED)
    path.write_bytes(pack(path.read_bytes()))
    with open_model(path) as file:
        assert file.kind is Kind.ARPA
    lm = nplm.load(path)
    wanted = TextLM.from_model(*read_arpa(path))
    assert isinstance(lm, TextLM)
    np.testing.assert_array_equal(lm.score_samples(LINES), wanted.score_samples(LINES))


@pytest.mark.parametrize("options", [{}, {"bits": 8}], ids=str)
@pytest.mark.parametrize("mmap", [True, False])
def test_binary_files_are_text_models(tmp_path, model, options, mmap):
    path = tmp_path / "model.arpa"
    save_binary(model, path, SPELLED, **options)
    lm = nplm.load(path, mmap=mmap)
    wanted = TextLM.from_model(*load_binary(path))
    assert type(lm.estimator_) is type(wanted.estimator_)
    np.testing.assert_array_equal(lm.score_samples(LINES), wanted.score_samples(LINES))
    trie = lm.estimator_.trie_
    if "bits" in options:
        array = trie.levels[0].records
    else:
        array = trie.start if options else lm.estimator_.index_.buckets
    assert isinstance(array, np.memmap) is mmap
    assert array.flags.writeable is not mmap


@pytest.mark.parametrize("order", [1, 2, 3])
def test_ngrams_without_a_boundary_are_scored_without_marks(tmp_path, order):
    with pytest.warns(UserWarning, match="Kneser-Ney"):
        stream = KneserNeyLM(order, n_words=9).fit_stream(text(500, n_words=9))
    words = [f"w{i}" for i in range(9)]
    write_arpa(stream, tmp_path / "arpa", words)
    save_binary(stream, tmp_path / "binary", words)
    sentences = ["w1 w2", "w3", "w3 w1 w2 w8 w0", ""]
    expected = []
    for sentence in sentences:
        ids = np.array([[int(word[1:]) for word in sentence.split()]], np.int32)
        probs = [
            stream.trie_.next_word_prob(ids[:, max(0, i - order + 1) : i], ids[:, i])[0]
            for i in range(ids.size)
        ]
        expected.append(np.log(probs).sum())
    names = ["arpa", "binary"]
    if order > 1:
        save_binary(stream, tmp_path / "8bits", words, bits=8)
        names.append("8bits")
    for name in names:
        rtol = 0.02 if name == "8bits" else 1e-5
        lm = nplm.load(tmp_path / name)
        np.testing.assert_allclose(lm.score_samples(sentences), expected, rtol=rtol)
        with open_model(tmp_path / name) as file:
            scores = list(map(file.scorer().score, sentences))
        np.testing.assert_allclose(scores, lm.score_samples(sentences), rtol=1e-6)
        shares = lm.estimator_.predict_proba([[3] * max(order - 1, 1)])
        assert shares.sum() == pytest.approx(1, abs=0.02)


def test_files_that_are_no_models_name_their_reader(tmp_path, model):
    path = tmp_path / "model"
    rows = np.arange(N_WORDS * 2).reshape(-1, 2) / 7
    for write, message in [
        (lambda: write_vectors(path, SPELLED, rows), r"read_vectors\(path\)"),
        (
            lambda: write_vectors(path, SPELLED, rows, binary=True),
            r"read_vectors\(path, binary=True\)",
        ),
        (lambda: write_classes(path, SPELLED, range(N_WORDS)), "read_classes"),
        (lambda: write_counts(model, path, SPELLED), "read_counts"),
    ]:
        write()
        for pack in (bytes, gzip.compress):
            path.write_bytes(pack(path.read_bytes()))
            with pytest.raises(
                ValueError, match=rf"model has .*not a model: .*{message}"
            ):
                nplm.load(path)
