"""How does `EnergyLM` compare with `NeuralLM`: speed, and perplexity for CPU time?

Speed is that of training and scoring on Brown with all its words, in mini-batches of
32. Perplexities of exact training are on its first tokens, with only the most frequent
words: each model is trained epoch by epoch until its CPU time is spent, and the test
perplexity is that of the epoch with the best validation perplexity.

Those of training on sampled words are on all of Brown, for networks with as many
parameters as MLP9 (section 4) and about as much time as its six epochs take, of the
first 8,000 windows of the validation and test parts: a row each way of training that
was tried, or those of the numbers of --tried. They use SGD; "trained" has networks of
both that are trained well, as common/trained.py does it.

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
from common.trained import N_CONTEXT, SCHEDULE, alpha_of, measured, network, page
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


# -- training on sampled words -----------------------------------------------------

HELD_OUT = 8000


def own_v(h: int, m: int, n_noise: int, step: float, **more: Any) -> dict[str, Any]:
    """An energy with weights for each next word."""
    shape = {"n_hidden": h, "embedding_dim": m, "target_weights": True}
    return shape | {"n_noise": n_noise, "learning_rate_init": step} | more


SLOWLY = {"learning_rate": "invscaling"}
SMALLER = {"batch_size": 64, "scale": 3}
OTHER = {"random_state": 1}  # other draws, of the best
# How each is trained, and for how many epochs.
TRIED: list[tuple[Callable[..., Any], dict[str, Any], int]] = [
    (paper_lm, {"n_noise": 128, **SLOWLY}, 6),
    (paper_lm, {"n_noise": 128, "learning_rate_init": 1.8e-2}, 6),
    (paper_lm, {"n_noise": 128, "learning_rate_init": 1.8e-2, "alpha": 5e-5}, 6),
    (paper_lm, {"n_noise": 128, "learning_rate_init": 1.8e-2, "alpha": 3e-5}, 6),
    (paper_lm, {"n_noise": 128, "learning_rate_init": 2.7e-2, "alpha": 3e-5}, 6),
    (energy_lm, own_v(100, 30, 128, 8e-3, **SLOWLY), 3),
    (energy_lm, own_v(48, 82, 64, 2e-2), 4),
    (energy_lm, own_v(48, 82, 64, 3e-2), 4),
    (energy_lm, own_v(32, 96, 64, 2e-2), 5),
    (energy_lm, own_v(48, 82, 64, 3e-2, batch_size=64), 4),
    (energy_lm, own_v(48, 126, 64, 1e-2, target_weights=False), 4),
    (energy_lm, own_v(48, 80, 64, 3e-2, **SMALLER), 4),
    (energy_lm, own_v(48, 80, 64, 3e-2, alpha=5e-5, **SMALLER), 4),
    (energy_lm, own_v(48, 80, 64, 3e-2, alpha=3e-5, **SMALLER), 4),
    (energy_lm, own_v(48, 80, 64, 4e-2, alpha=5e-5, **SMALLER), 4),
    (energy_lm, own_v(48, 80, 64, 3e-2, alpha=5e-5, batch_size=64), 4),
    (energy_lm, own_v(48, 80, 64, 3.5e-2, alpha=5e-5, batch_size=64), 4),
    (energy_lm, own_v(48, 80, 64, 4e-2, alpha=5e-5, batch_size=32), 4),
    (energy_lm, own_v(48, 80, 64, 2.5e-2, alpha=5e-5), 4),
    (paper_lm, {"n_noise": 128, "learning_rate_init": 1.8e-2, "alpha": 5e-5}, 7),
    (paper_lm,
     {"n_noise": 128, "learning_rate_init": 1.8e-2, "alpha": 5e-5, **OTHER}, 7),
    (energy_lm, own_v(48, 80, 64, 3.5e-2, alpha=5e-5, batch_size=64, **OTHER), 4),
]  # fmt: skip


def sampled(corpus: Corpus, args: Any) -> Rows:
    """Perplexities after training on sampled words, all of Brown."""
    train, *held_out = corpus.windows(4)

    def learnt(
        made: Callable[..., Any], settings: dict[str, Any], epochs: int
    ) -> dict[str, Any]:
        settings = dict(settings)
        scale = settings.pop("scale", 1)
        lm = made(**{
            "order": 5, "n_words": corpus.n_words, "loss": "importance",
            "batch_size": 128, "learning_rate": "linear", "max_iter": epochs,
            "random_state": 0, **settings,
        })  # fmt: skip
        trainer, rng = lm.trainer(*train), np.random.default_rng(0)
        if scale != 1:  # of the features that are drawn
            lm = trainer.keep()
            lm.C_ = scale * lm.C_
            trainer = lm.trainer(*train)
        row = {
            "": type(lm).__name__, "h": lm.n_hidden, "m": lm.embedding_dim,
            "K": lm.batch_size, "samples": lm.loss.n_noise,
            "schedule": lm.solver.learning_rate,
            "step": lm.learning_rate_init, "epochs": epochs, "told": told(lm, scale),
            "parameters": None, "CPU s": None, "valid": None, "test": None,
        }  # fmt: skip
        spent = 0.0
        for _ in range(epochs):
            spent += cpu(trainer.train, rng.permutation(len(train[1])))
        fitted = trainer.keep()
        valid, test = (fitted.perplexity(X[:HELD_OUT], y[:HELD_OUT])
                       for X, y in held_out)  # fmt: skip
        row |= {"parameters": fitted.n_parameters_, "CPU s": spent}
        if np.isfinite(valid):  # else it diverges
            row |= {"valid": valid, "test": test}
        return row

    chosen = args.tried or range(len(TRIED))
    return [
        kept(args.rows, f"sampled, {i}", partial(learnt, *TRIED[i])) for i in chosen
    ]


# -- well-trained networks ---------------------------------------------------------


def neural(corpus: Corpus) -> NeuralLM:
    return network(corpus, loss=Importance(n_noise=512))


def energy(corpus: Corpus) -> EnergyLM:
    """An energy needs fewer noise samples, each of which costs more."""
    return EnergyLM(
        N_CONTEXT + 1, n_words=corpus.n_words, n_hidden=64, embedding_dim=64,
        target_weights=True, loss=Importance(n_noise=128), alpha=alpha_of(corpus),
        **SCHEDULE,
    )  # fmt: skip


def trained(_: Corpus, args: Any) -> Rows:
    """With about as many parameters and for about equal time."""
    return measured(args.rows, "energy", {"NeuralLM": neural, "EnergyLM": energy})


def told(lm: Any, scale: float) -> str:
    """The settings that differ from those of the other rows."""
    usual = {"batch_size": 128, "solver__learning_rate": "linear", "alpha": 1e-4}
    usual |= {"random_state": 0}
    own = lm.get_params()
    other = [f"``{k}={own[k]!r}``" for k in usual if own[k] != usual[k]]
    if getattr(lm, "target_weights", True) is False:
        other.append("one v")
    if scale != 1:
        other.append(f"C times {scale:g} at first")
    return ", ".join(other)


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


def sampled_page(rows: Rows) -> str:
    best = {
        model: min(r["valid"] for r in rows if r[""] == model and r["valid"])
        for model in COMPARED
    }
    lines = []
    for row in sorted(rows, key=lambda row: list(COMPARED).index(row[""])):
        shown = [f"{row['step']:g}", str(row["epochs"]), f"{row['CPU s']:.1f}"]
        if row["valid"] is None:
            shown += ["diverges", ""]
        else:
            shown += [f"{row[part]:.1f}" for part in ("valid", "test")]
        if row["valid"] == best[row[""]]:
            shown = [f"**{cell}**" for cell in shown]
        sizes = [str(row[name]) for name in ("h", "m", "samples")]
        lines.append([row[""], *sizes, row["told"], *shown])
    header = ["", "h", "m", "samples", "other", "step", "epochs", "CPU s", "valid"]
    return list_table("", [*header, "test"], lines)


TABLES = {
    "speed": speed, "quality": quality, "sampled": sampled, "trained": trained
}  # fmt: skip
PAGE = {
    "speed": speed_page, "quality": quality_page, "sampled": sampled_page,
    "trained": partial(page, what="model"),
}  # fmt: skip
TITLES = {
    "speed": "Examples a second of CPU time",
    "quality": "Perplexity for CPU time",
    "sampled": "Perplexity for CPU time, by training on sampled words",
    "trained": "Perplexity for CPU time, after Adam with a learning rate that falls",
}


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--rows", type=Path, required=True, help="what was measured")
    options.add_argument("--words", type=int, default=1000)
    options.add_argument("--tokens", type=int, default=100_000)
    options.add_argument("--seconds", type=float, default=5.0)
    options.add_argument("--examples", type=int, default=2048, help="to time")
    options.add_argument("--tried", type=int, nargs="+", help="rows of sampled words")
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
