"""Options for the parameters of the network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from nplm.cli._jobs import Jobs
from nplm.cli._model_options import is_given
from nplm.cli._values import (
    ABOVE_ZERO,
    DECAY,
    MAX_ORDER,
    NOT_NEGATIVE,
    POSITIVE,
    SHARES,
    UNITS,
)

__all__ = ["NETWORK", "Settings", "network_options", "network_settings"]

Command = TypeVar("Command", bound=Callable[..., Any])
Settings = dict[str, Any]  # values by parameter

COMMON: Settings = {"order": 5, "n_jobs": 1, "random_state": 0}
# In the order of --help: name, the name that set_params takes, type, and help text.
OPTIONS: list[tuple[str, str, Any, str]] = [
    (
        "--order",
        "order",
        click.IntRange(2, MAX_ORDER),
        "The n of the model: it sees n - 1 words of context.",
    ),
    (
        "--hidden",
        "n_hidden",
        UNITS,
        "Hidden units, h; 400,800,800 adds residual blocks of 800 units.",
    ),
    ("--embedding", "embedding_dim", POSITIVE, "Features of a word, m."),
    (
        "--direct/--no-direct",
        "output__direct",
        None,
        "Direct connections from the features to the output units.",
    ),
    (
        "--loss",
        "loss",
        click.Choice(["auto", "exact", "importance", "nce"]),
        "Train on all words (exact), or on noise samples, which is many times as fast "
        "with a large vocabulary.",
    ),
    (
        "--samples",
        "loss__n_noise",
        POSITIVE,
        "Noise samples of a mini-batch, or with --loss nce of an example. With --loss "
        "auto this option chooses --loss importance.",
    ),
    ("--solver", "solver", click.Choice(["sgd", "adam"]), "sgd is the paper's."),
    (
        "--schedule",
        "solver__learning_rate",
        click.Choice(["auto", "invscaling", "linear", "constant"]),
        "How the learning rate falls: in a line to 0 over a few epochs, which end the "
        "fit (auto), or over all --epochs (linear); as in the paper (invscaling); or "
        "not at all.",
    ),
    (
        "--learning-rate",
        "learning_rate_init",
        ABOVE_ZERO,
        "Learning rate at the start; with sgd that of one example.",
    ),
    (
        "--decay",
        "solver__learning_rate_decay",
        NOT_NEGATIVE,
        "With --schedule invscaling the learning rate is divided by 1 + decay * "
        "examples seen.",
    ),
    (
        "--alpha",
        "alpha",
        DECAY,
        "Weight decay, not on the biases; auto is larger for small corpora.",
    ),
    (
        "--dropout",
        "dropout",
        SHARES,
        "Share of the features and hidden units that each example leaves out; or three "
        "shares: of the features, the hidden units, and their projection.",
    ),
    (
        "--epochs",
        "max_iter",
        POSITIVE,
        "Epochs at most; the validation part may stop training earlier.",
    ),
    (
        "--patience",
        "n_iter_no_change",
        POSITIVE,
        "Epochs without a better validation perplexity before training stops.",
    ),
    (
        "--batch-size",
        "batch_size",
        POSITIVE,
        "Examples of an update; 1 is the paper's algorithm.",
    ),
    ("--jobs", "n_jobs", Jobs(), "Threads; -1 is all cores."),
    (
        "--parallel",
        "parallel",
        click.Choice(["sync", "async", "locked"]),
        "How threads share the work: all compute each mini-batch (sync), or each has "
        "mini-batches of its own, without (async) or with a lock (locked).",
    ),
    (
        "--precision",
        "precision",
        click.Choice(["auto", "float32", "float64", "bfloat16"]),
        "Arithmetic of the network; bfloat16 rounds the factors of its products, and "
        "auto takes it where the processor multiplies it.",
    ),
    ("--seed", "random_state", click.IntRange(min=0), "Random seed."),
]

NETWORK = {parameter for _, parameter, *_ in OPTIONS}
# Those of `NeuralLM` and its parts, whose import would slow the start of the commands.
DEFAULTS: Settings = {
    "n_hidden": 320, "embedding_dim": 144, "output__direct": False, "loss": "auto",
    "loss__n_noise": 512, "solver": "adam", "solver__learning_rate": "auto",
    "learning_rate_init": 4e-3, "solver__learning_rate_decay": 1e-8, "alpha": "auto",
    "dropout": (0.05, 0.1, 0.15), "max_iter": 100, "n_iter_no_change": 1,
    "batch_size": 256, "parallel": "sync", "precision": "auto",
}  # fmt: skip


def network_options(**changed: Any) -> Callable[[Command], Command]:
    """Add the parameters of `NeuralLM` to a command as options.

    The defaults are those of `NeuralLM`, except those in `changed`.
    """
    defaults = DEFAULTS | COMMON | changed

    def decorate(command: Command) -> Command:
        for name, parameter, type_, text in reversed(OPTIONS):
            command = click.option(
                name, parameter, type=type_, default=defaults[parameter], help=text
            )(command)
        return command

    return decorate


def network_settings(
    ctx: click.Context, parameters: Settings, **usual: Any
) -> Settings:
    """Return the settings of a network, for its ``set_params``.

    They are those given on the command line, and then the `usual` ones of the command,
    except those of a loss or a solver that was not chosen. What neither has is left to
    the network.
    """
    from nplm.models.neural.options.losses import LOSSES
    from nplm.models.neural.options.solvers import SOLVERS

    chosen = {n: value for n, value in parameters.items() if is_given(ctx, n)}
    settings = COMMON | usual | chosen
    samples_given = "loss__n_noise" in chosen
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
