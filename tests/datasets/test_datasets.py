"""Corpora: the embedded one, the downloaded ones, and text files."""

import gzip
import hashlib
import http.server
import os
import sys
import threading
import zipfile
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from nplm import Tokenizer
from nplm.datasets import (
    _corpora,
    _python_docs,
    _remote_files,
    fetch_brown,
    fetch_ptb,
    load_python_docs,
    load_text,
)
from tests.helpers import published_corpus

PARTS = ("train", "valid", "test")


def assert_is_corpus(corpus):
    for part in (corpus[part] for part in PARTS):
        assert part.dtype == np.int32
        assert part.ndim == 1
        assert 0 <= part.min() <= part.max() < corpus.n_words
    assert len(corpus.words) == corpus.n_words
    assert f"{len(corpus.train):,}" in corpus.DESCR
    if corpus.boundary is not None:
        assert corpus.words[corpus.boundary] == "</s>"


def sizes(corpus):
    return tuple(len(corpus[part]) for part in PARTS)


def unknown(corpus):
    mark = corpus.vocabulary.unknown_id_
    return tuple(int((corpus[part] == mark).sum()) for part in PARTS)


# -- the embedded corpus ------------------------------------------------------


@pytest.mark.slow
def test_python_docs_has_parts_of_the_right_sizes():
    imported = set(sys.modules)
    corpus = load_python_docs()
    assert set(sys.modules) == imported
    assert_is_corpus(corpus)
    for size, least in zip(sizes(corpus), (800_000, 100_000, 100_000)):
        assert least <= size < least + 60_000  # the largest module
    assert 7_000 < corpus.n_words < 13_000
    text = " ".join(corpus.words[corpus.train])
    assert "</s> Return a list of" in text
    for project in ("Python", "numpy", "scipy", "scikit-learn"):
        assert f"{project} " in corpus.DESCR


def test_python_docs_has_no_sentence_twice(tmp_path, monkeypatch):
    shared = "One.\n\nOne. What is shared.\n---\nx : int\n    The  number.\n"
    example = "\n\n>>> 1 + 1\n2\n\n***\n\nThe {}."
    packages = {"one": "first", "two": "second", "three": "third"}
    for name, last in packages.items():
        (tmp_path / name / "tests").mkdir(parents=True)
        source = f'"""{shared}{example.format(last)}"""\ndef f():\n    """{shared}"""'
        (tmp_path / name / "__init__.py").write_text(source)
        (tmp_path / name / "tests" / "a.py").write_text('"""A test."""')
    (tmp_path / "library" / "pydoc_data").mkdir(parents=True)
    topics = tmp_path / "library" / "pydoc_data" / "topics.py"
    topics.write_text("topics = {'x': 'A topic.'}")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(_python_docs, "PACKAGES", dict.fromkeys(packages, "nplm"))
    monkeypatch.setattr(
        _python_docs.sysconfig, "get_path", lambda name: str(tmp_path / "library")
    )
    modules = list(_python_docs.python_documents())
    assert len(modules) == 4
    texts = "\n".join(text for texts in modules for text in texts).split("\n")
    assert sorted(texts) == [
        "A topic.", "One.", "The first.", "The number.", "The second.", "The third.",
        "What is shared.", "x : int",
    ]  # fmt: skip
    assert modules == list(_python_docs.python_documents())


# -- the protocols of the published corpora -----------------------------------


@pytest.mark.corpora
def test_brown_follows_the_papers_protocol():
    corpus = published_corpus("brown")
    assert_is_corpus(corpus)
    assert sizes(corpus) == (800_000, 200_000, 177_359)
    assert corpus.n_words == 17_907
    assert corpus.boundary is None
    assert unknown(corpus) == (39_062, 8_478, 7_642)
    stream = np.concatenate([corpus.train, corpus.valid, corpus.test])
    for mark, count in (("<p>", 15_667), ("<text>", 500)):
        assert (stream == corpus.vocabulary.ids_[mark]).sum() == count
    seen = np.isin(np.arange(corpus.n_words), corpus.train)
    assert (~seen).sum() == 794
    assert (~seen[corpus.valid]).sum() == 3_210
    assert (~seen[corpus.test]).sum() == 2_645
    assert (
        " ".join(corpus.words[corpus.train[:6]]) == "The Fulton County Grand Jury said"
    )


@pytest.mark.corpora
def test_ptb_follows_mikolovs_protocol():
    corpus = published_corpus("ptb")
    assert_is_corpus(corpus)
    assert sizes(corpus) == (929_589, 73_760, 82_430)
    assert corpus.n_words == 10_000
    assert corpus.boundary == 0
    assert unknown(corpus) == (45_020, 3_485, 4_794)
    ends = [int((corpus[part] == 0).sum()) for part in PARTS]
    assert ends == [42_068, 3_370, 3_761]
    assert (
        " ".join(corpus.words[corpus.test[:8]]) == "no it was n't black monday </s> but"
    )


# -- files: found, checked, downloaded ----------------------------------------


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


