"""How far does a feed-forward network go, and what is each of its options worth?

Trains the networks of benchmarks/common/ablations.py on Brown or the Penn Treebank (see
nplm.datasets for how to have them). A row is one network with some settings changed:

    python benchmarks/networks/ablation.py small "without dropout" --folder runs \\
        --json a.json
    python benchmarks/networks/ablation.py distant --set max_iter=4 alpha=0.03 --test

Each row is a fit with a checkpoint in --folder; after --seconds it is left, and the
same command goes on with it. CPU seconds are those of all pieces of the fit, of all
threads, held-out scoring apart. Perplexities are pooled over all tokens: of the
validation part, by which settings are chosen, and with --test of the test part. "seen"
are those of next words that training has; "smoothed" is the network mixed with uniform
probabilities of all words and of those that training lacks, weights by EM on the
validation part. A mixture of rows that --folder has, with Kneser-Ney, word classes and
the two uniforms, its weights learned on the validation part for each bin of the
context's frequency:

    python benchmarks/networks/ablation.py --mixture brown-distant brown-window --test

--page makes the tables of docs/measured/ablation.inc of the JSON.
"""

from __future__ import annotations

import ast
import json
import sys
import time
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

import nplm
from common.ablations import ABLATIONS, NETWORKS, as_stream, network
from common.page import list_table
from common.table import Rows, machine, parser, report
from nplm import (
    ClassLM,
    KneserNeyLM,
    MixtureLM,
    NeuralLM,
    UniformLM,
    WordClasses,
)
from nplm.datasets import Corpus, fetch_brown, fetch_ptb

PAGE = Path(__file__).parents[2] / "docs" / "measured" / "ablation.inc"
CORPORA = {"brown": fetch_brown, "ptb": fetch_ptb}
Windows = tuple[NDArray[np.int32], NDArray[np.int32]]


def settings_of(name: str, more: list[str]) -> tuple[str, dict[str, Any]]:
    """The network that a row is of, and what is changed of it."""
    base, changes = ("small", ABLATIONS[name]) if name in ABLATIONS else (name, {})
    pairs = (item.split("=", 1) for item in more)
    return base, changes | {key: literal(value) for key, value in pairs}


def literal(value: str) -> Any:
    """A Python literal, or the text itself."""
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return value


def trained(lm: NeuralLM, train: Windows, folder: Path, seconds: float) -> float | None:
    """Go on with a fit; its CPU seconds, or None if it is not done."""
    spent_file = folder / "seconds.json"
    spent = json.loads(spent_file.read_text()) if spent_file.exists() else 0.0
    began, began_cpu = time.monotonic(), time.process_time()

    def leave(done: float, total: float, loss: float) -> None:
        if time.monotonic() - began > seconds and done < total:
            print(f"{folder.name}: {done / total:.1%}, {np.exp(loss):.1f}", flush=True)
            raise KeyboardInterrupt

    done = True
    try:
        lm.fit(*train, checkpoint=folder / "fit", progress=leave)
    except KeyboardInterrupt:
        done = False
    spent += time.process_time() - began_cpu
    spent_file.write_text(json.dumps(spent))
    return spent if done else None


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


def page(rows: Rows) -> str:
    """The tables of docs/measured/ablation.rst: a corpus each."""
    columns = ["valid", "valid seen", "valid smoothed", "test", "test smoothed"]
    titles = {"brown": "Brown", "ptb": "Penn Treebank"}
    tables = []
    for corpus, title in titles.items():
        lines = [
            [f"{r['row']} {r['changes']}".strip(), f"{r['epochs'] or ''}",
             f"{r['parameters'] / 1e6:.1f}", f"{r['CPU s'] / 60:.1f}",
             *(f"{r[c]:.1f}" if r.get(c) else "" for c in columns)]
            for r in rows if r["corpus"] == corpus
        ]  # fmt: skip
        header = ["network", "epochs", "million parameters", "CPU minutes", *columns]
        if lines:
            tables.append(list_table(title, header, lines))
    cpus = " and ".join(sorted({row["cpu"] for row in rows}))
    return "\n".join(tables) + f"\nOne thread of an {cpus}.\n"


