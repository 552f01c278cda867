"""``nplm convert``: a model in another kind of file."""

from __future__ import annotations

from pathlib import Path

import click

from nplm.cli._models import (
    KEEP_OPTIMIZER,
    MODEL,
    TARGET,
    convert_vectors,
    read_model,
    write_model,
)
from nplm.cli._outputs import writable_file

__all__ = ["OUTPUT", "convert_command"]

OUTPUT = click.argument(
    "output", type=click.Path(path_type=Path), callback=writable_file
)


@click.command("convert")
@MODEL
@OUTPUT
@TARGET
@click.option(
    "--float16",
    is_flag=True,
    help="Store the weights of a network in half precision: half the size, and "
    "perplexities that change little.",
)
@KEEP_OPTIMIZER
def convert_command(
    model: str, output: Path, to: str | None, float16: bool, keep_optimizer: bool
) -> None:
    """Write MODEL to OUTPUT as a file of another kind.

    MODEL is a text model that nplm saved, an ARPA file, or mapped n-grams. Write
    n-grams to ARPA for KenLM and SRILM, and the features of a network's words to
    word2vec's files for gensim and others. MODEL may also be a word2vec file, text or
    binary, to be written in the other form.

    \b
    Examples:
      nplm convert model model.arpa.gz
      nplm convert model.arpa.gz model
      nplm convert model words.vec
      nplm convert words.vec words.bin --to vectors-binary
      nplm convert network small --float16
    """  # noqa: D301  (click reads the control character)
    if convert_vectors(model, output, to):
        return
    dtype = "float16" if float16 else None
    lm = read_model(model, index=False)
    write_model(lm, output, to, optimizer=keep_optimizer, dtype=dtype)
