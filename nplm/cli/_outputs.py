"""Outputs: notes beside them, checks of their names before hours of training."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import click

from nplm.base.files.atomic_files import check_writable, followed
from nplm.cli._options import option

# The exit code that shells give a program that SIGINT ended.
INTERRUPTED = 130
# Key of a context for the time when the command began.
BEGAN = "nplm.began"
# Compression that is read, but not written.
READ_ONLY = (".bz2", ".zst")


def notify(text: str) -> None:
    """Print a line on standard error, beside the output."""
    click.echo(text, err=True)


def is_arpa(path: Path) -> bool:
    """Whether the name of a file is that of an ARPA file."""
    return path.name.endswith((".arpa", ".arpa.gz", ".arpa.xz"))


class OutputFile(click.Path):
    """The name of a file that can be written."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path:
        """Return the path, or refuse a file that cannot be written."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        _refuse_standard_output(path)
        if path.name.endswith(READ_ONLY):
            raise click.BadParameter(
                f"{path} would not be compressed: files are written with gzip or xz, "
                "if their name ends in .gz or .xz."
            )
        try:
            check_writable(path)
        except OSError as error:
            raise click.BadParameter(str(error)) from error
        if path.exists() and not os.access(path, os.W_OK):
            raise click.BadParameter(f"{path} cannot be written to.")
        _probe(followed(path.absolute()).parent)
        return path


OUTPUT = click.Argument(["output"], type=OutputFile())


def output_option(text: str) -> click.Option:
    """Return the option --output of a command that must have one."""
    return option("--output -o", OutputFile(), None, text, required=True)


def refuse_to_replace(output: Path, *read: str | None) -> None:
    """Refuse an output that is one of the inputs, which would be lost."""
    for name in filter(None, read):
        if output.exists() and os.path.exists(name) and output.samefile(name):
            raise click.UsageError(
                f"{output} is read, and would be replaced: give the output another "
                "name."
            )


def refuse_arpa(output: Path, advice: str = "") -> None:
    """Refuse the name of an ARPA file for a model that has none."""
    if is_arpa(output):
        raise click.UsageError(
            f"OUTPUT is a model of nplm, which no other tool would read as "
            f"{output.name}: give it another name{advice}."
        )


def note_lost_tokenizer(output: Path) -> None:
    """Say that a file of n-grams does not hold how its text was split."""
    notify(
        f"Note: {output} has no tokenizer, and its text will be split between blanks: "
        "train with --tokens blanks, or give it text that is split."
    )


def writable_folder(path: Path) -> Path:
    """Make a folder, and refuse one that cannot be written to."""
    _refuse_standard_output(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.BadParameter(
            f"the folder {path} cannot be made: {error.strerror}."
        ) from error
    _probe(path)
    return path


def _refuse_standard_output(path: Path) -> None:
    if str(path) == "-":
        raise click.BadParameter("nothing is written to standard output; give a name.")


def _probe(folder: Path) -> None:
    # Try it: on a read-only file system the permissions look good.
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise click.BadParameter(
            f"the folder {folder} cannot be written to: {error.strerror}."
        ) from error
