"""Commands over n-grams start without scikit-learn, and so does the help."""

import os
import subprocess
import sys

import pytest

from nplm import KneserNeyLM, TextLM, Tokenizer
from nplm.cli import COMMANDS, main
from nplm.formats import estimate_binary, save_binary, write_arpa
from tests.helpers import small_text

pytestmark = small_text

TEXTS = ["a rose is a rose", "is a rose a rose", "the rose is red"] * 5
# What takes longer to import than a small text to work on.
SLOW = ("sklearn", "scipy", "pandas", "joblib")
# Runs commands one after the other, and tells the first that has imported one of them.
RUN = f"""
import sys
from nplm.cli import main

for command in sys.argv[1:]:
    try:
        main(command.split(), standalone_mode=False)
    except SystemExit:
        pass
    found = sorted({{name.split(".")[0] for name in sys.modules}} & set({SLOW}))
    assert not found, (command, found)
"""
SCORING = """
score MODEL TEXT
score --json --with-text MODEL TEXT
score --jobs 2 MODEL TEXT
filter MODEL TEXT --keep 0.5
query MODEL TEXT
query --columns srilm MODEL TEXT
query --summary --json MODEL TEXT
"""
CHANGING = """
--help
--version
train --help
count TEXT -o OUT/counts
train TEXT -o OUT/mapped --order 3 --test TEXT
train TEXT -o OUT/arpa.gz --order 2 --min-counts 1,2 --vocabulary WORDS
train TEXT -o OUT/small --bits 8 --tokens blanks
train OUT/counts -o OUT/a.arpa --counts
convert arpa OUT/mapped --to binary
convert mapped OUT/8 --bits 8
convert 8bits OUT/b.arpa
convert arpa OUT/e.arpa --boost WORDS
convert arpa OUT/G --to fst --symbols OUT/symbols
prune mapped OUT/pruned.arpa
prune arpa OUT/pruned --to binary --limit-vocab WORDS
mix arpa mapped -o OUT/c.arpa --valid TEXT
expand arpa OUT/d.arpa --classes CLASSES
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Files of n-grams of every kind, and a text."""
    folder = tmp_path_factory.mktemp("models")
    lm = TextLM(KneserNeyLM(3), 2, tokenizer=Tokenizer(r"\S+")).fit(TEXTS)
    words = lm.vocabulary_.words_.tolist()
    write_arpa(lm.estimator_, folder / "arpa", words)
    for name, form in {
        "mapped": {}, "8bits": {"bits": 8}
    }.items():  # fmt: skip
        save_binary(lm.estimator_, folder / name, words, **form)
    (folder / "text").write_text("A rose, is red\na tulip is red\n")
    estimate_binary(
        KneserNeyLM(3),
        [folder / "text"],
        folder / "tokenizer",
        tokenizer=Tokenizer(lowercase=True),
    )
    return folder


def ran(commands, folder, **names):
    """Run commands in one process, in a folder; return what they print."""
    for name, value in names.items():
        commands = commands.replace(name, str(value))
    lines = commands.strip().splitlines()
    done = subprocess.run(
        [sys.executable, "-c", RUN, *lines],
        capture_output=True, text=True, check=False, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mapped", "8bits", "arpa", "tokenizer"])
def test_ngrams_are_scored_without_scikit_learn(models, name):
    assert "rose" in ran(SCORING, models, MODEL=name, TEXT="text")


def test_ngrams_are_made_and_changed_without_scikit_learn(models, tmp_path):
    (tmp_path / "words").write_text("a\nrose\nis\n")
    (tmp_path / "classes").write_text("rose 0.5 rose-a\nrose 0.5 rose-b\n")
    files = {"WORDS": tmp_path / "words", "CLASSES": tmp_path / "classes"}
    ran(CHANGING, models, OUT=tmp_path, TEXT="text", **files)
    assert "rose-b" in (tmp_path / "d.arpa").read_text()


@pytest.mark.parametrize("timeout", [None, "5"])
def test_idle_threads_of_blas_sleep_soon_unless_the_user_says_when(timeout):
    name = "OPENBLAS_THREAD_TIMEOUT"
    env = {key: value for key, value in os.environ.items() if key != name}
    if timeout is not None:
        env[name] = timeout
    # NumPy reads it when it is imported, which the commands do.
    code = "import sys, os, nplm.cli; print('numpy' in sys.modules, os.environ[%r])"
    run = subprocess.run(
        [sys.executable, "-c", code % name], env=env, capture_output=True, text=True
    )
    assert run.stdout.split() == ["False", timeout or "20"]


def test_help_says_what_the_commands_say():
    for name in COMMANDS:
        command = main.get_command(None, name)
        assert command.get_short_help_str(100) == COMMANDS[name], name
