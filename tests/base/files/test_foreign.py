"""Binary models of other tools are refused with what they are, by every reader."""

import gzip
import struct

import pytest

import nplm
from nplm import kenlm
from nplm.datasets import TextLines
from nplm.formats import (
    load_binary,
    read_arpa,
    read_classes,
    read_counts,
    read_vectors,
)

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
READERS = [
    nplm.load, kenlm.Model, load_binary, read_arpa, read_classes, read_counts,
    read_vectors, lambda path: list(TextLines(path)),
]  # fmt: skip


@pytest.mark.parametrize("tool", FILES)
def test_models_of_other_tools_are_refused_with_what_they_are(tmp_path, tool):
    path = tmp_path / "model"
    path.write_bytes(FILES[tool])
    message = rf"{path} is a .*{tool}.*, which nplm does not read: (give|write) .*\w"
    # Files of KenLM are read, but not as others.
    for read in READERS[3:] if tool == "KenLM" else READERS:
        with pytest.raises((ValueError, OSError), match=message):
            read(path)
    path.write_bytes(gzip.compress(FILES[tool]))
    for read in READERS[:3]:
        with pytest.raises((ValueError, OSError), match=message):
            read(path)


@pytest.mark.parametrize("line", ["Trie Language Model", "blmt 3", "SRILM", "Darpa"])
def test_text_about_these_tools_is_text(tmp_path, line):
    path = tmp_path / "text"
    path.write_text(f"{line}\n")
    assert list(TextLines(path)) == [line]
