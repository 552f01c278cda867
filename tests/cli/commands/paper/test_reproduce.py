"""``nplm reproduce``: what it prints, what it writes, how it ends."""

import json
import os
import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from nplm.cli import main
from nplm.cli._bars import Stages
from nplm.experiments import TABLES
from tests.helpers import corpus_of


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run the command on a text of five words."""
    ids = np.random.default_rng(0).choice([1, 2, 3, 4], size=300)
    table = replace(TABLES["table1"], load=lambda: corpus_of(ids, None))
    monkeypatch.setitem(TABLES, "table1", table)
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        return CliRunner().invoke(main, ["reproduce", *map(str, arguments)])

    return run


def test_a_table_is_printed_and_written(run, tmp_path):
    result = run(
        "table1", "--rows", "del. int.,MLP10", "--rows", "Kneser-Ney back-off 3"
    )
    assert result.exit_code == 0, result.output
    results = json.loads((tmp_path / "table1" / "results.json").read_text())
    done = {row["name"]: row for row in results["rows"] if row["ours"]}
    assert set(done) == {"Del. Int.", "MLP9", "MLP10", "Kneser-Ney back-off 3"}
    lines = {line.split("  ")[0].strip(): line for line in result.stdout.splitlines()}
    for name, row in done.items():
        for part in ("train", "valid", "test"):
            assert f"{row['ours'][part]:.1f}" in lines[name]
        assert str(row["paper"]["test"]) in lines[name]
    assert "MLP3" in lines  # not done, but the paper's figures
    assert "Mixing with the trigram helps" in result.stdout
    assert "Traceback" not in result.output
    markdown = (tmp_path / "table1" / "results.md").read_text()
    assert f"{done['MLP9']['ours']['test']:.1f}" in markdown
    # Lines, for this is no terminal.
    lines = result.stderr.splitlines()
    before = lines.index("MLP9: training")
    assert any(
        re.fullmatch("MLP9: at most .* to train; 1 of 3 fits are done", line)
        for line in lines[:before]
    )
    ends = [line for line in lines if line[0].isdigit()]
    assert [line.split(": ")[0] for line in ends] == ["1 of 3", "2 of 3", "3 of 3"]
    assert all(line.endswith(" s") for line in ends)  # whole, however long


def test_table_2_on_a_text_of_ones_own(run, tmp_path):
    (tmp_path / "own.txt").write_text("A cat saw 2 dogs.\nThe dog saw a cat.\n" * 40)
    options = ("--rows", "Back-off KN", "--text", tmp_path / "own.txt")
    result = run("table2", *options)
    assert result.exit_code == 0, result.output
    results = json.loads((tmp_path / "table2" / "results.json").read_text())
    assert any(row["ours"] for row in results["rows"])
    # The figures of one text are not gone on with on another.
    (tmp_path / "own.txt").write_text("The dog saw a cat.\n" * 40)
    result = run("table2", *options)
    assert result.exit_code == 1
    assert "corpus" in result.stderr


def test_no_picture_without_matplotlib(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("table1", "--rows", "Del. Int.", "--folder", "x")
    assert result.exit_code == 0
    assert "No picture was drawn" in result.stderr
    assert (tmp_path / "x" / "results.json").exists()
    assert not (tmp_path / "x" / "results.svg").exists()


@pytest.mark.slow
def test_an_interrupt_is_told_and_gone_on_with(run, tmp_path, monkeypatch):
    def interrupt(lines, stage, done, total, note):
        if stage == "MLP9: training" and done:
            raise KeyboardInterrupt

    rows = ("table1", "--rows", "Del. Int.,MLP9")
    with monkeypatch.context() as patch:
        patch.setattr(Stages, "show", interrupt)
        result = run(*rows)
    assert result.exit_code == 130
    assert "the same command goes on" in " ".join(result.stderr.split())
    assert (tmp_path / "table1" / "MLP9" / "clock.json").exists()
    result = run(*rows)
    assert result.exit_code == 0
    folder = os.path.join("table1", "MLP9")
    found = re.search(
        rf"\nMLP9: training \(goes on from {folder}, (\d+)% after \d+ seconds\)\n",
        result.stderr,
    )
    assert found and 0 < int(found[1]) < 100, result.stderr
    assert "1 of 2: Del. Int." in result.stderr and "MLP9 (goes" not in result.stderr
    results = json.loads((tmp_path / "table1" / "results.json").read_text())
    assert {row["name"] for row in results["rows"] if row["ours"]} == {
        "Del. Int.", "MLP9", "MLP10",
    }  # fmt: skip


def test_divergence_is_told_in_words(run, monkeypatch):
    [fit] = TABLES["table1"].fits_of(["MLP9"])
    monkeypatch.setitem(fit.settings, "learning_rate_init", 100.0)
    result = run("table1", "--rows", "MLP9")
    assert result.exit_code == 1
    assert "training diverged" in result.output
    assert "Traceback" not in result.output
