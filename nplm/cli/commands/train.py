"""``nplm train``: any model, from text."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import click
import numpy as np

import nplm
from nplm import (
    ClassLM,
    EnergyLM,
    InterpolatedTrigram,
    KneserNeyLM,
    MixtureLM,
    NeuralLM,
    ShortlistLM,
    Subwords,
    TextLM,
    Tokenizer,
    Vocabulary,
)
from nplm.base.estimators import LanguageModel
from nplm.base.progress.bars import BAR
from nplm.cli._bars import stages
from nplm.cli._estimation import Estimation, is_arpa
from nplm.cli._kept import Kept
from nplm.cli._model_options import (
    MODELS,
    ON_DISK,
    ModelCommand,
    is_given,
    refuse_other_models,
)
from nplm.cli._models import BITS, KEEP_OPTIMIZER, vocabulary_of
from nplm.cli._options import NETWORK, Settings, network_options, network_settings
from nplm.cli._outputs import refuse_to_replace, writable_file
from nplm.cli._tally import report_in_options, report_perplexities, report_words
from nplm.cli._text import (
    BLANK_LINES,
    INPUTS,
    KeptText,
    blocks_of_lines,
    lines_of,
    listed_words,
)
from nplm.cli._values import COUNTS, DISCOUNTS, POSITIVE, memory_option
from nplm.models.neural.network_lm import NetworkLM
from nplm.text.words.marks import END, LineMarks
from nplm.text.words.splitting import BETWEEN_BLANKS, BLANKS

__all__ = ["train_command"]

# Models with a checkpoint.
NETWORKS = ("network", "energy", "shortlist", "mixture")
# Units that are a whole vocabulary, in which no text is unknown.
OPEN_UNITS = ("bpe", "unigram", "bytes")
UNITS = (*OPEN_UNITS, "characters")
# The bytes and </s>.
LEAST_UNITS = 257


@click.command("train", cls=ModelCommand, context_settings={"show_default": True})
@INPUTS
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(path_type=Path),
    callback=writable_file,
    help="File to save the model to, for nplm.load. Kneser-Ney is saved as mapped "
    "n-grams, or as ARPA if OUTPUT ends in .arpa, .arpa.gz or .arpa.xz.",
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
    type=click.Choice(["words", "blanks", *UNITS]),
    default="words",
    help="Split text into words and punctuation marks, at blanks, or into units below "
    "words: bpe and unigram learn --max-words of them (8,000 by default).",
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
@KEEP_OPTIMIZER
@network_options()
@click.pass_context
def train_command(
    ctx: click.Context,
    /,
    inputs: tuple[str, ...],
    output: Path,
    valid: str | None,
    test: str | None,
    memory: int | None,
    folder: str | None,
    bits: int | None,
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
      nplm train *.txt.gz -o model --order 3 --min-count 2 --test test.txt
      nplm train train.txt -o model --model network --valid valid.txt --epochs 5
      nplm train large.txt -o model --tokens blanks --memory 2G --jobs -1
      nplm train large.txt -o model.arpa.gz --tokens blanks --min-counts 1,1,2
      nplm train large.txt -o small --bits 8
      nplm train counts.gz -o model --counts --order 3
    """  # noqa: D301  (click reads the control character)
    _refuse_two_vocabularies(options)
    _refuse_chosen_units(options)
    _refuse_on_disk(ctx, options["tokens"])
    refuse_other_models(ctx, options["model"])
    refuse_to_replace(output, *inputs, valid, test, options["words_path"])
    vocabulary = _vocabulary(options)
    if options["model"] != "kneser-ney" or options["tokens"] in UNITS:
        lm = _text_lm(ctx, options, vocabulary)
        _train(lm, options, inputs, output, valid, test)
        return
    _refuse_empty(valid, test)
    _refuse_text_options(ctx, inputs, of_counts=options["of_counts"])
    blanks = options["of_counts"] or options["tokens"] == "blanks"
    tokenizer = None if blanks else Tokenizer()
    on_disk = Estimation(
        _kneser_ney(options), vocabulary, tokenizer, memory, folder, bits,
        n_jobs=options["n_jobs"], blank_lines=options["blank_lines"],
        of_counts=options["of_counts"],
    )  # fmt: skip
    on_disk.train(inputs, output, valid, test)


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
    for name, option in (("tokens", "--tokens"), ("blank_lines", "--blank-lines")):
        if is_given(ctx, name):
            raise click.UsageError(
                f"{option} is for texts, and --counts has the words of its files: "
                "leave it out."
            )


