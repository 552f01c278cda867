"""``nplm generate``, ``nplm neighbors`` and ``nplm suggest``: what a model predicts."""

from __future__ import annotations

from typing import Any

import click

from nplm.cli._messages import report_in_options
from nplm.cli._models import MODEL, learned_features, read_model
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
    # Imported here: it needs scikit-learn, which would slow the help of the others.
    from nplm.base.generators import private_generator

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
