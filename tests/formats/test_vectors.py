"""Word vectors are exchanged with gensim, and errors name what is wrong."""

import gzip

import numpy as np
import pytest
from numpy.testing import assert_allclose

import nplm
from nplm.formats import read_vectors, write_vectors
from nplm.formats.open_model import Kind, open_model

WORDS = ["</s>", "<unk>", "naïve", "’", "New\u00a0York", "1_000"]


def vectors_of(n, m=7):
    rng = np.random.default_rng(0)
    scale = 10.0 ** rng.integers(-30, 30, (n, m))
    return (rng.normal(size=(n, m)) * scale).astype(np.float32)


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("name", ["vectors", "vectors.gz"])
def test_written_vectors_are_read_bit_by_bit(tmp_path, name, binary):
    vectors = vectors_of(len(WORDS))
    write_vectors(tmp_path / name, WORDS, vectors, binary=binary)
    words, loaded = read_vectors(tmp_path / name, binary=binary)
    assert words == WORDS
    assert loaded.dtype == np.float32
    np.testing.assert_array_equal(loaded, vectors)
    some, own = read_vectors(tmp_path / name, ["1_000", "naïve", "no"], binary=binary)
    assert some == ["naïve", "1_000"]
    np.testing.assert_array_equal(own, vectors[[2, 5]])


@pytest.mark.parametrize("binary", [False, True])
def test_vectors_are_exchanged_with_gensim(tmp_path, binary, keyed_vectors):
    vectors = vectors_of(len(WORDS))
    write_vectors(tmp_path / "ours", WORDS, vectors, binary=binary)
    read = keyed_vectors.load_word2vec_format(str(tmp_path / "ours"), binary=binary)
    assert read.index_to_key == WORDS
    np.testing.assert_array_equal(read.vectors, vectors)
    read.save_word2vec_format(str(tmp_path / "theirs"), binary=binary)
    words, loaded = read_vectors(tmp_path / "theirs", binary=binary)
    assert words == WORDS
    np.testing.assert_array_equal(loaded, vectors)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\n", "\r\n"),
        ("2 3", "\ufeff2 3"),
        ("3\n", "3 \n"),
        ("3\n", "3\n\n"),
        ("2.5 3\n", "2.5 3 \r"),
    ],
)
def test_text_of_word2vec_and_of_editors_is_recognised_and_read(tmp_path, old, new):
    path = tmp_path / "vectors.vec"
    text = "2 3\nthe 0.5 -1 2e-1\nröse 1 2.5 3\n".replace(old, new)
    path.write_bytes(text.encode())
    words, vectors = read_vectors(path)
    assert words == ["the", "röse"]
    assert_allclose(vectors, [[0.5, -1, 0.2], [1, 2.5, 3]])
    with open_model(path) as file:
        assert file.kind is Kind.TEXT_VECTORS
    with pytest.raises(ValueError, match=r"has word vectors.*read_vectors\(path\)"):
        nplm.load(path)


def test_binary_file_of_word2vec_is_read(tmp_path):
    # With a line end after each vector, as word2vec, and without, as gensim.
    a, b = np.float32([[1, 2], [3, 4]])
    for end in (b"\n", b""):
        rows = [b"a " + a.tobytes(), b"b " + b.tobytes()]
        (tmp_path / "vectors").write_bytes(b"2 2\n" + end.join(rows) + end)
        words, vectors = read_vectors(tmp_path / "vectors", binary=True)
        assert words == ["a", "b"]
        np.testing.assert_array_equal(vectors, [[1, 2], [3, 4]])


ONE = np.float32([1, 2]).tobytes()


