"""Preprocessing of Wikipedia, on a few words."""

import gzip
import hashlib
import lzma
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nplm.datasets import _wiki, load_wiki

TEXT = """The cat saw Mr. Krank in 1961, and the cat ran.
A zebra saw the cat: 3,000 zebras!
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with a file of two lines, of which 20 tokens are read."""
    data = lzma.compress(TEXT.encode())
    (tmp_path / "wiki16m.txt.xz").write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    monkeypatch.setattr(_wiki, "WIKI", replace(_wiki.WIKI, sha256=digest))
    for name, n in (("N_TRAIN", 14), ("N_VALID", 4), ("N_TEST", 2)):
        monkeypatch.setattr(_wiki, name, n)
    monkeypatch.delenv("NPLM_DATA", raising=False)
    return tmp_path


def test_numbers_names_and_rare_words_become_symbols(folder):
    corpus = load_wiki(n_words=6, data_home=folder)
    words = corpus.words.tolist()
    assert words == ["<unk>", "<name>", "<num>", "the", "cat", "saw"]
    stream = np.concatenate([corpus.train, corpus.valid, corpus.test])
    assert " ".join(corpus.words[stream]) == (
        "the cat saw <name> <unk> <name> <unk> <num> <unk> <unk> the cat <unk> <unk> "
        "<name> <unk> saw the cat <unk>"
    )
    assert [len(corpus[part]) for part in ("train", "valid", "test")] == [14, 4, 2]
    assert corpus.boundary is None
    assert corpus.vocabulary.unknown_id_ == 0


def test_large_vocabulary_has_all_words(folder):
    corpus = load_wiki(data_home=folder)
    assert {"mr", "krank", "zebra", "."} <= set(corpus.words)
    assert "1961" not in corpus.words


def test_missing_file_is_an_error_without_a_download(folder):
    (folder / "wiki16m.txt.xz").unlink()
    with pytest.raises(
        FileNotFoundError, match=r"not published\..* load_wiki\(path\) reads"
    ):
        load_wiki(data_home=folder)


def test_damaged_file_is_refused(folder):
    (folder / "wiki16m.txt.xz").write_bytes(b"xz")
    with pytest.raises(OSError, match="is damaged, or another edition"):
        load_wiki(data_home=folder)


@pytest.mark.parametrize("name", ["own.txt", "own.txt.xz", "own.gz"])
def test_text_of_the_user_is_read(folder, monkeypatch, name):
    monkeypatch.setattr(_wiki, "MIN_TOKENS", 10)
    pack = {".xz": lzma.compress, ".gz": gzip.compress}.get(Path(name).suffix, bytes)
    whole = load_wiki(data_home=folder)
    (folder / name).write_bytes(pack(TEXT.encode()))
    own = load_wiki(folder / name)
    for part in ("train", "valid", "test"):
        np.testing.assert_array_equal(own[part], whole[part])
    assert own.DESCR.startswith(f"The text of {folder / name} in place of")
    # A shorter text is split in the same proportions.
    (folder / name).write_bytes(pack(b"a b\nc d\n\n" * 5))
    short = load_wiki(folder / name)
    assert [len(short[part]) for part in ("train", "valid", "test")] == [14, 4, 2]
    (folder / name).write_bytes(pack(b"a b " * 5))
    short = load_wiki(folder / name)
    assert [len(short[part]) for part in ("train", "valid", "test")] == [7, 2, 1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a b c", "has 3 tokens: three parts need at least 100"),
        ("é a ".encode("latin1") * 99, "line 1: not UTF-8"),
        ("é a ".encode("utf-16") * 99, "has a NUL .* -f utf-16"),
        ("a b ".encode("utf-16-le") * 99, "has a NUL .* -f utf-16"),
    ],
)
def test_invalid_texts_are_refused(tmp_path, content, message):
    (tmp_path / "text").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load_wiki(tmp_path / "text")
