"""``nplm compare``: its options, its output, and how it ends."""

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

import nplm
from nplm.cli import main
from nplm.cli.commands.paper import compare as command
from nplm.datasets import load_text
from nplm.experiments import comparison
from nplm.models.auto import fitting
from nplm.models.auto.fitting import AutoFit

NGRAMS = ["--set", "members=('ngrams',)"]
NETWORK = ["--set", "members=('ngrams','network')", "--minutes", "1"]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """A file of 3,000 random sentences of a small grammar."""
    random = np.random.default_rng(0)
    parts = [["the", "a"], ["cat", "dog"], ["sees", "bites"], ["them", "everything"]]
    path = tmp_path_factory.mktemp("compare") / "text.txt"
    lines = [" ".join(random.choice(part) for part in parts) for _ in range(3000)]
    path.write_text(" .\n".join(lines) + " .\n", encoding="utf-8")
    return path


@pytest.fixture
def run(text):
    def run(*arguments, corpus=text):
        arguments = ["compare", "--corpus", str(corpus), *map(str, arguments)]
        return CliRunner().invoke(main, arguments)

    return run


def test_compare_keeps_the_words_of_a_prepared_text(run, tmp_path):
    path = tmp_path / "prepared.txt"
    path.write_text("the <unk> sees a cat's dog .\n" * 200, encoding="utf-8")
    split = run(*NGRAMS, "--lines", corpus=path)
    assert "Hint: " in split.stderr and "--tokens blanks" in split.stderr
    assert re.search("vocabulary +11 words", split.stdout), split.output
    kept = run(*NGRAMS, "--lines", "--tokens", "blanks", corpus=path)
    assert "Hint: " not in kept.stderr
    assert re.search("vocabulary +8 words", kept.stdout), kept.output
    assert (
        "--tokens is for --corpus PATH"
        in run("--tokens", "blanks", corpus="brown").stderr
    )


def test_compare_reports_and_saves(run, text, tmp_path, monkeypatch):
    # On a machine that is busy, the network learns little in the time.
    monkeypatch.setattr(fitting, "LEAST_WEIGHT", 0.0)
    json_path, folder = tmp_path / "result.json", tmp_path / "new" / "models"
    options = ["--min-count", 1, "--json", json_path, "--output", folder]
    # It ends before the minute does.
    options += ["--ngram-order", 4, "--set", "epochs=1", "--set", "n_hidden=8"]
    result = run(*NETWORK, *options, "--lines")
    assert result.exit_code == 0, result.output
    for heading in (
        "Perplexity",
        "On the test part the network alone is",
        "Out of vocabulary",
        "Next words",
        "Nearest words",
    ):
        assert heading in result.stdout
    assert "AutoLM trains for 60 seconds" in result.stderr

    report = json.loads(json_path.read_text(encoding="utf-8"))
    models = [row["model"] for row in report["rows"]]
    assert models == ["trigram", "Kneser-Ney", "network", "AutoLM"]
    assert [row["n"] for row in report["rows"]] == [3, 4, None, None]
    documents = load_text(text, min_count=1, lines=True).documents("test")
    for row in report["rows"]:
        assert row["model"] in result.stdout
        assert f"{row['test']:.1f}" in result.stdout
        model = nplm.load(folder / row["model"])
        assert row["test"] == pytest.approx(model.perplexity(documents), rel=1e-4)
        assert row["parameters"] == model.estimator_.n_parameters_
        assert (row["seconds"] is None) == (row["model"] == "network")
    assert report["recipe"]["members"] == ["ngrams", "network"]
    assert not report["recipe"]["running_text"]
    for example in report["next_words"]:
        assert len(example["context"]) == 4


def test_tables_are_as_wide_as_they_are(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    lines = run(*NGRAMS).stdout.splitlines()
    [heading] = [line for line in lines if line.split()[:1] == ["model"]]
    assert heading.split()[-2:] == ["parameters", "seconds"]
    first = lines.index(heading) + 2
    rows = lines[first : first + 3]
    assert [row.split()[0] for row in rows] == ["trigram", "Kneser-Ney", "AutoLM"]
    assert all(row.split()[-1].replace(".", "").isdigit() for row in rows)


def test_a_vocabulary_of_unknown_words_is_told(run):
    result = run(*NGRAMS, "--min-count", "100000")
    assert "Warning: 100% of the words are <unk>" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("fails", "rows"),
    [
        ("Kneser-Ney", ["trigram"]),
        pytest.param(
            "network", ["trigram", "Kneser-Ney", "network", "AutoLM"],
            marks=pytest.mark.slow,
        ),
    ],
)  # fmt: skip
def test_an_interrupt_keeps_what_was_trained(run, tmp_path, monkeypatch, fails, rows):
    monkeypatch.setattr(fitting, "LEAST_WEIGHT", 0.0)
    calls = []

    def interrupt(*args, **kwargs):
        calls.append(1)
        if fails != "network" or len(calls) == 20:
            raise KeyboardInterrupt

    if fails == "network":
        monkeypatch.setattr(AutoFit, "_progress", interrupt)
    else:
        monkeypatch.setattr(comparison.KneserNeyLM, "fit", interrupt)
        monkeypatch.setattr(comparison.KneserNeyLM, "fit_stream", interrupt)
    path, folder = tmp_path / "result.json", tmp_path / "models"
    result = run(*NETWORK, "--output", folder, "--json", path)
    assert result.exit_code == 130, result.output
    assert "Interrupted" in result.output
    report = json.loads(path.read_text(encoding="utf-8"))
    assert [row["model"] for row in report["rows"]] == rows
    interrupted = [row["model"] for row in report["rows"] if row["interrupted"]]
    assert interrupted == (["network", "AutoLM"] if fails == "network" else [])
    assert all(f"{name} (interrupted)" in result.stdout for name in interrupted)
    assert {path.name for path in folder.iterdir()} == set(rows)


def test_an_interrupt_while_the_corpus_loads(run, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "load_text", interrupt)
    assert run().exit_code == 130
