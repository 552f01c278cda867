"""Invalid ARPA files, and models that no such file can hold, are refused."""

import os

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from nplm import (
    ClassLM,
    InterpolatedTrigram,
    KneserNeyLM,
    MixtureLM,
    NeuralLM,
    UniformLM,
)
from nplm.formats import _lines, read_arpa, save_binary, write_arpa, write_counts
from nplm.models.ngrams.backoff_model import BackoffLM
from tests.helpers.arpa import KENLM, SRILM, WORDS, fitted
from tests.helpers.ngrams import trie_of_tables


def test_number_of_comment_lines_is_limited(tmp_path):
    path = tmp_path / "model.arpa"
    path.write_text("a comment\n" * 10_000 + SRILM)
    assert read_arpa(path)[0].order_ == 3
    path.write_text("a comment\n" * 10_001 + SRILM)
    message = r"model.arpa, line 10001: no line '\\data\\' within 10000 lines"
    with pytest.raises(ValueError, match=message):
        read_arpa(path)


def check_refused(path, text, message):
    path.write_text(text)
    for add_unknown in (False, True):
        with pytest.raises(ValueError, match=message) as caught:
            read_arpa(path, add_unknown=add_unknown)
        assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing", "after line 1: no line"),
        (
            KENLM.replace("-1.2\t<unk>\t0\n", "")
            .replace("1=5", "1=4")
            .replace("b a\t0", "b <unk>\t0"),
            "'<unk>' in .* is not a unigram",
        ),
        ("", "after line 0: no line"),
        (KENLM[:36], "after line 4: the file ends in its header: it is truncated"),
        (KENLM[:150], "the file ends|is not a number|1-grams in the header"),
        (
            KENLM[: KENLM.index("-0.5\tb a")],
            "after line 15: the file ends after 2 of 4",
        ),
        (KENLM[: KENLM.index("\\end")], "the file ends before"),
        (
            "\\data\\\n" + "".join(f"ngram {k}=0\n" for k in range(1, 300)),
            "line 257: n-grams of more than 255 words",
        ),
        ("\\data\\\nngram 1=2\n\\1-grams:\n-99\t<s>\n-99\t</s>\n\\end\\\n", "no words"),
        ("\\data\\\nngram 1=0\n\\1-grams:\n\\end\\\n", "no words besides <s> and </s>"),
    ],
)
def test_invalid_files_are_refused(tmp_path, text, message):
    check_refused(tmp_path / "bad.arpa", text, message)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ngram 2=4", "ngram 2=5", "line 19: .* after 4 2-grams, but"),
        ("ngram 2=4", "ngram 2=3", "line 17: expected .*, got '-0.25.*'"),
        ("ngram 1=5", "ngram 1=6", "6 1-grams in the header, .* are 5"),
        ("ngram 2=4", "ngram 4=4", "line 3: expected 'ngram 2=' .* got 'ngram 4=4'"),
        ("-0.2\ta b", "nan\ta b", "line 15: .*'nan\\\\ta b.* finite"),
        ("-0.2\ta b", "-inf\ta b", "line 15: .*is invalid or not finite"),
        ("-0.2\ta b", "-0.2x\ta b", "line 15: .*a number is invalid"),
        ("-0.15", "inf", "line 15: .*a number is invalid"),
        ("-0.2\ta b", "0.2\ta b", "line 15: 0.2 in .*above 0"),
        ("-0.4\ta", "nan\ta", "line 10: .*not finite"),
        ("-0.4\ta", "-0_1\ta", "line 10: .*is not a number"),
        ("-0.4\ta", "-\uff10\ta", "line 10: .*is not a number"),
        ("-0.4\ta", "0.4\ta", "line 10: 0.4 .* above 0"),
        ("-0.2\ta b\t-0.15", "-0.2\ta", "line 15: .* not a number and 2 words"),
        ("a b </s>", "a b </s>\t-1", "line 21: .* and 3 words"),
        ("a b </s>", "a b </s> a", "line 21: .* number and 3 words"),
        ("a b </s>", "a x </s>", "line 21: 'x' in .* is not a unigram"),
        ("-0.5\tb a", "-0.5\ta b", r"line \d+ .*2-grams.*'a b' occurs twice"),
        ("-0.7\tb", "-0.7\ta", "the 1-gram 'a' occurs twice"),
        ("\\3-", "\\4-", "line 19: expected .*3-grams:', got .*4-grams"),
        ("\\end\\", "more", "line 23: expected .*, got 'more'"),
        ("1=5", f"1={10**9}", "1000000000 1-grams .* are 5"),
        ("2=4", f"2={10**9}", "line 19: .*after 4 2-grams, .*says 10"),
        ("2=4", f"2={10**17}", "line 3: 1.* n-grams so far; more than"),
        ("2=4", "2=" + "9" * 5000, "line 3: .*and a number, got 'ngram 2=9"),
        ("ngram 2", "ngram " + "9" * 5000, "line 3: .*'ngram 2=.* got 'ngram 99"),
        ("-0.15", "38.1", "line 15: 38.1 in .* a back-off weight"),
        ("<s>\t-0.3\n", "<s>\t1e300\n", r"line 8: 1e\+300 in .* overflows"),
        ("-0.2\ta b", "-0.2\ta b\rc", "line 15: .*and 2 words"),
        ("-0.5\tb a", "-0.5\tb\rx", "line 16: 'x' in .*not a unigram"),
        ("-0.5\tb a", "-0.5\tb " + "x" * 5000, r"line 16: .{99,600}$"),
    ],
)
def test_files_with_an_invalid_change_are_refused(tmp_path, old, new, message):
    assert old in KENLM
    check_refused(tmp_path / "bad.arpa", KENLM.replace(old, new), message)


