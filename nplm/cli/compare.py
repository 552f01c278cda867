"""The ``nplm`` command."""

from __future__ import annotations

import json
import math
import os
import tempfile
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click
import joblib
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from sklearn.utils import Bunch

import nplm
from nplm import DivergenceError, NeuralLM
from nplm._base import LanguageModel
from nplm.datasets import fetch_brown, fetch_ptb, load_python_docs, load_text
from nplm.experiments.compare import Row, compare, nearest_words, oov_rates, suggestions

__all__ = ["main"]

CORPORA: dict[str, Callable[[], Bunch]] = {
    "python-docs": load_python_docs,
    "brown": fetch_brown,
    "ptb": fetch_ptb,
}
REPETITIVE = (
    "Docstrings repeat one another, across the parts too: that favours the n-gram "
    "models, which remember phrases. On running text (--corpus brown) the order turns."
)
# The exit code of a program that SIGINT ended, as shells have it.
INTERRUPTED = 130
DEFAULTS = NeuralLM().get_params()


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(nplm.__version__, prog_name="nplm")
def main() -> None:
    """Language models of Bengio et al. (2003) beside their n-gram baselines."""


def _writable_file(_ctx: Any, _param: Any, path: Path | None) -> Path | None:
    """Refuse a file that cannot be written, before hours of training."""
    if path is not None:
        if path.is_dir():
            raise click.BadParameter(f"{path} is a folder; name a file.")
        if path.exists() and not os.access(path, os.W_OK):
            raise click.BadParameter(f"{path} cannot be written to.")
        _probe(path.absolute().parent)
    return path


def _writable_folder(_ctx: Any, _param: Any, path: Path | None) -> Path | None:
    if path is not None:
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise click.BadParameter(
                f"the folder {path} cannot be made: {error.strerror}."
            ) from error
        _probe(path)
    return path


def _probe(folder: Path) -> None:
    # Only writing tells: permissions say yes on a read-only file system.
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise click.BadParameter(
            f"the folder {folder} cannot be written to: {error.strerror}."
        ) from error


def _network_option(name: str, parameter: str, type_: Any, text: str) -> Any:
    """Declare an option for a parameter of NeuralLM, with its default."""
    return click.option(
        name, parameter, type=type_, default=DEFAULTS[parameter], help=text
    )


POSITIVE = click.IntRange(min=1)
ABOVE_ZERO = click.FloatRange(min=0, min_open=True)


