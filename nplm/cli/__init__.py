"""The ``nplm`` command: a file for each subcommand, and shared modules."""

from typing import Any

import click

import nplm
from nplm import DivergenceError
from nplm.cli._jobs import INTERRUPTED
from nplm.cli.commands.card import card_command
from nplm.cli.commands.convert import convert_command
from nplm.cli.commands.count import count_command
from nplm.cli.commands.generate import generate_command
from nplm.cli.commands.mix import mix_command
from nplm.cli.commands.neighbors import neighbors_command
from nplm.cli.commands.paper.compare import compare_command
from nplm.cli.commands.paper.reproduce import reproduce_command
from nplm.cli.commands.prune import prune_command
from nplm.cli.commands.query import query_command
from nplm.cli.commands.score import score_command
from nplm.cli.commands.suggest import suggest_command
from nplm.cli.commands.train import train_command
from nplm.cli.serve.command import serve_command

__all__ = ["main"]

FAILURES = (OSError, ImportError, ValueError, MemoryError, DivergenceError)


class Commands(click.Group):
    """Commands whose errors are a sentence and an exit code, not a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a subcommand, and turn its errors into messages."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # click handles it: the reader of a pipe left
            raise
        except FAILURES as error:
            raise click.ClickException(_sentence(error)) from error
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None


def _sentence(error: Exception) -> str:
    """Return the message of an error, without the error numbers of the system."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}."
    if isinstance(error, MemoryError):
        return f"out of memory: {error or 'this process gets no more'}."
    return str(error)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(nplm.__version__, prog_name="nplm")
def main() -> None:
    """Language models of Bengio et al. (2003) beside their n-gram baselines."""


@main.command("show-versions")
def versions_command() -> None:
    """Show versions, processor and kernels, for bug reports."""
    nplm.show_versions()


for command in (
    card_command, compare_command, convert_command, count_command, generate_command,
    mix_command, neighbors_command, prune_command, query_command, reproduce_command,
    score_command, serve_command, suggest_command, train_command,
):  # fmt: skip
    main.add_command(command)
