"""``nplm query``: probabilities of words, and the perplexity of a text."""

from __future__ import annotations

import click
import numpy as np

from nplm import TextLM
from nplm.cli._models import MODEL, read_model, vocabulary_of
from nplm.cli._tally import Scored, Tally, scored, scored_in_detail, warning_of_unknown
from nplm.cli._text import BLANK_LINES, INPUTS, blocks_of_lines

__all__ = ["query_command"]


@click.command("query")
@MODEL
@INPUTS
@click.option(
    "--summary", "-s", is_flag=True, help="Show only the figures of the whole text."
)
@BLANK_LINES
def query_command(
    model: str, inputs: tuple[str, ...], summary: bool, blank_lines: bool
) -> None:
    """Show log10 of each word's probability, and perplexities.

    MODEL is a text model that nplm saved, an ARPA file, or mapped n-grams. A line of
    TEXT (by default of standard input; plain, gzip, bzip2 or xz) is a sentence; blank
    lines are left out (--blank-lines). OOV marks a word outside the vocabulary. For
    models that back off, the number before a
    probability is the length of the n-gram found. The last lines have the figures of
    KenLM's query (perplexity with and without unknown words) and of SRILM's ngram -ppl
    (ppl is the perplexity without unknown words, ppl1 also without sentence ends).

    \b
    Examples:
      nplm query model.arpa.gz test.txt
      xzcat test.txt.xz | nplm query --summary model
    """  # noqa: D301  (click reads the control character)
    lm = read_model(model)
    tally = Tally(bool(lm.predict_boundary))
    for block in blocks_of_lines(inputs, blank_lines=blank_lines):
        part = (scored if summary else scored_in_detail)(lm, block)
        tally.add(part)
        if not summary:
            _print_words(lm, block, part)
    if tally.sentences == 0:
        raise click.ClickException("there is no line of text to query.")
    for line in tally.lines():
        click.echo(line)
    advice = "Is the text split into words as the model's was?"
    warning = warning_of_unknown(tally.unknown / max(tally.tokens, 1), advice)
    if tally.lost:
        click.echo(
            "Note: unknown words have no probability by this model, where KenLM's "
            f"query gives each 10^-100. There are {tally.lost}.",
            err=True,
        )
    elif warning:
        click.echo(f"Warning: {warning}", err=True)


def _print_words(lm: TextLM, block: list[str], part: Scored) -> None:
    assert lm.tokenizer_ is not None
    end = vocabulary_of(lm).words_[lm.boundary_]
    ends = [end] if lm.predict_boundary else []
    starts = np.searchsorted(part.document, np.arange(len(block) + 1))
    for i, tokens in enumerate(lm.tokenizer_.transform(block)):
        own = slice(*starts[i : i + 2])
        words = [*tokens, *ends]
        if part.order is not None:
            words = [f"{w} {n}" for w, n in zip(words, part.order[own])]
        numbers = zip(words, part.log10[own], part.unknown[own])
        words = [f"{w} {p:.4f}{' OOV' * bool(is_new)}" for w, p, is_new in numbers]
        total = f"total {part.log10[own].sum():.4f}"
        click.echo("\t".join([*words, total]))