@main.command("compare", context_settings={"show_default": True})
@click.option(
    "--corpus",
    "corpus_name",
    default="python-docs",
    metavar="[python-docs|brown|ptb|PATH]",
    help="What to train on: python-docs is on every machine, brown and ptb are "
    "downloaded once (or found in the folder that NPLM_DATA names), PATH is a UTF-8 "
    "text file or a folder of .txt files.",
)
@click.option(
    "--lines", is_flag=True, help="Each line of PATH is a document of its own."
)
@click.option(
    "--min-count",
    type=POSITIVE,
    default=4,
    help="Rarer words of PATH are <unk>. Perplexities of different vocabularies do "
    "not compare.",
)
@click.option(
    "--order",
    type=click.IntRange(min=2),
    default=5,
    help="The network's n: it sees n - 1 words of context.",
)
@_network_option("--hidden", "n_hidden", click.IntRange(min=0), "Hidden units, h.")
@_network_option("--embedding", "embedding_dim", POSITIVE, "Features of a word, m.")
@click.option(
    "--direct/--no-direct",
    default=DEFAULTS["direct"],
    help="Direct connections from the features to the output.",
)
@_network_option(
    "--learning-rate", "learning_rate_init", ABOVE_ZERO, "Step per example, at first."
)
@_network_option(
    "--decay",
    "learning_rate_decay",
    click.FloatRange(min=0),
    "The step is divided by 1 + decay * examples seen.",
)
@_network_option(
    "--alpha", "alpha", click.FloatRange(min=0), "Weight decay, not on the biases."
)
@_network_option(
    "--epochs",
    "max_iter",
    POSITIVE,
    "At most so many; the validation part may stop training earlier.",
)
@_network_option(
    "--patience",
    "n_iter_no_change",
    POSITIVE,
    "Epochs without a better validation perplexity before stopping.",
)
@_network_option(
    "--batch-size",
    "batch_size",
    POSITIVE,
    "Examples an update; 1 is the paper's algorithm.",
)
@_network_option("--jobs", "n_jobs", int, "Threads; -1 is all cores.  [default: 1]")
@_network_option(
    "--parallel",
    "parallel",
    click.Choice(["rows", "async", "locked"]),
    "What threads share: output rows, or examples.",
)
@_network_option(
    "--precision",
    "precision",
    click.Choice(["float32", "float64"]),
    "Arithmetic of the network.",
)
@click.option(
    "--seed", "random_state", type=click.IntRange(min=0), default=0, help="Random seed."
)
@click.option(
    "--ngram-order", type=click.IntRange(min=2), default=5, help="Kneser-Ney's n."
)
@click.option(
    "--mpi",
    is_flag=True,
    help="Train the network over the processes of mpiexec (see nplm.mpi).",
)
@click.option(
    "--json",
    "json_path",
    type=click.Path(path_type=Path),
    callback=_writable_file,
    help="Also write the results as data to this file.",
)
@click.option(
    "--output",
    "folder",
    type=click.Path(path_type=Path),
    callback=_writable_folder,
    help="Save the trained models (joblib) and the words to this folder.",
)
@click.pass_context
def compare_command(
    ctx: click.Context,
    corpus_name: str,
    lines: bool,
    min_count: int,
    ngram_order: int,
    mpi: bool,
    json_path: Path | None,
    folder: Path | None,
    **parameters: Any,
) -> None:
    """Train the paper's models on a corpus and set them side by side.

    An interpolated trigram, modified Kneser-Ney, the neural model, and the neural
    model mixed with the trigram at 0.5 see the same windows of text. The table
    that ends it is like the paper's Table 1: perplexity of the training,
    validation and test parts (all tokens count, <unk> too), parameters, and
    seconds of training. The network's defaults are the paper's MLP9.

    Ctrl-C ends it, and keeps and reports what was trained. With --mpi it cannot,
    for mpiexec then kills all processes: each model is reported, and the files
    are written, as soon as it is trained.

    \b
    Examples:
      nplm compare
      nplm compare --corpus brown --hidden 50 --embedding 60 --direct --jobs -1
      nplm compare --corpus novels/ --epochs 5 --json result.json --output models
      mpiexec -n 4 python -m mpi4py -m nplm compare --corpus brown --mpi
    """  # noqa: D301  (click reads the control character)
    if parameters["n_hidden"] == 0 and not parameters["direct"]:
        raise click.UsageError(
            "--hidden 0 leaves no path from the context to the output: add --direct."
        )
    job = _mpi(ctx) if mpi else _Job()
    if job.quiet:
        json_path = folder = None
    console = Console(quiet=job.quiet)
    status = Console(stderr=True, quiet=job.quiet)
    network = NeuralLM(**parameters)
    try:
        network._check_parameters()
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    results: list[tuple[Row, LanguageModel]] = []
    corpus: Bunch | None = None
    exit_code, failure = 0, None

    def train() -> None:
        with _Bars(status) as bars:
            for result in compare(
                corpus, network, ngram_order=ngram_order, progress=bars.show,
                fit_network=job.fit_network,
            ):  # fmt: skip
                results.append(result)
                if mpi:
                    status.print(_line(result[0]), markup=False)
                    write(report("The comparison did not end."))

    def models() -> dict[str, LanguageModel]:
        done = {row.model: model for row, model in results}
        if exit_code == INTERRUPTED and hasattr(network, "C_"):
            done["NeuralLM"] = network
        return done

    def report(failure: str | None) -> dict[str, Any]:
        return _report(corpus_name, corpus, results, parameters, models(), failure)

    def write(report: dict[str, Any]) -> bool:
        try:
            if folder:
                _save(folder, models(), corpus)
            if json_path:
                text = json.dumps(report, indent=2) + "\n"
                json_path.write_text(text, encoding="utf-8")
        except OSError as error:
            status.print(f"Not all was written: {error}.", style="red", markup=False)
            return False
        return True

    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        try:
            with job.guard():
                load = partial(_load, ctx, corpus_name, lines, min_count)
                corpus = job.together(load)
                _print_corpus(console, corpus_name, corpus)
                job.together(train)
        except DivergenceError as error:
            exit_code, failure = 1, f"The training of the network diverged. {error}"
        except KeyboardInterrupt:
            if corpus is None:
                status.print("Interrupted before anything was trained.", style="red")
                ctx.exit(INTERRUPTED)
            exit_code, failure = INTERRUPTED, "Interrupted."
        except (OSError, ImportError, ValueError) as error:
            if job.quiet:
                ctx.exit()  # the first process says it
            if corpus is None or not results:
                raise click.ClickException(str(error)) from error
            exit_code, failure = 1, str(error)

    _print_table(console, [row for row, _ in results])
    figures = report(failure)
    if corpus_name == "python-docs":
        console.print(REPETITIVE)
    _print_examples(console, figures)
    for note in dict.fromkeys(str(note.message) for note in notes):
        status.print(f"Note: {note}", style="yellow", markup=False)
    if failure:
        status.print(failure, style="red", markup=False)
    if not write(figures):
        exit_code = exit_code or 1
    else:
        if folder:
            status.print(f"Saved to {folder}: {', '.join(models())}", markup=False)
        if json_path:
            status.print(f"Results: {json_path}", markup=False)
    ctx.exit(0 if job.quiet else exit_code)


class _Job(NamedTuple):
    """How the processes of mpiexec do things together; or this one alone."""

    fit_network: Callable[..., Any] = NeuralLM.fit
    quiet: bool = False  # another process reports
    together: Callable[[Callable[[], Any]], Any] = lambda work: work()
    guard: Callable[[], AbstractContextManager[Any]] = nullcontext


