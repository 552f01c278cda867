"""Where progress is visible: a notebook, the terminal, or the lines of a log."""

from __future__ import annotations

import os
import shutil
import sys
import time
from contextlib import suppress
from html import escape
from typing import Any, Protocol

__all__ = ["Log", "Surface", "surface"]

MAX_BAR_CHARS = 30
SECONDS_A_LINE = 60.0


class Surface(Protocol):
    """What shows the progress of a call."""

    def begin(self, text: str) -> None:
        """Show that a stage begins."""

    def show(self, share: float, text: str) -> None:
        """Show the share of a stage that is done."""

    def close(self, text: str) -> None:
        """Show no more; `text` may remain."""


class Notebook:
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


class Terminal:
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


class Log:
    """Lines on standard error: one at the start, and at least one a minute.

    - `n_lines`: lines in all, as equal shares of a stage; 0 for none besides
    """

    def __init__(self, n_lines: int) -> None:
        self._n_lines, self._done, self._told = n_lines, 0, time.perf_counter()

    def begin(self, text: str) -> None:
        """Show that a stage begins."""
        self._done = 0
        self._print(text)

    def show(self, share: float, text: str) -> None:
        """Show the share of a stage, unless a line has just been printed."""
        done, now = int(share * self._n_lines), time.perf_counter()
        if done > self._done or now - self._told >= SECONDS_A_LINE:
            self._done = done
            self._print(text)

    def close(self, text: str) -> None:
        """Show no more."""

    def _print(self, text: str) -> None:
        self._told = time.perf_counter()
        print(text, file=sys.stderr, flush=True)


def surface() -> Surface:
    """Return the surface on which a bar is visible."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None and "IPKernelApp" in shell.config:
        return Notebook()
    return Terminal() if sys.stderr.isatty() else Log(10)
