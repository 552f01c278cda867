"""ARPA files are written for KenLM and SRILM, read from them, and checked."""

import bz2
import gzip
import lzma
import os
import re
import warnings
from functools import partial
from itertools import product
from random import Random

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nplm import KneserNeyLM, TextLM, load, windows
from nplm.formats import _lines, read_arpa, write_arpa

N_WORDS = 30
WORDS = ["<unk>", "</s>", "naïve", *(f"w{i}" for i in range(3, N_WORDS))]


def fitted(order=3, *, boundary=None, n=3000, **parameters):
    ids = np.random.default_rng(0).zipf(1.4, size=n) % (N_WORDS - 1)
    X, y = windows(ids, max(order - 1, 1), boundary=boundary)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = KneserNeyLM(
            order, n_words=N_WORDS, boundary=boundary, **parameters
        ).fit(X, y)
    return model, X, y


SETTINGS = [
    {"order": 1},
    {"order": 2, "boundary": 1},
    {"order": 3},
    {"order": 3, "boundary": 1, "min_counts": (1, 2, 2)},
    {"order": 5, "interpolate": False},
    {"order": 4, "boundary": 1, "interpolate": False, "min_counts": (1, 1, 2)},
    {"order": 9},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("name", ["model.arpa", "model.arpa.gz"])
def test_written_model_is_read_again(tmp_path, settings, name):
    model, X, _ = fitted(**settings)
    write_arpa(model, tmp_path / name, WORDS)
    loaded, words = read_arpa(tmp_path / name)
    assert words == WORDS
    assert loaded.order_ == model.order_
    # Of unigrams, </s> ends sentences where it has a probability.
    assert loaded.boundary == (model.boundary if model.order_ > 1 else 1)
    rng = np.random.default_rng(0)
    contexts = np.concatenate([X[:200], rng.permuted(X[:200], axis=0)])
    contexts = contexts[:, -max(model.order_ - 1, 1) :]
    proba = loaded.predict_proba(contexts)
    assert_allclose(proba, model.predict_proba(contexts), rtol=1e-5)
    assert_allclose(proba.sum(axis=1), 1, atol=1e-5)
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("settings", SETTINGS[1:-2], ids=str)
def test_kenlm_computes_the_same_scores(tmp_path, settings):
    kenlm = pytest.importorskip("kenlm")
    model, *_ = fitted(**settings)
    model_words = list(WORDS)
    path = tmp_path / "model.arpa"
    write_arpa(model, path, model_words)
    other = kenlm.Model(str(path))
    rng = np.random.default_rng(1)
    for _ in range(50):
        # KenLM treats unknown words and </s> inside a sentence differently.
        sentence = rng.integers(2, N_WORDS, size=12)
        text = " ".join(WORDS[w] for w in sentence)
        if model.boundary is None:
            n = model.order_ - 1
            found = [p for p, *_ in other.full_scores(text, bos=False, eos=False)][n:]
            X, y = windows(sentence, n)
        else:
            found = [p for p, *_ in other.full_scores(text)]
            X, y = windows([*sentence, 1], model.order_ - 1, boundary=1)
        assert_allclose(found, model.log_prob(X, y) / np.log(10), atol=1e-4)


def test_kenlm_computes_the_same_score_of_the_unknown_word(tmp_path):
    kenlm = pytest.importorskip("kenlm")
    model, *_ = fitted(3)
    write_arpa(model, tmp_path / "model.arpa", WORDS)
    other = kenlm.Model(str(tmp_path / "model.arpa"))
    found = [p for p, *_ in other.full_scores("w3 nowhere w5", bos=False, eos=False)]
    expected = model.log_prob([[3, 0]], [5]) / np.log(10)
    assert found[2] == pytest.approx(expected[0], abs=1e-4)


# As written by KenLM's lmplz: 0 for <s>, tabs, all suffixes present.
KENLM = """\\data\\
ngram 1=5
ngram 2=4
ngram 3=2

\\1-grams:
-1.2\t<unk>\t0
0\t<s>\t-0.3
-0.9\t</s>\t0
-0.4\ta\t-0.2
-0.7\tb\t-0.1

\\2-grams:
-0.3\t<s> a\t-0.05
-0.2\ta b\t-0.15
-0.5\tb a\t0
-0.25\tb </s>\t0

\\3-grams:
-0.1\t<s> a b
-0.12\ta b </s>

\\end\\
"""
# A pruned model as written by SRILM: -99, some n-grams without a weight, some whose
# suffix (b c) or context (c a) is missing.
SRILM = """

\\data\\
ngram 1=5
ngram 2=2
ngram 3=3

\\1-grams:
-0.9\t</s>
-99\t<s>\t-0.3
-0.4\ta\t-0.2
-0.7\tb\t-0.1
-0.8\tc

\\2-grams:
-0.3\t<s> a\t-0.05
-0.2\ta b\t-0.15

\\3-grams:
-0.1\ta b c
-0.12\tc a b
-0.2\tb c </s>

\\end\\
"""


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


def test_number_of_comment_lines_is_limited(tmp_path):
    path = tmp_path / "model.arpa"
    path.write_text("a comment\n" * 10_000 + SRILM)
    assert read_arpa(path)[0].order_ == 3
    path.write_text("a comment\n" * 10_001 + SRILM)
    message = r"model.arpa, line 10001: no line '\\data\\' within 10000 lines"
    with pytest.raises(ValueError, match=message):
        read_arpa(path)


def arpa_of(ngrams):
    """Return an ARPA file of {words: (log10 probability, log10 weight)}."""
    order = max(map(len, ngrams))
    of_order = [[g for g in ngrams if len(g) == k + 1] for k in range(order)]
    tables = [{gram: ngrams[gram] for gram in own} for own in of_order]
    text = "\\data\\\n"
    text += "".join(f"ngram {k}={len(own)}\n" for k, own in enumerate(tables, 1))
    for k, own in enumerate(tables, 1):
        text += f"\n\\{k}-grams:\n"
        for gram, (prob, weight) in own.items():
            text += f"{prob}\t{' '.join(gram)}" + f"\t{weight}" * (k < order) + "\n"
    return text + "\n\\end\\\n"


def random_ngrams(rng, order):
    """Return n-grams of a, b and the marks, with random weights, used or not."""
    number = partial(rng.choice, [0, 0, -0.25, -0.5, -1.25, 0.25])
    words = ["<s>", "a", "b", "</s>"]
    ngrams = {(w,): (-0.125 * i - 0.25, number()) for i, w in enumerate(words)}
    ngrams["<unk>",] = -2, 0
    if rng.random() < 0.5:
        ngrams["<s>",] = 0 if rng.random() < 0.5 else -99, ngrams["<s>",][1]
    pairs = [*product(words[:3], words[1:])]
    bigrams = [g for g in pairs if rng.random() < 0.5 or g in [("a", "b"), ("b", "b")]]
    if order > 1:
        ngrams |= {g: (-0.5 * rng.random(), number()) for g in bigrams}
    trigrams = [(*u, v[1]) for u in bigrams for v in bigrams if u[1] == v[0]]
    if order > 2:
        ngrams |= {g: (-0.25 * rng.random(), 0) for g in trigrams}
    return ngrams


SENTENCES = [line for n in (1, 2, 3) for line in product(["a", "b"], repeat=n)]


def log10_probs(model, words, line):
    """Return the score of a sentence under a loaded model."""
    total, n, given = 0, model.n_features_in_, ["<s>"]
    for word in (*line, "</s>"):
        assert words[model.boundary] == "</s>"
        ids = [words.index(w.replace("<s>", "</s>")) for w in given]
        total += model.log_prob([([ids[0]] * n + ids)[-n:]], [words.index(word)])[0]
        given.append(word)
    return total / np.log(10)


@pytest.mark.parametrize("number", range(60))
def test_marks_with_random_weights(tmp_path, number):
    path = tmp_path / "model.arpa"
    order = number % 3 + 1
    path.write_text(arpa_of(random_ngrams(Random(number), order)))
    model, words = read_arpa(path)
    for line in SENTENCES:
        given, expected = ["<s>"], 0
        for word in (*line, "</s>"):
            context = given[-order + 1 :] if order > 1 else []
            expected += log10_prob(path, context, word)
            given.append(word)
        assert log10_probs(model, words, line) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("number", range(40))
def test_kenlm_computes_the_same_scores_of_marks_with_random_weights(tmp_path, number):
    kenlm = pytest.importorskip("kenlm")
    path = tmp_path / "model.arpa"
    path.write_text(arpa_of(random_ngrams(Random(number), number % 2 + 2)))
    model, words = read_arpa(path)
    other = kenlm.Model(os.fspath(path))
    for line in SENTENCES:
        expected = other.score(" ".join(line))
        assert log10_probs(model, words, line) == pytest.approx(expected, abs=1e-4)


def test_boundary_has_the_weight_of_the_begin_mark(tmp_path):
    path = tmp_path / "model.arpa"
    text = KENLM.replace("<s>\t-0.3", "<s>\t0").replace("</s>\t0", "</s>\t-0.7", 1)
    path.write_text(re.sub("ngram 2=4", "ngram 2=3", text).replace("3=2", "3=1")
                    .replace("-0.3\t<s> a\t-0.05\n", "")
                    .replace("-0.1\t<s> a b\n", ""))  # fmt: skip
    model, words = read_arpa(path)
    end, a = words.index("</s>"), words.index("a")
    found = model.log_prob([[end, end]], [a]) / np.log(10)
    assert found == pytest.approx(-0.4, abs=1e-6)


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


@pytest.mark.parametrize("text", [KENLM, SRILM], ids=["kenlm", "srilm"])
def test_unknown_word_is_added(tmp_path, text):
    path = tmp_path / "model.arpa"
    path.write_text(text)
    model, words = read_arpa(path)
    loaded, more = read_arpa(path, add_unknown=True)
    assert more == (words if text is KENLM else [*words, "<unk>"])
    X = np.array(list(product(range(len(words)), repeat=2)))
    proba = loaded.predict_proba(X)
    assert_array_equal(proba[:, : len(words)], model.predict_proba(X))
    assert (proba[:, len(words) :] == 0).all()
    lm = TextLM.from_model(loaded, more)
    assert np.isfinite(lm.score(["a zebra"])) == (text is KENLM)
    assert np.isfinite(lm.perplexity(["a zebra"], skip="<unk>"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (KENLM.replace("-1.2\t<unk>\t0\n", "").replace("1=5", "1=4").replace(
            "b a\t0", "b <unk>\t0"), "'<unk>' in .* is not a unigram"),
        ("\\data\\\nngram 1=2\n\n\\1-grams:\n-99\t<s>\n-99\t</s>\n\n\\end\\\n",
         "no words besides"),
    ],
)  # fmt: skip
def test_unknown_word_is_not_added_to_an_invalid_model(tmp_path, text, message):
    path = tmp_path / "model.arpa"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_arpa(path, add_unknown=True)


def test_model_that_was_read_is_written_for_kenlm(tmp_path):
    kenlm = pytest.importorskip("kenlm")
    (tmp_path / "srilm.arpa").write_text(SRILM)
    model, words = read_arpa(tmp_path / "srilm.arpa")
    write_arpa(model, tmp_path / "again.arpa", words)
    other = kenlm.Model(str(tmp_path / "again.arpa"))
    for sentence in (["a", "b", "c"], ["c", "a", "b"], ["b", "c"], ["c", "c", "a"]):
        ids = [words.index(w) for w in sentence] + [model.boundary]
        X, y = windows(ids, 2, boundary=model.boundary)
        found = [p for p, *_ in other.full_scores(" ".join(sentence))]
        assert_allclose(found, model.log_prob(X, y) / np.log(10), atol=1e-4)


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


def without_line(text, line):
    return text.replace(line + "\n", "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing", "after line 1: no line"),
        ("", "after line 0: no line"),
        (KENLM[:36], "after line 4: the file ends in its header: it is truncated"),
        (KENLM[:150], "the file ends|is not a number|1-grams in the header"),
        (
            KENLM[: KENLM.index("-0.5\tb a")],
            "after line 15: the file ends after 2 of 4",
        ),
        (KENLM[: KENLM.index("\\end")], "the file ends before"),
        (KENLM.replace("ngram 2=4", "ngram 2=5"), "line 19: .* after 4 2-grams, but"),
        (
            KENLM.replace("ngram 2=4", "ngram 2=3"),
            "line 17: expected .*, got '-0.25.*'",
        ),
        (KENLM.replace("ngram 1=5", "ngram 1=6"), "6 1-grams in the header, .* are 5"),
        (
            KENLM.replace("ngram 2=4", "ngram 4=4"),
            "line 3: expected 'ngram 2=' .* got 'ngram 4=4'",
        ),
        (KENLM.replace("-0.2\ta b", "nan\ta b"), "line 15: .*'nan\\\\ta b.* finite"),
        (
            KENLM.replace("-0.2\ta b", "-inf\ta b"),
            "line 15: .*is invalid or not finite",
        ),
        (KENLM.replace("-0.2\ta b", "-0.2x\ta b"), "line 15: .*a number is invalid"),
        (KENLM.replace("-0.15", "inf"), "line 15: .*a number is invalid"),
        (KENLM.replace("-0.2\ta b", "0.2\ta b"), "line 15: 0.2 in .*above 0"),
        (KENLM.replace("-0.4\ta", "nan\ta"), "line 10: .*not finite"),
        (KENLM.replace("-0.4\ta", "-0_1\ta"), "line 10: .*is not a number"),
        (KENLM.replace("-0.4\ta", "-\uff10\ta"), "line 10: .*is not a number"),
        (KENLM.replace("-0.4\ta", "0.4\ta"), "line 10: 0.4 .* above 0"),
        (
            KENLM.replace("-0.2\ta b\t-0.15", "-0.2\ta"),
            "line 15: .* not a number and 2 words",
        ),
        (KENLM.replace("a b </s>", "a b </s>\t-1"), "line 21: .* and 3 words"),
        (KENLM.replace("a b </s>", "a x </s>"), "line 21: 'x' in .* is not a unigram"),
        (
            KENLM.replace("-0.5\tb a", "-0.5\ta b"),
            r"line \d+ .*2-grams.*'a b' occurs twice",
        ),
        (KENLM.replace("-0.7\tb", "-0.7\ta"), "the 1-gram 'a' occurs twice"),
        (KENLM.replace("\\3-", "\\4-"), "line 19: expected .*3-grams:', got .*4-grams"),
        (KENLM.replace("\\end\\", "more"), "line 23: expected .*, got 'more'"),
        (KENLM.replace("1=5", f"1={10**9}"), "1000000000 1-grams .* are 5"),
        (KENLM.replace("2=4", f"2={10**9}"), "line 19: .*after 4 2-grams, .*says 10"),
        (KENLM.replace("2=4", f"2={10**17}"), "line 3: 1.* n-grams so far; more than"),
        (
            KENLM.replace("2=4", "2=" + "9" * 5000),
            "line 3: .*and a number, got 'ngram 2=9",
        ),
        (
            KENLM.replace("ngram 2", "ngram " + "9" * 5000),
            "line 3: .*'ngram 2=.* got 'ngram 99",
        ),
        (KENLM.replace("-0.15", "38.1"), "line 15: 38.1 in .* a back-off weight"),
        (KENLM.replace("-0.3\n", "1e300\n", 1), r"line 8: 1e\+300 in .* overflows"),
        (KENLM.replace("-0.2\ta b", "-0.2\ta b\rc"), "line 15: .*and 2 words"),
        (KENLM.replace("-0.5\tb a", "-0.5\tb\rx"), "line 16: 'x' in .*not a unigram"),
        (KENLM.replace("-0.5\tb a", "-0.5\tb " + "x" * 5000), r"line 16: .{99,600}$"),
        (
            "\\data\\\n" + "".join(f"ngram {k}=0\n" for k in range(1, 300)),
            "line 257: n-grams of more than 255 words",
        ),
        ("\\data\\\nngram 1=0\n\\1-grams:\n\\end\\\n", "no words besides <s> and </s>"),
    ],
)
def test_invalid_files_are_refused(tmp_path, text, message):
    path = tmp_path / "bad.arpa"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        read_arpa(path)
    assert str(path) in str(caught.value)


