"""How long until a network is better than the paper's best network and mixture?

Trains networks of benchmarks/common/ablations.py on Brown, each anew for one epoch, two
and more, for their steps fall to 0 at the end of what was asked for; seconds are those
of the whole `fit`, on two threads ("async"), and the test part is scored exactly and
after it. Nothing is chosen by it: all rows are shown. Each fit is a file in --folder,
so that the table can be made in several runs:

    python benchmarks/networks/time_to_quality.py --folder runs
    python benchmarks/networks/time_to_quality.py --folder runs --page

--page writes docs/measured/quality.inc and quality.svg.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

from common.ablations import network
from common.table import Rows, file_name, kept, list_table, parser, report
from nplm.datasets import Corpus, fetch_brown

PAGE = Path(__file__).parents[2] / "docs" / "measured" / "quality.inc"
EPOCHS = {"untied": (1, 2, 4), "window": (1, 2, 3)}
N_JOBS = 2
# Table 1's best network and best mixture, on the paper's edition of Brown.
PAPER = {"the paper's best network": 268.0, "the paper's best mixture": 252.0}


def measure(corpus: Corpus, name: str, epochs: int) -> dict[str, Any]:
    """One fit, and the perplexity of the test part after it."""
    lm = network(corpus, name, max_iter=epochs, n_jobs=N_JOBS, parallel="async")
    train, _, test = corpus.windows(lm.order - 1)
    began, began_cpu = time.perf_counter(), time.process_time()
    lm.fit(*train)
    seconds, cpu = time.perf_counter() - began, time.process_time() - began_cpu
    return {
        "network": name, "epochs": epochs, "seconds": seconds, "CPU s": cpu,
        "test": lm.perplexity(*test),
    }  # fmt: skip


def page(rows: Rows) -> str:
    """The table, and the first network below each of the paper's figures."""
    lines = [
        [row["network"], f"{row['epochs']}", f"{row['seconds']:.0f}",
         f"{row['CPU s']:.0f}", f"{row['test']:.1f}"]
        for row in rows
    ]  # fmt: skip
    header = ["network", "epochs", "seconds", "CPU seconds", "test perplexity"]
    found = []
    for whose, perplexity in PAPER.items():
        below = [row for row in rows if row["test"] <= perplexity]
        first = min(below, key=lambda row: row["seconds"], default=None)
        when = f"{first['seconds']:.0f} seconds" if first else "none here"
        found.append(f"Below {perplexity:.0f}, {whose}: {when}.")
    machines = [run for row in rows for run in row["machines"]]
    cpus = " and an ".join(sorted({run["cpu"] for run in machines}))
    load = max(run["load"] for run in machines)
    about = (
        f"Two threads of an {cpus}; the load before a fit was at most {load:.1f}. "
        + " ".join(found)
    )
    return f"{about}\n\n" + list_table("", header, lines)


def draw(path: Path, rows: Rows) -> None:
    """Test perplexity by seconds, a line a network."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6, 3.8), layout="constrained")
    for name in EPOCHS:
        same = [row for row in rows if row["network"] == name]
        axis.plot(
            [row["seconds"] for row in same], [row["test"] for row in same],
            "o-", label=name,
        )  # fmt: skip
    for whose, perplexity in PAPER.items():
        axis.axhline(perplexity, color="gray", linestyle="--", linewidth=1)
        axis.annotate(whose, (0, perplexity), fontsize=8, va="bottom")
    axis.set(xlabel="seconds of training", ylabel="perplexity of the test part")
    axis.set_xlim(left=0)
    axis.legend()
    figure.savefig(path)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("networks", nargs="*", help=", ".join(EPOCHS))
    options.add_argument("--folder", type=Path, required=True, help="a file a fit")
    options.add_argument("--page", action="store_true", help=f"write {PAGE.name}")
    args = options.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    corpus = fetch_brown()
    rows = [
        kept(
            args.folder, file_name(f"{name}, {epochs}"),
            lambda name=name, epochs=epochs: measure(corpus, name, epochs),
        )
        for name in args.networks or EPOCHS
        for epochs in EPOCHS[name]
    ]  # fmt: skip
    report("Time to quality", rows, args.json)
    if args.page:
        PAGE.write_text(page(rows))
        draw(PAGE.with_suffix(".svg"), rows)


if __name__ == "__main__":
    main()
