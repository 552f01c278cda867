"""``nplm generate``: text drawn from a model."""

from __future__ import annotations

from typing import Any

import click

from nplm.base.generators import private_generator
from nplm.cli._messages import report_in_options
from nplm.cli._models import MODEL, read_model
from nplm.cli._options import command, flag, option
from nplm.cli._values import ABOVE_ZERO, POSITIVE, SHARE, WHOLE

# Texts are drawn and written in blocks, so that memory does not grow.
TEXTS_A_BLOCK = 256


@command(
    "generate", MODEL,
    option("--prompt", None, "", "Beginning of the text."),
    option("-n n", POSITIVE, 1, "Number of texts, a line each."),
    option("--min-words", WHOLE, 0,
        "Words of a text at least: 1 draws no empty text."),
    option("--max-words", WHOLE, 50, "Words of a text at most."),
    option("--temperature", ABOVE_ZERO, 1.0,
        "Below 1, probable words are drawn even more often."),
    option("--top-k", POSITIVE, None,
        "Draw from this many most probable words only."),
    option("--top-p", SHARE, None,
        "Draw from the fewest words that together have this probability."),
    flag("--unknown", "Also draw <unk>."),
    option("--seed", click.IntRange(0, 2**32 - 1), None,
        "Random seed; the same seed gives the same text."),
)  # fmt: skip
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