def test_table_grows_as_lines_are_read(tmp_path, monkeypatch):
    model, X, _ = fitted(3)
    write_arpa(model, tmp_path / "model.arpa", WORDS)
    expected = read_arpa(tmp_path / "model.arpa")[0].predict_proba(X[:50])
    for n_bytes in (1, 7, 1000):
        monkeypatch.setattr(_lines, "CHUNK_BYTES", n_bytes)
        monkeypatch.setattr(_lines, "INITIAL_ROWS", 1)
        loaded, _ = read_arpa(tmp_path / "model.arpa")
        assert_array_equal(loaded.predict_proba(X[:50]), expected)


def test_line_too_long_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(_lines, "CHUNK_BYTES", 100)
    monkeypatch.setattr(_lines, "MAX_LINE_BYTES", 1000)
    path = tmp_path / "bad.arpa"
    for text, line in [
        ("x" * 5000, 1),
        (KENLM[: KENLM.index("-0.4\ta")] + "x" * 5000, 10),
        (KENLM[: KENLM.index("-0.2\ta b")] + "x" * 5000, 15),
    ]:
        path.write_text(text)
        with pytest.raises(ValueError, match=f"line {line}: longer than 1000 bytes"):
            read_arpa(path)


def test_weights_whose_product_overflows_are_refused(tmp_path):
    """Each weight fits in a float32, but the product of nine does not."""
    path = tmp_path / "model.arpa"
    counts = "".join(f"ngram {k}=1\n" for k in range(1, 11))
    lines = "".join(
        f"\\{k}-grams:\n-1\t{' '.join(['a'] * k)}\t38\n" for k in range(1, 10)
    )
    longest = f"\\10-grams:\n-1\t{' '.join(['a'] * 10)}\n"
    path.write_text(f"\\data\\\n{counts}{lines}{longest}\\end\\\n")
    with pytest.raises(ValueError, match=r"model\.arpa has back-off weights whose"):
        read_arpa(path)
    path.write_text(path.read_text().replace("\t38", "\t33"))
    model, _ = read_arpa(path)
    assert np.isfinite(model.predict_proba(np.zeros((1, 9), dtype=int))).all()


