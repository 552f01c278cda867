"""Progress of the stages of a command: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

from nplm.base.progress import Log, Surface, Terminal, TimeLeft, time_in_words
from nplm.cli._text import Files

__all__ = ["Stages", "stages"]


class Stages:
    """The stages of a command, one after the other, on a surface if there is one."""

    def __init__(self, surface: Surface | None) -> None:
        self._surface, self._stage = surface, ""
        self._time_left = TimeLeft()

    def show(self, stage: str, done: float, total: float, note: str) -> None:
        """Show the progress of a stage; a `progress` of `nplm.experiments`."""
        if self._surface is None:
            return
        if stage != self._stage:
            self._stage, self._time_left = stage, TimeLeft()
            self._surface.begin(stage)
        parts = [note] if note else []
        if total:
            parts.insert(0, f"{done / total:.0%}")
            _, left = self._time_left(done, total)
            if left is not None and done < total:
                parts.append(f"{time_in_words(left)} left")
        text = f"{stage}: {', '.join(parts)}" if parts else stage
        self._surface.show(done / total if total else None, text)

    def counting(
        self, unit: str, files: Files | None = None
    ) -> Callable[[str, int, int], None]:
        """Return a `progress` of stages, some of an unknown total, 0.

        - `files`: what such a stage reads, whose size is known unless one is a pipe
        """
        first = "", 0.0

        def show(stage: str, done: int, total: int) -> None:
            nonlocal first
            n_read, n_bytes = (done, total) if total else (0, 0)
            if not total and files is not None:
                n_read, n_bytes = files.n_read, files.n_bytes
            note = "" if total else f"{done:,} {unit}"
            now = time.perf_counter()
            if stage != first[0]:
                first = stage, now
            elif not n_bytes and now > first[1]:  # the time left is unknown
                seconds = now - first[1]
                note += f" in {time_in_words(seconds)}, {done / seconds:,.0f} a second"
            self.show(stage, n_read, n_bytes, note)

        return show


@contextmanager
def stages(console: Console | None = None, *, lines: bool = True) -> Iterator[Stages]:
    """Show stages as a bar on a terminal, elsewhere as lines or not at all.

    The terminal is by default that of standard error.
    """
    console = console or Console(stderr=True)

    def write(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    surface: Surface | None = Log(0, write) if lines else None
    if console.is_terminal and not console.quiet:
        surface = Terminal(console, live=True)
    try:
        yield Stages(surface)
    finally:
        if surface is not None:
            surface.close("")
