"""What operating systems do differently: the half of Windows with its locks faked."""

import errno
import os
import subprocess
import sys
from threading import Thread

import numpy as np
import pytest

from nplm import InterpolatedTrigram, load, save
from nplm.base import system
from nplm.base.files.atomic_files import _machine_id, replacing
from nplm.models.ngrams.external.scratch import OWNER
from tests.helpers import system as fakes
from tests.helpers.system import Locks

TEXT = ["a rose is a rose", "is a rose a rose"] * 20


@pytest.mark.parametrize(
    ("meminfo", "kibi"),
    [
        ("MemTotal: 900 kB\nMemFree: 1 kB\nMemAvailable:  700 kB\n", 700),
        ("MemTotal: 900 kB\nMemFree: 100 kB\nBuffers: 20 kB\nCached: 3 kB\n", 123),
        ("MemTotal: 900 kB\n", None),
        ("", None),
        (None, None),
    ],
)
def test_available_memory_is_told_or_half_of_all(tmp_path, monkeypatch, meminfo, kibi):
    if not isinstance(system.SYSTEM, system.Posix):
        pytest.skip("this system is not POSIX's")
    path = tmp_path / "meminfo"
    if meminfo is not None:
        path.write_text(meminfo)
    monkeypatch.setattr(system, "MEMINFO", path)
    half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    expected = half if kibi is None else kibi << 10
    assert system.SYSTEM.available_memory() == expected


@pytest.fixture
def windows(monkeypatch):
    made = system.Windows(Locks())
    monkeypatch.setattr(system, "SYSTEM", made)
    return made


@pytest.fixture(params=["posix", "windows"])
def either(request, monkeypatch):
    """Each half: they promise the same."""
    if request.param == "windows":
        return request.getfixturevalue("windows")
    if not isinstance(system.SYSTEM, system.Posix):
        pytest.skip("this system is not POSIX's")
    return system.SYSTEM


def test_locked_file_is_locked_once_and_read_by_all(either, tmp_path):
    path = tmp_path / "lock"
    path.write_bytes(b"token")
    with open(path, "r+b") as one, open(path, "r+b") as other:
        one.seek(2)
        either.lock(one.fileno(), wait=False)
        with pytest.raises(BlockingIOError):
            either.lock(other.fileno(), wait=False)
        assert one.read() == b"ken" and other.read() == b"token"
    with open(path, "r+b") as third:  # closing a file unlocks it
        either.lock(third.fileno(), wait=False)


def test_waiting_for_a_lock_ends_when_it_is_free(windows, tmp_path):
    path = tmp_path / "lock"
    path.touch()
    waiting = []
    windows._msvcrt = locks = Locks()
    with open(path, "r+b") as other:
        one = open(path, "r+b")  # noqa: SIM115 (closed by the sleep of the other)
        windows.lock(one.fileno(), wait=False)

        def sleep(seconds):
            waiting.append(seconds)
            one.close()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(system.time, "sleep", sleep)
            windows.lock(other.fileno(), wait=True)
    assert len(waiting) == 1 and len(locks.holders) == 1


def test_error_of_a_file_system_without_locks_is_raised(windows, tmp_path):
    def locking(*arguments):
        raise OSError(errno.ENOLCK, "No locks available")

    windows._msvcrt.locking = locking
    with open(tmp_path / "file", "x+b") as file, pytest.raises(OSError) as caught:
        windows.lock(file.fileno(), wait=True)
    assert caught.value.errno in system.NO_LOCKS


def test_link_is_not_followed_and_a_folder_not_opened(either, tmp_path):
    (tmp_path / "precious").touch()
    (tmp_path / "link").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError) as caught:
        either.open_unfollowed(tmp_path / "link")
    assert caught.value.errno == errno.ELOOP
    with pytest.raises(IsADirectoryError):
        either.open_unfollowed(tmp_path)
    os.close(either.open_unfollowed(tmp_path / "new"))
    assert (tmp_path / "new").exists()


