"""``nplm prune``: a model with fewer n-grams."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from nplm import TextLM, limit_vocabulary
from nplm.cli._memory import memory_option
from nplm.cli._models import (
    BITS,
    MODEL,
    TARGET,
    model_on_disk,
    ngrams_file,
    read_model,
    scratch_of,
    vocabulary_of,
    write_model,
    write_on_disk,
)
from nplm.cli._outputs import refuse_to_replace
from nplm.cli._text import listed_words
from nplm.cli.commands.convert import OUTPUT
from nplm.formats.on_disk.changes import limited_lm, pruned_lm
from nplm.models.ngrams.external.scratch import Scratch

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
    made = ngrams_file(output, to, bits)
    if made is None:
        before, after = _pruned_in_memory(model, output, threshold, words, to, verify)
    else:
        with scratch_of(memory) as (scratch, n_bytes):
            lm = model_on_disk(model, scratch, n_bytes, verify=verify)
            _check_ngrams(model, lm)
            before = _n_ngrams(lm)
            if words is not None:
                lm = words.limited_on_disk(lm, scratch)
            lm = pruned_lm(lm, threshold, scratch)
            after = _n_ngrams(lm)
            write_on_disk(lm, made, scratch)
    click.echo(f"{after:,} of {before:,} n-grams kept", err=True)


def _pruned_in_memory(
    model: str,
    output: Path,
    threshold: float,
    words: Words | None,
    to: str | None,
    verify: bool,
) -> tuple[int, int]:
    """Write a file of nplm.save; return the number of n-grams before and after."""
    lm = read_model(model, index=False, verify=verify)
    _check_ngrams(model, lm)
    before = _n_ngrams(lm)
    if words is not None:
        lm = words.limited(lm)
    lm.estimator_.prune(threshold)
    write_model(lm, output, to)
    return before, _n_ngrams(lm)


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

    def limited(self, lm: TextLM) -> TextLM:
        """Restrict a model to these words, and report them."""
        return self._reported(
            lm, lambda: limit_vocabulary(lm, self._words, index=False)
        )

    def limited_on_disk(self, lm: TextLM, scratch: Scratch) -> TextLM:
        """Restrict a model on disk to these words, and report them."""
        return self._reported(lm, lambda: limited_lm(lm, self._words, scratch))

    def _reported(self, lm: TextLM, limited: Callable[[], TextLM]) -> TextLM:
        lacking = len(self._words - vocabulary_of(lm).ids_.keys())
        try:
            made = limited()
        except ValueError as error:
            raise click.ClickException(
                f"--limit-vocab {self._path}: {error}"
            ) from error
        click.echo(
            f"{vocabulary_of(made).n_words_:,} of {vocabulary_of(lm).n_words_:,} words "
            f"kept; {lacking:,} words of {self._path} are not in the model",
            err=True,
        )
        return made
