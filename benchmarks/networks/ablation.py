"""How far does a feed-forward network go, and what is each of its options worth?

Trains the networks of benchmarks/common/ablations.py on Brown or the Penn Treebank (see
nplm.datasets for how to have them). A row is one network with some settings changed:

    python benchmarks/networks/ablation.py small "without dropout" --folder runs
    python benchmarks/networks/ablation.py distant --set max_iter=4 --folder runs

Each row is a file in --folder, beside its model; a row that is there is not measured
again. CPU seconds are those of the fit. Perplexities are pooled over all tokens: of the
validation part, by which settings are chosen, and of the test part. "seen"
are those of next words that training has; "smoothed" is the network mixed with uniform
probabilities of all words and of those that training lacks, weights by EM on the
validation part. A mixture of rows that --folder has, with Kneser-Ney, word classes and
the two uniforms, its weights learned on the validation part for each bin of the
context's frequency:

    python benchmarks/networks/ablation.py --mixture distant window --folder runs

--page makes the tables of docs/measured/ablation*.inc of the folder.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

import nplm
from common.ablations import ABLATIONS, NETWORKS, as_stream, network
from common.page import cpus, list_table
from common.process import cpu_seconds
from common.table import Rows, file_name, kept, parser, report, settings_of
from nplm import (
    ClassLM,
    KneserNeyLM,
    MixtureLM,
    NeuralLM,
    UniformLM,
    WordClasses,
)
from nplm.datasets import Corpus, fetch_brown, fetch_ptb

DOCS = Path(__file__).parents[2] / "docs" / "measured"
CORPORA = {"brown": fetch_brown, "ptb": fetch_ptb}
Windows = tuple[NDArray[np.int32], NDArray[np.int32]]


def figures(
    model: NeuralLM | MixtureLM, corpus: Corpus, parts: dict[str, Windows]
) -> dict[str, float]:
    """Perplexities of some parts, and of the words there that training has."""
    counts = np.bincount(corpus.train, minlength=corpus.n_words)
    found = {}
    for name, (X, y) in parts.items():
        log_p = model.log_prob(X, y)
        found[name] = float(np.exp(-log_p.mean()))
        found[f"{name} seen"] = float(np.exp(-log_p[counts[y] > 0].mean()))
    return found


def smoothed(
    lm: NeuralLM, train: Windows, parts: dict[str, Windows]
) -> dict[str, float]:
    """The perplexities of a network mixed with the two uniforms."""
    members = [("network", FrozenEstimator(lm)), ("unseen", UniformLM("unseen"))]
    mixture = MixtureLM(
        members, weights="learned", include_uniform=True, n_words=lm.n_words_
    )
    X_val, y_val = parts["valid"]
    mixture.fit(*train, X_val=X_val, y_val=y_val)
    return {
        f"{name} smoothed": mixture.perplexity(*part) for name, part in parts.items()
    }


def mixed(corpus: Corpus, networks: dict[str, NeuralLM]) -> MixtureLM:
    """Networks, the best of the n-gram models, and the two uniforms."""
    common = {"n_words": corpus.n_words}
    classes = WordClasses(500, random_state=0, **common).fit(corpus.train)
    members = [(name, FrozenEstimator(lm)) for name, lm in networks.items()]
    members += [
        ("Kneser-Ney", KneserNeyLM(5, **common)),
        ("classes", ClassLM(3, classes=classes.labels_, **common)),
        ("unseen", UniformLM("unseen")),
    ]
    return MixtureLM(members, weights="context", include_uniform=True, **common)


def pages(rows: Rows) -> dict[str, str]:
    """The tables of docs/measured/ablation.rst: changes of "small", and the others."""
    valid = ["valid", "valid seen", "valid smoothed"]
    one_change = {"small", *ABLATIONS}
    changes = [r for r in rows if r["row"] in one_change and not r["changes"]]
    changes.sort(key=lambda row: row["valid"])
    files = {"ablation_changes.inc": _table("", changes, valid)}
    titles = {"brown": "Brown", "ptb": "Penn Treebank"}
    tables = [
        _table(title, others, [*valid, "test", "test smoothed"])
        for corpus, title in titles.items()
        if (others := [r for r in rows if r["corpus"] == corpus and r not in changes])
    ]
    machines = [row["machines"][0] for row in rows]
    about = f"One thread of an {cpus(machines)}.\n"
    return files | {"ablation.inc": "\n".join([*tables, about])}


def _table(title: str, rows: Rows, columns: list[str]) -> str:
    lines = [
        [f"{r['row']} {r['changes']}".strip(), f"{r['epochs'] or ''}",
         f"{r['parameters'] / 1e6:.1f}", f"{r['CPU s'] / 60:.1f}",
         *(f"{r[c]:.1f}" if r.get(c) else "" for c in columns)]
        for r in rows
    ]  # fmt: skip
    header = ["network", "epochs", "million parameters", "CPU minutes", *columns]
    return list_table(title, header, lines)


def one_network(
    corpus: Corpus, name: str, changes: dict[str, Any], jobs: int, model: Path
) -> dict[str, Any]:
    """The figures of a network, which is saved."""
    base, more = ("small", ABLATIONS[name]) if name in ABLATIONS else (name, {})
    lm = network(corpus, base, n_jobs=jobs, **more | changes)
    widest = max(lm.order - 1, lm.n_distant, lm.n_memory)
    corpus = as_stream(corpus, widest)
    train, valid, test = corpus.windows(widest)
    seconds = cpu_seconds(lm.fit, *train)
    nplm.save(lm, model)
    parts = {"valid": valid, "test": test}
    return {
        "epochs": lm.n_iter_, "CPU s": seconds, "parameters": lm.n_parameters_,
        "train": float(np.exp(lm.history_["loss"][-1])),
        **figures(lm, corpus, parts), **smoothed(lm, train, parts),
    }  # fmt: skip


def one_mixture(corpus: Corpus, models: list[Path], seconds: float) -> dict[str, Any]:
    """The figures of networks and the n-gram models, mixed."""
    networks = {path.stem: nplm.load(path) for path in models}
    widest = max(lm.n_features_in_ for lm in networks.values())
    corpus = as_stream(corpus, widest)
    train, valid, test = corpus.windows(widest)
    began = time.process_time()
    model = mixed(corpus, networks).fit(*train, X_val=valid[0], y_val=valid[1])
    print(model.named_estimators_.keys(), model.weights_.round(3))
    return {
        "epochs": None, "CPU s": seconds + time.process_time() - began,
        "parameters": model.n_parameters_, "train": None,
        **figures(model, corpus, {"valid": valid, "test": test}),
    }  # fmt: skip


def main() -> None:
    options = parser(__doc__)
    options.add_argument(
        "rows", nargs="*", metavar="ROW", help=", ".join([*NETWORKS, *ABLATIONS])
    )
    options.add_argument("--corpus", choices=list(CORPORA), default="brown")
    options.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    options.add_argument("--jobs", type=int, default=1, help="threads of a fit")
    options.add_argument("--folder", type=Path, required=True, help="of the rows")
    options.add_argument(
        "--mixture", nargs="+", metavar="ROW", help="networks of the folder to mix"
    )
    options.add_argument("--page", action="store_true", help="write docs/measured")
    args = options.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    corpus, rows = CORPORA[args.corpus](), []

    def path_of(name: str) -> Path:
        return args.folder / file_name(f"{args.corpus}-{name}.nplm")

    def add(row: str, changes: str, name: str, measure: Callable[[], Any]) -> None:
        about = {"row": row, "corpus": args.corpus, "changes": changes}
        kept_row = kept(args.folder, f"{args.corpus}-{name}", lambda: about | measure())
        rows.append(kept_row)

    for row in args.rows:
        name, changes = "-".join([row, *args.set]), settings_of(args.set)
        fit = partial(one_network, corpus, row, changes, args.jobs, path_of(name))
        add(row, " ".join(args.set), name, fit)
    if args.mixture:
        models = [path_of(name) for name in args.mixture]
        trained = [json.loads(path.with_suffix(".json").read_text()) for path in models]
        seconds = sum(row["CPU s"] for row in trained)
        names = " + ".join(args.mixture)
        fit = partial(one_mixture, corpus, models, seconds)
        add("mixture", f"of {names}", f"mixture-{names}", fit)
    if rows:
        report("Networks", rows, args.json)
    if args.page:
        every = [json.loads(p.read_text()) for p in sorted(args.folder.glob("*.json"))]
        for name, text in pages(every).items():
            (DOCS / name).write_text(text)


if __name__ == "__main__":
    main()
