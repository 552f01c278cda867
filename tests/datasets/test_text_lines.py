"""TextLines: lines of files, plain, compressed or JSON, as often as asked for."""

import bz2
import gzip
import json
import lzma

import pytest

from nplm.datasets import TextLines

TEXTS = ["a rose", "", "é \u2028 rose", "  ", "is"]
DATA = "\r\n".join(TEXTS).encode("utf-8-sig")


@pytest.mark.parametrize(
    "compress", [bytes, gzip.compress, bz2.compress, lzma.compress]
)
def test_lines_are_read_again_by_each_iteration(tmp_path, compress):
    path = tmp_path / "text"
    path.write_bytes(compress(DATA))
    lines = TextLines(path, str(path))
    for _ in range(2):
        assert list(lines) == ["a rose", "é \u2028 rose", "is"] * 2
    assert list(TextLines(path, blank_lines=True)) == TEXTS


def test_a_field_of_json_lines_is_the_document(tmp_path):
    path = tmp_path / "pages.jsonl"
    rows = [json.dumps({"id": i, "text": text}) for i, text in enumerate(TEXTS)]
    path.write_text("\n".join(rows) + "\n\n")
    assert list(TextLines(path, field="text")) == ["a rose", "é \u2028 rose", "is"]
    assert list(TextLines(path, field="text", blank_lines=True)) == [*TEXTS, ""]
    assert (
        repr(TextLines(path, field="text")) == f"TextLines({str(path)!r}, field='text')"
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": ', "line 2: not JSON .*leave the field out"),
        ("[1]", r"line 2: not an object of JSON, but \[1\]"),
        ('{"id": 1, "body": 2}', r"no field 'text' among \['id', 'body'\]"),
        ('{"text": null}', "'text' is null, not a string"),
        ("[" * 10**5, "line 2: not JSON"),
    ],
)
def test_errors_name_the_line_without_the_field(tmp_path, line, message):
    path = tmp_path / "pages.jsonl"
    path.write_text('{"text": "a"}\n' + line)
    with pytest.raises(ValueError, match=rf"pages\.jsonl, .*{message}"):
        list(TextLines(path, field="text"))
    assert list(TextLines(path, field="text", errors="skip")) == ["a"]


def test_bad_bytes_are_refused_replaced_or_skipped(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"good\ncaf\xe9\na\0b\nend")
    with pytest.raises(ValueError, match=r'text, line 2: not UTF-8 .*errors="replace"'):
        list(TextLines(path))
    expected = ["good", "caf\ufffd", "a\ufffdb", "end"]
    assert list(TextLines(path, errors="replace")) == expected
    assert list(TextLines(path, errors="skip")) == ["good", "end"]


def test_arguments_are_checked(tmp_path):
    with pytest.raises(TypeError, match=r"names of files, got \(\)"):
        TextLines()
    with pytest.raises(TypeError, match=r"pass each as an argument"):
        TextLines(["a", "b"])
    with pytest.raises(ValueError, match="errors must be"):
        TextLines("a", errors="ignore")
    with pytest.raises(FileNotFoundError):
        list(TextLines(tmp_path / "absent"))
