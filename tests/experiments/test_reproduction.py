"""The paper's tables, on a text of five words: every row, and how a run goes on."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator

import nplm
from nplm import (
    CheckpointError,
    InterpolatedTrigram,
    KneserNeyLM,
    MixtureLM,
    NeuralLM,
)
from nplm.experiments import TABLES, fits, reproduce, results_of
from nplm.experiments.fits import Bench
from nplm.models.neural.presets import NETWORKS
from tests.helpers import corpus_of

SHORT = {"batch_size": 16, "learning_rate_init": 0.05, "max_iter": 2, "random_state": 0}


@pytest.fixture(scope="module")
def corpus():
    ids = np.random.default_rng(0).choice(
        [1, 2, 3, 4], p=[0.1, 0.2, 0.3, 0.4], size=400
    )
    text = corpus_of(ids, None)
    parts = dict(zip(("train", "valid", "test"), np.split(text.train, [260, 330])))
    return replace(text, **parts)


@pytest.fixture
def run(corpus, tmp_path):
    """Measure rows in a folder; give the names of those that were not there."""

    def run(*rows, table="table1", folder=tmp_path, **options):
        options = {"corpus": corpus, "changes": SHORT} | options
        found = reproduce(table, folder, rows=rows or None, **options)
        return [name for name, new in found if new]

    return run


def ours(folder, table="table1"):
    return {row["name"]: row["ours"] for row in results_of(table, folder)["rows"]}


@pytest.mark.slow
@pytest.mark.parametrize("table", list(TABLES))
def test_every_row_is_measured_and_kept(run, tmp_path, table):
    names = run(table=table)
    assert names == [fit.rows[0].name for fit in reversed(TABLES[table].fits)]
    results = results_of(table, tmp_path)
    assert [row["name"] for row in results["rows"]] == [
        row.name for row in TABLES[table].rows
    ]
    for row in results["rows"]:
        assert set(row["ours"]) == set(TABLES[table].scored)
        assert all(1 < figure < 10 for figure in row["ours"].values()), row
    for fit in results["fits"]:
        assert fit["seconds"] > 0
        assert fit["threads"] == 1
    assert run(table=table) == []


def test_rows_are_the_models_own_figures(run, corpus, tmp_path):
    run("MLP10", "Del. Int.", "Kneser-Ney back-off 4")
    parts = corpus.windows(4)
    common = {"n_words": corpus.n_words}
    held_out = dict(zip(("X_val", "y_val"), parts.valid))
    trigram = InterpolatedTrigram(3, max_iter=20, tol=0.0, **common)
    trigram.fit(*parts.train, **held_out)
    [fit] = TABLES["table1"].fits_of(["MLP9"])
    network = NeuralLM.from_paper("MLP9", **common, **(fit.changes | SHORT))
    network.fit(*parts.train, **held_out)
    members = [("network", network), ("trigram", trigram)]
    kept = nplm.load(tmp_path / "MLP9.model")
    np.testing.assert_array_equal(kept.C_, network.C_)
    with pytest.warns(UserWarning, match="Kneser-Ney cannot estimate"):
        kneser_ney = KneserNeyLM(
            4, interpolate=False, min_counts=(1, 1, 2), **common
        ).fit(*parts.train)
    models = {
        "Del. Int.": trigram,
        "MLP9": network,
        "MLP10": MixtureLM([(n, FrozenEstimator(m)) for n, m in members]).fit(
            *parts.train
        ),
        "Kneser-Ney back-off 4": kneser_ney,
    }
    found = ours(tmp_path)
    for name, model in models.items():
        for part, data in parts._asdict().items():
            assert found[name][part] == pytest.approx(model.perplexity(*data)), name
    assert found["MLP1"] is None
    [record] = [f for f in results_of("table1", tmp_path)["fits"] if f["fit"] == "MLP9"]
    assert record["facts"]["epochs"] == 2
    [record] = [f for f in results_of("table1", tmp_path)["fits"] if "Ney" in f["fit"]]
    assert "Kneser-Ney cannot estimate" in " ".join(record["notes"])


@pytest.mark.parametrize(
    ("row", "stage"),
    [
        ("MLP3", "MLP3: training"),
        ("MLP3", "MLP3: scoring test"),
        ("class-based back-off 3 c=150", "150 classes: finding"),
    ],
)
def test_an_interrupted_fit_goes_on(run, tmp_path, row, stage):
    run(row, folder=tmp_path / "whole")
    seen = []

    def interrupt(now, done, total, note):
        seen.append(now)
        if now == stage and done > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(row, folder=tmp_path / "cut", progress=interrupt)
    assert stage in seen
    assert ours(tmp_path / "cut")[row] is None
    assert len(list((tmp_path / "cut").glob("*/clock.json"))) == 1
    assert len(run(row, folder=tmp_path / "cut")) == 1
    assert ours(tmp_path / "cut") == ours(tmp_path / "whole")
    assert [path.name for path in (tmp_path / "cut").iterdir() if path.is_dir()] == []


def test_time_left_is_of_all_networks_to_come(run):
    notes = {"MLP3": [], "MLP7": []}

    def note(stage, done, total, text):
        name, _, doing = stage.partition(": ")
        if name in notes and doing == "training":
            notes[name].append(text)

    run("MLP3", "MLP7", "Del. Int.", progress=note)
    assert "left for all" in notes["MLP3"][-1]
    assert "left" not in "".join(notes["MLP7"])  # the last one: its own time is all


def test_the_time_of_a_row_is_told_before_it_starts(run):
    told = []

    def note(stage, done, total, text):
        if "fits are done" in text:
            told.append((stage, text))
        elif stage == "MLP3: training" and not told:
            raise AssertionError("told too late")

    run("Del. Int.", "MLP3", progress=note)
    (first, of_ngrams), (second, of_network) = told
    assert (first, second) == ("Del. Int.", "MLP3")
    assert re.fullmatch(r"about .+ to train; 0 of 2 fits are done", of_ngrams)
    assert re.fullmatch(r"at most .+ to train; 1 of 2 fits are done", of_network)


@pytest.mark.parametrize(
    ("row", "clock", "expected"),
    # 10 s until the first of 81 passes is done, 7 s for the second; 3 s for a quarter.
    [("class-based back-off 3 c=150", [0, 10, 17], 10 + 80 * 7),
     ("Kneser-Ney back-off 3", [0, 3], 12), ("Del. Int.", [0, 3], 12)],
)  # fmt: skip
def test_times_of_ngrams_and_classes_follow_from_a_part(
    monkeypatch, corpus, row, clock, expected
):
    [fit] = TABLES["table1"].fits_of([row])
    bench = Bench(corpus, 4, lambda *_: None, n_jobs=None, scored=("test",))
    monkeypatch.setattr(fits, "TIMED_TOKENS", len(bench.windows.train[1]) / 4)
    looks = SimpleNamespace(perf_counter=iter(clock).__next__)
    monkeypatch.setattr(fits, "time", looks)
    assert fit.expected_seconds(bench) == pytest.approx(expected)


def test_the_work_of_networks_is_that_of_their_output_units():
    work = {fit.rows[0].name: fit.work for fit in TABLES["table1"].fits}
    epochs = TABLES["table1"].fits[0].settings["max_iter"]
    assert work["MLP1"] == epochs * (1 + 50 + 4 * 60)
    assert work["MLP9"] == epochs * (1 + 100)
    assert work["Del. Int."] == 0


def test_time_is_counted_over_all_runs(run, tmp_path):
    def interrupt(now, done, total, note):
        if done > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run("MLP3", progress=interrupt)
    clock = tmp_path / "MLP3" / "clock.json"
    spent = json.loads(clock.read_text())
    assert spent["seconds"] > 0
    assert spent["CPU seconds"] > 0
    clock.write_text(json.dumps({"seconds": 1000.0, "CPU seconds": 2000.0}))
    run("MLP3")
    [record] = results_of("table1", tmp_path)["fits"]
    assert 1000 < record["seconds"] < 1100
    assert 2000 < record["CPU seconds"] < 2100


def test_rows_by_pattern():
    table = TABLES["table1"]

    def chosen(*names):
        return [row.name for fit in table.fits_of(names) for row in fit.rows]

    assert chosen("mlp1?", "del.  int.") == ["MLP9", "MLP10", "Del. Int."]
    assert chosen("Kneser-Ney back-off") == [
        f"Kneser-Ney back-off {n}" for n in (3, 4, 5)
    ]
    assert len(chosen("class-based*")) == 7
    assert chosen("MLP2", "MLP1") == ["MLP1", "MLP2"]


def test_what_is_not_there_is_refused(run, corpus, tmp_path):
    for name in ("MLP11", "", "Kneser-Ney back-off 6"):
        with pytest.raises(ValueError, match="is not a row of table1: choose among ML"):
            run(name)
    with pytest.raises(ValueError, match="'table3' is no table"):
        run(table="table3")
    with pytest.raises(ValueError, match="The test part of letters is empty"):
        run("MLP3", corpus=replace(corpus, test=np.empty(0, np.int32)))
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        run("Del. Int.", folder=tmp_path / "file")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"rows": {}}', '"rows marks"'])
def test_a_damaged_result_is_told(run, tmp_path, text):
    run("Del. Int.")
    path = tmp_path / "Del-Int.json"
    path.write_text(text)
    with pytest.raises(CheckpointError, match=r"Del-Int\.json is damaged"):
        run("Del. Int.")
    with pytest.raises(CheckpointError, match="is damaged"):
        results_of("table1", tmp_path)
    path.unlink()
    assert run("Del. Int.") == ["Del. Int."]


def test_a_result_of_something_else_is_told(run, corpus, tmp_path):
    run("MLP3")
    with pytest.raises(CheckpointError, match="its batch_size was 16, this"):
        run("MLP3", changes=SHORT | {"batch_size": 8})
    with pytest.raises(CheckpointError, match="its train was"):
        run("MLP3", corpus=replace(corpus, train=corpus.train[1:]))


def test_the_papers_own_recipe_is_part_of_a_result(run, monkeypatch, tmp_path):
    run("MLP3")
    monkeypatch.setitem(NETWORKS["MLP3"], "alpha", 1e-3)
    with pytest.raises(CheckpointError, match=r"its alpha was 0\.0001, this one's is"):
        run("MLP3")
    path = tmp_path / "MLP3.json"  # of before the recipe was noted
    record = json.loads(path.read_text())
    del record["marks"]["alpha"]
    path.write_text(json.dumps(record))
    with pytest.raises(CheckpointError, match="its alpha was not noted, this one's is"):
        run("MLP3")
    assert ours(tmp_path)["MLP3"]  # shown all the same


def test_the_papers_own_values():
    ours = TABLES["table1"]
    printed = ours.trained_otherwise(True, {"max_iter": 3})
    assert printed.fits[0].settings == {
        "network": "MLP1", "random_state": 0, "max_iter": 3,
    }  # fmt: skip
    changed = ours.trained_otherwise(False, {"max_iter": 3})
    assert changed.fits[0].settings == ours.fits[0].settings | {"max_iter": 3}
    assert changed.fits[5:] == printed.fits[5:] == ours.fits[5:]