def one_network(corpus: Corpus, name: str, args: Namespace) -> dict[str, Any] | None:
    """A row, or None where its fit is not done."""
    base, changes = settings_of(name, args.set)
    lm = network(corpus, base, n_jobs=args.jobs, **changes)
    widest = max(lm.order - 1, lm.n_distant, lm.n_memory)
    corpus = as_stream(corpus, widest)
    train, valid, test = corpus.windows(widest)
    title = "-".join([args.corpus, name.replace(" ", "-"), *args.set])
    folder = args.folder / title.replace("/", "_")
    folder.mkdir(parents=True, exist_ok=True)
    seconds = trained(lm, train, folder, args.seconds)
    if seconds is None:
        return None
    nplm.save(lm, folder / "model")
    parts = {"valid": valid} | ({"test": test} if args.test else {})
    return {
        "row": name, "corpus": args.corpus, "changes": " ".join(args.set),
        "epochs": lm.n_iter_, "CPU s": seconds, "parameters": lm.n_parameters_,
        "train": float(np.exp(lm.history_["loss"][-1])),
        **figures(lm, corpus, parts), **smoothed(lm, train, parts),
        "cpu": machine()["cpu"],
    }  # fmt: skip


def one_mixture(corpus: Corpus, args: Namespace) -> dict[str, Any]:
    """A row: the networks of some folders and the n-gram models, mixed."""
    networks, seconds = {}, 0.0
    names = " + ".join(name.removeprefix(f"{args.corpus}-") for name in args.mixture)
    for name in args.mixture:
        networks[name] = nplm.load(args.folder / name / "model")
        seconds += json.loads((args.folder / name / "seconds.json").read_text())
    widest = max(lm.n_features_in_ for lm in networks.values())
    corpus = as_stream(corpus, widest)
    train, valid, test = corpus.windows(widest)
    parts = {"valid": valid} | ({"test": test} if args.test else {})
    began = time.process_time()
    model = mixed(corpus, networks).fit(*train, X_val=valid[0], y_val=valid[1])
    print(model.named_estimators_.keys(), model.weights_.round(3))
    return {
        "row": "mixture", "corpus": args.corpus,
        "changes": f"of {names}",
        "epochs": None, "CPU s": seconds + time.process_time() - began,
        "parameters": model.n_parameters_, "train": None,
        **figures(model, corpus, parts), **{f"{name} smoothed": None for name in parts},
        "cpu": machine()["cpu"],
    }  # fmt: skip


def main() -> None:
    options = parser(__doc__)
    options.add_argument(
        "rows", nargs="*", metavar="ROW", help=", ".join([*NETWORKS, *ABLATIONS])
    )
    options.add_argument("--corpus", choices=list(CORPORA), default="brown")
    options.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    options.add_argument("--jobs", type=int, default=1, help="threads of a fit")
    options.add_argument("--folder", type=Path, required=True, help="of checkpoints")
    options.add_argument(
        "--mixture", nargs="+", metavar="NAME", help="folders there, of networks to mix"
    )
    options.add_argument("--seconds", type=float, default=float("inf"))
    options.add_argument("--test", action="store_true", help="only of final rows")
    options.add_argument("--page", action="store_true", help=f"write {PAGE.name}")
    args = options.parse_args()
    corpus = CORPORA[args.corpus]()
    rows: list[dict[str, Any]] = []
    if args.json and args.json.exists():
        rows = json.loads(args.json.read_text())["rows"]
    asked = [partial(one_network, corpus, name, args) for name in args.rows]
    if args.mixture:
        asked.append(partial(one_mixture, corpus, args))
    for measure in asked:
        row = measure()
        if row is None:
            continue
        # Measured again, as with --test, a row takes its own place.
        what = ("row", "corpus", "changes")
        rows = [r for r in rows if any(r[name] != row[name] for name in what)] + [row]
        report("Networks", [row])
        if args.json:
            report("Networks", rows, args.json)
    if args.page:
        PAGE.write_text(page(rows))


if __name__ == "__main__":
    main()
