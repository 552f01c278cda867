"""How does `EnergyLM` compare with `NeuralLM`: speed, and perplexity for CPU time?

Speed is that of training and scoring on Brown with all its words, in mini-batches of
32. "trained" has networks of both that are trained well on noise samples, as
common/trained.py does it, with a learning rate and a weight decay that are good for
both.

--rows is a folder that keeps the rows, a file each; rows that it has are not measured
again. --page writes docs/measured/energy_*.inc of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

from common.networks import energy_lm, paper_lm
from common.page import table, with_conditions
from common.process import cpu_seconds
from common.table import Rows, kept, named, parser, report
from common.trained import N_CONTEXT, SCHEDULE, measured, network, page
from nplm import EnergyLM, Importance, NeuralLM, windows
from nplm.datasets import Corpus, fetch_brown

PAGES = Path(__file__).parents[2] / "docs" / "measured"


COMPARED: dict[str, Callable[..., Any]] = {
    "NeuralLM": partial(paper_lm, order=None, random_state=0),
    "EnergyLM": partial(energy_lm, random_state=0),
}


def speed(corpus: Corpus, args: Any) -> Rows:
    """Examples a second."""
    n = args.examples
    X, y = windows(corpus.train[: n + 100], 3)

    def rates(model: str) -> dict[str, Any]:
        trainer = COMPARED[model](n_words=corpus.n_words).trainer(X, y)
        trainer.train(range(64))
        trained = cpu_seconds(trainer.train, range(n))
        scored = cpu_seconds(trainer.keep().log_prob, X[:n], y[:n])
        return {"model": model, "trained/s": n / trained, "scored/s": n / scored}

    return [
        kept(args.rows, f"speed, {model}", partial(rates, model)) for model in COMPARED
    ]


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


def speed_page(rows: Rows) -> str:
    columns = [("", "{model}"), ("trained a second", "{trained/s:,.0f}"),
               ("scored a second", "{scored/s:,.0f}")]  # fmt: skip
    return with_conditions(table("", columns, rows), rows)


TABLES: dict[str, tuple[str, Callable[..., Rows], Callable[[Rows], str]]] = {
    "speed": ("Examples a second of CPU time", speed, speed_page),
    "trained": (
        "Perplexity for CPU time, after Adam with a learning rate that falls", trained,
        partial(page, what="model"),
    ),
}  # fmt: skip


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--rows", type=Path, required=True, help="what was measured")
    options.add_argument("--examples", type=int, default=2048, help="to time")
    options.add_argument("--tables", nargs="+", default=TABLES, choices=TABLES)
    options.add_argument("--page", action="store_true", help="write the docs' tables")
    args = options.parse_args()
    args.rows.mkdir(exist_ok=True)
    corpus = fetch_brown()
    for name in args.tables:
        title, measure, write = TABLES[name]
        rows = measure(corpus, args)
        report(title, rows, named(args.json, name))
        if args.page:
            (PAGES / f"energy_{name}.inc").write_text(write(rows))


if __name__ == "__main__":
    main()
