"""WordStream: the words between ASCII blanks, for any size of chunks."""

import io
import re

import numpy as np
import pytest

from nplm.text import streams
from nplm.text.streams import WordStream

BLANKS = "\t\r "
# White space of Python that is part of words.
WORDS = [
    "a",
    "rose",
    "\v",
    "\fb",
    "\x1c",
    "c\x85",
    "\xa0",
    "\u2003",
    "\u2028",
    "\u3000",
]


def expected(text, blank_lines=False):
    known, ids = {}, []
    lines = text.split("\n")
    for line in lines if lines[-1] else lines[:-1]:
        words = re.split("[ \t\r]+", line.strip(" \t\r"))
        own = [known.setdefault(word, len(known)) for word in words if word]
        ids += [*own, -1] if own or blank_lines else []
    return list(known), ids


def read(stream, data, name="text"):
    return np.concatenate(list(stream.read(io.BytesIO(data), name))).tolist()


@pytest.mark.parametrize("chunk", [8, 11, 1 << 22])
@pytest.mark.parametrize("blank_lines", [False, True])
@pytest.mark.parametrize("end", ["", "\n", " ", "\n \t"])
def test_words_are_between_blanks(monkeypatch, chunk, end, blank_lines):
    rng = np.random.default_rng(0)
    text = ""
    for _ in range(300):
        text += str(rng.choice(WORDS)) + str(rng.choice(list(BLANKS + "\n")))
        text += str(rng.choice(["", "\n", "\n \n", "x"]))
    text += end
    monkeypatch.setattr(streams, "CHUNK_BYTES", chunk)
    stream = WordStream(blank_lines=blank_lines)
    words, ids = expected(text, blank_lines)
    assert read(stream, text.encode()) == ids
    assert stream.words() == words
    assert stream.counts.tolist() == [ids.count(i) for i in range(len(words))]
    assert stream.n_tokens == len(ids) - ids.count(-1)
    assert stream.n_lines == ids.count(-1)


def test_many_words():
    # The hash table and the buffer of text grow.
    text = "\n".join(f"wörd{i} " * 2 for i in range(30_000))
    stream = WordStream()
    words, ids = expected(text)
    assert read(stream, text.encode()) == ids
    assert stream.words() == words
    assert set(stream.counts.tolist()) == {2}


def test_files_one_after_another():
    stream = WordStream()
    assert read(stream, b"\xef\xbb\xbfa b") == [0, 1, -1]
    assert read(stream, b"\n\nb c\n") == [1, 2, -1]
    assert read(stream, b"") == []
    assert (stream.n_lines, stream.n_tokens) == (2, 4)


def test_pipe_with_single_byte_reads():
    class Pipe(io.BytesIO):
        def read(self, size):
            return super().read(min(size, 1))

    stream = WordStream()
    parts = stream.read(Pipe(b"\xef\xbb\xbfa b\na"), "text")
    assert np.concatenate(list(parts)).tolist() == [0, 1, -1, 0, -1]
    assert stream.words() == ["a", "b"]


def test_not_utf_8():
    # A multi-byte character is split between two words.
    data = b"a\n\nb \xc3 \xa9\n"
    with pytest.raises(ValueError, match=r"mine, line 3: not UTF-8 .*; convert it"):
        read(WordStream(), data, "mine")


@pytest.mark.parametrize("chunk", [1, 1 << 10])
def test_nul_bytes_are_refused(monkeypatch, chunk):
    monkeypatch.setattr(streams, "CHUNK_BYTES", chunk)
    with pytest.raises(ValueError, match=r"mine, line 3: it has a NUL .* iconv -f ut"):
        read(WordStream(), b"a\n\nb\0\n", "mine")
    for data in ("a b\n".encode("utf-16-le"), b"\0"):
        with pytest.raises(ValueError, match="mine, line 1: it has a NUL"):
            read(WordStream(), data, "mine")


def test_boundary_symbols_in_text_are_refused():
    stream = WordStream("</s>", "<s>")
    assert read(stream, b"a </s>x\n") == [2, 3, -1]
    assert stream.counts.tolist() == [0, 0, 1, 1]
    assert (stream.n_lines, stream.n_tokens) == (1, 2)
    for mark, where in [("</s>", "end"), ("<s>", "beginning")]:
        stream = WordStream("</s>", "<s>")
        wanted = (
            rf"mine, line 2: it has '{mark}', which is the symbol for the {where} of"
        )
        with pytest.raises(ValueError, match=wanted):
            read(stream, f"a {mark}x\nb {mark}\nc".encode(), "mine")


def test_too_long_word_is_refused(monkeypatch):
    monkeypatch.setattr(streams, "CHUNK_BYTES", 1 << 10)
    with pytest.raises(ValueError, match="mine, line 2: a word of more than 1024 by"):
        read(WordStream(), b"a\n" + b"x" * 5000, "mine")
