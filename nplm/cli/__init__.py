"""The ``nplm`` command: a file for each subcommand, and what they share."""

from typing import Any

import click

import nplm
from nplm import DivergenceError
from nplm.cli._jobs import INTERRUPTED
from nplm.cli.commands.compare import compare_command
from nplm.cli.commands.convert import convert_command
from nplm.cli.commands.generate import generate_command
from nplm.cli.commands.neighbors import neighbors_command
from nplm.cli.commands.prune import prune_command
from nplm.cli.commands.query import query_command
from nplm.cli.commands.reproduce import reproduce_command
from nplm.cli.commands.score import score_command
from nplm.cli.commands.suggest import suggest_command
from nplm.cli.commands.train import train_command

__all__ = ["main"]

FAILURES = (OSError, ImportError, ValueError, MemoryError, DivergenceError)


class Commands(click.Group):
    """Commands that end with a sentence and an exit code, not with a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Tell what a file or a parameter is to blame for."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # click's: who reads has had enough
            raise
        except FAILURES as error:
            raise click.ClickException(_sentence(error)) from error
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None


def _sentence(error: Exception) -> str:
    """Say what the system says of a file as a sentence, without its number."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}."
    if isinstance(error, MemoryError):
        return f"memory ended: {error or 'no more is given to this process'}."
    return str(error)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(nplm.__version__, prog_name="nplm")
def main() -> None:
    """Language models of Bengio et al. (2003) beside their n-gram baselines."""


@main.command("show-versions")
def versions_command() -> None:
    """Versions, processor and kernels: for reports of faults."""
    nplm.show_versions()


for command in (
    compare_command, convert_command, generate_command, neighbors_command,
    prune_command, query_command, reproduce_command, score_command, suggest_command,
    train_command,
):  # fmt: skip
    main.add_command(command)
