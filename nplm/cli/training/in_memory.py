"""Models that ``nplm train`` fits in memory."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout

import click

import nplm
from nplm import (
    ClassLM,
    EnergyLM,
    InterpolatedTrigram,
    KneserNeyLM,
    MixtureLM,
    NeuralLM,
    ShortlistLM,
    Subwords,
    TextLM,
    Tokenizer,
    Vocabulary,
)
from nplm.base.estimators.language_model import LanguageModel
from nplm.base.progress import BAR
from nplm.cli._messages import report_in_options
from nplm.cli._models import vocabulary_of
from nplm.cli._options import NETWORK, OPEN_UNITS, UNITS, Settings, network_settings
from nplm.cli._outputs import refuse_arpa
from nplm.cli._tally import report_words
from nplm.cli.training.job import Job
from nplm.cli.training.kept_fit import KeptFit
from nplm.models.neural.network_lm import NetworkLM
from nplm.text.words.known_words import known_of
from nplm.text.words.splitting import BETWEEN_BLANKS
from nplm.text.words.word_choice import WordChoice

__all__ = ["train_in_memory"]

# Models with a checkpoint.
NETWORKS = ("network", "energy", "shortlist", "mixture")


def train_in_memory(ctx: click.Context, job: Job, choice: WordChoice) -> None:
    """Train a model in memory, save it, and report."""
    options = job.options
    lm = _text_lm(ctx, options, choice)
    of_words = "--tokens words or blanks with " if options["tokens"] in UNITS else ""
    refuse_arpa(
        job.output,
        f", or train {of_words}--model kneser-ney, whose n-grams an ARPA file holds",
    )
    texts, held_out = job.read(at_blanks=options["tokens"] == "blanks")
    _fit_and_save(lm, job, texts, held_out)
    _report(lm, len(texts))
    job.report(lm.scorer())


def _refuse_sampling(settings: Settings) -> None:
    if settings.get("loss", "auto") not in ("auto", "exact"):
        raise click.UsageError(
            "the network of --model shortlist trains on all words of its list: leave "
            "--loss out, or give --loss exact."
        )


def _text_lm(ctx: click.Context, options: Settings, choice: WordChoice) -> TextLM:
    """Make the model that the options ask for."""
    tokens, n_words = options["tokens"], options["max_words"]
    tokenizer: Tokenizer | Subwords = Tokenizer()
    if tokens == "blanks":
        tokenizer = Tokenizer(BETWEEN_BLANKS)
    elif tokens == "logs":
        tokenizer = Tokenizer.for_logs()
    elif tokens != "words":
        tokenizer = Subwords(tokens)
        if tokens in OPEN_UNITS and n_words is not None:
            tokenizer.n_words = n_words - 1  # </s> is one more
    vocabulary = Vocabulary(choice.min_count, choice.max_words, words=choice.words)
    return TextLM(
        _estimator(ctx, options),
        options["order"] - 1,
        tokenizer=tokenizer,
        vocabulary="auto" if tokens in OPEN_UNITS else vocabulary,
    )


def _estimator(ctx: click.Context, options: Settings) -> LanguageModel:
    model, order = options["model"], options["order"]
    if model == "trigram":
        return InterpolatedTrigram(order)
    if model == "classes":
        return ClassLM(
            order,
            n_classes=options["n_classes"],
            random_state=options["random_state"],
            discount_fallback=options["discount_fallback"],
        )
    ngrams = _kneser_ney(options)
    if model == "kneser-ney":
        return ngrams
    network = _network(ctx, options)
    if model == "shortlist":
        return ShortlistLM(network, ngrams, n_shortlist=options["n_shortlist"])
    if model == "mixture":
        # The network comes last: after an interrupt the mixture is then whole.
        return MixtureLM([("ngrams", ngrams), ("network", network)], verbose=BAR)
    return network


def _kneser_ney(options: Settings) -> KneserNeyLM:
    return KneserNeyLM(
        options["order"],
        interpolate_unigrams=options["interpolate_unigrams"],
        min_counts=options["min_counts"],
        min_counts_of=options["min_counts_of"],
        discount_fallback=options["discount_fallback"],
    )


def _network(ctx: click.Context, options: Settings) -> NetworkLM:
    """Make a network of the options that are given, and check its parameters."""
    parameters = {name: options[name] for name in NETWORK}
    settings = network_settings(ctx, parameters)
    if options["model"] == "shortlist":
        _refuse_sampling(settings)
    network = EnergyLM() if options["model"] == "energy" else NeuralLM()
    with report_in_options():
        network.set_params(**settings, verbose=BAR).check_settings()
    return network


def _fit_and_save(
    lm: TextLM, job: Job, texts: list[str], held_out: list[str] | None
) -> None:
    """Fit a model, or go on with its checkpoint; after an interrupt save it too."""
    model, optimizer = job.options["model"], job.options["keep_optimizer"]
    output, kept = job.output, KeptFit(job)
    name = "network__checkpoint" if model == "mixture" else "checkpoint"
    resumable = {name: kept.folder} if model in NETWORKS else {}
    try:
        with report_in_options(), redirect_stdout(sys.stderr), kept:
            lm.fit(texts, X_val=held_out, **resumable)
    except KeyboardInterrupt:
        if hasattr(lm, "estimator_"):
            _be_quiet(lm)
            nplm.save(lm, output, optimizer=optimizer)
            click.echo(f"{output} has the model as far as it was trained.", err=True)
        raise
    _be_quiet(lm)
    nplm.save(lm, output, optimizer=optimizer)
    kept.remove()


def _be_quiet(lm: TextLM) -> None:
    """Turn the progress of a model off, for those who train it further."""
    fitted = lm.estimator_
    members = *getattr(fitted, "estimators_", ()), getattr(fitted, "network_", None)
    for model in filter(None, (lm.estimator, fitted, *members)):
        names = [n for n in model.get_params() if n.split("__")[-1] == "verbose"]
        model.set_params(**dict.fromkeys(names, 0))


def _report(lm: TextLM, n_lines: int) -> None:
    text = known_of(vocabulary_of(lm)).text
    assert text is not None  # the words were chosen by it
    share = text.n_unknown / max(text.n_tokens, 1)
    report_words(n_lines, text.n_tokens, lm.n_words_, share)
