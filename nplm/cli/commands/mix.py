"""``nplm mix``: several n-gram models made one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from nplm import static_mixture
from nplm.cli._models import TARGET, VERIFY, read_model, write_model
from nplm.cli._outputs import refuse_to_replace, writable_file
from nplm.cli._tally import report_perplexities, told
from nplm.cli._text import texts_of

__all__ = ["mix_command"]


class Weights(click.ParamType):  # type: ignore[type-arg]
    """Weights separated by commas."""

    name = "w1,w2,..."

    def convert(self, value: Any, param: Any, ctx: Any) -> list[float]:
        """Convert to a list of numbers."""
        try:
            return [float(number) for number in value.split(",")]
        except ValueError:
            self.fail(
                f"{value!r} must be a number for each MODEL, separated by commas, such "
                "as 0.7,0.3."
            )


@click.command("mix")
@click.argument(
    "models", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False)
)
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(path_type=Path),
    callback=writable_file,
    help="File of the mixture.",
)
@click.option(
    "--valid",
    type=click.Path(exists=True, dir_okay=False),
    help="Held-out text, on which EM learns the weights.",
)
@click.option("--weights", type=Weights(), help="The weights, summing to 1: 0.7,0.3.")
@TARGET
@VERIFY
def mix_command(
    models: tuple[str, ...],
    output: Path,
    valid: str | None,
    weights: list[float] | None,
    to: str | None,
    verify: bool,
) -> None:
    """Write one n-gram model with the n-grams of all MODELS.

    Each probability is the weighted average of those of MODELS, and back-off weights
    are recomputed, as by SRILM's ngram -mix-lm. MODELS are n-gram models that nplm
    saved, ARPA files, or mapped n-grams, and may have different words: a word that a
    model lacks has probability 0 in it. The weights are given, or learned on a held-out
    text as by compute-best-mix, and printed. With --valid the perplexity of the mixture
    on it is printed too.

    \b
    Examples:
      nplm mix news.arpa.gz talk.arpa.gz --valid dev.txt -o both.arpa.gz
      nplm mix a.arpa b.arpa c.arpa --weights 0.5,0.3,0.2 -o mapped --to binary
    """  # noqa: D301  (click reads the control character)
    refuse_to_replace(output, *models, valid)
    if (valid is None) == (weights is None):
        raise click.UsageError(
            "give --valid, a text on which to learn the weights, or --weights."
        )
    members = [read_model(model, index=False, verify=verify) for model in models]
    held_out = None if valid is None else texts_of([valid])
    with told():
        try:
            mixture = static_mixture(members, weights, X_val=held_out, index=False)
        except (TypeError, ValueError) as error:
            raise ValueError(_named(str(error), models)) from error
    write_model(mixture.lm, output, to)
    for model, weight in zip(models, mixture.weights):
        click.echo(f"{weight:.6f}\t{model}")
    n_ngrams = sum(int(lm.estimator_.n_ngrams_.sum()) for lm in members)
    made = int(mixture.lm.estimator_.n_ngrams_.sum())
    click.echo(f"{made:,} n-grams, of {n_ngrams:,} in {len(models)} models", err=True)
    report_perplexities(mixture.lm, valid, None, blank_lines=False)


def _named(message: str, models: Sequence[str]) -> str:
    """Return a message of `static_mixture` with the names of files."""
    message = re.sub(r"models\[(\d+)\]", lambda found: models[int(found[1])], message)
    return re.sub(
        r"pass a KneserNeyLM.*",
        "give a MODEL trained with --model kneser-ney, not in 8 bits, or an ARPA file.",
        message,
    )
