"""Compressed files: read as a stream, refused when they decompress to too much."""

import bz2
import gzip
import io
import lzma
import os
import struct
import subprocess
import sys
from contextlib import suppress
from functools import partial
from importlib import import_module

import numpy as np
import pytest

import nplm
from nplm import kenlm
from nplm.base.files import compressed
from nplm.base.files.compressed import UnpackingError, reading, unpacked
from nplm.cli._text import lines_of
from nplm.datasets import TextLines, load_text, load_wiki
from nplm.formats import (
    estimate_arpa,
    load_binary,
    read_arpa,
    read_class_definitions,
    read_classes,
    read_counts,
    read_vectors,
)
from nplm.formats.open_model import open_model
from tests.helpers import peak_of

COMPRESSORS = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress}
with suppress(ImportError):  # Python 3.13 or older, without backports.zstd
    zstd = import_module(compressed.ZSTD)
    # As the command zstd does.
    CHECKED = {zstd.CompressionParameter.checksum_flag: 1}
    COMPRESSORS["zstd"] = partial(zstd.compress, options=CHECKED)
READERS = {
    "ARPA": read_arpa,
    "counts": read_counts,
    "classes": read_classes,
    "definitions": read_class_definitions,
    "vectors": read_vectors,
    "binary vectors": lambda path: read_vectors(path, binary=True),
}
TEXTS = {
    "load_text": load_text,
    "load_wiki": load_wiki,
    "the command line": lambda path: list(lines_of([os.fspath(path)])),
    "estimation": lambda path: estimate_arpa(
        nplm.KneserNeyLM(2), [path], path.with_name("model")
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("compress", COMPRESSORS.values(), ids=COMPRESSORS)
@pytest.mark.parametrize("size", [0, 1, 10**6])
def test_compressed_files_are_decompressed(tmp_path, compress, size):
    content = np.random.default_rng(0).integers(0, 90, size, np.uint8).tobytes()
    path = tmp_path / "compressed"
    # Files of several parts, as `cat a.gz b.gz` makes them.
    path.write_bytes(compress(content) + compress(b"more\nlines\n"))
    with reading(path) as file:
        assert file.read() == content + b"more\nlines\n"
    with reading(path) as file:
        assert b"".join(file) == content + b"more\nlines\n"


@pytest.mark.parametrize("compress", COMPRESSORS.values(), ids=COMPRESSORS)
@pytest.mark.parametrize("padding", [0, 1, 4, 512, 10**5])
@pytest.mark.parametrize("at_end", [False, True])
def test_text_after_padding_is_read(tmp_path, compress, padding, at_end):
    path = tmp_path / "padded"
    more = b"" if at_end else compress(b"more\n")
    path.write_bytes(compress(b"a rose\n" * 99) + bytes(padding) + more)
    with reading(path) as file:
        assert file.read() == b"a rose\n" * 99 + (b"" if at_end else b"more\n")


@pytest.mark.parametrize("compress", COMPRESSORS.values(), ids=COMPRESSORS)
def test_damage_never_leaves_text_out(tmp_path, compress):
    """A flipped bit or other bytes between streams: all of the text, or an error."""
    streams = [compress(b"line %d\n" % i * 50) for i in range(10)]
    text = b"".join(b"line %d\n" % i * 50 for i in range(10))
    whole, rng = b"".join(streams), np.random.default_rng(0)
    damaged = [
        b"".join(streams[:5]) + junk + b"".join(streams[5:])
        for junk in (b"\1", b"junk", b"\0\0x\0", streams[0][:-1], streams[0][1:])
    ]
    for bit in rng.choice(8 * len(whole), 200, replace=False):
        damaged.append(bytearray(whole))
        damaged[-1][bit // 8] ^= 1 << bit % 8
    path, n_refused = tmp_path / "damaged", 0
    for data in damaged:
        path.write_bytes(data)
        try:
            with reading(path) as file:
                # Without its first bytes a file is read as it is.
                assert file.read() in (text, data)
        except UnpackingError:
            n_refused += 1
    assert n_refused > 100


@pytest.mark.skipif("zstd" not in COMPRESSORS, reason="no zstd")
@pytest.mark.parametrize("first", [0x50, 0x5F])
def test_zstd_frames_without_text_are_skipped(tmp_path, first):
    """pzstd begins its files with such a frame, which has the size of the next one."""
    frame = bytes([first]) + b"\x2a\x4d\x18\x04\0\0\0abcd"
    path = tmp_path / "text.zst"
    path.write_bytes(
        frame + zstd.compress(b"a rose\n") + frame + zstd.compress(b"is\n")
    )
    assert list(TextLines(path)) == ["a rose", "is"]


@pytest.mark.skipif("zstd" not in COMPRESSORS, reason="no zstd")
def test_error_says_that_zstd_needs_a_larger_window(tmp_path):
    compressor = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 28})
    path = tmp_path / "long.zst"
    path.write_bytes(compressor.compress(b"a rose\n") + compressor.flush())
    message = r"needs a window of more than 128 MB, .*: zstd -d --long=31\.$"
    with pytest.raises(UnpackingError, match=message), reading(path) as file:
        file.read()


@pytest.mark.parametrize("compress", COMPRESSORS.values(), ids=COMPRESSORS)
def test_bomb_is_refused_while_it_is_read(tmp_path, compress, monkeypatch):
    monkeypatch.setattr(compressed, "FREE_BYTES", 1 << 16)
    path = tmp_path / "bomb"
    path.write_bytes(compress(bytes(1 << 24)))

    def refused():
        message = "bomb decompresses to more than 64 times"
        with pytest.raises(UnpackingError, match=message), reading(path) as file:
            while file.read(1 << 12):
                pass

    assert peak_of(refused) < 12 << 20  # xz itself takes 8 MB


@pytest.mark.parametrize("line", [b"a\t1\n", b"\n", b"a"], ids=repr)
@pytest.mark.parametrize("name", READERS | TEXTS)
def test_every_reader_refuses_a_bomb(tmp_path, monkeypatch, name, line):
    monkeypatch.setattr(compressed, "FREE_BYTES", 1 << 16)
    path = tmp_path / "bomb"
    path.write_bytes(lzma.compress(line * 10**5))
    with pytest.raises(
        ValueError, match=r"bomb(, .*line( \d+)?: | decompresses to more)"
    ):
        (READERS | TEXTS)[name](path)


@pytest.mark.parametrize("compress", COMPRESSORS.values(), ids=COMPRESSORS)
@pytest.mark.parametrize("name", READERS | TEXTS)
def test_error_names_a_damaged_compressed_file(tmp_path, name, compress):
    path = tmp_path / "damaged"
    data = bytearray(compress(b"a b 3\n" * 99))
    data[-9] ^= 64
    path.write_bytes(data)
    message = r"damaged(, line \d+: | cannot be decompressed)"
    with pytest.raises(ValueError, match=message):
        (READERS | TEXTS)[name](path)


def test_error_names_standard_input_with_a_bomb():
    raw = io.BufferedReader(io.BytesIO(gzip.compress(bytes(1 << 26))))
    message = r"^standard input decompresses to more than"
    with (
        pytest.raises(UnpackingError, match=message),
        unpacked(raw, "standard input") as file,
    ):
        file.read()


def test_error_says_how_to_read_zstd(tmp_path, monkeypatch):
    monkeypatch.setattr(compressed, "ZSTD", "no_such_module")
    path = tmp_path / "text.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd")
    message = r"text.zst is compressed by zstd, .* pip install backports.zstd\. Or"
    with pytest.raises(ImportError, match=message), reading(path):
        pass


