import os
import stat

import pytest

from nplm._files import replacing


def test_a_file_takes_its_place_when_it_is_whole(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(b"old")
    with replacing(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["model"]


def test_a_link_stays_and_what_it_names_is_replaced(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "model").write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to("elsewhere/model")
    with replacing(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert (tmp_path / "elsewhere" / "model").read_bytes() == b"new"
    assert os.listdir(tmp_path / "elsewhere") == ["model"]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_after_an_error_all_is_as_it_was(tmp_path, error):
    path = tmp_path / "model"
    path.write_bytes(b"old")
    with pytest.raises(type(error)), replacing(path) as file:
        file.write(b"half of the n")
        raise error
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model"]


def test_the_file_and_its_name_are_on_the_disk(tmp_path, monkeypatch):
    synced = []

    def fsync(descriptor):
        mode = os.fstat(descriptor).st_mode
        synced.append((stat.S_ISDIR(mode), (tmp_path / "model").exists()))

    monkeypatch.setattr("os.fsync", fsync)
    with replacing(tmp_path / "model"):
        pass
    assert synced == [(False, False), (True, True)]


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_permissions_are_those_of_any_new_file(tmp_path):
    (tmp_path / "any").touch()
    with replacing(tmp_path / "model"):
        pass
    modes = {path.stat().st_mode for path in tmp_path.iterdir()}
    assert len(modes) == 1


def test_two_writers_at_once_leave_one_whole_file(tmp_path):
    path = tmp_path / "model"
    with replacing(path) as one, replacing(path) as other:
        one.write(b"one")
        other.write(b"other")
    assert path.read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["model"]
