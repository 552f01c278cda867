"""``nplm train --minutes``: the best model that a time makes of a text."""

import gzip
import os
import re
import signal
import subprocess
import sys
import time
from errno import ENOSPC
from pathlib import Path
from unittest.mock import Mock

import click
import numpy as np
import pytest

import nplm
from nplm import AutoLM
from nplm.cli.training.minutes import _refuse_too_large
from nplm.models.auto.fitting import CHOICE_FILE, AutoFit, Budget
from nplm.models.training.folder_lock import FolderLock
from tests.helpers.texts import texts

pytestmark = pytest.mark.usefixtures("simulated_clock")
MINUTES = "0.08"


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("\n".join(texts(800, n_words=50)) + "\n")
    return str(path)


@pytest.fixture
def model(tmp_path):
    return str(tmp_path / "model")


def train(run, text, model, *options, code=0):
    return run("train", text, "-o", model, *options, code=code)


def test_minutes_make_a_mixture_that_a_recipe_makes_again(run, text, model, tmp_path):
    options = "--minutes", MINUTES, "--test", text, "--set", "epochs=1"
    found = train(run, text, model, *options)
    for line in ("Text: ", "Models: Kneser-Ney", "Time: ", "mixture", "0.08 minutes."):
        assert line in found.stderr
    assert found.stdout.startswith("test: perplexity ")
    # The table has the perplexity of the test, too.
    assert re.search(r"model +weight +held-out +test +words/s", found.stderr)
    [mixture] = re.findall(r"mixture +[\d.]+ +([\d.]+) ", found.stderr)
    assert f"test: perplexity {mixture}," in found.stdout
    lm = nplm.load(model)
    assert {"ngrams", "network"} <= set(lm.recipe_.members)
    again = str(tmp_path / "again")
    repeated = train(run, text, again, "--recipe", model).stderr  # without a clock
    assert re.search(r"model +weight +held-out +words/s", repeated)
    assert "of 0.08 minutes" not in repeated and "the minutes would" not in repeated
    refused = train(run, text, again, "--recipe", model, "--set", "alpha=0", code=2)
    assert "leave --set out" in refused.stderr
    other = tmp_path / "other"
    other.write_text("one line\n")
    refused = train(run, str(other), again, "--recipe", model, code=1)
    assert "tokens, and this one has 3" in refused.stderr
    documents = texts(50, n_words=50)
    scores = lm.score_samples(documents)
    np.testing.assert_array_equal(nplm.load(again).score_samples(documents), scores)
    assert not os.path.exists(f"{model}.checkpoint")


def test_running_text_is_scored_as_one(run, text, model):
    options = "--minutes", MINUTES, "--text", "running", "--members", "network"
    options += "--adapt", "--set", "n_hidden=8", "--set", "epochs=1"
    found = train(run, text, model, *options)
    assert "a cache of the last 500 words" in found.stderr
    lm = nplm.load(model)
    assert lm.recipe_.running_text
    assert lm.recipe_.network["n_hidden"] == 8
    lines = [line for line in texts(30, n_words=50) if line]
    query = run("query", "--each", "file", model, "-", input="\n".join(lines))
    assert "a file is one text" in query.stderr
    score = run("score", model, "-", input="\n".join(lines))
    assert "running text" not in found.stderr  # no hint
    total = sum(map(float, score.stdout.split()))
    assert float(query.stdout.split("\t")[0]) == pytest.approx(total, abs=1e-3)
    assert total == pytest.approx(lm.score_samples(lines).sum() / np.log(10), abs=1e-3)
    refused = run("score", "--jobs", "2", model, "-", input="a", code=2)
    assert "leave --jobs out" in refused.stderr