def test_file_is_replaced_or_stays(either, tmp_path):
    path = tmp_path / "model"
    with replacing(path) as file:
        file.write(b"old")
    with pytest.raises(KeyboardInterrupt), replacing(path) as file:
        file.write(b"half of")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    left = tmp_path / f"model.{_machine_id()}0123abcd.part"
    left.touch()
    with replacing(path) as file:
        assert not left.exists()
        file.write(b"new")
    assert path.read_bytes() == b"new" and os.listdir(tmp_path) == ["model"]


def test_folder_is_removed_if_its_owner_is_dead(either, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "run").touch()
    with open(folder / OWNER, "x+b") as owner:
        either.lock(owner.fileno(), wait=False)
        with pytest.raises(OSError):
            either.remove_abandoned(folder, OWNER)
        assert len(os.listdir(folder)) == 2
    either.remove_abandoned(folder, OWNER)
    assert not folder.exists()
    folder.mkdir()  # of a process killed before it made the file
    either.remove_abandoned(folder, OWNER)
    assert not folder.exists()


def test_threads_read_parts_of_one_file(either, tmp_path):
    path, size = tmp_path / "numbers", 1 << 12
    path.write_bytes(np.arange(size, dtype=np.uint16).tobytes())
    found = np.zeros(size, dtype=np.uint16)
    with open(path, "rb", buffering=0) as file:

        def read(first):
            for i in range(first, size, 2):
                part = found[i : i + 1].data.cast("B")
                assert either.read_at(file.fileno(), part, 2 * i) == 2

        threads = [Thread(target=read, args=(first,)) for first in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rest = memoryview(bytearray(4))
        assert either.read_at(file.fileno(), rest, 2 * size) == 0
    assert (found == np.arange(size)).all()


def test_models_are_saved_and_loaded(windows, tmp_path):
    from nplm import TextLM

    lm = TextLM(InterpolatedTrigram(), n_context=2).fit(TEXT)
    save(lm, tmp_path / "model")
    windows.trim()
    assert load(tmp_path / "model").score(TEXT) == lm.score(TEXT)


WITHOUT_POSIX = """
import os, runpy, sys, types
import joblib, scipy.linalg, sklearn.model_selection, threadpoolctl
import socket, tempfile

# The file alone: the package of helpers imports nplm, which chooses its system then.
Locks = runpy.run_path(sys.argv[2])["Locks"]

POSIX = '''register_at_fork fchmod preadv posix_fallocate memfd_create geteuid fork
    O_NOFOLLOW O_NONBLOCK O_DIRECTORY'''
for name in POSIX.split():
    if hasattr(os, name):
        delattr(os, name)
sys.modules["fcntl"] = None  # an import raises ImportError
sys.modules["msvcrt"] = Locks()

import io
import numpy as np
import nplm
from nplm.base import system
from nplm.formats import estimate_binary, load_binary

assert isinstance(system.SYSTEM, system.Windows)
X, y = nplm.windows(np.tile([0, 1, 2, 3], 50), 2)
lm = nplm.NeuralLM(n_words=4, n_hidden=8, embedding_dim=4, max_iter=1, random_state=0)
lm.fit(X, y, checkpoint=f"{sys.argv[1]}/checkpoint")
nplm.save(lm, f"{sys.argv[1]}/lm")
assert nplm.ModelFile(f"{sys.argv[1]}/lm").load().score(X, y) == lm.score(X, y)
text = io.BytesIO(b"a rose is a rose\\nis it a rose ?\\n")
model = nplm.KneserNeyLM(3, discount_fallback=(0.5, 1, 1.5))
estimate_binary(model, [text], f"{sys.argv[1]}/roses", memory="500M", n_jobs=2,
                folder=sys.argv[1])
print(len(load_binary(f"{sys.argv[1]}/roses")[1]), sorted(os.listdir(sys.argv[1])))
"""


def test_fits_files_and_estimation_need_nothing_of_posix(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_POSIX, tmp_path, fakes.__file__],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.strip() == "7 ['checkpoint', 'lm', 'roses']"
