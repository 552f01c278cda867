"""The checkpoint beside what a command writes."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import click

from nplm import CheckpointError
from nplm.training.checkpoint import discard, has_save

__all__ = ["Kept"]


class Kept:
    """A folder with what a fit has learned so far.

    As a context, it tells whoever interrupts the fit how to go on, and whoever cannot
    go on what is in the way.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> Self:
        if has_save(self.folder):
            click.echo(f"Going on from {self.folder}.", err=True)
        return self

    def __exit__(self, _: object, error: BaseException | None, *more: object) -> None:
        if isinstance(error, KeyboardInterrupt) and has_save(self.folder):
            click.echo(
                f"What was learned is in {self.folder}: the same command goes on from "
                "there.",
                err=True,
            )
        # Not where another fit is at work in the folder: it would lose its own.
        elif isinstance(error, CheckpointError) and not isinstance(
            error.__cause__, BlockingIOError
        ):
            click.echo(
                f"To begin anew, remove the folder {self.folder} or give another "
                "--output.",
                err=True,
            )

    def remove(self) -> None:
        """Remove it, but not what others put there."""
        discard(self.folder)
