"""``nplm train``: any model, from text."""

from __future__ import annotations

import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console

import nplm
from nplm import (
    ClassLM,
    EnergyLM,
    InterpolatedTrigram,
    KneserNeyLM,
    MixtureLM,
    NeuralLM,
    ShortlistLM,
    TextLM,
    Tokenizer,
    Vocabulary,
)
from nplm.cli._bars import stages
from nplm.cli._kept import Kept
from nplm.cli._models import vocabulary_of
from nplm.cli._options import (
    COMMON,
    NETWORK,
    POSITIVE,
    Discounts,
    in_options,
    network_options,
)
from nplm.cli._outputs import refuse_to_replace, writable_file
from nplm.cli._tally import Tally, scored, warning_of_unknown
from nplm.cli._text import INPUTS, blocks_of_lines, files_of, lines_of, texts_of
from nplm.formats import Estimated, estimate_arpa, estimate_binary, load_binary
from nplm.formats._words import BEGIN, END
from nplm.models.neural.network_lm import NetworkLM
from nplm.text.tokenizer import BETWEEN_BLANKS
from nplm.training.bars import BAR

__all__ = ["train_command"]

NETWORKS = ("network", "energy", "shortlist", "mixture")
MODELS = ("kneser-ney", "trigram", "classes", *NETWORKS)
ARPA_NAMES = (".arpa", ".arpa.gz", ".arpa.xz")
TEXT = click.Path(exists=True, dir_okay=False)


