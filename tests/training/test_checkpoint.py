"""Checkpoints: the same bits after a kill, and what cannot be gone on from."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from copy import deepcopy
from errno import EIO, ENOLCK, ENOSYS, ENOTSUP
from itertools import product
from pathlib import Path
from threading import Timer

import numpy as np
import pytest
from sklearn.base import clone

import nplm
from nplm import CheckpointError, EnergyLM, NeuralLM, WordClasses, windows
from nplm._tensors import read_tensors, write_tensors
from nplm.neural.network.network import Network
from nplm.parallel.processes import ALONE
from nplm.training import checkpoint as checkpoints
from nplm.training.checkpoint import Checkpoint
from tests.helpers import paper_lm

PARAMETERS = ["C_", "H_", "d_", "U_", "b_"]
SETTINGS = dict(n_words=20, n_hidden=6, embedding_dim=4, batch_size=4, random_state=0)
FIT = """
import sys
import numpy as np
from nplm import NeuralLM
from nplm.training import checkpoint
from nplm.training import pace
checkpoint.SECONDS_A_SAVE, pace.SECONDS_A_CALL = 0, 0.002
data = np.load(sys.argv[1])
NeuralLM(**eval(sys.argv[3])).fit(data["X"], data["y"], checkpoint=sys.argv[2])
"""


class Killed(BaseException):
    """Stops a fit on the spot: nothing after it is saved."""


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    ids = np.cumsum(rng.choice([1, 2, 5], 2000, p=[0.7, 0.2, 0.1])) % 20
    X, y = windows(ids.astype(np.int32), 2)
    return dict(X=X[200:], y=y[200:], X_val=X[:200], y_val=y[:200])


@pytest.fixture(autouse=True)
def many_saves(monkeypatch):
    monkeypatch.setattr(checkpoints, "SECONDS_A_SAVE", 0)
    monkeypatch.setattr("nplm.training.pace.SECONDS_A_CALL", 0.002)


def fit_and_kill(lm, data, folder, at):
    """Fit until `at` examples were done and saved."""

    def progress(done, total, loss):
        if done >= at:
            raise Killed

    with pytest.raises(Killed):
        lm.fit(**data, checkpoint=folder, progress=progress)


OTHER_PARTS = dict(solver="adam", order=2, n_distant=2)
SENSES = dict(n_senses=2, alpha=0.1)
COMPOSED = dict(word_features=np.arange(20)[:, None] % [3, 4, 5] == 0)
# Draws that grow while it trains.
SAMPLED = dict(loss="importance", n_samples=2, min_effective_samples=10, alpha=0.1)
AS_DEFAULT = {
    name: value
    for name, value in NeuralLM().get_params().items()
    if name not in SETTINGS and name not in ("max_iter", "n_jobs")
}
EACH_PARTS = {
    "sgd": {},
    "adam, distant": OTHER_PARTS,
    "senses": SENSES,
    "senses, adam": SENSES | dict(solver="adam"),
    "composed": COMPOSED,
    "tied, composed, adam": COMPOSED | dict(tied=True, solver="adam"),
    "importance": SAMPLED,
    "importance, adam": dict(SAMPLED, solver="adam"),
    "nce": dict(loss="nce"),
    "tied, composed, importance": COMPOSED | SAMPLED | dict(tied=True),
    "energy, importance": SAMPLED,
    "energy, own weights, importance, adam": SAMPLED
    | dict(target_weights=True, solver="adam"),
    "energy, own weights, nce": dict(loss="nce", target_weights=True),
    "linear": dict(learning_rate="linear"),
    # Halved from the first small gain on, which is of the second epoch.
    "adaptive": dict(learning_rate="adaptive", learning_rate_init=1e-4),
    "default": AS_DEFAULT,
    "default, drawn words": AS_DEFAULT | dict(n_samples=4),
    "dropout": dict(dropout=0.2),
    "dropout, tied, adam": dict(dropout=(0.1, 0.2, 0.3), tied=True, solver="adam"),
}


# An epoch has 1,798 examples. Parts whose rows few visit are not shared by threads.
ALONE_ONLY = ("adaptive", "default, drawn words")
SHARED = [
    name
    for name, parts in EACH_PARTS.items()
    if parts.get("loss", "auto") == "auto" and name not in ALONE_ONLY
]
KILLS = [
    *product(EACH_PARTS, [1], [1000, 2500]),
    *product(["sgd", "importance, adam"], [1], [1, 1800, 6000]),
    ("adaptive", 1, 6000),
    *product(SHARED, [2], [2500]),
]


@pytest.mark.parametrize(("parts", "n_jobs", "at"), KILLS)
def test_the_same_bits_as_without_a_kill(data, tmp_path, n_jobs, at, parts):
    model = EnergyLM if parts.startswith("energy") else paper_lm
    parts = EACH_PARTS[parts]
    lm = model(max_iter=4, learning_rate_init=0.02, n_jobs=n_jobs, **SETTINGS)
    lm.set_params(**parts)
    whole = clone(lm).fit(**data)
    fit_and_kill(clone(lm), data, tmp_path, at)
    began_at = []
    lm.fit(**data, checkpoint=tmp_path, progress=lambda done, *_: began_at.append(done))
    if at > 1000:
        assert began_at[0] > 0.3 * at  # it did go on, not start anew
    arrays, wanted = (fitted._parameters.trained() for fitted in (lm, whole))
    for name, want in wanted.items():
        np.testing.assert_array_equal(arrays[name], want)
    for name in ("loss", "val_loss"):
        assert lm.history_[name] == whole.history_[name]
    assert (lm.n_iter_, lm.n_seen_) == (whole.n_iter_, whole.n_seen_)
    if "n_distant" in parts:
        np.testing.assert_array_equal(lm.P_, whole.P_)
        np.testing.assert_array_equal(
            lm.partial_fit(data["X"], data["y"]).U_,
            whole.partial_fit(data["X"], data["y"]).U_,
        )
    # Only the last save is left.
    assert len(list(tmp_path.iterdir())) == 3  # with latest.json and lock


def test_early_stopping_goes_on_too(data, tmp_path):
    lm = paper_lm(
        max_iter=60, learning_rate_init=0.1, alpha=0, direct=True,
        early_stopping="auto", **SETTINGS,
    )  # fmt: skip
    whole = clone(lm).fit(**data)
    assert whole.n_iter_ < 60
    # Killed when the best epoch is behind it.
    fit_and_kill(clone(lm), data, tmp_path, (whole.n_iter_ - 0.5) * len(data["y"]))
    for _ in range(2):  # the second time there is nothing left to do
        again = clone(lm).fit(**data, checkpoint=tmp_path)
        np.testing.assert_array_equal(again.U_, whole.U_)
        assert again.history_["val_loss"] == whole.history_["val_loss"]


def test_more_epochs_may_be_asked_for(data, tmp_path):
    lm = paper_lm(max_iter=2, early_stopping=False, **SETTINGS)
    clone(lm).fit(**data, checkpoint=tmp_path)
    more = clone(lm).set_params(max_iter=4, verbose=0)
    np.testing.assert_array_equal(
        clone(more).fit(**data, checkpoint=tmp_path).U_, clone(more).fit(**data).U_
    )


def test_a_step_that_falls_to_0_is_another_with_more_epochs(data, tmp_path):
    lm = paper_lm(max_iter=2, learning_rate="linear", **SETTINGS)
    clone(lm).fit(**data, checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match="epochs of the schedule"):
        lm.set_params(max_iter=4).fit(**data, checkpoint=tmp_path)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_killed_by_the_system(data, tmp_path, n_jobs):
    settings = SETTINGS | dict(max_iter=40 // n_jobs**2, batch_size=16, n_jobs=n_jobs)
    settings = paper_lm(**settings).get_params()
    X, y = data["X"], data["y"]
    np.savez(tmp_path / "data.npz", X=X, y=y)
    folder = tmp_path / "saves"
    for saves in (2, 7):  # killed twice
        job = subprocess.Popen(
            [sys.executable, "-c", FIT, tmp_path / "data.npz", folder, repr(settings)],
            env={**os.environ, "PYTHONPATH": str(Path(nplm.__file__).parents[1])},
        )
        deadline = time.monotonic() + 60
        while n_saves(folder) < saves and time.monotonic() < deadline:
            time.sleep(0.0005)
        job.send_signal(signal.SIGKILL)
        assert job.wait() == -signal.SIGKILL
        assert n_saves(folder) >= saves
    went_on = paper_lm(**settings).fit(X, y, checkpoint=folder)
    whole = paper_lm(**settings).fit(X, y)
    for name in PARAMETERS:
        np.testing.assert_array_equal(getattr(went_on, name), getattr(whole, name))
    assert went_on.history_["loss"] == whole.history_["loss"]


def n_saves(folder):
    latest = folder / "latest.json"
    return json.loads(latest.read_text())["save"] if latest.exists() else 0


@pytest.mark.parametrize(
    "change",
    [dict(learning_rate_init=0.1), dict(n_hidden=7), dict(n_jobs=2), dict(alpha=0)],
)
def test_another_fit_is_refused(data, tmp_path, change):
    lm = paper_lm(max_iter=1, **SETTINGS).fit(**data, checkpoint=tmp_path)
    (name,) = change
    with pytest.raises(CheckpointError, match=f"another fit: its {name} was"):
        clone(lm).set_params(**change).fit(**data, checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match="another fit: its y was int32"):
        clone(lm).fit(**data | {"y": (data["y"] + 1) % 20}, checkpoint=tmp_path)


@pytest.mark.parametrize("damage", ["cut", "bit", "missing", "json", "empty", "newer"])
def test_a_damaged_checkpoint_is_named(data, tmp_path, damage):
    lm = paper_lm(max_iter=1, **SETTINGS).fit(**data, checkpoint=tmp_path)
    (arrays,) = tmp_path.glob("*.safetensors")
    latest = tmp_path / "latest.json"
    content = bytearray(arrays.read_bytes())
    message = "is damaged .*Remove .* to start anew"
    if damage == "cut":
        arrays.write_bytes(content[: len(content) // 2])
    elif damage == "bit":
        content[300] ^= 4
        arrays.write_bytes(content)
    elif damage == "missing":
        arrays.unlink()
    elif damage == "json":
        latest.write_text(latest.read_text()[:-9])
    elif damage == "empty":
        latest.write_text("")
    else:
        latest.write_text(latest.read_text().replace('"format": 3', '"format": 9'))
        message = "of format 9, and this nplm reads format 3"
    before = vars(lm).copy()
    with pytest.raises(CheckpointError, match=message):
        lm.fit(**data, checkpoint=tmp_path)
    assert vars(lm).keys() == before.keys()
    assert lm._parameters is before["_parameters"]


def taken(arrays, state):
    return arrays.take("C"), state.take("epoch")


def tampered(folder, change):
    """Change what was saved, in place, and note it as what was saved."""
    (path,) = folder.glob("*.safetensors")
    arrays, texts = read_tensors(path, mmap=False)
    state = json.loads(texts["state"])
    change(arrays, state)
    latest = json.loads((folder / "latest.json").read_text())
    latest["files"] = [write_tensors(path, arrays, {"state": json.dumps(state)})]
    (folder / "latest.json").write_text(json.dumps(latest))


def test_another_files_contents_are_refused(data, tmp_path):
    """Even if they are sound: those of another fit of the same sizes, for one."""
    for i in (0, 1):
        lm = paper_lm(max_iter=1, **SETTINGS | dict(random_state=i))
        lm.fit(**data, checkpoint=tmp_path / str(i))
    (one,), (other,) = ((tmp_path / i).glob("*.safetensors") for i in "01")
    other.write_bytes(one.read_bytes())
    with pytest.raises(CheckpointError, match=r"is not the file that latest\.json has"):
        lm.fit(**data, checkpoint=tmp_path / "1")


def put(where, name, value, at=None):
    if at is None:
        where[name] = value
    else:
        where[name] = np.array(where[name])
        where[name].reshape(-1)[at] = value


UNSOUND = {
    "shape": lambda a, s: put(a, "C", a["C"][:-1]),
    "type": lambda a, s: put(a, "d", a["d"].astype(np.float64)),
    "missing": lambda a, s: a.pop("E"),
    "more": lambda a, s: put(a, "F", a["d"]),
    "best": lambda a, s: put(a, "best_0", a["best_0"][:, :1]),
    "no best": lambda a, s: [a.pop(f"best_{i}") for i in range(5) if f"best_{i}" in a],
    "proposal": lambda a, s: put(a, "proposal", 0.5, at=3),
    "generator": lambda a, s: put(a, "generators", 0 * a["generators"]),
    "draws": lambda a, s: put(a, "watched", -1e9, at=0),
    "many draws": lambda a, s: put(a, "watched", 1e9, at=0),
    "examples": lambda a, s: put(a, "moving", 7, at=0),
    "order": lambda a, s: put(a, "order", a["order"][:9]),
    "place": lambda a, s: put(s["order"], "pos", 2**40),
    "steps": lambda a, s: put(s["at"], "steps", -1),
    "passes": lambda a, s: put(s["at"], "passes", 0.5),
    "history": lambda a, s: put(s["job"]["history"], "loss", [1.0, 2.0, 3.0]),
    "patience": lambda a, s: put(s["job"]["held_out"], "stale", "a"),
    "else": lambda a, s: put(s["job"], "code", "import os"),
}


@pytest.mark.parametrize("change", UNSOUND)
def test_contents_that_no_fit_leaves_are_refused(data, tmp_path, change):
    lm = paper_lm(max_iter=2, early_stopping="auto", **SETTINGS | SAMPLED)
    fit_and_kill(lm, data, tmp_path, 2000)
    tampered(tmp_path, UNSOUND[change])
    with pytest.raises(CheckpointError, match=r"safetensors is damaged \(ValueError"):
        lm.fit(**data, checkpoint=tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        lambda a, s: put(a, "labels", 10**6, at=3),
        lambda a, s: put(a, "labels", -1, at=3),
        lambda a, s: put(a, "labels", 4, at=7),  # the boundary's, to which none comes
        lambda a, s: put(a, "tally", 10**6, at=2),
        lambda a, s: put(s["job"], "history", {}),
    ],
)
def test_classes_that_no_fit_leaves_are_refused(tmp_path, change):
    ids = np.random.default_rng(0).zipf(1.4, 2000) % 20
    classes = WordClasses(5, n_words=20, boundary=0, max_iter=3, random_state=0)
    classes.fit(ids, checkpoint=tmp_path)
    tampered(tmp_path, change)
    with pytest.raises(CheckpointError, match=r"safetensors is damaged \(ValueError"):
        classes.fit(ids, checkpoint=tmp_path)


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


@pytest.mark.parametrize(
    "content",
    [
        "[" * 10**5,
        "[]",
        '"a"',
        "{}",
        '{"format": 3, "save": Infinity, "fit": {}}',
        '{"format": 3, "save": 1, "fit": 3}',
        '{"format": 3, "save": [], "fit": {}}',
    ],
    ids=["deep", "list", "text", "empty", "infinite", "fit", "save"],
)
def test_what_says_which_save_is_whole_is_something_else(tmp_path, content):
    (tmp_path / "latest.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"latest\.json is damaged"):
        Checkpoint(tmp_path, {}, ALONE).load(taken)


def test_a_checkpoint_runs_no_code(tmp_path, data):
    lm = paper_lm(max_iter=1, **SETTINGS).fit(**data, checkpoint=tmp_path)
    (arrays,) = tmp_path.glob("*.safetensors")
    arrays.write_bytes(pickle.dumps(Killed()))
    with pytest.raises(CheckpointError, match="damaged"):
        lm.fit(**data, checkpoint=tmp_path)


@pytest.mark.parametrize(
    "error", [PermissionError(13, "no"), OSError(24, "Too many open files")]
)
def test_a_save_out_of_reach_is_not_called_damaged(data, tmp_path, monkeypatch, error):
    lm = paper_lm(max_iter=1, **SETTINGS).fit(**data, checkpoint=tmp_path)
    opened = open

    def refuse(path, *args):
        if str(path).endswith(".safetensors"):
            raise error
        return opened(path, *args)

    monkeypatch.setattr("nplm._tensors.open", refuse, raising=False)
    with pytest.raises(type(error), match=error.strerror):
        clone(lm).fit(**data, checkpoint=tmp_path)


@pytest.mark.parametrize("folder", ["", "a file", "a file/below"])
def test_a_bad_folder_is_refused_at_once(data, tmp_path, monkeypatch, folder):
    monkeypatch.chdir(tmp_path)
    Path("a file").touch()
    done = []
    with pytest.raises((ValueError, OSError), match=r"names no folder|a file"):
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


def test_an_interrupted_score_is_saved_too(data, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "SECONDS_A_SAVE", 1000)
    lm = paper_lm(max_iter=3, **SETTINGS)
    whole = clone(lm).fit(**data)
    log_prob, calls = Network.log_prob, []

    def interrupt(*args):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return log_prob(*args)

    monkeypatch.setattr(Network, "log_prob", interrupt)
    interrupted = clone(lm)
    with (
        pytest.warns(RuntimeWarning, match="interrupted"),
        pytest.raises(KeyboardInterrupt),
    ):
        interrupted.fit(**data, checkpoint=tmp_path)
    assert {len(values) for values in interrupted.history_.values()} == {1}
    monkeypatch.undo()
    began_at = []
    lm.fit(**data, checkpoint=tmp_path, progress=lambda done, *_: began_at.append(done))
    assert_same_fit(lm, whole)
    assert began_at[0] > 2 * len(data["y"])


def test_an_interrupted_warm_start_goes_on(data, tmp_path):
    lm = paper_lm(max_iter=2, warm_start=True, **SETTINGS).fit(**data)
    state = pickle.dumps(lm)
    whole, again = pickle.loads(state).fit(**data), pickle.loads(state)

    def interrupt(done, total, loss):
        if done > 1.5 * len(data["y"]):
            raise KeyboardInterrupt

    with (
        pytest.warns(RuntimeWarning, match="interrupted"),
        pytest.raises(KeyboardInterrupt),
    ):
        lm.fit(**data, checkpoint=tmp_path, progress=interrupt)
    assert lm.n_iter_ == len(lm.history_["loss"]) == 3
    began_at = []
    again.fit(
        **data, checkpoint=tmp_path, progress=lambda done, *_: began_at.append(done)
    )
    assert_same_fit(again, whole)
    assert again.n_iter_ == len(again.history_["loss"]) == 4
    assert began_at[0] > 1.5 * len(data["y"])  # the interrupt saved it


def assert_same_fit(one, other):
    for name in PARAMETERS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.history_["loss"] == other.history_["loss"]


# The interrupt may come between open() and the context that closes the file.
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.filterwarnings("ignore:Exception ignored in.*_io:pytest.PytestWarning")
@pytest.mark.parametrize(
    ("n_jobs", "parallel"), [(1, "rows"), (2, "rows"), (2, "async")]
)
def test_an_interrupt_saves(data, tmp_path, monkeypatch, n_jobs, parallel):
    monkeypatch.setattr(checkpoints, "SECONDS_A_SAVE", 1000)
    monkeypatch.setattr("nplm.training.pace.SECONDS_A_CALL", 0.05)
    X, y = np.tile(data["X"], (5, 1)), np.tile(data["y"], 5)
    lm = paper_lm(max_iter=10**6, n_jobs=n_jobs, parallel=parallel, **SETTINGS)
    lm.set_params(batch_size=64)  # threads meet seldom, which is slow under load
    interrupted = clone(lm)
    Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with (
        pytest.warns(RuntimeWarning, match="interrupted"),
        pytest.raises(KeyboardInterrupt),
    ):
        interrupted.fit(X, y, checkpoint=tmp_path)
    lm.set_params(max_iter=interrupted.n_iter_ + 2)
    whole = clone(lm).fit(X, y)
    began_at = []
    lm.fit(X, y, checkpoint=tmp_path, progress=lambda done, *_: began_at.append(done))
    assert began_at[0] > interrupted.n_seen_
    assert lm.n_seen_ == lm.n_iter_ * len(y)
    if parallel == "rows":
        assert_same_fit(lm, whole)
    np.testing.assert_allclose(lm.history_["loss"], whole.history_["loss"], rtol=0.05)


def test_fewer_epochs_than_saved_are_warned_of(data, tmp_path):
    lm = paper_lm(max_iter=3, **SETTINGS).fit(**data, checkpoint=tmp_path)
    fewer = clone(lm).set_params(max_iter=2)
    with pytest.warns(RuntimeWarning, match="epoch 3 already, beyond max_iter=2"):
        fewer.fit(**data, checkpoint=tmp_path)
    np.testing.assert_array_equal(fewer.U_, lm.U_)


def test_equal_numbers_of_threads_are_the_same_fit(data, tmp_path):
    lm = paper_lm(max_iter=1, n_jobs=None, **SETTINGS)
    lm.fit(**data, checkpoint=tmp_path / "one")
    lm.set_params(n_jobs=1).fit(**data, checkpoint=tmp_path / "one")
    all_cores = len(os.sched_getaffinity(0))
    lm.set_params(n_jobs=-1).fit(**data, checkpoint=tmp_path / "all")
    lm.set_params(n_jobs=all_cores).fit(**data, checkpoint=tmp_path / "all")


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


def test_damage_anywhere_is_named(tmp_path):
    saves = Checkpoint(tmp_path, {}, ALONE)
    saves.save({"C": np.arange(12.0)}, {"epoch": 1})
    (path,) = tmp_path.glob("*.safetensors")
    good, rng = path.read_bytes(), np.random.default_rng(0)
    for i in range(len(good)):
        bad = bytearray(good)
        bad[i] ^= 1 << rng.integers(8)
        path.write_bytes(bad)
        try:
            C, epoch = saves.load(taken)
        except CheckpointError:
            continue
        # A byte that means nothing: a blank that fills the header up.
        np.testing.assert_array_equal(C, np.arange(12.0))
        assert epoch == 1


def test_other_moments_are_another_fit(data, tmp_path):
    lm = paper_lm(max_iter=1, solver="adam", warm_start=True, **SETTINGS).fit(**data)
    other = deepcopy(lm)
    other._solver_state["first_E"][:] = 1
    other.fit(**data, checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match="first_E"):
        lm.fit(**data, checkpoint=tmp_path)
