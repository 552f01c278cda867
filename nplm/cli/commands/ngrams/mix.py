"""``nplm mix``: several n-gram models made one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nplm.cli._messages import report_in_options
from nplm.cli._models import MODELS, VERIFY
from nplm.cli._options import command, option
from nplm.cli._outputs import notify, output_option, refuse_to_replace
from nplm.cli._tally import line_marks, report_perplexities
from nplm.cli._text import KeptText, lines_of
from nplm.cli._values import weights_of
from nplm.cli._writing import Target, size_of, target_options
from nplm.models.mixtures.static_mixture import mixed
from nplm.models.ngrams.text_ngrams import TextNgrams
from nplm.text.codecs import codec_of


@command(
    "mix", MODELS, output_option("File of the mixture."),
    option("--valid", KeptText(), None,
        "Held-out text, on which EM learns the weights."),
    option("--weights", weights_of("MODEL"), None,
        "The weights, summing to 1: 0.7,0.3."),
    target_options("sort n-grams and hold parts of the models"),
    VERIFY,
)  # fmt: skip
def mix_command(
    models: tuple[str, ...],
    output: Path,
    valid: str | None,
    weights: list[float] | None,
    verify: bool,
    **options: Any,
) -> None:
    """Write one n-gram model with the n-grams of all MODELS.

    Each probability is the weighted average of those of MODELS, and back-off weights
    are recomputed, as by SRILM's ngram -mix-lm. MODELS are n-gram models that nplm
    saved, ARPA files, or mapped n-grams, and may have different words: a word that a
    model lacks has probability 0 in it. The weights are given, or learned on a held-out
    text as by compute-best-mix, and printed. With --valid the perplexity of the mixture
    on it is printed too. ARPA files and mapped n-grams are written within --memory,
    whatever the size of MODELS; a file of nplm.save takes their memory.

    \b
    Examples:
      nplm mix news.arpa.gz talk.arpa.gz --valid dev.txt -o both.arpa.gz
      nplm mix a.arpa b.arpa c.arpa --weights 0.5,0.3,0.2 -o mapped --to binary
    """  # noqa: D301  (click reads the control character)
    target = Target(output, **options)
    refuse_to_replace(output, *models, valid)
    if (valid is None) == (weights is None):
        raise click.UsageError(
            "give --valid, a text on which to learn the weights, or --weights."
        )
    with target.changed_from(models, verify=verify) as (members, work):
        n_before = sum(map(size_of, members))
        held_out = _held_out(valid, members[0])
        with report_in_options():
            mixture, chosen, _ = mixed(members, weights, held_out, work, names=models)
        n_ngrams = target.write(mixture, work)
        for model, weight in zip(models, chosen):
            click.echo(f"{weight:.6f}\t{model}")
        notify(f"{n_ngrams:,} n-grams, of {n_before:,} in {len(models)} models")
        report_perplexities(
            mixture.scorer(), valid, None, blank_lines=False, done=work.release_pages
        )


def _held_out(path: str | None, ngrams: TextNgrams) -> list[str] | None:
    if path is None:
        return None
    codec = codec_of(ngrams.tokenizer, ngrams.words)
    marks = line_marks(codec, ngrams.boundary)
    return list(lines_of([path], marks, blank_lines=False))