def _refuse_on_disk(ctx: click.Context, tokens: str) -> None:
    for option in ctx.command.params:
        name = str(option.name)
        if tokens in UNITS and name in ON_DISK.split() and is_given(ctx, name):
            raise click.UsageError(
                f"{option.opts[0]} is for models that are estimated on disk, and those "
                f"of --tokens {tokens} are fitted in memory: leave it out."
            )


def _refuse_sampling(settings: Settings) -> None:
    if settings.get("loss", "auto") not in ("auto", "exact"):
        raise click.UsageError(
            "the network of --model shortlist trains on all words of its list: leave "
            "--loss out, or give --loss exact."
        )


# -- the model ------------------------------------------------------------------


def _vocabulary(options: Settings) -> Vocabulary:
    path = options["words_path"]
    vocabulary = Vocabulary(options["min_count"], options["max_words"])
    if path is not None:
        vocabulary.words = listed_words(path, "--vocabulary")
    return vocabulary


def _text_lm(ctx: click.Context, options: Settings, vocabulary: Vocabulary) -> TextLM:
    """Make the model that the options ask for."""
    tokens, n_words = options["tokens"], options["max_words"]
    tokenizer: Tokenizer | Subwords = Tokenizer()
    if tokens == "blanks":
        tokenizer = Tokenizer(BETWEEN_BLANKS)
    elif tokens != "words":
        tokenizer = Subwords(tokens)
        if tokens in OPEN_UNITS and n_words is not None:
            tokenizer.n_words = n_words - 1  # </s> is one more
    return TextLM(
        _estimator(ctx, options),
        options["order"] - 1,
        tokenizer=tokenizer,
        vocabulary="auto" if tokens in OPEN_UNITS else vocabulary,
    )


def _estimator(ctx: click.Context, options: Settings) -> LanguageModel:
    model, order = options["model"], options["order"]
    if model == "trigram":
        return InterpolatedTrigram(order)
    if model == "classes":
        return ClassLM(
            order,
            n_classes=options["n_classes"],
            random_state=options["random_state"],
            discount_fallback=options["discount_fallback"],
        )
    ngrams = _kneser_ney(options)
    if model == "kneser-ney":
        return ngrams
    network = _network(ctx, options)
    if model == "shortlist":
        return ShortlistLM(network, ngrams, n_shortlist=options["n_shortlist"])
    if model == "mixture":
        # The network comes last: after an interrupt the mixture is then whole.
        return MixtureLM([("ngrams", ngrams), ("network", network)], verbose=BAR)
    return network


def _kneser_ney(options: Settings) -> KneserNeyLM:
    return KneserNeyLM(
        options["order"],
        min_counts=options["min_counts"],
        min_counts_of=options["min_counts_of"],
        discount_fallback=options["discount_fallback"],
    )


def _network(ctx: click.Context, options: Settings) -> NetworkLM:
    """Make a network of the options that are given, and check its parameters."""
    parameters = {name: options[name] for name in NETWORK}
    settings = network_settings(ctx, parameters)
    if options["model"] == "shortlist":
        _refuse_sampling(settings)
    network = EnergyLM() if options["model"] == "energy" else NeuralLM()
    with report_in_options():
        network.set_params(**settings, verbose=BAR).check_settings()
    return network


# -- training in memory -----------------------------------------------------------


