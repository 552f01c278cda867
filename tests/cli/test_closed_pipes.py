"""A reader that leaves early, such as head, ends a command quietly."""

import subprocess
import sys

import pytest

COMMANDS = {
    "score": ["score", "@model", "@long"],
    "query": ["query", "@model", "@long"],
    "generate": ["generate", "@model", "-n", "30000", "--seed", "0"],
}


@pytest.fixture(scope="module")
def files(folder, run):
    options = [
        "--order",
        "2",
        "--discount-fallback",
        "0.5",
        "-o",
        str(folder / "model"),
    ]
    run("train", "@train", *options)
    lines = (folder / "train").read_text() * 40
    (folder / "long").write_text(lines)
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_command_ends_quietly_when_its_reader_leaves(files, command):
    arguments = [str(files / a[1:]) if a[0] == "@" else a for a in COMMANDS[command]]
    with subprocess.Popen(
        [sys.executable, "-m", "nplm", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout.readline().strip()
        process.stdout.close()
        errors = process.stderr.read()
        assert process.wait(60) == 1
    assert errors == ""
