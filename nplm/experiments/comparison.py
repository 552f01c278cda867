"""The comparison of section 4: models trained on the same windows, one table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from nplm import (
    ClassLM,
    InterpolatedTrigram,
    KneserNeyLM,
    MixtureLM,
    NeuralLM,
    WordClasses,
)
from nplm.base.estimators import LanguageModel
from nplm.datasets import Corpus
from nplm.experiments.bench import (
    Bench,
    ReportStage,
    Row,
    Scores,
    mixed,
    perplexities,
)
from nplm.models.neural.fitting.scoring import MAX_SCORED_WINDOWS
from nplm.models.training.em import fit_mixture_weights

__all__ = ["QUICK", "compare", "conclusion", "expected_seconds", "spelling_of"]

# Windows of the training part that are scored: scoring them all takes as long as
# training on them.
TRAIN_SCORED = 50_000
# The paper's first baseline.
TRIGRAM_ORDER = 3
# A network that trains in about half a minute on two cores, as parameters for
# ``set_params``. With so few epochs a linear schedule is better than one that waits for
# the held-out loss, and much dropout costs more than the overfitting that it prevents.
QUICK: dict[str, Any] = {
    "n_hidden": 160,
    "embedding_dim": 96,
    "n_distant": 48,
    "output__tied": True,
    "loss": "importance",
    "loss__n_noise": 512,
    "solver": "adam",
    "solver__epsilon": 1e-8,
    "solver__learning_rate": "linear",
    "learning_rate_init": 8e-3,
    "alpha": 0.3,
    "dropout": 0.03,
    "batch_size": 1024,
    "max_iter": 2,
}
# Parameters of ``Vocabulary.spelling_features``. Its defaults make twice as many
# features, and the network slower.
SPELLING: dict[str, Any] = {"ngrams": (3, 4), "min_words": 5}
# `expected_seconds` times the network on 128 pieces of text, each of at most 256 words,
# for at least half a second. The rest takes a few seconds: the constant was measured on
# one core of an AMD EPYC (Zen 4).
N_PIECES, PIECE, MEASURED_SECONDS = 128, 256, 0.5
OTHER_SECONDS_A_TOKEN = 5e-6
# Word classes, and passes of the search for them.
N_CLASSES, CLASS_PASSES = 200, 10

# The rows: the values of `Row.model`.
TRIGRAM, KNESER_NEY, CLASSES = "trigram", "Kneser-Ney", "classes"
NETWORK = "network"
PAPERS = f"{NETWORK} + {TRIGRAM}"
BOTH = f"{NETWORK} + {KNESER_NEY}"
ALL = "all four"
NGRAMS = (TRIGRAM, KNESER_NEY, CLASSES)
# Members of the mixtures. Those of the paper's have equal weights (section 4.3), the
# others have learned weights.
MIXTURES = {
    PAPERS: (NETWORK, TRIGRAM),
    BOTH: (NETWORK, KNESER_NEY),
    ALL: (NETWORK, *NGRAMS),
}


def compare(
    corpus: Corpus,
    network: NeuralLM,
    *,
    ngram_order: int = 5,
    progress: ReportStage = lambda stage, done, total, note: None,
    fit_network: Callable[..., Any] = NeuralLM.fit,
) -> Iterator[tuple[Row, LanguageModel]]:
    """Train the models of the paper on a corpus, one after the other.

    They are the interpolated trigram, Kneser-Ney, n-grams of word classes, and the
    network; then the network mixed with the trigram at 0.5, with Kneser-Ney, and with
    all of them. All predict the same next words. The windows of the n-gram models are
    as wide as the longest order, those of the network have its distant words too. The
    validation part sets the weights of the trigram and of the last two mixtures, and
    stops the network. This is a generator, so an interrupt loses no earlier row; if it
    interrupts the training of the network, that row is yielded too, before
    KeyboardInterrupt is raised.

    Parameters
    ----------
    corpus : Corpus
        As the functions of `nplm.datasets` return it.
    network : NeuralLM
        The neural model to train, in place; its ``order`` must be set.
    ngram_order : int, default=5
        Order of Kneser-Ney and of the n-grams of classes.
    progress : callable, optional
        Called as ``progress(stage, done, total, note)``.
    fit_network : callable, default=NeuralLM.fit
        Trains the network; ``nplm.mpi.fit`` trains it over several processes.

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
        raise ValueError(
            "Set the order of the network: the width of the windows follows from it."
        )
    n_context = _n_context(network, ngram_order)
    bench = Bench(corpus, n_context, progress, max_train=TRAIN_SCORED)
    network.set_params(**bench.common)
    classes = WordClasses(N_CLASSES, max_iter=CLASS_PASSES, random_state=0)
    models: dict[str, LanguageModel] = {
        TRIGRAM: InterpolatedTrigram(TRIGRAM_ORDER, **bench.common),
        KNESER_NEY: KneserNeyLM(ngram_order, **bench.ngrams),
        CLASSES: ClassLM(ngram_order, classes=classes, **bench.ngrams),
        NETWORK: network,
    }
    n_nearest = _longest(network, ngram_order) - 1
    scores: dict[str, Scores] = {}
    seconds: dict[str, float] = {}
    for name, model in models.items():
        is_network, interrupt = model is network, None
        start = time.perf_counter()
        try:
            bench.fit(
                name, model, n_nearest=None if is_network else n_nearest,
                fit=fit_network if is_network else None,
            )  # fmt: skip
        except KeyboardInterrupt as error:
            if not hasattr(model, "C_"):
                raise
            interrupt = error
        seconds[name] = time.perf_counter() - start
        scores[name] = bench.scores(name, model)
        row = _row(name, model, network if is_network else None, scores[name])
        yield (
            replace(row, seconds=seconds[name], interrupted=interrupt is not None),
            model,
        )
        if interrupt is not None:
            raise interrupt
    for name, members in MIXTURES.items():
        of_members = [scores[member] for member in members]
        weights = np.full(len(members), 1 / len(members))
        if name != PAPERS:
            weights = _learned_weights(of_members)
        mixture = MixtureLM(
            [(member, FrozenEstimator(models[member])) for member in members],
            weights=weights,
        ).fit(*bench.windows.train)
        row = _row(name, mixture, network, mixed(of_members, weights))
        spent = sum(seconds[member] for member in members)
        yield replace(row, seconds=spent), mixture


