"""Options for the parameters of the network."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click
import numpy as np

from nplm import Adam, Importance, NeuralLM, Softmax
from nplm.cli._jobs import Jobs
from nplm.models.neural.network.hidden import checked_sizes
from nplm.models.neural.options.losses import LOSSES
from nplm.models.neural.options.solvers import SOLVERS
from nplm.models.ngrams.stages.discounts import check_fallback

__all__ = [
    "COMMON",
    "NETWORK",
    "POSITIVE",
    "Counts",
    "Discounts",
    "Weights",
    "in_options",
    "is_given",
    "network_options",
    "network_settings",
]

Command = TypeVar("Command", bound=Callable[..., Any])

# Longer n-grams do not repeat in a text; they only take memory and time.
MAX_ORDER = 32
COMMON: dict[str, Any] = {"order": 5, "n_jobs": 1, "random_state": 0}
POSITIVE = click.IntRange(min=1)
NOT_NEGATIVE = click.FloatRange(min=0)
ABOVE_ZERO = click.FloatRange(min=0, min_open=True)


class Decay(click.ParamType):  # type: ignore[type-arg]
    """A weight decay, or "auto"."""

    name = "float|auto"

    def convert(self, value: Any, param: Any, ctx: Any) -> float | str:
        """Convert to a number, or return "auto"."""
        if value == "auto":
            return "auto"
        number: float = NOT_NEGATIVE.convert(value, param, ctx)
        return number


class Shares(click.ParamType):  # type: ignore[type-arg]
    """A dropout share, or three separated by commas."""

    name = "share"
    one = click.FloatRange(0, 1, max_open=True)

    def convert(self, value: Any, param: Any, ctx: Any) -> float | tuple[float, ...]:
        """Convert to one share, or to three."""
        given: Any = (
            value.split(",") if isinstance(value, str) else np.atleast_1d(value)
        )
        shares = tuple(self.one.convert(share, param, ctx) for share in given)
        if len(shares) not in (1, 3):
            self.fail(f"{value} has {len(shares)} shares: give one or three.")
        return shares[0] if len(shares) == 1 else shares


class Units(click.ParamType):  # type: ignore[type-arg]
    """A number of hidden units, or also those of residual blocks, by commas."""

    name = "integer"

    def convert(self, value: Any, param: Any, ctx: Any) -> int | tuple[int, ...]:
        """Convert to the `n_hidden` of `NeuralLM`."""
        given: Any = value.split(",") if isinstance(value, str) else value
        try:
            return checked_sizes(
                [int(n) for n in given] if np.iterable(given) else given
            )
        except ValueError:
            self.fail(
                f"{value!r} must be a whole number from 0 on, or the numbers of hidden "
                "units and of those of each residual block, from 1 on, separated by "
                "commas, such as 400,800,800."
            )


class Counts(click.ParamType):  # type: ignore[type-arg]
    """Minimum counts, one per order, separated by commas."""

    name = "counts"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[int, ...]:
        """Convert to the `min_counts` of `KneserNeyLM`."""
        try:
            counts = tuple(
                map(int, value.split(",") if isinstance(value, str) else value)
            )
        except ValueError:
            counts = (0,)
        if min(counts) < 1:
            self.fail(
                f"{value!r} must be whole numbers from 1 on, one per order, separated "
                "by commas, such as 1,1,2."
            )
        return counts


class Weights(click.ParamType):  # type: ignore[type-arg]
    """Weights separated by commas, one for each `argument`."""

    name = "w1,w2,..."

    def __init__(self, argument: str) -> None:
        self._argument = argument

    def convert(self, value: Any, param: Any, ctx: Any) -> list[float]:
        """Convert to a list of numbers."""
        try:
            return [float(number) for number in value.split(",")]
        except ValueError:
            self.fail(
                f"{value!r} must be a number for each {self._argument}, separated by "
                "commas, such as 0.7,0.3."
            )


class Discounts(click.ParamType):  # type: ignore[type-arg]
    """A discount, or three separated by commas."""

    name = "discounts"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[float, float, float]:
        """Convert to the three discounts that `KneserNeyLM` takes."""
        if isinstance(value, tuple):
            return value
        try:
            numbers = [float(number) for number in value.split(",")]
            given = numbers if len(numbers) > 1 else numbers[0]
            fallback = check_fallback(given, interpolate=True)
        except ValueError:
            self.fail(
                f"{value!r} must be one number above 0 and at most 1, or three, above "
                "0 and at most 1, 2 and 3, separated by commas, such as 0.5,1,1.5."
            )
        assert fallback is not None
        return fallback


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
        Units(),
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
        Decay(),
        "Weight decay, not on the biases; auto is larger for small corpora.",
    ),
    (
        "--dropout",
        "dropout",
        Shares(),
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
        click.Choice(["float32", "float64", "bfloat16"]),
        "Arithmetic of the network; bfloat16 rounds the large products of float32.",
    ),
    ("--seed", "random_state", click.IntRange(min=0), "Random seed."),
]

NETWORK = {parameter for _, parameter, *_ in OPTIONS}


def network_options(**changed: Any) -> Callable[[Command], Command]:
    """Add the parameters of `NeuralLM` to a command as options.

    The defaults are those of `NeuralLM`, except those in `changed`.
    """
    expanded = NeuralLM(loss=Importance(), solver=Adam(), output=Softmax())
    defaults = expanded.get_params() | NeuralLM().get_params() | COMMON | changed

    def decorate(command: Command) -> Command:
        for name, parameter, type_, text in reversed(OPTIONS):
            command = click.option(
                name, parameter, type=type_, default=defaults[parameter], help=text
            )(command)
        return command

    return decorate


def is_given(ctx: click.Context, name: str) -> bool:
    """Whether the user gave this parameter, and not its default."""
    return ctx.get_parameter_source(name) != click.core.ParameterSource.DEFAULT


def network_settings(
    ctx: click.Context, parameters: Mapping[str, Any], **usual: Any
) -> dict[str, Any]:
    """Return the settings of a network, for its ``set_params``.

    They are those given on the command line, and then the `usual` ones of the command,
    except those of a loss or a solver that was not chosen. What neither has is left to
    the network.
    """
    given = {n: value for n, value in parameters.items() if is_given(ctx, n)}
    settings = COMMON | usual | given
    samples_given = "loss__n_noise" in given
    if samples_given and settings.get("loss", "auto") == "auto":
        settings["loss"] = "importance"
    if samples_given and settings["loss"] == "exact":
        raise click.UsageError(
            "--samples is the number of noise samples, and --loss exact has none: "
            "leave --samples out, or give --loss importance or nce."
        )
    chosen = settings.get("loss", "auto"), settings.get("solver", "adam")
    for option, value, kinds in zip(("loss", "solver"), chosen, (LOSSES, SOLVERS)):
        own = kinds[value]().get_params() if value in kinds else {}
        for name in [n for n in settings if n.startswith(f"{option}__")]:
            if name.partition("__")[2] not in own:
                del settings[name]
    return settings


def in_options(message: str) -> str:
    """Return a message about parameters of a network in terms of the options."""
    model = re.match(r"(\w+LM|\w+Trigram|WordClasses): ", message)
    if model and model[1] not in ("NeuralLM", "EnergyLM"):
        # Its max_iter is not that of a network, and no option sets it.
        iterations = r" at max_iter=(\d+); raise it, or tol=\S+$"
        return re.sub(iterations, r" after \1 iterations, the most there are.", message)
    for pattern, said in SAID:
        message = re.sub(pattern, said, message)
    return message


def _weights_as_given(found: re.Match[str]) -> str:
    """Return weights as the option takes them."""
    numbers = found[1].split(", ") if found[1] else []
    return f"--weights {','.join(f'{float(number):.12g}' for number in numbers)}"


def _said() -> list[tuple[str, str | Callable[[re.Match[str]], str]]]:
    """List patterns of messages, and what the command line says."""
    said: list[tuple[str, str | Callable[[re.Match[str]], str]]] = [
        (r"discount_fallback=\(0\.5, 1, 1\.5\)", "--discount-fallback 0.5,1,1.5"),
        (r"\bmemory='([^']*)'", r"--memory \1"),
        (r"\bmin_counts_of='(\w+)'", r"--min-counts-of \1"),
        (r"\bmin_counts=\(([\d, ]*?),?\)", r"--min-counts \1"),
        (r"\bX_val( and y_val)?\b", "--valid"),
        (r"the texts have no word: .*", "there is no word in the text."),
        (r"\blower order\b", "lower --order"),
        (r"\bmax_ngrams=(\d+)", r"--max-ngrams \1"),
        (r"\bmax_ngrams\b", "--max-ngrams"),
        (r"\bweights=\[([^\]]*)\]", _weights_as_given),
        (r"\bone for each model\b", "one for each MODEL"),
        (r"\blower the weights\b", "lower --weights"),
        (r"\boutput__direct=False\b", "--no-direct"),
        (r"\boutput__direct(=True)?\b", "--direct"),
    ]
    for name, parameter, *_ in OPTIONS:
        if parameter != "output__direct":
            inner = re.escape(parameter.partition("__")[2] or parameter)
            full = rf"(?<![\w.'-]){re.escape(parameter)}"
            said.append((rf"{full}=(?:'(\w+)'|([\w.+-]*\w))", rf"{name} \1\2"))
            said.append((rf"The '{inner}' parameter of \w+", name))
            if "_" in parameter:  # else a word like any other
                said.append((rf"{full}\b(?!=)", name))
    return said


SAID = _said()
