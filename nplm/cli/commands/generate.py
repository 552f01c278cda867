"""``nplm generate``: text drawn from a model."""

from __future__ import annotations

from typing import Any

import click

from nplm.base.generators import private_generator
from nplm.cli._messages import report_in_options
from nplm.cli._models import MODEL, read_model
from nplm.cli._values import ABOVE_ZERO, POSITIVE, SHARE

# Texts are drawn and written in blocks, so that memory does not grow.
TEXTS_A_BLOCK = 256


@click.command("generate", context_settings={"show_default": True})
@MODEL
@click.option("--prompt", default="", help="Beginning of the text.")
@click.option("-n", "n", type=POSITIVE, default=1, help="Number of texts, a line each.")
@click.option(
    "--min-words",
    type=click.IntRange(min=0),
    default=0,
    help="Words of a text at least: 1 draws no empty text.",
)
@click.option(
    "--max-words",
    type=click.IntRange(min=0),
    default=50,
    help="Words of a text at most.",
)
@click.option(
    "--temperature",
    type=ABOVE_ZERO,
    default=1.0,
    help="Below 1, probable words are drawn even more often.",
)
@click.option(
    "--top-k", type=POSITIVE, help="Draw from this many most probable words only."
)
@click.option(
    "--top-p",
    type=SHARE,
    help="Draw from the fewest words that together have this probability.",
)
@click.option("--unknown", is_flag=True, help="Also draw <unk>.")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    help="Random seed; the same seed gives the same text.",
)
def generate_command(
    model: str, prompt: str, n: int, seed: int | None, verify: bool, **options: Any
) -> None:
    """Draw texts from a model, word by word.

    \b
    Examples:
      nplm generate model -n 5 --top-p 0.9
      nplm generate model --prompt "return a list of" --temperature 0.7 --seed 1
    """  # noqa: D301  (click reads the control character)
    lm = read_model(model, verify=verify)
    random = private_generator(seed)
    for start in range(0, n, TEXTS_A_BLOCK):
        size = min(TEXTS_A_BLOCK, n - start)
        with report_in_options():
            texts = lm.generate(
                prompt, size, random_state=random, with_context=True, **options
            )
        for text in texts:
            click.echo(text.strip())
