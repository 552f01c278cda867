"""Reports of a table: Markdown, text, and a picture."""

from __future__ import annotations

import os

from nplm.datasets.corpus import PARTS
from nplm.experiments.fits import Results
from nplm.experiments.paper_tables import DIRECT, FINDINGS, INDIRECT
from nplm.inspection._display import check_matplotlib

SHAPE = ("n", "c", "h", "m", "direct", "mix")
Table = list[list[str]]


def as_markdown(results: Results) -> str:
    """Write a table in Markdown: the paper's perplexities beside ours.

    Parameters
    ----------
    results : dict
        As `results_of` returns them.

    Returns
    -------
    text : str
        The table, which of the paper's findings hold, and the time of each fit.
    """
    lines = [f"# {results['title']}", "", *_markdown(figures(results)), ""]
    lines += [*(f"- {sentence}" for sentence in findings(results)), ""]
    return "\n".join([*lines, *_markdown(times(results))]) + "\n"


def figures(results: Results) -> Table:
    """Return the paper's perplexities beside ours, as text.

    Parameters
    ----------
    results : dict
        As `results_of` returns them.

    Returns
    -------
    table : list of list of str
        The header, and a list for each row; "" where there is no value.
    """
    pairs = [f"{part}, {source}" for part in PARTS for source in ("paper", "ours")]
    table = [["row", *SHAPE, *pairs]]
    for row in results["rows"]:
        ours = row["ours"] or {}
        values = [row[key] for key in ("name", *SHAPE)]
        for part in PARTS:
            values += [row["paper"][part], ours.get(part)]
        table.append([_shown(value) for value in values])
    return table


def times(results: Results) -> Table:
    """Return the time and the settings of each fit, as text.

    Parameters
    ----------
    results : dict
        As `results_of` returns them.

    Returns
    -------
    table : list of list of str
        The header, and a list for each fit.
    """
    table = [["fit", "minutes", "CPU minutes", "threads", "epochs", "settings"]]
    for fit in results["fits"]:
        settings = ", ".join(f"{key}={value}" for key, value in fit["settings"].items())
        minutes = [f"{fit[name] / 60:.1f}" for name in ("seconds", "CPU seconds")]
        counts = [_shown(n) for n in (fit["threads"], fit["facts"].get("epochs"))]
        table.append([fit["fit"], *minutes, *counts, settings])
    return table


def findings(results: Results) -> list[str]:
    """Tell which of the paper's findings hold for the test part.

    Parameters
    ----------
    results : dict
        As `results_of` returns them.

    Returns
    -------
    sentences : list of str
        One for each finding whose rows are both done. The last compares the network
        and the n-gram model with the lowest validation perplexities.
    """
    done = {row["name"]: row for row in results["rows"] if row["ours"] is not None}
    sentences = []
    for finding, low, high in FINDINGS:
        if low in done and high in done:
            ours = [done[name]["ours"]["test"] for name in (low, high)]
            papers = [done[name]["paper"]["test"] for name in (low, high)]
            holds = "yes" if ours[0] < ours[1] else "no"
            sentences.append(
                f"{finding}: {holds}, {low} {ours[0]:.1f} and {high} {ours[1]:.1f} "
                f"(the paper {papers[0]} and {papers[1]})."
            )
    curves = {fit["fit"]: fit["facts"].get("valid by epoch") for fit in results["fits"]}
    if DIRECT in curves and INDIRECT in curves:
        first = [curves[name][0] for name in (DIRECT, INDIRECT)]
        holds = "yes" if first[0] < first[1] else "no"
        sentences.append(
            f"Direct connections learn faster: {holds}, validation after one epoch "
            f"{first[0]:.1f} ({DIRECT}) and {first[1]:.1f} ({INDIRECT})."
        )
    networks = [row for row in done.values() if row["h"] is not None]
    ngrams = [row for row in done.values() if row["h"] is None]
    if networks and ngrams:
        best = [
            min(rows, key=lambda row: float(row["ours"]["valid"]))
            for rows in (networks, ngrams)
        ]
        network, ngram = (row["ours"]["test"] for row in best)
        sentences.append(
            f"The best by validation: {best[0]['name']} {network:.1f}, of the n-gram "
            f"models {best[1]['name']} {ngram:.1f}, which is {ngram / network - 1:.1%} "
            "more."
        )
    return sentences


def draw(results: Results, path: str | os.PathLike[str]) -> None:
    """Draw the test perplexities of the paper and ours, a bar each for rows measured.

    Parameters
    ----------
    results : dict
        As `results_of` returns them.
    path : path-like
        File of the picture; its ending, such as ``.svg``, gives the format.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    OSError
        If `path` cannot be written.
    """
    check_matplotlib("draw")
    import matplotlib
    from matplotlib.figure import Figure

    rows = [row for row in results["rows"] if row["ours"]][::-1]
    figure = Figure(figsize=(7, 1.2 + 0.32 * len(rows)), layout="constrained")
    axes = figure.subplots()
    places = range(len(rows))
    for source, label, above, colour in (
        ("paper", "the paper", 0.2, "0.75"), ("ours", "nplm", -0.2, "tab:blue"),
    ):  # fmt: skip
        values = [row[source]["test"] for row in rows]
        y = [i + above for i in places]
        bars = axes.barh(y, values, 0.38, color=colour, label=label)
        axes.bar_label(bars, fmt="%.0f", padding=2, fontsize="x-small")
    axes.set_yticks(list(places), [row["name"] for row in rows])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xlabel("test perplexity")
    axes.set_title(results["title"])
    # Outside the axes, because a bar may reach into any of their corners.
    figure.legend(loc="outside lower right", ncols=2, frameon=False)
    # The same figures give the same bytes.
    metadata = {"Date": None} if os.fspath(path).endswith(".svg") else {}
    with matplotlib.rc_context({"svg.hashsalt": "nplm"}):
        figure.savefig(path, metadata=metadata)


def _markdown(table: Table) -> list[str]:
    header, *lines = table
    rule = ["---"] * len(header)
    return [f"| {' | '.join(cells)} |" for cells in (header, rule, *lines)]


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.1f}" if isinstance(value, float) else str(value)
