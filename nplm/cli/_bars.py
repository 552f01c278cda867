"""Progress of the stages of a command: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from nplm.base import progress
from nplm.base.progress import Log, Surface, Terminal
from nplm.cli._text import Chunk, Files, chunks_of, n_bytes_of

if TYPE_CHECKING:
    from rich.console import Console


class Stages(progress.Stages):
    """The stages of a command."""

    def chunks(
        self, stage: str, inputs: Sequence[str], *, follow: bool = False
    ) -> Iterator[Chunk]:
        """Yield the lines of files as `chunks_of`, and show how many are done."""
        n_lines, n_bytes = 0, 0 if follow else n_bytes_of(inputs)
        self.show_units(stage, 0, "lines", 0, n_bytes)
        for chunk in chunks_of(inputs, follow=follow):
            yield chunk
            n_lines += len(chunk.lines)
            self.show_units(stage, n_lines, "lines", chunk.n_bytes, n_bytes)

    def show_units(
        self, stage: str, done: int, unit: str, n_read: int, n_bytes: int
    ) -> None:
        """Show how many units of a stage are done, and its share of the bytes.

        - `n_bytes`: 0 if it is unknown, as of a pipe
        """
        self.show(stage, n_read if n_bytes else done, n_bytes, f"{done:,} {unit}")

    def counting(
        self, unit: str, files: Files | None = None
    ) -> Callable[[str, int, int], None]:
        """Return a `progress` of stages, some of an unknown total, 0.

        - `files`: what such a stage reads, whose size is known unless one is a pipe
        """

        def show(stage: str, done: int, total: int) -> None:
            if total:
                self.show(stage, done, total, "")
                return
            of_files = (0, 0) if files is None else (files.n_read, files.n_bytes)
            self.show_units(stage, done, unit, *of_files)

        return show


@contextmanager
def stages(
    console: Console | None = None, *, lines: int | None = 0
) -> Iterator[Stages]:
    """Show stages as a bar on a terminal, elsewhere as lines.

    - `console`: by default that of standard error
    - `lines`: as of `Log`, besides one a minute; None for none at all
    """
    # Imported here: it would slow the start of commands that show nothing.
    from rich.console import Console

    console = console or Console(stderr=True)

    def write(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    surface = Surface() if lines is None else Log(lines, write)
    if console.is_terminal and not console.quiet:
        surface = Terminal(console, live=True)
    try:
        yield Stages(surface)
    finally:
        surface.close("")


def bars_beside_output(progress: bool | None = None) -> AbstractContextManager[Stages]:
    """Return a bar, by default if it is on a terminal and the output is not."""
    if progress is None:
        progress = sys.stderr.isatty() and not sys.stdout.isatty()
    return stages() if progress else nullcontext(Stages(Surface()))
