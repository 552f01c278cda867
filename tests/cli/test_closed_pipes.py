"""A reader that leaves early, such as head, ends a command quietly."""

import json
import subprocess
import sys

import click
import pytest

from nplm.cli import main

# Each prints something; where it also writes a file, that is done before.
COMMANDS = {
    "score": ["score", "@model", "@long"],
    "query": ["query", "@model", "@long"],
    "generate": ["generate", "@model", "-n", "300"],
    "score with jobs": ["score", "@model", "@long", "--jobs", "2"],
    "score in JSON": ["score", "@model", "@long", "--json"],
    "query by line": ["query", "@model", "@train", "--each", "line"],
    "query of the whole": ["query", "@model", "@train", "--summary"],
    "query in JSON": ["query", "@model", "@train", "--json"],
    "suggest": ["suggest", "@model", "the"],
    "neighbors": ["neighbors", "@network", "cat"],
    "train": ["train", "@train", "-o", "@other", "--order", "2", "--test", "@train",
              "--discount-fallback", "0.5"],
    "mix": ["mix", "@model", "@model", "--weights", "0.5,0.5", "-o", "@mixed"],
    "compare": ["compare", "--corpus", "@train", "--lines", "--minutes", "0.02"],
    "card": ["card", "@model"],
    "reproduce": ["reproduce", "--help"],
    "serve": ["serve", "--help"],
    "convert": ["convert", "--help"],
    "prune": ["prune", "--help"],
    "count": ["count", "--help"],
    "expand": ["expand", "--help"],
    "filter": ["filter", "@model", "@long", "--keep", "0.5"],
    "show-versions": ["show-versions"],
}  # fmt: skip
# Runs commands, each in a process that was forked, with no reader of its output.
WITHOUT_A_READER = """
import gc, json, os, sys
import nplm.experiments, nplm.formats, nplm.inspection  # once, for all of them
from nplm import NeuralLM, TextLM
from nplm.cli import main
gc.freeze()
results = {}
for name, arguments in json.loads(sys.stdin.read()).items():
    errors, given = os.pipe()
    if os.fork() == 0:
        reader, writer = os.pipe()
        os.close(reader)
        os.dup2(writer, 1)
        os.dup2(given, 2)
        main(arguments, prog_name="nplm")
    os.close(given)
    text = os.fdopen(errors).read()
    results[name] = os.waitstatus_to_exitcode(os.wait()[1]), text
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def files(folder, run):
    kneser_ney = ["--order", "2", "--discount-fallback", "0.5"]
    run("train", "@train", *kneser_ney, "-o", "@model")
    network = ["--model", "network", "--epochs", "1", "--hidden", "4", "--order", "2"]
    run("train", "@train", *network, "-o", "@network")
    (folder / "long").write_text((folder / "train").read_text() * 40)
    return folder


@pytest.mark.slow
def test_every_command_ends_quietly_when_nobody_reads(files):
    given = {
        name: [str(files / a[1:]) if a[0] == "@" else a for a in arguments]
        for name, arguments in COMMANDS.items()
    }
    commands = main.list_commands(click.Context(main))
    assert {own[0] for own in given.values()} == set(commands)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_A_READER],
        input=json.dumps(given), capture_output=True, text=True, check=True,
    )  # fmt: skip
    results = json.loads(done.stdout)
    assert results.keys() == given.keys()
    for name, (code, errors) in results.items():
        assert code == 1, (name, errors)
        for word in ("Traceback", "Broken", "Exception"):
            assert word not in errors, (name, errors)
    assert (files / "other").exists()
    assert (files / "mixed").exists()
