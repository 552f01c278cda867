"""``nplm compare``: the paper's models on a corpus, side by side."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import click
from rich.console import Console

import nplm
from nplm import DivergenceError, NeuralLM
from nplm.base.estimators import LanguageModel
from nplm.base.progress.bars import time_in_words
from nplm.cli._bars import stages
from nplm.cli._jobs import Job, mpi_job
from nplm.cli._messages import in_options
from nplm.cli._options import (
    Settings,
    network_options,
    network_settings,
)
from nplm.cli._outputs import (
    INTERRUPTED,
    refuse_to_replace,
    writable_file,
    writable_folder,
)
from nplm.cli._tally import warning_of_unknown
from nplm.cli._values import POSITIVE
from nplm.cli.commands.paper.corpora import load_corpus
from nplm.cli.commands.paper.tables import (
    one_line,
    print_corpus,
    print_examples,
    print_table,
)
from nplm.datasets import Corpus
from nplm.experiments import (
    QUICK,
    Row,
    compare,
    conclusion,
    expected_seconds,
    spelling_of,
)
from nplm.experiments.comparison import NETWORK
from nplm.inspection import nearest_words, suggestions
from nplm.models.training.parallel.threads import n_threads

__all__ = ["compare_command"]

# Errors of a corpus, a parameter or a full disk: reported without a traceback.
EXPECTED = (OSError, ImportError, ValueError)
# What rows of the paper's tables have beside those of a comparison.
OF_THE_PAPER = ("c", "mix", "name")


@click.command("compare", context_settings={"show_default": True})
@click.option(
    "--corpus",
    "corpus_name",
    default="python-docs",
    metavar="[python-docs|brown|ptb|PATH]",
    help="Text to train on: python-docs is on every machine, brown and ptb are "
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
    help="Rarer words of PATH are <unk>. Perplexities of different vocabularies cannot "
    "be compared.",
)
@network_options(**QUICK, n_jobs=-1)
@click.option(
    "--distant",
    "n_distant",
    type=click.IntRange(min=0),
    default=QUICK["n_distant"],
    help="Nearest words whose averaged features the network sees too; 0 is the network "
    "of the paper.",
)
@click.option(
    "--tied/--no-tied",
    "output__tied",
    default=QUICK["output__tied"],
    help="The features of the words are also the weights of their output units.",
)
@click.option(
    "--spelling/--no-spelling",
    default=True,
    help="Words of similar spelling share features in the network.",
)
@click.option(
    "--ngram-order", type=click.IntRange(min=2), default=5, help="The n of Kneser-Ney."
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
    callback=writable_file,
    help="Also write the results as data to this file.",
)
@click.option(
    "--output",
    "folder",
    type=click.Path(path_type=Path),
    callback=writable_folder,
    help="Save the trained models (for nplm.load) and the words to this folder.",
)
@click.pass_context
def compare_command(
    ctx: click.Context,
    /,
    corpus_name: str,
    lines: bool,
    min_count: int,
    spelling: bool,
    ngram_order: int,
    mpi: bool,
    json_path: Path | None,
    folder: Path | None,
    **parameters: Any,
) -> None:
    """Train the paper's models on a corpus, side by side.

    An interpolated trigram, modified Kneser-Ney, n-grams of word classes, and the
    neural model see the same windows of text; then the neural model is mixed with
    the trigram (at 0.5, as in the paper), with Kneser-Ney, and with all of them.
    The table at the end is like the paper's Table 1: perplexity of the training,
    validation and test parts (all tokens count, <unk> too; of the training part at
    most 50,000), parameters, and seconds of training. The network is small and trains
    on noise samples, in less than a minute of two cores; it also knows the spelling of
    the words and averages of distant ones. nplm reproduce trains the networks of the
    paper. All cores are used unless --jobs says otherwise, and the command says first
    how long it will take.

    Ctrl-C ends the comparison, and keeps and reports the models trained so far. With
    --mpi it cannot, because mpiexec kills all processes: the command reports each
    model, and writes the files, as soon as it is trained.

    \b
    Examples:
      nplm compare
      nplm compare --corpus brown --hidden 200 --dropout 0.2
      nplm compare --corpus novels/ --epochs 5 --json result.json --output models
      mpiexec -n 4 python -m mpi4py -m nplm compare --corpus brown --mpi
    """  # noqa: D301  (click reads the control character)
    if json_path is not None:
        refuse_to_replace(json_path, corpus_name)
    jobs = {} if mpi else {"n_jobs": -1}  # a process of mpiexec is one thread
    settings = network_settings(ctx, parameters, **QUICK, **jobs)
    network = _network(settings)
    job = mpi_job(settings["n_jobs"]) if mpi else Job()
    files = _Files() if job.quiet else _Files(json_path, folder)
    console = Console(quiet=job.quiet)
    status = Console(stderr=True, quiet=job.quiet)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        corpus = _load(
            lambda: load_corpus(ctx, corpus_name, lines, min_count), job, status
        )
        print_corpus(console, corpus_name, corpus)
        if spelling:
            network.set_params(features__word_features=spelling_of(corpus))
        run = _Run(corpus_name, corpus, settings, network, spelling)
        # Under mpiexec an interrupt kills: what is trained is kept at once.
        _train(run, job, status, ngram_order, files if mpi else None)
    report = run.report(run.failure)
    _show(run, report, console)
    _warn(run, report, dict.fromkeys(str(note.message) for note in notes), status)
    if files.write(run, report, status):
        files.name_them(run, status)
    else:
        run.exit_code = run.exit_code or 1
    ctx.exit(0 if job.quiet else run.exit_code)


def _show(run: _Run, report: dict[str, Any], console: Console) -> None:
    """Print the table, and what the network has learned."""
    rows = [row for row, _ in run.results]
    print_table(console, rows)
    # What the columns of the table do not tell.
    n_distant = run.network.n_distant
    seen = [f"averages of the last {n_distant} words"] if n_distant else []
    seen += ["the spelling of words"] if run.spelling else []
    if seen:
        line = f"The network also sees {' and '.join(seen)}."
        console.print(line, highlight=False)
    console.print(conclusion(rows), highlight=False)
    print_examples(console, report)


def _warn(
    run: _Run, report: dict[str, Any], notes: Iterable[str], status: Console
) -> None:
    """Print warnings, and what ended the comparison too early."""
    warning = warning_of_unknown(max(report["oov_rate"].values()))
    if warning:
        status.print(f"Warning: {warning}", style="red", markup=False)
    for note in notes:
        status.print(f"Note: {in_options(note)}", style="yellow", markup=False)
    if run.failure:
        status.print(run.failure, style="red", markup=False)


@dataclass
class _Run:
    """The state of a comparison: the models trained so far, and how it ended."""

    corpus_name: str
    corpus: Corpus
    settings: Settings
    network: NeuralLM
    spelling: bool
    results: list[tuple[Row, LanguageModel]] = field(default_factory=list)
    exit_code: int = 0
    failure: str | None = None

    def end(self, exit_code: int, failure: str) -> None:
        self.exit_code, self.failure = exit_code, failure

    def models(self) -> dict[str, LanguageModel]:
        """Return the trained models by name, with a network that was interrupted."""
        done = {row.model: model for row, model in self.results}
        if self.exit_code == INTERRUPTED and hasattr(self.network, "C_"):
            done[NETWORK] = self.network
        return done

    def report(self, failure: str | None) -> dict[str, Any]:
        """Return all results, as data for JSON."""
        corpus, network = self.corpus, self.models().get(NETWORK)
        return {
            "corpus": self.corpus_name,
            "n_words": corpus.n_words,
            "tokens": {part: len(corpus[part]) for part in ("train", "valid", "test")},
            "oov_rate": corpus.oov_rates(),
            "rows": [_as_data(row) for row, _ in self.results],
            "parameters": self.settings,
            "spelling": self.spelling,
            "next_words": [] if network is None else suggestions(network, corpus),
            "nearest_words": (
                {} if network is None else nearest_words(network.C_, corpus.words)
            ),
            "nplm": nplm.__version__,
            "failure": failure,
        }


class _Files(NamedTuple):
    """The files for the results, if any."""

    json_path: Path | None = None
    folder: Path | None = None

    def write(self, run: _Run, report: dict[str, Any], status: Console) -> bool:
        """Write the files; report an error and return False if that fails."""
        try:
            if self.folder:
                self._save_models(run, self.folder)
            if self.json_path:
                text = json.dumps(report, indent=2) + "\n"
                self.json_path.write_text(text, encoding="utf-8")
        except OSError as error:
            status.print(
                f"Some results could not be written: {error}.",
                style="red",
                markup=False,
            )
            return False
        return True

    def _save_models(self, run: _Run, folder: Path) -> None:
        for name, model in run.models().items():
            nplm.save(model, folder / name.replace(" ", ""))
        nplm.save(run.corpus.vocabulary, folder / "vocabulary")
        # The word of id i is on line i + 1.
        words = "".join(f"{word}\n" for word in run.corpus.words)
        (folder / "words.txt").write_text(words, encoding="utf-8")

    def name_them(self, run: _Run, status: Console) -> None:
        if self.folder:
            names = ", ".join(name.replace(" ", "") for name in run.models())
            status.print(f"Saved to {self.folder}: {names}", markup=False)
        if self.json_path:
            status.print(f"Results: {self.json_path}", markup=False)


def _network(settings: Settings) -> NeuralLM:
    """Make the network to train, and check its parameters."""
    network = NeuralLM()
    try:
        network.set_params(**settings).check_settings()
    except ValueError as error:
        raise click.UsageError(in_options(str(error))) from error
    return network


def _load(load: Callable[[], Corpus], job: Job, status: Console) -> Corpus:
    try:
        with job.guard():
            return job.together(load)
    except KeyboardInterrupt:
        status.print("Interrupted before anything was trained.", style="red")
        raise click.exceptions.Exit(INTERRUPTED) from None
    except EXPECTED as error:
        raise _refusal(job, error) from error


def _train(
    run: _Run, job: Job, status: Console, ngram_order: int, files: _Files | None
) -> None:
    """Train the models one by one; note in `run` why training ended early.

    `files` are written after each model, in several processes.
    """

    def train() -> None:
        if files is None:  # a measurement here does not tell the time of processes
            seconds = expected_seconds(run.corpus, run.network, ngram_order=ngram_order)
            n_jobs = n_threads(run.network.n_jobs)
            cores = "one core" if n_jobs == 1 else f"{n_jobs} cores"
            time = time_in_words(max(seconds, 10))
            status.print(
                f"The models take about {time} on {cores} of this machine.",
                highlight=False,
            )
        with stages(status) as bars:
            for result in compare(
                run.corpus, run.network, ngram_order=ngram_order,
                progress=bars.show, fit_network=job.fit_network,
            ):  # fmt: skip
                run.results.append(result)
                if files is not None:
                    status.print(one_line(result[0]), markup=False)
                    report = run.report("The comparison did not end.")
                    files.write(run, report, status)

    try:
        with job.guard():
            job.together(train)
    except DivergenceError as error:
        run.end(1, f"The training of the network diverged. {in_options(str(error))}")
    except KeyboardInterrupt:
        run.end(INTERRUPTED, "Interrupted.")
    except EXPECTED as error:
        if job.quiet or not run.results:
            raise _refusal(job, error) from error
        run.end(1, in_options(str(error)))


def _refusal(job: Job, error: Exception) -> Exception:
    """Return the exception that ends the command; only one process reports why."""
    if job.quiet:
        return click.exceptions.Exit(0)
    return click.ClickException(in_options(str(error)))


def _as_data(row: Row) -> dict[str, Any]:
    """Return a row for JSON, which has null for infinity and NaN."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in asdict(row).items()
        if key not in OF_THE_PAPER
    }
