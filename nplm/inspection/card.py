"""Model cards: a page beside a saved model, in Markdown."""

from __future__ import annotations

import json
import pprint
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import Any, NamedTuple

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

import nplm
from nplm.base.estimators.scored_texts import perplexity
from nplm.text.lm.fitted_text import fitted_text
from nplm.text.lm.text_lm import TextLM

KINDS = {
    "n-gram": (
        "KneserNeyLM",
        "BackoffLM",
        "QuantizedLM",
        "KenlmLM",
        "InterpolatedTrigram",
    ),
    "neural": ("NeuralLM", "EnergyLM", "ShortlistLM", "NeuralCacheLM"),
    "class-based": ("ClassLM",),
    "mixture": ("MixtureLM",),
}
# Attributes of a fit, and what they are.
FIGURES = {"n_parameters_": "parameters", "n_seen_": "examples seen in training"}


def model_card(
    model: TextLM,
    name: str,
    *,
    trained_on: str | None = None,
    licence: str | None = None,
    language: str | None = None,
    texts: Mapping[str, Sequence[object]] | None = None,
) -> str:
    """Describe a text model on a page of Markdown, as Hugging Face's model cards.

    The page has the sizes of the model, its vocabulary, its parameters, what is known
    of its training, perplexities, the licence, and how to load it. It begins with
    metadata in YAML. It tells what the model and the arguments tell, and says where
    something is not known.

    Parameters
    ----------
    model : TextLM
        A fitted text model.
    name : str
        The name of the model, which is that of its file.
    trained_on : str, optional
        A description of the training text.
    licence : str, optional
        The licence of the model, such as ``"cc-by-sa-4.0"``: Hugging Face's identifier.
    language : str, optional
        The language of the text, such as ``"en"``: its code of ISO 639.
    texts : mapping of str to sequence of documents, optional
        Texts on which perplexities are measured, by their names.

    Returns
    -------
    card : str
        The page.

    Raises
    ------
    TypeError
        If `model` is not a `TextLM`.
    NotFittedError
        If it is not fitted.

    References
    ----------
    M. Mitchell et al. (2019). Model cards for model reporting. FAT*.

    Examples
    --------
    >>> from nplm import InterpolatedTrigram, TextLM
    >>> from nplm.inspection import model_card
    >>> texts = ["a rose is a rose"] * 9
    >>> lm = TextLM(InterpolatedTrigram()).fit(texts)
    >>> card = model_card(lm, "roses", licence="cc0-1.0", texts={"roses.txt": texts})
    >>> print(card[:card.index("tags")])
    ---
    library_name: "nplm"
    license: "cc0-1.0"
    <BLANKLINE>
    """
    if not isinstance(model, TextLM):
        raise TypeError(f"model must be a TextLM, got {type(model).__name__}.")
    check_is_fitted(model)
    measured = [_measured(model, key, text) for key, text in (texts or {}).items()]
    sections = [
        _metadata(model, name, licence, language, measured),
        f"# {name}\n\n{_sentence(model)}",
        "## Model\n\n" + _table(["", ""], _sizes(model)) + _parameters(model),
        "## Training\n\n" + _training(model, trained_on),
        "## Perplexity\n\n" + _perplexities(model, measured),
        "## Licence\n\n" + (licence or "No licence is given."),
        "## How to load it\n\n" + _loading(model, name),
    ]
    return "\n\n".join(sections) + "\n"


class Measured(NamedTuple):
    """Perplexities on a text."""

    text: str
    n_tokens: int
    n_unknown: int
    perplexity: float
    without_unknown: float


def _measured(lm: TextLM, name: str, documents: Sequence[object]) -> Measured:
    tokens = fitted_text(lm).tokens(documents)
    known = tokens.log_prob[~tokens.unknown]
    return Measured(
        name,
        len(tokens.ids),
        int(tokens.unknown.sum()),
        perplexity(tokens.log_prob.sum(), len(tokens.ids)),
        perplexity(known.sum(), len(known)),
    )


# -- the sections ----------------------------------------------------------------------


def _metadata(
    lm: TextLM,
    name: str,
    licence: str | None,
    language: str | None,
    measured: list[Measured],
) -> str:
    """Return the metadata of Hugging Face's model cards."""
    metadata: dict[str, Any] = {"library_name": "nplm"}
    if licence is not None:
        metadata["license"] = licence
    if language is not None:
        metadata["language"] = language
    metadata["tags"] = ["nplm", "language-model", *_kinds(lm.estimator_)]
    metadata["pipeline_tag"] = "text-generation"
    results = [
        {
            "task": {"type": "text-generation"},
            "dataset": {"name": text.text, "type": text.text},
            "metrics": [
                {"type": "perplexity", "value": round(text.perplexity, 4)},
            ],
        }
        for text in measured
        if np.isfinite(text.perplexity)
    ]
    if results:
        metadata["model-index"] = [{"name": name, "results": results}]
    # JSON is YAML too, and quotes what needs quotes.
    lines = [f"{k}: {json.dumps(v, ensure_ascii=False)}" for k, v in metadata.items()]
    return "\n".join(["---", *lines, "---"])


def _sentence(lm: TextLM) -> str:
    kinds = _kinds(lm.estimator_)
    article = "An" if kinds[:1] == ["n-gram"] else "A"
    kind = f"{article} {kinds[0]} language model" if kinds else "A language model"
    of = "text" if lm.tokenizer_ is not None else "tokens"
    return f"{kind} of {of}, described by nplm {nplm.__version__}."