def _mpi(ctx: click.Context) -> _Job:
    try:
        from nplm import mpi
        from nplm.parallel.agreement import Ranks
    except ImportError as error:
        raise click.ClickException(str(error)) from error
    if ctx.params["n_jobs"] not in (None, 1):
        raise click.UsageError(
            "--mpi trains on one thread a process: leave --jobs out."
        )
    ranks = Ranks()
    return _Job(mpi.fit, ranks.rank > 0, ranks.all_or_none, ranks.guard)


def _load(ctx: click.Context, name: str, lines: bool, min_count: int) -> Bunch:
    if name not in CORPORA:
        if not Path(name).exists():
            raise ValueError(
                f"--corpus {name}: there is no such file or folder, and the named "
                f"corpora are {', '.join(CORPORA)}."
            )
        return load_text(name, lines=lines, min_count=min_count)
    for option in ("lines", "min_count"):
        if ctx.get_parameter_source(option) != click.core.ParameterSource.DEFAULT:
            raise click.UsageError(
                f"--{option.replace('_', '-')} is for --corpus PATH; {name} has its "
                "own protocol."
            )
    return CORPORA[name]()


class _Bars(Progress):
    """A bar for each stage, with an estimate of the time left."""

    def __init__(self, console: Console) -> None:
        super().__init__(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            transient=True,
        )
        self._stage = ""

    def show(self, stage: str, done: int, total: int, note: str) -> None:
        """Be the `progress` of `nplm.experiments.compare.compare`."""
        if stage != self._stage:
            for task in self.task_ids:
                self.remove_task(task)
            self._stage = stage
            self.add_task(stage, total=None, note="")
        self.update(self.task_ids[0], completed=done, total=total or None, note=note)


def _print_corpus(console: Console, name: str, corpus: Bunch) -> None:
    console.print(f"[bold]{name}[/bold]", highlight=False)
    console.print(corpus.DESCR, markup=False, highlight=False)


def _line(row: Row) -> str:
    return (
        f"{row.model}: perplexity {row.train:.1f} (training), {row.valid:.1f} "
        f"(validation), {row.test:.1f} (test), {row.seconds:.1f} s"
    )


def _print_table(console: Console, rows: list[Row]) -> None:
    # Without frames and padding it fits a terminal of 80 columns.
    table = Table(title="Perplexity", box=SIMPLE_HEAD, padding=0, show_edge=False)
    table.add_column("model", no_wrap=True)
    for column in ("n", "h", "m", "direct", "train", "valid", "test"):
        table.add_column(column, justify="right")
    table.add_column("parameters", justify="right")
    table.add_column("seconds", justify="right")
    for row in rows:
        table.add_row(
            row.model,
            str(row.n),
            *("" if value is None else str(value) for value in (row.h, row.m)),
            {None: "", True: "yes", False: "no"}[row.direct],
            *(f"{perplexity:.1f}" for perplexity in (row.train, row.valid, row.test)),
            f"{row.parameters:,}",
            f"{row.seconds:.1f}",
        )
    console.print(table)


def _report(
    name: str,
    corpus: Bunch,
    results: list[tuple[Row, LanguageModel]],
    parameters: dict[str, Any],
    models: dict[str, LanguageModel],
    failure: str | None,
) -> dict[str, Any]:
    """All that is shown, as data that JSON can hold."""
    network = models.get("NeuralLM")
    return {
        "corpus": name,
        "n_words": corpus.n_words,
        "tokens": {part: len(corpus[part]) for part in ("train", "valid", "test")},
        "oov_rate": oov_rates(corpus),
        "rows": [_finite(asdict(row)) for row, _ in results],
        "parameters": parameters,
        "next_words": [] if network is None else suggestions(network, corpus),
        "nearest_words": (
            {} if network is None else nearest_words(network.C_, corpus.words)
        ),
        "nplm": nplm.__version__,
        "failure": failure,
    }


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinity: a perplexity of that size is null."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in row.items()
    }


def _print_examples(console: Console, report: dict[str, Any]) -> None:
    rates = (f"{rate:.2%} of {part}" for part, rate in report["oov_rate"].items())
    console.print(f"\nOut of vocabulary (<unk>): {', '.join(rates)}.", markup=False)
    if not report["nearest_words"]:
        return
    console.print("\n[bold]Next words[/bold], by the neural model")
    for example in report["next_words"]:
        words = ", ".join(f"{word} {p:.2f}" for word, p in example["suggestions"])
        line = f"  {' '.join(example['context'])} ({example['next']}): {words}"
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print("\n[bold]Nearest words[/bold], by the cosine of their features")
    for word, nearest in report["nearest_words"].items():
        line = f"  {word}: {', '.join(nearest)}"
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _save(folder: Path, models: dict[str, LanguageModel], corpus: Bunch) -> None:
    for name, model in models.items():
        joblib.dump(model, folder / f"{name}.joblib")
    joblib.dump(corpus.vocabulary, folder / "vocabulary.joblib")
    # The word of id i is on line i + 1.
    words = "".join(f"{word}\n" for word in corpus.words)
    (folder / "words.txt").write_text(words, encoding="utf-8")
