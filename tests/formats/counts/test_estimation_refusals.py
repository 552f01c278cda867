"""Estimation refuses parameters and texts before it writes a file."""

import io
import os
import re

import pytest

from nplm import KneserNeyLM, Tokenizer, Vocabulary
from nplm.formats import CountTables, estimate_arpa, estimate_binary


def test_compiled_pattern_is_refused_before_the_text_is_read(tmp_path):
    tokenizer = Tokenizer(re.compile(r"\w+", re.I))
    with pytest.raises(ValueError, match=r"has a compiled pattern, .* to a string"):
        estimate_binary(KneserNeyLM(2), unread(), tmp_path / "m", tokenizer=tokenizer)
    assert not (tmp_path / "m").exists()


def unread():
    pytest.fail("the text was read")
    yield


@pytest.mark.parametrize(
    ("order", "parameters", "options", "message"),
    [
        (None, {}, {}, "order is None"),
        (3, {"min_counts": (1, 0)}, {}, r"min_counts .* got \(1, 0\)"),
        (
            3,
            {"min_counts": (1, 3, 2), "min_counts_of": "text"},
            {},
            r"min_counts=\(1, 3, 2\) decreases",
        ),
        (3, {}, {"bits": 2}, "bits must be None or 3 to 12, got 2"),
        (17, {}, {"bits": 8}, "bits=8 quantizes orders 2 to 16, but the model's order"),
        (3, {}, {"tokenizer": Tokenizer(".+")}, "line 1: the tokenizer made 'a b', wh"),
        (
            3,
            {},
            {"vocabulary": Vocabulary(words=["<s>", "a"])},
            "words of the vocabulary has '<s>', which stands for the beginning",
        ),
        (3, {"n_words": 7}, {}, "has n_words=7, but the vocabulary has 4"),
        (3, {"boundary": 1}, {}, "has boundary=1, but the vocabulary has 0"),
        (
            3,
            {},
            {"memory": "2X"},
            "memory='2X' must be a number of bytes, at least 1024",
        ),
        (3, {}, {"memory": 1000}, "memory=1000 must be"),
        (3, {}, {"memory": True}, "memory=True must be"),
        (3, {}, {"vocabulary": Vocabulary(boundary=None)}, "boundary=None, but estim"),
        (
            3,
            {},
            {"vocabulary": Vocabulary(words=["a"], unknown=None)},
            "'b' is not among the 2 words",
        ),
    ],
)
def test_invalid_parameters_are_refused(tmp_path, order, parameters, options, message):
    with pytest.raises(ValueError, match=message):
        estimate_binary(
            KneserNeyLM(order, **parameters),
            [io.BytesIO(b"a b")],
            tmp_path / "model",
            folder=tmp_path,
            **options,
        )
    assert os.listdir(tmp_path) == []


def test_invalid_texts_are_refused(tmp_path):
    for data, message in [
        (b" \n", "the texts have no word"),
        (b"a\n</s> b", "the text, line 2: it has '</s>'"),
        (b"a\nb <s>", "the text, line 2: it has '<s>'"),
        (b"a \xff", "the text, line 1: not UTF-8"),
        (b"a\nb \x00", "the text, line 2: it has a NUL"),
    ]:
        with pytest.raises(ValueError, match=message):
            estimate_binary(
                KneserNeyLM(2), [io.BytesIO(data)], tmp_path / "model", folder=tmp_path
            )
    spent = iter([io.BytesIO(b"a b\n")])
    next(spent)
    with pytest.raises(ValueError, match=r"no word: .* an iterator, .* only once"):
        estimate_binary(KneserNeyLM(2), spent, tmp_path / "model", folder=tmp_path)
    for wrong in (io.StringIO("a b\n"), 3, None, ["a", "b"]):
        with pytest.raises(TypeError, match=r"texts has an item of type .*: pass"):
            estimate_binary(KneserNeyLM(2), [wrong], tmp_path / "x", folder=tmp_path)
    for one in ("text.txt", b"text.txt", tmp_path / "text.txt", io.BytesIO(b"a b\n")):
        with pytest.raises(TypeError, match=r"texts is a single .*: pass a list"):
            estimate_binary(KneserNeyLM(2), one, tmp_path / "model")
    with pytest.raises(TypeError, match="must be a KneserNeyLM, got NoneType"):
        estimate_binary(None, [], tmp_path / "model")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("estimate", [estimate_binary, estimate_arpa])
def test_model_does_not_replace_a_text(tmp_path, estimate):
    text, link = tmp_path / "text.txt", tmp_path / "link"
    text.write_bytes(b"a b\n")
    link.symlink_to(text)
    tables = CountTables([([[0, 1]], [1]), text], ["</s>", "a"])
    message = r"^path='.*' is one of the files that are read"
    for path in (text, link):
        for source in ([io.BytesIO(b"c\n"), text], tables):
            with pytest.raises(ValueError, match=message):
                estimate(KneserNeyLM(1), source, path, folder=tmp_path)
    assert text.read_bytes() == b"a b\n"
    assert sorted(os.listdir(tmp_path)) == ["link", "text.txt"]


def test_error_names_an_invalid_temporary_folder(tmp_path):
    (tmp_path / "file").touch()
    for name in ("absent", "file"):
        with pytest.raises(NotADirectoryError, match=f"{name}', .* not a directory"):
            estimate_binary(KneserNeyLM(2), [], tmp_path / "x", folder=tmp_path / name)
