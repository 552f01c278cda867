"""Tables and examples for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from nplm.datasets import Corpus
from nplm.experiments import Row, figures
from nplm.experiments.fits import Results

WIDEST = 1000  # columns


def print_corpus(console: Console, name: str, corpus: Corpus) -> None:
    """Print the name of a corpus, and what it is."""
    console.print(f"[bold]{name}[/bold]", highlight=False)
    console.print(corpus.DESCR, markup=False, highlight=False)


def one_line(row: Row) -> str:
    """Return a line about a row of a comparison."""
    seconds = "" if row.seconds is None else f", {row.seconds:.1f} s"
    return (
        f"{_name(row)}: perplexity {row.train:.1f} (training), {row.valid:.1f} "
        f"(validation), {row.test:.1f} (test){seconds}"
    )


def one_line_of(results: Results, name: str) -> str:
    """Return a line about a row that is done, from `nplm.experiments.results_of`."""
    [ours] = [row["ours"] for row in results["rows"] if row["name"] == name]
    [seconds] = [fit["seconds"] for fit in results["fits"] if fit["fit"] == name]
    return (
        f"{name}: perplexity {ours['valid']:.1f} (validation), {ours['test']:.1f} "
        f"(test), {seconds:.1f} s"
    )


def print_table(console: Console, rows: Sequence[Row]) -> None:
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
    _print(console, "Perplexity", [*header, "parameters", "seconds"], cells)


def print_paper_table(console: Console, results: Results) -> None:
    """Print the paper's figures and ours, from `nplm.experiments.results_of`."""
    header, *rows = figures(results)
    first = header.index("train, paper")
    columns = [
        "ours" if name.endswith("ours") else name.replace(",", ":")
        for name in header[first:]
    ]
    minutes = {fit["fit"]: fit["seconds"] / 60 for fit in results["fits"]}
    cells = [
        [name, *values[first - 1 :], f"{minutes[name]:.1f}" if name in minutes else ""]
        for name, *values in rows
    ]
    _print(console, results["title"], [header[0], *columns, "minutes"], cells)
    total = sum(minutes.values())
    console.print(
        f"{total:.0f} minutes in all; a row without minutes shares the fit of another.",
        highlight=False,
    )


def _name(row: Row) -> str:
    return f"{row.model} (interrupted)" if row.interrupted else row.model


def _print(
    console: Console, title: str, header: Sequence[str], rows: Iterable[Sequence[str]]
) -> None:
    """Print a table at its full width, also where that is not a terminal's."""
    # Without frames and padding it fits a terminal of 80 columns.
    table = Table(title=title, box=SIMPLE_HEAD, padding=0, show_edge=False)
    for i, column in enumerate(header):
        table.add_column(column, justify="right" if i else "left", no_wrap=not i)
    for row in rows:
        table.add_row(*row)
    options = console.options.update(max_width=WIDEST)
    width, full = console.width, Measurement.get(console, options, table).maximum
    console.width = max(width, full)
    console.print(table)
    console.width = width


def print_examples(console: Console, report: Results) -> None:
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
