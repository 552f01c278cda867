"""Where progress is visible: a notebook, the terminal, or the lines of a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Log", "Surface", "Terminal", "surface"]

MAX_BAR_CHARS = 30
SECONDS_A_LINE = 60.0


class Surface(Protocol):
    """What shows the progress of a call."""

    def begin(self, text: str) -> None:
        """Show that a stage begins."""

    def show(self, share: float | None, text: str) -> None:
        """Show the share of a stage that is done, None if it is unknown."""

    def close(self, text: str) -> None:
        """Show no more; `text` may remain."""


class Notebook(Surface):
    """An HTML element that is updated in place."""

    def __init__(self) -> None:
        self._handle: Any = None

    def begin(self, text: str) -> None:
        self.show(0, text)

    def show(self, share: float | None, text: str) -> None:
        from IPython.display import HTML, display

        bar = f'<progress value="{share or 0:.3f}"></progress>'
        element = HTML(f"{bar} {escape(text)}")
        if self._handle is None:
            self._handle = display(element, display_id=True)
        else:
            self._handle.update(element)

    def close(self, text: str) -> None:
        if self._handle is not None:
            from IPython.display import HTML

            self._handle.update(HTML(escape(text)))


class Terminal(Surface):
    """A bar on the last line of the terminal, cleared at the end.

    - `console`: by default that of standard error
    - `live`: whether a thread keeps the time of a stage up to date, and what is printed
      meanwhile goes above the bar
    """

    def __init__(self, console: Console | None = None, *, live: bool = False) -> None:
        # Imported here: it is needed only where a bar is shown.
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
        from rich.table import Column

        column = Column(no_wrap=True, overflow="ellipsis")
        text = TextColumn("{task.description}", markup=False, table_column=column)
        self._bar = BarColumn(MAX_BAR_CHARS)
        self._other_chars = len("  0:00:00") if live else 1
        self._progress = Progress(
            self._bar, text, *([TimeElapsedColumn()] if live else []),
            console=console or Console(stderr=True), transient=True, auto_refresh=live,
            redirect_stdout=live, redirect_stderr=live,
        )  # fmt: skip

    def begin(self, text: str) -> None:
        for task in self._progress.task_ids:
            self._progress.remove_task(task)
        self._progress.add_task(text, total=None)
        self._progress.start()
        self.show(None, text)

    def show(self, share: float | None, text: str) -> None:
        if not self._progress.task_ids:
            self.begin(text)
        # The bar is shortened to fit the text.
        room = self._progress.console.width - len(text) - self._other_chars
        self._bar.bar_width = max(1, min(MAX_BAR_CHARS, room))
        total = None if share is None else 1.0
        [task] = self._progress.task_ids
        self._progress.update(
            task, completed=share, total=total, description=text, refresh=True
        )

    def close(self, text: str) -> None:
        self._progress.stop()


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Log(Surface):
    """Lines on standard error: one at the start, and at least one a minute.

    - `n_lines`: lines in all, as equal shares of a stage; 0 for none besides
    - `write`: prints a line
    """

    def __init__(self, n_lines: int, write: Callable[[str], None] = _print) -> None:
        self._n_lines, self._write = n_lines, write
        self._done, self._written = 0, time.perf_counter()

    def begin(self, text: str) -> None:
        self._done = 0
        self._line(text)

    def show(self, share: float | None, text: str) -> None:
        done, now = int((share or 0) * self._n_lines), time.perf_counter()
        if done > self._done or now - self._written >= SECONDS_A_LINE:
            self._done = done
            self._line(text)

    def close(self, text: str) -> None:
        pass

    def _line(self, text: str) -> None:
        self._written = time.perf_counter()
        self._write(text)


def surface() -> Surface:
    """Return the surface on which a bar is visible."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None and "IPKernelApp" in shell.config:
        return Notebook()
    return Terminal() if sys.stderr.isatty() else Log(10)