def _learned_weights(members: Sequence[Scores]) -> NDArray[np.float64]:
    """Return the weights that make the validation part most probable."""
    probs = np.exp([scores["valid"] for scores in members]).T
    one_bin = np.zeros(len(probs), dtype=np.intp)
    return fit_mixture_weights(probs, one_bin, 1, max_iter=100, tol=1e-5).weights[0]


def _row(
    name: str, model: LanguageModel, network: NeuralLM | None, scores: Scores
) -> Row:
    """Return the row of a fitted model, with the shape of the network in it."""
    h = m = direct = None
    if network is not None:
        h, m = network.n_hidden, network.embedding_dim
        direct = network.get_params().get("output__direct", False)
    train, valid, test = perplexities(scores).values()
    return Row(
        name, (network or model).order_, h, m, direct, train, valid, test,
        parameters=model.n_parameters_, distant=network.n_distant if network else 0,
    )  # fmt: skip


def spelling_of(corpus: Corpus) -> csr_array | None:
    """Return spelling features of the words of a corpus, for its network.

    Parameters
    ----------
    corpus : Corpus
        Its vocabulary has the words.

    Returns
    -------
    features : csr_array, shape (n_words, n_features), or None
        For ``Features(word_features=...)``; character n-grams of 3 and 4 letters, shape
        and length. None if the words share no features, as in a small vocabulary.
    """
    try:
        return corpus.vocabulary.spelling_features(**SPELLING)[0]
    except ValueError:
        return None


def expected_seconds(
    corpus: Corpus, network: NeuralLM, *, ngram_order: int = 5
) -> float:
    """Estimate how long `compare` takes, from a short measurement on this machine.

    A copy of the network trains on some windows and scores them, for less than a
    second. The machine should be about as busy then as it is later.

    Parameters
    ----------
    corpus : Corpus
        The corpus of the comparison.
    network : NeuralLM
        Its neural model, with the ``n_jobs`` that it will have; it is not changed.
    ngram_order : int, default=5
        Order of Kneser-Ney and of the n-grams of classes.

    Returns
    -------
    seconds : float
        Wall-clock time of all models; less if the network stops early.
    """
    # Pieces from all over the text, for as many different words as later.
    n_pieces = min(N_PIECES, len(corpus.train))
    pieces = [part[:PIECE] for part in np.array_split(corpus.train, n_pieces)]
    some = replace(corpus, train=np.concatenate(pieces))
    X, y = some.windows(_n_context(network, ngram_order)).train
    # So small that the weights hardly change: the measurement cannot diverge.
    trial = clone(network).set_params(
        n_words=corpus.n_words,
        learning_rate_init=1e-9,
        solver__learning_rate="constant",
        random_state=0,
    )
    trainer = trial.trainer(X, y)
    # Several mini-batches a call: a call has costs of its own.
    n_rows = max(8 * trial.batch_size, 256)
    training = _seconds_each(
        lambda rows: trainer.train(np.arange(rows.start, rows.stop)), len(y), n_rows
    )
    trial = trainer.keep()
    scoring = _seconds_each(lambda rows: trial.log_prob(X[rows], y[rows]), len(y), 4096)
    n_train, n_valid = len(corpus.train), len(corpus.valid)
    n_scored = min(n_train, TRAIN_SCORED) + n_valid + len(corpus.test)
    n_scored += network.max_iter * min(n_valid, MAX_SCORED_WINDOWS)
    if n_valid > MAX_SCORED_WINDOWS:
        n_scored += n_valid  # when the fit ends
    n_tokens = sum(len(part) for part in (corpus.train, corpus.valid, corpus.test))
    seconds = network.max_iter * n_train * training + n_scored * scoring
    return seconds + n_tokens * OTHER_SECONDS_A_TOKEN


