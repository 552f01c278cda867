"""Does it help a network to know something of the words before it is trained?

On Brown (see nplm.datasets for how to have it), perplexity on the validation and the
test part after the same epochs:

starts: a small network, trained on drawn words, whose features begin at random or at
the principal components of co-occurrence counts, or stay there, which the paper tried
without success (section 1.2); of every fifth window.

spelling: networks of which the features of a word are its own, or its own and those of
its spelling; and where the features are the output's weights too (tied), or not.

--rows is a folder that keeps the rows, a file each; those that are there are not
measured again. --page writes the tables to docs/measured/features_*.inc.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import numpy as np

from common.networks import changed
from common.table import Rows, conditions, kept, list_table, named, parser, report
from nplm import NeuralLM, cooccurrence_embeddings
from nplm.datasets import Corpus, fetch_brown

PAGES = Path(__file__).parents[2] / "docs" / "measured"
SMALL: dict[str, Any] = {
    "order": 5, "n_hidden": 50, "embedding_dim": 30, "solver": "adam", "alpha": 0.0,
    "batch_size": 256, "learning_rate_init": 1e-3, "random_state": 0, "tied": False,
    "dropout": 0, "loss": "importance", "n_noise": 256, "epsilon": 1e-8,
}  # fmt: skip
LARGE: dict[str, Any] = {
    "order": 5, "n_hidden": 256, "embedding_dim": 96, "solver": "adam", "alpha": 0.1,
    "batch_size": 512, "learning_rate_init": 2e-3, "epsilon": 1e-5, "random_state": 0,
    "dropout": 0, "loss": "exact",
}  # fmt: skip
BEGUN = ["drawn at random", "components, trained on", "components, fixed"]
OUTPUTS = ["tied", "its own"]
FEATURES = ["words only", "with spelling"]
TOLD = (1, 2, 4)  # epochs after which a perplexity is told, and at the end


def scores(lm: NeuralLM, corpus: Corpus, every: int = 1) -> dict[str, float]:
    _, *held_out = corpus.windows(4)
    perplexities = [lm.perplexity(X[::every], y[::every]) for X, y in held_out]
    return dict(zip(("valid", "test"), perplexities))


def starts(name: str, corpus: Corpus, epochs: int) -> dict[str, Any]:
    """Features that begin, or stay, where co-occurrence counts put them."""
    X, y = corpus.windows(4).train
    C = None
    if name.startswith("components"):
        C = cooccurrence_embeddings(
            corpus.train, corpus.n_words, SMALL["embedding_dim"], random_state=0
        )
    lm = changed(
        NeuralLM(), n_words=corpus.n_words, embeddings=C, trained="fixed" not in name,
        **SMALL,
    )  # fmt: skip
    reached = {}
    for epoch in range(1, epochs + 1):
        lm.partial_fit(X, y)
        if epoch in (*TOLD, epochs):
            reached[str(epoch)] = scores(lm, corpus, every=5)
    return {"features": name, "reached": reached}


def spelling(
    output: str, features: str, corpus: Corpus, epochs: float, parts: int = 6
) -> dict[str, Any]:
    """With or without spelling; the step falls to 0 in as many parts as given."""
    X, y = corpus.windows(4).train
    n = int(epochs * len(y))
    rng = np.random.default_rng(0)
    order = np.concatenate([rng.permutation(len(y)) for _ in range(ceil(epochs))])[:n]
    matrix = None
    if features == "with spelling":
        matrix, _ = corpus.vocabulary.spelling_features()
    tied = output == "tied"
    lm = changed(
        NeuralLM(), n_words=corpus.n_words, direct=tied, tied=tied,
        word_features=matrix, **LARGE,
    )  # fmt: skip
    seconds = 0.0
    for i, examples in enumerate(np.array_split(order, parts)):
        step = LARGE["learning_rate_init"] * (parts - i - 0.5) / parts
        trainer = lm.set_params(learning_rate_init=step).trainer(X, y)
        started = time.process_time()
        trainer.train(examples)
        seconds += time.process_time() - started
        trainer.keep()
    return {
        "output": output, "features": features, "epochs": epochs,
        **scores(lm, corpus), "parameters": lm.n_parameters_, "examples/s": n / seconds,
    }  # fmt: skip


def starts_page(rows: Rows) -> str:
    lines = [
        [row["features"], epochs, f"{found['valid']:.1f}", f"{found['test']:.1f}"]
        for row in rows
        for epochs, found in row["reached"].items()
    ]
    header = ["features", "epochs", "valid", "test"]
    table = list_table("Where features begin", header, lines)
    return table + "\n" + conditions(rows) + "\n"


def spelling_page(rows: Rows) -> str:
    lines = [
        [r["output"], r["features"], f"{r['valid']:.1f}", f"{r['test']:.1f}",
         f"{r['parameters'] / 1e6:.2f} million", f"{r['examples/s']:,.0f}"]
        for r in rows
    ]  # fmt: skip
    header = ["output", "features", "valid", "test", "parameters"]
    header.append("training examples a CPU second")
    title = f"What spelling gains, in {rows[0]['epochs']} epochs"
    return list_table(title, header, lines) + "\n" + conditions(rows) + "\n"


TITLES = {"starts": "Where features begin", "spelling": "What spelling gains"}
TABLES = {"starts": starts_page, "spelling": spelling_page}


def starts_rows(corpus: Corpus, args: Any) -> Rows:
    return [
        kept(args.rows, f"starts, {name}", partial(starts, name, corpus, args.starts))
        for name in BEGUN
    ]


def spelling_rows(corpus: Corpus, args: Any) -> Rows:
    return [
        kept(
            args.rows, f"spelling, {output}, {features}",
            partial(spelling, output, features, corpus, args.spelling),
        )
        for output in args.outputs
        for features in FEATURES
    ]  # fmt: skip


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rows", type=Path, required=True, help="what was measured")
    options.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES)
    options.add_argument("--starts", type=int, default=4, help="epochs, at least 1")
    options.add_argument("--spelling", type=float, default=1.5, help="epochs, above 0")
    options.add_argument("--outputs", nargs="+", choices=OUTPUTS, default=["tied"])
    options.add_argument("--page", action="store_true", help="write the docs' tables")
    args = options.parse_args()
    args.rows.mkdir(exist_ok=True)
    corpus = fetch_brown()
    for table in args.tables:
        if table == "starts":
            rows = starts_rows(corpus, args)
            shown = [
                {"features": row["features"], "epochs": int(epochs), **found}
                for row in rows
                for epochs, found in row["reached"].items()
            ]
        else:
            rows = spelling_rows(corpus, args)
            shown = rows
        report(TITLES[table], shown, named(args.json, table))
        if args.page:
            (PAGES / f"features_{table}.inc").write_text(TABLES[table](rows))


if __name__ == "__main__":
    main()
