"""How does `EnergyLM` compare with `NeuralLM`: speed, and perplexity for CPU time?

Speed is that of training and scoring on Brown with all its words, in mini-batches of
32. Perplexities of exact training are on its first tokens, with only the most frequent
words: each model is trained epoch by epoch until its CPU time is spent, and the test
perplexity is that of the epoch with the best validation perplexity.

"trained" has networks of both that are trained well on noise samples, as
common/trained.py does it, with a learning rate and a weight decay that are good for
both.

--rows is a folder that keeps the rows, a file each; rows that it has are not measured
again. --page writes docs/measured/energy_*.inc of them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import numpy as np

from common.networks import energy_lm, paper_lm
from common.table import Rows, conditions, kept, list_table, named, parser, report
from common.trained import N_CONTEXT, SCHEDULE, measured, network, page
from nplm import EnergyLM, Importance, NeuralLM, windows
from nplm.datasets import Corpus, fetch_brown

PAGES = Path(__file__).parents[2] / "docs" / "measured"


def cpu(work: Callable[..., Any], *args: Any) -> float:
    started = time.process_time()
    work(*args)
    return time.process_time() - started


# -- exact training ----------------------------------------------------------------

SIZED: dict[str, Any] = {"random_state": 0}
COMPARED: dict[str, Callable[..., Any]] = {
    "NeuralLM": partial(paper_lm, order=None, **SIZED),
    "EnergyLM": partial(energy_lm, **SIZED),
}
OWN = {"target_weights": True}
# Networks that train for equal time, with about as many parameters.
LEARNT: list[tuple[str, str, dict[str, Any]]] = [
    ("NeuralLM", "NeuralLM", {"n_hidden": 40, "learning_rate_init": 1e-2}),
    ("target weights", "EnergyLM", {"n_hidden": 40, **OWN}),
    ("target weights", "EnergyLM",
     {"n_hidden": 24, "embedding_dim": 48, "learning_rate_init": 1.5e-2, **OWN}),
    ("one v", "EnergyLM",
     {"n_hidden": 32, "embedding_dim": 65, "learning_rate_init": 1.5e-2}),
]  # fmt: skip


def speed(corpus: Corpus, args: Any) -> Rows:
    """Examples a second."""
    n = args.examples
    X, y = windows(corpus.train[: n + 100], 3)

    def rates(model: str) -> dict[str, Any]:
        trainer = COMPARED[model](n_words=corpus.n_words).trainer(X, y)
        trainer.train(range(64))
        trained = cpu(trainer.train, range(n))
        scored = cpu(trainer.keep().log_prob, X[:n], y[:n])
        return {"": model, "trained/s": n / trained, "scored/s": n / scored}

    return [
        kept(args.rows, f"speed, {model}", partial(rates, model)) for model in COMPARED
    ]


def quality(corpus: Corpus, args: Any) -> Rows:
    """Perplexity after `args.seconds` of CPU time."""

    def cut(part: Any, n: int) -> Any:
        return windows(np.where(part[:n] < args.words, part[:n], 1), 3)

    train = cut(corpus.train, args.tokens)
    valid, test = (cut(part, args.tokens // 5) for part in (corpus.valid, corpus.test))

    def learnt(name: str, model: str, settings: dict[str, Any]) -> dict[str, Any]:
        lm = COMPARED[model](n_words=args.words, **settings)
        spent, best, tested = 0.0, np.inf, np.inf
        while spent < args.seconds:
            spent += cpu(lm.partial_fit, *train)
            reached = lm.perplexity(*valid)
            if reached < best:
                best, tested = reached, lm.perplexity(*test)
        return {
            "": name, "h": lm.n_hidden, "m": lm.embedding_dim,
            "parameters": lm.n_parameters_, "epochs": lm.n_iter_, "CPU s": spent,
            "valid": best, "test": tested,
        }  # fmt: skip

    return [
        kept(args.rows, f"quality, {i}", partial(learnt, *one))
        for i, one in enumerate(LEARNT)
    ]


# -- well-trained networks ---------------------------------------------------------


# A learning rate and a weight decay that are good for both models, by the validation
# part. On the Penn Treebank a rate of 1.2e-2 gains 0.2 to 0.4%.
BEST: dict[str, dict[str, Any]] = {
    "ptb": {"learning_rate_init": 8e-3, "alpha": 0.03},
    "brown": {"learning_rate_init": 1.2e-2, "alpha": 0.07},
}


def neural(corpus: Corpus) -> NeuralLM:
    return network(corpus, loss=Importance(n_noise=512), **BEST[corpus.name])


def energy(corpus: Corpus) -> EnergyLM:
    """An energy needs fewer noise samples, each of which costs more."""
    return EnergyLM(
        N_CONTEXT + 1, n_words=corpus.n_words, n_hidden=64, embedding_dim=64,
        target_weights=True, loss=Importance(n_noise=128),
        **SCHEDULE | BEST[corpus.name],
    )  # fmt: skip


def trained(_: Corpus, args: Any) -> Rows:
    """With about as many parameters and for about equal time."""
    return measured(args.rows, "energy", {"NeuralLM": neural, "EnergyLM": energy})


# -- the page ----------------------------------------------------------------------


def speed_page(rows: Rows) -> str:
    header = ["", "trained a second", "scored a second"]
    lines = [
        [row[""], f"{row['trained/s']:,.0f}", f"{row['scored/s']:,.0f}"] for row in rows
    ]
    return list_table("", header, lines)


def quality_page(rows: Rows) -> str:
    lines = [
        [row[""], str(row["h"]), str(row["m"]), f"{row['parameters']:,}",
         str(row["epochs"]), f"{row['CPU s']:.1f}", f"{row['valid']:.2f}",
         f"{row['test']:.2f}"]
        for row in rows
    ]  # fmt: skip
    header = ["", "h", "m", "parameters", "epochs", "CPU s", "valid", "test"]
    return list_table("", header, lines)


TABLES = {"speed": speed, "quality": quality, "trained": trained}
PAGE = {
    "speed": speed_page, "quality": quality_page,
    "trained": partial(page, what="model"),
}  # fmt: skip
TITLES = {
    "speed": "Examples a second of CPU time",
    "quality": "Perplexity for CPU time",
    "trained": "Perplexity for CPU time, after Adam with a learning rate that falls",
}


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--rows", type=Path, required=True, help="what was measured")
    options.add_argument("--words", type=int, default=1000)
    options.add_argument("--tokens", type=int, default=100_000)
    options.add_argument("--seconds", type=float, default=5.0)
    options.add_argument("--examples", type=int, default=2048, help="to time")
    options.add_argument("--tables", nargs="+", default=TABLES, choices=TABLES)
    options.add_argument("--page", action="store_true", help="write the docs' tables")
    args = options.parse_args()
    args.rows.mkdir(exist_ok=True)
    corpus = fetch_brown()
    for name in args.tables:
        rows = TABLES[name](corpus, args)
        report(TITLES[name], rows, named(args.json, name))
        if args.page:
            text = PAGE[name](rows) + "\n" + conditions(rows) + "\n"
            (PAGES / f"energy_{name}.inc").write_text(text)


if __name__ == "__main__":
    main()
