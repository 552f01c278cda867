"""The comparison of `AutoLM` with n-gram models, on the same text: one table."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from sklearn.base import clone

from nplm import AutoLM, InterpolatedTrigram, KneserNeyLM, TextLM
from nplm.datasets import Corpus
from nplm.datasets.corpus import PARTS
from nplm.experiments.fits import Row, perplexities, refuse_empty_parts
from nplm.models.auto.fitting import network_of

# Tokens of the training part that are scored, in pieces of about this many if it is one
# stream: scoring them all takes as long as training on them.
TRAIN_SCORED, PIECE = 50_000, 1000
# The paper's first baseline; and discounts of texts too small to estimate them.
TRIGRAM_ORDER, FALLBACK = 3, (0.5, 1.0, 1.5)

# The rows: the values of `Row.model`.
TRIGRAM, KNESER_NEY, AUTO = "trigram", "Kneser-Ney", "AutoLM"
CLASSES, NETWORK = "classes", "network"
NGRAMS = (TRIGRAM, KNESER_NEY, CLASSES)
Documents = list[list[Any]]


def compare(
    corpus: Corpus, lm: AutoLM, *, ngram_order: int = 5
) -> Iterator[tuple[Row, TextLM]]:
    """Train n-gram models and `AutoLM` on a corpus, one after the other.

    They are the interpolated trigram, Kneser-Ney, and `lm`, which has a row for each of
    its classes and its network, too. All predict the same words, and the end of each
    document, or that of each part of a corpus that is one stream. This is a generator,
    so an interrupt loses no earlier row. If one comes after the network of `lm` has
    learned something, its rows are yielded before KeyboardInterrupt is raised.

    Parameters
    ----------
    corpus : Corpus
        As the functions of `nplm.datasets` return it. The validation part stops the
        network, and sets the weights of the trigram and of `lm`.
    lm : AutoLM
        The model to train, in place. Its vocabulary is set to that of the corpus.
    ngram_order : int, default=5
        Order of Kneser-Ney.

    Yields
    ------
    row : Row
        Figures of one model.
    model : TextLM
        The model, fitted to lists of words.

    Raises
    ------
    TypeError
        If `lm` is another model.
    ValueError
        If a part of the corpus is empty. See also ``AutoLM.fit``.
    """
    if not isinstance(lm, AutoLM):
        raise TypeError(f"lm must be an AutoLM to be trained, got {type(lm).__name__}.")
    refuse_empty_parts(corpus)
    vocabulary = clone(corpus.vocabulary)
    boundary = vocabulary.boundary or "</s>"
    words = list(dict.fromkeys([*corpus.words.tolist(), boundary]))
    vocabulary.set_params(words=words, boundary=boundary)
    train, valid, test = (_documents(corpus, part) for part in PARTS)
    scored = dict(zip(PARTS, (_sample(train), valid, test)))
    lm.set_params(
        tokenizer=None, vocabulary=vocabulary, running_text=corpus.boundary is None
    )
    ngrams = {
        TRIGRAM: InterpolatedTrigram(TRIGRAM_ORDER),
        KNESER_NEY: KneserNeyLM(ngram_order, discount_fallback=FALLBACK),
    }
    models = {
        name: TextLM(estimator, tokenizer=None, vocabulary=vocabulary)
        for name, estimator in ngrams.items()
    }
    for name, model in {**models, AUTO: lm}.items():
        interrupt, began = None, time.perf_counter()
        try:
            model.fit(train, X_val=valid)
        except KeyboardInterrupt as error:
            if not hasattr(model, "estimator_"):
                raise
            interrupt = error
        seconds = time.perf_counter() - began
        for member, lm_of_row in [*_members(model).items(), (name, model)]:
            yield _row(
                member, lm_of_row, scored,
                seconds=seconds if member == name else None,
                interrupted=interrupt is not None and member != CLASSES,
            ), lm_of_row  # fmt: skip
        if interrupt is not None:
            raise interrupt


def _documents(corpus: Corpus, part: str) -> Documents:
    """Return the documents of a part as words; a stream is one."""
    if corpus.boundary is None:
        return [corpus.words[corpus[part]].tolist()]
    return corpus.documents(part)


def _sample(documents: Documents) -> Documents:
    """Return documents from all over a text, with about `TRAIN_SCORED` tokens."""
    n_tokens = sum(map(len, documents))
    if len(documents) == 1:
        [text] = documents
        documents = [text[i : i + PIECE] for i in range(0, n_tokens, PIECE)]
    return documents[:: -(-n_tokens // TRAIN_SCORED)]


def _members(lm: TextLM) -> dict[str, TextLM]:
    """Return the members of a mixture that have rows, as models of their own."""
    return {
        name: TextLM.from_model(
            frozen.estimator, lm.vocabulary_, tokenizer=None, boundary=lm.boundary_
        )
        for name, frozen in getattr(lm.estimator_, "estimators", ())
        if name in (CLASSES, NETWORK)
    }


def _row(name: str, lm: TextLM, scored: dict[str, Documents], **outcome: Any) -> Row:
    """Return the row of a fitted model, with the shape of the network in it."""
    model, network = lm.estimator_, network_of(lm.estimator_)
    n, h, m = model.order_, None, None
    if network is not None:
        n, h, m = None, network.n_hidden, network.embedding_dim
    # A scorer for each part, as a text that runs on would go on from another part.
    scores = {p: lm.scorer().tokens(texts).log_prob for p, texts in scored.items()}
    train, valid, test = perplexities(scores).values()
    size = model.n_parameters_
    return Row(name, n, h, m, None, train, valid, test, parameters=size, **outcome)


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
        it is from the best one; how far `AutoLM` is from the best model alone. "Best"
        is said by the validation part. Empty where there is no network.

    Examples
    --------
    >>> from nplm.experiments import Row, conclusion
    >>> def row(model, perplexity):
    ...     return Row(model, 5, 100, 30, None, 9, perplexity, perplexity)
    >>> print(conclusion([row("Kneser-Ney", 200), row("network", 190)]))
    On the test part the network alone is ahead of Kneser-Ney: its perplexity is 5.0%
    below that of Kneser-Ney, the best of the n-gram models.
    """
    by_name = {row.model: row for row in rows}
    ngrams = [by_name[name] for name in NGRAMS if name in by_name]
    network, auto = by_name.get(NETWORK), by_name.get(AUTO)
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
    if auto is None:
        return sentences
    best = min(network, baseline, key=lambda row: row.valid)
    return (
        f"{sentences} That of AutoLM, which mixes models, is "
        f"{_change(auto.test, best.test)} that of {_named(best)}, the best model alone."
    )


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
