"""Binary files are ready at once, and verified once, in memory that does not grow."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import nplm
from nplm import KneserNeyLM
from nplm.base.files.tensors import TensorFile
from nplm.cli import main
from nplm.formats import load_binary, save_binary
from nplm.formats.binary import binary_reading
from tests.helpers import peak_of, small_text

pytestmark = small_text
N_WORDS, MANY_WORDS = 3000, 200_000
FORMS = [{}, {"bits": 8}]


def save(path, n_tokens, n_words=N_WORDS, **form):
    ids = np.random.default_rng(0).integers(1, n_words, n_tokens)
    ids[::20] = 0
    model = KneserNeyLM(3, n_words=n_words, boundary=0).fit_stream(ids)
    words = ["</s>", "<unk>", *(f"w{i}" for i in range(2, n_words))]
    save_binary(model, path, words, **form)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a mapped file of some 25 MB, one of 8 bits, and others.

    Small ones, and those of many words.
    """
    folder = tmp_path_factory.mktemp("opening")
    for name, form in zip(("mapped", "bits"), FORMS):
        save(folder / name, 700_000, **form)
        save(folder / f"small-{name}", 2000, **form)
        save(folder / f"words-{name}", 20_000, MANY_WORDS, **form)
    return folder


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The folder of notes, which are written at once."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(binary_reading, "SETTLED_NANOSECONDS", 0)
    return tmp_path / "cache" / "nplm" / "verified"


