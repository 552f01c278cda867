"""Errors and warnings about parameters, in terms of the options of a command."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import click

from nplm.base.exceptions import DivergenceError

__all__ = ["check_auto_settings", "in_options", "report_in_options"]

# A parameter in a message: named with its value, as what to change, or by
# scikit-learn.
PARAMETER = re.compile(
    r"The '(?P<inner>\w+)' parameter of \w+"
    r"|(?P<verb>\b(?:lower|raise|set) )?(?<![\w.'-])(?P<name>[A-Za-z]\w*)"
    r"(?:=(?P<value>'[^']*'|\([^)]*\)|\[[^\]]*\]|[\w.+-]*\w)| and y_val\b)?"
)


@contextmanager
def report_in_options() -> Iterator[None]:
    """Report the warnings and the errors of a fit, in terms of the options.

    Each warning is reported once, and without the line of Python.
    """
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        try:
            yield
        except (ValueError, DivergenceError) as error:
            raise click.ClickException(in_options(str(error))) from error
        finally:
            for note in dict.fromkeys(str(note.message) for note in notes):
                click.echo(f"Note: {in_options(note)}", err=True)


def check_auto_settings(settings: dict[str, object]) -> None:
    """Refuse choices of `AutoLM`, those of --set and --members, that it has not."""
    from nplm.models.auto.choosing import checked_settings

    try:
        checked_settings(settings, "--set")
    except ValueError as error:
        message = str(error).replace("--set: members", "--members")
        raise click.UsageError(message) from error


def in_options(message: str) -> str:
    """Return a message about parameters in terms of the options of this command.

    A message names a parameter with its value (``n_hidden=0``), or alone.
    """
    context = click.get_current_context(silent=True)
    if context is None:
        return message
    if re.match(r"(MixtureLM|InterpolatedTrigram|ClassLM|WordClasses): ", message):
        # Its max_iter is not that of a network, and no option sets it.
        iterations = r" at max_iter=(\d+); raise max_iter, or tol=\S+$"
        return re.sub(iterations, r" after \1 iterations, the most there are.", message)
    # Files and standard input are read once only, unlike texts in Python.
    message = re.sub(
        r"the texts have no word: .*", "there is no word in the text.", message
    )
    options = {
        str(option.name): option
        for option in context.command.params
        if isinstance(option, click.Option)
    }
    if "valid" in options:
        options["X_val"] = options["valid"]
    inner = {name.partition("__")[2]: option for name, option in options.items()}

    def replaced(parameter: re.Match[str]) -> str:
        name, value = parameter["name"], parameter["value"]
        if parameter["inner"]:
            option = options.get(parameter["inner"]) or inner.get(parameter["inner"])
            return option.opts[0] if option else parameter[0]
        option = options.get(name)
        # A name without "_" may be a word like any other.
        if option is None or not (value or parameter["verb"] or "_" in name):
            return parameter[0]
        verb = parameter["verb"] or ""
        if option.is_flag:
            is_off = value == "False" and option.secondary_opts
            return verb + (option.secondary_opts if is_off else option.opts)[0]
        return " ".join([verb + option.opts[0], *([_as_typed(value)] if value else [])])

    return PARAMETER.sub(replaced, message)


def _as_typed(value: str) -> str:
    """Return a value of a message as an option takes it."""
    if value[0] == "'":
        return value[1:-1]
    if value[0] not in "([":
        return value
    numbers = value[1:-1].rstrip(",").split(",")
    return ",".join(f"{float(number):.12g}" for number in numbers)
