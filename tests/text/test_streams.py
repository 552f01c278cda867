"""WordStream: the words between ASCII blanks, for any size of chunks."""

import io
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nplm.text import streams
from nplm.text.streams import WordStream
from nplm.text.words.splitting import LineMarks

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


def test_boundary_symbols_inside_of_lines_are_refused():
    stream = WordStream("</s>", "<s>")
    assert read(stream, b"a </s>x\n") == [2, 3, -1]
    assert stream.counts.tolist() == [0, 0, 1, 1]
    assert (stream.n_lines, stream.n_tokens) == (1, 2)
    for mark, where in [("</s>", "end"), ("<s>", "beginning")]:
        stream = WordStream("</s>", "<s>")
        wanted = rf"mine, line 2: it has '{mark}' inside, .* for the {where} of a line"
        with pytest.raises(ValueError, match=wanted):
            read(stream, f"<s> a {mark}x\nb {mark} c".encode(), "mine")


LINES = st.lists(
    st.sampled_from(["a", "b", "<s>", "</s>", "<s>a", "a</s>"]), max_size=4
)


@settings(max_examples=60)
@given(
    st.lists(LINES, min_size=1, max_size=4),
    st.integers(1, 9),
    st.booleans(),
    st.booleans(),
)
def test_marks_at_the_ends_of_lines_are_left_out(lines, chunk, blank_lines, ends):
    """One rule for a stream and for single lines, wherever the stream is cut."""

    def unmarked(line):  # the definition
        line = line[1:] if line[:1] == ["<s>"] else line
        line = line[:-1] if line[-1:] == ["</s>"] else line
        return None if {"<s>", "</s>"} & set(line) else line

    bare = [unmarked(line) for line in lines]
    marks = LineMarks("</s>", str.split)
    for line, own in zip(lines, bare):
        text = marks.removed(" ".join(line))
        assert own is None if marks.error(text) else text.split() == own
    text = "\n".join(map(" ".join, lines)) + "\n" * ends
    stream = WordStream("</s>", "<s>", blank_lines=blank_lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "CHUNK_BYTES", chunk + 9)
        if None in bare:
            wanted = f"mine, line {bare.index(None) + 1}: it has '</?s>' inside"
            with pytest.raises(ValueError, match=wanted):
                read(stream, text.encode(), "mine")
            return
        ids = read(stream, text.encode(), "mine")
    words = [*stream.words(), "end"]
    kept = [own for own in bare if own or blank_lines]
    if kept and not ends and not lines[-1] and blank_lines:
        kept.pop()  # nothing is after the last line feed
    assert [words[i] for i in ids] == [w for own in kept for w in (*own, "end")]


def test_too_long_word_is_refused(monkeypatch):
    monkeypatch.setattr(streams, "CHUNK_BYTES", 1 << 10)
    with pytest.raises(ValueError, match="mine, line 2: a word of more than 1024 by"):
        read(WordStream(), b"a\n" + b"x" * 5000, "mine")
