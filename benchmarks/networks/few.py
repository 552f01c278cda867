"""What should a fit of few windows do: hold some out, or learn from all?

Fits the default of NeuralLM to the beginning of three texts ("events" are the parts of
speech of Brown's words; words that the beginning has once share an id). The windows
that it holds out end a fit, or its schedule, or a number of epochs. The figures are
perplexities of the next 10,000 windows, means of three seeds. "unigrams" are counts of
words plus one.

    python benchmarks/networks/few.py --page    # writes docs/measured/few.inc
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from common.table import Rows, conditions, list_table, machine, parser, report
from networks.default import N_CONTEXT, brown_stream
from nplm import Adam, NeuralLM, windows
from nplm.datasets import load_python_docs

PAGE = Path(__file__).parents[2] / "docs" / "measured" / "few.inc"
SIZES = [30, 100, 300, 1000, 3000, 10_000]
N_TEST = 10_000
RULES: dict[str, dict[str, Any]] = {
    "a tenth held out": {"early_stopping": True},
    "a fifth": {"early_stopping": True, "validation_fraction": 0.2},
    "all windows": {"early_stopping": False},
    "10 epochs": {
        "early_stopping": False, "max_iter": 10, "solver": Adam(learning_rate="linear"),
    },
}  # fmt: skip
SEEDS = (0, 1, 2)


def texts() -> Iterator[tuple[str, list[Any]]]:
    """Each with tokens enough for the largest size."""
    n = max(SIZES) + N_TEST
    tokens = [token for token, _ in zip(brown_stream(), range(n))]
    yield "Brown", [token.rpartition("/")[0] for token in tokens]
    yield "events", [token.rpartition("/")[2] for token in tokens]
    yield "python-docs", load_python_docs().train[:n].tolist()


def measured(text: str, tokens: list[Any], n: int) -> Iterator[dict[str, Any]]:
    """Fit the first n tokens by each rule."""
    counts = Counter(tokens[:n])
    least = 1 if text == "events" else 2
    words = [word for word, count in counts.most_common() if count >= least]
    numbers = {word: i for i, word in enumerate(words)}
    ids = np.array([numbers.get(word, len(words)) for word in tokens[: n + N_TEST]])
    X, y = windows(ids[:n], N_CONTEXT)
    X_test, y_test = windows(ids[n:], N_CONTEXT, history=ids[:n])
    unigrams = np.bincount(y, minlength=len(words) + 1) + 1
    guess = np.exp(-np.mean(np.log(unigrams[y_test] / unigrams.sum())))
    for (rule, settings), seed in product(RULES.items(), SEEDS):
        began = time.process_time()
        lm = NeuralLM(n_words=len(words) + 1, random_state=seed, **settings).fit(X, y)
        yield {
            "text": text, "tokens": n, "|V|": len(words) + 1, "unigrams": guess,
            "rule": rule, "seed": seed, "epochs": lm.n_iter_,
            "test": lm.perplexity(X_test, y_test),
            "CPU s": time.process_time() - began, "machines": [machine()],
        }  # fmt: skip


def page(rows: Rows) -> str:
    """A table of docs/measured/default.rst: a line a text and size."""
    header = ["text", "tokens", ":math:`|V|`", "unigrams", *RULES]
    lines = []
    for row in rows[:: len(RULES) * len(SEEDS)]:
        shared = {name: row[name] for name in ("text", "tokens")}
        lines.append([
            row["text"], f"{row['tokens']:,}", f"{row['|V|']:,}",
            f"{row['unigrams']:.1f}",
            *(_mean([r for r in rows if (shared | {"rule": rule}).items() <= r.items()])
              for rule in RULES),
        ])  # fmt: skip
    title = "Test perplexities after few tokens, and the epochs that were run"
    return list_table(title, header, lines) + "\n" + conditions(rows) + "\n"


def _mean(rows: Rows) -> str:
    test, epochs = (np.mean([row[name] for row in rows]) for name in ("test", "epochs"))
    return f"{test:.1f} ({epochs:.0f})"


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--page", action="store_true", help=f"write {PAGE.name}")
    args = options.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows: Rows = []
    for text, tokens in texts():
        for n in SIZES:
            rows += measured(text, tokens, n)
    report("Few windows", rows, args.json)
    if args.page:
        PAGE.write_text(page(rows))


if __name__ == "__main__":
    main()
