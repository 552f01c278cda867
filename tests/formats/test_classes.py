"""Class files are written and read, and errors name what is wrong."""

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nplm.formats import (
    class_files,
    read_class_definitions,
    read_classes,
    write_class_definitions,
    write_classes,
)


def test_class_file_is_written_and_read(tmp_path):
    path = tmp_path / "classes.tsv"
    words = ["</s>", "<unk>", "naïve", "’", "a b"]
    write_classes(path, words, np.array([3, 0, 0, 1, 12]))
    assert path.read_bytes().startswith(b"</s>\t3\n<unk>\t0\n")
    found, labels = read_classes(path)
    assert found == words
    assert labels.tolist() == [3, 0, 0, 1, 12]
    assert labels.dtype == np.int32


@pytest.mark.parametrize("content", [b"a\t1\r\nb\t0", b"\xef\xbb\xbfa\t1\nb\t0\n"])
def test_class_files_of_editors_are_read(tmp_path, content):
    (tmp_path / "classes").write_bytes(content)
    words, labels = read_classes(tmp_path / "classes")
    assert (words, labels.tolist()) == (["a", "b"], [1, 0])


def test_long_line_is_neither_read_nor_shown_completely(tmp_path, monkeypatch):
    path = tmp_path / "classes.tsv"
    path.write_bytes(b"a\t0\n" + b"a" * 10**5 + b"\n")
    with pytest.raises(ValueError, match=r"line 2: expected .* got 'a+\.\.\.'") as told:
        read_classes(path)
    assert len(str(told.value)) < 1000
    monkeypatch.setattr(class_files, "MAX_LINE_BYTES", 1000)
    with pytest.raises(ValueError, match=r"line 2: longer than 1000 bytes"):
        read_classes(path)


def test_compressed_class_files(tmp_path):
    path = tmp_path / "classes.tsv.gz"
    write_classes(path, ["a", "b"], [1, 0])
    assert gzip.decompress(path.read_bytes()) == b"a\t1\nb\t0\n"
    assert read_classes(path)[0] == ["a", "b"]


@pytest.mark.parametrize(
    ("words", "labels", "message"),
    [
        (["a", "b"], [1], "2 words but 1 labels"),
        (["a", "a"], [1, 2], r"words\[1\] is 'a'"),
        (["a\tb"], [1], "without tabs"),
        (["a\nb"], [1], "without tabs and line breaks"),
        (["a\n"], [1], "without tabs and line breaks"),
        (["a\r"], [1], "without tabs and line breaks"),
        ([""], [1], r"words\[0\] is ''"),
        (["a"], [-1], "labels has -1"),
        (["a", "\ud800"], [0, 1], "surrogates not allowed"),
    ],
)
def test_invalid_words_and_labels_are_refused(tmp_path, words, labels, message):
    with pytest.raises(ValueError, match=message):
        write_classes(tmp_path / "classes.tsv", words, labels)
    assert not (tmp_path / "classes.tsv").exists()


WORDS = st.text(
    st.characters(exclude_characters=" \t\r\n\0", codec="utf-8"), min_size=1
).filter(lambda word: word not in ("<s>", "</s>"))
PROBS = st.floats(1e-30, 1)


@pytest.mark.slow
@settings(max_examples=25)
@given(classes=st.dictionaries(WORDS, st.dictionaries(WORDS, PROBS, min_size=1)))
def test_definitions_are_written_and_read(tmp_path_factory, classes):
    path = tmp_path_factory.mktemp("definitions") / "classes.gz"
    write_class_definitions(path, classes)
    found = read_class_definitions(path)
    assert found.keys() == classes.keys()
    for name, words in classes.items():
        assert found[name] == pytest.approx(words, rel=1e-8)


