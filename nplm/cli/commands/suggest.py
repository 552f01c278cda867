"""``nplm suggest``: the most probable next words."""

from __future__ import annotations

from typing import Any

import click

from nplm.cli._models import MODEL, read_model
from nplm.cli._options import command, flag, option
from nplm.cli._values import POSITIVE


@command(
    "suggest",
    MODEL,
    click.Argument(["context"], nargs=-1),
    option("-k k", POSITIVE, 5, "Number of words."),
    flag("--unknown", "Also suggest <unk>."),
    option("--exclude", None, None, "Leave out a word, such as </s>.", multiple=True),
)
def suggest_command(
    model: str, context: tuple[str, ...], verify: bool, **options: Any
) -> None:
    """Show the most probable words after CONTEXT.

    Each line has a word and its probability. </s> is the end of a line.

    \b
    Examples:
      nplm suggest model return a list of
    """  # noqa: D301  (click reads the control character)
    lm = read_model(model, verify=verify)
    words, proba = lm.next_words(" ".join(context), **options)
    for word, p in zip(words, proba):
        click.echo(f"{word}\t{p:.4f}")
