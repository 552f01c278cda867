"""Estimation in bounded memory writes the same bytes as models in memory."""

import errno
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import nplm
import nplm.base.files.atomic_files
from nplm import KneserNeyLM, Tokenizer, Vocabulary
from nplm.formats import (
    estimate_arpa,
    estimate_binary,
    load_binary,
    save_binary,
    write_arpa,
)
from nplm.models.ngrams.external import estimation, levels, scratch
from nplm.models.training.parallel.threads import Threads
from tests.helpers import text
from tests.helpers.binary import read_parts

LETTERS = st.sampled_from("abcdefgh")
LINES = st.lists(st.lists(LETTERS, min_size=1, max_size=9), min_size=1, max_size=40)


def lines_of(n=3000, n_words=50, seed=0):
    ids = text(n, seed=seed, n_words=n_words)
    cuts = np.sort(np.random.default_rng(seed).integers(0, n, n // 7))
    return [[f"w{i}" for i in line] for line in np.split(ids, cuts) if len(line)]


def joined(lines):
    return io.BytesIO("\n".join(map(" ".join, lines)).encode())


def in_memory(path, lines, vocabulary, *args, save=save_binary, **parameters):
    """Write the file of the same model, fitted in memory."""
    ids = vocabulary.fit_transform(lines)
    model = KneserNeyLM(
        *args,
        n_words=vocabulary.n_words_,
        boundary=vocabulary.boundary_id_,
        **parameters,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        save(model.fit_stream(ids), path, vocabulary.words_.tolist())
    return model


def on_disk(
    path,
    lines,
    vocabulary,
    *args,
    estimate=estimate_binary,
    memory="1M",
    n_jobs=None,
    options=None,
    **parameters,
):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return estimate(
            KneserNeyLM(*args, **parameters),
            [joined(lines)],
            path,
            vocabulary=vocabulary,
            memory=memory,
            n_jobs=n_jobs,
            **(options or {}),
        )


@settings(max_examples=40)
@given(
    lines=LINES,
    order=st.integers(1, 6),
    memory=st.sampled_from(["1K", "3K", "1M"]),
    n_jobs=st.integers(1, 3),
    min_count=st.integers(1, 2),
    interpolate=st.booleans(),
    discounts=st.sampled_from(["modified", "plain"]),
    min_counts=st.sampled_from([None, None, (1, 1, 2), (1, 2), (2, 2, 3)]),
    min_counts_of=st.sampled_from(["modified", "text"]),
)
def test_file_is_that_of_the_model_in_memory(
    lines,
    order,
    memory,
    n_jobs,
    min_count,
    interpolate,
    discounts,
    min_counts,
    min_counts_of,
):
    vocabulary = Vocabulary(min_count)
    parameters = {"interpolate": interpolate, "discounts": discounts}
    parameters |= {"min_counts": min_counts, "min_counts_of": min_counts_of}
    with tempfile.TemporaryDirectory() as folder:
        found, expected = Path(folder) / "found", Path(folder) / "expected"
        on_disk(
            found, lines, vocabulary, order, memory=memory, n_jobs=n_jobs, **parameters
        )
        in_memory(expected, lines, vocabulary, order, **parameters)
        assert read_parts(found)[0] == read_parts(expected)[0]
        assert found.read_bytes() == expected.read_bytes()
        options = dict(estimate=estimate_arpa, memory=memory, n_jobs=n_jobs)
        on_disk(found, lines, vocabulary, order, **options, **parameters)
        in_memory(expected, lines, vocabulary, order, save=write_arpa, **parameters)
        assert found.read_bytes() == expected.read_bytes()
        if order > 1:
            options = dict(options={"bits": 6}, memory=memory, n_jobs=n_jobs)
            on_disk(found, lines, vocabulary, order, **options, **parameters)
            save = partial(save_binary, bits=6)
            in_memory(expected, lines, vocabulary, order, save=save, **parameters)
            assert found.read_bytes() == expected.read_bytes()


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("min_counts_of", ["modified", "text"])
def test_cut_offs_do_not_depend_on_windows(
    tmp_path, monkeypatch, order, n_jobs, min_counts_of
):
    monkeypatch.setattr(estimation, "SPILL", 64)
    monkeypatch.setattr(estimation, "MIN_BUCKETS", 1 << 8)
    lines = lines_of()
    cut = {"min_counts": (1, 1, 2), "min_counts_of": min_counts_of}
    cut["min_counts"] = (1, 2) if order == 2 else (1, 1, 2)
    found, expected = (tmp_path / name for name in ("found", "expected"))
    on_disk(found, lines, Vocabulary(), order, memory="2K", n_jobs=n_jobs, **cut)
    model = in_memory(expected, lines, Vocabulary(), order, **cut)
    assert found.read_bytes() == expected.read_bytes()
    # SRILM's rule leaves n-grams without their suffixes, and KenLM's does not.
    tables = [set(map(tuple, model.trie_.ngrams(k).tolist())) for k in range(order)]
    lacking = [
        gram
        for shorter, own in pairwise(tables)
        for gram in own
        if gram[1:] not in shorter
    ]
    assert bool(lacking) == (min_counts_of == "modified" and order > 3)


def test_tokenizer_splits_the_text_and_is_loaded_with_the_model(tmp_path):
    text = "\ufeffDon't pay $3.50, sir.\n\nPay; it isn't much.\n" * 3
    lines = [
        own for own in Tokenizer().transform(text.lstrip("\ufeff").split("\n")) if own
    ]
    found, expected = (tmp_path / name for name in ("found", "expected"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        estimated = estimate_binary(
            KneserNeyLM(3), [io.BytesIO(text.encode())], found, tokenizer=Tokenizer()
        )
    in_memory(expected, lines, Vocabulary(), 3)
    for name, array in read_parts(expected)[1].items():
        assert_array_equal(array, read_parts(found)[1][name])
    assert (estimated.n_lines, estimated.n_tokens) == (6, sum(map(len, lines)))
    loaded = nplm.load(found)
    assert str(loaded.tokenizer_) == str(Tokenizer())
    plain = nplm.load(expected)
    assert_array_equal(
        loaded.score_samples(["Don't pay."]), plain.score_samples(["Don't pay ."])
    )
    with pytest.raises(ValueError, match="line 2: not UTF-8"):
        estimate_binary(
            KneserNeyLM(3), [io.BytesIO(b"a\n\xff")], found, tokenizer=Tokenizer()
        )


@pytest.mark.parametrize(
    "changes", [{"lowercase": True}, {"number": "<num>"}, {"proper_noun": "<name>"}]
)
def test_tokenizer_that_changes_words_between_blanks_is_loaded(tmp_path, changes):
    tokenizer = Tokenizer(r"[^ \t\r\n]+", **changes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        estimate_binary(
            KneserNeyLM(2), [io.BytesIO(b"a Rose 3\n" * 3)], tmp_path / "model",
            tokenizer=tokenizer,
        )  # fmt: skip
    loaded = nplm.load(tmp_path / "model")
    assert loaded.tokenizer_.get_params() == tokenizer.get_params()
    [ids] = loaded.vocabulary_.transform(loaded.tokenizer_.transform(["a Rose 3"]))
    assert loaded.vocabulary_.unknown_id_ not in ids


def test_compiled_pattern_is_refused_before_the_text_is_read(tmp_path):
    tokenizer = Tokenizer(re.compile(r"\w+", re.I))
    with pytest.raises(ValueError, match=r"has a compiled pattern, .* to a string"):
        estimate_binary(KneserNeyLM(2), unread(), tmp_path / "m", tokenizer=tokenizer)
    assert not (tmp_path / "m").exists()


def unread():
    pytest.fail("the text was read")
    yield


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_file_does_not_depend_on_runs_and_windows(tmp_path, monkeypatch, order, n_jobs):
    # Runs merge in two steps, and each thread fills hash tables in several windows.
    monkeypatch.setattr(levels, "MAX_RUNS", 8)
    monkeypatch.setattr(estimation, "SPILL", 16)
    monkeypatch.setattr(estimation, "MIN_BUCKETS", 1 << 8)
    lines = lines_of()
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        estimated = estimate_binary(
            KneserNeyLM(order),
            [joined(lines)],
            tmp_path / "found",
            memory="2K",
            n_jobs=n_jobs,
            folder=tmp_path,
            progress=lambda *told: seen.append(told),
        )
    model = in_memory(tmp_path / "expected", lines, Vocabulary(), order)
    found, expected = (tmp_path / name for name in ("found", "expected"))
    assert found.read_bytes() == expected.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["expected", "found"]
    assert_array_equal(estimated.n_ngrams, model.n_ngrams_)
    assert_array_equal(estimated.discounts, model.discounts_)
    assert (estimated.n_lines, estimated.n_tokens) == (len(lines), sum(map(len, lines)))
    stages = list(dict.fromkeys(stage for stage, _, _ in seen))
    assert stages == [
        "reading",
        "sorting n-grams",
        "merging runs",
        "merging",
        "putting together",
        "estimating",
        "hashing",
    ]
    last = {stage: (done, total) for stage, done, total in seen}
    assert all(done == total for done, total in list(last.values())[1:]), last


def test_compressed_arpa_file_of_many_blocks(tmp_path):
    lines, seen = lines_of(), []
    found, expected = (tmp_path / f"{name}.arpa.gz" for name in ("found", "expected"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        estimate_arpa(
            KneserNeyLM(4),
            [joined(lines)],
            found,
            memory="2K",
            folder=tmp_path,
            progress=lambda *told: seen.append(told),
        )
    # More contexts of two words than weights in a block.
    model = in_memory(expected, lines, Vocabulary(), 4, save=write_arpa)
    assert np.diff(model.trie_.level_start)[2] > 1 << 8
    assert found.read_bytes() == expected.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["expected.arpa.gz", "found.arpa.gz"]
    stage, done, total = seen[-1]
    # The n-grams and the line of <s>.
    assert (stage, done, total) == ("writing", total, model.n_ngrams_.sum() + 1)


def test_texts_are_read_from_files_archives_and_streams(tmp_path):
    import gzip

    lines = lines_of(400)
    (tmp_path / "a.txt").write_bytes(joined(lines[:20]).getvalue())
    packed = gzip.compress(joined(lines[20:30]).getvalue() + b"\n \n\n")
    (tmp_path / "b.txt.gz").write_bytes(packed)
    texts = [tmp_path / "a.txt", str(tmp_path / "b.txt.gz"), joined(lines[30:])]
    vocabulary = Vocabulary(words=["w1", "w2", "</s>"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        estimated = estimate_binary(
            KneserNeyLM(3), texts, tmp_path / "found", vocabulary=vocabulary
        )
    in_memory(tmp_path / "expected", lines, vocabulary, 3)
    found, expected = (tmp_path / name for name in ("found", "expected"))
    assert found.read_bytes() == expected.read_bytes()
    assert estimated.n_unknown == vocabulary.count_unknown(lines).sum()
    assert not hasattr(KneserNeyLM(3), "order_")
    model, _ = load_binary(found, verify=True)
    assert_allclose(model.predict_proba([[0, 1]]).sum(), 1, rtol=1e-6)
    (tmp_path / "b.txt.gz").write_bytes(packed[:-9])
    with pytest.raises(ValueError, match=r"b.txt.gz cannot be decompressed"):
        estimate_binary(KneserNeyLM(3), texts, tmp_path / "found")


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
    for path in (text, link):
        with pytest.raises(ValueError, match=r"^path='.*' is one of the texts, which"):
            estimate(KneserNeyLM(2), [io.BytesIO(b"c\n"), text], path, folder=tmp_path)
    assert text.read_bytes() == b"a b\n"
    assert sorted(os.listdir(tmp_path)) == ["link", "text.txt"]


STAGES = ["reading", "sorting n-grams", "merging", "estimating"]
LAST = {estimate_binary: "hashing", estimate_arpa: "writing"}


@pytest.mark.parametrize(
    ("estimate", "stage"),
    [(estimate_binary, stage) for stage in STAGES] + list(LAST.items()),
)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_interrupt_leaves_no_files(tmp_path, estimate, stage, n_jobs):
    def interrupt(at, done, total):
        if at == stage and done > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        estimate(
            KneserNeyLM(3),
            [joined(lines_of(500))],
            tmp_path / "model",
            memory="2K",
            folder=tmp_path,
            n_jobs=n_jobs,
            progress=interrupt,
        )
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("estimate", LAST)
@pytest.mark.parametrize("n_room", [0, 1, 2, 5])
def test_error_of_a_full_disk_names_the_folder(tmp_path, monkeypatch, estimate, n_room):
    calls = []

    def full(file, offset, n_bytes):
        calls.append(n_bytes)
        if len(calls) > n_room:
            raise OSError(errno.ENOSPC, "No space left on device")
        os.truncate(file, n_bytes)

    monkeypatch.setattr(nplm.base.files.atomic_files.os, "posix_fallocate", full)
    with pytest.raises(OSError, match=r"is full: .* GiB needed there") as caught:
        estimate(
            KneserNeyLM(3), [joined(lines_of(500))], tmp_path / "model", folder=tmp_path
        )
    assert str(tmp_path) in str(caught.value)
    assert caught.value.errno == errno.ENOSPC
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device is always full")
@pytest.mark.parametrize("name", ["ids", "run.1", "part.0.2.words"])
def test_error_of_a_full_disk_while_allocating_names_the_folder(
    tmp_path, monkeypatch, name
):
    def full(path, *args, **options):
        if path.name == name:
            return open("/dev/full", "wb")
        return open(path, *args, **options)

    monkeypatch.setattr(scratch, "open", full, raising=False)
    needs = "more is" if name == "ids" else "up to .* GiB"
    with pytest.raises(
        OSError, match=rf"nplm-.* is full: {needs} needed there"
    ) as caught:
        estimate_binary(
            KneserNeyLM(3),
            [joined(lines_of(500))],
            tmp_path / "model",
            folder=tmp_path,
            memory="4K",
            n_jobs=2,
        )
    assert caught.value.errno == errno.ENOSPC
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device is always full")
def test_error_of_a_full_disk_while_writing_arpa_names_the_folder(
    tmp_path, monkeypatch
):
    def full(path, *args, **options):
        if path.suffix != ".part":
            return open(path, *args, **options)
        path.touch()
        return open("/dev/full", "wb")

    kept = tmp_path / "kept"
    kept.mkdir()
    monkeypatch.setattr(nplm.base.files.atomic_files, "open", full, raising=False)
    with pytest.raises(OSError, match="is full: more is needed there") as caught:
        estimate_arpa(
            KneserNeyLM(3), [joined(lines_of(500))], tmp_path / "model", folder=kept
        )
    assert f"the disk of {tmp_path} is" in str(caught.value)
    assert os.listdir(tmp_path) == ["kept"] and not os.listdir(kept)


PEAK = """
import sys, warnings
from nplm import KneserNeyLM, formats

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * next(int(x.split()[1]) for x in lines if x.startswith("VmHWM"))

before = peak()
getattr(formats, sys.argv[1])(
    KneserNeyLM(5), [sys.argv[2]], sys.argv[3], memory="32M", n_jobs=2,
    folder=sys.argv[4],
)
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells a process's peak")
@pytest.mark.parametrize("estimate", ["estimate_binary", "estimate_arpa"])
def test_peak_memory_is_bounded(tmp_path, estimate):
    """Estimate from a million words in a separate process, within the limit."""
    rng = np.random.default_rng(0)
    ids = np.minimum(rng.zipf(1.15, 1_000_000), 20_000)
    spelled = [f"w{i}{end}".encode() for end in " \n" for i in range(20_001)]
    ends = 20_001 * (rng.random(len(ids)) < 0.05)
    words = np.array(spelled, dtype=object)[ids + ends]
    (tmp_path / "text").write_bytes(b"".join(words))
    names = [str(tmp_path / name) for name in ("text", "model")]
    done = subprocess.run(
        [sys.executable, "-c", PEAK, estimate, *names, str(tmp_path)],
        capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert (tmp_path / "model").stat().st_size > 1.4 * (32 << 20)
    assert int(done.stdout) < 1.3 * (32 << 20)


def test_only_folders_of_killed_processes_are_removed(tmp_path):
    def temporary():
        return scratch.Scratch(tmp_path, 1 << 20, Threads(1))

    def names():
        return {path.name for path in tmp_path.iterdir()}

    child = os.fork()
    if child == 0:
        temporary().__enter__().array("much", "u1", 1 << 20)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    (left,) = tmp_path.iterdir()
    assert (left / "much").stat().st_size == 1 << 20
    # Folders of another machine, whose locks may be invisible, and of an unknown
    # owner, and a link.
    (prefix,) = re.findall("nplm-.*-", left.name)
    others = [tmp_path / f"nplm-other.{prefix}x", tmp_path / f"{prefix}mine"]
    shutil.copytree(left, others[0])
    others[1].mkdir()
    (others[1] / "kept").touch()
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(left, elsewhere)
    (tmp_path / f"{prefix}link").symlink_to(elsewhere)
    others = [*others, elsewhere, tmp_path / f"{prefix}link"]
    (tmp_path / f"{prefix}empty").mkdir()  # killed before it had an owner
    with temporary() as one, temporary() as other:
        assert names() == {path.name for path in (*others, one.folder, other.folder)}
    assert names() == {path.name for path in others}
    assert all(list(path.iterdir()) for path in others)


def test_folder_is_made_again_if_it_is_removed_while_empty(tmp_path, monkeypatch):
    made, mkdtemp = [], tempfile.mkdtemp

    def taken_for_abandoned(**where):
        made.append(mkdtemp(**where))
        if len(made) == 1:
            os.rmdir(made[0])
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", taken_for_abandoned)
    with scratch.Scratch(tmp_path, 1 << 20, Threads(1)) as one:
        assert str(one.folder) == made[1]
    assert not list(tmp_path.iterdir())


def test_folder_of_a_killed_removal_is_removed_by_the_next(tmp_path):
    unlink, n_kills = os.unlink, 0

    def kill(after):
        left = after

        def killed(*args, **kwargs):
            nonlocal left
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
            unlink(*args, **kwargs)

        return killed

    for after in range(4):
        child = os.fork()
        if child == 0:
            try:
                one = scratch.Scratch(tmp_path, 1 << 20, Threads(1)).__enter__()
                for name in ("a", "z"):
                    one.array(name, "u1", 10)
                os.unlink = kill(after)
                one.__exit__(None, None, None)
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        n_kills += os.WIFSIGNALED(status)
        with scratch.Scratch(tmp_path, 1 << 20, Threads(1)) as one:
            assert list(tmp_path.iterdir()) == [one.folder]
    assert n_kills == 3


def test_error_names_an_invalid_temporary_folder(tmp_path):
    (tmp_path / "file").touch()
    for name in ("absent", "file"):
        with pytest.raises(NotADirectoryError, match=f"{name}', .* not a directory"):
            estimate_binary(KneserNeyLM(2), [], tmp_path / "x", folder=tmp_path / name)


def test_killed_estimation_leaves_the_old_file_or_the_new_one():
    kinds = ["estimation", "estimation, ARPA"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.hours.kills", "--kills", "4", "--fits", *kinds],
        capture_output=True, text=True, cwd=Path(__file__).parents[3],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(": 4 kills,") == 2
