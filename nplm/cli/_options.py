"""Options for the parameters of the network, with its own defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
import numpy as np

from nplm import NeuralLM
from nplm.models.ngrams.discounts import check_fallback

__all__ = [
    "COMMON",
    "NETWORK",
    "POSITIVE",
    "Discounts",
    "in_options",
    "network_options",
]

Command = TypeVar("Command", bound=Callable[..., Any])

# Beyond it a text repeats nothing, and takes memory and time for nothing.
MAX_ORDER = 32
COMMON = {"order": 5, "n_jobs": 1, "random_state": 0}
POSITIVE = click.IntRange(min=1)
NOT_NEGATIVE = click.FloatRange(min=0)
ABOVE_ZERO = click.FloatRange(min=0, min_open=True)


class Jobs(click.ParamType):
    """A number of threads, or -1 for all cores."""

    name = "integer"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """Refuse 0, which is no number of threads."""
        n: int = click.INT.convert(value, param, ctx)
        if n == 0:
            self.fail("0 threads do nothing: give 1 or more, or -1 for all cores.")
        return n


class Shares(click.ParamType):
    """A share of what is left out, or three with commas between."""

    name = "share"
    one = click.FloatRange(0, 1, max_open=True)

    def convert(self, value: Any, param: Any, ctx: Any) -> float | tuple[float, ...]:
        """Refuse other than one or three numbers."""
        given: Any = (
            value.split(",") if isinstance(value, str) else np.atleast_1d(value)
        )
        shares = tuple(self.one.convert(share, param, ctx) for share in given)
        if len(shares) not in (1, 3):
            self.fail(f"{value} are {len(shares)} shares: give one or three.")
        return shares[0] if len(shares) == 1 else shares


class Discounts(click.ParamType):
    """A discount, or three with commas between."""

    name = "discounts"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[float, float, float]:
        """Refuse what `KneserNeyLM` refuses."""
        if isinstance(value, tuple):
            return value
        try:
            numbers = [float(number) for number in value.split(",")]
            given = numbers if len(numbers) > 1 else numbers[0]
            fallback = check_fallback(given, interpolate=True)
        except ValueError:
            self.fail(
                f"{value!r} must be one number above 0 and at most 1, or three, above "
                "0 and at most 1, 2 and 3, with commas between: 0.5,1,1.5 for example."
            )
        assert fallback is not None
        return fallback


def in_options(warning: str) -> str:
    """Say what a warning advises in the words of the command line."""
    return warning.replace(
        "discount_fallback=(0.5, 1, 1.5)", "--discount-fallback 0.5,1,1.5"
    )


# In the order in which --help shows them: name, parameter, type and what it says.
OPTIONS: list[tuple[str, str, Any, str]] = [
    (
        "--order",
        "order",
        click.IntRange(2, MAX_ORDER),
        "The n of the model: it sees n - 1 words of context.",
    ),
    ("--hidden", "n_hidden", click.IntRange(min=0), "Hidden units, h."),
    ("--embedding", "embedding_dim", POSITIVE, "Features of a word, m."),
    (
        "--direct/--no-direct",
        "direct",
        None,
        "Direct connections from the features to the output.",
    ),
    (
        "--loss",
        "loss",
        click.Choice(["auto", "exact", "importance", "nce"]),
        "Gradient of all words, or of words drawn for each mini-batch: many times as "
        "fast.",
    ),
    ("--samples", "n_samples", POSITIVE, "Words drawn for a mini-batch."),
    ("--solver", "solver", click.Choice(["sgd", "adam"]), "sgd is the paper's."),
    (
        "--schedule",
        "learning_rate",
        click.Choice(["adaptive", "invscaling", "linear", "constant"]),
        "How the step falls: by held-out text, the paper's way, in a line to 0 "
        "at the end, or not.",
    ),
    (
        "--learning-rate",
        "learning_rate_init",
        ABOVE_ZERO,
        "Step at first; with sgd that of an example.",
    ),
    (
        "--decay",
        "learning_rate_decay",
        NOT_NEGATIVE,
        "With invscaling the step is divided by 1 + decay * examples seen.",
    ),
    ("--alpha", "alpha", NOT_NEGATIVE, "Weight decay, not on the biases."),
    (
        "--dropout",
        "dropout",
        Shares(),
        "Share of features and hidden units that an example leaves out; or three: of "
        "features, hidden units, and their projection.",
    ),
    (
        "--epochs",
        "max_iter",
        POSITIVE,
        "At most so many; the validation part may stop training earlier.",
    ),
    (
        "--patience",
        "n_iter_no_change",
        POSITIVE,
        "Epochs without a better validation perplexity before stopping.",
    ),
    (
        "--batch-size",
        "batch_size",
        POSITIVE,
        "Examples an update; 1 is the paper's algorithm.",
    ),
    ("--jobs", "n_jobs", Jobs(), "Threads; -1 is all cores."),
    (
        "--parallel",
        "parallel",
        click.Choice(["rows", "async", "locked"]),
        "What threads share: output rows, or examples.",
    ),
    (
        "--precision",
        "precision",
        click.Choice(["float32", "float64", "bfloat16"]),
        "Arithmetic of the network; bfloat16 rounds the large products of float32.",
    ),
    ("--seed", "random_state", click.IntRange(min=0), "Random seed."),
]

NETWORK = {parameter for _, parameter, *_ in OPTIONS}


def network_options(**changed: Any) -> Callable[[Command], Command]:
    """Give a command the parameters of `NeuralLM` as options.

    Their defaults are its own, but for those `changed`.
    """
    defaults = NeuralLM().get_params() | COMMON | changed

    def decorate(command: Command) -> Command:
        for name, parameter, type_, text in reversed(OPTIONS):
            command = click.option(
                name, parameter, type=type_, default=defaults[parameter], help=text
            )(command)
        return command

    return decorate