class TruncatingHandler(QuietHandler):
    """Announce more bytes than are sent, as when a connection is lost."""

    def send_header(self, keyword, value):
        if keyword == "Content-Length":
            value = str(int(value) + 10)
        super().send_header(keyword, value)


@pytest.fixture
def serve(tmp_path, monkeypatch):
    """Serve a folder on 127.0.0.1; yield the folder and its address."""
    folder = tmp_path / "www"
    folder.mkdir()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    servers = []

    def start(handler=QuietHandler):
        address = ("127.0.0.1", 0)
        server = http.server.HTTPServer(address, partial(handler, directory=folder))
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        servers.append((server, thread))
        return folder, f"http://127.0.0.1:{server.server_port}"

    yield start
    for server, thread in servers:
        server.shutdown()
        thread.join(timeout=10)
        server.server_close()


@pytest.fixture
def remote(monkeypatch):
    """Return a small remote file, and unset NPLM_DATA."""
    monkeypatch.delenv("NPLM_DATA", raising=False)
    # Port 9 (discard) is closed: a test that needs a download sets another address.
    return _remote_files.RemoteFile(
        "corpus.txt",
        "http://127.0.0.1:9/corpus.txt",
        hashlib.sha256(b"a text").hexdigest(),
        archive="corpus.zip",
    )


def test_download_is_kept_in_the_cache(serve, remote, tmp_path):
    folder, address = serve()
    (folder / "corpus.txt").write_bytes(b"a text")
    cache = tmp_path / "cache"
    there = replace(remote, url=f"{address}/corpus.txt")
    assert _remote_files.read_file(there, cache, True) == b"a text"
    assert [path.name for path in cache.iterdir()] == ["corpus.txt"]
    # Without the server.
    assert _remote_files.read_file(remote, cache, True) == b"a text"


@pytest.mark.parametrize(
    ("handler", "content", "message"),
    [
        (QuietHandler, b"a test", "damaged and was not kept.*Try again"),
        (TruncatingHandler, b"a text", "could not be downloaded"),
        (QuietHandler, None, "could not be downloaded.*404.*NPLM_DATA"),
    ],
)
def test_failed_download_leaves_no_file(
    serve, remote, tmp_path, handler, content, message
):
    folder, address = serve(handler)
    if content is not None:
        (folder / "corpus.txt").write_bytes(content)
    there = replace(remote, url=f"{address}/corpus.txt")
    cache = tmp_path / "cache"
    with pytest.raises(OSError, match=f"(?s){message}"):
        _remote_files.read_file(there, cache, True)
    assert list(cache.iterdir()) == []


def test_error_without_a_network_says_where_to_put_the_file(
    remote, tmp_path, monkeypatch
):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with pytest.raises(OSError, match="could not be downloaded") as info:
        _remote_files.read_file(remote, tmp_path, True)
    for part in (remote.url, remote.sha256, str(tmp_path), "NPLM_DATA"):
        assert part in str(info.value)
    # The message is not hidden below the tracebacks of libraries.
    assert info.value.__suppress_context__ and info.value.__cause__ is None