def test_highest_order_is_read(tmp_path):
    path = tmp_path / "model.arpa"
    counts = "".join(f"ngram {k}={0 if 2 <= k < 255 else 1}\n" for k in range(1, 256))
    lines = "".join(f"\\{k}-grams:\n" for k in range(2, 256))
    gram = f"-0.1\t{' '.join(['a'] * 255)}\n"
    path.write_text(f"\\data\\\n{counts}\\1-grams:\n-1\ta\n{lines}{gram}\\end\\\n")
    model, words = read_arpa(path)
    assert_allclose(model.predict_proba(np.zeros((1, 254), dtype=int)), 10**-0.1)
    write_arpa(model, tmp_path / "again.arpa", words)
    loaded, _ = read_arpa(tmp_path / "again.arpa")
    assert_array_equal(loaded.n_ngrams_[1:], 1)


def test_invalid_encodings_and_archives_are_refused(tmp_path):
    path = tmp_path / "bad.arpa"
    path.write_bytes(KENLM.replace("\ta", "\tä").encode("latin-1"))
    with pytest.raises(ValueError, match="line 10: not UTF-8"):
        read_arpa(path)
    path.write_bytes(KENLM.encode("utf-16"))
    with pytest.raises(ValueError, match="line 1: not UTF-8"):
        read_arpa(path)
    path.write_bytes(gzip.compress(KENLM.encode())[:-20])
    with pytest.raises(ValueError, match="cannot be decompressed"):
        read_arpa(path)
    path.write_bytes(b"\xef\xbb\xbf" + KENLM.replace("\n", "\r\n").encode())
    assert read_arpa(path)[1] == ["<unk>", "</s>", "a", "b"]
    with pytest.raises(FileNotFoundError):
        read_arpa(tmp_path / "absent.arpa")


