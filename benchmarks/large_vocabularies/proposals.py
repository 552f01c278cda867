"""How much better than by the unigrams could words be drawn, to train on samples?

Bengio and Senecal (2008) draw from an n-gram model that follows the network. A
mini-batch shares its words here, so one distribution serves all its contexts: what each
proposal is worth is told in effective samples, by what a network of MLP9's shape says
after two epochs of Brown, for mini-batches of training windows. The effective samples
of a draw are one over the relative variance of the sum that it estimates,
exact, nothing is drawn.

Bigrams are half of the words by the unigrams, and half by the likeliest followers of
the last words of the contexts, in proportion to the root mean square of their
probabilities over the mini-batch, which leaves the least variance: as counted, or as
the network has them on average after each last word, in other windows. The best there
is knows the network's probabilities for these very contexts.

--page writes docs/measured/proposals.inc.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import numpy as np
from numpy.typing import NDArray

from common.networks import paper_lm
from common.table import Rows, list_table, parser, report
from nplm import NeuralLM
from nplm.datasets import Corpus, fetch_brown

PAGE = Path(__file__).parents[2] / "docs" / "measured" / "proposals.inc"
DRAWS = (32, 64, 128, 256)
K, BATCHES, FOLLOWERS = 128, 8, 50
ELSEWHERE = 20  # windows with the same last word, of which the network's mean is taken
Array = NDArray[np.float64]


def trained(corpus: Corpus) -> NeuralLM:
    lm = paper_lm(
        order=5, n_words=corpus.n_words, loss="importance", n_noise=128,
        batch_size=K, learning_rate="linear", learning_rate_init=8e-3, max_iter=2,
        early_stopping=False, random_state=0,
    )  # fmt: skip
    return lm.fit(*corpus.windows(4).train)


def chances(q: Array, n: int) -> Array:
    """The probability that each word is drawn: min(1, c q), which sum to n."""
    certain = np.zeros(len(q), bool)
    while True:
        rest = n - certain.sum()
        pi = np.where(certain, 1.0, rest * q / q[~certain].sum())
        if not (pi > 1).any():
            return pi
        certain |= pi > 1


def relative_variance(P: Array, q: Array, n: int) -> float:
    """The variance of the sums of probabilities, estimated by n words drawn by q."""
    pi = chances(q, n)
    return float((P**2 @ ((1 - pi) / pi)).mean())


def likeliest(p: Array) -> Array:
    """The largest numbers of a row, the others 0."""
    least = np.partition(p, -FOLLOWERS)[-FOLLOWERS]
    return np.where(p >= least, p, 0)


def proposals(
    lm: NeuralLM, corpus: Corpus, rng: np.random.Generator
) -> Iterator[tuple[Array, dict[str, Array]]]:
    """Probabilities of a mini-batch, and what words could be drawn by."""
    X, y = corpus.windows(4).train
    unigrams = np.bincount(y, minlength=corpus.n_words) + 1.0
    unigrams /= unigrams.sum()
    smooth = unigrams**0.75
    by_last = np.argsort(X[:, -1], kind="stable")
    starts = np.searchsorted(X[by_last, -1], np.arange(corpus.n_words + 1))

    def among(rows: Array) -> Array:
        """Half by the unigrams, half by these, the least variance for all rows."""
        q = np.sqrt((rows**2).mean(axis=0))
        return unigrams / 2 + q / q.sum() / 2

    for _ in range(BATCHES):
        batch = rng.choice(len(y), K, replace=False)
        P = lm.predict_proba(X[batch]).astype(np.float64)
        own = P.copy()
        own[np.arange(K), y[batch]] = 0  # the next word is never left to chance
        counted, meant = {}, {}
        for last in np.unique(X[batch, -1]):
            after = by_last[starts[last] : starts[last + 1]]
            counts = np.bincount(y[after], minlength=corpus.n_words)
            counted[last] = likeliest(counts / len(after))
            others = np.setdiff1d(after, batch)
            if len(others):  # else what was counted has to do
                some = rng.choice(others, min(ELSEWHERE, len(others)), replace=False)
                meant[last] = likeliest(lm.predict_proba(X[some]).mean(axis=0))
        lasts = X[batch, -1]
        yield (
            own,
            {
                "unigrams": unigrams,
                "unigrams to the power of 0.75": smooth / smooth.sum(),
                "bigrams, as counted": among(np.array([counted[w] for w in lasts])),
                "bigrams, the mean of what the network says": among(
                    np.array([meant.get(w, counted[w]) for w in lasts])
                ),
                "the best there is for these contexts": np.sqrt((own**2).mean(axis=0))
                + 1e-12,
            },
        )


def measure(corpus: Corpus) -> Rows:
    lm, rng = trained(corpus), np.random.default_rng(0)
    sums: dict[str, dict[int, float]] = {}
    for P, drawn_by in proposals(lm, corpus, rng):
        for name, q in drawn_by.items():
            own = sums.setdefault(name, dict.fromkeys(DRAWS, 0.0))
            for n in DRAWS:
                own[n] += relative_variance(P, q, n) / BATCHES
    return [
        {"words drawn by": name} | {str(n): 1 / own[n] for n in DRAWS}
        for name, own in sums.items()
    ]


def page(rows: Rows) -> str:
    lines: list[list[Any]] = [
        [row["words drawn by"], *(f"{row[str(n)]:.1f}" for n in DRAWS)] for row in rows
    ]
    return list_table("", list(rows[0]), lines)


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--page", action="store_true", help=f"write {PAGE.name}")
    args = options.parse_args()
    rows = measure(fetch_brown())
    report("Effective samples", rows, args.json)
    if args.page:
        PAGE.write_text(page(rows))


if __name__ == "__main__":
    main()
