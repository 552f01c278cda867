"""``nplm reproduce``: the tables of the paper, row by row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from nplm.base.files.atomic_files import replacing
from nplm.cli._bars import stages
from nplm.cli._messages import report_in_options
from nplm.cli._options import command, flag, option
from nplm.cli._outputs import INTERRUPTED, writable_folder
from nplm.cli._values import threads_option
from nplm.cli.commands.paper.tables import print_table
from nplm.datasets import load_wiki
from nplm.experiments import (
    TABLES,
    as_markdown,
    draw,
    figures,
    findings,
    reproduce,
    results_of,
)
from nplm.experiments.fits import Results


@command(
    "reproduce", click.Argument(["table"], type=click.Choice(list(TABLES))),
    option("--rows", None, None,
        "Rows to measure, by name or pattern, separated by commas: MLP9,MLP1 or "
        "'class-based*'. By default all, n-grams first.",
        multiple=True, metavar="NAMES"),
    option("--folder", click.Path(path_type=Path), None,
        "Folder for results, networks and unfinished fits; by default a folder with "
        "the table's name."),
    option("--text", click.Path(exists=True, dir_okay=False, path_type=Path), None,
        "A text of your own for table2, in the form of nplm.datasets.load_wiki."),
    threads_option(1),
    option("--precision", ["float32", "bfloat16"], "float32",
        "Arithmetic of the networks; bfloat16 is faster where the processor has it."),
    flag("--as-printed",
        "Train networks with the paper's own values: one example an update, a learning "
        "rate of 1e-3, up to 20 epochs. This takes days."),
)  # fmt: skip
@click.pass_context
def reproduce_command(
    ctx: click.Context,
    /,
    table: str,
    rows: tuple[str, ...],
    folder: Path | None,
    text: Path | None,
    precision: str,
    **options: Any,
) -> None:
    """Measure a table of the paper again: table1 or table2.

    The table shows the paper's perplexities beside ours. The folder keeps the rows that
    are done. After Ctrl-C or a kill, give the same command again: it goes on from
    there. The folder also gets the table, as results.json, results.md and, if
    matplotlib is installed, results.svg. Table 1 is of Brown. Table 2 is of Wikipedia,
    or of a --text of your own, because the paper's AP News is not published.

    \b
    Examples:
      nplm reproduce table1 --jobs -1
      nplm reproduce table1 --rows "Del. Int.,Kneser-Ney back-off,MLP9"
      nplm reproduce table2 --folder runs/wiki --jobs 2
    """  # noqa: D301  (click reads the control character)
    names = [name for part in rows for name in part.split(",") if name.strip()]
    if rows and not names:
        raise click.UsageError("--rows names no row: leave it out for all of them.")
    if text is not None and table != "table2":
        raise click.UsageError(f"--text is for table2: {table} is of Brown.")
    n_fits = len(TABLES[table].fits_of(names or None))
    folder = writable_folder(folder or Path(table))
    status = Console(stderr=True)
    exit_code = 0
    options |= {"rows": names or None, "changes": {"precision": precision}}
    options["corpus"] = None if text is None else load_wiki(text)
    try:
        _measure(table, folder, n_fits, status, options)
    except KeyboardInterrupt:
        exit_code = INTERRUPTED
        status.print(
            f"Interrupted: {folder} keeps what is trained, and the same command goes "
            "on from there.",
            style="red",
            markup=False,
        )
    results = results_of(table, folder)
    _write(results, folder)
    _print_results(Console(), results)
    for sentence in findings(results):
        click.echo(sentence)
    _draw(results, folder, status)
    ctx.exit(exit_code)


def _measure(
    table: str, folder: Path, n_fits: int, status: Console, options: dict[str, Any]
) -> None:
    """Measure rows, and report each fit that is done."""
    with report_in_options(), stages(status) as bars, bars.enclosing():

        def progress(stage: str, done: float, total: float, note: str) -> None:
            if note and not total:  # how long a fit takes, before it begins
                status.print(f"{stage}: {note}", highlight=False, soft_wrap=True)
            bars.show(stage, done, total, note)

        done = reproduce(table, folder, progress=progress, **options)
        for i, (row, _) in enumerate(done, start=1):
            results = results_of(table, folder)
            _write(results, folder)
            line = f"{i} of {n_fits}: {_one_line(results, row)}"
            status.print(line, highlight=False, soft_wrap=True)


def _write(results: Results, folder: Path) -> None:
    texts = {"json": json.dumps(results, indent=1) + "\n", "md": as_markdown(results)}
    for kind, text in texts.items():
        with replacing(folder / f"results.{kind}") as file:
            file.write(text.encode())


def _draw(results: Results, folder: Path, status: Console) -> None:
    try:
        draw(results, folder / "results.svg")
    except ImportError as error:
        status.print(f"No picture was drawn. {error}", style="yellow", markup=False)


def _one_line(results: Results, name: str) -> str:
    """Return a line about a row that is done, from `nplm.experiments.results_of`."""
    [ours] = [row["ours"] for row in results["rows"] if row["name"] == name]
    [seconds] = [fit["seconds"] for fit in results["fits"] if fit["fit"] == name]
    return (
        f"{name}: perplexity {ours['valid']:.1f} (validation), {ours['test']:.1f} "
        f"(test), {seconds:.1f} s"
    )


def _print_results(console: Console, results: Results) -> None:
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
    print_table(console, results["title"], [header[0], *columns, "minutes"], cells)
    total = sum(minutes.values())
    console.print(
        f"{total:.0f} minutes in all; a row without minutes shares the fit of another.",
        highlight=False,
    )
