"""``nplm expand``: a model of words, from one of classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nplm.cli._messages import report_in_options
from nplm.cli._models import MODEL
from nplm.cli._options import EXISTING, command, option
from nplm.cli._outputs import OUTPUT, notify, refuse_to_replace
from nplm.cli._values import MAX_ORDER, POSITIVE
from nplm.cli._writing import Target, size_of, target_options
from nplm.formats._words import reserve_for_words
from nplm.formats.class_files import read_class_definitions
from nplm.models.mixtures.class_expansion import MAX_EXPANDED, expanded


@command(
    "expand", MODEL, OUTPUT,
    option("--classes definitions", EXISTING, None,
        "File of the words of classes, in SRILM's format: lines CLASS PROBABILITY "
        "WORD, or CLASS WORD for classes whose words are equally probable.",
        required=True),
    option("--order", click.IntRange(1, MAX_ORDER), None,
        "Words in the longest n-grams of OUTPUT; by default those of MODEL."),
    option("--max-ngrams", POSITIVE, MAX_EXPANDED,
        "Refuse to write more n-grams: those of large classes are many."),
    target_options("sort n-grams and hold parts of the models"),
)  # fmt: skip
def expand_command(
    model: str,
    output: Path,
    definitions: str,
    order: int | None,
    max_ngrams: int,
    verify: bool,
    **options: Any,
) -> None:
    """Write the n-grams of words of MODEL, a model of classes.

    MODEL has n-grams of classes, or of words and classes mixed. OUTPUT has those of
    their words, as by SRILM's ngram -expand-classes, and needs no classes. ARPA files
    and mapped n-grams are written within --memory; a file of nplm.save takes the memory
    of the model.

    \b
    Examples:
      nplm expand classes.arpa words.arpa --classes definitions
      nplm expand classes.arpa words.arpa.gz --classes definitions --order 2
    """  # noqa: D301  (click reads the control character)
    target = Target(output, **options)
    refuse_to_replace(output, model, definitions)
    changed = target.changed_from([model], verify=verify)
    with report_in_options(), changed as ([ngrams], work):
        n_before, classes = size_of(ngrams), read_class_definitions(definitions)
        n_words = len(ngrams.words) + sum(map(len, classes.values()))
        reserve_for_words(work, n_words)
        of_words = expanded(ngrams, classes, order, max_ngrams, work)
        n_written = target.write(of_words, work)
        n_found = len(classes.keys() & ngrams.words.ids.keys())
    notify(
        f"{n_found:,} of {len(classes):,} classes are in the model; "
        f"{n_before:,} n-grams became {n_written:,}"
    )