# A small model first, so that what it loads does not count.
FIRST = """
import sys
import numpy as np
from click.testing import CliRunner
import nplm
from nplm import kenlm
from nplm.cli import main

def command(name, path):
    ran = CliRunner().invoke(main, [name, path], input="w3 w4 w5\\n")
    assert ran.exit_code == 0, ran.output

texts = ["w3 w4 w5"]
questions = [
    lambda path: nplm.load(path).estimator_.log_prob([[1, 2], [2, 3]], [3, 4]),
    lambda path: nplm.load(path).scorer().score(texts[0]),
    lambda path: (scorer := nplm.load(path).scorer()).step(scorer.begin(), "w3"),
    lambda path: nplm.load(path).score_samples(texts),
    lambda path: nplm.load(path).token_scores(texts),
    lambda path: nplm.ModelFile(path).load().perplexity(texts),
    lambda path: kenlm.Model(path).score(texts[0]),
    lambda path: "w3" in kenlm.Model(path),
    lambda path: command("score", path),
    lambda path: command("query", path),
]

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(x.split()[1]) for x in lines if x.startswith("VmHWM"))

folder, name = sys.argv[1:]
for ask in questions:
    ask(f"{folder}/small-{name.removeprefix('words-')}")
    open("/proc/self/clear_refs", "w").write("5")
    before = peak()
    ask(f"{folder}/{name}")
    print((peak() - before) * 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mapped", "bits", "words-mapped", "words-bits"])
def test_peak_memory_of_a_first_question_is_small_beside_the_file(folder, name):
    ran = subprocess.run(
        [sys.executable, "-c", FIRST, str(folder), name],
        check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    found = list(map(int, ran.stdout.split()))
    assert len(found) == 10
    # Also the pages of the file that were read, which may be large: of 2 MB each.
    assert max(found) < 12 << 20
    if name == "mapped":
        assert (folder / name).stat().st_size > 20 << 20


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mapped", "bits"])
def test_verification_takes_little_memory(folder, cache, name):
    load_binary(folder / f"small-{name}", verify=True)
    assert peak_of(lambda: load_binary(folder / name, verify=True)) < 20 << 20


@pytest.fixture(params=FORMS, ids=str)
def path(request, tmp_path):
    path = tmp_path / "model"
    save(path, 2000, **request.param)
    return path


def flip(path):
    """Change a bit in place."""
    damaged = bytearray(path.read_bytes())
    damaged[-500] ^= 1
    with open(path, "r+b") as file:
        file.write(damaged)


@pytest.fixture
def checks(monkeypatch):
    """The names of the checks of numbers that were made."""
    made = []
    for module, name in (
        (binary_reading, "check_hashed"),
        (binary_reading, "restored_quantized"),
    ):
        own = getattr(module, name)

        def noted(*args, name=name, own=own, **kwargs):
            if kwargs.get("check", True):
                made.append(name)
            return own(*args, **kwargs)

        monkeypatch.setattr(module, name, noted)
    return made


def test_file_is_verified_once(path, cache, checks):
    load_binary(path)
    nplm.load(path)
    assert not checks and not cache.exists()
    first, _ = load_binary(path, verify=True)
    assert checks
    del checks[:]
    X, y = [[1, 2], [2, 3]], [3, 4]
    for again in (load_binary(path, verify=True)[0], nplm.load(path, verify=True)):
        model = getattr(again, "estimator_", again)
        np.testing.assert_array_equal(model.log_prob(X, y), first.log_prob(X, y))
    assert not checks


@pytest.mark.parametrize("keep_times", [False, True])
def test_file_that_was_changed_is_verified_again(path, cache, keep_times):
    load_binary(path, verify=True)
    before = path.stat()
    flip(path)
    if keep_times:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    load_binary(path)
    for load in (load_binary, nplm.load):
        with pytest.raises(ValueError, match="is damaged: the checksum of"):
            load(path, verify=True)


def other_rules(path, note):
    note.write_text(json.dumps(json.loads(note.read_text()) | {"rules": 0}))


CHANGES = {
    "moved": lambda path, note: path.rename(path.with_name("moved")),
    "written again": lambda path, note: path.write_bytes(path.read_bytes()),
    "an empty note": lambda path, note: note.write_bytes(b""),
    "a deep note": lambda path, note: note.write_bytes(b"[" * 99_999),
    "no text": lambda path, note: note.write_bytes(b"\xff"),
    "other rules": other_rules,
    "a folder": lambda path, note: (note.unlink(), note.mkdir()),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_file_is_verified_again_after_a_change_of_it_or_of_its_note(
    path, cache, checks, change
):
    load_binary(path, verify=True)
    del checks[:]
    [note] = cache.iterdir()
    change(path, note)
    [changed] = {path, path.with_name("moved")} & set(path.parent.iterdir())
    load_binary(changed, verify=True)
    assert checks


@pytest.mark.parametrize("why", ["no folder for it", "just written"])
def test_file_without_a_note_is_verified_each_time(
    path, cache, checks, monkeypatch, why
):
    if why == "just written":
        monkeypatch.setattr(binary_reading, "SETTLED_NANOSECONDS", 10**15)
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
    for _ in range(2):
        load_binary(path, verify=True)
        assert checks and not cache.exists()
        del checks[:]


def test_command_verifies_when_asked(path, cache):
    flip(path)
    ran = CliRunner().invoke(main, ["score", str(path)], input="w3 w4\n")
    assert ran.exit_code == 0
    ran = CliRunner().invoke(main, ["score", "--verify", str(path)], input="w3 w4\n")
    assert ran.exit_code == 1
    assert "model is damaged: the checksum of" in ran.stderr


def test_levels_of_a_file_that_is_changed_later_are_not_read_again(tmp_path):
    path = tmp_path / "model"
    save(path, 2000)
    model, _ = load_binary(path)
    X, y = [[1, 2], [2, 3]], [3, 4]
    expected = model.log_prob(X, y), model.predict_proba(X)
    file = TensorFile(path)
    with open(path, "r+b") as changed:
        for name in ("bucket_start", "level_start", "n_ngrams"):
            _, _, first, last = file._places[name]
            changed.seek(file._start + first)
            changed.write(b"\x7f" * (last - first))
    np.testing.assert_array_equal(model.log_prob(X, y), expected[0])
    np.testing.assert_array_equal(model.predict_proba(X), expected[1])