def test_refused_writes_leave_no_file(tmp_path):
    model, *_ = fitted(2)
    for words, message in [
        (WORDS[:-1], "29 entries, but .* n_words_=30"),
        (["a b", *WORDS[1:]], "'a b' at 0"),
        (["", *WORDS[1:]], "'' at 0"),
        (["w3", *WORDS[1:]], "'w3' twice, at 0 and 3"),
        (["<unk>", "<UNK>", *WORDS[2:]], "KenLM reads as one word"),
    ]:
        with pytest.raises(ValueError, match=message):
            write_arpa(model, tmp_path / "model.arpa", words)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write_arpa(model, tmp_path / "absent" / "model.arpa", WORDS)
    with pytest.raises(IsADirectoryError, match="is a folder"):
        write_arpa(model, tmp_path, WORDS)
    boundary = fitted(2, boundary=3)[0]
    with pytest.raises(ValueError, match="'</s>' at 1, but the model's boundary is 3"):
        write_arpa(boundary, tmp_path / "model.arpa", WORDS)
    assert os.listdir(tmp_path) == []


def test_error_while_writing_keeps_the_old_file(tmp_path, monkeypatch):
    from nplm.formats.arpa import arpa_files

    path = tmp_path / "model.arpa"
    path.write_text("old")

    def lines(self, level):
        yield b"some"
        raise OSError("disk full")

    monkeypatch.setattr(arpa_files.NgramLines, "lines", lines)
    with pytest.raises(OSError, match="disk full"):
        write_arpa(fitted(2)[0], path, WORDS)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["model.arpa"]


