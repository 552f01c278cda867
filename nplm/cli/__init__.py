"""The ``nplm`` command: a file for each subcommand, and shared modules."""

from importlib import import_module
from typing import Any

import click

import nplm
from nplm import DivergenceError
from nplm.cli._outputs import INTERRUPTED

__all__ = ["main"]

# The module of each command, imported when it is called: what one needs would slow the
# start of the others.
COMMANDS = {
    name: f"nplm.cli.commands.{name}"
    for name in (
        "card", "convert", "count", "generate", "mix", "neighbors", "prune", "query",
        "score", "suggest", "train",
    )
} | {
    "compare": "nplm.cli.commands.paper.compare",
    "reproduce": "nplm.cli.commands.paper.reproduce",
    "serve": "nplm.cli.serve.command",
}  # fmt: skip
FAILURES = (OSError, ImportError, ValueError, MemoryError, DivergenceError)


class Commands(click.Group):
    """Commands whose errors are a sentence and an exit code, not a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return sorted([*super().list_commands(ctx), *COMMANDS])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, imported now."""
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        module = import_module(COMMANDS[cmd_name])
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

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
