"""Models that ``nplm train`` fits in memory, and how fits are kept and saved."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import click

import nplm
from nplm import (
    CheckpointError,
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
from nplm.cli._bars import stages
from nplm.cli._messages import report_in_options
from nplm.cli._models import vocabulary_of
from nplm.cli._options import MODELS, NETWORKS, Settings, is_given, models_of
from nplm.cli._outputs import notify, refuse_arpa
from nplm.cli._tally import report_words
from nplm.cli.training.job import Job
from nplm.cli.training.options import OPEN_UNITS, SMOOTHING, UNITS
from nplm.models.neural.network_lm import NetworkLM
from nplm.models.neural.options.losses import LOSSES
from nplm.models.neural.options.solvers import SOLVERS
from nplm.models.training.checkpoint import discard, has_save
from nplm.models.training.folder_lock import FolderLock
from nplm.text.words.splitting import BETWEEN_BLANKS


def train_in_memory(job: Job) -> None:
    """Train a model in memory, save it, and report."""
    options = job.options
    lm = _text_lm(job)
    of_words = "--tokens words or blanks with " if options["tokens"] in UNITS else ""
    refuse_arpa(
        job.output,
        f", or train {of_words}--model kneser-ney, whose n-grams an ARPA file holds",
    )
    # Until the model is saved: another run of this output would take the state.
    is_kept = options["model"] in NETWORKS.split()
    lock = FolderLock(job.checkpoint) if is_kept else nullcontext()
    with report_in_options(), lock as folder:
        texts, held_out = job.read(at_blanks=options["tokens"] == "blanks")
        _fit_and_save(lm, job, folder, texts, held_out)
    _report(lm, len(texts))
    job.report(lm.scorer())


def _text_lm(job: Job) -> TextLM:
    """Make the model that the options ask for."""
    options, choice = job.options, job.choice
    tokens, n_words = options["tokens"], options["max_words"]
    tokenizer = tokenizer_of(tokens) or Tokenizer()
    if tokens in OPEN_UNITS and n_words is not None:
        tokenizer.set_params(n_words=n_words - 1)  # </s> is one more
    vocabulary = Vocabulary(choice.min_count, choice.max_words, words=choice.words)
    return TextLM(
        _estimator(options),
        options["order"] - 1,
        tokenizer=tokenizer,
        vocabulary="auto" if tokens in OPEN_UNITS else vocabulary,
    )


def _estimator(options: Settings) -> LanguageModel:
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
    ngrams = KneserNeyLM(**{name: options[name] for name in SMOOTHING})
    if model == "kneser-ney":
        return ngrams
    network = _network(options)
    if model == "shortlist":
        assert isinstance(network, NeuralLM)
        return ShortlistLM(network, ngrams, n_shortlist=options["n_shortlist"])
    if model == "mixture":
        # The network comes last: after an interrupt the mixture is then whole.
        return MixtureLM([("ngrams", ngrams), ("network", network)])
    return network


def _network(options: Settings) -> NetworkLM:
    """Make a network of the options that are given, and check its parameters.

    It has the options that all models have, and the others of the command line but
    those of a loss or a solver that was not chosen.
    """
    network = EnergyLM() if options["model"] == "energy" else NeuralLM()
    names = network.get_params(deep=False)
    params = click.get_current_context().command.params
    of_all = {o.name for o in params if set(models_of(o)) >= set(MODELS)}
    settings = {
        name: value
        for name, value in options.items()
        if name.partition("__")[0] in names and (name in of_all or is_given(name))
    }
    loss, samples_given = settings.get("loss", "auto"), "loss__n_noise" in settings
    if options["model"] == "shortlist" and loss not in ("auto", "exact"):
        raise click.UsageError(
            "the network of --model shortlist trains on all words of its list: leave "
            "--loss out, or give --loss exact."
        )
    if samples_given and loss == "exact":
        raise click.UsageError(
            "--samples is the number of noise samples, and --loss exact has none: "
            "leave --samples out, or give --loss importance or nce."
        )
    if samples_given and loss == "auto":
        settings["loss"] = "importance"
    for part, default, kinds in ("loss", "auto", LOSSES), ("solver", "adam", SOLVERS):
        kind = settings.get(part, default)
        inner = kinds[kind]().get_params() if kind in kinds else {}
        for name in [n for n in settings if n.startswith(f"{part}__")]:
            if name.partition("__")[2] not in inner:
                del settings[name]
    with report_in_options():
        network.set_params(**settings).check_settings()
    return network


def _fit_and_save(
    lm: TextLM,
    job: Job,
    folder: FolderLock | None,
    texts: list[str],
    held_out: list[str] | None,
) -> None:
    """Fit a model, or go on with its checkpoint; after an interrupt save it too."""
    optimizer = job.options["keep_optimizer"]
    is_mixture = job.options["model"] == "mixture"
    name = "network__checkpoint" if is_mixture else "checkpoint"
    resumable = {} if folder is None else {name: folder}
    with kept_fit(job):
        try:
            # Every stage is shown: those of models without `verbose`, too.
            with stages(lines=10) as bars, bars.enclosing():
                lm.fit(texts, X_val=held_out, **resumable)
        except KeyboardInterrupt:
            if hasattr(lm, "estimator_"):
                save_trained(lm, job, optimizer=optimizer, whole=False)
            raise
        save_trained(lm, job, optimizer=optimizer, whole=True)
    discard(job.checkpoint if folder is None else folder)


def _report(lm: TextLM, n_lines: int) -> None:
    text = vocabulary_of(lm).known.text
    assert text is not None  # the words were chosen by it
    share = text.n_unknown / max(text.n_tokens, 1)
    report_words(n_lines, text.n_tokens, lm.n_words_, share)


# -- for the fits of some minutes, too ------------------------------------------


def tokenizer_of(tokens: str) -> Tokenizer | Subwords | None:
    """Return the tokenizer of --tokens; None of words, which models have by default."""
    if tokens in UNITS:
        return Subwords(tokens)
    if tokens == "logs":
        return Tokenizer.for_logs()
    return Tokenizer(BETWEEN_BLANKS) if tokens == "blanks" else None


@contextmanager
def kept_fit(job: Job) -> Iterator[None]:
    """Say how to go on after an interrupt or a full disk, and how to begin anew.

    The checkpoint may be that of another fit.
    """
    folder = job.checkpoint
    if has_save(folder):
        notify(f"Going on from {folder}.")
    try:
        yield
    except (KeyboardInterrupt, OSError):
        if has_save(folder):
            notify(
                f"The state of the fit is in {folder}: the same command goes on from "
                "there."
            )
        raise
    except CheckpointError as error:
        # Not if another fit is at work in the folder, which would lose its state.
        if not isinstance(error.__cause__, BlockingIOError):
            notify(
                f"To begin anew, remove the folder {folder} or give another --output."
            )
        raise


def save_trained(lm: TextLM, job: Job, *, optimizer: bool, whole: bool) -> None:
    """Save a model; one that is not `whole` was interrupted."""
    nplm.save(lm, job.output, optimizer=optimizer)
    if not whole:
        notify(f"{job.output} has the model as far as it was trained.")
