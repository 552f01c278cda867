"""``nplm count``: the n-grams of a text with their counts."""

from __future__ import annotations

from pathlib import Path

import click

from nplm import KneserNeyLM, TextLM, Tokenizer
from nplm.cli._models import vocabulary_of
from nplm.cli._options import MAX_ORDER
from nplm.cli._outputs import refuse_to_replace, writable_file
from nplm.cli._text import BLANK_LINES, INPUTS, texts_of
from nplm.formats import write_counts
from nplm.text.tokenizer import BETWEEN_BLANKS

__all__ = ["count_command"]


@click.command("count", context_settings={"show_default": True})
@INPUTS
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(path_type=Path),
    callback=writable_file,
    help="File of the counts; compressed if its name ends in .gz or .xz.",
)
@click.option(
    "--order",
    type=click.IntRange(1, MAX_ORDER),
    default=5,
    help="Words in the longest n-grams.",
)
@BLANK_LINES
def count_command(
    inputs: tuple[str, ...], output: Path, order: int, blank_lines: bool
) -> None:
    """Count the n-grams of TEXT, as SRILM's ngram-count -write.

    A line of TEXT (by default of standard input; plain, gzip, bzip2, xz or zstd) is a
    sentence of words between blanks. A line of OUTPUT is an n-gram, a tab, and its
    count. The text is counted in memory.

    \b
    Examples:
      nplm count train.txt -o counts.gz --order 3
    """  # noqa: D301  (click reads the control character)
    refuse_to_replace(output, *inputs)
    texts = texts_of(inputs, blank_lines=blank_lines)
    if not texts:
        raise click.ClickException("there is no line of text to count.")
    model = KneserNeyLM(order, discount_fallback=0.5)
    lm = TextLM(model, max(order - 1, 1), tokenizer=Tokenizer(BETWEEN_BLANKS))
    lm.fit(texts)
    write_counts(lm.estimator_, output, vocabulary_of(lm).words_.tolist())
