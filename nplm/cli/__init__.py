"""The ``nplm`` command: a file for each subcommand, and what they share."""

import click

import nplm
from nplm.cli.compare import compare_command

__all__ = ["main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(nplm.__version__, prog_name="nplm")
def main() -> None:
    """Language models of Bengio et al. (2003) beside their n-gram baselines."""


@main.command("show-versions")
def versions_command() -> None:
    """Versions, processor and kernels: for reports of faults."""
    nplm.show_versions()


main.add_command(compare_command)
