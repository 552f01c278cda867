"""``nplm prune``: a model with fewer n-grams."""

from __future__ import annotations

from pathlib import Path

import click

from nplm.cli._models import MODEL, TARGET, read_model, write_model
from nplm.cli.commands.convert import OUTPUT

__all__ = ["prune_command"]


@click.command("prune", context_settings={"show_default": True})
@MODEL
@OUTPUT
@click.option(
    "--threshold",
    type=click.FloatRange(min=0),
    default=1e-7,
    help="Remove each n-gram that changes the model's own perplexity by less than this "
    "share (Stolcke, 1998), as SRILM's -prune.",
)
@TARGET
def prune_command(
    model: str, output: Path, threshold: float, to: str | None, verify: bool
) -> None:
    """Write MODEL without the n-grams that matter least.

    \b
    Examples:
      nplm prune --threshold 1e-8 model.arpa.gz small.arpa.gz
    """  # noqa: D301  (click reads the control character)
    lm = read_model(model, index=False, verify=verify)
    ngrams = lm.estimator_
    if not hasattr(ngrams, "prune"):
        raise click.ClickException(
            f"{model} has no n-grams to drop ({type(ngrams).__name__}): give a "
            "Kneser-Ney model, or an ARPA file."
        )
    before = int(ngrams.n_ngrams_.sum())
    ngrams.prune(threshold)
    write_model(lm, output, to)
    after = int(ngrams.n_ngrams_.sum())
    click.echo(f"{after:,} of {before:,} n-grams kept", err=True)