def test_equal_models_make_equal_files(tmp_path):
    model, *_ = fitted(3)
    for name in ("a.arpa.gz", "b.arpa.gz"):
        write_arpa(model, tmp_path / name, WORDS)
    a, b = ((tmp_path / n).read_bytes() for n in ("a.arpa.gz", "b.arpa.gz"))
    assert_array_equal(np.frombuffer(a, np.uint8), np.frombuffer(b, np.uint8))


def test_model_that_was_read_is_an_estimator(tmp_path):
    model, X, y = fitted(3)
    write_arpa(model, tmp_path / "model.arpa", WORDS)
    loaded, _ = read_arpa(tmp_path / "model.arpa")
    assert loaded.score(X, y) == pytest.approx(model.score(X, y), abs=1e-5)
    assert loaded.predict(X[:3]).shape == (3,)
    with pytest.raises(TypeError, match="BackoffLM is read from a file"):
        loaded.fit(X, y)


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_file_is_read(tmp_path, compress):
    path = tmp_path / "model.arpa.packed"
    path.write_bytes(compress(KENLM.encode()))
    packed, words = read_arpa(path)
    path.write_bytes(KENLM.encode())
    plain, plain_words = read_arpa(path)
    assert words == plain_words
    assert_array_equal(packed.trie_.prob, plain.trie_.prob)


