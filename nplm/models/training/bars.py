"""Progress bars of fits: in a notebook, on a terminal, or as lines of a log."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from html import escape
from typing import Any

from nplm.models.training.loop import OnProgress

__all__ = ["BAR", "bar", "stages"]

BAR = 2  # the least `verbose` that shows a bar
MAX_BAR_CHARS = 30
N_LOG_LINES = 10


@contextmanager
def bar(
    verbose: int, name: str, note: Callable[[float], str]
) -> Iterator[OnProgress | None]:
    """Show the progress of a fit as a bar if `verbose` is 2 or more.

    - `verbose`: 2 or more shows a bar
    - `name`: name of the estimator
    - `note`: formats the figure that the fit optimises

    Yields the callback of the training loop; None without a bar.
    """
    enclosing = _ENCLOSING.get()
    if enclosing is not None:  # share its surface
        yield _Bar(f"{enclosing.text}, {name}", note, enclosing.surface)
        return
    if verbose < BAR:
        yield None
        return
    shown = _Bar(name, note, _surface())
    try:
        yield shown
    finally:
        shown.close()


@contextmanager
def stages(verbose: int, name: str) -> Iterator[Callable[[str], None]]:
    """Show the current stage of a fit if `verbose` is 2 or more.

    The bars of the stages use the same surface, prefixed by the name of the fit,
    whatever their own `verbose`.

    - `verbose`: 2 or more shows the stages
    - `name`: name of the estimator

    Yields a function to call with the name of each stage when it begins.
    """
    enclosing = _ENCLOSING.get()
    if enclosing is None and verbose < BAR:
        yield lambda part: None
        return
    name = name if enclosing is None else f"{enclosing.text}, {name}"
    surface = _surface() if enclosing is None else enclosing.surface
    shown, began = _Stages(name, surface), time.perf_counter()
    token = _ENCLOSING.set(shown)
    try:
        yield shown.begin
    finally:
        _ENCLOSING.reset(token)
        if enclosing is None:
            surface.close(f"{name}: {time.perf_counter() - began:.0f} s")


class _Stages:
    def __init__(self, name: str, surface: Any) -> None:
        self._name, self.text, self.surface = name, name, surface

    def begin(self, part: str) -> None:
        self.text = f"{self._name}: {part}"
        self.surface.begin(self.text)


_ENCLOSING: ContextVar[_Stages | None] = ContextVar("_ENCLOSING", default=None)


class _Bar:
    def __init__(self, name: str, note: Callable[[float], str], surface: Any) -> None:
        self._name, self._note, self._surface = name, note, surface
        self._began: tuple[float, float] | None = None
        self._text, self._label = "", ""

    def __call__(self, done: float, total: float, figure: float) -> None:
        now = time.perf_counter()
        if self._began is None:
            self._began = done, now
        share, seconds = done / total, now - self._began[1]
        self._text = f"{self._name}: {share:.0%}, {self._note(figure)}, {seconds:.0f} s"
        if done > self._began[0]:  # above 0 in a resumed fit
            left = seconds * (total - done) / (done - self._began[0])
            rest = f", {left:.0f} s left" if done < total else ""
            self._surface.show(share, self._text + rest + self._label)

    def label(self, text: str) -> None:
        """Name the current work in the next lines; the empty text names none."""
        self._label = f", {text}" if text else ""

    def close(self) -> None:
        self._surface.close(self._text)


class _Notebook:
    """An HTML element that is updated in place."""

    def __init__(self) -> None:
        self._handle: Any = None

    def begin(self, text: str) -> None:
        self.show(0, text)

    def show(self, share: float, text: str) -> None:
        from IPython.display import HTML, display

        element = HTML(f'<progress value="{share:.3f}"></progress> {escape(text)}')
        if self._handle is None:
            self._handle = display(element, display_id=True)
        else:
            self._handle.update(element)

    def close(self, text: str) -> None:
        if self._handle is not None:
            from IPython.display import HTML

            self._handle.update(HTML(escape(text)))


def _columns() -> int:
    """Return the width of the terminal of stderr; stdout may be redirected."""
    with suppress(OSError, ValueError, AttributeError):  # not a terminal
        if columns := os.get_terminal_size(sys.stderr.fileno()).columns:
            return columns
    return shutil.get_terminal_size().columns


class _Terminal:
    """The last line of the terminal, cleared when the fit ends."""

    def begin(self, text: str) -> None:
        self.show(0, text)

    def show(self, share: float, text: str) -> None:
        # A second line would not be cleared: shorten the bar to fit the text.
        columns = _columns() - 1
        width = max(0, min(MAX_BAR_CHARS, columns - 1 - len(text)))
        drawn = ("━" * round(share * width)).ljust(width)
        line = f"{drawn} {text}"[:columns]
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)

    def close(self, text: str) -> None:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


class _Log:
    """A line for each tenth of the fit."""

    def __init__(self) -> None:
        self._tenths = 0

    def begin(self, text: str) -> None:
        self._tenths = 0
        print(text, file=sys.stderr, flush=True)

    def show(self, share: float, text: str) -> None:
        if int(share * N_LOG_LINES) > self._tenths:
            self._tenths = int(share * N_LOG_LINES)
            print(text, file=sys.stderr, flush=True)

    def close(self, text: str) -> None:
        pass


def _surface() -> _Notebook | _Terminal | _Log:
    """Choose the surface on which a bar is visible."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None and "IPKernelApp" in shell.config:
        return _Notebook()
    return _Terminal() if sys.stderr.isatty() else _Log()
