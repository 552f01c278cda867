"""Which calls are slower in one version of nplm than in another?

    python benchmarks/speed/versions.py BASE CHANGED [--limit 1.25] [--json FILE]

BASE and CHANGED are Python interpreters, each of a virtual environment where one of the
versions is installed (``python -m pip install .``, not ``-e``). Each measures the same
calls on the same made-up text, in turn and several times. A row has the least CPU time
of each version, of one thread, and their ratio, which another machine or load changes
little. The script fails if a ratio is above the limit.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from common.process import cpu_seconds, fresh, serve
from common.table import Rows, parser, report
from nplm import Importance, KneserNeyLM, NeuralLM, TextLM, windows

N_WORDS, N_CONTEXT = 2000, 4
NETWORK: dict[str, Any] = {
    "n_words": N_WORDS, "n_hidden": 64, "embedding_dim": 32, "batch_size": 64,
    "max_iter": 1, "early_stopping": False, "random_state": 0,
}  # fmt: skip


def calls(n_windows: int) -> dict[str, Callable[[], object]]:
    """The calls that are measured: fits, and scores of models that are fitted here."""
    probability = 1 / np.arange(1, N_WORDS)
    ids = 1 + np.random.default_rng(0).choice(
        N_WORDS - 1, n_windows, p=probability / probability.sum()
    )
    ids[::20] = 0  # the end of a sentence
    texts = [
        " ".join(f"w{i}" for i in own) for own in np.array_split(ids, n_windows // 20)
    ]
    X, y = windows(ids, N_CONTEXT)
    part = X[::10], y[::10]

    def kneser_ney() -> KneserNeyLM:
        return KneserNeyLM(discount_fallback=(0.5, 1.0, 1.5), n_words=N_WORDS)

    def network(loss: Any) -> NeuralLM:
        return NeuralLM(loss=loss, **NETWORK)

    ngrams, neural = kneser_ney().fit(X, y), network("exact").fit(*part)
    lm = TextLM(kneser_ney().set_params(n_words=None), N_CONTEXT).fit(texts)
    scorer = lm.scorer()
    return {
        "Kneser-Ney: fit": lambda: kneser_ney().fit(X, y),
        "Kneser-Ney: log_prob": lambda: ngrams.log_prob(X, y),
        "TextLM: score of texts": lambda: [scorer.score(text) for text in texts],
        "network: fit, exact": lambda: network("exact").fit(*part),
        "network: fit, noise samples": lambda: network(Importance(64)).fit(*part),
        "network: log_prob": lambda: neural.log_prob(*part),
    }


def measured(n_windows: int) -> dict[str, float]:
    """The CPU seconds of each call in this process, the least of three."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    seconds = {}
    for name, call in calls(n_windows).items():
        seconds[name] = cpu_seconds(call, times=3)
    return seconds


def compared(base: str, changed: str, rounds: int, n_windows: int) -> Rows:
    """A row of each call."""
    least: dict[str, dict[str, float]] = {base: {}, changed: {}}
    for _ in range(rounds):
        for python, known in least.items():
            found = fresh(__file__, "measured", python, n_windows=n_windows)
            for name, seconds in found.items():
                known[name] = min(seconds, known.get(name, seconds))
    return [
        {
            "call": name, "base, ms": 1e3 * least[base][name],
            "changed, ms": 1e3 * seconds, "ratio": seconds / least[base][name],
        }
        for name, seconds in least[changed].items()
    ]  # fmt: skip


def main() -> None:
    options = parser(__doc__)
    options.add_argument("base", nargs="?")
    options.add_argument("changed", nargs="?")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--windows", type=int, default=40_000, help="of the text")
    options.add_argument("--limit", type=float, default=1.25)
    options.add_argument("--child", help="of the script itself")
    args = options.parse_args()
    if args.child:
        serve(args.child, {"measured": measured})
        return
    if args.changed is None or args.base == args.changed:
        options.error("name two interpreters: of the base, and of the changed version.")
    rows = compared(args.base, args.changed, args.rounds, args.windows)
    report("CPU time of one thread", rows, args.json)
    slower = [row["call"] for row in rows if row["ratio"] > args.limit]
    if slower:
        raise SystemExit(f"slower by more than {args.limit}: {', '.join(slower)}.")


if __name__ == "__main__":
    main()
