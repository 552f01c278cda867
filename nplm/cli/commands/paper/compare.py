"""``nplm compare``: `AutoLM` and n-gram models on a corpus, side by side."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

import nplm
from nplm import AutoLM, NeuralLM, TextLM, Tokenizer
from nplm.base.progress import time_in_words
from nplm.cli._bars import stages
from nplm.cli._messages import check_auto_settings, report_in_options
from nplm.cli._models import vocabulary_of
from nplm.cli._options import command, flag, option, refuse
from nplm.cli._outputs import (
    INTERRUPTED,
    OutputFile,
    refuse_to_replace,
    writable_folder,
)
from nplm.cli._tally import warning_of_unknown
from nplm.cli._text import hint_of_marks
from nplm.cli._values import ABOVE_ZERO, POSITIVE, SEED, SETTING, threads_option
from nplm.cli.commands.paper.tables import print_table
from nplm.datasets import Corpus, fetch_brown, fetch_ptb, load_python_docs, load_text
from nplm.experiments import Row, compare, conclusion
from nplm.inspection import nearest_words, suggestions
from nplm.text.words.splitting import BETWEEN_BLANKS

CORPORA: dict[str, Callable[[], Corpus]] = {
    "python-docs": load_python_docs,
    "brown": fetch_brown,
    "ptb": fetch_ptb,
}
# What rows of the paper's tables have beside those of a comparison.
OF_THE_PAPER = ("direct", "c", "mix", "name")
Results = list[tuple[Row, TextLM]]


@command(
    "compare",
    option("--corpus corpus_name", None, "python-docs",
        "Text to train on: python-docs is on every machine, brown and ptb are "
        "downloaded once (or found in the folder that NPLM_DATA names), PATH is a "
        "UTF-8 text file or a folder of .txt files.",
        metavar="[python-docs|brown|ptb|PATH]"),
    flag("--lines", "Each line of PATH is a document of its own."),
    option("--tokens", ["words", "blanks"], "words",
        "Split PATH into words and punctuation marks, or at blanks."),
    option("--min-count", POSITIVE, 4,
        "Rarer words of PATH are <unk>. Perplexities of different vocabularies cannot "
        "be compared."),
    option("--minutes", ABOVE_ZERO, 1.0, "Time to train AutoLM by the clock."),
    option("--set settings", SETTING, None,
        "Fix a choice of AutoLM: members, ngram_order, n_classes, spelling, epochs, or "
        "a parameter of NeuralLM.", multiple=True),
    option("--ngram-order", click.IntRange(min=2), 5, "The n of Kneser-Ney."),
    threads_option(-1), SEED,
    option("--json json_path", OutputFile(), None,
        "Also write the results as data to this file."),
    option("--output folder", click.Path(path_type=Path), None,
        "Save the trained models (for nplm.load) to this folder.",
        callback=lambda _ctx, _param, path: path and writable_folder(path)),
)  # fmt: skip
@click.pass_context
def compare_command(
    ctx: click.Context,
    /,
    corpus_name: str,
    settings: tuple[tuple[str, object], ...],
    ngram_order: int,
    json_path: Path | None,
    folder: Path | None,
    lines: bool,
    tokens: str,
    min_count: int,
    **options: Any,
) -> None:
    """Train AutoLM and n-gram models on a corpus, side by side.

    An interpolated trigram and modified Kneser-Ney see the same text as AutoLM, the
    best model that some minutes make of it: a network, Kneser-Ney and word classes,
    mixed. The table at the end is like the paper's Table 1: perplexity of the training,
    validation and test parts (all tokens count, <unk> too; of the training part about
    50,000), parameters, and seconds of training. The network and the classes of AutoLM
    have rows of their own. nplm reproduce trains the networks of the paper.

    Ctrl-C ends the comparison, and keeps and reports what is trained.

    \b
    Examples:
      nplm compare
      nplm compare --corpus brown --minutes 3 --set dropout=0.2
      nplm compare --corpus novels/ --json result.json --output models
    """  # noqa: D301  (click reads the control character)
    if json_path is not None:
        refuse_to_replace(json_path, corpus_name)
    lm = AutoLM(**options, settings=dict(settings))
    check_auto_settings(dict(settings))
    console, status = Console(), Console(stderr=True)
    corpus = _load_corpus(corpus_name, tokens, lines=lines, min_count=min_count)
    console.print(f"[bold]{corpus_name}[/bold]", highlight=False)
    console.print(corpus.DESCR, markup=False, highlight=False)
    status.print(
        f"AutoLM trains for {time_in_words(60 * lm.minutes)}, after n-gram models that "
        "take some seconds; then all are scored.",
        highlight=False,
    )
    results: Results = []
    exit_code = 0
    try:
        with (
            report_in_options(), redirect_stdout(sys.stderr), stages(status) as bars,
            bars.enclosing(),
        ):  # fmt: skip
            for row, model in compare(corpus, lm, ngram_order=ngram_order):
                results.append((row, model))
                status.print(_one_line(row), markup=False, highlight=False)
    except KeyboardInterrupt:
        status.print("Interrupted.", style="red")
        exit_code = INTERRUPTED
    report = _report(corpus_name, corpus, lm, results)
    _show(report, results, console, status)
    if folder is not None:
        names = {row.model.replace(" ", ""): model for row, model in results}
        for name, model in names.items():
            nplm.save(model, folder / name)
        status.print(f"Saved to {folder}: {', '.join(names)}", markup=False)
    if json_path is not None:
        text = json.dumps(report, indent=2) + "\n"
        json_path.write_text(text, encoding="utf-8")
        status.print(f"Results: {json_path}", markup=False)
    ctx.exit(exit_code)


def _load_corpus(name: str, tokens: str, **options: Any) -> Corpus:
    """Load a named corpus, or the text at a path.

    Options that are for a path are refused with a name.
    """
    if name not in CORPORA:
        if not Path(name).exists():
            raise ValueError(
                f"--corpus {name}: there is no such file or folder, and the named "
                f"corpora are {', '.join(CORPORA)}."
            )
        hint_of_marks([name], tokens)
        tokenizer = Tokenizer(BETWEEN_BLANKS) if tokens == "blanks" else None
        return load_text(name, tokenizer=tokenizer, **options)
    refuse(
        ("lines", "tokens", "min_count"),
        f"{{}} is for --corpus PATH; {name} has its own protocol.",
    )  # fmt: skip
    return CORPORA[name]()


def _report(
    name: str, corpus: Corpus, lm: AutoLM, results: Results
) -> dict[str, object]:
    """Return all results, as data for JSON."""
    report = {
        "corpus": name,
        "n_words": corpus.n_words,
        "tokens": {part: len(corpus[part]) for part in ("train", "valid", "test")},
        "oov_rate": corpus.oov_rates(),
        "rows": [_as_data(row) for row, _ in results],
        "minutes": lm.minutes,
        "recipe": lm.recipe_.as_dict() if hasattr(lm, "recipe_") else None,
        "next_words": [],
        "nearest_words": {},
        "nplm": nplm.__version__,
    }
    for _, model in results:
        network = model.estimator_
        if isinstance(network, NeuralLM):
            # Windows of little more than the test part: they are wide.
            n = 2 * network.n_features_in_
            shown = replace(
                corpus, train=corpus.train[-n:], valid=corpus.valid[-n:],
                vocabulary=vocabulary_of(model),
            )  # fmt: skip
            report["next_words"] = suggestions(network, shown)
            report["nearest_words"] = nearest_words(network.C_, shown.words)
    return report


def _as_data(row: Row) -> dict[str, object]:
    """Return a row for JSON, which has null for infinity and NaN."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in asdict(row).items()
        if key not in OF_THE_PAPER
    }


