"""Progress, as bars on a terminal and as lines elsewhere."""

from __future__ import annotations

import time
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

__all__ = ["StageBars", "StageLines", "stages"]

SECONDS_A_LINE = 30.0


class StageBars(Progress):
    """Progress bars, one at a time, with an estimate of the time left."""

    def __init__(self, console: Console) -> None:
        super().__init__(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            transient=True,
        )
        self._stage = ""

    def show(self, stage: str, done: float, total: float, note: str) -> None:
        """Show the progress of a stage; a `progress` of `nplm.experiments`."""
        if stage != self._stage:
            for task in self.task_ids:
                self.remove_task(task)
            self._stage = stage
            self.add_task(stage, total=None, note="")
        if total and self.tasks[0].total is None:  # from where a fit goes on
            self.reset(self.task_ids[0], total=total, completed=int(done))
        self.update(self.task_ids[0], completed=done, total=total or None, note=note)


class StageLines:
    """Progress as lines: one when a stage begins, and one every 30 seconds."""

    def __init__(self, console: Console) -> None:
        self._console, self._stage = console, ""
        self._began = self._told = 0.0
        self._first: float | None = None  # above 0 if a fit goes on from a checkpoint

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def show(self, stage: str, done: float, total: float, note: str) -> None:
        """Show the progress of a stage; a `progress` of `nplm.experiments`."""
        now = time.monotonic()
        if stage != self._stage:
            self._stage, self._told, self._first = stage, now, None
            self._say(stage)
        if self._first is None and total:
            self._began, self._first = now, done
        if now - self._told < SECONDS_A_LINE:
            return
        if not total and note:
            self._told = now
            self._say(f"{stage}: {note}")
        elif self._first is not None and done > self._first:
            self._told = now
            left = (total - done) * (now - self._began) / (done - self._first)
            minutes = f"{left / 60:.0f} minutes" if left > 90 else f"{left:.0f} s"
            self._say(
                f"{stage}: {done / total:.0%}, {minutes} left at most. {note}".rstrip()
            )

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def stages(console: Console) -> StageBars | StageLines:
    """Return a context that shows stages: as bars on a terminal, else as lines."""
    return StageBars(console) if console.is_terminal else StageLines(console)