@pytest.mark.parametrize(
    "first", ["iARPA", "qARPA 3 256 256 256", "ARPA", "from srilm"]
)
def test_first_line_of_irstlm_is_refused_by_name(tmp_path, first):
    path = tmp_path / "model.arpa"
    path.write_text(f"{first}\n{KENLM}")
    if first[1:5] == "ARPA":
        with pytest.raises(ValueError, match=f"line 1: '{first}' begins an IRSTLM"):
            read_arpa(path)
    else:
        assert read_arpa(path)[1] == ["<unk>", "</s>", "a", "b"]


@pytest.mark.parametrize("zero", ["0", "-0.000", "0e5"])
def test_weight_of_zero_is_read_at_the_highest_order(tmp_path, zero):
    path = tmp_path / "model.arpa"
    path.write_text(KENLM.replace("a b </s>", f"a b </s>\t{zero}"))
    model, words = read_arpa(path)
    ids = [words.index(word) for word in ("a", "b", "</s>")]
    found = model.log_prob([ids[:2]], ids[2:]) / np.log(10)
    assert found == pytest.approx(-0.12, abs=1e-6)


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


def test_unigrams_of_any_form_are_read_and_errors_name_their_line(tmp_path):
    # More than are read together; every 1000th line begins or ends in another way, and
    # a blank line follows it.
    path, n = tmp_path / "model.arpa", 30_000
    rows = [f"-{1 + i % 7}.{i:06}\tmöt{i}" + "\t-0.25\r" * (i % 3) for i in range(n)]
    rows = [row if i % 1000 else f" {row} \n" for i, row in enumerate(rows)]
    rows = [row.replace("-0.25\r\t", "") for row in rows]

    def write(rows, to_bytes=lambda data: data):
        head = f"\\data\\\nngram 1={n}\nngram 2=1\n\\1-grams:"
        tail = "\\2-grams:\n-1\tmöt0 möt1\n\\end\\\n"
        path.write_bytes(to_bytes("\n".join([head, *rows, tail]).encode()))

    write(rows)
    model, words = read_arpa(path)
    assert words == [f"möt{i}" for i in range(n)]
    log10 = [float(row.split()[0]) for row in rows]
    expected = 10 ** np.array(log10)
    np.testing.assert_allclose(model.trie_.prob[:n], expected, rtol=1e-6)
    bow = np.where([len(row.split()) > 2 for row in rows], 10**-0.25, 1)
    np.testing.assert_allclose(model.trie_.bow[1 : n + 1], bow, rtol=1e-6)
    # Four lines and 29 blank ones are above.
    line = 4 + 29_001 + 29
    write([*rows[:29_000], rows[29_001], *rows[29_001:]])
    with pytest.raises(ValueError, match=f"line {line + 1}: the 1-gram 'möt29001'"):
        read_arpa(path)
    write(rows, lambda data: data.replace("möt29000".encode(), b"m\xf6t29000"))
    with pytest.raises(ValueError, match=f"line {line}: not UTF-8 .*convert it"):
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


