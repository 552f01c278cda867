"""The marks <s> and </s>, and weights of both, as in KenLM and SRILM."""

import os
from functools import partial
from itertools import product
from random import Random

import numpy as np
import pytest

from nplm import kenlm, load
from nplm.formats import read_arpa, save_binary, write_arpa
from nplm.formats.ngrams_file import NgramsFile
from nplm.formats.open_model import open_model
from nplm.models.ngrams.stages.scratch import Scratch
from tests.helpers.arpa import KENLM, SRILM, arpa_of, ngrams_with_marks_anywhere
from tests.helpers.ngrams import arpa_lm, convert_arpa

try:
    import kenlm as their_kenlm
except ImportError:
    their_kenlm = None


def log10_prob(path, context, word):
    """Compute one probability by definition from a dictionary of the lines."""
    prob, weight, order = {}, {}, 0
    for line in path.read_text().split("\n"):
        if line.startswith("\\") and "grams" in line:
            order = int(line[1])
        elif order and line and not line.startswith("\\"):
            tokens = line.split()
            gram = tuple(tokens[1 : order + 1])
            prob[gram] = float(tokens[0])
            weight[gram] = float(tokens[order + 1]) if len(tokens) > order + 1 else 0
    context = tuple(context)
    if (*context, word) in prob:
        return prob[(*context, word)]
    return weight.get(context, 0) + log10_prob(path, context[1:], word)


@pytest.mark.parametrize("text", [KENLM, SRILM], ids=["kenlm", "srilm"])
def test_files_of_the_toolkits_are_read(tmp_path, text):
    path = tmp_path / "model.arpa"
    path.write_text(text)
    model, words = read_arpa(path)
    assert "<s>" not in words
    assert words[model.boundary] == "</s>"
    inner = [w for w in words if w != "</s>"]
    contexts = [("<s>", "<s>"), *(("<s>", w) for w in inner)]
    contexts += [(v, w) for v in inner for w in inner]
    for context in contexts:
        ids = [words.index(w.replace("<s>", "</s>")) for w in context]
        scored = context[1:] if context[:2] == ("<s>", "<s>") else context
        for word in words:
            found = model.log_prob([ids], [words.index(word)])[0] / np.log(10)
            expected = log10_prob(path, scored, word)
            assert found == pytest.approx(expected, abs=1e-6), (context, word)


SENTENCES = [line for n in (1, 2, 3) for line in product(["a", "b"], repeat=n)]


def expected_score(path, order, line):
    """Compute the log10 score of a sentence by definition."""
    given, total = ["<s>"], 0
    for word in (*line, "</s>"):
        total += log10_prob(path, given[-order + 1 :], word)
        given.append(word)
    return total


@pytest.mark.parametrize("number", range(24))
def test_marks_in_any_position_score_as_defined_by_every_reader(tmp_path, number):
    path, order, suffixes = tmp_path / "model.arpa", number % 3 + 2, number < 16
    path.write_text(
        arpa_of(ngrams_with_marks_anywhere(Random(number), order, suffixes))
    )
    model, words = read_arpa(path)
    assert sorted(words) == ["</s>", "<unk>", "a", "b"]
    write_arpa(model, tmp_path / "again.arpa", words)
    save_binary(model, tmp_path / "8 bits", words, bits=8)
    convert_arpa(path, NgramsFile(tmp_path / "converted.arpa", "arpa"), memory=1 << 20)
    convert_arpa(path, NgramsFile(tmp_path / "mapped", "binary"), memory=1 << 20)
    written = [tmp_path / n for n in ("again.arpa", "converted.arpa")]
    assert written[0].read_bytes() == written[1].read_bytes()
    readers = [kenlm.Model(p) for p in (path, *written, tmp_path / "mapped")]
    if their_kenlm is not None and suffixes:
        readers += [their_kenlm.Model(os.fspath(p)) for p in (path, *written)]
    lm, quantized = load(path), kenlm.Model(tmp_path / "8 bits")
    for line in [(), *SENTENCES]:
        expected, text = expected_score(path, order, line), " ".join(line)
        for reader in readers:
            assert reader.score(text) == pytest.approx(expected, abs=1e-5), line
        assert quantized.score(text) == pytest.approx(expected, abs=1e-5)  # few values
        [found] = lm.score_samples([text]) / np.log(10)
        assert found == pytest.approx(expected, abs=1e-5)


UNIGRAMS = {("<s>",): (-99, 0), ("</s>",): (-0.5, 0), ("a",): (-0.25, 0)}


@pytest.mark.parametrize("begins", [-99, 0, None])
def test_unigrams_end_sentences_as_longer_ngrams_do(tmp_path, begins):
    """As in SRILM; KenLM reads no model of order 1."""
    path = tmp_path / "model.arpa"
    ngrams = UNIGRAMS | {("<s>",): (begins, 0)}
    if begins is None:
        del ngrams["<s>",]
    path.write_text(arpa_of(ngrams))
    model, words = read_arpa(path)
    assert words == ["</s>", "a"]
    if begins is None:  # </s> may be a word of a stream
        assert model.boundary is None
        return
    assert model.boundary == 0
    lm = load(path)
    total = lm.score_samples(["a a"]) / np.log(10)
    assert total == pytest.approx([2 * -0.25 - 0.5], abs=1e-6)


