"""The paper's comparison (section 4): four models, the same windows, one table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Bunch

from nplm import InterpolatedTrigram, KneserNeyLM, MixtureLM, NeuralLM, windows
from nplm._base import LanguageModel

__all__ = [
    "Progress",
    "Row",
    "compare",
    "corpus_windows",
    "nearest_words",
    "oov_rates",
    "suggestions",
]

PARTS = ("train", "valid", "test")
# progress(stage, done, total, note); stages come one after the other.
Progress = Callable[[str, int, int, str], None]
Windows = tuple[NDArray[np.int32], NDArray[np.int32]]
# Windows scored between two calls of progress: an interrupt waits for no more.
SCORE_CHUNK = 20_000
# Words whose neighbours are worth showing were seen often: ids go by frequency.
FREQUENT = 2_000


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
    corpus: Bunch,
    network: NeuralLM,
    *,
    ngram_order: int = 5,
    progress: Progress = lambda stage, done, total, note: None,
    fit_network: Callable[..., Any] = NeuralLM.fit,
) -> Iterator[tuple[Row, LanguageModel]]:
    """Train the models of the paper on a corpus, one after the other.

    The interpolated trigram, Kneser-Ney, the neural model, and the neural model
    mixed with the trigram at 0.5. All see the same windows, wide enough for the
    longest order; the validation part sets the trigram's weights and stops the
    network. It is a generator: what was yielded before an interrupt is kept.

    Parameters
    ----------
    corpus : Bunch
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
    """
    trigram = InterpolatedTrigram(order=3, n_words=corpus.n_words)
    kneser_ney = KneserNeyLM(
        ngram_order, n_words=corpus.n_words, boundary=corpus.boundary
    )
    if network.order is None:
        raise ValueError("Set the order of the network: the windows follow from it.")
    network.set_params(n_words=corpus.n_words)
    n_context = max(3, ngram_order, network.order) - 1
    parts = corpus_windows(corpus, n_context)
    X, y = parts["train"]
    X_val, y_val = parts["valid"]
    seconds: dict[LanguageModel, float] = {}

    for model in (trigram, kneser_ney, network):
        stage = f"{type(model).__name__}: training"
        progress(stage, 0, 0, "")
        start = time.perf_counter()
        if model is network:
            fit_network(
                network, X, y, X_val=X_val, y_val=y_val,
                progress=lambda done, total, loss, stage=stage: progress(
                    stage, done, total, f"perplexity {np.exp(loss):.0f}"
                ),
            )  # fmt: skip
        else:
            model.fit(X, y, X_val=X_val, y_val=y_val)
        seconds[model] = time.perf_counter() - start
        progress(stage, 1, 1, "")
        yield _row(model, parts, seconds[model], progress), model

    members = [("neural", network), ("trigram", trigram)]
    mixture = MixtureLM(
        [(name, FrozenEstimator(member)) for name, member in members],
        weights="uniform",
    ).fit(X, y)
    both = seconds[network] + seconds[trigram]
    yield _row(mixture, parts, both, progress, network=network), mixture


def corpus_windows(corpus: Bunch, n_context: int) -> dict[str, Windows]:
    """Windows of each part of a corpus: every token but the first few has one.

    Parameters
    ----------
    corpus : Bunch
        As the functions of `nplm.datasets` return it.
    n_context : int
        Words of context.

    Returns
    -------
    parts : dict of str to (X, y)
        Windows of "train", "valid" and "test". Without a boundary the corpus is
        one stream, where a part begins with the words before it as context.
    """
    if corpus.boundary is not None:
        return {
            part: windows(corpus[part], n_context, boundary=corpus.boundary)
            for part in PARTS
        }
    before_test = np.concatenate([corpus.train, corpus.valid])
    return {
        "train": windows(corpus.train, n_context),
        "valid": windows(corpus.valid, n_context, history=corpus.train),
        "test": windows(corpus.test, n_context, history=before_test),
    }


def _row(
    model: LanguageModel,
    parts: dict[str, Windows],
    seconds: float,
    progress: Progress,
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
        **{part: _perplexity(model, name, part, parts, progress) for part in PARTS},
        parameters=model.n_parameters_,
        seconds=seconds,
    )


def _perplexity(
    model: LanguageModel,
    name: str,
    part: str,
    parts: dict[str, Windows],
    progress: Progress,
) -> float:
    X, y = parts[part]
    total = 0.0
    for start in range(0, len(y), SCORE_CHUNK):
        progress(f"{name}: scoring {part}", start, len(y), "")
        rows = slice(start, start + SCORE_CHUNK)
        total += model.log_prob(X[rows], y[rows]).sum()
    progress(f"{name}: scoring {part}", len(y), len(y), "")
    with np.errstate(over="ignore"):
        return float(np.exp(-total / len(y)))


def oov_rates(corpus: Bunch) -> dict[str, float]:
    """Fraction of the tokens of each part that are outside the vocabulary.

    Parameters
    ----------
    corpus : Bunch
        As the functions of `nplm.datasets` return it.

    Returns
    -------
    rates : dict of str to float
        Of "train", "valid" and "test".
    """
    unknown = corpus.vocabulary.unknown_id_
    return {part: float(np.mean(corpus[part] == unknown)) for part in PARTS}


def suggestions(
    model: LanguageModel, corpus: Bunch, *, n_contexts: int = 8, k: int = 5
) -> list[dict[str, Any]]:
    """Most probable next words after some contexts of the test part.

    Parameters
    ----------
    model : LanguageModel
        A fitted model.
    corpus : Bunch
        Its corpus.
    n_contexts : int, default=8
        Contexts, spread evenly over those without an unknown word.
    k : int, default=5
        Words for each.

    Returns
    -------
    suggestions : list of dict
        ``context`` (list of str), ``next`` (str, what the text has) and
        ``suggestions`` (list of (str, float), word and probability).
    """
    X, y = corpus_windows(corpus, model.n_features_in_)["test"]
    special = [corpus.vocabulary.unknown_id_]
    if corpus.boundary is not None:
        special.append(corpus.boundary)
    clear = np.flatnonzero(~np.isin(np.column_stack([X, y]), special).any(axis=1))
    chosen = clear[_spread(len(clear), n_contexts)]
    shown = []
    for context, word in zip(X[chosen], y[chosen]):
        proba = model.predict_proba([context])[0]
        best = np.argsort(-proba, kind="stable")[:k]
        shown.append(
            {
                "context": corpus.words[context].tolist(),
                "next": corpus.words[word],
                "suggestions": [(corpus.words[i], float(proba[i])) for i in best],
            }
        )
    return shown


def nearest_words(
    C: NDArray[Any], words: Sequence[str], *, n_words: int = 8, k: int = 5
) -> dict[str, list[str]]:
    """Words with the most similar features, for some frequent words.

    Parameters
    ----------
    C : ndarray, shape (n_words, embedding_dim)
        Features of each word, the ``C_`` of `NeuralLM` (section 2).
    words : sequence of str
        The word of each id, by falling frequency.
    n_words : int, default=8
        How many words to show the neighbours of.
    k : int, default=5
        Neighbours of each, by the cosine, among the 2,000 most frequent words.

    Returns
    -------
    neighbours : dict of str to list of str
        Nearest first.
    """
    unit = C[:FREQUENT] / np.maximum(
        np.linalg.norm(C[:FREQUENT], axis=1, keepdims=True), np.finfo(C.dtype).tiny
    )
    # Long enough to mean something.
    candidates = [
        i for i, word in enumerate(words[:500]) if word.isalpha() and len(word) > 3
    ]
    neighbours = {}
    for i in (candidates[j] for j in _spread(len(candidates), n_words)):
        cosine = unit @ unit[i]
        cosine[i] = -np.inf
        nearest = np.argsort(-cosine, kind="stable")[:k]
        neighbours[words[i]] = [words[j] for j in nearest if j != i]
    return neighbours


def _spread(size: int, n: int) -> NDArray[np.intp]:
    """At most n positions, evenly spread over range(size)."""
    return np.unique(np.linspace(0, size - 1, min(n, size)).astype(np.intp))