@click.command("train", context_settings={"show_default": True})
@INPUTS
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(path_type=Path),
    callback=writable_file,
    help="Where the model is saved (nplm.load reads it).",
)
@click.option("--model", type=click.Choice(MODELS), default="kneser-ney")
@click.option(
    "--valid",
    type=TEXT,
    help="Held-out text: stops a network, and weighs the members of a mixture.",
)
@click.option("--test", type=TEXT, help="Text to report the perplexity of.")
@click.option(
    "--tokens",
    type=click.Choice(["words", "blanks"]),
    default="words",
    help="Words and punctuation marks, or what stands between blanks.",
)
@click.option(
    "--vocabulary",
    "words_path",
    type=TEXT,
    help="File of the words to know, one a line; others are <unk>.",
)
@click.option("--min-count", type=POSITIVE, default=1, help="Rarer words are <unk>.")
@click.option("--max-words", type=POSITIVE, help="Know so many words at most.")
@click.option("--classes", "n_classes", type=POSITIVE, default=500)
@click.option(
    "--memory",
    help="Estimate Kneser-Ney on disk, with buffers of so much (500M, 2G), and save it "
    "as mapped n-grams, or as ARPA if OUTPUT ends in .arpa, .arpa.gz or .arpa.xz. "
    "Words stand between blanks.",
)
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False),
    help="Where --memory has its temporary files, by default where they usually are.",
)
@click.option(
    "--shortlist",
    "n_shortlist",
    type=POSITIVE,
    default=2000,
    help="Most frequent words, which the network of a short-list model predicts.",
)
@click.option(
    "--discount-fallback",
    type=Discounts(),
    help="Kneser-Ney's discounts where a small text gives none, such as 0.5,1,1.5. "
    "By default these are used with a note.",
)
@network_options()
@click.pass_context
def train_command(
    ctx: click.Context,
    inputs: tuple[str, ...],
    output: Path,
    model: str,
    valid: str | None,
    test: str | None,
    tokens: str,
    words_path: str | None,
    min_count: int,
    max_words: int | None,
    n_classes: int,
    memory: str | None,
    folder: str | None,
    n_shortlist: int,
    discount_fallback: tuple[float, float, float] | None,
    **parameters: Any,
) -> None:
    """Train a model on TEXT, and save it.

    A line of TEXT (by default of standard input; plain, gzip or xz) is a document,
    which no context crosses. What is trained and how far it is goes to standard error.

    Ctrl-C saves the model with what its network has learned so far, and ends with the
    exit code 130. The state of the fit is in a folder, OUTPUT.checkpoint, after a kill
    too (to the last minute or epoch): the same command goes on from there.

    \b
    Examples:
      nplm train train.txt --output model
      nplm train *.txt.gz -o model --order 3 --min-count 2 --test test.txt
      nplm train train.txt -o model --model network --valid valid.txt --epochs 5
      nplm train large.txt -o model --tokens blanks --memory 2G --jobs -1
      nplm train large.txt -o model.arpa.gz --tokens blanks --memory 2G --jobs -1
    """  # noqa: D301  (click reads the control character)
    if words_path is not None and (min_count > 1 or max_words is not None):
        raise click.UsageError(
            "--vocabulary gives the words, and --min-count and --max-words choose "
            "them: leave one of both out."
        )
    _refuse_others(ctx, model)
    refuse_to_replace(output, *inputs, valid, test, words_path)
    if folder is not None and memory is None:
        raise click.UsageError("--folder is for --memory: give that too.")
    vocabulary = Vocabulary(min_count, max_words)
    if words_path is not None:
        vocabulary.words = [word.strip() for word in texts_of([words_path])]
        if not vocabulary.words:
            raise click.ClickException(f"there is no word to know in {words_path}.")
    if memory is None and output.name.endswith(ARPA_NAMES):
        raise click.UsageError(
            f"OUTPUT is a model of nplm, which no other tool would read as "
            f"{output.name}: give it another name, and nplm convert makes ARPA of a "
            "Kneser-Ney model (or estimate it with --memory, straight into ARPA)."
        )
    ngrams = KneserNeyLM(parameters["order"], discount_fallback=discount_fallback)
    if memory is not None:
        if model != "kneser-ney" or tokens != "blanks":
            raise click.UsageError(
                "--memory estimates Kneser-Ney models of words between blanks: add "
                "--tokens blanks, and no other --model."
            )
        as_arpa = output.name.endswith(ARPA_NAMES)
        if as_arpa and (valid is not None or test is not None):
            raise click.UsageError(
                "an ARPA file has to be read whole before it scores: leave --valid and "
                "--test out and score it with nplm query, or give OUTPUT another name."
            )
        estimate = estimate_arpa if as_arpa else estimate_binary
        n_jobs = parameters["n_jobs"]
        _train_on_disk(
            estimate, ngrams, inputs, output, vocabulary, n_jobs, memory, folder
        )
        if valid is not None or test is not None:
            _report_perplexities(TextLM.from_model(*load_binary(output)), valid, test)
        return
    tokenizer = Tokenizer(BETWEEN_BLANKS) if tokens == "blanks" else Tokenizer()
    order = parameters["order"]
    network = _network(ctx, EnergyLM if model == "energy" else NeuralLM, parameters)
    estimator: Any = {
        "kneser-ney": ngrams,
        "trigram": InterpolatedTrigram(order),
        "classes": ClassLM(
            order,
            n_classes=n_classes,
            random_state=parameters["random_state"],
            discount_fallback=discount_fallback,
        ),
        "network": network,
        "energy": network,
        "shortlist": ShortlistLM(network, ngrams, n_shortlist=n_shortlist),
        "mixture": MixtureLM(
            # The network last: after an interrupt the mixture is then whole.
            [("ngrams", ngrams), ("network", network)],
            verbose=BAR,
        ),
    }[model]
    lm = TextLM(estimator, order - 1, tokenizer=tokenizer, vocabulary=vocabulary)
    texts = _texts(inputs, "train on")
    if tokens == "blanks":
        _refuse_marks(texts)
    held_out = None if valid is None else _texts([valid], f"validate on in {valid}")
    if test is not None and not any(line.strip() for line in lines_of([test])):
        raise click.ClickException(f"there is no text to test on in {test}.")
    kept = Kept(output.with_name(f"{output.name}.checkpoint"))
    name = "network__checkpoint" if model == "mixture" else "checkpoint"
    resumable = {name: kept.folder} if model in NETWORKS else {}
    try:
        with _notes(), redirect_stdout(sys.stderr), kept:
            lm.fit(texts, X_val=held_out, **resumable)
    except KeyboardInterrupt:
        if hasattr(lm, "estimator_"):
            _be_quiet(lm)
            nplm.save(lm, output)
            _say(f"{output} has the model as far as it was trained.")
        raise
    _be_quiet(lm)
    nplm.save(lm, output)
    kept.remove()
    _report(lm, texts)
    _report_perplexities(lm, valid, test)


def _train_on_disk(
    estimate: Callable[..., Estimated],
    ngrams: KneserNeyLM,
    inputs: tuple[str, ...],
    output: Path,
    vocabulary: Vocabulary,
    n_jobs: int,
    memory: str,
    folder: str | None,
) -> None:
    with _notes(), _terms_as_interrupts(), stages(Console(stderr=True)) as shown:

        def show(stage: str, done: int, total: int) -> None:
            # How long a text is, is known when it has been read.
            note = "" if total else f"{done:,} words"
            shown.show(stage, done if total else 0, total, note)

        estimated = estimate(
            ngrams,
            files_of(inputs),
            output,
            vocabulary=vocabulary,
            memory=memory,
            folder=folder,
            n_jobs=n_jobs,
            progress=show,
        )
    unknown = estimated.n_unknown / estimated.n_tokens
    _report_words(estimated.n_lines, estimated.n_tokens, estimated.n_words, unknown)