def test_marks_of_a_stream_of_unigrams_are_left_out(tmp_path):
    path = tmp_path / "model.arpa"
    path.write_text(arpa_of(UNIGRAMS | {("</s>",): (-99, 0)}))
    model, words = read_arpa(path)
    assert words == ["a"] and model.boundary is None


def test_marks_that_are_ordinary_words(tmp_path):
    without_end = SRILM.replace("-0.9\t</s>\n", "").replace("1=5", "1=4")
    without_end = without_end.replace("-0.2\tb c </s>\n", "").replace("3=3", "3=2")
    path = tmp_path / "model.arpa"
    path.write_text(without_end)
    model, words = read_arpa(path)
    assert words == ["<s>", "a", "b", "c"]
    assert model.boundary is None
    assert model.log_prob([[1, 2]], [0])[0] == -np.inf
    # A lone </s> is an ordinary word.
    path.write_text(
        KENLM.replace("0\t<s>\t-0.3\n", "")
        .replace("<s> a", "a a")
        .replace("1=5", "1=4")
    )
    model, words = read_arpa(path)
    assert words == ["<unk>", "</s>", "a", "b"]
    assert model.boundary is None


def test_ngrams_that_sentences_do_not_reach_are_left_out(tmp_path):
    path = tmp_path / "model.arpa"
    ngrams = UNIGRAMS | {("a",): (-0.4, -0.2), ("</s>",): (-0.5, 0)}
    path.write_text(arpa_of(ngrams | {
        ("a", "<s>"): (-0.05, 0), ("<s>", "a"): (-0.2, 0), ("b", "</s>"): (-0.3, 0),
        ("<s>", "<s>"): (-99, 0), ("</s>", "<s>"): (-0.1, 0), ("b",): (-0.7, 0),
        ("</s>", "</s>"): (-0.1, 0), ("</s>", "a"): (-0.1, 0),
    }))  # fmt: skip
    model, words = read_arpa(path)
    assert words == ["</s>", "a", "b"] and model.boundary == 0
    assert model.n_ngrams_.tolist() == [3, 2]
    own = kenlm.Model(path)
    assert own.score("a") == pytest.approx(-0.2 - 0.2 - 0.5, abs=1e-6)
    assert own.score("") == pytest.approx(-0.5, abs=1e-6)


def test_end_mark_is_a_word_of_a_stream_if_no_ngram_begins_with_the_other(tmp_path):
    path = tmp_path / "model.arpa"
    stream = UNIGRAMS | {("</s>", "a"): (-0.1, 0), ("a", "</s>"): (-0.2, 0)}
    path.write_text(arpa_of(stream | {("a", "<s>"): (-0.3, 0)}))
    model, words = read_arpa(path)
    assert words == ["</s>", "a"] and model.boundary is None
    found = model.log_prob([[0], [1]], [1, 0]) / np.log(10)
    assert found == pytest.approx([-0.1, -0.2], abs=1e-6)
    message = "has </s> as an ordinary word, and no n-grams that begin with <s>"
    with Scratch(tmp_path, 1 << 20) as scratch:
        on_disk = partial(arpa_lm, work=scratch)

        def text_ngrams(path):
            with open_model(path) as file:
                return file.text_ngrams(scratch)

        for read in (load, kenlm.Model, on_disk, text_ngrams):
            with pytest.raises((ValueError, OSError), match=message):
                read(path)


def test_begin_mark_of_a_stream_is_a_context_and_never_predicted(tmp_path):
    path = tmp_path / "model.arpa"
    ngrams = {("<s>",): (-0.3, -0.1), ("a",): (-0.4, -0.2), ("a", "<s>"): (-0.1, 0)}
    path.write_text(arpa_of(ngrams | {("<s>", "a"): (-0.2, 0)}))
    model, words = read_arpa(path)
    assert words == ["<s>", "a"]
    found = model.log_prob([[1], [0], [0]], [0, 1, 0]) / np.log(10)
    assert found == pytest.approx([-np.inf, -0.2, -np.inf], abs=1e-6)
    with pytest.raises(ValueError, match="has <s> but not </s>"):
        load(path)


def test_error_names_the_line_whatever_was_left_out_before(tmp_path):
    path = tmp_path / "model.arpa"
    gram = ("<s>", "a")
    ngrams = UNIGRAMS | {("a", "<s>"): (-1, 0), ("</s>", "a"): (-1, 0), gram: (-1, 0)}
    text = arpa_of(ngrams).replace("ngram 2=3", "ngram 2=4")
    path.write_text(text.replace("\n\n\\end\\", "\n-2\t<s> a\n\n\\end\\"))
    [line] = [i for i, t in enumerate(path.read_text().split("\n"), 1) if t[:2] == "-2"]
    message = rf"line {line} .*'<s> a' occurs twice"
    with pytest.raises(ValueError, match=message):
        read_arpa(path)
    with pytest.raises(ValueError, match=message):
        convert_arpa(path, NgramsFile(tmp_path / "mapped", "binary"), memory=1 << 20)
