"""``nplm score``: a number for each line."""

from __future__ import annotations

import click
import numpy as np

from nplm.cli._models import MODEL, read_model
from nplm.cli._tally import scored
from nplm.cli._text import INPUTS, blocks_of_lines

__all__ = ["score_command"]


@click.command("score")
@MODEL
@INPUTS
@click.option("--per-token", is_flag=True, help="Divide by the number of tokens.")
@click.option("--with-text", is_flag=True, help="Put the line after its number.")
def score_command(
    model: str, inputs: tuple[str, ...], per_token: bool, with_text: bool
) -> None:
    """Show log10 of the probability of each line.

    Use it to filter text, or to rescore the candidates of a recogniser.

    MODEL is a text model that nplm saved, an ARPA file, or mapped n-grams. TEXT is
    plain or compressed (gzip, bzip2, xz), by default standard input. The output has a
    number for each line, in order; for a blank line that of its end. It is -inf if a
    word has probability 0, such as a word that an ARPA file without <unk> lacks. The
    end of a line counts as a token, as in KenLM, unless the model was made without
    ends.

    \b
    Examples:
      nplm score model candidates.txt > scores
      nplm score --per-token --with-text model web.txt.gz | sort -g | tail -1000
    """  # noqa: D301  (click reads the control character)
    lm = read_model(model)
    for block in blocks_of_lines(inputs, blank_lines=True):
        part = scored(lm, block)
        sums = np.bincount(part.document, part.log10, minlength=len(block)).astype(
            float
        )
        if per_token:
            lengths = np.bincount(part.document, minlength=len(block))
            sums = sums / np.maximum(lengths, 1)
        for line, number in zip(block, sums):
            click.echo(f"{number:.6f}\t{line}" if with_text else f"{number:.6f}")
