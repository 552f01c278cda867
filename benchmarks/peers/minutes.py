r"""What minutes give: `AutoLM` without settings, beside an LSTM of PyTorch.

A text and a number of minutes are all that `AutoLM` gets, on one core; the LSTM's
settings were picked by hand. Rows are measured side by side, one a core of --cores, and
kept in files of --folder, so that the page can be made in several calls:

    python benchmarks/peers/minutes.py 1 3 --folder runs --cores 8 --unseen texts
    python benchmarks/peers/minutes.py --folder runs --page

--unseen is the folder of the files that unseen_texts.py reads. A search by hand beside
the rules of `AutoLM` sets some of the choices, in another folder:

    python benchmarks/peers/minutes.py 1 --folder search --unseen texts --models door \
        --texts source --set n_hidden=128 embedding_dim=64
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")
sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

from joblib import Parallel, delayed

from common.page import cpus, list_table, picture
from common.table import Rows, kept, parser, report, settings_of
from nplm.datasets import Corpus
from peers import run, unseen_texts
from peers.run_page import without_paths

DOCS = Path(__file__).parents[2] / "docs" / "measured"
HELD_OUT = 40_000  # tokens of a held-out part, at most; of the Penn Treebank all
TITLES = {
    "ptb": "Penn Treebank, 0.9M", "brown": "Brown, 0.8M", "wiki-2M": "Wikipedia, 2M",
    "wiki-14M": "Wikipedia, 14M", "source": "Python source, 1.5M",
    "portuguese": "Portuguese news, 1.1M", "messages": "short messages, 0.4M",
}  # fmt: skip
MODELS = ("door", "door-network", "lstm")
# What the page shows of a text and a number of minutes: the model, and its figure.
COLUMNS = {
    "AutoLM": ("door", "test"), "its network alone": ("door-network", "test"),
    "LSTM": ("lstm", "test"), "LSTM with Kneser-Ney": ("lstm", "mixed"),
}  # fmt: skip
# Dropout after three minutes, and settings after ten.
LSTM_3 = {"brown": 0.3, "source": 0.3, "portuguese": 0.3, "messages": 0.5}
LSTM_10: dict[str, dict[str, Any]] = {
    "ptb": {"hidden": 512, "learning_rate": 4e-3, "dropout": 0.3},
    "brown": {"features": 128, "hidden": 256, "learning_rate": 8e-3, "dropout": 0.5},
    "wiki-2M": {"dropout": 0.1}, "wiki-14M": {"dropout": 0.0},
    "source": {"dropout": 0.3},
    "portuguese": {"hidden": 256, "dropout": 0.4},
    "messages": {"hidden": 256, "dropout": 0.6},
}  # fmt: skip
# Of labels, beside their dots: the offset in points, and the side.
PLACES = ((-6, 0), "right"), ((0, -9), "center"), ((6, 0), "left"), ((0, 7), "center")
UNSEEN: dict[str, Callable[[Path], Corpus]] = {
    "source": unseen_texts.source, "portuguese": unseen_texts.portuguese,
    "messages": unseen_texts.messages,
}  # fmt: skip
FIGURES = ("CPU s", "parameters", "valid", "test", "mixed", "words/s")


def lstm(text: str, minutes: float) -> dict[str, Any]:
    """Settings that were the best of two to six; after ten minutes, of one to two."""
    if minutes >= 10:
        return {"learning_rate": 6e-3, "hidden": 384} | LSTM_10[text]
    small = text in ("ptb", "brown", "messages")
    dropout = 0.1 if small else 0.0
    return {
        "features": 128, "hidden": 192 if minutes < 2 else 256, "learning_rate": 8e-3,
        "dropout": dropout if minutes < 2 else LSTM_3.get(text, dropout),
    }  # fmt: skip


def corpus_of(text: str, unseen: Path) -> Corpus:
    corpus = UNSEEN[text](unseen) if text in UNSEEN else run.TEXTS[text]()
    n = None if text == "ptb" else HELD_OUT
    return replace(corpus, valid=corpus.valid[:n], test=corpus.test[:n])


def measured(
    folder: Path, unseen: Path, pairs: list[str], text: str, model: str, minutes: float
) -> dict[str, Any]:
    def measure() -> dict[str, Any]:
        settings = lstm(text, minutes) if model == "lstm" else {}
        settings |= settings_of(pairs)
        defaults = run.SETTINGS[model]
        row = run.MODELS[model](corpus_of(text, unseen), defaults | settings, minutes)
        about = {"text": text, "model": model, "minutes": minutes, "changes": settings}
        about["tier"] = run.TIER
        return about | {name: row[name] for name in FIGURES if name in row}

    name = " ".join(["minutes", run.TIER, text, model, f"{minutes:g}", *pairs])
    return kept(folder, name, measure)


def page(rows: Rows) -> str:
    """A table of test perplexities: rows of another processor than most name it."""
    cells = []
    most = Counter(map(_processor, rows)).most_common(1)[0][0]
    for minutes in sorted({row["minutes"] for row in rows}):
        for text, processor in product(TITLES, ("Zen 4", "Xeon", "Zen 3")):
            of_it = [row for row in rows if _processor(row) == processor]
            figures = [_figure(of_it, text, minutes, name) for name in COLUMNS]
            shown = ["" if x is None else f"{x:.1f}" for x in figures]
            if any(shown):
                title = TITLES[text] + f" ({processor})" * (processor != most)
                cells.append([f"{minutes:g} min", title, *shown])
    header = ["time", "text, words", *COLUMNS]
    table = list_table("Test perplexity", header, cells)
    machines = [row["machines"][0] for row in rows]
    cores = f"On one core of an {cpus(machines)}"
    return f"{table}\n{cores}, in bfloat16; on the Zen 3 in float32.\n"


def draw(path: Path, rows: Rows) -> None:
    """A panel a number of minutes, on the same axes; a line of dots a text."""
    budgets, every = sorted({row["minutes"] for row in rows}), list(TITLES)[::-1]
    with picture(path, len(budgets), (9, 4.4), len(budgets)) as (_, axes):
        for axis, minutes in zip(axes, budgets):
            top = {}
            for i, (name, (place, side)) in enumerate(zip(COLUMNS, PLACES)):
                figures = [_figure(rows, text, minutes, name) for text in every]
                dots = [(x, y) for y, x in enumerate(figures) if x is not None]
                if not dots:
                    continue
                axis.plot(*zip(*dots), "oDsv"[i], color=f"C{i}")
                for x, y in dots:
                    axis.annotate(
                        f"{x:.0f}", (x, y), place, textcoords="offset points",
                        ha=side, va="center", fontsize="x-small", color=f"C{i}",
                    )  # fmt: skip
                if dots[-1][1] == len(every) - 1:
                    top[name] = dots[-1]
            _name(axis, top)
            axis.set(title=f"{minutes:g} min", xscale="log", xlabel="test perplexity",
                     xlim=(18, 250), ylim=(-0.5, len(every) + 1))  # fmt: skip
            axis.set_xticks([30, 50, 100, 200], ["30", "50", "100", "200"])
            axis.minorticks_off()
            axis.set_yticks(range(len(every)), [TITLES[text] for text in every])
            axis.grid(axis="y", alpha=0.3)
        for axis in axes[1:]:
            axis.tick_params(labelleft=False)


def _name(axis: Any, dots: dict[str, tuple[float, float]]) -> None:
    """Name dots of a line above them: the outer ones lower, on their outer side."""
    ordered = sorted(dots, key=lambda name: dots[name])
    for i, name in enumerate(ordered):
        left, outer = 2 * i < len(ordered), i in (0, len(ordered) - 1)
        column = list(COLUMNS).index(name)
        axis.annotate(
            name.replace("work ", "work\n").replace("LSTM ", "LSTM\n"), dots[name],
            (-3 if left else 3, 18 if outer else 34), textcoords="offset points",
            ha="right" if left else "left", fontsize="x-small", color=f"C{column}",
            arrowprops={
                "arrowstyle": "-", "color": f"C{column}", "lw": 0.7, "shrinkA": 0,
                "shrinkB": 13 if PLACES[column][0][1] > 0 else 4, "relpos": (left, 0),
            },
        )  # fmt: skip


def _processor(row: dict[str, Any]) -> str:
    if row.get("tier") == "avx2":
        return "Zen 3"
    return "Xeon" if "Xeon" in row["machines"][0]["cpu"] else "Zen 4"


def _figure(rows: Rows, text: str, minutes: float, column: str) -> float | None:
    """Return the figure of the best run by the validation part."""
    model, figure = COLUMNS[column]
    same = {"text": text, "model": model, "minutes": minutes}.items()
    runs = [row for row in rows if same <= row.items()]
    return min(runs, key=lambda row: row["valid"])[figure] if runs else None


def main() -> None:
    options = parser(__doc__)
    options.add_argument("minutes", nargs="*", type=float)
    options.add_argument("--texts", nargs="*", choices=list(TITLES))
    options.add_argument("--models", nargs="*", choices=list(MODELS))
    options.add_argument("--folder", type=Path, required=True, help="a file a run")
    options.add_argument("--unseen", type=Path, default=Path())
    options.add_argument("--cores", type=int, default=1)
    options.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    options.add_argument("--page", action="store_true", help="write docs/measured")
    args = options.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    jobs = [
        (text, model, minutes) for minutes in sorted(args.minutes, reverse=True)
        for text in args.texts or TITLES for model in args.models or MODELS
    ]  # fmt: skip
    one = delayed(partial(measured, args.folder, args.unseen, args.set))
    rows = Parallel(args.cores)(one(*job) for job in jobs)
    if rows:
        report("Minutes", [row | {"changes": str(row["changes"])} for row in rows],
               args.json)  # fmt: skip
    if args.page:
        paths = sorted(args.folder.glob("minutes*"))
        rows = [without_paths(json.loads(path.read_text())) for path in paths]
        lines = ",\n".join(json.dumps(row) for row in rows)
        (DOCS / "minutes.json").write_text(f"[\n{lines}\n]\n")
        (DOCS / "minutes.inc").write_text(page(rows))
        draw(DOCS / "minutes.svg", [row for row in rows if _processor(row) != "Zen 3"])


if __name__ == "__main__":
    main()
