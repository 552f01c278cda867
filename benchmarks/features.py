"""Does it help a network to know something of the words before it is trained?

On Brown (see nplm.datasets for how to have it), perplexity on the validation and the
test part after the same epochs:

starts: a small network whose features begin at random or at the principal components
of co-occurrence counts, or stay there, which the paper tried without success (section
1.2).

spelling: networks of which the features of a word are its own, or its own and those of
its spelling; and where the features are the output's weights too (tied), or not.

--page writes the tables to docs/measured/features.inc.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from common.parallel_page import list_table
from common.table import Rows, machine, named, parser, report

from nplm import NeuralLM, cooccurrence_embeddings
from nplm.datasets import Corpus, fetch_brown

PAGE = Path(__file__).parents[1] / "docs" / "measured" / "features.inc"
SMALL: dict[str, Any] = {
    "order": 5, "n_hidden": 50, "embedding_dim": 30, "solver": "adam", "alpha": 0.0,
    "batch_size": 256, "learning_rate_init": 1e-3, "random_state": 0, "tied": False,
    "dropout": 0, "loss": "exact", "epsilon": 1e-8,
}  # fmt: skip
LARGE: dict[str, Any] = {
    "order": 5, "n_hidden": 256, "embedding_dim": 96, "solver": "adam", "alpha": 0.1,
    "batch_size": 512, "learning_rate_init": 2e-3, "epsilon": 1e-5, "random_state": 0,
    "dropout": 0, "loss": "exact",
}  # fmt: skip
OUTPUTS = ["tied", "its own"]


def scores(lm: NeuralLM, corpus: Corpus) -> dict[str, float]:
    _, valid, test = corpus.windows(4)
    return {"valid": lm.perplexity(*valid), "test": lm.perplexity(*test)}


def starts(corpus: Corpus, epochs: int) -> Iterator[dict[str, Any]]:
    """Features that begin, or stay, where co-occurrence counts put them."""
    X, y = corpus.windows(4).train
    C = cooccurrence_embeddings(
        corpus.train, corpus.n_words, SMALL["embedding_dim"], random_state=0
    )
    kinds: dict[str, dict[str, Any]] = {
        "drawn at random": {},
        "components, trained on": {"embeddings": C},
        "components, fixed": {"embeddings": C, "train_embeddings": False},
    }
    for name, options in kinds.items():
        lm = NeuralLM(n_words=corpus.n_words, **SMALL, **options)
        for epoch in range(1, epochs + 1):
            lm.partial_fit(X, y)
            yield {"features": name, "epochs": epoch, **scores(lm, corpus)}


def spelling(
    corpus: Corpus, epochs: float, outputs: list[str], parts: int = 6
) -> Iterator[dict[str, Any]]:
    """With and without spelling; the step falls to 0 in as many parts as given."""
    X, y = corpus.windows(4).train
    matrix, _ = corpus.vocabulary.spelling_features()
    n = int(epochs * len(y))
    rng = np.random.default_rng(0)
    order = np.concatenate([rng.permutation(len(y)) for _ in range(ceil(epochs))])[:n]
    for output in outputs:
        tied = output == "tied"
        for name, features in (("words only", None), ("with spelling", matrix)):
            lm = NeuralLM(
                n_words=corpus.n_words, direct=tied, tied=tied, word_features=features,
                **LARGE,
            )  # fmt: skip
            seconds = 0.0
            for i, examples in enumerate(np.array_split(order, parts)):
                step = LARGE["learning_rate_init"] * (parts - i - 0.5) / parts
                trainer = lm.set_params(learning_rate_init=step).trainer(X, y)
                started = time.process_time()
                trainer.train(examples)
                seconds += time.process_time() - started
                trainer.keep()
            yield {
                "output": output, "features": name,
                "epochs": epochs, **scores(lm, corpus),
                "parameters": lm.n_parameters_, "examples/s": n / seconds,
            }  # fmt: skip


def page(began: Rows, spelt: Rows) -> str:
    """The tables of docs/measured/features.rst."""
    here = machine()
    first = [
        [r["features"], str(r["epochs"]), f"{r['valid']:.1f}", f"{r['test']:.1f}"]
        for r in began
    ]
    header = ["features", "epochs", "valid", "test"]
    text = list_table("Where features begin", header, first)
    second = [
        [r["output"], r["features"], f"{r['valid']:.1f}", f"{r['test']:.1f}",
         f"{r['parameters'] / 1e6:.2f} million", f"{r['examples/s']:,.0f}"]
        for r in spelt
    ]  # fmt: skip
    header = ["output", "features", "valid", "test", "parameters"]
    header.append("training examples a CPU second")
    title = f"What spelling gains, in {spelt[0]['epochs']} epochs"
    cpu = f"\nOne thread of an {here['cpu']}, float32.\n"
    return text + "\n" + list_table(title, header, second) + cpu


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--starts", type=int, default=1, help="epochs, at least 1")
    options.add_argument("--spelling", type=float, default=1.5, help="epochs, above 0")
    options.add_argument("--outputs", nargs="+", choices=OUTPUTS, default=["tied"])
    options.add_argument("--page", action="store_true", help=f"write {PAGE.name}")
    args = options.parse_args()
    corpus = fetch_brown()
    began = list(shown(starts(corpus, args.starts)))
    spelt = list(shown(spelling(corpus, args.spelling, args.outputs)))
    report("Where features begin", began, named(args.json, "starts"))
    report("What spelling gains", spelt, named(args.json, "spelling"))
    if args.page:
        PAGE.write_text(page(began, spelt))


def shown(rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        print(row, file=sys.stderr, flush=True)
        yield row


if __name__ == "__main__":
    main()
