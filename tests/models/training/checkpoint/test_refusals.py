"""Checkpoints that are refused: damaged saves, and those of another fit."""

import json
import os
import pickle
from copy import deepcopy

import numpy as np
import pytest
from sklearn.base import clone

from nplm import CheckpointError, WordClasses
from nplm.base.files.tensors import read_tensors, write_tensors
from nplm.models.training.checkpoint import Checkpoint
from nplm.models.training.parallel.processes import ALONE
from tests.helpers import paper_lm
from tests.helpers.checkpoint import SAMPLED, SETTINGS, Killed, fit_and_kill


@pytest.mark.parametrize(
    "change",
    [
        dict(learning_rate_init=0.1),
        dict(n_hidden=7),
        dict(n_jobs=2),
        dict(alpha=0),
        dict(order=2),
        dict(random_state=np.random.RandomState(0)),
        dict(solver__learning_rate="linear"),
        dict(validation_fraction=0.2),
        dict(features__word_features=np.eye(20)),
        dict(features__embeddings=np.ones((20, SETTINGS["embedding_dim"]))),
        dict(output__tied=True),
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_fit_is_refused(data, tmp_path, change):
    lm = paper_lm(max_iter=1, **SETTINGS).fit(**data, checkpoint=tmp_path)
    (name,) = change
    with pytest.raises(CheckpointError, match=rf"another fit: its {name}\S* was"):
        clone(lm).set_params(**change).fit(**data, checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match="another fit: its y was int32"):
        clone(lm).fit(**data | {"y": (data["y"] + 1) % 20}, checkpoint=tmp_path)


@pytest.mark.slow
def test_equal_numbers_of_threads_are_the_same_fit(data, tmp_path):
    data = {name: array[:100] for name, array in data.items()}
    lm = paper_lm(max_iter=1, n_jobs=None, **SETTINGS)
    lm.fit(**data, checkpoint=tmp_path / "one")
    lm.set_params(n_jobs=1).fit(**data, checkpoint=tmp_path / "one")
    all_cores = len(os.sched_getaffinity(0))
    lm.set_params(n_jobs=-1).fit(**data, checkpoint=tmp_path / "all")
    lm.set_params(n_jobs=all_cores).fit(**data, checkpoint=tmp_path / "all")


def test_checkpoint_with_other_solver_moments_is_refused(data, tmp_path):
    lm = paper_lm(max_iter=1, solver="adam", warm_start=True, **SETTINGS).fit(**data)
    other = deepcopy(lm)
    other._trained.solver_state["first_E"][:] = 1
    other.fit(**data, checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match="first_E"):
        lm.fit(**data, checkpoint=tmp_path)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda saved, latest: saved.unlink(), "is damaged .*Remove .* to start anew"),
        (
            lambda saved, latest: latest.write_text(
                latest.read_text().replace('"format": 5', '"format": 9')
            ),
            "of format 9, but this version of nplm reads format 5",
        ),
        # It is read without running any code.
        (lambda saved, latest: saved.write_bytes(pickle.dumps(Killed())), "is damaged"),
    ],
    ids=["missing", "newer", "pickle"],
)
def test_a_damaged_checkpoint_is_named(data, tmp_path, damage, message):
    lm = paper_lm(max_iter=1, **SETTINGS).fit(**data, checkpoint=tmp_path)
    (saved,) = tmp_path.glob("*.safetensors")
    damage(saved, tmp_path / "latest.json")
    before = vars(lm).copy()
    with pytest.raises(CheckpointError, match=message):
        lm.fit(**data, checkpoint=tmp_path)
    assert vars(lm) == before


def taken(arrays, state):
    return arrays.take("C"), state.take("epoch")


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
        # A byte without meaning: the padding of the header.
        np.testing.assert_array_equal(C, np.arange(12.0))
        assert epoch == 1


def tampered(folder, change):
    """Change a save in place, and update its checksum in latest.json."""
    (path,) = folder.glob("*.safetensors")
    arrays, texts = read_tensors(path, mmap=False)
    state = json.loads(texts["state"])
    change(arrays, state)
    latest = json.loads((folder / "latest.json").read_text())
    latest["files"] = [write_tensors(path, arrays, {"state": json.dumps(state)})]
    (folder / "latest.json").write_text(json.dumps(latest))


def test_another_files_contents_are_refused(data, tmp_path):
    """A valid file of another fit of the same sizes is refused too."""
    for i in (0, 1):
        lm = paper_lm(max_iter=1, **SETTINGS | dict(random_state=i))
        lm.fit(**data, checkpoint=tmp_path / str(i))
    (one,), (other,) = ((tmp_path / i).glob("*.safetensors") for i in "01")
    other.write_bytes(one.read_bytes())
    with pytest.raises(
        CheckpointError, match=r"checksum is not the one in latest\.json"
    ):
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
def test_invalid_contents_are_refused(data, tmp_path, change):
    lm = paper_lm(max_iter=2, early_stopping="auto", **SETTINGS | SAMPLED)
    fit_and_kill(lm, data, tmp_path, 2500)
    tampered(tmp_path, UNSOUND[change])
    with pytest.raises(CheckpointError, match=r"safetensors is damaged \(ValueError"):
        lm.fit(**data, checkpoint=tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        lambda a, s: put(a, "labels", 10**6, at=3),
        lambda a, s: put(a, "labels", -1, at=3),
        lambda a, s: put(a, "labels", 4, at=7),  # the boundary's class, which is closed
        lambda a, s: put(a, "tally", 10**6, at=2),
        lambda a, s: put(s["job"], "history", {}),
    ],
)
def test_invalid_contents_of_word_classes_are_refused(tmp_path, change):
    ids = np.random.default_rng(0).zipf(1.4, 2000) % 20
    classes = WordClasses(5, n_words=20, boundary=0, max_iter=3, random_state=0)
    classes.fit(ids, checkpoint=tmp_path)
    tampered(tmp_path, change)
    with pytest.raises(CheckpointError, match=r"safetensors is damaged \(ValueError"):
        classes.fit(ids, checkpoint=tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        "",
        '{"format": 5, "sav',
        "[" * 10**5,
        "[]",
        '"a"',
        "{}",
        '{"format": 5, "save": Infinity, "fit": {}}',
        '{"format": 5, "save": 1, "fit": 3}',
        '{"format": 5, "save": [], "fit": {}}',
    ],
    ids=["nothing", "cut", "deep", "list", "text", "empty", "infinite", "fit", "save"],
)
def test_invalid_latest_json_is_refused(tmp_path, content):
    (tmp_path / "latest.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"latest\.json is damaged"):
        Checkpoint(tmp_path, {}, ALONE).load(taken)


@pytest.mark.parametrize(
    "error", [PermissionError(13, "no"), OSError(24, "Too many open files")]
)
def test_unreadable_save_is_not_reported_as_damaged(data, tmp_path, monkeypatch, error):
    lm = paper_lm(max_iter=1, **SETTINGS).fit(**data, checkpoint=tmp_path)
    opened = open

    def refuse(path, *args):
        if str(path).endswith(".safetensors"):
            raise error
        return opened(path, *args)

    monkeypatch.setattr("nplm.base.files.atomic_files.open", refuse, raising=False)
    with pytest.raises(type(error), match=error.strerror):
        clone(lm).fit(**data, checkpoint=tmp_path)