def _seconds_each(work: Callable[[slice], Any], n: int, n_rows: int) -> float:
    """Return the seconds of a row of n, in calls with `n_rows` of them."""
    calls = [slice(i, min(i + n_rows, n)) for i in range(0, n, n_rows)]
    work(calls[0])  # starts threads, and touches the memory
    done, start = 0, time.perf_counter()
    while True:
        for rows in calls:
            work(rows)
            done += rows.stop - rows.start
            seconds = time.perf_counter() - start
            if seconds > MEASURED_SECONDS:
                return seconds / done


def _longest(network: NeuralLM, ngram_order: int) -> int:
    """Return the longest order of the models."""
    assert network.order is not None
    return max(TRIGRAM_ORDER, ngram_order, network.order)


def _n_context(network: NeuralLM, ngram_order: int) -> int:
    """Return the number of words of context that some model sees."""
    longest = _longest(network, ngram_order) - 1
    return max(longest, network.n_distant, network.n_memory)


def conclusion(rows: Sequence[Row]) -> str:
    """Summarise a table in words.

    Parameters
    ----------
    rows : sequence of Row
        As `compare` yields them, all or the first ones.

    Returns
    -------
    sentences : str
        Which n-gram models the network alone is ahead of on the test part, and how far
        it is from the best one; how far the best mixture is from the best of them all.
        "Best" is said by the validation part. Empty where the network or the n-gram
        models are missing.

    Examples
    --------
    >>> from nplm.experiments import Row, conclusion
    >>> def row(model, perplexity):
    ...     return Row(model, 5, 100, 30, False, 9, perplexity, perplexity, 1, 1)
    >>> print(conclusion([row("Kneser-Ney", 200), row("network", 190)]))
    On the test part the network alone is ahead of Kneser-Ney: its perplexity is 5.0%
    below that of Kneser-Ney, the best of the n-gram models.
    """
    by_name = {row.model: row for row in rows}
    ngrams = [by_name[name] for name in NGRAMS if name in by_name]
    mixtures = [by_name[name] for name in MIXTURES if name in by_name]
    network = by_name.get(NETWORK)
    if network is None or not ngrams:
        return ""
    baseline = min(ngrams, key=lambda row: row.valid)
    placed = {
        "ahead of": [_named(row) for row in ngrams if network.test < row.test],
        "behind": [_named(row) for row in ngrams if not network.test < row.test],
    }
    places = " and ".join(
        f"{place} {_listed(names)}" for place, names in placed.items() if names
    )
    sentences = (
        f"On the test part the network alone is {places}: its perplexity is "
        f"{_change(network.test, baseline.test)} that of {_named(baseline)}, the best "
        "of the n-gram models."
    )
    if not mixtures:
        return sentences
    mixture = min(mixtures, key=lambda row: row.valid)
    best = min(network, baseline, key=lambda row: row.valid)
    sentences += (
        f" That of {mixture.model} mixed is {_change(mixture.test, best.test)} that of "
        f"{_named(best)}, the best model alone"
    )
    if mixture.test < best.test:
        return f"{sentences}: where one is wrong another is right."
    return f"{sentences}: here nothing is gained by mixing."


def _named(row: Row) -> str:
    """Return the name of a model as a sentence has it."""
    return f"the {row.model}" if row.model in (TRIGRAM, NETWORK) else row.model


def _listed(names: Sequence[str]) -> str:
    """List names, as in "a, b and c"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _change(perplexity: float, other: float) -> str:
    """Describe the difference between perplexities, such as "5.0% below"."""
    share = perplexity / other - 1
    return f"{abs(share):.1%} {'below' if share < 0 else 'above'}"
