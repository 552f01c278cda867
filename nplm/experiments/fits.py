"""Rows of tables, and the fits that give those of the paper's tables."""

from __future__ import annotations

import math
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy.special import logsumexp

from nplm import ClassLM, InterpolatedTrigram, KneserNeyLM, NeuralLM, WordClasses
from nplm.base.array_types import Floats
from nplm.base.estimators.language_model import LanguageModel
from nplm.base.estimators.scored_texts import perplexity
from nplm.base.progress import time_in_words
from nplm.datasets import Corpus
from nplm.datasets.corpus import PARTS
from nplm.models.neural.presets import paper_network

# Called as report_stage(stage, done, total, note), one stage after the other.
ReportStage = Callable[[str, float, float, str], None]
# A table as data for JSON, as `results_of` returns it.
Results = dict[str, Any]
Scores = dict[str, Floats]  # log-probabilities of next words, by part
# What tells how fast networks, n-grams and classes train.
TIMED_BATCHES, TIMED_TOKENS, TIMED_PASSES = 20, 100_000, 2
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
        "trigram", "Kneser-Ney", "classes", "network" or "AutoLM"; in a table of the
        paper, the paper's name of the model.
    n : int or None
        Order: the words of context and the next word; None for a network that reads
        all words before.
    h, m : int or None
        Hidden units (with residual blocks, a sequence of their units too), and features
        of a word; None without a network.
    direct : bool or None
        Whether a network of the paper has direct connections.
    train, valid, test : float
        Perplexity of each part over all its tokens, with ``<unk>`` and boundaries; for
        the training part over about 50,000 tokens, evenly spread. In a table of the
        paper, the paper's figures; that of the training part may be None.
    parameters : int
        Free parameters; for a mixture those of all members. 0 in a table of the paper.
    seconds : float or None
        Wall-clock time of the fit; None for a member of a mixture, and in a table of
        the paper.
    interrupted : bool
        Whether an interrupt ended the training early.
    c : int or None
        Word classes, in a table of the paper.
    mix : bool or None
        Whether a network of the paper is mixed with the trigram.
    name : str
        Unique name of the row, in a table of the paper.
    """

    model: str
    n: int | None
    h: int | Sequence[int] | None
    m: int | None
    direct: bool | None
    train: float | None
    valid: float
    test: float
    parameters: int = 0
    seconds: float | None = None
    interrupted: bool = False
    c: int | None = None
    mix: bool | None = None
    name: str = ""


def refuse_empty_parts(corpus: Corpus) -> None:
    """Raise ValueError if a part of a corpus has no token."""
    for part in PARTS:
        if len(corpus[part]) == 0:
            raise ValueError(
                f"The {part} part of {corpus.name} is empty: a table needs all three "
                "parts."
            )


class Bench:
    """The windows of a corpus, on which the models of a paper's table are measured."""

    # The `work` of the fits that come after the current one, for the time left.
    work_after = 0.0

    def __init__(
        self,
        corpus: Corpus,
        n_context: int,
        progress: ReportStage,
        *,
        n_jobs: int | None,
        scored: Sequence[str],
    ) -> None:
        refuse_empty_parts(corpus)
        self.corpus, self.progress, self.n_jobs = corpus, progress, n_jobs
        self.windows = corpus.windows(n_context)
        self._scored = {part: getattr(self.windows, part) for part in scored}
        # Parameters of every model, and of n-gram models.
        self.common: dict[str, Any] = {"n_words": corpus.n_words}
        self.ngrams = self.common | {"boundary": corpus.boundary}

    def fit(
        self, name: str, model: LanguageModel, *, work: float = 0.0, **options: Any
    ) -> None:
        """Fit a model, whose relative time is `work`, to the training part."""
        stage = f"{name}: training"
        self.progress(stage, 0, 0, "")
        if isinstance(model, NeuralLM):
            options["progress"] = self._report(stage, work)
        (X, y), (X_val, y_val), _ = self.windows
        model.fit(X, y, X_val=X_val, y_val=y_val, **options)

    def seconds_of(self, model: LanguageModel) -> float:
        """Train on the first words, and return the expected seconds of all."""
        n = len(self.windows.train[1])
        share = min(1.0, TIMED_TOKENS / n)
        (X, y), (X_val, y_val) = (
            (ids[: math.ceil(share * len(ids))] for ids in part)
            for part in self.windows[:2]
        )
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a small text
            model.fit(X, y, X_val=X_val, y_val=y_val)
        return (time.perf_counter() - began) / share

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
            stage = f"{name}: scoring {part}"
            scores[part] = np.empty(len(y))
            for start in range(0, len(y), SCORE_CHUNK):
                self.progress(stage, start, len(y), "")
                rows = slice(start, start + SCORE_CHUNK)
                scores[part][rows] = model.log_prob(X[rows], y[rows])
            self.progress(stage, len(y), len(y), "")
        return scores

    def measured(self, name: str, model: LanguageModel) -> Scores:
        """Fit a model, and return its scores."""
        self.fit(name, model)
        return self.scores(name, model)

    @cached_property
    def trigram(self) -> Scores:
        """The scores of the paper's trigram, with which its networks are mixed."""
        model = InterpolatedTrigram(**TRIGRAM_SETTINGS, **self.common)
        return self.measured("interpolated trigram", model)


def mixed(members: Sequence[Scores], weights: Floats) -> Scores:
    """Return the scores of a mixture from those of its members."""
    return {
        part: logsumexp(
            [scores[part] for scores in members], axis=0, b=weights[:, None]
        )
        for part in members[0]
    }


def perplexities(scores: Scores) -> dict[str, float]:
    """Return the perplexity of each part."""
    return {part: perplexity(logs.sum(), len(logs)) for part, logs in scores.items()}


