"""Progress bars of fits: in a notebook, on a terminal, or as lines of a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from nplm.base.progress.surfaces import Log, Surface, surface

__all__ = ["BAR", "OnProgress", "TimeLeft", "bar", "stages", "time_in_words"]

# Called a few times a second with (steps done, steps of all passes, the figure that is
# optimised).
OnProgress = Callable[[float, float, float], None]


def time_in_words(seconds: float) -> str:
    """Return a time as precisely as an estimate is: "59 seconds", "2 hours"."""
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.0f} hours"


BAR = 2  # the least `verbose` that shows a bar


@contextmanager
def bar(
    verbose: int, name: str, note: Callable[[float], str]
) -> Iterator[OnProgress | None]:
    """Show the progress of a fit.

    - `verbose`: 1 prints a line a minute, 2 or more shows a bar
    - `name`: name of the estimator
    - `note`: formats the figure that the fit optimises

    Yields the callback of the training loop; None if nothing is shown.
    """
    enclosing = _ENCLOSING.get()
    if enclosing is not None:  # share its surface
        yield _Bar(f"{enclosing.text}, {name}", note, enclosing.surface)
        return
    if not verbose:
        yield None
        return
    # With 1 the caller prints a line for each pass.
    shown = _Bar(name, note, surface() if verbose >= BAR else Log(0))
    try:
        yield shown
    finally:
        shown.close()


@contextmanager
def stages(verbose: int, name: str) -> Iterator[Callable[[str], None]]:
    """Show the current stage of a fit.

    The bars of the stages use the same surface, prefixed by the name of the fit,
    whatever their own `verbose`.

    - `verbose`: 1 prints lines, 2 or more shows a bar
    - `name`: name of the estimator

    Yields a function to call with the name of each stage when it begins.
    """
    enclosing = _ENCLOSING.get()
    if enclosing is None and not verbose:
        yield lambda part: None
        return
    name = name if enclosing is None else f"{enclosing.text}, {name}"
    if enclosing is not None:
        where = enclosing.surface
    else:
        where = surface() if verbose >= BAR else Log(0)
    shown, began = _Stages(name, where), time.perf_counter()
    token = _ENCLOSING.set(shown)
    try:
        yield shown.begin
    finally:
        _ENCLOSING.reset(token)
        if enclosing is None:
            where.close(f"{name}: {time.perf_counter() - began:.0f} s")


class _Stages:
    def __init__(self, name: str, on: Surface) -> None:
        self._name, self.text, self.surface = name, name, on

    def begin(self, part: str) -> None:
        self.text = f"{self._name}: {part}"
        self.surface.begin(self.text)


_ENCLOSING: ContextVar[_Stages | None] = ContextVar("_ENCLOSING", default=None)


class TimeLeft:
    """The seconds that a stage takes, from the first report of what is done."""

    def __init__(self) -> None:
        self._first: tuple[float, float] | None = None

    def __call__(self, done: float, total: float) -> tuple[float, float | None]:
        """Return the seconds since then, and those left; None if that is unknown."""
        now = time.perf_counter()
        if self._first is None:
            self._first = done, now  # above 0 in a resumed fit
        first, began = self._first
        spent = now - began
        left = spent * (total - done) / (done - first) if done > first else None
        return spent, left


class _Bar:
    def __init__(self, name: str, note: Callable[[float], str], on: Surface) -> None:
        self._name, self._note, self._surface = name, note, on
        self._time_left = TimeLeft()
        self._text, self._label = "", ""

    def __call__(self, done: float, total: float, figure: float) -> None:
        share, (spent, left) = done / total, self._time_left(done, total)
        self._text = f"{self._name}: {share:.0%}, {self._note(figure)}, {spent:.0f} s"
        if left is not None:
            rest = f", {time_in_words(left)} left" if done < total else ""
            self._surface.show(share, self._text + rest + self._label)

    def label(self, text: str) -> None:
        """Name the current work in the next lines; the empty text names none."""
        self._label = f", {text}" if text else ""

    def close(self) -> None:
        self._surface.close(self._text)
