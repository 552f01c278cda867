"""What is shown of a table of the paper, from figures that are made up."""

import sys

import pytest

from nplm.experiments import as_markdown, draw, findings, results_of


@pytest.fixture
def results(tmp_path):
    """Those of an empty folder, with some rows filled in."""
    results = results_of("table1", tmp_path)
    figures = {
        "MLP1": 260.5, "MLP3": 259.5, "MLP9": 250.0, "MLP10": 240.0, "Del. Int.": 330.0,
        "Kneser-Ney back-off 3": 300.0,
    }  # fmt: skip
    for row in results["rows"]:
        if row["name"] in figures:
            test = figures[row["name"]]
            row["ours"] = {"train": 100.0, "valid": test + 10, "test": test}
    results["fits"] = [
        {"fit": "MLP1", "seconds": 30.0, "CPU seconds": 30.0, "threads": 1,
         "facts": {"epochs": 1, "valid by epoch": [320.5]}, "settings": {}},
        {"fit": "MLP9", "seconds": 90.0, "CPU seconds": 60.0, "threads": 2,
         "facts": {"epochs": 3, "valid by epoch": [330.5, 280.0, 260.0]},
         "settings": {"batch_size": 32}},
    ]  # fmt: skip
    return results


def test_findings_are_those_of_the_figures(results, tmp_path):
    assert findings(results_of("table2", tmp_path)) == []  # nothing is done
    found = findings(results)
    assert found == [
        "Hidden units help: no, MLP1 260.5 and MLP3 259.5 (the paper 268 and 310).",
        "Mixing with the trigram helps: yes, MLP10 240.0 and MLP9 250.0 (the paper 252 "
        "and 276).",
        "Without direct connections it ends lower: yes, MLP9 250.0 and MLP1 260.5 (the "
        "paper 276 and 268).",
        "Direct connections learn faster: yes, validation after one epoch 320.5 (MLP1) "
        "and 330.5 (MLP9).",
        "The best by validation: MLP10 240.0, of the n-gram models Kneser-Ney back-off "
        "3 300.0, which is 25.0% more.",
    ]


def test_markdown(results):
    lines = as_markdown(results).splitlines()
    assert lines[0] == "# Table 1: Brown"
    [row] = [line for line in lines if line.startswith("| MLP9 | 5")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == [
        "MLP9", "5", "", "100", "30", "no", "no", "175", "100.0", "280", "260.0", "276",
        "250.0",
    ]  # fmt: skip
    [row] = [line for line in lines if line.startswith("| MLP5 |")]
    assert row.endswith("| 209 |  | 296 |  | 279 |  |")
    assert "| MLP9 | 1.5 | 1.0 | 2 | 3 | batch_size=32 |" in lines
    assert f"- {findings(results)[0]}" in lines


@pytest.mark.slow
def test_a_picture_of_the_same_figures_has_the_same_bytes(results, tmp_path):
    pytest.importorskip("matplotlib")
    paths = [tmp_path / name for name in ("a.svg", "b.svg")]
    for path in paths:
        draw(results, path)
    first, second = (path.read_bytes() for path in paths)
    assert first == second
    assert first.startswith(b"<?xml")
    results["rows"][0]["ours"]["test"] = 100.0
    draw(results, paths[1])
    assert paths[1].read_bytes() != first


def test_the_legend_of_a_picture_covers_no_bar(results, tmp_path, monkeypatch):
    figure = pytest.importorskip("matplotlib.figure")
    drawn = []
    savefig = figure.Figure.savefig

    def keeping(self, *args, **kwargs):
        drawn.append(self)
        savefig(self, *args, **kwargs)

    monkeypatch.setattr(figure.Figure, "savefig", keeping)
    draw(results, tmp_path / "a.svg")
    [picture] = drawn
    [axes] = picture.axes
    measured = [row for row in results["rows"] if row["ours"]]
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        row["name"] for row in reversed(measured)
    ]
    values = {f"{row[of]['test']:.0f}" for row in measured for of in ("paper", "ours")}
    assert {text.get_text() for text in axes.texts} == values
    legends = [*picture.legends, *filter(None, [axes.get_legend()])]
    assert [len(legend.get_texts()) for legend in legends] == [2]
    (box,) = (legend.get_window_extent() for legend in legends)
    assert not box.overlaps(axes.get_window_extent())


def test_a_picture_without_matplotlib(results, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        draw(results, tmp_path / "a.svg")
