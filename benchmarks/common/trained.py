"""Well-trained networks side by side: two corpora, three seeds, a schedule that ends.

Adam for five epochs with a learning rate that falls to 0, mini-batches of 256, on one
thread. Perplexities are exact, of the first windows of the validation and the test
part; the time is the processor's, of the fit, and beside it that of what a way needs
before (classes, say).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from common.page import list_table, with_conditions
from common.table import Rows, kept
from nplm import Adam, NeuralLM
from nplm.datasets import Corpus, fetch_brown, fetch_ptb
from nplm.experiments import grouped

TEXTS: dict[str, Callable[[], Corpus]] = {
    "Penn Treebank": fetch_ptb,
    "Brown": fetch_brown,
}
SEEDS = (0, 1, 2)
N_CONTEXT = 4
HELD_OUT = 24_000  # windows
SCHEDULE: dict[str, Any] = {
    "solver": Adam(learning_rate="linear"), "learning_rate_init": 8e-3,
    "batch_size": 256, "max_iter": 5, "early_stopping": False,
}  # fmt: skip
# Weight decay: of 0.03 and 0.1 the better for a softmax, by the validation part.
ALPHA = {"ptb": 0.03, "brown": 0.1}
# What makes a network for a corpus, not fitted yet.
Way = Callable[[Corpus], Any]


def network(corpus: Corpus, **settings: Any) -> NeuralLM:
    """MLP9's shape (section 4)."""
    lm = NeuralLM(
        N_CONTEXT + 1, n_words=corpus.n_words, n_hidden=100, embedding_dim=30,
        n_distant=0, alpha=alpha_of(corpus), **SCHEDULE,
    )  # fmt: skip
    lm.set_params(**settings)
    return lm.set_params(**grouped({"direct": False, "dropout": 0.0}))


def alpha_of(corpus: Corpus) -> float:
    return ALPHA[corpus.name]


def measured(folder: Path, name: str, ways: Mapping[str, Way]) -> Rows:
    """A row for each corpus, way and seed, which a file keeps."""
    rows = []
    for text, load_corpus in TEXTS.items():
        corpus = load_corpus()
        rows += [
            {"text": text, "way": way, "seed": seed} | kept(
                folder, f"{name}, {text}, {way}, {seed}",
                partial(_fitted, ways[way], corpus, seed),
            )
            for way, seed in product(ways, SEEDS)
        ]  # fmt: skip
    return rows


def _fitted(way: Way, corpus: Corpus, seed: int) -> dict[str, Any]:
    train, *held_out = corpus.windows(N_CONTEXT)
    started = time.process_time()
    lm = way(corpus).set_params(random_state=seed)
    made = time.process_time()
    lm.fit(*train)
    ended = time.process_time()
    valid, test = (lm.perplexity(X[:HELD_OUT], y[:HELD_OUT]) for X, y in held_out)
    return {
        "parameters": lm.n_parameters_, "before": made - started,
        "CPU s": ended - made, "valid": valid, "test": test,
    }  # fmt: skip


def page(rows: Rows, what: str) -> str:
    """Table of means over the seeds, beside the first way; `what` heads the ways."""
    lines = []
    for text in TEXTS:
        same = [row for row in rows if row["text"] == text]
        ways = list(dict.fromkeys(row["way"] for row in same))
        first = _mean(same, ways[0], "test")
        for way in ways:
            tests = [row["test"] for row in same if row["way"] == way]
            beside = _mean(same, way, "test") / first - 1
            before = _mean(same, way, "before")
            lines.append([
                text, way, f"{_mean(same, way, 'parameters') / 1e6:.2f}",
                f"{_mean(same, way, 'CPU s'):.0f}"
                + (f" and {before:.0f}" if before > 0.5 else ""),
                f"{_mean(same, way, 'valid'):.1f}", f"{_mean(same, way, 'test'):.1f}",
                f"{min(tests):.1f} to {max(tests):.1f}",
                "" if way == ways[0] else f"{beside:+.1%}",
            ])  # fmt: skip
    header = ["", what, "million parameters", "CPU s", "valid", "test", "by seed", ""]
    return with_conditions(list_table("", header, lines), rows)


def _mean(rows: Rows, way: str, name: str) -> float:
    return float(np.mean([row[name] for row in rows if row["way"] == way]))
