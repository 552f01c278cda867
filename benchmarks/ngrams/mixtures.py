"""What do class models, mixtures and their weightings gain over Kneser-Ney alone?

Perplexities on the Brown corpus (the paper's section 4) and on Penn Treebank.
"paper" is Table 1 of Bengio et al. (2003), on its own
edition of Brown.

--networks adds networks that peers/run.py keeps, trained on the corpus as one stream:

    python benchmarks/ngrams/mixtures.py --corpora Brown --networks runs/brown*.nplm
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

from sklearn.frozen import FrozenEstimator

import nplm
from common.ablations import as_stream
from common.table import parser, report
from nplm import (
    ClassLM,
    KneserNeyLM,
    MixtureLM,
    NeuralLM,
    UniformLM,
    WordClasses,
)
from nplm.datasets import Corpus, fetch_brown, fetch_ptb
from nplm.experiments import TABLES

# Test perplexities of Table 1, of Brown, by model.
PAPER = {
    f"C{row.c} order {row.n}" if row.c else f"KN{row.n}": row.test
    for row in TABLES["table1"].rows
    if row.c or row.model == "Kneser-Ney back-off"
}
N_CONTEXT = 4  # of the n-gram models
Weightings = tuple[Literal["learned", "context"], ...]
CORPORA: dict[str, Callable[[], Corpus]] = {"Brown": fetch_brown, "PTB": fetch_ptb}


class Comparison:
    """Windows of the three parts, and the models fitted so far, by name."""

    def __init__(self, name: str, networks: dict[str, NeuralLM]) -> None:
        self.name, data = name, CORPORA[name]()
        self.common = {"n_words": data.n_words, "boundary": data.boundary}
        # As one stream for networks, whose first contexts of a part are not scored.
        width = max([N_CONTEXT, *(lm.n_features_in_ for lm in networks.values())])
        self.parts = (as_stream(data, width) if networks else data).windows(width)
        self.stream = data.train
        self.fitted: dict[str, Any] = dict(networks)
        self.rows: list[dict[str, Any]] = []
        for network, lm in networks.items():
            self.note(network, lm, lm.n_features_in_)

    def add(self, name: str, model: Any, seconds: float = 0.0) -> None:
        """Fit, score, and note a row; `seconds` were spent on it before."""
        mixture = isinstance(model, MixtureLM)
        n_context = self.parts.train[0].shape[1] if mixture else N_CONTEXT
        train, valid, _ = self.read(n_context)
        started = time.process_time()
        model.fit(*train, X_val=valid[0], y_val=valid[1])
        self.note(name, model, n_context, seconds + time.process_time() - started)
        self.fitted[name.removesuffix(" order 3")] = model

    def read(self, n_context: int) -> list[tuple[Any, Any]]:
        """The nearest words of each window."""
        return [(X[:, -n_context:], y) for X, y in self.parts]

    def note(
        self, name: str, model: Any, n_context: int, seconds: float | None = None
    ) -> None:
        _, valid, test = self.read(n_context)
        self.rows.append(
            {
                "corpus": self.name,
                "model": name,
                "valid": f"{model.perplexity(*valid):.2f}",
                "test": f"{model.perplexity(*test):.2f}",
                "paper": PAPER.get(name) if self.name == "Brown" else None,
                "fit, CPU s": seconds,
            }
        )

    def add_classes(self, n_classes: int, orders: tuple[int, ...]) -> None:
        started = time.process_time()
        classes = WordClasses(n_classes, random_state=0, **self.common)
        labels = classes.fit(self.stream).labels_
        seconds = time.process_time() - started
        for order in orders:
            model = ClassLM(order, classes=labels, **self.common)
            self.add(f"C{n_classes} order {order}", model, seconds)

    def mix(self, *names: str, weightings: Weightings = ("learned", "context")) -> None:
        """Mix models fitted before with the uniform distribution, u."""
        members = [(name, FrozenEstimator(self.fitted[name])) for name in names]
        for weights in weightings:
            mixture = MixtureLM(members, weights, include_uniform=True)
            self.add(f"{' + '.join(names)} + u, {weights}", mixture)


def counted(corpus: Comparison, max_classes: int) -> list[str]:
    """Add Kneser-Ney and the class models, whose names are returned."""
    counts = (150, 200, 500, 1000, 2000) if corpus.name == "Brown" else (150, 500)
    counts = tuple(n for n in counts if n <= max_classes)
    corpus.add("KN5", KneserNeyLM(5, **corpus.common))
    for n in counts:
        is_brown_500 = corpus.name == "Brown" and n == 500
        corpus.add_classes(n, (3, 4, 5) if is_brown_500 else (3,))
    # u0: uniform over the words that training lacks.
    corpus.add("u0", UniformLM("unseen", n_words=corpus.common["n_words"]))
    corpus.rows.pop()
    return [f"C{n}" for n in counts]


def main() -> None:
    options = parser(__doc__)
    options.add_argument(
        "--corpora", nargs="*", choices=list(CORPORA), default=list(CORPORA)
    )
    options.add_argument(
        "--max-classes", type=int, default=2000, help="leave out more classes than this"
    )
    options.add_argument(
        "--networks", nargs="*", type=Path, default=[], help="of the one corpus"
    )
    given = options.parse_args()
    if given.max_classes < 150:
        options.error("--max-classes must be 150 or more: the least that is mixed.")
    if given.networks and len(given.corpora) != 1:
        options.error("--networks are those of one corpus: name it with --corpora.")
    networks = {f"network {i}": nplm.load(p) for i, p in enumerate(given.networks, 1)}
    rows = []
    for name in given.corpora:
        corpus = Comparison(name, networks)
        classes = counted(corpus, given.max_classes)
        if networks:
            corpus.mix(*networks, "KN5", weightings=("learned",))
            corpus.mix(*networks, "KN5", *classes, "u0", weightings=("context",))
        else:
            corpus.mix("KN5")
            corpus.mix("KN5", classes[-1] if len(classes) < 3 else "C500")
            if len(classes) > 3:
                corpus.mix("KN5", *classes[:3])
            corpus.mix("KN5", *classes)
            if corpus.name == "Brown":
                corpus.mix("KN5", *classes, "u0")
        rows += corpus.rows
    report("Class models and mixtures, perplexity", rows, given.json)


if __name__ == "__main__":
    main()
