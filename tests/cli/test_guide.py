"""The guide of the command line: its commands print what it shows."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from nplm.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "command_line.rst"


def commands(page):
    """Each command of the page's console blocks, and the lines shown after it."""
    for block in re.findall(r"code-block:: console\n\n((?:   .*\n|\n)+)", page):
        for command in re.split(r"^   \$ ", block, flags=re.M)[1:]:
            first, *shown = command.rstrip("\n").split("\n")
            yield first, [line.removeprefix("   ") for line in shown if line.strip()]


def run(command):
    """Give the lines that a command prints; as in a shell, with one pipe at most."""
    given, _, piped = command.rpartition(" | ")
    text = " ".join(shlex.split(given)[1:]) + "\n" if given else None
    result = CliRunner().invoke(main, shlex.split(piped)[1:], input=text)
    assert result.exit_code == 0, result.output
    return [line.rstrip() for line in result.stdout.splitlines() if line.strip()]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_commands_print_what_the_guide_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown_commands = list(commands(PAGE.read_text()))
    assert {c.split()[c.startswith("echo") * 5 + 1] for c, _ in shown_commands} >= {
        "train", "score", "query", "suggest", "generate", "neighbors", "convert",
        "prune", "mix", "count", "expand", "filter",
    }  # fmt: skip
    for command, shown in shown_commands:
        if command.startswith("cat "):  # a file to begin with
            text = "".join(f"{line}\n" for line in shown)
            (tmp_path / command.split()[1]).write_text(text)
        else:
            assert run(command) == shown, command


def test_shells_complete():
    result = CliRunner().invoke(
        main, env={"_NPLM_COMPLETE": "bash_source"}, prog_name="nplm"
    )
    assert "_nplm_completion" in result.output
    env = {
        "_NPLM_COMPLETE": "bash_complete",
        "COMP_WORDS": "nplm su",
        "COMP_CWORD": "1",
    }
    result = CliRunner().invoke(main, env=env, prog_name="nplm")
    assert "suggest" in result.output
