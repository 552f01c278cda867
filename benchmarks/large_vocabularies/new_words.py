"""What is a guess of a new word's features worth (section 5.1)?

An `EnergyLM` is trained on Brown with only the words seen often; the others of the
corpus's vocabulary are ``<unk>``. Then held-out text is read in chunks of 1,000 tokens:
each is scored with the vocabulary as it is, and its new words are added from the
contexts in which they stood there. The perplexities are of tokens of three kinds: a
new word, when it comes again in a later chunk; words with such a one in their
contexts; all tokens, but those that the corpus itself has as ``<unk>``. What is not in
the vocabulary yet is ``<unk>``, and its probability is shared out evenly to the words
of the corpus that are not in it: all of its mass to words that can occur.

What its spelling says of a new word is a ridge regression of the known words' features
on those of `Vocabulary.spelling_features`, its penalty chosen by leaving one out.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import RidgeCV

from common.networks import energy_lm
from common.table import parser, report
from nplm import EnergyLM, windows
from nplm.datasets import Corpus, fetch_brown

CHUNK = 1000
UNKNOWN = 1  # of the corpus, and of the model
Ids = NDArray[np.int32]


class Guesses:
    """Features for words that were just added, in place of those of `add_words`."""

    def __init__(self, lm: EnergyLM, corpus: Corpus, known: Any) -> None:
        self.known = lm.n_words_
        made_of, _ = corpus.vocabulary.spelling_features()
        regression = RidgeCV(alphas=np.logspace(-1, 4, 11))
        words = np.flatnonzero(known)[2:]  # not the marks
        regression.fit(made_of[words], rows_of(lm)[2:])
        print(f"Spelling: ridge of {regression.alpha_:g} by leaving one out")
        self.spelt = regression.predict(made_of)

    def paper(self, lm: EnergyLM, new: Ids) -> None:
        """As `add_words` leaves them."""

    def mean(self, lm: EnergyLM, new: Ids) -> None:
        """The mean of the features of all known words."""
        lm.C_[-len(new) :] = lm.C_[: self.known].mean(axis=0)

    def likely_mean(self, lm: EnergyLM, new: Ids) -> None:
        """The mean weighted by the unconditional probabilities."""
        p = np.exp(-lm.b_[: self.known].astype(float))
        lm.C_[-len(new) :] = p @ lm.C_[: self.known] / p.sum()

    def as_unknown(self, lm: EnergyLM, new: Ids) -> None:
        """The features of <unk>."""
        lm.C_[-len(new) :] = lm.C_[UNKNOWN]

    def rarer(self, lm: EnergyLM, new: Ids) -> None:
        """The guess, of words e times less probable."""
        lm.b_[-len(new) :] = lm.b_[: self.known].max() + 1

    def spelling(self, lm: EnergyLM, new: Ids, share: float = 1.0) -> None:
        """Estimate features from those of words spelled alike, by regression.

        Estimate v too, if each word has its own.
        """
        m, n = lm.C_.shape[1], len(new)
        lm.C_[-n:] += share * (self.spelt[new, :m] - lm.C_[-n:])
        if lm.v_.ndim == 2:
            lm.v_[-n:] += share * (self.spelt[new, m:] - lm.v_[-n:])

    def both(self, lm: EnergyLM, new: Ids) -> None:
        """Half of the guess and half of what the spelling says."""
        self.spelling(lm, new, 0.5)


def rows_of(lm: EnergyLM) -> NDArray[Any]:
    """The features of each word, and its own v if it has one."""
    return np.hstack([lm.C_, lm.v_]) if lm.v_.ndim == 2 else lm.C_


RIVALS: dict[str, Callable[[Guesses, EnergyLM, Ids], None] | None] = {
    "<unk>, not added": None,
    "added, C = mean of all": Guesses.mean,
    "added, C = mean by frequency": Guesses.likely_mean,
    "added, C = that of <unk>": Guesses.as_unknown,
    "added, C by its spelling": Guesses.spelling,
    "added, C = guess of 5.1": Guesses.paper,
    "half of the guess, half by spelling": Guesses.both,
    "the guess, b one higher": Guesses.rarer,
}


def read(
    lm: EnergyLM, stream: Ids, history: Ids, ids: Ids, kept: Ids, guess: Any
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Log-probability and kind of each token of a stream of the corpus's ids.

    `ids` gives the model's id of each of the corpus's, `kept` those that are scored.
    """
    lm, ids = deepcopy(lm), ids.copy()
    unknown, n_context = ids[UNKNOWN], lm.order_ - 1
    left = int((ids[kept] == unknown).sum())
    met = np.zeros(len(ids), dtype=bool)  # new words of earlier chunks
    scores, kinds = [], []
    for start in range(0, len(stream), CHUNK):
        X, y = windows(stream[start : start + CHUNK], n_context, history=history)
        log_prob = lm.log_prob(ids[X], ids[y])
        log_prob[ids[y] == unknown] -= np.log(left)
        scores.append(log_prob)
        kind = np.where(met[y], 2, np.where(met[X].any(axis=1), 1, 0))
        kinds.append(np.where(y == UNKNOWN, -1, kind))
        new = np.unique(y[(ids[y] == unknown) & (y != UNKNOWN)])
        met[new] = True
        if guess is not None and len(new):
            rows = np.isin(y, new)
            later = lm.n_words_ + np.searchsorted(new, y[rows])
            lm.add_words(ids[X[rows]], later)
            guess(lm, new)
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
    options.add_argument("--rivals", nargs="+", choices=RIVALS, default=list(RIVALS))
    options.add_argument("--checkpoint", help="folder: a call goes on with the last's")
    args = options.parse_args()
    corpus = fetch_brown()
    train = corpus.train[: args.train]
    counts = np.bincount(train, minlength=corpus.n_words)
    known = (counts >= args.min_count) | (np.arange(corpus.n_words) <= UNKNOWN)
    ids = np.where(known, np.cumsum(known) - 1, UNKNOWN).astype(np.int32)
    kept = np.delete(np.arange(corpus.n_words, dtype=np.int32), UNKNOWN)

    lm = energy_lm(
        order=4, n_words=int(known.sum()), n_hidden=args.hidden, max_iter=args.epochs,
        target_weights=args.target_weights, random_state=0,
    )  # fmt: skip
    started = time.process_time()
    lm.fit(*windows(ids[train], 3), checkpoint=args.checkpoint)
    print(
        f"{lm.n_words_} of {corpus.n_words} words, trained on {len(train)} tokens in "
        f"{time.process_time() - started:.0f} s of CPU time in this call"
    )
    guesses = Guesses(lm, corpus, known)
    rows = []
    for name in args.rivals:
        rival = RIVALS[name]
        guess = partial(rival, guesses) if rival else None
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
