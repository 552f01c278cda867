"""``nplm prune``: a model with fewer n-grams."""

from __future__ import annotations

from pathlib import Path

import click

from nplm import TextLM
from nplm.cli._models import (
    BITS,
    MODEL,
    TARGET,
    ngrams_file,
    read_ngrams,
    vocabulary_of,
    work_for,
    write_changed,
)
from nplm.cli._outputs import refuse_to_replace
from nplm.cli._text import listed_words
from nplm.cli._values import memory_option
from nplm.cli.commands.convert import OUTPUT
from nplm.models.mixtures.limited_vocabulary import limited
from nplm.models.ngrams.trie.work import Work

__all__ = ["prune_command"]

DEFAULT_THRESHOLD = 1e-7


@click.command("prune", context_settings={"show_default": True})
@MODEL
@OUTPUT
@click.option(
    "--threshold",
    type=click.FloatRange(min=0),
    show_default="1e-7, or 0 with --limit-vocab",
    help="Remove each n-gram that changes the model's own perplexity by less than this "
    "share (Stolcke, 1998), as SRILM's -prune.",
)
@click.option(
    "--limit-vocab",
    type=click.Path(exists=True, dir_okay=False),
    help="File of the words to keep, one a line. N-grams with others are removed and "
    "back-off weights recomputed, as by SRILM's -limit-vocab -renorm; other words "
    "become <unk>, with their probability.",
)
@TARGET
@BITS
@memory_option("sort n-grams and hold parts of the model")
def prune_command(
    model: str,
    output: Path,
    threshold: float | None,
    limit_vocab: str | None,
    to: str | None,
    bits: int | None,
    memory: int | None,
    verify: bool,
) -> None:
    """Write MODEL with fewer n-grams, or fewer words.

    By default those n-grams are left out that matter least. ARPA files and mapped
    n-grams are written within --memory, whatever the size of MODEL; a file of
    nplm.save takes the memory of the model.

    \b
    Examples:
      nplm prune --threshold 1e-8 model.arpa.gz small.arpa.gz
      nplm prune --limit-vocab words.txt model.arpa.gz small.arpa.gz
      nplm prune large.nplm small.nplm --to binary --memory 2G
    """  # noqa: D301  (click reads the control character)
    refuse_to_replace(output, model, limit_vocab)
    words = None if limit_vocab is None else Words(limit_vocab)
    if threshold is None:
        threshold = DEFAULT_THRESHOLD if words is None else 0.0
    target = ngrams_file(output, to, bits)
    with work_for(target, memory) as work:
        lm = read_ngrams(model, work, verify=verify)
        _check_ngrams(model, lm)
        before = _n_ngrams(lm)
        if words is not None:
            lm = words.limited(lm, work)
        lm.estimator_.prune_within(work, threshold)
        write_changed(lm, output, to, target, work)
    click.echo(f"{_n_ngrams(lm):,} of {before:,} n-grams kept", err=True)


def _check_ngrams(model: str, lm: TextLM) -> None:
    if not hasattr(lm.estimator_, "prune"):
        raise click.ClickException(
            f"{model} has no n-grams to drop ({type(lm.estimator_).__name__}): give a "
            "Kneser-Ney model, or an ARPA file."
        )


def _n_ngrams(lm: TextLM) -> int:
    return int(lm.estimator_.n_ngrams_.sum())


class Words:
    """The words to keep, of the file of --limit-vocab."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._words = set(listed_words(path, "--limit-vocab"))

    def limited(self, lm: TextLM, work: Work) -> TextLM:
        """Restrict a model to these words, and report them."""
        lacking = len(self._words - vocabulary_of(lm).ids_.keys())
        try:
            fewer = limited(lm, self._words, work)
        except ValueError as error:
            raise click.ClickException(
                f"--limit-vocab {self._path}: {error}"
            ) from error
        click.echo(
            f"{fewer.n_words_:,} of {lm.n_words_:,} words "
            f"kept; {lacking:,} words of {self._path} are not in the model",
            err=True,
        )
        return fewer
