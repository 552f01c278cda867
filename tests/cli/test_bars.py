"""Progress of commands: lines where there is no terminal, and a bar on one."""

import io
import re
import warnings

import click
import pytest
from rich.console import Console

from nplm.cli import main
from nplm.cli._bars import stages
from nplm.cli._messages import report_in_options
from nplm.cli._text import Files


@pytest.fixture
def lines(monkeypatch):
    """Show a stage at a time; give the lines that were printed."""
    clock, file = [0.0], io.StringIO()
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    with stages(Console(file=file)) as shown:

        def lines(at, *progress):
            clock[0] = at
            shown.show(*progress)
            return file.getvalue().splitlines()

        yield lines


def test_a_line_when_a_stage_begins_and_every_minute(lines):
    assert lines(0, "MLP9: training", 0, 0, "") == ["MLP9: training"]
    assert len(lines(10, "MLP9: training", 10, 100, "perplexity 500")) == 1
    printed = lines(70, "MLP9: training", 40, 100, "perplexity 400")
    assert printed[1:] == ["MLP9: training: 40%, perplexity 400, 70 s, 2 minutes left"]
    assert len(lines(129, "MLP9: training", 70, 100, "")) == 2
    assert lines(131, "MLP9: training", 71, 100, "")[2:] == [
        "MLP9: training: 71%, 131 s, 54 seconds left"
    ]
    assert lines(132, "MLP9: scoring", 0, 10, "")[3:] == ["MLP9: scoring"]
    assert lines(200, "MLP9: scoring", 0, 0, "9 lines")[4:] == [
        "MLP9: scoring: 9 lines, 68 s"
    ]


def test_time_left_of_what_goes_on_is_of_this_run(lines):
    lines(0, "a", 500, 1000, "")
    assert lines(60, "a", 510, 1000, "")[1:] == ["a: 51%, 60 s, 49 minutes left"]


@pytest.mark.parametrize("lines", [0, None])
def test_a_terminal_has_a_bar(monkeypatch, lines):
    monkeypatch.setenv("TERM", "xterm")
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    with stages(console, lines=lines) as shown:
        count = shown.counting("words")
        count("reading", 9000, 0)
        for done in range(2):
            count("sorting", done, 4)
    drawn = re.sub(r"\x1b\[[\d;?]*[hlm]", "", console.file.getvalue())
    assert "reading 0:00:00" in drawn
    assert "sorting: 25%, 0 seconds left 0:00:00" in drawn
    assert drawn.endswith("\x1b[2K")


def test_notes_are_printed_above_a_bar(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    with (
        click.Context(main), report_in_options(), stages(console, lines=None) as shown,
    ):  # fmt: skip
        shown.counting("words")("reading", 1, 4)
        warnings.warn("the text is small.", UserWarning, stacklevel=1)
    assert "\r\x1b[2KNote: the text is small.\n" in console.file.getvalue()


def test_time_left_of_a_stage_without_a_total_is_that_of_the_files(
    tmp_path, monkeypatch
):
    clock, printed = [0.0], io.StringIO()
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    names = [tmp_path / name for name in "ab"]
    for name in names:
        name.write_bytes(b"x" * 50)
    files = Files(map(str, names))
    with stages(Console(file=printed)) as shown:
        count = shown.counting("words", files)
        for n, file in enumerate(files, 1):
            file.read(10)
            count("reading", 2 * n, 0)
            clock[0] += 60
    assert printed.getvalue().splitlines() == [
        "reading", "reading: 20%, 4 words, 60 s, 8 minutes left",
    ]  # fmt: skip
    assert Files(["-"]).n_bytes == 0


def test_a_pipe_has_a_speed_in_place_of_time_left(monkeypatch):
    clock, printed = [0.0], io.StringIO()
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    with stages(Console(file=printed)) as shown:
        for files in None, Files(["-"]):
            count = shown.counting("words", files)
            for n in (0, 9000, 30000):
                count(f"reading {files is None}", n, 0)
                clock[0] += 60
    assert printed.getvalue().splitlines()[1:4] == [
        "reading True: 9,000 words, 150 a second, 60 s",
        "reading True: 30,000 words, 250 a second, 120 s",
        "reading False",
    ]


def test_no_lines_where_none_are_wanted():
    file = io.StringIO()
    for console in (Console(file=file), Console(file=file, quiet=True)):
        with stages(console, lines=0 if console.quiet else None) as shown:
            shown.show("reading", 0, 0, "9 lines")
    assert file.getvalue() == ""
