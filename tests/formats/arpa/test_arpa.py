"""ARPA files are written for KenLM and SRILM, and read from them."""

import io
import os
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nplm import TextLM, load, windows
from nplm.base.encoded_words import EncodedWords
from nplm.formats import _lines, read_arpa, write_arpa
from nplm.formats.arpa import arpa_reading
from tests.helpers.arpa import KENLM, SRILM, WORDS, fitted

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
        sentence = rng.integers(2, len(WORDS), size=12)
        text = " ".join(WORDS[w] for w in sentence)
        if model.boundary is None:
            n = model.order_ - 1
            found = [p for p, *_ in other.full_scores(text, bos=False, eos=False)][n:]
            X, y = windows(sentence, n)
        else:
            found = [p for p, *_ in other.full_scores(text)]
            X, y = windows([*sentence, 1], model.order_ - 1, boundary=1)
        assert_allclose(found, model.log_prob(X, y) / np.log(10), atol=1e-4)


@pytest.mark.slow
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


def test_lines_are_read_in_blocks(tmp_path, monkeypatch):
    model, X, _ = fitted(3, n=500)
    write_arpa(model, tmp_path / "model.arpa", WORDS)
    expected = read_arpa(tmp_path / "model.arpa")[0].predict_proba(X[:50])
    for n_bytes in (1, 7, 1000):
        monkeypatch.setattr(_lines, "CHUNK_BYTES", n_bytes)
        monkeypatch.setattr(arpa_reading, "MAX_ROWS", n_bytes)
        loaded, _ = read_arpa(tmp_path / "model.arpa")
        assert_array_equal(loaded.predict_proba(X[:50]), expected)


@pytest.mark.parametrize(
    ("spelling", "low", "high"),
    [
        (".7g", -9, 0), (".6f", -99, 38), (".17g", -3, 0), (".20f", -40, -37),
        (".3e", -1, 1), (".3e", -1e-7, 1e-7), (".0f", -98, 0), (".3e", -1e-16, 1e-16),
    ],
)  # fmt: skip
def test_numbers_are_the_powers_of_ten_of_python(spelling, low, high):
    rng = np.random.default_rng(0)
    texts = np.char.mod(f"%{spelling}", rng.uniform(low, high, (5000, 2)))
    texts[:, 0] = np.where(texts[:, 0].astype(float) > 0, "-.5", texts[:, 0])
    lines = "".join(f"{prob}\ta b\t{bow}\n" for prob, bow in texts)
    source, ids = io.BytesIO(lines.encode()), EncodedWords.of(["a", "b"])
    table = _lines.Lines(source, "a file").ngrams(
        2, ids, len(texts), arpa_reading.LIMITS, weights=True, n_before=0, n_in_all=5000
    )
    exact = [[0 if x < -98 else 10.0**x for x in map(float, row)] for row in texts]
    prob, bow = np.array(exact).T
    assert_array_equal(table.prob, prob.astype(np.float32))
    assert_array_equal(table.bow, np.where(bow == 1, np.nan, bow).astype(np.float32))


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