class _TimedError(Exception):
    """Ends the timing of passes; its argument is the number of them in a fit."""


Settings = dict[str, Any]
HALVES = np.array([0.5, 0.5])


@dataclass(frozen=True)
class Measured:
    """The results of a fit: scores by row and part, a model to save, facts for JSON."""

    scores: dict[str, Scores]
    model: LanguageModel | None = None
    facts: Settings = field(default_factory=dict)


@dataclass(frozen=True)
class Fit(ABC):
    """A fit, which may give several rows, of which the first names it."""

    bound: ClassVar = "about"  # or "at most": what `expected_seconds` are

    rows: Sequence[Row]
    settings: Settings

    @property
    def name(self) -> str:
        """The name of the fit."""
        return self.rows[0].name

    @property
    def decides(self) -> Settings:
        """All that its figures depend on, except the corpus."""
        return self.settings

    @property
    def work(self) -> float:
        """Relative time of networks on the same corpus; 0 of other fits."""
        return 0.0

    def expected_seconds(self, bench: Bench) -> float:
        """Measure a part of the training, and return the expected seconds of all."""
        return bench.seconds_of(self.model(bench))

    @abstractmethod
    def model(self, bench: Bench) -> Any:
        """Return the unfitted model."""

    def measure(self, bench: Bench, folder: Path) -> Measured:
        """Train and score; `folder` keeps an unfinished fit."""
        return Measured({self.name: bench.measured(self.name, self.model(bench))})


class TrigramFit(Fit):
    """The interpolated trigram of section 4.1."""

    def model(self, bench: Bench) -> InterpolatedTrigram:
        return InterpolatedTrigram(**self.settings, **bench.common)

    def measure(self, bench: Bench, folder: Path) -> Measured:
        """Return the scores of the trigram that mixtures share."""
        return Measured({self.name: bench.trigram})


class KneserNeyFit(Fit):
    """Modified Kneser-Ney with back-off, as SRILM estimated it for the paper."""

    def model(self, bench: Bench) -> KneserNeyLM:
        return KneserNeyLM(**self.settings, **bench.ngrams)


class ClassFit(Fit):
    """Word classes by exchange, and Kneser-Ney models of them, a row for each order."""

    def measure(self, bench: Bench, folder: Path) -> Measured:
        stage = f"{self.settings['n_classes']} classes: finding"

        def report(done: float, total: float, information: float) -> None:
            bench.progress(stage, done, total, f"{information:.4f} nats")

        classes = self.model(bench).fit(
            bench.corpus.train, progress=report, checkpoint=folder / "fit"
        )
        scores = {}
        for row in self.rows:
            model = ClassLM(row.n, classes=classes.labels_, **bench.ngrams)
            scores[row.name] = bench.measured(row.name, model)
        facts = {"passes": classes.n_iter_, "nats": classes.mutual_information_}
        return Measured(scores, None, facts)

    def expected_seconds(self, bench: Bench) -> float:
        """Measure two passes over the words: all passes take about the same time."""
        times = [time.perf_counter()]

        def report(done: float, total: float, information: float) -> None:
            if done >= len(times):
                times.append(time.perf_counter())
            if len(times) > TIMED_PASSES:
                raise _TimedError(total)

        try:
            self.model(bench).fit(bench.corpus.train, progress=report)
        except _TimedError as timed:
            [n_passes] = timed.args
        began, first, second = times
        return first - began + (n_passes - 1) * (second - first)

    def model(self, bench: Bench) -> WordClasses:
        n_classes, seed = self.settings["n_classes"], self.settings["random_state"]
        return WordClasses(n_classes, random_state=seed, **bench.ngrams)


class NetworkFit(Fit):
    """A network of the paper, alone, mixed half and half with the trigram, or both.

    Its settings are the name of the network, for `NeuralLM.from_paper`, and ours that
    differ from the paper's.
    """

    bound = "at most"

    @property
    def changes(self) -> Settings:
        """Our settings that differ from the paper's, as parameters of `NeuralLM`."""
        return {n: value for n, value in self.settings.items() if n != "network"}

    @property
    def decides(self) -> Settings:
        """All settings of the network, with those of the paper."""
        return paper_network(self.settings["network"]) | self.settings

    @property
    def work(self) -> float:
        """The most epochs, times the parameters of an output unit."""
        network = self.decides
        inputs = (network["order"] - 1) * network["embedding_dim"]
        n_parameters = 1 + network["n_hidden"] + network["output__direct"] * inputs
        return float(network["max_iter"] * n_parameters)

    def expected_seconds(self, bench: Bench) -> float:
        """Measure some mini-batches, and return the time of the most epochs."""
        lm = self.model(bench)
        X, y = bench.windows.train
        trainer = lm.trainer(X, y)
        examples = range(min(len(y), TIMED_BATCHES * int(lm.batch_size)))
        trainer.train(examples[: int(lm.batch_size)])  # memory is touched
        began = time.perf_counter()
        trainer.train(examples)
        seconds = time.perf_counter() - began
        return lm.max_iter * len(y) / len(examples) * seconds

    def model(self, bench: Bench) -> NeuralLM:
        settings = bench.common | self.changes | {"n_jobs": bench.n_jobs}
        return NeuralLM.from_paper(self.settings["network"], **settings)

    def measure(self, bench: Bench, folder: Path) -> Measured:
        lm = self.model(bench)
        bench.fit(self.name, lm, work=self.work, checkpoint=folder / "fit")
        alone = bench.scores(self.name, lm)
        scores = {
            row.name: mixed([alone, bench.trigram], HALVES) if row.mix else alone
            for row in self.rows
        }
        curve = np.exp(lm.history_["val_loss"]).tolist()
        return Measured(scores, lm, {"epochs": lm.n_iter_, "valid by epoch": curve})
