"""Progress on the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

__all__ = ["StageBars"]


class StageBars(Progress):
    """A bar for each stage, with an estimate of the time left."""

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

    def show(self, stage: str, done: int, total: int, note: str) -> None:
        """Be the `progress` of `nplm.experiments.compare`."""
        if stage != self._stage:
            for task in self.task_ids:
                self.remove_task(task)
            self._stage = stage
            self.add_task(stage, total=None, note="")
        self.update(self.task_ids[0], completed=done, total=total or None, note=note)
