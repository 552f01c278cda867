"""How much faster does NeuralLM learn from sampled words?

MLP9's shape (section 4) on Brown, or on the Wiki protocol's tokens with a larger
vocabulary. One thread trains with each loss, in turn, and the held-out perplexity (of
the first --held-out windows, exact) is written down at the end of every epoch, of all
training windows or of the first --train. The time is the processor's and that of
training alone: scoring is not in it.

A row for each: the examples a second, the perplexity reached, and the seconds to come
within 2% of the lowest perplexity of the exact losses (-, if it did not). --rate only
trains for a moment: examples a second, for vocabularies whose exact training would take
hours.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from _table import parser, report
from _wiki import N_TRAIN, wiki
from numpy.typing import NDArray

from nplm import NeuralLM, windows
from nplm.datasets import fetch_brown

Windows = tuple[NDArray[np.int32], NDArray[np.int32]]
N = 5

RUNS: list[dict[str, Any]] = [
    {"loss": "exact", "batch_size": 1},
    {"loss": "exact", "batch_size": 128},
    {"loss": "importance", "batch_size": 32, "n_samples": 128},
    {"loss": "importance", "batch_size": 128, "n_samples": 128},
    {"loss": "importance", "batch_size": 128, "n_samples": 512},
    {"loss": "nce", "batch_size": 128, "n_samples": 128},
    {"loss": "nce", "batch_size": 128, "n_samples": 512},
]


def brown() -> tuple[Windows, Windows, int]:
    """Training and held-out windows, and |V|."""
    corpus = fetch_brown()
    cut = corpus.windows(N - 1)
    return cut.train, cut.valid, corpus.n_words


def of_wiki(n_words: int) -> tuple[Windows, Windows, int]:
    """The same of the Wiki protocol, with the most frequent words."""
    train, valid, _, words = wiki(n_words)
    data = windows(train, N - 1), windows(valid, N - 1, history=train)
    return *data, len(words)


def learn(
    settings: dict[str, Any],
    data: Windows,
    held_out: Windows,
    n_words: int,
    epochs: int,
) -> tuple[float, list[tuple[float, float]]]:
    """Examples a second, and seconds and perplexity after each epoch."""
    lm = NeuralLM(N, n_words=n_words, random_state=0, **settings)
    trainer = lm.trainer(*data)
    rng = np.random.default_rng(0)
    spent, reached = 0.0, []
    for _ in range(epochs):
        order = rng.permutation(len(data[1]))
        started = time.process_time()
        trainer.train(order)
        spent += time.process_time() - started
        reached.append((spent, trainer.keep().perplexity(*held_out)))
    return epochs * len(data[1]) / spent, reached


def rate(
    settings: dict[str, Any], data: Windows, n_words: int, seconds: float
) -> float:
    """Examples a second, in the best of three parts of a short training."""
    lm = NeuralLM(N, n_words=n_words, random_state=0, **settings)
    trainer = lm.trainer(*data)
    order = np.random.default_rng(0).permutation(len(data[1]))
    n, best, done = 4 * settings["batch_size"], 0.0, 0.0
    while done < seconds:
        started = time.process_time()
        trainer.train(order[:n])
        took = time.process_time() - started
        best, done = max(best, n / took), done + took
        n = min(len(order), 2 * n)
    return best


def main() -> None:
    parse = parser(__doc__ or "")
    parse.add_argument("--corpus", choices=["brown", "wiki"], default="brown")
    parse.add_argument("--n-words", type=int, default=100_000, help="|V| of wiki")
    parse.add_argument("--train", type=int, default=N_TRAIN, help="training windows")
    parse.add_argument("--held-out", type=int, default=40_000)
    parse.add_argument("--epochs", type=int, default=4)
    parse.add_argument("--runs", type=int, nargs="+", help="of the list, from 0")
    parse.add_argument("--rate", type=float, help="seconds of each: no perplexities")
    args = parse.parse_args()
    (X, y), (X_val, y_val), n_words = (
        brown() if args.corpus == "brown" else of_wiki(args.n_words)
    )
    data = X[: args.train], y[: args.train]
    held_out = X_val[: args.held_out], y_val[: args.held_out]
    runs = RUNS if args.runs is None else [RUNS[i] for i in args.runs]
    rows, all_reached = [], []
    for settings in runs:
        row = {"loss": "", "batch_size": 0, "n_samples": None, **settings}
        if args.rate:
            row["examples/s"] = rate(settings, data, n_words, args.rate)
        else:
            row["examples/s"], reached = learn(
                settings, data, held_out, n_words, args.epochs
            )
            row["perplexity"] = reached[-1][1]
            row["seconds"] = reached[-1][0]
            all_reached.append(reached)
        rows.append(row)
    exact = [
        reached[-1][1]
        for row, reached in zip(rows, all_reached)
        if row["loss"] == "exact"
    ]
    for row, reached in zip(rows, all_reached):
        near = [s for s, p in reached if exact and p <= 1.02 * min(exact)]
        row["seconds to 2%"] = near[0] if near else None
    report(
        f"{args.corpus}, |V| = {n_words:,}, {len(data[1]):,} windows", rows, args.json
    )


if __name__ == "__main__":
    main()
