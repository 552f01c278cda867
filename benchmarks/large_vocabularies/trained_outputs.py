"""Which output is best once a network is well trained?

A small network (n = 5, h = 100, m = 30, no dropout, mini-batches of 128) on the Penn
Treebank and on Brown, trained by Adam for --epochs epochs with a learning rate that
falls linearly from 2e-3 to 0. Perplexities are exact, of the first --held-out windows
of the test part; the time is the processor's, of the fit. That of finding classes is in
the rows too.

--rows is a folder that keeps the rows, a file each; rows that it has are not measured
again. --page writes docs/measured/outputs_trained.inc.

    python benchmarks/large_vocabularies/trained_outputs.py --rows FOLDER --page
"""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

from common.table import Rows, kept, list_table, parser, report
from nplm import Adam, Classes, Importance, NeuralLM, Tree, WordClasses, word_tree
from nplm.datasets import Corpus, fetch_brown, fetch_ptb

PAGE = Path(__file__).parents[2] / "docs" / "measured" / "outputs_trained.inc"
CORPORA = {"Penn Treebank": fetch_ptb, "Brown": fetch_brown}
N_CONTEXT = 4
SOFTMAX = "softmax, 512 noise samples"
WAYS = [
    SOFTMAX, "softmax, 128 noise samples", "found classes", "tree of found classes",
    "default tree",
]  # fmt: skip


def settings_of(way: str, corpus: Corpus) -> dict[str, Any]:
    """Parameters of the network; those of classes find the classes."""
    if way.startswith("softmax"):
        return {"loss": Importance(n_noise=512 if way == SOFTMAX else 128)}
    if way == "default tree":
        return {"output": "tree"}
    n_classes = round(corpus.n_words**0.5)
    found = WordClasses(n_classes, n_words=corpus.n_words, random_state=0)
    labels = found.fit(corpus.train).labels_
    if way == "found classes":
        return {"output": Classes(labels)}
    return {"output": Tree(word_tree(corpus.train, labels))}


def measure(way: str, corpus: Corpus, epochs: int, held_out: int) -> dict[str, Any]:
    train, _, (X, y) = corpus.windows(N_CONTEXT)
    started = time.process_time()
    settings = settings_of(way, corpus)
    grouping = time.process_time() - started
    lm = NeuralLM(
        N_CONTEXT + 1, n_words=corpus.n_words, n_hidden=100, embedding_dim=30,
        dropout=0, solver=Adam("linear"), batch_size=128, max_iter=epochs,
        early_stopping=False, random_state=0, **settings,
    )  # fmt: skip
    started = time.process_time()
    lm.fit(*train)
    return {
        "CPU s": time.process_time() - started, "to group": grouping,
        "test": lm.perplexity(X[:held_out], y[:held_out]),
    }  # fmt: skip


def page(rows: Rows) -> str:
    best = {row["corpus"]: row["test"] for row in rows if row["way"] == SOFTMAX}
    lines = []
    for row in rows:
        beside = row["test"] / best[row["corpus"]] - 1
        lines.append([
            row["corpus"], row["way"], f"{row['test']:.1f}", f"{beside:+.1%}",
            f"{row['CPU s']:.0f}",
        ])  # fmt: skip
    header = ["", "output", "test", "beside 512 samples", "CPU s"]
    return list_table("", header, lines)


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--rows", type=Path, required=True, help="what was measured")
    options.add_argument("--epochs", type=int, default=3)
    options.add_argument("--held-out", type=int, default=24_000)
    options.add_argument("--corpora", nargs="+", choices=CORPORA, default=CORPORA)
    options.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    options.add_argument("--page", action="store_true", help=f"write {PAGE.name}")
    args = options.parse_args()
    args.rows.mkdir(exist_ok=True)
    rows = []
    for name in args.corpora:
        corpus = CORPORA[name]()
        rows += [
            {"corpus": name, "way": way} | kept(
                args.rows, f"trained outputs, {args.epochs} epochs, {name}, {way}",
                partial(measure, way, corpus, args.epochs, args.held_out),
            )
            for way in args.ways
        ]  # fmt: skip
    report("Outputs of well-trained networks", rows, args.json)
    if args.page:
        PAGE.write_text(page(rows))


if __name__ == "__main__":
    main()