def _refuse_others(ctx: click.Context, model: str) -> None:
    """Refuse an option that only other models have: it would change nothing."""
    taken: dict[str, set[str]] = {
        "kneser-ney": {"discount_fallback"},
        "trigram": set(),
        "classes": {"n_classes", "discount_fallback"},
        "network": NETWORK,
        "energy": NETWORK & EnergyLM().get_params().keys(),
        "shortlist": NETWORK | {"n_shortlist", "discount_fallback"},
        "mixture": NETWORK | {"discount_fallback"},
    }
    for option in ctx.command.params:
        name = str(option.name)
        having = [other for other in MODELS if name in taken[other]]
        refused = having and model not in having and name not in COMMON
        if refused and _is_given(ctx, name):
            raise click.UsageError(
                f"--model {model} has no {option.opts[0]}, which is of "
                f"{', '.join(having)}: leave it out, or train another --model."
            )


def _is_given(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) != click.core.ParameterSource.DEFAULT


def _network(
    ctx: click.Context, kind: type[NetworkLM], parameters: dict[str, Any]
) -> NetworkLM:
    """Make a network of what was given, and of its own defaults."""
    given = {
        name: value
        for name, value in parameters.items()
        if name in COMMON or _is_given(ctx, name)
    }
    network = kind(**given, verbose=BAR)
    network._check_parameters()
    return network


def _texts(inputs: Sequence[str], what_for: str) -> list[str]:
    texts = texts_of(inputs)
    if not texts:
        raise click.ClickException(f"there is no text to {what_for}.")
    return texts


def _refuse_marks(texts: list[str]) -> None:
    """Refuse what lmplz refuses in a text: marks of its lines' ends."""
    for i, text in enumerate(texts, 1):
        found = {BEGIN, END}.intersection(text.split())
        if found:
            raise click.ClickException(
                f"line {i} of those with words has {min(found)!r}, which stands for an "
                "end of a line: leave it out, for every line gets its own."
            )


def _be_quiet(lm: TextLM) -> None:
    """Let a model that is trained further not tell of it."""
    fitted = lm.estimator_
    members = *getattr(fitted, "estimators_", ()), getattr(fitted, "network_", None)
    for model in filter(None, (lm.estimator, fitted, *members)):
        names = [n for n in model.get_params() if n.split("__")[-1] == "verbose"]
        model.set_params(**dict.fromkeys(names, 0))


def _report(lm: TextLM, texts: list[str]) -> None:
    ids = lm._codec.encode(texts, "X", None).ids
    unknown = np.count_nonzero(ids == vocabulary_of(lm).unknown_id_) / max(len(ids), 1)
    _report_words(len(texts), len(ids), lm.n_words_, unknown)


def _report_words(n_lines: int, n_tokens: int, n_words: int, unknown: float) -> None:
    _say(
        f"trained on {n_lines:,} lines of {n_tokens:,} words; vocabulary {n_words:,}, "
        f"{unknown:.2%} of the words are <unk>"
    )
    warning = warning_of_unknown(unknown)
    if warning:
        _say(f"Warning: {warning}")


def _report_perplexities(lm: TextLM, valid: str | None, test: str | None) -> None:
    for name, path in (("validation", valid), ("test", test)):
        if path is not None:
            _report_perplexity(lm, name, path)


def _report_perplexity(lm: TextLM, name: str, path: str) -> None:
    tally = Tally(bool(lm.predict_boundary))
    for block in blocks_of_lines([path]):
        tally.add(scored(lm, block))
    click.echo(
        f"{name}: perplexity {tally.with_unknown:.2f}, without unknown words "
        f"{tally.without_unknown:.2f} ({tally.unknown:,} of {tally.tokens:,} tokens)"
    )


@contextmanager
def _terms_as_interrupts() -> Iterator[None]:
    """Let a SIGTERM, as a cluster sends it, clean up as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _notes() -> Iterator[None]:
    """Say what a fit warns of once, without the line of Python."""
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            for note in dict.fromkeys(str(note.message) for note in notes):
                _say(f"Note: {in_options(note)}")


def _say(text: str) -> None:
    click.echo(text, err=True)
