"""``nplm prune``: a model with fewer n-grams."""

from __future__ import annotations

from pathlib import Path

import click

from nplm import TextLM, limit_vocabulary
from nplm.cli._models import MODEL, TARGET, read_model, vocabulary_of, write_model
from nplm.cli._outputs import refuse_to_replace
from nplm.cli._text import texts_of
from nplm.cli.commands.convert import OUTPUT
from nplm.text.tokenizer import BLANKS

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
def prune_command(
    model: str,
    output: Path,
    threshold: float | None,
    limit_vocab: str | None,
    to: str | None,
    verify: bool,
) -> None:
    """Write MODEL with fewer n-grams, or fewer words.

    By default those n-grams are left out that matter least.

    \b
    Examples:
      nplm prune --threshold 1e-8 model.arpa.gz small.arpa.gz
      nplm prune --limit-vocab words.txt model.arpa.gz small.arpa.gz
    """  # noqa: D301  (click reads the control character)
    refuse_to_replace(output, limit_vocab)
    lm = read_model(model, index=False, verify=verify)
    if not hasattr(lm.estimator_, "prune"):
        raise click.ClickException(
            f"{model} has no n-grams to drop ({type(lm.estimator_).__name__}): give a "
            "Kneser-Ney model, or an ARPA file."
        )
    before = int(lm.estimator_.n_ngrams_.sum())
    if limit_vocab is not None:
        lm = _limited(lm, limit_vocab)
    lm.estimator_.prune(_threshold(threshold, limit_vocab))
    write_model(lm, output, to)
    after = int(lm.estimator_.n_ngrams_.sum())
    click.echo(f"{after:,} of {before:,} n-grams kept", err=True)


def _threshold(given: float | None, limit_vocab: str | None) -> float:
    if given is None:
        return DEFAULT_THRESHOLD if limit_vocab is None else 0.0
    return given


def _limited(lm: TextLM, path: str) -> TextLM:
    """Restrict a model to the words of a file, and report the words."""
    words = {word.strip(BLANKS) for word in texts_of([path])}
    if not words:
        raise click.ClickException(f"--limit-vocab: {path} has no words.")
    lacking = len(words - vocabulary_of(lm).ids_.keys())
    try:
        limited = limit_vocabulary(lm, words, index=False)
    except ValueError as error:
        raise click.ClickException(f"--limit-vocab {path}: {error}") from error
    click.echo(
        f"{vocabulary_of(limited).n_words_:,} of {vocabulary_of(lm).n_words_:,} words "
        f"kept; {lacking:,} words of {path} are not in the model",
        err=True,
    )
    return limited