def _train(
    lm: TextLM,
    options: Settings,
    inputs: Sequence[str],
    output: Path,
    valid: str | None,
    test: str | None,
) -> None:
    """Train a model in memory, save it, and report."""
    if is_arpa(output):
        units = options["tokens"] in UNITS
        of_words = "--tokens words or blanks with " if units else ""
        raise click.UsageError(
            f"OUTPUT is a model of nplm, which no other tool would read as "
            f"{output.name}: give it another name, or train {of_words}--model "
            "kneser-ney, whose n-grams an ARPA file holds."
        )
    keep = options["blank_lines"]
    of_blanks = Tokenizer(BETWEEN_BLANKS).split_function()
    marks = LineMarks(END, of_blanks if options["tokens"] == "blanks" else None)
    texts = _texts(inputs, marks, "train on", keep)
    held_out = None
    if valid is not None:
        held_out = _texts([valid], marks, f"validate on in {valid}", keep)
    _refuse_empty(None, test)
    _fit_and_save(lm, options, texts, held_out, output)
    _report(lm, texts)
    report_perplexities(lm, valid, test, blank_lines=keep)


def _fit_and_save(
    lm: TextLM,
    options: Settings,
    texts: list[str],
    held_out: list[str] | None,
    output: Path,
) -> None:
    """Fit a model, or go on with its checkpoint; after an interrupt save it too."""
    model, optimizer = options["model"], options["keep_optimizer"]
    kept = Kept(output.with_name(f"{output.name}.checkpoint"))
    name = "network__checkpoint" if model == "mixture" else "checkpoint"
    resumable = {name: kept.folder} if model in NETWORKS else {}
    try:
        with report_in_options(), redirect_stdout(sys.stderr), kept:
            lm.fit(texts, X_val=held_out, **resumable)
    except KeyboardInterrupt:
        if hasattr(lm, "estimator_"):
            _be_quiet(lm)
            nplm.save(lm, output, optimizer=optimizer)
            click.echo(f"{output} has the model as far as it was trained.", err=True)
        raise
    _be_quiet(lm)
    nplm.save(lm, output, optimizer=optimizer)
    kept.remove()


def _refuse_empty(valid: str | None, test: str | None) -> None:
    """Refuse texts to score that have no words, before the work of a fit."""
    for path, purpose in ((valid, "validate"), (test, "test")):
        if path is not None and not any(
            line.strip(BLANKS) for line in lines_of([path], LineMarks(END))
        ):
            raise click.ClickException(f"there is no text to {purpose} on in {path}.")


def _texts(
    inputs: Sequence[str], marks: LineMarks, what_for: str, blank_lines: bool
) -> list[str]:
    texts: list[str] = []
    stage = f"reading the text to {what_for}"
    with stages() as bars:
        bars.show(stage, 0, 0, "")
        for block in blocks_of_lines(inputs, marks, blank_lines=blank_lines):
            texts += block
            bars.show(stage, 0, 0, f"{len(texts):,} lines")
    if not any(line.strip(BLANKS) for line in texts):
        raise click.ClickException(f"there is no text to {what_for}.")
    return texts


def _be_quiet(lm: TextLM) -> None:
    """Turn the progress of a model off, for those who train it further."""
    fitted = lm.estimator_
    members = *getattr(fitted, "estimators_", ()), getattr(fitted, "network_", None)
    for model in filter(None, (lm.estimator, fitted, *members)):
        names = [n for n in model.get_params() if n.split("__")[-1] == "verbose"]
        model.set_params(**dict.fromkeys(names, 0))


def _report(lm: TextLM, texts: list[str]) -> None:
    ids = lm._codec.encode(texts).ids
    mark = vocabulary_of(lm).unknown_id_
    n_unknown = np.count_nonzero(ids == (-1 if mark is None else mark))
    unknown = float(n_unknown / max(len(ids), 1))
    report_words(len(texts), len(ids), lm.n_words_, unknown)