@pytest.mark.parametrize("fetch", [fetch_brown, fetch_ptb])
def test_missing_file_without_download_is_an_error(fetch, tmp_path, monkeypatch):
    monkeypatch.delenv("NPLM_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="download_if_missing=False") as info:
        fetch(data_home=tmp_path, download_if_missing=False)
    assert "https://" in str(info.value)
    assert str(tmp_path) in str(info.value)


def test_error_without_pooch_says_what_to_install(remote, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match="pip install pooch tqdm"):
        _remote_files.read_file(remote, tmp_path, True)


def test_local_files_are_preferred_and_checked(remote, tmp_path, monkeypatch):
    first, second, cache = (tmp_path / name for name in ("first", "second", "cache"))
    for folder in (first, second, cache):
        folder.mkdir()
    monkeypatch.setenv("NPLM_DATA", f"{first}{os.pathsep}{second}")
    (cache / "corpus.txt").write_bytes(b"damaged")
    with zipfile.ZipFile(second / "corpus.zip", "w") as archive:
        archive.writestr("corpus.txt", "a text")
    assert _remote_files.read_file(remote, cache, False) == b"a text"

    (first / "corpus.txt").write_bytes(b"a test")
    with pytest.raises(OSError, match="is damaged") as info:
        _remote_files.read_file(remote, cache, False)
    actual = hashlib.sha256(b"a test").hexdigest()
    for part in (str(first / "corpus.txt"), actual, remote.sha256, "Delete it"):
        assert part in str(info.value)


@pytest.mark.parametrize("content", [b"no zip file", b""])
def test_damaged_archive_is_refused(remote, tmp_path, content):
    (tmp_path / "corpus.zip").write_bytes(content)
    with pytest.raises(OSError, match=r"corpus\.zip is damaged.*Delete it"):
        _remote_files.read_file(remote, tmp_path, False)


def test_nplm_data_must_name_folders(remote, tmp_path, monkeypatch):
    monkeypatch.setenv("NPLM_DATA", str(tmp_path / "absent"))
    with pytest.raises(FileNotFoundError, match=r"NPLM_DATA names .*absent"):
        _remote_files.read_file(remote, tmp_path, False)


@pytest.mark.parametrize("empty", ["", os.pathsep])
def test_empty_nplm_data_is_ignored(remote, tmp_path, monkeypatch, empty):
    monkeypatch.setenv("NPLM_DATA", empty)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus.txt").write_bytes(b"of the folder one happens to be in")
    with pytest.raises(FileNotFoundError, match="is missing"):
        _remote_files.read_file(remote, tmp_path / "cache", False)


def test_cache_folder_follows_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert _remote_files.cache_folder() == tmp_path / "nplm"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert _remote_files.cache_folder() == tmp_path / ".cache" / "nplm"
    assert _remote_files.cache_folder("~/corpora") == tmp_path / "corpora"


def test_brown_tokens_have_marks_of_paragraphs_and_texts():
    text = "\n\n\tThe/at 1/2/cd ./.\n\n\nYes/rb ,/,\nno/rb\n \n\n"
    expected = ["The", "1/2", ".", "<p>", "Yes", ",", "no", "<p>", "<text>"]
    assert _corpora._brown_tokens(text) == expected


# -- text files ---------------------------------------------------------------


def test_text_file_is_one_stream(tmp_path):
    path = tmp_path / "text.md"
    # With a byte order mark, as Windows editors write it.
    path.write_text("The cat, the mat.\nThe hat.\n" * 10, encoding="utf-8-sig")
    corpus = load_text(path, valid=8, test=0.25, min_count=1)
    assert_is_corpus(corpus)
    assert sizes(corpus) == (60, 8, 22)
    assert corpus.boundary is None
    assert corpus.words[corpus.train[:5]].tolist() == ["The", "cat", ",", "the", "mat"]


def test_lines_are_separate_documents(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes(b"a b\r\n\r\n  \r\nb c\x0cd\r\n")
    corpus = load_text(path, valid=1, test=2, min_count=1, lines=True)
    stream = np.concatenate([corpus.train, corpus.valid, corpus.test])
    assert " ".join(corpus.words[stream]) == "a b </s> b c d </s>"
    assert corpus.boundary == 0


def test_folder_is_read_in_sorted_order(tmp_path):
    (tmp_path / "inner").mkdir()
    for name in ("b.txt", "a.txt", "inner/c.txt", "notes.md"):
        (tmp_path / name).write_text(f"{name[-5]} x x", encoding="utf-8")
    corpus = load_text(tmp_path, valid=3, test=3, min_count=1)
    stream = np.concatenate([corpus.train, corpus.valid, corpus.test])
    assert " ".join(corpus.words[stream]) == "a x x b x x c x x"
    with pytest.raises(FileNotFoundError, match=r"matches pattern='\*\.rst'"):
        load_text(tmp_path, pattern="*.rst")


def test_vocabulary_is_that_of_the_stream_or_of_the_training_part(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("a a b b c c", encoding="utf-8")
    kwargs = {"valid": 2, "test": 2, "min_count": 2}
    assert load_text(path, **kwargs).words.tolist() == ["<unk>", "a", "b", "c"]
    corpus = load_text(path, vocabulary_from="train", **kwargs)
    assert corpus.words.tolist() == ["<unk>", "a"]
    assert unknown(corpus) == (0, 2, 2)
    with pytest.raises(ValueError, match="got 'test'"):
        load_text(path, vocabulary_from="test")


def test_tokenizer_applies_the_preprocessing_of_ap_news(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("He met Ann in 1995 . " * 5, encoding="utf-8")
    tokenizer = Tokenizer(lowercase=True, number="<num>", proper_noun="<name>")
    corpus = load_text(path, tokenizer=tokenizer, max_words=6)
    assert " ".join(corpus.words[corpus.train[:6]]) == "he <unk> <name> in <num> ."


# Without the time: parallel test processes must collect equal names.
GZIP = partial(gzip.compress, mtime=0)


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (None, FileNotFoundError, r"text\.txt cannot be read: No such file"),
        (b"", ValueError, r"text\.txt is empty"),
        (b" \n", ValueError, r"text\.txt is empty"),
        (b"caf\xe9 au lait", ValueError, "line 1: not UTF-8"),
        ("é a".encode("utf-16"), ValueError, r"text\.txt, line 1: it has a NUL"),
        (b"two words", ValueError, "too small for its splits"),
        (GZIP(b"two words"), ValueError, "too small for its splits"),
    ],
)
def test_invalid_files_are_refused(tmp_path, content, error, message):
    path = tmp_path / "text.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(error, match=message):
        load_text(path)


def test_unreadable_file_is_named(tmp_path, monkeypatch):
    # Root can read all files, so the error is simulated.
    def refuse(path, mode):
        raise PermissionError(13, "Permission denied", str(path))

    (tmp_path / "text.txt").touch()
    monkeypatch.setattr("nplm.base.files.atomic_files.open", refuse, raising=False)
    with pytest.raises(PermissionError, match=r"text\.txt cannot be read: Permission"):
        load_text(tmp_path / "text.txt")
