"""A bar for a fit: in a notebook, on a terminal, or lines of a log."""

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

from nplm.training.loop import OnProgress

__all__ = ["BAR", "bar", "stages"]

BAR = 2  # the `verbose` that shows one
WIDTH = 30  # of a bar on a terminal, in characters at most
TENTHS = 10  # lines of a log


@contextmanager
def bar(
    verbose: int, name: str, note: Callable[[float], str]
) -> Iterator[OnProgress | None]:
    """Give what shows the progress of a fit, where `verbose` asks for a bar.

    Parameters
    ----------
    verbose : int
        2 and more show it.
    name : str
        What is trained.
    note : callable
        What to say of the figure that is made better.

    Yields
    ------
    progress : callable or None
        For the loop.
    """
    around = _AROUND.get()
    if around is not None:  # in the place of its own
        yield _Bar(f"{around.text}, {name}", note, around.surface)
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
    """Give what shows which part of a fit begins, where `verbose` asks for a bar.

    The bars of the parts are shown in the same place, behind the name of the whole,
    whatever the parts' own `verbose`.

    Parameters
    ----------
    verbose : int
        2 and more show it.
    name : str
        What is trained.

    Yields
    ------
    begin : callable
        To be called with the name of a part when it begins.
    """
    around = _AROUND.get()
    if around is None and verbose < BAR:
        yield lambda part: None
        return
    name = name if around is None else f"{around.text}, {name}"
    surface = _surface() if around is None else around.surface
    shown, began = _Stages(name, surface), time.perf_counter()
    token = _AROUND.set(shown)
    try:
        yield shown.begin
    finally:
        _AROUND.reset(token)
        if around is None:
            surface.close(f"{name}: {time.perf_counter() - began:.0f} s")


class _Stages:
    def __init__(self, name: str, surface: Any) -> None:
        self._name, self.text, self.surface = name, name, surface

    def begin(self, part: str) -> None:
        self.text = f"{self._name}: {part}"
        self.surface.begin(self.text)


_AROUND: ContextVar[_Stages | None] = ContextVar("_AROUND", default=None)


class _Bar:
    def __init__(self, name: str, note: Callable[[float], str], surface: Any) -> None:
        self._name, self._note, self._surface = name, note, surface
        self._began: tuple[float, float] | None = None
        self._text, self._share = "", 0.0

    def __call__(self, done: float, total: float, figure: float) -> None:
        now = time.perf_counter()
        if self._began is None:
            self._began = done, now
        share, seconds = done / total, now - self._began[1]
        self._text = f"{self._name}: {share:.0%}, {self._note(figure)}, {seconds:.0f} s"
        if done > self._began[0]:  # a fit that goes on has not begun at 0
            left = seconds * (total - done) / (done - self._began[0])
            # At the end there is still what `closing` tells.
            rest = f", {left:.0f} s left" if done < total else ""
            self._surface.show(share, self._text + rest)
        self._share = share

    def closing(self, text: str) -> None:
        """Show what is done at the end of a pass, which may take a while."""
        self._surface.note(self._share, f"{self._text}, {text}")

    def close(self) -> None:
        self._surface.close(self._text)


class _Notebook:
    """An element of HTML, which is written anew."""

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

    note = show

    def close(self, text: str) -> None:
        if self._handle is not None:
            from IPython.display import HTML

            self._handle.update(HTML(escape(text)))


def _columns() -> int:
    """Ask how wide the terminal is, to which stdout may not go."""
    with suppress(OSError, ValueError, AttributeError):  # it is none that has a size
        if columns := os.get_terminal_size(sys.stderr.fileno()).columns:
            return columns
    return shutil.get_terminal_size().columns


class _Terminal:
    """The last line, which is gone when the fit is done."""

    def begin(self, text: str) -> None:
        self.show(0, text)

    def show(self, share: float, text: str) -> None:
        # A second line would stay there: the bar makes room for the text.
        columns = _columns() - 1
        width = max(0, min(WIDTH, columns - 1 - len(text)))
        drawn = ("━" * round(share * width)).ljust(width)
        line = f"{drawn} {text}"[:columns]
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)

    note = show

    def close(self, text: str) -> None:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


class _Log:
    """A line now and then."""

    def __init__(self) -> None:
        self._tenths = 0

    def begin(self, text: str) -> None:
        self._tenths = 0
        print(text, file=sys.stderr, flush=True)

    def show(self, share: float, text: str) -> None:
        if int(share * TENTHS) > self._tenths:
            self._tenths = int(share * TENTHS)
            print(text, file=sys.stderr, flush=True)

    def note(self, share: float, text: str) -> None:
        """Say what follows the last pass, not every one."""
        if share >= 1:
            print(text, file=sys.stderr, flush=True)

    def close(self, text: str) -> None:
        pass


def _surface() -> _Notebook | _Terminal | _Log:
    """Find out where a bar would be seen."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None and "IPKernelApp" in shell.config:
        return _Notebook()
    return _Terminal() if sys.stderr.isatty() else _Log()
