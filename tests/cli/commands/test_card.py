"""The page beside a model, on standard output or in a file."""

import re

import pytest

import nplm
from nplm.inspection import model_card


@pytest.fixture(scope="module")
def made(folder, run):
    run("train", "@train", "--order", "3", "--min-count", "2", "-o", "@kn")
    return folder


def test_card_is_that_of_python(made, run, tmp_path):
    options = ["--trained-on", "A grammar.", "--licence", "mit", "--language", "en"]
    texts = ["--text", "@test", "--text", "@train"]
    shown = run("card", "@kn", *options, *texts).stdout
    lines = {
        name: [line for line in (made / name).read_text().splitlines() if line]
        for name in ("test", "train")
    }
    assert shown == model_card(
        nplm.load(made / "kn"), "kn", trained_on="A grammar.", licence="mit",
        language="en", texts=lines,
    )  # fmt: skip
    path = tmp_path / "README.md"
    run("card", "@kn", *options, *texts, "-o", str(path))
    assert path.read_text() == shown
    found = re.search(r"\| test \| .* \| (\S+) \| (\S+) \|", shown)
    summary = run("query", "--summary", "@kn", "@test").stdout
    for kind, own in zip(("with", "without"), found.groups()):
        value = re.search(rf"perplexity {kind} unknown words: (\S+)", summary)[1]
        assert f"{float(value):.2f}" == own


def test_card_is_not_written_over_the_model_or_a_text(made, run, tmp_path):
    for path in ("@kn", "@test"):
        result = run("card", "@kn", "--text", "@test", "-o", path, code=2)
        assert "is read, and" in result.stderr
    (tmp_path / "test").write_text("the cat\n")
    result = run("card", "@kn", "--text", "@test", "--text", str(tmp_path / "test"),
                 code=2)  # fmt: skip
    assert "two texts have the same name" in result.stderr
    (tmp_path / "blank").write_text("\n\n")
    result = run("card", "@kn", "--text", str(tmp_path / "blank"), code=1)
    assert "there is no line of text in blank" in result.stderr
