"""What does a short-list save, and what does it cost? And scores of a few candidates?

MLP9 of the paper's Table 1 on Brown, with all words as output units and with the most
frequent ones (`ShortlistLM`, with a Kneser-Ney model of order 5):

- perplexity: as many epochs each; of the test part, alone and mixed half and half with
  that Kneser-Ney model;
- speed: one epoch of fewer windows, and scoring. Windows are counted whether or not the
  network trains on them.

candidates: the scores of some words after each context, beside those of all words. How
long they take does not depend on what the network has learned.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import numpy as np
from sklearn.frozen import FrozenEstimator

from common.networks import NETWORKS
from common.process import cpu_seconds
from common.table import named, parser, report
from nplm import KneserNeyLM, MixtureLM, ShortlistLM
from nplm.datasets import Corpus, fetch_brown

MLP9 = NETWORKS["MLP9"]


def model(n: int | None, backoff: Any, **settings: Any) -> Any:
    """MLP9 with a short-list of n words, or with all words."""
    network = MLP9.estimator(batch_size=128, early_stopping=False, **settings)
    return network if n is None else ShortlistLM(network, backoff, n_shortlist=n)


def perplexities(corpus: Corpus, lists: list[int], **settings: Any) -> list[Any]:
    """Rows of the first table."""
    (X, y), _, test = corpus.windows(MLP9.n - 1)
    kn = KneserNeyLM(MLP9.n, n_words=corpus.n_words).fit(X, y)
    backoff = FrozenEstimator(kn)
    rows = []
    for n in (*lists, None):
        lm = model(n, backoff, **settings)
        seconds = cpu_seconds(lm.fit, X, y)
        mixture = MixtureLM([("network", FrozenEstimator(lm)), ("kn", backoff)])
        mixture.fit(X[:1], y[:1])
        words = np.arange(corpus.n_words) if n is None else lm.words_
        rows.append(
            {
                "output units": len(words),
                "of the tokens": f"{np.isin(y, words).mean():.1%}",
                "fit, CPU s": seconds,
                "windows/s": len(y) * settings["max_iter"] / seconds,
                "test": f"{lm.perplexity(*test):.1f}",
                "mixed with KN5": f"{mixture.perplexity(*test):.1f}",
                "KN5": f"{kn.perplexity(*test):.1f}",
            }
        )
    return rows


def speed(corpus: Corpus, lists: list[int], n: int, **settings: Any) -> list[Any]:
    """Rows of the second table."""
    (X, y), _, (X_test, y_test) = corpus.windows(MLP9.n - 1)
    backoff = FrozenEstimator(KneserNeyLM(MLP9.n, n_words=corpus.n_words).fit(X, y))
    X, y, X_test, y_test = X[:n], y[:n], X_test[:n], y_test[:n]
    rows = []
    for size in (*lists, None):
        lm = model(size, backoff, **settings | {"max_iter": 1})
        train = n / cpu_seconds(lm.fit, X, y, times=2)
        lm.log_prob(X_test[:1], y_test[:1])  # the masses of the list are found
        rows.append(
            {
                "output units": corpus.n_words if size is None else len(lm.words_),
                "trained, windows/s": train,
                "scored, windows/s": n
                / cpu_seconds(lm.log_prob, X_test, y_test, times=2),
            }
        )
    return rows


def candidates(corpus: Corpus, n: int) -> list[Any]:
    """Rows of the third table, microseconds a context."""
    (X, y), _, (X_test, _) = corpus.windows(MLP9.n - 1)
    X_test = X_test[:n]
    few = 10_000  # windows to train on: enough to have a model
    models = {
        "MLP9": MLP9.estimator(batch_size=512, max_iter=1).fit(X[:few], y[:few]),
        "KN5": KneserNeyLM(MLP9.n, n_words=corpus.n_words).fit(X, y),
    }
    rng = np.random.default_rng(0)
    rows = []
    for name, lm in models.items():
        all_words = cpu_seconds(lm.predict_log_proba, X_test, times=3)
        for k in (1, 10, 100, 1000):
            words = rng.integers(0, corpus.n_words, (n, k), dtype=np.int32)
            score = partial(lm.candidate_log_prob, X_test, words)
            took = {
                "normalised": cpu_seconds(score, times=3),
                "not normalised": cpu_seconds(partial(score, normalize=False), times=3),
                "all words": all_words,
            }
            times = {way: 1e6 * seconds / n for way, seconds in took.items()}
            rows.append({"model": name, "candidates": k} | times)
    return rows


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--lists", type=int, nargs="*", default=[2000, 5000])
    options.add_argument("--max-iter", type=int, default=3, help="epochs")
    options.add_argument("--solver", default="adam")
    options.add_argument("--learning-rate-init", type=float, default=1e-3)
    options.add_argument("--precision", default="float32")
    options.add_argument("--windows", type=int, default=20_000, help="of the speed")
    options.add_argument("--part", choices=["perplexity", "speed", "candidates"])
    given = options.parse_args()
    corpus = fetch_brown()
    settings = {
        name: getattr(given, name)
        for name in ("max_iter", "solver", "learning_rate_init", "precision")
    }
    tables = {
        "perplexity": lambda: perplexities(corpus, given.lists, **settings),
        "speed": lambda: speed(corpus, given.lists, given.windows, **settings),
        "candidates": lambda: candidates(corpus, given.windows // 10),
    }
    for part in [given.part] if given.part else tables:
        report(f"Short-lists: {part}", tables[part](), named(given.json, part))


if __name__ == "__main__":
    main()
