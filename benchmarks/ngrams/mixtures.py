"""What do class models, mixtures and their weightings gain over Kneser-Ney alone?

Perplexities on the Brown corpus (the paper's section 4) and on Penn Treebank.
"recorded" is the test perplexity of the same set-up with other tools, on another
day: SRILM's Kneser-Ney, the classes of mkcls or brown-cluster, weights by EM on
the validation part. "paper" is Table 1 of Bengio et al. (2003), on its own
edition of Brown.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

from sklearn.frozen import FrozenEstimator

from common.table import parser, report
from nplm import ClassLM, KneserNeyLM, MixtureLM, UniformLM, WordClasses
from nplm.datasets import Corpus, fetch_brown, fetch_ptb

# Test perplexities by corpus and model.
RECORDED = {
    ("Brown", "KN5"): 307.29,
    ("PTB", "KN5"): 141.19,
    ("Brown", "C150 order 3"): 301.2,
    ("Brown", "C200 order 3"): 294.8,
    ("Brown", "C500 order 3"): 289.5,
    ("Brown", "KN5 + u, learned"): 299.1,
    ("Brown", "KN5 + C500 + u, learned"): 260.4,
    ("Brown", "KN5 + C150 + C200 + C500 + u, learned"): 247.3,
}
PAPER = {
    ("Brown", "KN5"): 321,
    ("Brown", "C150 order 3"): 334,
    ("Brown", "C200 order 3"): 340,
    ("Brown", "C500 order 3"): 312,
    ("Brown", "C1000 order 3"): 319,
    ("Brown", "C2000 order 3"): 326,
    ("Brown", "C500 order 4"): 312,
    ("Brown", "C500 order 5"): 312,
}


class Comparison:
    """Windows of the three parts, and the models fitted so far, by name."""

    def __init__(self, name: str, data: Corpus) -> None:
        self.name = name
        self.common = {"n_words": data.n_words, "boundary": data.boundary}
        self.parts = data.windows(4)
        self.stream = data.train
        self.fitted: dict[str, Any] = {}
        self.rows: list[dict[str, Any]] = []

    def add(self, name: str, model: Any, seconds: float = 0.0) -> None:
        """Fit, score, and note a row; `seconds` were spent on it before."""
        started = time.process_time()
        X_val, y_val = self.parts.valid
        model.fit(*self.parts.train, X_val=X_val, y_val=y_val)
        self.rows.append(
            {
                "corpus": self.name,
                "model": name,
                "valid": f"{model.perplexity(X_val, y_val):.2f}",
                "test": f"{model.perplexity(*self.parts.test):.2f}",
                "recorded": RECORDED.get((self.name, name)),
                "paper": PAPER.get((self.name, name)),
                "fit, CPU s": seconds + time.process_time() - started,
            }
        )
        self.fitted[name.removesuffix(" order 3")] = model

    def add_classes(self, n_classes: int, orders: tuple[int, ...]) -> None:
        started = time.process_time()
        classes = WordClasses(n_classes, random_state=0, **self.common)
        labels = classes.fit(self.stream).labels_
        seconds = time.process_time() - started
        for order in orders:
            model = ClassLM(order, classes=labels, **self.common)
            self.add(f"C{n_classes} order {order}", model, seconds)

    def mix(self, *names: str) -> None:
        """Mix models fitted before with the uniform distribution, u."""
        members = [(name, FrozenEstimator(self.fitted[name])) for name in names]
        for weights in ("learned", "context"):
            mixture = MixtureLM(members, weights, include_uniform=True)
            self.add(f"{' + '.join(names)} + u, {weights}", mixture)


def main() -> None:
    options = parser(__doc__)
    options.add_argument(
        "--max-classes", type=int, default=2000, help="leave out more classes than this"
    )
    given = options.parse_args()
    if given.max_classes < 150:
        options.error("--max-classes must be 150 or more: the least that is mixed.")
    rows = []
    for name, data in (("Brown", fetch_brown()), ("PTB", fetch_ptb())):
        corpus = Comparison(name, data)
        counts = (150, 200, 500, 1000, 2000) if corpus.name == "Brown" else (150, 500)
        counts = tuple(n for n in counts if n <= given.max_classes)
        corpus.add("KN5", KneserNeyLM(5, **corpus.common))
        for n in counts:
            is_brown_500 = corpus.name == "Brown" and n == 500
            corpus.add_classes(n, (3, 4, 5) if is_brown_500 else (3,))
        # u0: uniform over the words that training lacks.
        corpus.add("u0", UniformLM("unseen", n_words=corpus.common["n_words"]))
        corpus.rows.pop()
        names = [f"C{n}" for n in counts]
        corpus.mix("KN5")
        corpus.mix("KN5", names[-1] if len(names) < 3 else "C500")
        if len(names) > 3:
            corpus.mix("KN5", *names[:3])
        corpus.mix("KN5", *names)
        if corpus.name == "Brown":
            corpus.mix("KN5", *names, "u0")
        rows += corpus.rows
    report("Class models and mixtures, perplexity", rows, given.json)


if __name__ == "__main__":
    main()
