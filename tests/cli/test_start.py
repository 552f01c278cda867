"""Commands that score n-grams start without scikit-learn; so does the help."""

import subprocess
import sys

import pytest

from nplm import KneserNeyLM, TextLM, Tokenizer
from nplm.cli import COMMANDS, main
from nplm.formats import estimate_binary, save_binary, write_arpa
from tests.helpers import small_text

pytestmark = small_text

TEXTS = ["a rose is a rose", "is a rose a rose", "the rose is red"] * 5
# What takes longer to import than a sentence to score.
SLOW = ("sklearn", "scipy", "pandas", "joblib", "rich")
RUN = f"""
import sys
from nplm.cli import main

def run(*arguments):
    try:
        main(arguments, standalone_mode=False)
    except SystemExit:
        pass

{{}}
found = sorted({{{{name.split(".")[0] for name in sys.modules}}}} & set({SLOW}))
assert not found, found
"""
SCORE = RUN.format("""
from nplm import kenlm
model, text = sys.argv[1:]
assert kenlm.Model(model).score("a rose is red") < 0
run("score", model, text)
run("score", "--json", "--with-text", model, text)
run("query", model, text)
run("query", "--columns", "srilm", model, text)
run("query", "--summary", "--json", model, text)
""")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Files of n-grams of every kind, and a text."""
    folder = tmp_path_factory.mktemp("models")
    lm = TextLM(KneserNeyLM(3), 2, tokenizer=Tokenizer(r"\S+")).fit(TEXTS)
    words = lm.vocabulary_.words_.tolist()
    write_arpa(lm.estimator_, folder / "arpa", words)
    for name, form in {
        "mapped": {}, "8 bits": {"bits": 8}
    }.items():  # fmt: skip
        save_binary(lm.estimator_, folder / name, words, **form)
    (folder / "text").write_text("A rose, is red\na tulip is red\n")
    estimate_binary(
        KneserNeyLM(3),
        [folder / "text"],
        folder / "with a tokenizer",
        tokenizer=Tokenizer(lowercase=True),
    )
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mapped", "8 bits", "arpa", "with a tokenizer"])
def test_ngrams_are_scored_without_scikit_learn(models, name):
    ran = subprocess.run(
        [sys.executable, "-c", SCORE, models / name, models / "text"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "rose" in ran.stdout


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_needs_no_scikit_learn(option):
    code = RUN.format(f'run("{option}")')
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_help_says_what_the_commands_say():
    for name in COMMANDS:
        command = main.get_command(None, name)
        assert command.get_short_help_str(100) == COMMANDS[name], name
