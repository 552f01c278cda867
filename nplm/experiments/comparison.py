"""The paper's comparison (section 4): four models, the same windows, one table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from nplm import InterpolatedTrigram, KneserNeyLM, MixtureLM, NeuralLM
from nplm._base import LanguageModel
from nplm.datasets import Corpus
from nplm.datasets.corpus import CorpusWindows
from nplm.experiments.scoring import ReportStage, log_prob, perplexity

__all__ = ["Row", "compare"]

# The first baseline, and what the network is mixed with, at 0.5 each (section 4).
TRIGRAM_ORDER = 3
MIXTURE_WEIGHTS = "uniform"


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes
    ----------
    model : str
        Name of the model's class.
    n : int
        Order: the words of context and the next word.
    h, m : int or None
        Hidden units and features of a word; None for n-gram models.
    direct : bool or None
        Whether the network has direct connections.
    train, valid, test : float
        Perplexity of each part, pooled over all its tokens, ``<unk>`` and
        boundaries included.
    parameters : int
        Free parameters; a mixture's members together.
    seconds : float
        Time of training, wall clock; a mixture's members included.
    """

    model: str
    n: int
    h: int | None
    m: int | None
    direct: bool | None
    train: float
    valid: float
    test: float
    parameters: int
    seconds: float


def compare(
    corpus: Corpus,
    network: NeuralLM,
    *,
    ngram_order: int = 5,
    progress: ReportStage = lambda stage, done, total, note: None,
    fit_network: Callable[..., Any] = NeuralLM.fit,
) -> Iterator[tuple[Row, LanguageModel]]:
    """Train the models of the paper on a corpus, one after the other.

    The interpolated trigram, Kneser-Ney, the neural model, and the neural model
    mixed with the trigram at 0.5. All see the same windows, wide enough for the
    longest order; the validation part sets the trigram's weights and stops the
    network. It is a generator: what was yielded before an interrupt is kept.

    Parameters
    ----------
    corpus : Corpus
        As the functions of `nplm.datasets` return it.
    network : NeuralLM
        The neural model to train, its ``order`` set; it is fitted in place.
    ngram_order : int, default=5
        Order of Kneser-Ney.
    progress : callable, optional
        Called as ``progress(stage, done, total, note)``.
    fit_network : callable, default=NeuralLM.fit
        Trains the network; ``nplm.mpi.fit`` does over several processes.

    Yields
    ------
    row : Row
        Figures of one model.
    model : LanguageModel
        The model, fitted.

    Raises
    ------
    DivergenceError
        If the network's learning rate is too high.
    ValueError
        If the network has no order, or a part of the corpus is empty.
    """
    if network.order is None:
        raise ValueError("Set the order of the network: the windows follow from it.")
    network.set_params(n_words=corpus.n_words)
    trigram = InterpolatedTrigram(TRIGRAM_ORDER, n_words=corpus.n_words)
    kneser_ney = KneserNeyLM(
        ngram_order, n_words=corpus.n_words, boundary=corpus.boundary
    )
    parts = corpus.windows(max(TRIGRAM_ORDER, ngram_order, network.order) - 1)
    for part, (_, y) in parts._asdict().items():
        if len(y) == 0:
            raise ValueError(
                f"The {part} part of {corpus.name} is empty: a row of the table needs "
                "all three parts."
            )
    seconds: dict[LanguageModel, float] = {}

    for model in (trigram, kneser_ney, network):
        fit = fit_network if model is network else type(model).fit
        seconds[model] = _train(model, parts, fit, progress)
        yield _row(model, parts, seconds[model], progress), model

    members = [("neural", network), ("trigram", trigram)]
    mixture = MixtureLM(
        [(name, FrozenEstimator(member)) for name, member in members],
        weights=MIXTURE_WEIGHTS,
    ).fit(*parts.train)
    both = seconds[network] + seconds[trigram]
    yield _row(mixture, parts, both, progress, network=network), mixture


def _train(
    model: LanguageModel,
    parts: CorpusWindows,
    fit: Callable[..., Any],
    progress: ReportStage,
) -> float:
    """Fit a model; return the seconds that it took."""
    stage = f"{type(model).__name__}: training"

    def report(done: int, total: int, loss: float) -> None:
        progress(stage, done, total, f"perplexity {np.exp(loss):.0f}")

    X_val, y_val = parts.valid
    options = {"progress": report} if isinstance(model, NeuralLM) else {}
    progress(stage, 0, 0, "")
    start = time.perf_counter()
    fit(model, *parts.train, X_val=X_val, y_val=y_val, **options)
    seconds = time.perf_counter() - start
    progress(stage, 1, 1, "")
    return seconds


def _row(
    model: LanguageModel,
    parts: CorpusWindows,
    seconds: float,
    progress: ReportStage,
    network: NeuralLM | None = None,
) -> Row:
    """Figures of a fitted model; `network` is the one inside a mixture."""
    name = type(model).__name__
    if isinstance(model, NeuralLM):
        network = model
    return Row(
        model=name,
        n=(network or model).order_,
        h=network and network.n_hidden,
        m=network and network.embedding_dim,
        direct=network and network.direct,
        **{
            part: perplexity(log_prob(model, data, f"{name}: scoring {part}", progress))
            for part, data in parts._asdict().items()
        },
        parameters=model.n_parameters_,
        seconds=seconds,
    )
