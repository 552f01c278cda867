"""Class files are written and read, and errors name what is wrong."""

import gzip

import numpy as np
import pytest

from nplm.formats import read_classes, write_classes


def test_class_file_is_written_and_read(tmp_path):
    path = tmp_path / "classes.tsv"
    words = ["</s>", "<unk>", "naïve", "’", "a b"]
    write_classes(path, words, np.array([3, 0, 0, 1, 12]))
    assert path.read_bytes().startswith(b"</s>\t3\n<unk>\t0\n")
    found, labels = read_classes(path)
    assert found == words
    assert labels.tolist() == [3, 0, 0, 1, 12]
    assert labels.dtype == np.int32


def test_class_file_with_windows_line_ends_is_read(tmp_path):
    path = tmp_path / "classes.tsv"
    path.write_bytes(b"a\t1\r\nb\t0")
    words, labels = read_classes(path)
    assert (words, labels.tolist()) == (["a", "b"], [1, 0])


def test_long_line_is_neither_read_nor_shown_completely(tmp_path):
    path = tmp_path / "classes.tsv"
    path.write_bytes(b"a\t0\n" + b"a" * (1 << 24) + b"\t1\n")
    with pytest.raises(ValueError, match=r"line 2: longer than 16777216 bytes"):
        read_classes(path)
    path.write_bytes(b"a\t0\n" + b"a" * 10**6 + b"\n")
    with pytest.raises(ValueError, match=r"line 2: expected .* got 'a+\.\.\.'") as told:
        read_classes(path)
    assert len(str(told.value)) < 1000


def test_compressed_class_files(tmp_path):
    path = tmp_path / "classes.tsv.gz"
    write_classes(path, ["a", "b"], [1, 0])
    assert gzip.decompress(path.read_bytes()) == b"a\t1\nb\t0\n"
    assert read_classes(path)[0] == ["a", "b"]
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"classes\.tsv\.gz cannot be decompressed"):
        read_classes(path)


def test_class_file_is_replaced_atomically(tmp_path):
    path = tmp_path / "classes.tsv"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_classes(path, ["a", "\ud800"], [0, 1])
    assert path.read_text() == "old"
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write_classes(tmp_path / "absent" / "classes.tsv", ["a"], [0])


@pytest.mark.parametrize(
    ("content", "message"),
    [
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
)
def test_invalid_class_files_are_refused(tmp_path, content, message):
    path = tmp_path / "classes.tsv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_classes(path)


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
    ],
)
def test_invalid_words_and_labels_are_refused(tmp_path, words, labels, message):
    with pytest.raises(ValueError, match=message):
        write_classes(tmp_path / "classes.tsv", words, labels)
    assert not (tmp_path / "classes.tsv").exists()
