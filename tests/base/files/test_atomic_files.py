import errno
import fcntl
import os
import stat
import subprocess
import sys

import pytest

from nplm.base.files.atomic_files import (
    _machine_id,
    check_writable,
    full_disk_named,
    replacing,
)


def test_file_is_replaced_when_the_new_one_is_complete(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(b"old")
    with replacing(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["model"]


def test_target_of_a_link_is_replaced(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "model").write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to("elsewhere/model")
    with replacing(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert (tmp_path / "elsewhere" / "model").read_bytes() == b"new"
    assert os.listdir(tmp_path / "elsewhere") == ["model"]


def test_one_link_of_a_cycle_is_replaced(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.symlink_to(other)
    other.symlink_to(one)
    with replacing(one) as file:
        file.write(b"new")
    assert one.read_bytes() == b"new"
    assert set(os.listdir(tmp_path)) == {"one", "other"}


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_error_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "model"
    path.write_bytes(b"old")
    with pytest.raises(type(error)), replacing(path) as file:
        file.write(b"half of the n")
        raise error
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model"]


def test_full_disk_is_named_once(tmp_path):
    """The innermost folder is the full one; others of the same write are not named."""

    def full():
        raise OSError(errno.ENOSPC, "No space left on device")

    with (
        pytest.raises(OSError, match=f"disk of {tmp_path} is full: more is") as caught,
        replacing(tmp_path / "model"),
    ):
        full()
    assert caught.value.errno == errno.ENOSPC
    (tmp_path / "scratch").mkdir()
    with (
        pytest.raises(OSError, match=f"disk of {tmp_path}/scratch is full: 5 GiB"),
        replacing(tmp_path / "model"),
        full_disk_named(tmp_path / "scratch", "5 GiB"),
    ):
        full()
    assert os.listdir(tmp_path) == ["scratch"]


def test_file_and_folder_are_synced(tmp_path, monkeypatch):
    synced = []

    def fsync(descriptor):
        mode = os.fstat(descriptor).st_mode
        synced.append((stat.S_ISDIR(mode), (tmp_path / "model").exists()))

    monkeypatch.setattr("os.fsync", fsync)
    with replacing(tmp_path / "model"):
        pass
    assert synced == [(False, False), (True, True)]


def test_new_file_has_default_permissions(tmp_path):
    (tmp_path / "any").touch()
    with replacing(tmp_path / "model"):
        pass
    modes = {path.stat().st_mode for path in tmp_path.iterdir()}
    assert len(modes) == 1


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_replacement_keeps_the_permissions_of_the_old_file(tmp_path, mode):
    path = tmp_path / "model"
    path.touch()
    path.chmod(mode)
    (tmp_path / "link").symlink_to(path)
    with replacing(tmp_path / "link") as file:
        [unfinished] = tmp_path.glob("*.part")
        assert stat.S_IMODE(unfinished.stat().st_mode) == mode
        file.write(b"new")
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_bytes() == b"new"


def test_unfinished_file_of_a_killed_writer_is_removed_by_the_next(tmp_path):
    path = tmp_path / "model"
    script = """
import os, pathlib, signal, sys
from nplm.base.files.atomic_files import replacing
with replacing(pathlib.Path(sys.argv[1])) as file:
    file.write(b"half of the n")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    # Files of other models, of users with similar names, and of other machines stay;
    # the locks of other machines may be invisible.
    ending = f"{_machine_id()}0123abcd.part"
    others = {f"model.2.{ending}", f"other.{ending}", "model.notes.part"}
    others |= {"model.0000000089abcdef.part"}
    own = f"model.{ending}"
    for name in others:
        (tmp_path / name).touch()
    (tmp_path / own).mkdir()
    for _ in range(2):
        subprocess.run([sys.executable, "-c", script, path], check=False)
        assert len(set(os.listdir(tmp_path)) - others) == 2
    with replacing(path) as one:
        one.write(b"one")
        with replacing(path) as other:
            other.write(b"other")
    assert path.read_bytes() == b"one"
    assert set(os.listdir(tmp_path)) == others | {"model", own}


def test_writer_starts_again_if_its_file_is_removed_before_the_lock(
    tmp_path, monkeypatch
):
    calls, flock = [], fcntl.flock

    def late(file, how):
        if not calls:
            (found,) = tmp_path.iterdir()
            found.unlink()
        calls.append(how)
        flock(file, how)

    monkeypatch.setattr("fcntl.flock", late)
    with replacing(tmp_path / "model") as file:
        file.write(b"new")
    assert (tmp_path / "model").read_bytes() == b"new"
    assert len(calls) == 2


def test_unfinished_files_stay_on_a_file_system_without_locks(tmp_path, monkeypatch):
    def no_locks(file, how):
        raise OSError(errno.ENOLCK, "No locks available")

    left = f"model.{_machine_id()}0123abcd.part"
    (tmp_path / left).touch()
    monkeypatch.setattr("fcntl.flock", no_locks)
    with replacing(tmp_path / "model") as file:
        file.write(b"new")
    assert sorted(os.listdir(tmp_path)) == ["model", left]


def test_failed_removal_of_the_part_does_not_hide_the_error(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(KeyboardInterrupt), replacing(folder / "file"):
        folder.rename(tmp_path / "elsewhere")
        folder.write_text("not a folder")
        raise KeyboardInterrupt


def test_devices_and_pipes_are_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="pipe: it is a device or a pipe"):
        check_writable(tmp_path / "pipe")
    with pytest.raises(OSError, match=r"/dev/null: it is a device"):
        check_writable("/dev/null")


def test_target_of_a_link_is_checked(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "absent" / "model")
    with pytest.raises(FileNotFoundError, match=r"link: there is no folder .*absent;"):
        check_writable(link)
    (tmp_path / "absent").mkdir()
    assert check_writable(link) == link
