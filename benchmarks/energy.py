"""How does `EnergyLM` compare with `NeuralLM`: speed, and perplexity for CPU time?

Speed is that of training and scoring on Brown with all its words, in mini-batches of
32. Perplexities of exact training are on its first tokens, with only the most frequent
words: each model is trained epoch by epoch until its CPU time is spent, and the test
perplexity is that of the epoch with the best validation perplexity.

Those of training on sampled words are on all of Brown, for networks with as many
parameters as MLP9 (section 4) and about as much time as its six epochs take, of the
first 8,000 windows of the validation and test parts: a row each way of training that
was tried, or those of the numbers of --tried.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from common.networks import paper_lm
from common.table import named, parser, report

from nplm import EnergyLM, windows
from nplm.datasets import Corpus, fetch_brown


def cpu(work: Callable[..., Any], *args: Any) -> float:
    started = time.process_time()
    work(*args)
    return time.process_time() - started


def speed(corpus: Corpus, args: Any) -> list[dict[str, Any]]:
    """Examples a second."""
    n = args.examples
    X, y = windows(corpus.train[: n + 100], 3)
    size = {"n_words": corpus.n_words, "random_state": 0}
    rows = []
    for lm in (paper_lm(order=None, **size), EnergyLM(**size)):
        trainer = lm.trainer(X, y)
        trainer.train(range(64))
        trained = cpu(trainer.train, range(n))
        scored = cpu(trainer.keep().log_prob, X[:n], y[:n])
        rows.append({
            "": type(lm).__name__,
            "trained/s": f"{n / trained:.0f}",
            "scored/s": f"{n / scored:.0f}",
        })  # fmt: skip
    return rows


def quality(corpus: Corpus, args: Any) -> list[dict[str, Any]]:
    """Perplexity after `args.seconds` of CPU time."""

    def cut(part: Any, n: int) -> Any:
        return windows(np.where(part[:n] < args.words, part[:n], 1), 3)

    train = cut(corpus.train, args.tokens)
    valid, test = (cut(part, args.tokens // 5) for part in (corpus.valid, corpus.test))
    size = {"n_words": args.words, "random_state": 0}
    models = [
        paper_lm(order=None, n_hidden=40, learning_rate_init=1e-2, **size),
        EnergyLM(n_hidden=40, target_weights=True, **size),
        EnergyLM(
            n_hidden=24, embedding_dim=48, target_weights=True,
            learning_rate_init=1.5e-2, **size,
        ),
        EnergyLM(n_hidden=32, embedding_dim=65, learning_rate_init=1.5e-2, **size),
    ]  # fmt: skip
    rows = []
    for lm in models:
        spent, best, tested = 0.0, np.inf, np.inf
        while spent < args.seconds:
            spent += cpu(lm.partial_fit, *train)
            reached = lm.perplexity(*valid)
            if reached < best:
                best, tested = reached, lm.perplexity(*test)
        rows.append({
            "": f"{type(lm).__name__}, h={lm.n_hidden}, m={lm.embedding_dim}",
            "parameters": lm.n_parameters_,
            "epochs": lm.n_iter_,
            "CPU s": f"{spent:.1f}",
            "valid": f"{best:.2f}",
            "test": f"{tested:.2f}",
        })  # fmt: skip
    return rows


HELD_OUT = 8000


def own_v(h: int, m: int, n_samples: int, step: float, **more: Any) -> dict[str, Any]:
    """An energy with weights for each next word."""
    shape = {"n_hidden": h, "embedding_dim": m, "target_weights": True}
    return shape | {"n_samples": n_samples, "learning_rate_init": step} | more


SLOWLY = {"learning_rate": "invscaling"}
# How each is trained, and for how many epochs.
TRIED: list[tuple[Callable[..., Any], dict[str, Any], int]] = [
    (paper_lm, {"n_samples": 128, **SLOWLY}, 6),
    (paper_lm, {"n_samples": 128, "learning_rate_init": 8e-3}, 6),
    (paper_lm, {"n_samples": 128, "learning_rate_init": 1.2e-2}, 6),
    (paper_lm, {"n_samples": 128, "learning_rate_init": 1.8e-2}, 6),
    (paper_lm, {"n_samples": 128, "learning_rate_init": 2.7e-2}, 6),
    (EnergyLM, own_v(100, 30, 128, 8e-3, **SLOWLY), 3),
    (EnergyLM, own_v(48, 82, 32, 1e-2), 3),
    (EnergyLM, own_v(48, 82, 64, 1e-2), 3),
    (EnergyLM, own_v(48, 82, 128, 1e-2), 3),
    (EnergyLM, own_v(48, 82, 256, 1e-2), 3),
    (EnergyLM, own_v(48, 82, 64, 1.5e-2), 4),
    (EnergyLM, own_v(48, 82, 64, 2e-2), 4),
    (EnergyLM, own_v(48, 82, 64, 3e-2), 4),
    (EnergyLM, own_v(48, 82, 64, 3e-2, batch_size=64), 4),
    (EnergyLM, own_v(32, 98, 64, 2e-2), 5),
    (EnergyLM, own_v(64, 66, 64, 2e-2), 4),
]


def sampled(corpus: Corpus, args: Any) -> list[dict[str, Any]]:
    """Perplexities after training on sampled words, all of Brown."""
    train, *held_out = corpus.windows(4)
    rows = []
    for i in args.tried or range(len(TRIED)):
        made, settings, epochs = TRIED[i]
        lm = made(**{
            "order": 5, "n_words": corpus.n_words, "loss": "importance",
            "batch_size": 128, "learning_rate": "linear", "max_iter": epochs,
            "random_state": 0, **settings,
        })  # fmt: skip
        trainer, rng = lm.trainer(*train), np.random.default_rng(0)
        spent = 0.0
        for _ in range(epochs):
            spent += cpu(trainer.train, rng.permutation(len(train[1])))
        fitted = trainer.keep()
        valid, test = (fitted.perplexity(X[:HELD_OUT], y[:HELD_OUT])
                       for X, y in held_out)  # fmt: skip
        rows.append({
            "": type(lm).__name__, "h": lm.n_hidden, "m": lm.embedding_dim,
            "parameters": fitted.n_parameters_, "K": lm.batch_size,
            "samples": lm.n_samples, "schedule": lm.learning_rate,
            "step": f"{lm.learning_rate_init:g}", "epochs": epochs,
            "CPU s": f"{spent:.1f}", "valid": f"{valid:.1f}", "test": f"{test:.1f}",
        })  # fmt: skip
    return rows


TABLES = {"speed": speed, "quality": quality, "sampled": sampled}
TITLES = {
    "speed": "Examples a second of CPU time",
    "quality": "Perplexity for CPU time",
    "sampled": "Perplexity for CPU time, by training on sampled words",
}


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--words", type=int, default=1000)
    options.add_argument("--tokens", type=int, default=100_000)
    options.add_argument("--seconds", type=float, default=6.0)
    options.add_argument("--examples", type=int, default=2048, help="to time")
    options.add_argument("--tried", type=int, nargs="+", help="rows of sampled words")
    options.add_argument("--tables", nargs="+", default=TABLES, choices=TABLES)
    args = options.parse_args()
    corpus = fetch_brown()
    for name in args.tables:
        rows = TABLES[name](corpus, args)
        report(TITLES[name], rows, named(args.json, name))


if __name__ == "__main__":
    main()
