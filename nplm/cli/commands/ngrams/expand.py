"""``nplm expand``: a model of words, from one of classes."""

from __future__ import annotations

import click

from nplm.cli._messages import report_in_options
from nplm.cli._models import MODEL
from nplm.cli._outputs import OUTPUT, refuse_to_replace
from nplm.cli._values import MAX_ORDER, POSITIVE
from nplm.cli._writing import Target, writes_ngrams
from nplm.formats._words import reserve_for_words
from nplm.formats.class_files import read_class_definitions
from nplm.models.mixtures.class_expansion import MAX_EXPANDED, expanded


@click.command("expand")
@MODEL
@OUTPUT
@click.option(
    "--classes",
    "definitions",
    required=True,
    type=click.Path(exists=True, dir_okay=False),
    help="File of the words of classes, in SRILM's format: lines CLASS PROBABILITY "
    "WORD, or CLASS WORD for classes whose words are equally probable.",
)
@click.option(
    "--order",
    type=click.IntRange(1, MAX_ORDER),
    help="Words in the longest n-grams of OUTPUT; by default those of MODEL.",
)
@click.option(
    "--max-ngrams",
    type=POSITIVE,
    default=MAX_EXPANDED,
    show_default=True,
    help="Refuse to write more n-grams: those of large classes are many.",
)
@writes_ngrams("sort n-grams and hold parts of the models")
def expand_command(
    target: Target,
    model: str,
    definitions: str,
    order: int | None,
    max_ngrams: int,
    verify: bool,
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
    refuse_to_replace(target.path, model, definitions)
    with report_in_options(), target.changed_from([model], verify=verify) as change:
        classes = read_class_definitions(definitions)
        [ngrams], work = change.models, change.work
        n_words = len(ngrams.words) + sum(map(len, classes.values()))
        reserve_for_words(work, n_words)
        n_written = change.write(expanded(ngrams, classes, order, max_ngrams, work))
        n_found = len(classes.keys() & ngrams.words.ids.keys())
    click.echo(
        f"{n_found:,} of {len(classes):,} classes are in the model; "
        f"{change.n_before:,} n-grams became {n_written:,}",
        err=True,
    )