def test_invalid_encodings_are_refused(tmp_path):
    path = tmp_path / "bad.arpa"
    path.write_bytes(KENLM.replace("\ta", "\tä").encode("latin-1"))
    with pytest.raises(ValueError, match="line 10: not UTF-8"):
        read_arpa(path)
    path.write_bytes(KENLM.encode("utf-16"))
    with pytest.raises(ValueError, match="line 1: not UTF-8"):
        read_arpa(path)
    path.write_bytes(b"\xef\xbb\xbf" + KENLM.replace("\n", "\r\n").encode())
    assert read_arpa(path)[1] == ["<unk>", "</s>", "a", "b"]
    with pytest.raises(FileNotFoundError):
        read_arpa(tmp_path / "absent.arpa")


def test_refused_writes_leave_no_file(tmp_path):
    model, *_ = fitted(2)
    for words, message in [
        (WORDS[:-1], "29 words, but .* n_words_=30"),
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


@pytest.mark.parametrize("blank_lines", [False, True])
def test_first_invalid_line_of_many_is_named(tmp_path, blank_lines):
    # The words of many lines are looked up together.
    words = [f"w{i}" for i in range(20)]
    bigrams = [f"-1.5\t{a} {b}" for a in words for b in words]
    damages = {
        "is not a unigram": lambda line: line + "x",
        "not a number and 2 words": lambda line: line.rsplit(" ", 1)[0],
        "is invalid or not finite": lambda line: line.replace("-1.5", "-1.5x"),
        "is above 0": lambda line: line.replace("-1.5", "1.5"),
        "'both' in .* is not a unigram": lambda line: "-1.5 both w1 2x",
    }
    path, rng = tmp_path / "model.arpa", np.random.default_rng(0)
    head = f"\\data\\\nngram 1={len(words)}\nngram 2={len(bigrams)}\n\n\\1-grams:\n"
    head += "".join(f"-1\t{word}\t0\n" for word in words) + "\n\\2-grams:\n"
    for message, damage in damages.items():
        for first in (0, 63, 64, 65, 399, int(rng.integers(400))):
            lines = bigrams.copy()
            lines[first] = damage(lines[first])
            for later in range(first + 1, len(lines), 50):
                lines[later] = rng.choice(list(damages.values()))(lines[later])
            end = "\n \t\n" if blank_lines else "\n"
            path.write_text(head + "".join(line + end for line in lines) + "\\end\\\n")
            number = head.count("\n") + 1 + first * (1 + blank_lines)
            with pytest.raises(ValueError, match=f"line {number}: .*{message}"):
                read_arpa(path)


WRITERS = [write_arpa, save_binary, write_counts]


@pytest.mark.parametrize("write", WRITERS)
def test_what_has_no_ngrams_is_refused(tmp_path, write):
    models = ClassLM(), InterpolatedTrigram(), MixtureLM([]), NeuralLM(), UniformLM()
    for model in (*models, 3):
        message = f"{type(model).__name__} .* pass a KneserNeyLM"
        with pytest.raises(TypeError, match=message):
            write(model, tmp_path / "model", ["a", "b"])
    unfitted = [KneserNeyLM(), *[BackoffLM()] * (write is not write_counts)]
    for model in unfitted:
        message = f"{type(model).__name__} instance is not fitted"
        with pytest.raises(NotFittedError, match=message):
            write(model, tmp_path / "model", ["a", "b"])
    assert not any(tmp_path.iterdir())


def test_counts_of_a_model_from_a_file_are_refused(tmp_path):
    one = np.zeros((1, 1), dtype=np.int32)
    read = BackoffLM.from_trie(trie_of_tables([one], [np.zeros(1)], []))
    with pytest.raises(TypeError, match="BackoffLM keeps no n-gram counts"):
        write_counts(read, tmp_path / "counts", ["a"])
