"""KeptFit: the state of a fit that an interrupt or a kill leaves."""

from __future__ import annotations

from typing import Self

import click

from nplm import CheckpointError
from nplm.cli.training.job import Job
from nplm.models.training.checkpoint import discard, has_save

__all__ = ["KeptFit"]


class KeptFit:
    """The folder with the checkpoint of a fit, beside its output.

    As a context, it says how to go on after an interrupt, and how to begin anew when
    the checkpoint is of another fit.
    """

    def __init__(self, job: Job) -> None:
        self.folder = job.output.with_name(f"{job.output.name}.checkpoint")

    def __enter__(self) -> Self:
        if has_save(self.folder):
            click.echo(f"Going on from {self.folder}.", err=True)
        return self

    def __exit__(self, _: object, error: BaseException | None, *more: object) -> None:
        if isinstance(error, KeyboardInterrupt) and has_save(self.folder):
            click.echo(
                f"The state of the fit is in {self.folder}: the same command goes on "
                "from there.",
                err=True,
            )
        # Not if another fit is at work in the folder, which would lose its state.
        elif isinstance(error, CheckpointError) and not isinstance(
            error.__cause__, BlockingIOError
        ):
            click.echo(
                f"To begin anew, remove the folder {self.folder} or give another "
                "--output.",
                err=True,
            )

    def remove(self) -> None:
        """Remove the checkpoint, but no other files of the folder."""
        discard(self.folder)