INVALID = {
    False: [
        (b"", "is empty"),
        (b"a 1 2\nb 3 4\n", "line 1: 'a 1 2' is not a number of words.*GloVe"),
        (b"2 -2\na 1 2\n", "line 1: '2 -2' is not a number"),
        (b"9" * 5000 + b" 2\n", "line 1: .* is not a number"),
        (b"0 2\n", "line 1: 0 words of 2 features are out of range"),
        (
            b"2 99999999\na 1 2\n",
            "line 1: 2 words of 99999999 features are out of range",
        ),
        (
            b"9999999999 2\na 1 2\n",
            "line 1: 9999999999 words .* range, 1 to 2147483647",
        ),
        (b"2000000000 2\na 1 2\n", "after line 2: the file ends after 1 of 2000000000"),
        (b"2 2\na 1 2\nb 1\n", "line 3: 'b 1' is not a word and 2 .* has 1 after"),
        (b"2 2\na 1 2\nb c 1 2\n", "line 3: 'b c 1 2' is not a word and 2 numbers"),
        (b"1 2\n 1 2\n", "line 2: '1 2' is not a word and 2 numbers"),
        (b"1 2\na 1 x\n", "line 2: 'a 1 x' is not a word and 2 numbers: one is not"),
        (b"1 2\na 1 1_0\n", "line 2: .*: one is not a number"),
        (
            b"1 2\na 1 nan\n",
            "line 2: the vector of 'a' has nan, .* not a finite float32",
        ),
        (b"1 2\na 1 1e99\n", "line 2: the vector of 'a' has inf"),
        (b"2 2\na 1 2\n\na 3 4\n", "line 4: 'a' has a vector already, at line 2"),
        (b"1 2\na 1 2\nb 3 4\n", "line 3: 'b 3 4' after the 1 vectors"),
        (b"1 2\n\xff 1 2\n", "line 2: not UTF-8 .*convert it, .*set binary=True"),
    ],
    True: [
        (b"", "ends in the first line: it is truncated"),
        (b"x" * 100_000, "the first line: no word ends within"),
        (b"2 2 2\na " + ONE, "the first line: '2 2 2' is not a number"),
        (b"2 2\na " + ONE, "ends in vector 2 of 2: it is truncated"),
        (b"2000000000 2\na " + ONE, "ends in vector 2 of 2000000000"),
        (b"1 2\na " + ONE[:-1], "ends in vector 1 of 1"),
        (b"1 60000\na " + ONE, "ends in vector 1 of 1"),
        (b"1 2\n" + b"x" * 100_000, "vector 1 of 1: no word ends within"),
        (b"1 2\n " + ONE, "vector 1 of 1: '' is not a word"),
        (b"2 2\na 1 2\nb 3 4\n", "ends in vector 2 of 2"),  # a text file
        (b"2 1\na 1234zz\nb 1234zz\n", r"vector 2 of 2: '.*' is not a word; is this"),
        (b"1 2\n\xff " + ONE, "vector 1 of 1: a word is not UTF-8"),
        (b"2 2\na " + ONE + b"a " + ONE, "vector 2 of 2: 'a' .*already, at vector 1"),
        (b"1 2\na " + np.float32([1, np.nan]).tobytes(), "vector 1 of 1: .*has nan"),
        (b"1 2\na " + ONE + b"\nb " + ONE, "has more than the 1 vectors"),
    ],
}


@pytest.mark.parametrize(
    ("binary", "content", "message"),
    [(key, *row) for key, rows in INVALID.items() for row in rows],
)
def test_invalid_files_are_refused(tmp_path, binary, content, message):
    path = tmp_path / "vectors.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"vectors\.txt.*{message}"):
        read_vectors(path, binary=binary)


@pytest.mark.parametrize("number", [-1.5, 0.0])  # invalid and valid UTF-8
def test_binary_file_read_as_text_is_refused(tmp_path, number):
    path = tmp_path / "vectors"
    write_vectors(path, ["a", "rose"], np.full((2, 3), number), binary=True)
    with pytest.raises(ValueError, match=r"line 2: .*word2vec file, set binary=True"):
        read_vectors(path)


def test_file_without_the_requested_words_is_refused(tmp_path):
    write_vectors(tmp_path / "vectors", ["a"], [[1.0]])
    with pytest.raises(ValueError, match="no vector of any of the requested"):
        read_vectors(tmp_path / "vectors", ["b"])


@pytest.mark.parametrize(
    ("words", "vectors", "message"),
    [
        (["a"], [[1.0], [2.0]], r"words has 1 words, but len\(vectors\)=2"),
        (["a", "a"], [[1.0], [2.0]], "'a' twice"),
        (["a", "b c"], [[1.0], [2.0]], "'b c' at 1: .* contain a blank"),
        (["a"], [1.0], "2 dimensions, with a row .*, got shape"),
        (["a"], [[]], r"2 dimensions, with a row .* got shape \(1, 0\)"),
        ([], np.empty((0, 2)), r"at least one row, got shape \(0, 2\)"),
        (["a"], [[1.0, np.nan]], "vectors has nan at row 0, column 1"),
        (["a"], [[1.0, 1e99]], "vectors has inf at row 0, column 1"),
    ],
)
def test_invalid_vectors_are_refused(tmp_path, words, vectors, message):
    with pytest.raises(ValueError, match=message):
        write_vectors(tmp_path / "vectors", words, vectors)
    assert not any(tmp_path.iterdir())


def test_equal_vectors_make_equal_compressed_files(tmp_path):
    for name in ("a.gz", "b.gz"):
        write_vectors(tmp_path / name, ["a"], [[0.1]])
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"1 1\na 0.1\n"
