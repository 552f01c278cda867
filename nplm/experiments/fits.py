"""The fits that give the rows of the paper's tables: a class for each kind of fit.

One fit may give several rows: a network alone and mixed with the trigram, or models of
several orders over the same word classes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from nplm import ClassLM, InterpolatedTrigram, KneserNeyLM, NeuralLM, WordClasses
from nplm.base.estimators import LanguageModel
from nplm.datasets import Corpus
from nplm.experiments.scoring import ReportStage, log_prob
from nplm.models.neural.presets import paper_network

__all__ = [
    "Bench", "ClassFit", "Fit", "KneserNeyFit", "Measured", "NetworkFit", "PaperRow",
    "Perplexities", "TrigramFit",
]  # fmt: skip

# The paper's perplexities of the training, validation and test part.
Perplexities = tuple[float | None, float, float]
Scores = dict[str, NDArray[np.float64]]  # log-probabilities, by part

# SRILM's default: n-grams of three words or more are kept if they occur twice.
SRILM_CUTOFFS = (1, 1, 2)
SEED = 0  # of word classes


@dataclass(frozen=True)
class PaperRow:
    """A row of a table of the paper.

    - `name`: unique name: that of the model, and what distinguishes the row from others
      of the same model
    - `model`: the paper's name of the model
    - `c`, `h`, `m`: word classes, hidden units, features of a word
    - `direct`, `mix`: whether a network has direct connections, and is mixed with the
      trigram
    - `paper`: the paper's perplexities of the training (None if it has none),
      validation and test part
    """

    name: str
    model: str
    n: int
    paper: Perplexities
    c: int | None = None
    h: int | None = None
    m: int | None = None
    direct: bool | None = None
    mix: bool | None = None


@dataclass
class Bench:
    """The settings that fits share: windows of a corpus, threads, progress reports.

    - `n_context`: context words of a window, enough for the longest order
    - `scored`: parts whose perplexities are in the table
    - `n_jobs`: threads of a network
    - `progress`: called as ``progress(stage, done, total, note)``
    - `work_after`: the `work` of the fits that come after the current one
    """

    corpus: Corpus
    n_context: int
    scored: tuple[str, ...]
    n_jobs: int | None
    progress: ReportStage
    work_after: float = 0.0

    def __post_init__(self) -> None:
        self.parts = self.corpus.windows(self.n_context)._asdict()
        for part, (_, y) in self.parts.items():
            if len(y) == 0:
                raise ValueError(
                    f"The {part} part of {self.corpus.name} is empty: a table needs "
                    "all three parts."
                )
        # Parameters of every model, and of n-gram models.
        self.common: dict[str, Any] = {"n_words": self.corpus.n_words}
        self.ngrams = self.common | {"boundary": self.corpus.boundary}

    def fit(self, model: Any, name: str, **options: Any) -> Any:
        """Fit a model to the training part, with the validation part held out."""
        X_val, y_val = self.parts["valid"]
        self.progress(f"{name}: training", 0, 0, "")
        return model.fit(*self.parts["train"], X_val=X_val, y_val=y_val, **options)

    def scores(self, model: LanguageModel, name: str) -> Scores:
        """Return the log-probabilities of the words of each part."""
        return {
            part: log_prob(
                model, self.parts[part], f"{name}: scoring {part}", self.progress
            )
            for part in self.scored
        }

    @cached_property
    def trigram(self) -> Scores:
        """The scores of the interpolated trigram, with which networks are mixed."""
        name = "interpolated trigram"
        model = self.fit(
            InterpolatedTrigram(**TrigramFit.settings, **self.common), name
        )
        return self.scores(model, name)


@dataclass(frozen=True)
class Measured:
    """The results of a fit.

    - `scores`: log-probabilities, by name of the row and by part
    - `model`: a model to save
    - `facts`: further results, for JSON
    """

    scores: dict[str, Scores]
    model: LanguageModel | None = None
    facts: dict[str, Any] = field(default_factory=dict)


class Fit(Protocol):
    """A kind of fit.

    - `rows`: the rows that it gives; the first one names the fit
    - `settings`: its settings as reported, for JSON
    - `decides`: all that its figures depend on, except the corpus
    - `work`: relative time that it takes on the same corpus; 0 is seconds to minutes
    """

    @property
    def rows(self) -> list[PaperRow]:
        """The rows that it gives; the first one names the fit."""

    @property
    def settings(self) -> dict[str, Any]:
        """Its settings as reported, for JSON."""

    @property
    def decides(self) -> dict[str, Any]:
        """All that its figures depend on, except the corpus."""

    @property
    def work(self) -> float:
        """Relative time that it takes on the same corpus; 0 is seconds to minutes."""

    def measure(self, bench: Bench, folder: Path) -> Measured:
        """Train and score; `folder` keeps an unfinished fit."""


@dataclass(frozen=True)
class NetworkFit:
    """A network of the paper, alone and mixed half and half with the trigram.

    - `network`: name of the network, for `NeuralLM.from_paper`
    - `names`: names of the rows: alone (if the table has that row), and mixed
    - `papers`: the paper's figures of these rows
    - `changes`: our settings that differ from the paper's, as parameters of `NeuralLM`
    """

    network: str
    names: tuple[str | None, str]
    papers: tuple[Perplexities | None, Perplexities]
    changes: dict[str, Any]

    @property
    def settings(self) -> dict[str, Any]:
        """The name of the network, and our own settings."""
        return {"network": self.network, **self.changes}

    @property
    def decides(self) -> dict[str, Any]:
        """All settings of the network, with those of the paper."""
        return paper_network(self.network) | self.settings

    @property
    def rows(self) -> list[PaperRow]:
        """The rows that it gives."""
        lm = NeuralLM.from_paper(self.network)
        n = lm.order or 0  # from_paper sets it
        return [
            PaperRow(
                name, name, n, paper, None, lm.n_hidden, lm.embedding_dim,
                lm.get_params()["output__direct"], mix,
            )
            for name, paper, mix in zip(self.names, self.papers, (False, True))
            if name is not None and paper is not None
        ]  # fmt: skip

    @property
    def work(self) -> float:
        """The most epochs, times the parameters of an output unit."""
        lm = NeuralLM.from_paper(self.network, **self.changes)
        inputs = ((lm.order or 0) - 1) * lm.embedding_dim
        direct = lm.get_params()["output__direct"]
        return lm.max_iter * (1 + lm.n_hidden + direct * inputs)

    def measure(self, bench: Bench, folder: Path) -> Measured:
        """Train the network, or go on with an unfinished fit."""
        alone, mixed = self.names
        name = alone or mixed
        lm = NeuralLM.from_paper(
            self.network, **bench.common, **(self.changes | {"n_jobs": bench.n_jobs})
        )

        began, first = time.monotonic(), np.inf

        def report(done: float, total: float, loss: float) -> None:
            nonlocal first
            first = min(first, done)  # above 0 if an unfinished fit goes on
            note = f"training perplexity {np.exp(loss):.0f}"
            if bench.work_after and done > first:
                whole = (time.monotonic() - began) / (done - first) * total
                left = whole * (1 - done / total + bench.work_after / self.work)
                note += f", {left / 60:.0f} minutes left for all"
            bench.progress(f"{name}: training", done, total, note)

        bench.fit(lm, name, checkpoint=folder / "fit", progress=report)
        own, trigram = bench.scores(lm, name), bench.trigram
        scores = {
            mixed: {
                part: np.logaddexp(own[part], trigram[part]) - np.log(2)
                for part in bench.scored
            }
        }
        if alone is not None:
            scores = {alone: own} | scores
        curve = np.exp(lm.history_["val_loss"]).tolist()
        return Measured(scores, lm, {"epochs": lm.n_iter_, "valid by epoch": curve})


@dataclass(frozen=True)
class TrigramFit:
    """The interpolated trigram of section 4.1, with weights by EM on validation."""

    name: str
    paper: Perplexities

    # Also those of the trigram in mixtures.
    settings: ClassVar[dict[str, Any]] = {"order": 3, "max_iter": 20, "tol": 0.0}
    decides = settings

    @property
    def rows(self) -> list[PaperRow]:
        """The rows that it gives."""
        return [PaperRow(self.name, self.name, 3, self.paper)]

    work = 0.0

    def measure(self, bench: Bench, folder: Path) -> Measured:
        """Return the scores of the trigram that mixtures share."""
        return Measured({self.name: bench.trigram})


@dataclass(frozen=True)
class KneserNeyFit:
    """Modified Kneser-Ney with back-off, as SRILM estimated it for the paper."""

    model: str
    n: int
    paper: Perplexities

    @property
    def settings(self) -> dict[str, Any]:
        """All that its figures depend on."""
        return {"order": self.n, "interpolate": False, "min_counts": SRILM_CUTOFFS}

    decides = settings

    @property
    def rows(self) -> list[PaperRow]:
        """The rows that it gives."""
        return [PaperRow(f"{self.model} {self.n}", self.model, self.n, self.paper)]

    work = 0.0

    def measure(self, bench: Bench, folder: Path) -> Measured:
        """Count and score."""
        [row] = self.rows
        model = bench.fit(KneserNeyLM(**self.settings, **bench.ngrams), row.name)
        return Measured({row.name: bench.scores(model, row.name)})


@dataclass(frozen=True)
class ClassFit:
    """Word classes by exchange, and Kneser-Ney models of them.

    - `model`: the paper's name of the model
    - `papers`: the paper's figures by order
    """

    model: str
    c: int
    papers: dict[int, Perplexities]

    @property
    def settings(self) -> dict[str, Any]:
        """All that its figures depend on."""
        return {
            "n_classes": self.c, "orders": list(self.papers), "random_state": SEED,
        }  # fmt: skip

    decides = settings

    @property
    def rows(self) -> list[PaperRow]:
        """The rows that it gives."""
        return [
            PaperRow(f"{self.model} {n} c={self.c}", self.model, n, paper, self.c)
            for n, paper in self.papers.items()
        ]

    work = 0.0

    def measure(self, bench: Bench, folder: Path) -> Measured:
        """Find the classes, or go on with that, and train models of them."""
        stage = f"{self.c} classes: finding"

        def report(done: float, total: float, information: float) -> None:
            bench.progress(stage, done, total, f"{information:.4f} nats")

        classes = WordClasses(self.c, random_state=SEED, **bench.ngrams).fit(
            bench.corpus.train, progress=report, checkpoint=folder / "fit"
        )
        scores = {}
        for row in self.rows:
            model = ClassLM(row.n, classes=classes.labels_, **bench.ngrams)
            scores[row.name] = bench.scores(bench.fit(model, row.name), row.name)
        facts = {"passes": classes.n_iter_, "nats": classes.mutual_information_}
        return Measured(scores, None, facts)
