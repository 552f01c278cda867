"""The progress of long calls, in a notebook, on a terminal, or as lines of a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from rich.console import Console

MAX_BAR_CHARS = 30
SECONDS_A_LINE = 60.0


class Surface:
    """Where the progress of a call is shown: on this one it is not."""

    has_clock = False  # whether it shows the time since a stage began

    def begin(self, text: str) -> None:
        """Show that a stage begins."""

    def show(self, share: float | None, text: str) -> None:
        """Show the share of a stage that is done, None if it is unknown."""

    def line(self, text: str) -> None:
        """Print a line that remains."""

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

    def line(self, text: str) -> None:
        print(text)

    def close(self, text: str) -> None:
        if self._handle is not None:
            from IPython.display import HTML

            self._handle.update(HTML(escape(text)))


class Terminal(Surface):
    """A bar on the last line of the terminal, cleared at the end.

    - `console`: by default that of standard error
    - `live`: whether a thread keeps the time of a stage up to date, and what is printed
      meanwhile goes above the bar, as warnings always do
    """

    def __init__(self, console: Console | None = None, *, live: bool = False) -> None:
        # Imported here: it is needed only where a bar is shown.
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
        from rich.table import Column

        column = Column(no_wrap=True, overflow="ellipsis")
        elapsed = TimeElapsedColumn(Column(min_width=len("0:00:00")))
        text = TextColumn("{task.description}", markup=False, table_column=column)
        self._bar = BarColumn(MAX_BAR_CHARS)
        self.has_clock = live
        self._other_chars = len("  0:00:00") if live else 1
        self._progress = Progress(
            self._bar, text, *([elapsed] if live else []),
            console=console or Console(stderr=True), transient=True, auto_refresh=live,
            redirect_stdout=live, redirect_stderr=True,
        )  # fmt: skip

    def begin(self, text: str) -> None:
        for task in self._progress.task_ids:
            self._progress.remove_task(task)
        self._progress.add_task(text, total=None)
        self.show(None, text)
        self._progress.start()

    def show(self, share: float | None, text: str) -> None:
        tasks = self._progress.tasks
        if not tasks or (share is None and tasks[-1].total is not None):
            self.begin(text)
        # The bar is shortened to fit the text, whose end has the time left.
        room = self._progress.console.width - self._other_chars
        if len(text) >= room:
            text = "…" + text[len(text) + 2 - room :]
        self._bar.bar_width = max(1, min(MAX_BAR_CHARS, room - len(text)))
        total = None if share is None else 1.0
        [task] = self._progress.task_ids
        self._progress.update(task, completed=share, total=total, description=text)
        if not self.has_clock:  # else the thread draws it
            self._progress.refresh()

    def line(self, text: str) -> None:
        self._progress.console.print(
            text, markup=False, highlight=False, soft_wrap=True
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
        self.line(text)

    def show(self, share: float | None, text: str) -> None:
        done, now = int((share or 0) * self._n_lines), time.perf_counter()
        self._done = min(self._done, done)  # a part of the stage begins
        if done > self._done or now - self._written >= SECONDS_A_LINE:
            self._done = done
            self.line(text)

    def line(self, text: str) -> None:
        self._written = time.perf_counter()
        self._write(text)


def surface() -> Surface:
    """Return the surface on which a bar is visible."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None and "IPKernelApp" in shell.config:
        return Notebook()
    return Terminal() if sys.stderr.isatty() else Log(10)


# Called a few times a second with (steps done, steps of all passes, the figure that is
# optimised).
OnProgress = Callable[[float, float, float], None]


