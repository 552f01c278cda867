"""Outputs of every command, never in the place of an input; inputs that are closed."""

import json
import os
import subprocess
import sys

import click
import pytest

from nplm.cli import COMMANDS, main
from nplm.cli._outputs import OutputFile

# A call of each command that writes a file, and the inputs among its arguments.
CALLS = {
    "card": (["@kn", "--text", "@test", "-o", "OUTPUT"], ["@kn", "@test"]),
    "compare": (["--corpus", "@train", "--json", "OUTPUT"], ["@train"]),
    "convert": (["@kn", "OUTPUT", "--bits", "8"], ["@kn"]),
    "count": (["@train", "@test", "-o", "OUTPUT"], ["@train", "@test"]),
    "expand": (["@kn", "OUTPUT", "--classes", "@classes"], ["@kn", "@classes"]),
    "filter": (
        ["@kn", "@test", "--keep", "0.5", "--rejects", "OUTPUT"], ["@kn", "@test"],
    ),
    "mix": (["@kn", "--valid", "@test", "-o", "OUTPUT"], ["@kn", "@test"]),
    "prune": (["@kn", "OUTPUT", "--limit-vocab", "@words"], ["@kn", "@words"]),
    "train": (
        ["@train", "--valid", "@valid", "--test", "@test", "--vocabulary", "@words",
         "-o", "OUTPUT"],
        ["@train", "@valid", "@test", "@words"],
    ),
}  # fmt: skip
# Takes /proc away from Python, and runs commands. threadpoolctl needs the libraries of
# the process, on Linux alone.
WITHOUT_PROC = """
import json, sys

def hook(event, args):
    path = str(args[0]) if event == "open" else ""
    if path.startswith("/proc") and path != "/proc/self/maps":
        raise FileNotFoundError(2, "No such file or directory", str(args[0]))

from nplm.cli import main
sys.addaudithook(hook)
try:
    open("/proc/meminfo")
except FileNotFoundError:
    pass
else:
    sys.exit("/proc is still there")
for arguments in json.loads(sys.stdin.read()):
    main(arguments, prog_name="nplm", standalone_mode=False)
"""


@pytest.fixture(scope="module")
def made(folder, run):
    (folder / "valid").write_text("the cat sees it\na dog bites them\n" * 9)
    (folder / "words").write_text("the\na\ncat\ndog\n")
    (folder / "classes").write_text("them it\n")
    run("train", "@train", "-o", "@kn", "--order", "2", "--tokens", "blanks")
    return folder


def test_every_command_that_writes_a_file_is_tried():
    context = click.Context(main)
    writing = {
        name
        for name in COMMANDS
        for param in main.get_command(context, name).params
        if isinstance(param.type, OutputFile)
    }
    assert writing == set(CALLS)


@pytest.mark.parametrize(
    ("name", "read"), [(name, own) for name in CALLS for own in CALLS[name][1]]
)
def test_output_never_replaces_an_input(made, run, tmp_path, name, read):
    arguments, _ = CALLS[name]
    before, link = (made / read[1:]).read_bytes(), tmp_path / "link"
    link.symlink_to(made / read[1:])
    for output in (read, str(link)):
        result = run(name, *(output if a == "OUTPUT" else a for a in arguments), code=2)
        assert "is read, and would be replaced" in " ".join(result.stderr.split())
    assert (made / read[1:]).read_bytes() == before


@pytest.mark.slow
def test_commands_find_the_memory_without_proc(made, tmp_path):
    kn, train, new = str(made / "kn"), str(made / "train"), str(tmp_path / "new")
    commands = [
        ["train", train, "-o", new, "--order", "2", "--tokens", "blanks"],
        ["count", train, "-o", f"{new}.counts", "--order", "2"],
        ["convert", new, f"{new}.arpa"],
        ["convert", f"{new}.arpa", f"{new}.8", "--bits", "8"],
        ["prune", new, f"{new}.small", "--to", "binary"],
        ["mix", new, kn, "--weights", "0.5,0.5", "-o", f"{new}.both", "--to", "binary"],
        ["expand", new, f"{new}.words", "--classes", str(made / "classes"), "--to",
         "binary"],
        ["score", new, train],
        ["show-versions"],
    ]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PROC], input=json.dumps(commands), text=True,
        capture_output=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "new").read_bytes() == (made / "kn").read_bytes()


ALSO = [pytest.param(n, marks=pytest.mark.slow) for n in ("count", "query", "filter")]


@pytest.mark.parametrize("name", ["train", "score", *ALSO])
def test_closed_standard_input_is_told_in_a_sentence(made, name):
    writes = name in ("train", "count")
    own = ["-o", str(made / "no")] if writes else [str(made / "kn")]
    own += ["--keep", "1"] if name == "filter" else []
    command = ["sh", "-c", 'exec "$@" <&-', "sh", sys.executable, "-m", "nplm", name]
    done = subprocess.run([*command, *own], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("Error: standard input is closed")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device is always full")
def test_full_disk_is_told_without_an_error_number(made):
    command = ["sh", "-c", 'exec "$@" >/dev/full', "sh", sys.executable, "-m", "nplm"]
    command += ["query", str(made / "kn"), str(made / "train")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "Error: No space left on device.\n")
