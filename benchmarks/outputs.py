"""What do outputs other than the full softmax save, and what do they cost?

`speed`: examples a second in training and in scoring, and the memory of what is
trained, as the vocabulary grows (words as frequent as Zipf has them; MLP9's shape).
The full softmax is timed at K = 1, the paper's algorithm, and in mini-batches.

`quality`: perplexity on Brown after equally many epochs, with classes and trees of
several kinds.

    python benchmarks/outputs.py speed --words 17907 100000 1000000
    python benchmarks/outputs.py quality --epochs 3
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from _networks import NETWORKS, Windows, random_windows
from _table import parser, report

from nplm import NeuralLM, WordClasses, word_tree
from nplm.datasets import fetch_brown

OUTPUTS = ["softmax", "classes", "tree"]


def rate(work: Callable[[int], Any], seconds: float) -> float:
    """Examples a second of CPU time: calls of more and more, until one is long."""
    n = 64
    while True:
        began = time.process_time()
        work(n)
        took = time.process_time() - began
        if took > seconds:
            return n / took
        n = int(n * min(16.0, 1.2 * seconds / max(took, 1e-4)))


def rates(lm: NeuralLM, data: Windows, seconds: float) -> tuple[float, float]:
    """Examples a second that it trains on, and that it scores."""
    X, y = data
    made = lm.trainer(X, y)
    rows = np.random.default_rng(0).permutation(len(y))
    made.train(rows[:256])
    training = rate(lambda n: made.train(np.resize(rows, n)), seconds)

    def score(n: int) -> None:
        for start in range(0, n, len(y)):
            lm.log_prob(X[: n - start], y[: n - start])

    made.keep()
    return training, rate(score, seconds)


def speed(args: Any) -> Iterator[dict[str, Any]]:
    """One row for each vocabulary, output and size of mini-batches."""
    for n_words in args.words:
        shape = replace(NETWORKS["MLP9"], n_words=n_words)
        data, exact = random_windows(400_000, shape), None
        for output, K in product(args.outputs, args.batch):
            lm = shape.estimator(learning_rate_init=1e-3, batch_size=K, output=output)
            training, scoring = rates(lm, data, args.seconds)
            exact = training if exact is None else exact
            row = {
                "|V|": n_words, "output": output, "K": K, "trains/s": training,
                "times the first": training / exact, "scores/s": scoring,
                "parameters MB": 4 * lm.n_parameters_ / 1e6,
            }  # fmt: skip
            print(row, file=sys.stderr)
            yield row


def quality(args: Any) -> Iterator[dict[str, Any]]:
    """One row for each output and way to group the words."""
    corpus = fetch_brown()
    V = corpus.n_words
    train, valid, test = corpus.windows(4)
    n = round(V**0.5)
    began = time.process_time()
    found = WordClasses(n, n_words=V, random_state=0).fit(corpus.train)
    finding = time.process_time() - began
    tree = word_tree(corpus.train, found)
    chance = np.random.default_rng(0).integers(0, n, V)
    kinds: list[tuple[str, str, dict[str, Any]]] = [
        ("softmax", "", {}),
        ("classes", f"{n} of WordClasses", {"word_classes": found}),
        ("classes", "by frequency", {}),
        ("classes", f"{n} at random", {"word_classes": chance}),
        ("tree", f"word_tree of {n} classes", {"word_tree": tree}),
        ("tree", "Huffman's", {}),
    ]
    for output, kind, given in kinds:
        if output not in args.outputs:
            continue
        lm = NeuralLM(
            5, n_words=V, batch_size=args.batch[-1], max_iter=args.epochs,
            random_state=0, output=output, **given,
        )  # fmt: skip
        began = time.process_time()
        lm.fit(*train, X_val=valid[0], y_val=valid[1])
        took = time.process_time() - began
        yield {
            "output": output, "groups": kind, "epochs": args.epochs,
            "valid": lm.perplexity(*valid), "test": lm.perplexity(*test),
            "CPU s": took, "for the classes": finding if "of " in kind else 0.0,
        }  # fmt: skip


TABLES = {"speed": speed, "quality": quality}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("table", choices=TABLES)
    options.add_argument("--outputs", nargs="+", default=OUTPUTS, choices=OUTPUTS)
    options.add_argument("--words", nargs="+", type=int, default=[17_907])
    options.add_argument("--batch", nargs="+", type=int, default=[1, 128])
    options.add_argument("--seconds", type=float, default=2.0, help="a measurement")
    options.add_argument("--epochs", type=int, default=3)
    args = options.parse_args()
    report(f"Outputs: {args.table}", list(TABLES[args.table](args)), args.json)


if __name__ == "__main__":
    main()
