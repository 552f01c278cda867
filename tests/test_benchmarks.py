"""Every benchmark is in the index, and the networks of the benchmarks train."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nplm.experiments import grouped
from tests.helpers import corpus_of

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"


def module_of(path):
    spec = importlib.util.spec_from_file_location(Path(path).stem, BENCHMARKS / path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # for its dataclasses
    spec.loader.exec_module(module)
    return module


ablations = module_of("common/ablations.py")
ABLATIONS, NETWORKS = ablations.ABLATIONS, ablations.NETWORKS

SCRIPTS = {
    path.relative_to(BENCHMARKS).as_posix()
    for path in BENCHMARKS.rglob("*.py")
    if '__name__ == "__main__"' in path.read_text()
}

TINY = dict(order=3, n_hidden=4, embedding_dim=3, max_iter=1, batch_size=16)


def test_every_script_is_in_the_readme():
    named, folder = set(), ""
    for line in (BENCHMARKS / "README.md").read_text().splitlines():
        if found := re.match(r"## `(\w+/)`", line):
            folder = found[1]
        elif found := re.match(r"\| `(\w+\.py)` \|", line):
            named.add(folder + found[1])
    assert named == SCRIPTS


def test_scripts_of_the_measured_pages_are_there():
    page = ROOT / "docs" / "measured" / "index.rst"
    named = set(re.findall(r"``(\w+/\w+\.py)``", page.read_text()))
    assert named
    assert named <= SCRIPTS


@pytest.fixture(scope="module")
def corpus():
    ids = np.random.default_rng(0).choice([0, 2, 3, 4], size=80)
    return ablations.as_stream(corpus_of(ids, 0), 5)


@pytest.mark.parametrize(
    ("name", "changes"),
    [(name, {}) for name in NETWORKS] + [("small", c) for c in ABLATIONS.values()],
    ids=[*NETWORKS, *ABLATIONS],
)
def test_it_trains(corpus, name, changes):
    changes = changes | TINY
    if "n_distant" in NETWORKS[name] | changes:
        changes["n_distant"] = 5
    lm = ablations.network(corpus, name, **changes)
    train, valid, _ = corpus.windows(5)
    lm.fit(*train)
    assert lm.n_words_ == corpus.n_words
    assert np.isfinite(lm.perplexity(*valid))
    spelling = name != "untied" and "word_features" not in changes
    assert (lm.G_ is not None) == spelling
    if spelling:
        matrix, names = corpus.vocabulary.spelling_features()
        assert lm.G_.shape == (len(names), 3)
        assert lm.features.word_features.shape == matrix.shape


def test_each_ablation_changes_what_it_says(corpus):
    whole = ablations.network(corpus, "small").get_params()
    for name, changes in ABLATIONS.items():
        for key, value in grouped(changes).items():
            assert whole[key] is not value and str(whole[key]) != str(value), name


def test_a_stream_has_contexts_across_sentences_and_windows_of_all_words():
    corpus = corpus_of(np.array([3, 0, 2, 4, 3, 0] * 10), 0)
    stream = ablations.as_stream(corpus, 4)
    X, y = stream.windows(4).train
    assert y.tolist() == corpus.train.tolist()
    assert X[:2].tolist() == [[0, 0, 0, 0], [0, 0, 0, 3]]
    assert X[4].tolist() == corpus.train[:4].tolist()  # with the boundary inside
    assert ablations.as_stream(stream, 4) is stream


def test_no_such_network(corpus):
    with pytest.raises(KeyError, match="huge"):
        ablations.network(corpus, "huge")


def test_rows_of_the_rules_are_those_of_the_measurements(tmp_path, monkeypatch):
    rules = module_of("peers/rules.py")
    rows = rules.ROWS
    runs = rules.measured(json.loads(rules.MEASURED.read_text()))
    assert set(rows) & set(runs)
    assert rules.fitted(rows, runs) == rows
    # Two rows are in measurements only, and are found again.
    assert rules.fitted(set(rows) - set(runs), runs) == rows
    table = tmp_path / "rows.csv"
    table.write_bytes(rules.TABLE.read_bytes())
    monkeypatch.setattr(rules, "TABLE", table)
    monkeypatch.setattr(sys, "argv", ["rules.py"])
    rules.main()
    assert table.read_text() == (ROOT / "nplm/models/neural/rows.csv").read_text()
    at = next(i for i, row in enumerate(rows) if row[:2] == (0.93, 3.2))
    better = rows[at]._replace(minutes=2.9, perplexity=80.0)
    worse = rows[at]._replace(minutes=1.9, perplexity=90.0)  # above the line
    others = rows[:at], rows[at + 1 :]
    assert rules.fitted(rows, [worse, better]) == [*others[0], better, *others[1]]


@pytest.mark.slow
def test_versions_are_compared_by_ratios(tmp_path):
    report, script = tmp_path / "report.json", BENCHMARKS / "speed" / "versions.py"
    # One interpreter by two names, which has the modules of this checkout.
    base = os.path.join(os.path.dirname(sys.executable), ".", Path(sys.executable).name)
    options = ["--rounds", "1", "--windows", "400", "--limit", "0"]
    done = subprocess.run(
        [sys.executable, script, base, sys.executable, *options, "--json", report],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
    )  # fmt: skip
    rows = json.loads(report.read_text())["rows"]
    assert all(row["changed, ms"] / row["base, ms"] == row["ratio"] for row in rows)
    assert done.returncode == 1
    names = ", ".join(row["call"] for row in rows)
    assert f"slower by more than 0.0: {names}." in done.stderr
