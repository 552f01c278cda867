"""Progress where there is no terminal: lines, now and then."""

import io

import pytest
from rich.console import Console

from nplm.cli import _bars


@pytest.fixture
def lines(monkeypatch):
    """Show a stage at a time; give the lines that were said."""
    clock, file = [0.0], io.StringIO()
    monkeypatch.setattr(_bars.time, "monotonic", lambda: clock[0])
    shown = _bars.stages(Console(file=file))

    def lines(at, *progress):
        clock[0] = at
        shown.show(*progress)
        return file.getvalue().splitlines()

    return lines


def test_a_line_when_a_stage_begins_and_now_and_then(lines):
    assert lines(0, "MLP9: training", 0, 0, "") == ["MLP9: training"]
    assert len(lines(10, "MLP9: training", 10, 100, "perplexity 500")) == 1
    said = lines(40, "MLP9: training", 40, 100, "perplexity 400")
    assert said[1:] == ["MLP9: training: 40%, 60 s left at most. perplexity 400"]
    assert len(lines(69, "MLP9: training", 50, 100, "")) == 2
    assert len(lines(71, "MLP9: training", 51, 100, "")) == 3
    assert lines(72, "MLP9: scoring", 0, 10, "")[3:] == ["MLP9: scoring"]


def test_time_left_of_what_goes_on_is_of_this_run(lines):
    lines(0, "a", 500, 1000, "")
    assert lines(60, "a", 510, 1000, "")[1:] == ["a: 51%, 49 minutes left at most."]


def test_bars_are_for_terminals():
    console = Console(file=io.StringIO(), force_terminal=True)
    assert isinstance(_bars.stages(console), _bars.StageBars)
