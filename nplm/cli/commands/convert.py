"""``nplm convert``: a model in another format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nplm.base.encoded_words import EncodedWords
from nplm.cli._messages import report_in_options
from nplm.cli._models import MODEL, text_lm_in
from nplm.cli._options import EXISTING, command, option
from nplm.cli._outputs import OUTPUT, refuse_to_replace
from nplm.cli._text import lines_of
from nplm.cli._writing import KEEP_OPTIMIZER, Target, ngrams_in, target_options
from nplm.formats._words import StoredWords
from nplm.formats.arpa.text_fst import BACKOFF
from nplm.formats.open_model import OpenModel, open_model
from nplm.models.mixtures.changed_words import boosted

if TYPE_CHECKING:
    from nplm.formats.ngrams_file import NgramsFile


@command(
    "convert", MODEL, OUTPUT, target_options("sort n-grams and hold hash tables"),
    option("--float16 dtype", None, None,
        "Store the weights of a network in half precision: half the size, and "
        "perplexities that change little.", flag_value="float16"),
    KEEP_OPTIMIZER,
    option("--boost", EXISTING, None,
        "File of words to add to n-grams, or to make more probable: one a line, with a "
        "factor of its odds after it (1 without). Words that the model lacks begin as "
        "probable as its rarest."),
    option("--symbols", click.Path(dir_okay=False), None,
        "With --to fst, number the labels of arcs as this table of symbols does "
        "(Kaldi's words.txt), which is written if there is none. Without it the labels "
        "are the words."),
    option("--backoff-symbol backoff", None, None,
        "With --to fst, the input label of back-off arcs; <eps> makes them epsilon "
        "arcs.  [default: #0]"),
)  # fmt: skip
def convert_command(
    model: str,
    output: Path,
    dtype: str | None,
    keep_optimizer: bool,
    boost: str | None,
    symbols: str | None,
    backoff: str | None,
    verify: bool,
    **options: Any,
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
    target = Target(output, **options)
    refuse_to_replace(output, model, symbols, boost)
    if target.ngrams_file is not None:
        target.ngrams_file.symbols = symbols
        target.ngrams_file.backoff = BACKOFF if backoff is None else backoff
    if target.kind != "fst" and (symbols, backoff) != (None, None):
        raise click.UsageError("--symbols and --backoff-symbol are for --to fst.")
    of_network, of_ngrams = dtype or keep_optimizer, target.bits or boost
    if of_network and of_ngrams:
        raise click.UsageError(
            "--bits and --boost are for n-grams, --float16 and --keep-optimizer for "
            "networks: leave out those that MODEL has no use for."
        )
    if boost is not None:
        factors = _factors_in(boost)
        changed = target.changed_from([model], verify=verify, quantized=True)
        with changed as ([ngrams], work):
            target.write(boosted(ngrams, factors, work), work)
        return
    with report_in_options(), open_model(model, verify=verify) as file:
        if file.kind.is_vectors:
            if of_network or of_ngrams or target.memory is not None:
                raise click.UsageError(
                    f"{model} has word vectors: of the options, only --to is for them."
                )
            _convert_vectors(file, target)
        elif target.ngrams_file is not None and not of_network:
            _convert_ngrams(file, target, target.ngrams_file)
        else:
            with target.work():  # which shows what is read
                lm = text_lm_in(file, index=False)
            target.write_model(lm, optimizer=keep_optimizer, dtype=dtype)


def _convert_ngrams(file: OpenModel, target: Target, output: NgramsFile) -> None:
    """Write the n-grams of an open file to another file in bounded memory."""
    with target.work() as work:
        if file.kind.is_text:  # it may have no boundary
            ngrams = file.arpa_ngrams(work)
            words = StoredWords(EncodedWords.of(ngrams.words), ngrams.boundary)
            output.write(ngrams.trie, words, work)
        else:
            target.write(ngrams_in(file, work, quantized=True), work)


def _convert_vectors(file: OpenModel, target: Target) -> None:
    """Write the word vectors of an open file in another form."""
    kind = target.kind
    if kind == "nplm" and target.to is None:
        kind = "vectors"
    if not kind.startswith("vectors"):
        raise ValueError(
            f"{file.path} has word vectors: they cannot be written as {kind}."
        )
    target.write_vectors(*file.vectors())


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
