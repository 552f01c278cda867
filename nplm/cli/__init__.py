"""The ``nplm`` command: its subcommands, imported when called, and shared modules."""

import os
import sys
import time
from importlib import import_module
from typing import Any

import click

import nplm
from nplm.base.exceptions import DivergenceError
from nplm.cli._outputs import BEGAN, INTERRUPTED, notify

# The commands, with their lines in the help. A module is imported when its command is
# called: what one needs would slow the start of the others.
COMMANDS = {
    "card": "Describe MODEL on a page of Markdown.",
    "compare": "Train AutoLM and n-gram models on a corpus, side by side.",
    "convert": "Write MODEL to OUTPUT in another format.",
    "count": "Count the n-grams of TEXT, as SRILM's ngram-count -write.",
    "expand": "Write the n-grams of words of MODEL, a model of classes.",
    "filter": "Keep the lines of TEXT that MODEL finds most probable, in their order.",
    "generate": "Draw texts from a model, word by word.",
    "mix": "Write one n-gram model with the n-grams of all MODELS.",
    "neighbors": "Show the words with the most similar features.",
    "prune": "Write MODEL with fewer n-grams, or fewer words.",
    "query": "Show log10 of each word's probability, and perplexities.",
    "reproduce": "Measure a table of the paper again: table1 or table2.",
    "score": "Show log10 of the probability of each line.",
    "serve": "Serve a page to look at models, and a JSON API.",
    "suggest": "Show the most probable words after CONTEXT.",
    "train": "Train a model on TEXT, and save it.",
}
# The modules of commands that are not in a file of their name in ``commands/``.
ELSEWHERE = {
    **{n: f"nplm.cli.commands.ngrams.{n}" for n in ("count", "expand", "mix", "prune")},
    **{n: f"nplm.cli.commands.paper.{n}" for n in ("compare", "reproduce")},
    **dict.fromkeys(
        ("generate", "neighbors", "suggest"), "nplm.cli.commands.predictions"
    ),
    "serve": "nplm.cli.serve.command",
}
# Threads of NumPy's BLAS wait for work in a loop before they sleep, for 2 to this power
# clock cycles. By default it is 26 or more, much of the CPU time of a start.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "20")
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
        module = import_module(ELSEWHERE.get(cmd_name, f"nplm.cli.commands.{cmd_name}"))
        return getattr(module, f"{cmd_name}_command")

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the commands and what they do; none is imported."""
        width = formatter.width
        others = {n: c.get_short_help_str(width) for n, c in self.commands.items()}
        with formatter.section("Commands"):
            formatter.write_dl(sorted((COMMANDS | others).items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run a subcommand, and turn its errors into messages."""
        ctx.meta[BEGAN] = time.perf_counter()  # before a command is imported
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # click handles it: the reader of a pipe left
            raise
        except FAILURES as error:
            # Imported here, as what commands need.
            from nplm.cli._messages import sentence_of

            raise click.ClickException(sentence_of(error)) from error
        except KeyboardInterrupt:
            notify("Interrupted.")
            raise click.exceptions.Exit(INTERRUPTED) from None


# The settings of all commands, too.
SETTINGS = {"help_option_names": ["-h", "--help"], "show_default": True}


@click.group(cls=Commands, context_settings=SETTINGS)
@click.version_option(nplm.__version__, prog_name="nplm")
def main() -> None:
    """Language models of Bengio et al. (2003) beside their n-gram baselines."""


@main.command("show-versions")
def versions_command() -> None:
    """Show versions, processor and kernels, for bug reports."""
    nplm.show_versions()
    sys.stdout.flush()  # while click handles a reader that left
