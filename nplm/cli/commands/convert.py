"""``nplm convert``: a model in another format."""

from __future__ import annotations

from pathlib import Path

import click

from nplm.cli._messages import report_in_options
from nplm.cli._models import (
    BITS,
    KEEP_OPTIMIZER,
    MODEL,
    TARGET,
    convert_ngrams,
    convert_vectors,
    ngrams_file,
    ngrams_in,
    text_lm_in,
    work_for,
    write_changed,
    write_model,
)
from nplm.cli._outputs import refuse_to_replace, writable_file
from nplm.cli._text import lines_of
from nplm.cli._values import memory_option
from nplm.formats.arpa.text_fst import BACKOFF
from nplm.formats.open_model import open_model
from nplm.models.mixtures.boosted_words import boosted

__all__ = ["OUTPUT", "convert_command"]

OUTPUT = click.argument(
    "output", type=click.Path(path_type=Path), callback=writable_file
)


@click.command("convert")
@MODEL
@OUTPUT
@TARGET
@BITS
@memory_option("sort n-grams and hold hash tables")
@click.option(
    "--float16",
    is_flag=True,
    help="Store the weights of a network in half precision: half the size, and "
    "perplexities that change little.",
)
@KEEP_OPTIMIZER
@click.option(
    "--boost",
    type=click.Path(exists=True, dir_okay=False),
    help="File of words to add to n-grams, or to make more probable: one a line, with "
    "a factor of its odds after it (1 without). Words that the model lacks begin as "
    "probable as its rarest.",
)
@click.option(
    "--symbols",
    type=click.Path(dir_okay=False),
    help="With --to fst, number the labels of arcs as this table of symbols does "
    "(Kaldi's words.txt), which is written if there is none. Without it the labels are "
    "the words.",
)
@click.option(
    "--backoff-symbol",
    "backoff",
    help="With --to fst, the input label of back-off arcs; <eps> makes them epsilon "
    "arcs.  [default: #0]",
)
def convert_command(
    model: str,
    output: Path,
    to: str | None,
    bits: int | None,
    memory: int | None,
    float16: bool,
    keep_optimizer: bool,
    boost: str | None,
    symbols: str | None,
    backoff: str | None,
    verify: bool,
) -> None:
    """Write MODEL to OUTPUT in another format.

    MODEL is a text model that nplm saved, an ARPA file, or mapped n-grams. Write
    n-grams to ARPA for KenLM and SRILM, and the features of a network's words to
    word2vec's files for gensim and others. MODEL may also be a word2vec file, text or
    binary, to be written in the other form.

    \b
    Examples:
      nplm convert model model.arpa.gz
      nplm convert model.arpa.gz model
      nplm convert model.arpa.gz mapped --to binary
      nplm convert model.arpa.gz small --bits 8 --memory 1G
      nplm convert model.arpa.gz G.txt --to fst --symbols words.txt
      nplm convert model.arpa.gz with_names.arpa.gz --boost names.txt
      nplm convert model words.vec
      nplm convert words.vec words.bin --to vectors-binary
      nplm convert network small --float16
    """  # noqa: D301  (click reads the control character)
    refuse_to_replace(output, model, symbols, boost)
    if to != "fst" and (symbols, backoff) != (None, None):
        raise click.UsageError("--symbols and --backoff-symbol are for --to fst.")
    with report_in_options(), open_model(model, verify=verify) as file:
        is_network, of_ngrams = float16 or keep_optimizer, (bits, boost, memory)
        if file.kind.is_vectors:
            if is_network or of_ngrams != (None, None, None):
                raise click.UsageError(
                    f"{model} has word vectors: of the options, only --to is for them."
                )
            convert_vectors(file, output, to)
            return
        if (bits is not None or boost is not None) and is_network:
            raise click.UsageError(
                "--bits and --boost are for n-grams, --float16 and --keep-optimizer "
                "for networks: leave out those that MODEL has no use for."
            )
        target = None if is_network else ngrams_file(output, to, bits)
        if target is not None:
            target.symbols = symbols
            target.backoff = BACKOFF if backoff is None else backoff
        if boost is not None:
            factors = _factors_in(boost)
            with work_for(target, memory) as work:
                ngrams = boosted(ngrams_in(file, work, quantized=True), factors, work)
                write_changed(ngrams, output, to, target, work)
            return
        if target is not None:
            convert_ngrams(file, target, memory)
            return
        lm, dtype = text_lm_in(file, index=False), "float16" if float16 else None
        write_model(lm, output, to, optimizer=keep_optimizer, dtype=dtype)


def _factors_in(path: str) -> dict[str, float]:
    """Return the words of the file of --boost, and the factor of each."""
    factors = {}
    for number, line in enumerate(lines_of([path]), 1):
        word, *rest = line.split() or [""]
        try:
            [factor] = map(float, rest or ["1"])
        except ValueError:
            raise click.ClickException(
                f"--boost: {path}, line {number}: {line.strip()!r:.80} is not a word, "
                "or a word and a factor."
            ) from None
        if word:
            factors[word] = factor
    if not factors:
        raise click.ClickException(f"--boost: {path} has no words.")
    return factors