def scorer_of(path):
    with open_model(path) as file:
        return file.scorer()


MODELS = {
    "nplm.load": nplm.load, "load_binary": load_binary, "nplm.kenlm": kenlm.Model,
    "scorer": scorer_of,
}  # fmt: skip


@pytest.mark.parametrize("name", READERS | MODELS)
def test_pipe_in_place_of_a_model_is_refused_without_waiting(tmp_path, name):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(OSError, match=f"{path} is a pipe or a device"):
        (READERS | MODELS)[name](path)


@pytest.mark.parametrize("name", {**READERS, **MODELS, "estimation": 0})
def test_error_names_a_folder_in_place_of_a_file(tmp_path, name):
    with pytest.raises(IsADirectoryError, match=f"^{tmp_path} is a folder: pass"):
        (READERS | MODELS | TEXTS)[name](tmp_path)


def test_text_is_read_from_a_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with subprocess.Popen(["sh", "-c", f"echo a rose > {path}"]):
        assert list(lines_of([os.fspath(path)])) == ["a rose"]


def test_unnamed_pipe_is_read_as_a_file():
    script = "from nplm.formats import read_classes; print(read_classes('/dev/stdin'))"
    done = subprocess.run(
        [sys.executable, "-c", script], input=gzip.compress(b"a\t1\n"),
        capture_output=True,
    )  # fmt: skip
    assert done.stdout.startswith(b"(['a'], array([1]"), done.stderr


@pytest.mark.parametrize(
    ("kind", "start"),
    [("zip", b"PK\x03\x04"), ("lzma", lzma.compress(b"a", format=lzma.FORMAT_ALONE))],
)
def test_other_compression_is_named(tmp_path, kind, start):
    (tmp_path / "packed").write_bytes(start)
    with (
        pytest.raises(ValueError, match=f"packed is compressed by {kind}, but only"),
        reading(tmp_path / "packed"),
    ):
        pass


# As those tools begin them.
FILES = {
    "KenLM": b"mmap lm http://kheafield.com/code format version 5\n\0" + bytes(36),
    "SRILM": b"SRILM_BINARY_NGRAM_002\nmaxorder: 3\n\xef\xcd\xab",
    "CMU Sphinx": b"Trie Language Model\x03" + struct.pack("<3I", 10, 20, 30),
    "Sphinx": struct.pack(">I", 17) + b"Darpa Trigram LM\0" + bytes(9),
    "IRSTLM": b"Qblmt 3 10 20 30\nNumCenters 256 256 256\n\xff\0",
    "fastText": struct.pack("<2i", 793712314, 12) + bytes(60),
    "OpenFst": struct.pack("<2i", 2125659606, 6) + b"vector" + bytes(60),
}


@pytest.mark.parametrize("tool", FILES)
def test_models_of_other_tools_are_refused_with_what_they_are(tmp_path, tool):
    path = tmp_path / "model"
    path.write_bytes(FILES[tool])
    message = rf"{path} is a .*{tool}.*, which nplm does not read: (give|write) .*\w"
    # Files of KenLM are read, but not as others.
    read_as_others = [*READERS.values(), lambda path: list(TextLines(path))]
    models = [] if tool == "KenLM" else [*MODELS.values()]
    for read in [*read_as_others, *models]:
        with pytest.raises((ValueError, OSError), match=message):
            read(path)
    path.write_bytes(gzip.compress(FILES[tool]))
    for read in MODELS.values():
        with pytest.raises((ValueError, OSError), match=message):
            read(path)


@pytest.mark.parametrize("line", ["Trie Language Model", "blmt 3", "SRILM", "Darpa"])
def test_text_about_these_tools_is_text(tmp_path, line):
    path = tmp_path / "text"
    path.write_text(f"{line}\n")
    assert list(TextLines(path)) == [line]
