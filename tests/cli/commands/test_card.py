"""The page beside a model, on standard output or in a file."""

import re

import nplm
from nplm.inspection import model_card


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
