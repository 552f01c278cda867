"""Options for the parameters of the network, with its own defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from nplm import NeuralLM

__all__ = ["POSITIVE", "network_options"]

POSITIVE = click.IntRange(min=1)
NOT_NEGATIVE = click.FloatRange(min=0)
ABOVE_ZERO = click.FloatRange(min=0, min_open=True)
DEFAULTS = NeuralLM().get_params()


def _option(name: str, parameter: str, type_: Any, text: str) -> Any:
    return click.option(
        name, parameter, type=type_, default=DEFAULTS[parameter], help=text
    )


# In the order in which --help shows them.
OPTIONS = [
    click.option(
        "--order",
        type=click.IntRange(min=2),
        default=5,
        help="The network's n: it sees n - 1 words of context.",
    ),
    _option("--hidden", "n_hidden", click.IntRange(min=0), "Hidden units, h."),
    _option("--embedding", "embedding_dim", POSITIVE, "Features of a word, m."),
    click.option(
        "--direct/--no-direct",
        default=DEFAULTS["direct"],
        help="Direct connections from the features to the output.",
    ),
    _option(
        "--learning-rate",
        "learning_rate_init",
        ABOVE_ZERO,
        "Step at first; it falls by what the validation part says.",
    ),
    _option("--alpha", "alpha", NOT_NEGATIVE, "Weight decay, not on the biases."),
    _option(
        "--epochs",
        "max_iter",
        POSITIVE,
        "At most so many; the validation part may stop training earlier.",
    ),
    _option(
        "--patience",
        "n_iter_no_change",
        POSITIVE,
        "Epochs without a better validation perplexity before stopping.",
    ),
    _option(
        "--batch-size",
        "batch_size",
        POSITIVE,
        "Examples an update; 1 is the paper's algorithm.",
    ),
    _option("--jobs", "n_jobs", int, "Threads; -1 is all cores.  [default: 1]"),
    _option(
        "--parallel",
        "parallel",
        click.Choice(["rows", "async", "locked"]),
        "What threads share: output rows, or examples.",
    ),
    _option(
        "--precision",
        "precision",
        click.Choice(["float32", "float64", "bfloat16"]),
        "Arithmetic of the network; bfloat16 rounds the large products of float32.",
    ),
    click.option(
        "--seed",
        "random_state",
        type=click.IntRange(min=0),
        default=0,
        help="Random seed.",
    ),
]


def network_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the parameters of `NeuralLM` as options."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command