def time_in_words(seconds: float) -> str:
    """Return a time as precisely as an estimate is: "59 seconds", "2 hours"."""
    if seconds < 90:
        return f"{seconds:.0f} second{'s' * (round(seconds) != 1)}"
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
    - `name`: that of the estimator
    - `note`: formats the figure that the fit optimises

    Yields the callback of the training loop; None if nothing is shown.
    """
    where, name, closes = _place(verbose, name)
    if where is None:
        yield None
        return
    shown = _Bar(name, where, note)
    try:
        yield shown
    finally:
        if closes:
            where.close(shown.text)


@contextmanager
def stages(verbose: int, name: str) -> Iterator[Callable[[str], None]]:
    """Show the current stage of a fit; `verbose` and `name` are as of `bar`.

    Yields a function to call with the name of each stage when it begins.
    """
    began = time.perf_counter()
    where, name, closes = _place(verbose, name)
    if where is None:
        yield lambda stage: None
        return
    try:
        with Stages(where, name).enclosing() as shown:
            yield shown.begin
    finally:
        if closes:
            where.close(f"{name}: {time.perf_counter() - began:.0f} s")


def _place(verbose: int, name: str) -> tuple[Surface | None, str, bool]:
    """Return the surface of a call, its name there, and whether it ends with the call.

    A call inside of another one shares its surface.
    """
    enclosing = _ENCLOSING.get()
    if enclosing is not None:
        return enclosing.surface, enclosing.named(name), False
    if not verbose:
        return None, name, False
    # With 1 the caller prints a line for each pass.
    return surface() if verbose >= BAR else Log(0), name, True


class Stages:
    """The stages of a call, one after the other.

    - `name`: that of the call, which prefixes those of the stages
    """

    def __init__(self, on: Surface, name: str = "") -> None:
        self.surface, self._name, self._text = on, name, name
        self._bars: dict[str, _Bar] = {}

    @contextmanager
    def enclosing(self) -> Iterator[Self]:
        """Show the bars and stages of the calls inside, whatever their `verbose`."""
        token = _ENCLOSING.set(self)
        try:
            yield self
        finally:
            _ENCLOSING.reset(token)

    def begin(self, stage: str) -> None:
        """Show that a stage begins."""
        self._text = f"{self._name}: {stage}" if self._name else stage
        self._bars.clear()
        self.surface.begin(self._text)

    def show(self, stage: str, done: float, total: float, note: str) -> None:
        """Show the progress of a stage, which begins with the first call."""
        if stage != self._text:
            self.begin(stage)
        self.count("", done, total, note)

    def named(self, part: str) -> str:
        """Return the name of a part of the current stage."""
        return ", ".join(filter(None, (self._text, part)))

    def count(self, part: str, done: float, total: float, note: str = "") -> None:
        """Show what is done of a part; `total` is 0 if it is unknown."""
        if part not in self._bars or (done == 0 and total):
            self._bars[part] = _Bar(self.named(part), self.surface, str)
        self._bars[part].show(done, total, note)


_ENCLOSING: ContextVar[Stages | None] = ContextVar("_ENCLOSING", default=None)


def counter() -> Callable[..., object]:
    """Return `Stages.count` of the call around this one, for any thread."""
    enclosing = _ENCLOSING.get()
    return (lambda *_: None) if enclosing is None else enclosing.count


def print_line(text: str) -> None:
    """Print a line, above the bar if there is one."""
    enclosing = _ENCLOSING.get()
    (print if enclosing is None else enclosing.surface.line)(text)


class _Bar:
    """What is done of some work, on a surface, with the time left.

    - `note`: formats the figure of a call
    """

    def __init__(self, name: str, on: Surface, note: Callable[[float], str]) -> None:
        self._name, self._surface, self._note = name, on, note
        self._first: tuple[float, float] | None = None
        self.text, self._label = "", ""

    def __call__(self, done: float, total: float, figure: float) -> None:
        self.show(done, total, self._note(figure))

    def show(self, done: float, total: float, note: str) -> None:
        """Show what is done, and the time left, or a rate if `total` is 0: unknown."""
        now = time.perf_counter()
        self._first = first, began = self._first or (done, now)  # not 0 if resumed
        spent = now - began
        parts = [f"{done / total:.0%}"] if total else []
        parts += [note] if note else []
        if note and not total and done > first and spent > 0:
            parts.append(f"{(done - first) / spent:,.0f} a second")
        if not self._surface.has_clock and (total or spent >= 1):
            parts.append(f"{spent:.0f} s")
        self.text = f"{self._name}: {', '.join(parts)}" if parts else self._name
        if not total:
            self._surface.show(None, self.text)
        elif done > first:  # else the time left is unknown
            left = time_in_words(spent * (total - done) / (done - first))
            rest = f", {left} left" if done < total else ""
            self._surface.show(done / total, self.text + rest + self._label)

    def label(self, text: str) -> None:
        """Name the current work in the next lines; the empty text names none."""
        self._label = f", {text}" if text else ""
