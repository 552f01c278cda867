"""The folder of a checkpoint: locks, failing writes and other files in it."""

import os
import shutil
from errno import EIO, ENOLCK, ENOSYS, ENOTSUP
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from nplm import CheckpointError, DivergenceError
from nplm.models.neural.fitting.epochs import Epochs
from nplm.models.training import checkpoint as checkpoints
from nplm.models.training.parallel.processes import ALONE
from tests.helpers import paper_lm
from tests.helpers.checkpoint import SETTINGS, Killed, n_saves


@pytest.mark.parametrize("folder", ["", "a file", "a file/below"])
def test_a_bad_folder_is_refused_at_once(data, tmp_path, monkeypatch, folder):
    monkeypatch.chdir(tmp_path)
    Path("a file").touch()
    done = []
    with pytest.raises((ValueError, OSError), match=r"is no folder|be the folder"):
        paper_lm(**SETTINGS).fit(
            **data, checkpoint=folder, progress=lambda *a: done.append(a)
        )
    assert not done
    assert len(list(tmp_path.iterdir())) == 1


def lose_the_folder(folder):
    shutil.rmtree(folder)


def put_a_file_in_its_place(folder):
    shutil.rmtree(folder)
    folder.write_text("not a folder")


def put_folders_in_place_of_its_files(folder):
    for name in ["latest.json", *(f"save-{i}.0-of-1.safetensors" for i in range(99))]:
        (folder / name).unlink(missing_ok=True)
        (folder / name / "inside").mkdir(parents=True)


@pytest.mark.parametrize(
    "happens",
    [lose_the_folder, put_a_file_in_its_place, put_folders_in_place_of_its_files],
)
def test_fit_continues_without_its_folder(data, tmp_path, happens):
    lm = paper_lm(max_iter=2, **SETTINGS)
    whole, folder, done = clone(lm).fit(**data), tmp_path / "saves", []

    def progress(*figures):
        if not done:
            happens(folder)
        done.append(figures)

    with pytest.warns(
        RuntimeWarning, match="The fit continues, but could not be saved"
    ):
        lm.fit(**data, checkpoint=folder, progress=progress)
    np.testing.assert_array_equal(lm.U_, whole.U_)


@pytest.mark.parametrize("checkpoint", [5, True, b"folder", ["folder"]])
def test_checkpoint_of_another_type_is_refused(data, checkpoint):
    message = r"checkpoint=.* is of type \w+: pass the path of a folder"
    with pytest.raises(TypeError, match=message):
        paper_lm(max_iter=1, **SETTINGS).fit(**data, checkpoint=checkpoint)


@pytest.mark.parametrize("kind", ["pipe", "folder"])
@pytest.mark.parametrize("name", ["latest.json", "save-1.0-of-1.safetensors", "lock"])
def test_pipe_or_folder_in_place_of_a_file_is_refused(data, tmp_path, name, kind):
    lm = paper_lm(max_iter=1, **SETTINGS)
    with pytest.raises(Killed):
        lm.fit(**data, checkpoint=tmp_path, progress=kill_after_a_save(tmp_path))
    (tmp_path / "lock").touch()
    saved = next(tmp_path.glob("save-*"))
    path = saved if name.startswith("save") else tmp_path / name
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(CheckpointError, match=f"{path.name} is .*(pipe|folder).*emove"):
        clone(lm).fit(**data, checkpoint=tmp_path)


def kill_after_a_save(folder):
    def progress(*figures):
        if n_saves(folder):
            raise Killed

    return progress


def test_saves_take_a_small_share_of_the_time(tmp_path, monkeypatch):
    now, takes = [0.0], [0.01, 0.2, 2.0, 0.0]
    monkeypatch.setattr(checkpoints, "SECONDS_A_SAVE", 60)
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: now[0])
    checkpoint = checkpoints.Checkpoint(tmp_path, {}, ALONE)
    write = checkpoints.write_tensors

    def slowly(*args):
        now[0] += takes.pop(0)
        return write(*args)

    monkeypatch.setattr(checkpoints, "write_tensors", slowly)
    with checkpoint:
        for interval in (5, 5, 20, 60):
            now[0] += interval - 0.01
            assert not checkpoint.due()[0]
            now[0] += 0.02
            assert checkpoint.due()[0]
            checkpoint.save({}, {})


def test_discard_leaves_what_it_cannot_remove(tmp_path):
    (tmp_path / "latest.json").mkdir()
    (tmp_path / "lock").touch()
    checkpoints.discard(tmp_path)
    assert os.listdir(tmp_path) == ["latest.json"]


def test_files_of_killed_fits_are_removed(data, tmp_path):
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
    holder = rf"Another fit \(process {os.getpid()} on .+\) is using {tmp_path}: wait"

    def another(*args):
        with pytest.raises(CheckpointError, match=holder):
            clone(lm).fit(**data, checkpoint=tmp_path)

    lm.fit(**data, checkpoint=tmp_path, progress=another)
    clone(lm).fit(**data, checkpoint=tmp_path)  # works after the first fit


def test_fit_that_diverges_leaves_no_checkpoint(data, tmp_path, monkeypatch):
    lm, folder = paper_lm(max_iter=3, **SETTINGS), tmp_path / "state"

    def diverge(epochs, loss, epoch, done):
        if epoch > 1:
            assert n_saves(folder)
            raise DivergenceError("diverged.")

    with monkeypatch.context() as patch:
        patch.setattr(Epochs, "_check_divergence", diverge)
        with pytest.raises(DivergenceError):
            lm.fit(**data, checkpoint=folder)
    assert not folder.exists()
    lm.set_params(learning_rate_init=1e-3).fit(**data, checkpoint=folder)


@pytest.mark.parametrize("number", [ENOSYS, ENOTSUP, ENOLCK])
def test_file_system_without_locks_is_supported(data, tmp_path, monkeypatch, number):
    def flock(file, how):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", flock)
    lm = paper_lm(max_iter=1, **SETTINGS).fit(**data, checkpoint=tmp_path)
    assert lm.n_iter_ == 1 and n_saves(tmp_path) >= 1


def test_lock_error_is_raised(data, tmp_path, monkeypatch):
    def flock(file, how):
        raise OSError(EIO, "Input/output error")

    monkeypatch.setattr("fcntl.flock", flock)
    with pytest.raises(OSError, match="Input/output error"):
        paper_lm(max_iter=1, **SETTINGS).fit(**data, checkpoint=tmp_path)


@pytest.mark.parametrize("kind", ["link", "second name", "pipe"])
def test_lock_does_not_follow_links(data, tmp_path, kind):
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
def test_links_are_replaced_but_not_their_targets(data, tmp_path, name):
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "saves"
    folder.mkdir()
    (folder / name).symlink_to(elsewhere)
    paper_lm(max_iter=1, **SETTINGS).fit(**data, checkpoint=folder)
    assert not (folder / name).is_symlink()
    assert not elsewhere.exists()
