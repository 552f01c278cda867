"""AutoLM: interrupts, killed fits and full disks."""

import json
import re
import time
from errno import ENOSPC
from unittest.mock import Mock

import pytest
from sklearn.base import clone

import nplm
from nplm import AutoLM, CheckpointError, DivergenceError
from nplm.models.auto.auto_lm import fit_within
from nplm.models.auto.fitting import AutoFit, Budget
from tests.helpers.auto import ENDLESS, NGRAMS, SMALL, TEXTS, equal
from tests.helpers.checkpoint import Killed, n_saves

pytestmark = pytest.mark.usefixtures("simulated_clock")


def after(monkeypatch, condition, error):
    """Raise an error in the training of the network."""
    original = AutoFit._progress

    def progress(self, done, total, loss):
        if condition(done):
            raise error
        original(self, done, total, loss)

    monkeypatch.setattr(AutoFit, "_progress", progress)


@pytest.mark.filterwarnings("ignore:NeuralLM. interrupted")
def test_interrupt_keeps_the_mixture(monkeypatch):
    lm = AutoLM(0.2, settings=ENDLESS, random_state=0)
    after(monkeypatch, lambda done: done > 30_000, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        lm.fit(TEXTS)
    assert lm.recipe_.last is not None
    further = clone(lm)
    with pytest.raises(KeyboardInterrupt):
        further.fit(TEXTS, before=lm)
    assert 0 < further.recipe_.last < 60_000  # without those of the first
    monkeypatch.undo()
    equal(AutoLM(recipe=lm.recipe_).fit(TEXTS), lm)
    equal(AutoLM(recipe=further.recipe_).fit(TEXTS, before=lm), further)


def test_end_that_is_asked_for_before_the_network_is_soon():
    budget = Budget(60)
    budget.end_soon()
    lm = AutoLM(1, settings=ENDLESS | {"members": ["network"]})
    fit_within(budget, lm, TEXTS)
    assert budget.left > 30
    assert len(lm.recipe_.corrections) == 1


def test_fit_continues_on_a_full_disk(tmp_path, monkeypatch):
    full = Mock(side_effect=OSError(ENOSPC, "No space left on device"))
    monkeypatch.setattr("nplm.models.auto.fitting.replacing", full)
    lm = AutoLM(1.0, settings=SMALL | {"epochs": 1}, random_state=0)
    with pytest.warns(RuntimeWarning, match="is not kept: No space left on device"):
        lm.fit(TEXTS, checkpoint=tmp_path)
    equal(AutoLM(recipe=lm.recipe_).fit(TEXTS), lm)


def test_disk_without_room_for_all_that_is_saved_is_refused(tmp_path, monkeypatch):
    allocate = Mock(side_effect=OSError(ENOSPC, ""))
    monkeypatch.setattr("os.posix_fallocate", allocate)
    for members in ["network"], ["ngrams", "network"], ["ngrams", "classes"]:
        lm = AutoLM(1.0, settings=SMALL | {"members": members})
        message = r"is full: .* needed there, and .* free some"
        with pytest.raises(OSError, match=message):
            lm.fit(TEXTS, checkpoint=tmp_path / "state")
        assert not any(tmp_path.iterdir())
    network, both, ngrams = (call.args[2] for call in allocate.call_args_list)
    monkeypatch.undo()
    nplm.save(AutoLM(settings=NGRAMS).fit(TEXTS), tmp_path / "ngrams")
    # Of each kind of n-grams; those of this text repeat.
    assert (tmp_path / "ngrams").stat().st_size < both - network == ngrams / 2


def test_fit_that_is_killed_before_its_network_resumes(tmp_path, monkeypatch):
    lm = AutoLM(1.0, settings=SMALL | {"epochs": 1}, random_state=0)
    with monkeypatch.context() as context:
        context.setattr(AutoFit, "_ngrams", Mock(side_effect=Killed))
        with pytest.raises(Killed):
            lm.fit(TEXTS, checkpoint=tmp_path)
    for other, documents, message in (
        (AutoLM(1.0, random_state=0), TEXTS, r"of another fit: its settings was \{'n_"),
        (lm, TEXTS[:-1], "of another fit: its X was"),
    ):
        with pytest.raises(CheckpointError, match=message):
            clone(other).fit(documents, checkpoint=tmp_path)
    monkeypatch.setattr("nplm.models.auto.choosing.choose", None)
    budget = Budget(60)
    fit_within(budget, lm, TEXTS, checkpoint=tmp_path)
    assert budget.spent_before > 0
    equal(AutoLM(recipe=lm.recipe_).fit(TEXTS), lm)


@pytest.mark.parametrize(
    "damage",
    [
        "[]", "{}", "3", "{", '{"recipe": "network"}', dict(seconds="12"),
        dict(seconds=-1), dict(most=1.5), dict(asked=[]), dict(more=1),
        dict(seconds=float("nan")), dict(recipe={"minutes": 1, "members": 5}),
        dict(recipe={"minutes": 1, "members": ["network"]}), dict(asked={}),
    ],
    ids=str,
)  # fmt: skip
def test_damaged_choice_is_refused(tmp_path, damage):
    lm = AutoLM(1.0, settings=NGRAMS).fit(TEXTS[:20], checkpoint=tmp_path)
    path = tmp_path / "choice.json"
    if isinstance(damage, dict):
        damage = json.dumps(json.loads(path.read_text()) | damage)
    path.write_text(damage)
    with pytest.raises(CheckpointError, match=r"damaged; remove the|of another fit"):
        lm.fit(TEXTS[:20], checkpoint=tmp_path)


def test_network_that_diverges_leaves_no_choice(tmp_path, monkeypatch):
    diverges = Mock(side_effect=DivergenceError("diverged."))
    monkeypatch.setattr(AutoFit, "_trained", diverges)
    lm = AutoLM(1.0, settings=SMALL | {"members": ["network"]})
    with pytest.raises(DivergenceError):
        lm.fit(TEXTS, checkpoint=tmp_path / "state")
    assert diverges.call_count == 3
    assert not any(tmp_path.iterdir())


def test_settings_that_the_network_before_refuses_leave_no_choice(tmp_path):
    lm = AutoLM(1.0, settings=SMALL | {"epochs": 1, "members": ["network"]}).fit(TEXTS)
    for name, value in ("n_hidden", 7), ("spelling", True):
        other = clone(lm).set_params(settings=lm.settings | {name: value})
        message = f"^settings: {name}={value} is not that of .*continues: leave it"
        with pytest.raises(ValueError, match=message):
            other.fit(iter([]), before=lm, checkpoint=tmp_path / "state")
        assert not any(tmp_path.iterdir())


def test_state_of_a_fit_after_another_model_names_the_choice(tmp_path, monkeypatch):
    settings = SMALL | {"epochs": 1, "members": ["network"]}
    one, other = (
        AutoLM(1.0, settings=settings | {"dropout": dropout}, random_state=0)
        for dropout in (0.0, 0.1)
    )
    one.fit(TEXTS)
    with monkeypatch.context() as context:
        context.setattr(AutoFit, "_network", Mock(side_effect=Killed))
        with pytest.raises(Killed):
            clone(one).fit(TEXTS, before=one, checkpoint=tmp_path)
    message = r"its dropout of before was 0\.0, now it is 0\.1\. To resume"
    with pytest.raises(CheckpointError, match=message):
        clone(one).fit(TEXTS, before=other.fit(TEXTS), checkpoint=tmp_path)


def test_checkpoint_has_one_fit_at_a_time(tmp_path, monkeypatch):
    def another(fit):
        with pytest.raises(CheckpointError, match="is using"):
            AutoLM(1.0, settings=NGRAMS).fit(TEXTS[:20], checkpoint=tmp_path)
        raise Killed

    lm = AutoLM(1.0, settings=NGRAMS)
    with monkeypatch.context() as context:
        context.setattr(AutoFit, "_ngrams", another)
        with pytest.raises(Killed):
            lm.fit(TEXTS, checkpoint=tmp_path)
    assert (tmp_path / "choice.json").exists()
    lm.fit(TEXTS, checkpoint=tmp_path)


@pytest.mark.slow
def test_killed_fit_resumes_with_its_recipe(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "state"
    lm = AutoLM(0.1, settings=ENDLESS, random_state=0, verbose=1)
    budget = Budget(6)
    after(monkeypatch, lambda done: n_saves(folder) > 1 and budget.spent > 2, Killed)
    with pytest.raises(Killed):
        fit_within(budget, lm, TEXTS, checkpoint=folder)
    monkeypatch.undo()
    spent, budget, began = budget.spent, Budget(6), time.perf_counter()
    fit_within(budget, lm, TEXTS, checkpoint=folder)
    seconds = time.perf_counter() - began
    assert seconds < 6.3 - spent + 1
    # All the time is reported, but for what the last save does not have.
    assert budget.spent == pytest.approx(spent + seconds, abs=1)
    [left] = re.findall("of which 0:0(.) are left", capsys.readouterr().out)[1:]
    assert int(left) < 6
    equal(AutoLM(recipe=lm.recipe_).fit(TEXTS), lm)


@pytest.mark.slow
def test_fit_that_is_killed_after_it_diverged_resumes(tmp_path, monkeypatch):
    folder, errors = tmp_path / "state", [Killed(), DivergenceError("diverged.")]
    original, n = AutoFit._progress, 0

    def progress(self, done, total, loss):
        nonlocal n
        if errors and n_saves(folder) > n:
            error = errors.pop()
            n = n_saves(folder) if isinstance(error, Killed) else 0
            raise error
        original(self, done, total, loss)

    monkeypatch.setattr(AutoFit, "_progress", progress)
    lm = AutoLM(0.2, settings=SMALL | {"learning_rate_init": 0.01}, random_state=0)
    with pytest.raises(Killed):
        lm.fit(TEXTS, checkpoint=folder)
    monkeypatch.undo()
    lm.fit(TEXTS, checkpoint=folder)
    assert lm.recipe_.network["learning_rate_init"] == 0.005
    equal(AutoLM(recipe=lm.recipe_).fit(TEXTS), lm)