def _show(
    report: dict[str, Any], results: Results, console: Console, status: Console
) -> None:
    """Print the table, what it says, what the network has learned, and a warning."""
    rows = [row for row, _ in results]
    _print_rows(console, rows)
    console.print(conclusion(rows), highlight=False)
    _print_examples(console, report)
    warning = warning_of_unknown(max(report["oov_rate"].values()))
    if warning:
        status.print(f"Warning: {warning}", style="red", markup=False)


def _one_line(row: Row) -> str:
    """Return a line about a row of a comparison."""
    seconds = "" if row.seconds is None else f", {row.seconds:.1f} s"
    return (
        f"{_name(row)}: perplexity {row.train:.1f} (training), {row.valid:.1f} "
        f"(validation), {row.test:.1f} (test){seconds}"
    )


def _print_rows(console: Console, rows: list[Row]) -> None:
    """Print the rows of a comparison."""
    header = "model", "n", "h", "m", "train", "valid", "test"
    cells = [
        [
            _name(row),
            *("" if value is None else str(value) for value in (row.n, row.h, row.m)),
            *(f"{perplexity:.1f}" for perplexity in (row.train, row.valid, row.test)),
            f"{row.parameters:,}",
            "" if row.seconds is None else f"{row.seconds:.1f}",
        ]
        for row in rows
    ]
    print_table(console, "Perplexity", [*header, "parameters", "seconds"], cells)


def _name(row: Row) -> str:
    return f"{row.model} (interrupted)" if row.interrupted else row.model


def _print_examples(console: Console, report: dict[str, Any]) -> None:
    """Print next words and nearest words by the network."""
    rates = (f"{rate:.2%} of {part}" for part, rate in report["oov_rate"].items())
    console.print(f"\nOut of vocabulary (<unk>): {', '.join(rates)}.", markup=False)
    if not report["nearest_words"]:
        return
    console.print("\n[bold]Next words[/bold], by the network")
    for example in report["next_words"]:
        words = ", ".join(f"{word} {p:.2f}" for word, p in example["suggestions"])
        line = f"  {' '.join(example['context'])} ({example['next']}): {words}"
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print("\n[bold]Nearest words[/bold], by the cosine of their features")
    for word, nearest in report["nearest_words"].items():
        line = f"  {word}: {', '.join(nearest)}"
        console.print(line, markup=False, highlight=False, soft_wrap=True)
