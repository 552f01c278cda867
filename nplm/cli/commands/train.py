"""``nplm train``: any model, from text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from nplm.cli._options import (
    BY_MINUTES,
    ModelCommand,
    Settings,
    chosen_model,
    command,
    models_of,
    refuse,
    refuse_other_models,
)
from nplm.cli._outputs import output_option, refuse_to_replace
from nplm.cli._text import INPUTS, hint_of_marks
from nplm.cli.training.job import Job
from nplm.cli.training.options import OPEN_UNITS, TRAIN_OPTIONS, UNITS

# The bytes and </s>.
LEAST_UNITS = 257


@command(
    "train", INPUTS,
    output_option(
        "File to save the model to, for nplm.load. Kneser-Ney is saved as mapped "
        "n-grams, or as ARPA if OUTPUT ends in .arpa, .arpa.gz or .arpa.xz."),
    *TRAIN_OPTIONS, cls=ModelCommand,
)  # fmt: skip
@click.pass_context
def train_command(
    ctx: click.Context,
    /,
    inputs: tuple[str, ...],
    output: Path,
    valid: str | None,
    test: str | None,
    **options: Any,
) -> None:
    """Train a model on TEXT, and save it.

    A line of TEXT (by default of standard input; plain, gzip, bzip2, xz or zstd) is a
    document, which no context crosses. Progress and notes go to standard error.

    Ctrl-C saves the model with what its network has learned so far, and ends with the
    exit code 130. The state of the fit is in a folder, OUTPUT.checkpoint, after a kill
    too (up to the last minute or epoch): the same command goes on from there. With
    --minutes only a kill leaves it, and after Ctrl-C --continue goes on.

    \b
    Examples:
      nplm train train.txt --output model
      nplm train train.txt -o model --minutes 3 --test test.txt
      nplm train *.txt.gz -o model --order 3 --min-count 2 --test test.txt
      nplm train train.txt -o model --model network --valid valid.txt --epochs 5
      nplm train large.txt -o model --tokens blanks --memory 2G --jobs -1
      nplm train large.txt -o model.arpa.gz --tokens blanks --min-counts 1,1,2
      nplm train large.txt -o small --bits 8
      nplm train counts.gz -o model --counts --order 3
    """  # noqa: D301  (click reads the control character)
    job = Job(inputs, output, valid, test, options)
    _refuse_two_vocabularies(options)
    _refuse_chosen_units(options)
    refuse_other_models(ctx)
    refuse_to_replace(output, *inputs, valid, test, options["words_path"])
    # A model to continue, or its recipe, says how text is split.
    if not (options["of_counts"] or options["continued"] or options["recipe"]):
        hint_of_marks(inputs, options["tokens"])
    if chosen_model(ctx) == BY_MINUTES:
        from nplm.cli.training.minutes import train_minutes

        train_minutes(job)
        return
    if options["tokens"] in UNITS:
        on_disk = {BY_MINUTES, "kneser-ney"}
        params = [o for o in ctx.command.params if on_disk.issuperset(models_of(o))]
        refuse(
            [str(option.name) for option in params],
            "{} is for models that are estimated on disk, and those of --tokens "
            f"{options['tokens']} are fitted in memory: leave it out.",
        )  # fmt: skip
    if options["model"] != "kneser-ney" or options["tokens"] in UNITS:
        # Imported here: only models that are fitted in memory need scikit-learn.
        from nplm.cli.training.in_memory import train_in_memory

        train_in_memory(job)
        return
    if options["of_counts"]:
        _refuse_text_options(inputs)
    from nplm.cli.training.on_disk import train_on_disk

    train_on_disk(job)


# -- options that do not go together --------------------------------------------


def _refuse_two_vocabularies(options: Settings) -> None:
    chooses = options["min_count"] > 1 or options["max_words"] is not None
    if options["words_path"] is not None and chooses:
        raise click.UsageError(
            "--vocabulary gives the words, and --min-count and --max-words choose "
            "them: leave one of both out."
        )


def _refuse_chosen_units(options: Settings) -> None:
    tokens, n_words = options["tokens"], options["max_words"]
    if tokens not in OPEN_UNITS:
        return
    if options["words_path"] is not None or options["min_count"] > 1:
        raise click.UsageError(
            f"--tokens {tokens} has a vocabulary of its own: leave --vocabulary and "
            "--min-count out."
        )
    if n_words is not None and tokens == "bytes":
        raise click.UsageError(
            "--tokens bytes has the 256 bytes and </s> as its vocabulary: leave "
            "--max-words out."
        )
    if n_words is not None and n_words < LEAST_UNITS:
        raise click.UsageError(
            f"--max-words {n_words} is too small: --tokens {tokens} has the 256 bytes "
            f"and </s> in its vocabulary, so give {LEAST_UNITS} or more."
        )


def _refuse_text_options(inputs: Sequence[str]) -> None:
    """Refuse options of texts with counts."""
    if not inputs or "-" in inputs:
        raise click.UsageError("--counts reads files of counts: give their names.")
    refuse(
        ("tokens", "blank_lines", "no_marks"),
        "{} is for texts, and --counts has the words of its files: leave it out.",
    )  # fmt: skip
