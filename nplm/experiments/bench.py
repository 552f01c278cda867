"""The runner of all tables: it fits models to the windows of a corpus, and scores them.

A table is a list of fits with rows; `compare` and `reproduce` are two tables.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from nplm import InterpolatedTrigram, NeuralLM
from nplm.base.estimators import LanguageModel
from nplm.base.progress.bars import time_in_words
from nplm.datasets import Corpus

__all__ = [
    "PARTS", "TRIGRAM_SETTINGS", "Bench", "ReportStage", "Results", "Row", "Scores",
    "mixed", "perplexities",
]  # fmt: skip

PARTS = ("train", "valid", "test")
# Called as report_stage(stage, done, total, note), one stage after the other.
ReportStage = Callable[[str, float, float, str], None]
# A table as data for JSON, as `results_of` returns it.
Results = dict[str, Any]
Scores = dict[str, NDArray[np.float64]]  # log-probabilities of next words, by part
# Windows scored between two reports, and so before an interrupt.
SCORE_CHUNK = 20_000
# The trigram of section 4.1 of the paper, with weights by EM on the validation part.
TRIGRAM_SETTINGS: dict[str, Any] = {"order": 3, "max_iter": 20, "tol": 0.0}


@dataclass(frozen=True)
class Row:
    """One line of a table: a model, its shape, and its figures.

    Attributes
    ----------
    model : str
        "trigram", "Kneser-Ney", "classes", "network", or a mixture of them; in a table
        of the paper, the paper's name of the model.
    n : int
        Order: the words of context and the next word.
    h, m : int or None
        Hidden units, and features of a word; None for n-gram models.
    direct : bool or None
        Whether the network has direct connections.
    train, valid, test : float
        Perplexity of each part over all its tokens, with ``<unk>`` and boundaries; for
        the training part over at most 50,000 tokens, evenly spread. In a table of the
        paper, the paper's figures; that of the training part may be None.
    parameters : int
        Free parameters; for a mixture those of all members. 0 in a table of the paper.
    seconds : float
        Wall-clock time of training; for a mixture that of all members. 0 in a table of
        the paper.
    interrupted : bool
        Whether an interrupt ended the training early.
    distant : int
        Words whose averaged features the network sees (``n_distant``); 0 without it.
    c : int or None
        Word classes, in a table of the paper.
    mix : bool or None
        Whether a network of the paper is mixed with the trigram.
    name : str
        Unique name of the row, in a table of the paper.
    """

    model: str
    n: int
    h: int | None
    m: int | None
    direct: bool | None
    train: float | None
    valid: float
    test: float
    parameters: int = 0
    seconds: float = 0.0
    interrupted: bool = False
    distant: int = 0
    c: int | None = None
    mix: bool | None = None
    name: str = ""


class Bench:
    """The windows of a corpus, on which the models of a table are fitted and scored.

    - `n_context`: context words of a window, enough for the longest order
    - `progress`: called as ``progress(stage, done, total, note)``
    - `n_jobs`: threads of the networks of the paper
    - `scored`: parts whose perplexities are in the table
    - `max_train`: windows of the training part that are scored, evenly spread; None is
      all of them
    """

    # The `work` of the fits that come after the current one, for the time left.
    work_after = 0.0

    def __init__(
        self,
        corpus: Corpus,
        n_context: int,
        progress: ReportStage,
        *,
        n_jobs: int | None = None,
        scored: Sequence[str] = PARTS,
        max_train: int | None = None,
    ) -> None:
        self.corpus, self.progress, self.n_jobs = corpus, progress, n_jobs
        self.windows = corpus.windows(n_context)
        for part, (_, y) in self.windows._asdict().items():
            if len(y) == 0:
                raise ValueError(
                    f"The {part} part of {corpus.name} is empty: a table needs all "
                    "three parts."
                )
        X, y = self.windows.train
        step = 1 if max_train is None else -(-len(y) // max_train)
        parts = self.windows._replace(train=(X[::step], y[::step]))._asdict()
        self._scored = {part: parts[part] for part in scored}
        # Parameters of every model, and of n-gram models.
        self.common: dict[str, Any] = {"n_words": corpus.n_words}
        self.ngrams = self.common | {"boundary": corpus.boundary}

    def fit(
        self,
        name: str,
        model: LanguageModel,
        *,
        n_nearest: int | None = None,
        fit: Callable[..., Any] | None = None,
        work: float = 0.0,
        **options: Any,
    ) -> None:
        """Fit a model to the training part, with the validation part held out.

        - `n_nearest`: words of context that the model gets; None is all
        - `fit`: fits the model in place of its method
        - `work`: relative time of the fit, to which `work_after` is compared
        """
        stage = f"{name}: training"
        self.progress(stage, 0, 0, "")
        if isinstance(model, NeuralLM):
            options["progress"] = self._report(stage, work)
        (X, y), (X_val, y_val), _ = self.windows
        first = 0 if n_nearest is None else X.shape[1] - n_nearest
        (fit or type(model).fit)(
            model, X[:, first:], y, X_val=X_val[:, first:], y_val=y_val, **options
        )

    def _report(self, stage: str, work: float) -> Callable[[float, float, float], None]:
        """Return the `progress` of a network; its notes may have the time for all."""
        began, first = time.monotonic(), np.inf

        def report(done: float, total: float, loss: float) -> None:
            nonlocal first
            first = min(first, done)  # above 0 if an unfinished fit goes on
            note = f"training perplexity {np.exp(loss):.0f}"
            if self.work_after and done > first:
                whole = (time.monotonic() - began) / (done - first) * total
                seconds = whole * (1 - done / total + self.work_after / work)
                note += f", {time_in_words(seconds)} left for all"
            self.progress(stage, done, total, note)

        return report

    def scores(self, name: str, model: LanguageModel) -> Scores:
        """Return the log-probabilities of the next words of each part, in pieces."""
        scores = {}
        for part, (X, y) in self._scored.items():
            stage, first = f"{name}: scoring {part}", X.shape[1] - model.n_features_in_
            scores[part] = np.empty(len(y))
            for start in range(0, len(y), SCORE_CHUNK):
                self.progress(stage, start, len(y), "")
                rows = slice(start, start + SCORE_CHUNK)
                scores[part][rows] = model.log_prob(X[rows, first:], y[rows])
            self.progress(stage, len(y), len(y), "")
        return scores

    @cached_property
    def trigram(self) -> Scores:
        """The scores of the paper's trigram, with which its networks are mixed."""
        name = "interpolated trigram"
        model = InterpolatedTrigram(**TRIGRAM_SETTINGS, **self.common)
        self.fit(name, model)
        return self.scores(name, model)


def mixed(members: Sequence[Scores], weights: NDArray[np.float64]) -> Scores:
    """Return the scores of a mixture from those of its members."""
    return {
        part: logsumexp(
            [scores[part] for scores in members], axis=0, b=weights[:, None]
        )
        for part in members[0]
    }


def perplexities(scores: Scores) -> dict[str, float]:
    """Return the perplexity of each part."""
    with np.errstate(over="ignore"):
        return {
            part: float(np.exp(-log_prob.mean())) for part, log_prob in scores.items()
        }
