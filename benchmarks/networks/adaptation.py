"""What does a model gain by adapting to the text that it reads?

Perplexities of Kneser-Ney of order 5, a network, and their mixture, alone and with each
kind of adaptation: a cache of words and pairs (`CacheLM`), the words that followed
similar hidden states (`NeuralCacheLM`), and training on what was read
(`adapted_log_prob`). Weights are learned, and theta and the step chosen, on the
validation part. The corpora are Penn Treebank and Brown, each as one stream: sentences
do not empty a cache.

    python benchmarks/networks/adaptation.py --folder runs --epochs 3
    python benchmarks/networks/adaptation.py --corpora PTB \\
        --network runs/ptb-network-10.nplm

Networks are kept in --folder. Without --epochs the network is the default, which
validation stops; with it, its learning rate falls linearly to 0 in so many epochs.
--network reads one, such as peers/run.py keeps, trained on the same stream.
--no-network leaves out all that needs one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

import nplm
from common.ablations import as_stream
from common.table import Rows, parser, report
from nplm import (
    Adam,
    CacheLM,
    KneserNeyLM,
    NeuralCacheLM,
    NeuralLM,
    adapted_log_prob,
)
from nplm.datasets import Corpus, fetch_brown, fetch_ptb

CORPORA: dict[str, Callable[[], Corpus]] = {"PTB": fetch_ptb, "Brown": fetch_brown}
N_CONTEXT = 5  # of the network
LENGTH = 500
THETAS = (0.03, 0.06, 0.1, 0.2, 0.3, 1.0)
STEPS = (5e-4, 1e-3, 2e-3, 4e-3)
CHOICE = 20_000  # validation windows on which the step is chosen
EM_STEPS = 200
Windows = tuple[NDArray[np.int32], NDArray[np.int32]]
Member = tuple[NDArray[np.float64], NDArray[np.float64]]  # of valid and test


def mixed(members: list[NDArray[np.float64]], steps: int = EM_STEPS) -> Any:
    """Weights by EM for the probabilities of the members."""
    proba = np.stack(members, axis=1)
    weights = np.full(len(members), 1 / len(members))
    for _ in range(steps):
        joint = proba * weights
        weights = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0)
    return weights


def perplexity(members: list[NDArray[np.float64]], weights: NDArray[Any]) -> float:
    return float(np.exp(-np.log(np.stack(members, axis=1) @ weights).mean()))


class Text:
    """A corpus as one stream, and the probabilities of its words by each member."""

    def __init__(self, name: str) -> None:
        self.name, self.corpus = name, CORPORA[name]()
        self.members: dict[str, Member] = {}
        self.seconds: dict[str, float] = {}

    def parts(self, n_context: int) -> Any:
        """Windows of training, validation and test."""
        return as_stream(self.corpus, n_context).windows(n_context)

    def add(
        self, name: str, log_prob: Callable[[Windows], NDArray[Any]], n_context: int
    ) -> None:
        """Score both parts; the seconds are those of the test part."""
        _, valid, test = self.parts(n_context)
        before = np.exp(log_prob(valid))
        began = time.process_time()
        self.members[name] = before, np.exp(log_prob(test))
        self.seconds[name] = time.process_time() - began

    def row(self, *names: str) -> dict[str, Any]:
        valid, test = zip(*(self.members[name] for name in names))
        weights = mixed(list(valid))
        return {
            "corpus": self.name,
            "model": " + ".join(names),
            "valid": f"{perplexity(list(valid), weights):.2f}",
            "test": f"{perplexity(list(test), weights):.2f}",
            "weights": " ".join(f"{w:.2f}" for w in weights),
            "scoring, CPU s": sum(self.seconds[name] for name in names),
        }


def add_counts(text: Text) -> Rows:
    """Kneser-Ney, and caches of several kinds beside it."""
    corpus = text.corpus
    size = {"n_words": corpus.n_words}
    kn = KneserNeyLM(5, boundary=corpus.boundary, **size).fit(*text.parts(4).train)
    text.add("KN5", lambda part: kn.log_prob(*part), 4)
    rows = [text.row("KN5")]
    for name, length, params in [
        ("unigram cache of 200", 200, {"half_life": None, "bigram_prior": None}),
        ("decayed unigram cache", LENGTH, {"bigram_prior": None}),
        ("cache", LENGTH, {}),
    ]:
        cache = CacheLM(**params, **size).fit(*text.parts(length).train)
        text.add(name, lambda part, cache=cache: cache.log_prob(*part), length)
        rows.append(text.row("KN5", name))
    return rows


def trained(text: Text, folder: Path, epochs: int | None) -> NeuralLM:
    """The network, of the folder if it is there."""
    path = folder / f"{text.name}-{epochs or 'default'}.nplm"
    if path.exists():
        return nplm.load(path)
    lm = NeuralLM(n_words=text.corpus.n_words, random_state=0, verbose=1)
    train, valid, _ = text.parts(N_CONTEXT)
    if epochs is None:
        lm.fit(*train, X_val=valid[0], y_val=valid[1])
    else:
        lm.set_params(
            solver=Adam(learning_rate="linear"), max_iter=epochs, early_stopping=False
        )
        lm.fit(*train)
    nplm.save(lm, path)
    return lm


def add_network(text: Text, lm: NeuralLM) -> Rows:
    """The network, its own cache, and its adaptation by gradient."""
    n_context = max(lm.order_ - 1, lm.n_distant, lm.n_memory)
    text.add("network", lambda part: lm.log_prob(*part), n_context)
    rows = [text.row("network"), text.row("network", "cache")]
    width = LENGTH + n_context
    frozen = NeuralCacheLM(FrozenEstimator(lm), n_words=text.corpus.n_words)
    X, y = text.parts(width).valid
    frozen.fit(X[:1], y[:1])  # learns nothing

    def behind(theta: float) -> float:
        part = slice(0, CHOICE)
        own = np.exp(frozen.set_params(theta=theta).log_prob(X[part], y[part]))
        members = [text.members["network"][0][part], own]
        return perplexity(members, mixed(members))

    theta = min(THETAS, key=behind)
    frozen.set_params(theta=theta)
    text.add("neural cache", lambda part: frozen.log_prob(*part), width)
    rows.append(text.row("network", "neural cache") | {"chosen": f"theta {theta}"})
    X, y = text.parts(n_context).valid

    def loss(step: float) -> float:
        found = adapted_log_prob(lm, X[:CHOICE], y[:CHOICE], learning_rate=step)
        return -float(found.mean())

    step = min(STEPS, key=loss)
    text.add(
        "adapted network",
        lambda part: adapted_log_prob(lm, *part, learning_rate=step),
        n_context,
    )
    rows.append(text.row("adapted network") | {"chosen": f"step {step}"})
    rows.append(text.row("adapted network", "cache"))
    rows.append(text.row("adapted network", "neural cache"))
    rows.append(text.row("KN5", "network"))
    rows.append(text.row("KN5", "network", "cache"))
    rows.append(text.row("KN5", "network", "cache", "neural cache"))
    rows.append(text.row("KN5", "adapted network", "cache", "neural cache"))
    return rows


def main() -> None:
    options = parser(__doc__)
    options.add_argument(
        "--corpora", nargs="*", choices=list(CORPORA), default=list(CORPORA)
    )
    options.add_argument("--folder", type=Path, default=Path("runs"))
    options.add_argument("--epochs", type=int)
    options.add_argument("--network", type=Path, help="of the one corpus")
    options.add_argument("--no-network", action="store_true")
    args = options.parse_args()
    if args.network and len(args.corpora) != 1:
        options.error("--network is that of one corpus: name it with --corpora")
    args.folder.mkdir(parents=True, exist_ok=True)
    rows: Rows = []
    for name in args.corpora:
        text = Text(name)
        rows += add_counts(text)
        if args.network:
            rows += add_network(text, nplm.load(args.network))
        elif not args.no_network:
            rows += add_network(text, trained(text, args.folder, args.epochs))
    report("Perplexity with adaptation", rows, args.json)


if __name__ == "__main__":
    main()