def test_words_hold_all_white_space_that_the_toolkits_do_not_split_at(tmp_path):
    odd = ["a\vb", "c\fd", "e\u00a0f", "g\u3000h", "i\x1cj", "k\x85l", "\u2028"]
    path = tmp_path / "model.arpa"
    rows = "".join(f"-1\t{word}\t-0.5\n" for word in ["a", *odd])
    pairs = "".join(f"-0.25\ta {word}\n" for word in odd)
    path.write_bytes(
        f"\\data\\\nngram 1={len(odd) + 4}\nngram 2={len(odd)}\n\n\\1-grams:\n"
        f"-2\t<unk>\n-99\t<s>\t-0.5\n-1\t</s>\n{rows}\n\\2-grams:\n{pairs}\n"
        "\\end\\\n".encode()
    )
    model, words = read_arpa(path)
    assert words[-len(odd) :] == odd
    write_arpa(model, path, words)
    assert read_arpa(path)[1] == words
    lm = load(path)
    parts = lm.token_scores([f"a\t{word} \r" for word in odd])
    for word, scores in zip(odd, parts):
        assert scores.words == ["a", word, "</s>"]
        assert scores.order.tolist()[:2] == [1, 2]
    # The module splits at vertical tabs and form feeds, but has them in words.
    kenlm = pytest.importorskip("kenlm")
    other = kenlm.Model(str(path))
    for word, scores in zip(odd, parts):
        assert word in other
        if not {"\v", "\f"} & set(word):
            log10 = other.score(f"a {word}")
            assert scores.log_prob.sum() == pytest.approx(log10 * np.log(10), abs=1e-5)