def test_definitions_of_srilm_are_read(tmp_path):
    path = tmp_path / "classes"
    # Probabilities as of its ngram-class and replace-words-with-classes, none, and of
    # a word that is a number; words of classes in any order.
    path.write_bytes(
        b"\xef\xbb\xbfCLASS-00001 0.75 cat\nDAY Monday\n\nDAY  Tuesday\t\r\n"
        b"CLASS-00001 2.5e-01 dog\nYEAR 1.000000 1984\nNUMBER 1.0000.5\nSIGN +\n"
        b"DAY\xc2\xa0 \xc3\xa9t\xc3\xa9"
    )
    assert read_class_definitions(path) == {
        "CLASS-00001": {"cat": 0.75, "dog": 0.25},
        "DAY": {"Monday": 0.5, "Tuesday": 0.5},
        "YEAR": {"1984": 1.0},
        "NUMBER": {"1.0000.5": 1.0},
        "SIGN": {"+": 1.0},
        "DAY\xa0": {"été": 1.0},
    }


def test_a_word_may_begin_with_a_minus(tmp_path):
    (tmp_path / "classes").write_text("A -5\nA -b\nB 1 -5\n")
    expected = {"A": {"-5": 0.5, "-b": 0.5}, "B": {"-5": 1.0}}
    assert read_class_definitions(tmp_path / "classes") == expected


INVALID = {
    read_classes: [
        (b"a\t1\nb 2\n", "line 2: expected word<TAB>class.* got 'b 2'"),
        (b"a\t1\nb\t-2\n", "line 2: expected word<TAB>class"),
        (b"a\t1\n\nb\t2\n", "line 2: expected"),
        (b"\t1\n", "line 1: expected"),
        (b"a\t1\tx\n", "line 1: expected"),
        (b"a\t99999999999\n", "line 1: class 99999999999 must be below"),
        (b"a\t" + b"9" * 5000, "line 1: class 9+ must be below"),
        (b"a\t1\nb\t2\na\t1\n", "line 3: 'a' has a class already, on line 1"),
        (b"a\t1\n\xff\t2\n", "line 2: not UTF-8"),
    ],
    read_class_definitions: [
        (b"A a\nA\n", "line 2: expected a class, its probability if any, and a word"),
        (b"A -0.3 a\n", "'a' has the probability -0.3 in class 'A': it must be above"),
        (b"A 0.5\n", r"line 1: expected a class.* got 'A 0.5'\.$"),
        (b"A 1984\n", "line 1: expected a class"),
        (b"A 0.5 new york\n", "got 'A 0.5 new york'. Phrases are not supported: join"),
        (b"A 0.5 b\nA 0.5 b\n", "line 2: class 'A' has 'b' already"),
        (b"A 0.5 b\nA c\n", "line 2: class 'A' has words with a probability and words"),
        (b"A b\nA 0.5 c\n", "line 2: class 'A' has words with a probability and words"),
        (b"A 0 b\n", "line 1: 'b' has the probability 0.0 in class 'A'"),
        (b"A 1.5 b\n", "line 1: 'b' has the probability 1.5 in class 'A'"),
        (b"A 1e999 b\n", "line 1: 'b' has the probability inf in class 'A'"),
        (b"A <s>\n", "line 1: 'A <s>' has <s> or </s>"),
        (b"</s> 1 a\n", "line 1: '</s> 1 a' has <s> or </s>"),
        (b"A \xff\n", "line 1: not UTF-8"),
    ],
}


@pytest.mark.parametrize(
    ("read", "content", "message"),
    [(key, *row) for key, rows in INVALID.items() for row in rows],
)
def test_invalid_files_are_refused(tmp_path, read, content, message):
    path = tmp_path / "classes"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read(path)


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ({"A": {"b": 0.0}}, "'b' has the probability 0.0 in class 'A'"),
        ({"A": {}}, "class 'A' has no words"),
        ({"A": {"<s>": 1.0}}, "'A <s>' has <s> or </s>, which mark the ends of lines"),
        ({"</s>": {"a": 1.0}}, "'</s> a' has <s> or </s>, which mark the ends of"),
        ({"A": {"b": 1.1}}, "'b' has the probability 1.1 in class 'A'"),
        ({"A B": {"b": 1.0}}, "words has 'A B' at 0"),
        ({"A": {"b": 0.5, "": 0.5}}, "words has '' at 1"),
    ],
)
def test_definitions_that_cannot_be_read_are_not_written(tmp_path, classes, message):
    with pytest.raises(ValueError, match=message):
        write_class_definitions(tmp_path / "classes", classes)
    assert not (tmp_path / "classes").exists()