@pytest.mark.slow
def test_continued_model_is_not_worse(run, text, model, tmp_path):
    options = "--minutes", MINUTES, "--members", "network"
    train(run, text, model, *options)
    further = str(tmp_path / "further")
    train(run, text, further, *options, "--continue", model)
    before, after = nplm.load(model), nplm.load(further)
    assert after.recipe_.continues
    # The text that is held out is the same, and the network stays if it gets no better.
    assert after.scores_["mixture"] < before.scores_["mixture"] * (1 + 1e-6)
    for more, code, message in (
        ("--members ngrams", 1, "--members must have the network of --continue"),
        ("--tokens blanks", 2, "as its model does: leave --tokens out"),
    ):
        more = "--minutes", "1", "--continue", model, *more.split()
        assert message in train(run, text, further, *more, code=code).stderr
    fixed = *options, "--continue", model, "--set", "n_hidden=7"
    refused = train(run, text, further, *fixed, code=1).stderr
    assert "Error: --set n_hidden=7 is not that of the fitted" in refused
    assert refused.endswith("train another model without --continue.\n")
    assert "reading" not in refused
    other = tmp_path / "other"
    other.write_text("one line\n")
    refused = train(run, str(other), further, *options, "--continue", model, code=1)
    assert "a network needs 2,000 tokens" in refused.stderr


@pytest.mark.slow
def test_continued_model_reads_and_adapts_as_before(run, text, model, tmp_path):
    small = "--set", "n_hidden=8", "--set", "epochs=1", "--minutes", "1"
    train(run, text, model, *small, "--adapt", "--text", "running",
          "--members", "network")  # fmt: skip
    further = str(tmp_path / "further")
    continued = "--minutes", "1", "--set", "epochs=1", "--continue", model
    train(run, text, further, *continued)
    recipe = nplm.load(further).recipe_
    assert recipe.running_text
    assert set(recipe.members) == {"cache", "network"}
    train(run, text, further, *continued, "--text", "documents")
    assert not nplm.load(further).recipe_.running_text
    # A model that was made by a recipe has the members of the recipe.
    repeated = str(tmp_path / "repeated")
    train(run, text, repeated, "--recipe", model)
    train(run, text, further, *continued[:-1], repeated)
    assert set(nplm.load(further).recipe_.members) == {"cache", "network"}


def test_late_start_is_not_called_reading():
    budget = Budget(6, time.perf_counter() - 120)
    said = "2 minutes had passed before 0.80 MB of text were read"
    with pytest.raises(click.ClickException, match=said):
        _refuse_too_large(AutoLM(0.1), budget, 800_000)


@pytest.mark.parametrize("is_piped", [True, False], ids=["a pipe", "compressed"])
def test_limits_hold_for_texts_of_unknown_size(run, model, tmp_path, is_piped):
    path, content = tmp_path / "text.gz", "one two\n" * 100_000
    path.write_bytes(gzip.compress(content.encode()))
    text, given = ("-", content) if is_piped else (str(path), None)
    for options, message in (
        ("--minutes 1 --memory 192M", "--memory of 0.2 GB is too small: reading 0."),
        ("--minutes 0.002 --memory 1G", "--minutes 0.002 is too short: "),
    ):
        found = run("train", text, "-o", model, *options.split(), input=given, code=1)
        assert message in " ".join(found.stderr.split())
        assert "splitting into tokens" not in found.stderr


@pytest.mark.slow
def test_report_claims_only_what_is_known(run, text, model, tmp_path):
    found = train(run, text, model, "--minutes", "1", "--members", "ngrams")
    assert "no time for a network" not in found.stderr
    options = "--minutes", "1", "--set", "epochs=1", "--set", "n_hidden=8"
    found = train(run, text, model, *options)
    # The fit ends early: more minutes would not help.
    assert "the minutes would" not in found.stderr
    assert "teach it no more" not in found.stderr
    found = train(run, text, str(tmp_path / "again"), "--recipe", model)
    assert "a network of 8 units" in found.stderr
    assert "tokens a second" not in found.stderr
    assert "more passes" not in found.stderr


def test_odd_texts_have_a_model_or_a_sentence(run, model, tmp_path):
    for name, content in (
        ("one line", b"one two three\n"), ("one word", b"word"), ("empty", b""),
        ("blank", b"\n\n  \n"), ("binary", bytes(range(256)) * 9),
    ):  # fmt: skip
        path = tmp_path / name
        path.write_bytes(content)
        code = 0 if name.startswith("one") else 1
        found = train(run, str(path), model, "--minutes", "0.05", code=code)
        assert "Traceback" not in found.output
    train(run, str(path), model, "--minutes", "0.05", "--errors", "replace")


