"""The options of each ``--model`` of ``nplm train``: a table, refusals and --help."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from nplm.cli._jobs import Jobs
from nplm.cli._values import (
    ABOVE_ZERO,
    DECAY,
    MAX_ORDER,
    NOT_NEGATIVE,
    POSITIVE,
    SHARES,
    SIZES,
)

__all__ = [
    "BY_MINUTES", "MODELS", "NETWORK", "ON_DISK", "OPEN_UNITS", "OPTIONS", "UNITS",
    "ModelCommand", "Settings", "is_given", "network_options", "network_settings",
    "refuse", "refuse_other_models",
]  # fmt: skip

Command = TypeVar("Command", bound=Callable[..., Any])
Settings = dict[str, Any]  # values by parameter

MODELS = (
    "kneser-ney", "trigram", "classes", "network", "energy", "shortlist", "mixture",
)  # fmt: skip
# Units that are a whole vocabulary, in which no text is unknown.
OPEN_UNITS = ("bpe", "unigram", "bytes")
UNITS = (*OPEN_UNITS, "characters")
ON_DISK = "memory folder bits min_counts min_counts_of of_counts no_marks"
# Stands for a model beside those of --model: what --minutes makes, which chooses all
# that these have options for.
BY_MINUTES = "--minutes"
# Models, and the parameters of the options that only these have.
TABLE = {
    BY_MINUTES: "text adapt members settings recipe continued errors",
    "kneser-ney": ON_DISK,
    "kneser-ney classes shortlist mixture": "discount_fallback",
    "kneser-ney shortlist mixture": "interpolate_unigrams",
    "classes": "n_classes",
    "network energy shortlist mixture": "n_hidden embedding_dim loss solver "
    "solver__learning_rate learning_rate_init solver__learning_rate_decay alpha "
    "max_iter n_iter_no_change batch_size parallel precision keep_optimizer",
    "network shortlist mixture": "output__direct dropout",
    # A short-list network trains on all words of its list.
    "network energy mixture": "loss__n_noise",
    "shortlist": "n_shortlist",
}
MODELS_OF = {
    parameter: models.split()
    for models, parameters in TABLE.items()
    for parameter in parameters.split()
}


def is_given(ctx: click.Context, name: str) -> bool:
    """Whether the user gave this parameter, and not its default."""
    return ctx.get_parameter_source(name) != click.core.ParameterSource.DEFAULT


def refuse(ctx: click.Context, names: Iterable[str], message: str) -> None:
    """Refuse the first of some parameters that is given; ``{}`` is its option."""
    for option in ctx.command.params:
        name = str(option.name)
        if name in names and is_given(ctx, name):
            raise click.UsageError(message.format(option.opts[0]))


# Options that --minutes decides, though all models have them.
DECIDED = ("model", "order", "min_count", "max_words", "words_path")


def refuse_other_models(ctx: click.Context, model: str) -> None:
    """Refuse an option that only other models have: it would change nothing."""
    others = {name: of for name, of in MODELS_OF.items() if model not in of}
    if model == BY_MINUTES:
        refuse(
            ctx, {*others, *DECIDED} - {"memory"},
            "--minutes chooses the models and their settings: leave {} out, or fix a "
            "choice by --set NAME=VALUE.",
        )  # fmt: skip
        return
    for name, models in others.items():
        refuse(
            ctx, [name],
            "{} is for --minutes: give the minutes, or leave it out."
            if models == [BY_MINUTES] else
            f"--model {model} has no {{}}, an option of {', '.join(models)}: leave it "
            "out, or train another --model.",
        )  # fmt: skip


class ModelCommand(click.Command):
    """A command whose --help has a section for the options of some models."""

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the options that all models have, then the others."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for option in self.get_params(ctx):
            models = MODELS_OF.get(str(option.name))
            title = "Options"
            if models is not None:
                by_minutes = models == [BY_MINUTES]
                title += f" of {'' if by_minutes else '--model '}{', '.join(models)}"
            record = option.get_help_record(ctx)
            if record is not None:
                sections.setdefault(title, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


# Options of networks, some of which all models have, in the order of --help: name, the
# name that set_params takes, type, default, and help text. The defaults are those of
# `NeuralLM`, whose import would slow the start of the commands.
OPTIONS: list[tuple[str, str, object, object, str]] = [
    (
        "--order",
        "order",
        click.IntRange(2, MAX_ORDER),
        5,
        "The n of the model: it sees n - 1 words of context.",
    ),
    (
        "--hidden",
        "n_hidden",
        SIZES,
        320,
        "Hidden units, h; 400,800,800 adds residual blocks of 800 units.",
    ),
    ("--embedding", "embedding_dim", POSITIVE, 144, "Features of a word, m."),
    (
        "--direct/--no-direct",
        "output__direct",
        None,
        False,
        "Direct connections from the features to the output units.",
    ),
    (
        "--loss",
        "loss",
        click.Choice(["auto", "exact", "importance", "nce"]),
        "auto",
        "Train on all words (exact), or on noise samples, which is many times as fast "
        "with a large vocabulary.",
    ),
    (
        "--samples",
        "loss__n_noise",
        POSITIVE,
        512,
        "Noise samples of a mini-batch, or with --loss nce of an example. With --loss "
        "auto this option chooses --loss importance.",
    ),
    (
        "--solver",
        "solver",
        click.Choice(["sgd", "adam"]),
        "adam",
        "sgd is the paper's.",
    ),
    (
        "--schedule",
        "solver__learning_rate",
        click.Choice(["auto", "invscaling", "linear", "constant"]),
        "auto",
        "How the learning rate falls: in a line to 0 over a few epochs, which end the "
        "fit (auto), or over all --epochs (linear); as in the paper (invscaling); or "
        "not at all.",
    ),
    (
        "--learning-rate",
        "learning_rate_init",
        ABOVE_ZERO,
        4e-3,
        "Learning rate at the start; with sgd that of one example.",
    ),
    (
        "--decay",
        "solver__learning_rate_decay",
        NOT_NEGATIVE,
        1e-8,
        "With --schedule invscaling the learning rate is divided by 1 + decay * "
        "examples seen.",
    ),
    (
        "--alpha",
        "alpha",
        DECAY,
        "auto",
        "Weight decay, not on the biases; auto is larger for small corpora.",
    ),
    (
        "--dropout",
        "dropout",
        SHARES,
        (0.05, 0.1, 0.15),
        "Share of the features and hidden units that each example leaves out; or three "
        "shares: of the features, the hidden units, and their projection.",
    ),
    (
        "--epochs",
        "max_iter",
        POSITIVE,
        100,
        "Epochs at most; the validation part may stop training earlier.",
    ),
    (
        "--patience",
        "n_iter_no_change",
        POSITIVE,
        1,
        "Epochs without a better validation perplexity before training stops.",
    ),
    (
        "--batch-size",
        "batch_size",
        POSITIVE,
        256,
        "Examples of an update; 1 is the paper's algorithm.",
    ),
    ("--jobs", "n_jobs", Jobs(), 1, "Threads; -1 is all cores."),
    (
        "--parallel",
        "parallel",
        click.Choice(["sync", "async", "locked"]),
        "sync",
        "How threads share the work: all compute each mini-batch (sync), or each has "
        "mini-batches of its own, without (async) or with a lock (locked).",
    ),
    (
        "--precision",
        "precision",
        click.Choice(["auto", "float32", "float64", "bfloat16"]),
        "auto",
        "Arithmetic of the network; bfloat16 rounds the factors of its products, and "
        "auto takes it where the processor multiplies it.",
    ),
    ("--seed", "random_state", click.IntRange(min=0), 0, "Random seed."),
]

NETWORK = {parameter for _, parameter, *_ in OPTIONS}


def network_options(command: Command) -> Command:
    """Add the options of networks to a command."""
    for name, parameter, type_, default, text in reversed(OPTIONS):
        command = click.option(name, parameter, type=type_, default=default, help=text)(
            command
        )
    return command


def network_settings(ctx: click.Context, parameters: Settings) -> Settings:
    """Return the settings of a network, for its ``set_params``.

    They are those given on the command line, except those of a loss or a solver that
    was not chosen, and those that all models have. What else there is is left to the
    network.
    """
    from nplm.models.neural.options.losses import LOSSES
    from nplm.models.neural.options.solvers import SOLVERS

    settings = {
        name: value
        for name, value in parameters.items()
        if name not in MODELS_OF or is_given(ctx, name)
    }
    samples_given = "loss__n_noise" in settings
    if samples_given and settings.get("loss", "auto") == "auto":
        settings["loss"] = "importance"
    if samples_given and settings["loss"] == "exact":
        raise click.UsageError(
            "--samples is the number of noise samples, and --loss exact has none: "
            "leave --samples out, or give --loss importance or nce."
        )
    for option, default, kinds in (
        ("loss", "auto", LOSSES),
        ("solver", "adam", SOLVERS),
    ):
        kind = settings.get(option, default)
        inner = kinds[kind]().get_params() if kind in kinds else {}
        for name in [n for n in settings if n.startswith(f"{option}__")]:
            if name.partition("__")[2] not in inner:
                del settings[name]
    return settings
