"""The fits that give the rows of the paper's tables: a class for each kind of fit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nplm import ClassLM, KneserNeyLM, NeuralLM, WordClasses
from nplm.base.estimators import LanguageModel
from nplm.experiments.bench import Bench, Row, Scores, mixed
from nplm.models.neural.presets import paper_network

__all__ = ["ClassFit", "Fit", "KneserNeyFit", "Measured", "NetworkFit", "TrigramFit"]

Settings = dict[str, Any]
HALVES = np.array([0.5, 0.5])


@dataclass(frozen=True)
class Measured:
    """The results of a fit.

    - `scores`: log-probabilities, by name of the row and by part
    - `model`: a model to save
    - `facts`: further results, for JSON
    """

    scores: dict[str, Scores]
    model: LanguageModel | None = None
    facts: Settings = field(default_factory=dict)


@dataclass(frozen=True)
class Fit(ABC):
    """A fit, which may give several rows.

    - `rows`: its rows, with the paper's figures; the first one names the fit
    - `settings`: its settings as reported, for JSON
    """

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
        """Relative time that it takes on the same corpus; 0 is seconds to minutes."""
        return 0.0

    @abstractmethod
    def measure(self, bench: Bench, folder: Path) -> Measured:
        """Train and score; `folder` keeps an unfinished fit."""


class TrigramFit(Fit):
    """The interpolated trigram of section 4.1."""

    def measure(self, bench: Bench, folder: Path) -> Measured:
        """Return the scores of the trigram that mixtures share."""
        return Measured({self.name: bench.trigram})


class KneserNeyFit(Fit):
    """Modified Kneser-Ney with back-off, as SRILM estimated it for the paper."""

    def measure(self, bench: Bench, folder: Path) -> Measured:
        """Count and score."""
        model = KneserNeyLM(**self.settings, **bench.ngrams)
        bench.fit(self.name, model)
        return Measured({self.name: bench.scores(self.name, model)})


class ClassFit(Fit):
    """Word classes by exchange, and Kneser-Ney models of them, a row for each order."""

    def measure(self, bench: Bench, folder: Path) -> Measured:
        """Find the classes, or go on with that, and train models of them."""
        n_classes, seed = self.settings["n_classes"], self.settings["random_state"]
        stage = f"{n_classes} classes: finding"

        def report(done: float, total: float, information: float) -> None:
            bench.progress(stage, done, total, f"{information:.4f} nats")

        classes = WordClasses(n_classes, random_state=seed, **bench.ngrams).fit(
            bench.corpus.train, progress=report, checkpoint=folder / "fit"
        )
        scores = {}
        for row in self.rows:
            model = ClassLM(row.n, classes=classes.labels_, **bench.ngrams)
            bench.fit(row.name, model)
            scores[row.name] = bench.scores(row.name, model)
        facts = {"passes": classes.n_iter_, "nats": classes.mutual_information_}
        return Measured(scores, None, facts)


class NetworkFit(Fit):
    """A network of the paper, alone, mixed half and half with the trigram, or both.

    Its settings are the name of the network, for `NeuralLM.from_paper`, and ours that
    differ from the paper's.
    """

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

    def measure(self, bench: Bench, folder: Path) -> Measured:
        """Train the network, or go on with an unfinished fit."""
        settings = bench.common | self.changes | {"n_jobs": bench.n_jobs}
        lm = NeuralLM.from_paper(self.settings["network"], **settings)
        bench.fit(self.name, lm, work=self.work, checkpoint=folder / "fit")
        alone = bench.scores(self.name, lm)
        scores = {
            row.name: mixed([alone, bench.trigram], HALVES) if row.mix else alone
            for row in self.rows
        }
        curve = np.exp(lm.history_["val_loss"]).tolist()
        return Measured(scores, lm, {"epochs": lm.n_iter_, "valid by epoch": curve})