def _sizes(lm: TextLM) -> Iterator[list[str]]:
    estimator = lm.estimator_
    yield ["kind", type(estimator).__name__]
    yield from ([what, f"{n:,}"] for what, n in _figures(estimator))
    ngrams = getattr(estimator, "n_ngrams_", None)
    if ngrams is not None:
        orders = ", ".join(f"{n:,} of order {i}" for i, n in enumerate(ngrams, 1))
        yield ["n-grams", orders]
    yield ["words of context", str(getattr(estimator, "order_", lm.n_context_ + 1) - 1)]
    yield ["vocabulary", _vocabulary(lm)]
    yield ["tokenizer", "none" if lm.tokenizer_ is None else f"`{lm.tokenizer_!r}`"]
    ends = "counts" if lm.predict_boundary else "does not count"
    yield ["end of a document", f"{ends} as a token"]
    for member, weight in _members(estimator):
        sizes = "".join(f", {n:,} {what}" for what, n in _figures(member))
        yield ["member", f"{type(member).__name__}{weight}{sizes}"]


def _parameters(lm: TextLM) -> str:
    """Return the parameters of the model; of an `AutoLM` its recipe."""
    recipe = getattr(lm, "recipe_", None)
    if recipe is None:
        return f"\n\n```\n{lm.estimator_!r}\n```"
    of = pprint.pformat(recipe, width=88, sort_dicts=False)
    return (
        f"\n\nThe recipe of a fit of {recipe.minutes:g} minutes, which "
        "`AutoLM(recipe=...)` and `nplm train --recipe` repeat:\n\n"
        f"```\n{of}\n```"
    )


def _training(lm: TextLM, trained_on: str | None) -> str:
    said = trained_on or "What it was trained on is not said in the file."
    precision = getattr(lm.estimator_, "precision_", None)
    if precision is not None:
        said += f"\n\nThe arithmetic of the training was in {precision}."
    scores = getattr(lm, "scores_", {})  # of an AutoLM
    if scores:
        of = ", ".join(f"{name} {score:.2f}" for name, score in scores.items())
        return f"{said}\n\nPerplexity of the held-out text of the fit: {of}."
    loss = getattr(lm.estimator_, "val_loss_", float("nan"))
    if np.isfinite(loss):
        said += (
            f"\n\nPerplexity of the held-out windows of the fit: {np.exp(loss):.2f}."
        )
    return said


def _perplexities(lm: TextLM, measured: list[Measured]) -> str:
    if not measured:
        return "None was measured for this page."
    rows = (
        [
            text.text, f"{text.n_tokens:,}", f"{text.n_unknown:,}",
            f"{text.perplexity:.2f}", f"{text.without_unknown:.2f}",
        ]
        for text in measured
    )  # fmt: skip
    header = ["text", "tokens", "unknown", "perplexity", "without unknown words"]
    ends = "count as tokens" if lm.predict_boundary else "do not count"
    return _table(header, rows) + (
        f"\n\nEnds of documents {ends}. Perplexities compare only between models with "
        "the same tokens and the same vocabulary."
    )


def _loading(lm: TextLM, name: str) -> str:
    lines = [
        "```python",
        "import nplm",
        "",
        f"lm = nplm.load({json.dumps(name, ensure_ascii=False)})",
    ]
    if lm.tokenizer_ is None:
        return "\n".join([*lines, "```"])
    return "\n".join(
        [
            *lines,
            'lm.score_samples(["a text", "another"])  # natural-log probabilities',
            'lm.next_words("a text", k=5)',
            "```",
            "",
            "On the command line:",
            "",
            "```sh",
            f"nplm query {quote(name)} text.txt",
            "```",
        ]
    )


# -- what is on them -------------------------------------------------------------------


def _kinds(estimator: object) -> list[str]:
    """Return the kinds of a model and of its members."""
    models = [estimator, *(member for member, _ in _members(estimator))]
    names = {type(model).__name__ for model in models}
    return [kind for kind in reversed(KINDS) if names.intersection(KINDS[kind])]


def _members(estimator: object) -> list[tuple[object, str]]:
    """Return the members of a mixture, each with its weight as text."""
    members = [
        member.estimator if isinstance(member, FrozenEstimator) else member
        for member in getattr(estimator, "estimators_", ())
    ]
    weights: Any = getattr(estimator, "weights_", None)
    if np.ndim(weights) != 1 or len(weights) < len(members):
        return [(member, "") for member in members]
    return [(m, f", weight {w:.3f}") for m, w in zip(members, weights)]


def _figures(estimator: Any) -> list[tuple[str, int]]:
    figures = [(what, getattr(estimator, name, None)) for name, what in FIGURES.items()]
    known = [(what, int(n)) for what, n in figures if n is not None]
    if hasattr(estimator, "n_seen_"):  # a network
        known.append(("epochs", int(estimator.n_iter_)))
    return known


def _vocabulary(lm: TextLM) -> str:
    vocabulary = lm.vocabulary_
    if vocabulary is None:
        return f"{lm.n_words_:,} ids"
    special = [s for s in (vocabulary.boundary, vocabulary.unknown) if s is not None]
    marks = " and ".join(f"`{symbol}`" for symbol in special)
    return f"{lm.n_words_:,} words" + (f", with {marks}" if marks else "")


def _table(header: list[str], rows: Any) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
        for row in lines
    )
