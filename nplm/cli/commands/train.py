"""``nplm train``: any model, from text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from nplm.cli._options import (
    BY_MINUTES,
    MODELS,
    ON_DISK,
    OPEN_UNITS,
    UNITS,
    ModelCommand,
    Settings,
    network_options,
    refuse,
    refuse_other_models,
)
from nplm.cli._outputs import output_option, refuse_to_replace
from nplm.cli._text import (
    BLANK_LINES,
    ERRORS,
    INPUTS,
    KeptText,
    listed_words,
)
from nplm.cli._values import (
    ABOVE_ZERO,
    COUNTS,
    DISCOUNTS,
    POSITIVE,
    SETTING,
    memory_option,
)
from nplm.cli._writing import BITS, KEEP_OPTIMIZER
from nplm.cli.training.job import Job
from nplm.text.words.word_choice import WordChoice

__all__ = ["train_command"]


# The bytes and </s>.
LEAST_UNITS = 257


@click.command("train", cls=ModelCommand, context_settings={"show_default": True})
@INPUTS
@output_option(
    "File to save the model to, for nplm.load. Kneser-Ney is saved as mapped n-grams, "
    "or as ARPA if OUTPUT ends in .arpa, .arpa.gz or .arpa.xz."
)
@click.option("--model", type=click.Choice(MODELS), default="kneser-ney")
@click.option(
    "--valid",
    type=KeptText(),
    help="Held-out text: it stops the training of a network, and sets the weights of "
    "a mixture.",
)
@click.option("--test", type=KeptText(), help="Text whose perplexity to report.")
@click.option(
    "--tokens",
    type=click.Choice(["words", "blanks", "logs", *UNITS]),
    default="words",
    help="Split text into words and punctuation marks, at blanks, into words of log "
    "lines (<num> for numbers, <id> for addresses and others with a digit), or into "
    "units below words: bpe and unigram learn --max-words of them (8,000 by default).",
)
@click.option(
    "--counts",
    "of_counts",
    is_flag=True,
    help="TEXT is files of n-gram counts, such as nplm count writes, as SRILM's -read: "
    "of complete lines, up to --order words or more, without cut-offs.",
)
@click.option(
    "--vocabulary",
    "words_path",
    type=click.Path(exists=True, dir_okay=False),
    help="File with the words of the vocabulary, one a line; others are <unk>.",
)
@click.option("--min-count", type=POSITIVE, default=1, help="Rarer words are <unk>.")
@click.option(
    "--max-words",
    type=click.IntRange(min=3),
    help="Size of the vocabulary at most, with </s> and <unk>; it keeps the most "
    "frequent words.",
)
@click.option(
    "--classes", "n_classes", type=POSITIVE, default=500, help="Number of word classes."
)
@memory_option("estimate Kneser-Ney")
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False),
    help="Folder for the temporary files of Kneser-Ney; by default the system's.",
)
@BITS
@click.option(
    "--min-counts",
    type=COUNTS,
    help="Minimum count of the n-grams to keep, one per order, such as 1,1,2; the last "
    "one is that of all higher orders. By default every n-gram is kept.",
)
@click.option(
    "--min-counts-of",
    type=click.Choice(["modified", "text"]),
    default="modified",
    help="Counts that --min-counts is compared with: those that Kneser-Ney estimates "
    "from, as SRILM's -gt3min, or those in the text, as KenLM's --prune (1,1,2 is "
    "--prune 0 0 1).",
)
@click.option(
    "--interpolate-unigrams/--no-interpolate-unigrams",
    default=True,
    help="Whether Kneser-Ney gives what it discounts from single words to all words, "
    "as KenLM does, or to <unk> alone, as SRILM's ngram-count -unk does.",
)
@click.option(
    "--no-marks",
    is_flag=True,
    help="Estimate n-grams without <s> and </s>: none reaches over the ends of a line, "
    "and no end is predicted. Scores of the model have no ends, either.",
)
@click.option(
    "--shortlist",
    "n_shortlist",
    type=POSITIVE,
    default=2000,
    help="Number of most frequent words that the network of a short-list model "
    "predicts.",
)
@click.option(
    "--discount-fallback",
    type=DISCOUNTS,
    help="Kneser-Ney's discounts where a text is too small to estimate them, such as "
    "0.5,1,1.5. By default these are used with a note.",
)
@BLANK_LINES
@click.option(
    "--minutes",
    type=ABOVE_ZERO,
    help="Train the best model that this time makes of the text: a network, Kneser-Ney "
    "and classes, chosen by the text, the time and the machine, and mixed.",
)
@click.option(
    "--text",
    type=click.Choice(["documents", "running"]),
    help="A line is a document (by default), or the lines are one text in its order, "
    "whose context goes on across lines.",
)
@click.option(
    "--adapt",
    is_flag=True,
    help="Mix in a cache of the last 500 words of the document or running text; "
    "compare scores only with those of models that adapt, too.",
)
@click.option(
    "--members",
    help="Models to train, of ngrams, classes and network, separated by commas.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    type=SETTING,
    help="Fix a choice: ngram_order, n_classes, spelling, epochs, or a parameter of "
    "NeuralLM.",
)
@click.option(
    "--recipe",
    type=click.Path(exists=True, dir_okay=False),
    help="Train as this model was, without a clock: of the same text the same model.",
)
@click.option(
    "--continue",
    "continued",
    type=click.Path(exists=True, dir_okay=False),
    help="Go on from this model for --minutes more.",
)
@ERRORS
@KEEP_OPTIMIZER
@network_options
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
    too (up to the last minute or epoch): the same command goes on from there.

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
    by_minutes = any(options[n] is not None for n in ("minutes", "recipe", "continued"))
    refuse_other_models(ctx, BY_MINUTES if by_minutes else options["model"])
    refuse_to_replace(output, *inputs, valid, test, options["words_path"])
    if by_minutes:
        from nplm.cli.training.minutes import train_minutes

        train_minutes(job)
        return
    if options["tokens"] in UNITS:
        refuse(
            ctx, ON_DISK.split(),
            "{} is for models that are estimated on disk, and those of --tokens "
            f"{options['tokens']} are fitted in memory: leave it out.",
        )  # fmt: skip
    if options["model"] != "kneser-ney" or options["tokens"] in UNITS:
        # Imported here: only models that are fitted in memory need scikit-learn.
        from nplm.cli.training.in_memory import train_in_memory

        train_in_memory(ctx, job, _choice(options))
        return
    _refuse_text_options(ctx, inputs, of_counts=options["of_counts"])
    from nplm.cli.training.on_disk import train_on_disk

    train_on_disk(job, _choice(options))


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


def _refuse_text_options(
    ctx: click.Context, inputs: Sequence[str], *, of_counts: bool
) -> None:
    """Refuse options of texts with counts."""
    if not of_counts:
        return
    if not inputs or "-" in inputs:
        raise click.UsageError("--counts reads files of counts: give their names.")
    refuse(
        ctx, ("tokens", "blank_lines", "no_marks"),
        "{} is for texts, and --counts has the words of its files: leave it out.",
    )  # fmt: skip


def _choice(options: Settings) -> WordChoice:
    path = options["words_path"]
    words = None if path is None else listed_words(path, "--vocabulary")
    return WordChoice(options["min_count"], options["max_words"], words=words)
