"""The folder of a checkpoint: who writes there, and what becomes of what is in it."""

import os
from errno import EIO, ENOLCK, ENOSYS, ENOTSUP
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from nplm import CheckpointError
from nplm.training import checkpoint as checkpoints
from tests.helpers import paper_lm
from tests.helpers_checkpoint import SETTINGS, n_saves


@pytest.mark.parametrize("folder", ["", "a file", "a file/below"])
def test_a_bad_folder_is_refused_at_once(data, tmp_path, monkeypatch, folder):
    monkeypatch.chdir(tmp_path)
    Path("a file").touch()
    done = []
    with pytest.raises((ValueError, OSError), match=r"no folder|be a folder"):
        paper_lm(**SETTINGS).fit(
            **data, checkpoint=folder, progress=lambda *a: done.append(a)
        )
    assert not done
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("times", [1, 10**9])
def test_a_full_disk_ends_no_fit(data, tmp_path, monkeypatch, times):
    lm = paper_lm(max_iter=3, **SETTINGS)
    whole = clone(lm).fit(**data)
    write, calls = checkpoints.write_tensors, []

    def full(*args):
        calls.append(1)
        if 3 <= len(calls) < 3 + times:
            raise OSError(28, "No space left on device")
        return write(*args)

    monkeypatch.setattr(checkpoints, "write_tensors", full)
    with pytest.warns(RuntimeWarning, match="could not be saved .*No space left"):
        lm.fit(**data, checkpoint=tmp_path)
    np.testing.assert_array_equal(lm.U_, whole.U_)
    # What was saved before the disk was full, or after, is good to go on from.
    monkeypatch.setattr(checkpoints, "write_tensors", write)
    np.testing.assert_array_equal(
        clone(lm).fit(**data, checkpoint=tmp_path).U_, whole.U_
    )
    assert len(list(tmp_path.iterdir())) == 3


def test_what_a_kill_left_is_removed(data, tmp_path):
    lm = paper_lm(max_iter=1, **SETTINGS).fit(**data, checkpoint=tmp_path)
    (saved,) = tmp_path.glob("*.safetensors")
    left = [
        "save-0.0-of-1.safetensors",
        "save-99.0-of-1.safetensors.ab12.part",
        "latest.json.cd.part",
    ]
    for name in left:
        (tmp_path / name).write_bytes(b"left over")
    clone(lm).fit(**data, checkpoint=tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {saved.name, "latest.json", "lock"}


def test_one_fit_at_a_time_in_a_folder(data, tmp_path):
    lm = paper_lm(max_iter=1, **SETTINGS)

    def another(*args):
        with pytest.raises(CheckpointError, match="Another fit is at work in"):
            clone(lm).fit(**data, checkpoint=tmp_path)

    lm.fit(**data, checkpoint=tmp_path, progress=another)
    clone(lm).fit(**data, checkpoint=tmp_path)  # after it


@pytest.mark.parametrize("number", [ENOSYS, ENOTSUP, ENOLCK])
def test_a_file_system_without_locks_will_do(data, tmp_path, monkeypatch, number):
    def flock(file, how):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(checkpoints.fcntl, "flock", flock)
    lm = paper_lm(max_iter=1, **SETTINGS).fit(**data, checkpoint=tmp_path)
    assert lm.n_iter_ == 1 and n_saves(tmp_path) >= 1


def test_a_lock_that_fails_is_told(data, tmp_path, monkeypatch):
    def flock(file, how):
        raise OSError(EIO, "Input/output error")

    monkeypatch.setattr(checkpoints.fcntl, "flock", flock)
    with pytest.raises(OSError, match="Input/output error"):
        paper_lm(max_iter=1, **SETTINGS).fit(**data, checkpoint=tmp_path)


@pytest.mark.parametrize("kind", ["link", "second name", "pipe"])
def test_a_lock_is_no_way_to_write_elsewhere(data, tmp_path, kind):
    precious, folder = tmp_path / "precious", tmp_path / "saves"
    precious.write_text("to be kept")
    folder.mkdir()
    if kind == "link":
        (folder / "lock").symlink_to(precious)
    elif kind == "second name":
        os.link(precious, folder / "lock")
    else:
        os.mkfifo(folder / "lock")
    with pytest.raises(CheckpointError, match=r"lock is .* written over: remove it"):
        paper_lm(max_iter=1, **SETTINGS).fit(**data, checkpoint=folder)
    assert precious.read_text() == "to be kept"


@pytest.mark.parametrize("name", ["latest.json", "save-1.0-of-1.safetensors"])
def test_links_are_replaced_and_not_what_they_name(data, tmp_path, name):
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "saves"
    folder.mkdir()
    (folder / name).symlink_to(elsewhere)
    paper_lm(max_iter=1, **SETTINGS).fit(**data, checkpoint=folder)
    assert not (folder / name).is_symlink()
    assert not elsewhere.exists()
