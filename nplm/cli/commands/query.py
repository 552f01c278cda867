"""``nplm query``: probabilities of words, and the perplexity of a text."""

from __future__ import annotations

from itertools import pairwise

import click
import numpy as np

from nplm import TextLM
from nplm.cli._models import MODEL, read_model, vocabulary_of
from nplm.cli._tally import (
    Scored,
    Tally,
    perplexity,
    scored,
    scored_in_detail,
    warning_of_unknown,
)
from nplm.cli._text import BLANK_LINES, INPUTS, blocks_of_lines

__all__ = ["query_command"]


@click.command("query")
@MODEL
@INPUTS
@click.option(
    "--summary", "-s", is_flag=True, help="Show only the figures of the whole text."
)
@click.option(
    "--each",
    type=click.Choice(["word", "line", "file"]),
    default="word",
    show_default=True,
    help="Show the probability of each word, or log10 of the probability, the "
    "perplexity, and the numbers of tokens and of unknown words of each line or file.",
)
@BLANK_LINES
def query_command(
    model: str, inputs: tuple[str, ...], summary: bool, each: str, blank_lines: bool
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
      nplm query --each file model *.txt
    """  # noqa: D301  (click reads the control character)
    lm = read_model(model)
    tally = Tally(bool(lm.predict_boundary))
    by_word = each == "word" and not summary
    for name in inputs or ("-",):
        of_file = Tally(tally.ends_are_predicted)
        for block in blocks_of_lines([name], blank_lines=blank_lines):
            part = (scored_in_detail if by_word else scored)(lm, block)
            tally.add(part)
            of_file.add(part)
            if by_word:
                _print_words(lm, block, part)
            elif each == "line" and not summary:
                _print_lines(part)
        if each == "file" and not summary:
            figures = _figures(of_file.total, of_file.tokens, of_file.unknown)
            click.echo(f"{figures}\t{name}")
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


def _print_lines(part: Scored) -> None:
    ends = np.searchsorted(part.document, np.arange(part.n_documents + 1))
    for first, last in pairwise(ends):
        own = part.log10[first:last]
        n_unknown = int(part.unknown[first:last].sum())
        click.echo(_figures(float(own.sum()), len(own), n_unknown))


def _figures(log10: float, n_tokens: int, n_unknown: int) -> str:
    """Return log10 of a probability, the perplexity, tokens and unknown words."""
    return f"{log10:.4f}\t{perplexity(log10, n_tokens):.4f}\t{n_tokens}\t{n_unknown}"


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
