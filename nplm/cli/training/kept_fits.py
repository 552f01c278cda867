"""Fits in memory, of some minutes or not: tokenizers, checkpoints, saved models."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

import nplm
from nplm import CheckpointError, Subwords, TextLM, Tokenizer
from nplm.cli.training.job import Job
from nplm.cli.training.options import UNITS
from nplm.models.training.checkpoint import has_save
from nplm.text.words.splitting import BETWEEN_BLANKS


def tokenizer_of(tokens: str) -> Tokenizer | Subwords | None:
    """Return the tokenizer of --tokens; None of words, which models have by default."""
    if tokens in UNITS:
        return Subwords(tokens)
    if tokens == "logs":
        return Tokenizer.for_logs()
    return Tokenizer(BETWEEN_BLANKS) if tokens == "blanks" else None


@contextmanager
def kept_fit(job: Job) -> Iterator[None]:
    """Say how to go on after an interrupt or a full disk, and how to begin anew.

    The checkpoint may be that of another fit.
    """
    folder = job.checkpoint
    if has_save(folder):
        click.echo(f"Going on from {folder}.", err=True)
    try:
        yield
    except (KeyboardInterrupt, OSError):
        if has_save(folder):
            click.echo(
                f"The state of the fit is in {folder}: the same command goes on from "
                "there.",
                err=True,
            )
        raise
    except CheckpointError as error:
        # Not if another fit is at work in the folder, which would lose its state.
        if not isinstance(error.__cause__, BlockingIOError):
            click.echo(
                f"To begin anew, remove the folder {folder} or give another --output.",
                err=True,
            )
        raise


def save_trained(lm: TextLM, job: Job, *, optimizer: bool, whole: bool) -> None:
    """Save a model; one that is not `whole` was interrupted."""
    nplm.save(lm, job.output, optimizer=optimizer)
    if not whole:
        click.echo(f"{job.output} has the model as far as it was trained.", err=True)
