"""``nplm neighbors``: words with similar features."""

from __future__ import annotations

import click

from nplm.cli._models import MODEL, learned_features, read_model
from nplm.cli._options import command, option
from nplm.cli._values import POSITIVE


@command(
    "neighbors",
    MODEL,
    click.Argument(["words"], nargs=-1, required=True),
    option("-k k", POSITIVE, 10, "Number of neighbors of each word."),
)
def neighbors_command(model: str, words: tuple[str, ...], k: int, verify: bool) -> None:
    """Show the words with the most similar features.

    Each line has a word, a neighbor, and the cosine of their features.

    \b
    Examples:
      nplm neighbors model list string
    """  # noqa: D301  (click reads the control character)
    lm = read_model(model, verify=verify)
    learned_features(lm)  # raises an error that says which models have them
    for word in words:
        nearest, cosines = lm.nearest(word, k)
        for other, cosine in zip(nearest, cosines):
            click.echo(f"{word}\t{other}\t{cosine:.4f}")