@pytest.mark.slow
def test_first_ctrl_c_saves_the_whole_mixture(text, model):
    options = ["--minutes", "1", "--set", "epochs=100000", "--set", "n_hidden=8"]
    command = [sys.executable, "-m", "nplm", "train", text, "-o", model, *options]
    process = subprocess.Popen(
        [*command, "--set", "early_stopping=False"], stderr=subprocess.PIPE, text=True
    )
    begun = Path(f"{model}.checkpoint", CHOICE_FILE)  # written as the network begins
    deadline = time.monotonic() + 60
    while not begun.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Ending: the learning rate falls" in errors
    lm = nplm.load(model)
    assert {"ngrams", "network"} <= set(lm.recipe_.members)
    assert lm.recipe_.last is None
    done, planned = lm.recipe_.corrections[-1]
    assert done < planned <= 1.05 * done + 1


@pytest.mark.slow
def test_state_of_another_fit_is_refused_in_options(
    run, text, model, tmp_path, monkeypatch
):
    def refused(*options, text=text):
        found = train(run, text, model, "--minutes", "1", *options, code=1)
        assert "To begin anew, remove the folder" in found.stderr
        return found.stderr

    with monkeypatch.context() as patch:
        patch.setattr(AutoFit, "_network", Mock(side_effect=KeyboardInterrupt))
        train(run, text, model, "--minutes", "1", code=130)
    assert "its --text running was False, now it is True." in refused(
        "--text", "running"
    )
    assert "its --members was None, now it is ['ngrams']" in refused(
        "--members", "ngrams"
    )
    assert "its --set was {}, now it is {'dropout': 0}." in refused(
        "--set", "dropout=0"
    )
    assert "choose another --output." in refused("--seed", "3")
    other = tmp_path / "other"
    other.write_text("\n".join(texts(799, n_words=50)))
    assert "its TEXT was int32 (" in refused(text=str(other))


def test_full_disk_leaves_the_state_of_the_fit(run, text, model, monkeypatch):
    options = "--minutes", "1", "--set", "epochs=1", "--set", "n_hidden=8"
    full = Mock(side_effect=OSError(ENOSPC, "the disk is full"))
    with monkeypatch.context() as patch:
        patch.setattr("nplm.cli.training.in_memory.nplm.save", full)
        found = train(run, text, model, *options, code=1)
    assert f"{model}.checkpoint: the same command goes on from there." in found.stderr
    assert found.stderr.endswith("Error: the disk is full.\n")
    found = train(run, text, model, *options)
    assert f"Going on from {model}.checkpoint." in found.stderr
    assert not os.path.exists(f"{model}.checkpoint")


def test_notes_come_at_once(run, text, model, monkeypatch):
    full = Mock(side_effect=OSError(ENOSPC, "the disk is full"))
    monkeypatch.setattr("nplm.models.auto.fitting.replacing", full)
    notes = train(run, text, model, "--minutes", "1", "--members", "ngrams").stderr
    note = "Note: The fit continues, but is not kept: the disk is full."
    assert notes.index(note) < notes.index("ngrams")


def test_second_run_of_an_output_is_refused_before_it_reads(run, text, model):
    folder = Path(f"{model}.checkpoint")
    with FolderLock(folder):
        (folder / CHOICE_FILE).write_text("of the first")
        refused = train(run, text, model, "--minutes", MINUTES, code=1).stderr
        assert (folder / CHOICE_FILE).read_text() == "of the first"
    assert re.search(
        r"Another fit \(process .*wait until it .*another --output", refused
    )
    assert "reading the text" not in refused
    (folder / CHOICE_FILE).unlink()
    Path(text).write_text("")
    train(run, text, model, "--minutes", MINUTES, code=1)
    assert not folder.exists()
