"""Perplexities of a text, as KenLM's and SRILM's programs count them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nplm import TextLM
from nplm.cli._models import vocabulary_of

__all__ = ["Scored", "Tally", "scored", "scored_in_detail", "warning_of_unknown"]

# Above it a perplexity says how well <unk> is predicted, and little else.
MOSTLY_UNKNOWN = 0.5


@dataclass(frozen=True)
class Scored:
    """Tokens of some documents: log10 of their probabilities, and what they are.

    With n-grams that back off, `order` has the words of the longest one found.
    """

    log10: NDArray[np.float64]
    unknown: NDArray[np.bool_]
    document: NDArray[np.intp]
    n_documents: int
    order: NDArray[np.int32] | None = None


def scored(lm: TextLM, documents: list[str]) -> Scored:
    """Score every token of documents."""
    log_prob, tokens = lm._log_prob(documents)
    mark = vocabulary_of(lm).unknown_id_
    unknown = tokens.targets == (-1 if mark is None else mark)
    log10 = log_prob / np.log(10)
    return Scored(log10, unknown, tokens.document, len(documents))


def scored_in_detail(lm: TextLM, documents: list[str]) -> Scored:
    """Score every token of documents, and say how long the n-gram was."""
    parts = lm.token_scores(documents)
    lengths = [len(part.log_prob) for part in parts]
    orders = [part.order for part in parts if part.order is not None]
    return Scored(
        np.concatenate([part.log_prob for part in parts]) / np.log(10),
        np.concatenate([part.unknown for part in parts]),
        np.repeat(np.arange(len(parts)), lengths),
        len(documents),
        np.concatenate(orders) if orders else None,
    )


@dataclass
class Tally:
    """Sums over a text, of any size.

    Attributes
    ----------
    sentences, tokens : int
        Documents, and what was predicted: words, and the ends if they are.
    unknown, zeros : int
        Words outside the vocabulary, and others without any probability.
    lost : int
        Words outside the vocabulary that have no probability either.
    total, known : float
        log10 of the probability of all, and without those words.
    """

    ends_are_predicted: bool
    sentences: int = 0
    tokens: int = 0
    unknown: int = 0
    zeros: int = 0
    lost: int = 0
    total: float = 0.0
    known: float = 0.0

    def add(self, part: Scored) -> None:
        """Add the tokens of some documents."""
        clear = ~part.unknown
        possible = clear & (part.log10 > -np.inf)
        self.sentences += part.n_documents
        self.tokens += len(part.log10)
        self.unknown += int(part.unknown.sum())
        self.zeros += int((clear & ~possible).sum())
        self.lost += int((part.log10[part.unknown] == -np.inf).sum())
        self.total += float(part.log10.sum())
        self.known += float(part.log10[possible].sum())

    @property
    def with_unknown(self) -> float:
        """KenLM's perplexity including OOVs, if these have any probability."""
        return _perplexity(self.total, self.tokens)

    @property
    def without_unknown(self) -> float:
        """KenLM's perplexity excluding OOVs, SRILM's ppl; zero probabilities too."""
        return _perplexity(self.known, self.tokens - self.unknown - self.zeros)

    @property
    def of_words(self) -> float:
        """SRILM's ppl1: the same, with sentence ends not among the words."""
        n_ends = self.sentences if self.ends_are_predicted else 0
        n_words = self.tokens - self.unknown - self.zeros - n_ends
        return _perplexity(self.known, n_words)

    def lines(self) -> list[str]:
        """Say it, a figure a line."""
        n_ends = self.sentences if self.ends_are_predicted else 0
        return [
            f"sentences: {self.sentences}",
            f"words: {self.tokens - n_ends}",
            f"unknown words: {self.unknown}",
            f"words of probability 0: {self.zeros}",
            f"log10 probability: {self.total:.4f}",
            f"perplexity with unknown words: {self.with_unknown:.4f}",
            f"perplexity without unknown words: {self.without_unknown:.4f}",
            f"perplexity without unknown words and sentence ends: {self.of_words:.4f}",
        ]


def warning_of_unknown(
    share: float, advice: str = "Lower --min-count, or give more words."
) -> str | None:
    """Say what perplexities are worth where so many of the words are unknown."""
    if share <= MOSTLY_UNKNOWN:
        return None
    return (
        f"{share:.0%} of the words are <unk>, which is easy to predict: perplexities "
        f"that count it say little. {advice}"
    )


def _perplexity(log10: float, n: int) -> float:
    with np.errstate(over="ignore"):
        return float(np.power(10.0, -log10 / n)) if n else float("nan")
