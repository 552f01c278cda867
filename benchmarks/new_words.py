"""What is a guess of a new word's features worth (section 5.1)?

An `EnergyLM` is trained on Brown with only the words seen often; the others of the
corpus's vocabulary are ``<unk>``. Then held-out text is read in chunks of 1,000 tokens:
each is scored with the vocabulary as it is, and its new words are added from the
contexts in which they stood there. The perplexities are of tokens of three kinds: a
new word, when it comes again in a later chunk; words with such a one in their
contexts; all tokens, but those that the corpus itself has as ``<unk>``. What is not in
the vocabulary yet is ``<unk>``, and its probability is shared out evenly to the words
of the corpus that are not in it: all of its mass to words that can occur.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
from _table import parser, report
from numpy.typing import NDArray

from nplm import EnergyLM, windows
from nplm.datasets import fetch_brown

CHUNK = 1000
Ids = NDArray[np.int32]


def paper(lm: EnergyLM, n: int, unknown: int) -> None:
    """As `add_words` leaves them."""


def mean(lm: EnergyLM, n: int, unknown: int) -> None:
    """The mean of the features of all known words."""
    lm.C_[-n:] = lm.C_[: lm.n_words_ - lm.n_added_].mean(axis=0)


def likely_mean(lm: EnergyLM, n: int, unknown: int) -> None:
    """The mean weighted by the unconditional probabilities."""
    known = lm.n_words_ - lm.n_added_
    p = np.exp(-lm.b_[:known].astype(float))
    lm.C_[-n:] = p @ lm.C_[:known] / p.sum()


def as_unknown(lm: EnergyLM, n: int, unknown: int) -> None:
    """The features of <unk>."""
    lm.C_[-n:] = lm.C_[unknown]


def rarer(lm: EnergyLM, n: int, unknown: int) -> None:
    """The guess, of words e times less probable."""
    lm.b_[-n:] = lm.b_[: lm.n_words_ - lm.n_added_].max() + 1


RIVALS: dict[str, Callable[[EnergyLM, int, int], None] | None] = {
    "<unk>, not added": None,
    "added, C = mean of all": mean,
    "added, C = mean by frequency": likely_mean,
    "added, C = that of <unk>": as_unknown,
    "added, C = guess of 5.1": paper,
    "the same, b one higher": rarer,
}


def read(
    lm: EnergyLM, stream: Ids, history: Ids, ids: Ids, kept: Ids, guess: Any
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Log-probability and kind of each token of a stream of the corpus's ids.

    `ids` gives the model's id of each of the corpus's, `kept` those that are scored.
    """
    lm, ids = deepcopy(lm), ids.copy()
    unknown, n_context = int(ids[1]), lm.order_ - 1
    left = int((ids[kept] == unknown).sum())
    met = np.zeros(len(ids), dtype=bool)  # new words of earlier chunks
    scores, kinds = [], []
    for start in range(0, len(stream), CHUNK):
        X, y = windows(stream[start : start + CHUNK], n_context, history=history)
        log_prob = lm.log_prob(ids[X], ids[y])
        log_prob[ids[y] == unknown] -= np.log(left)
        scores.append(log_prob)
        kind = np.where(met[y], 2, np.where(met[X].any(axis=1), 1, 0))
        kinds.append(np.where(y == 1, -1, kind))
        new = np.unique(y[(ids[y] == unknown) & (y != 1)])
        met[new] = True
        if guess is not None and len(new):
            rows = np.isin(y, new)
            later = lm.n_words_ + np.searchsorted(new, y[rows])
            lm.add_words(ids[X[rows]], later)
            guess(lm, len(new), unknown)
            ids[new] = np.arange(lm.n_words_ - len(new), lm.n_words_)
            left -= len(new)
        history = stream[: start + CHUNK]
    return np.concatenate(scores), np.concatenate(kinds)


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--min-count", type=int, default=20)
    options.add_argument("--train", type=int, default=100_000, help="tokens")
    options.add_argument("--test", type=int, default=10_000, help="tokens")
    options.add_argument("--epochs", type=int, default=4)
    options.add_argument("--hidden", type=int, default=32)
    options.add_argument("--target-weights", action="store_true")
    args = options.parse_args()
    corpus = fetch_brown()
    train = corpus.train[: args.train]
    counts = np.bincount(train, minlength=corpus.n_words)
    known = (counts >= args.min_count) | (np.arange(corpus.n_words) <= 1)
    ids = np.where(known, np.cumsum(known) - 1, 1).astype(np.int32)
    kept = np.delete(np.arange(corpus.n_words, dtype=np.int32), 1)

    lm = EnergyLM(
        4, n_words=int(known.sum()), n_hidden=args.hidden, max_iter=args.epochs,
        target_weights=args.target_weights, random_state=0,
    )  # fmt: skip
    started = time.process_time()
    lm.fit(*windows(ids[train], 3))
    print(
        f"{lm.n_words_} of {corpus.n_words} words, trained on {len(train)} tokens in "
        f"{time.process_time() - started:.0f} s of CPU time"
    )
    rows = []
    for name, guess in RIVALS.items():
        stream = corpus.test[: args.test]
        log_prob, kind = read(lm, stream, corpus.valid, ids, kept, guess)
        groups = {"new words": kind == 2, "after them": kind == 1, "all": kind >= 0}
        rows.append({"": name} | {
            f"{group} ({at.sum()})": f"{np.exp(-log_prob[at].mean()):.1f}"
            for group, at in groups.items()
        })  # fmt: skip
    report("Perplexity of new words, and after them", rows, args.json)


if __name__ == "__main__":
    main()
