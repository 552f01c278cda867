"""Errors and warnings about parameters, in terms of the options of a command."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import click

from nplm.base.exceptions import DivergenceError, ParameterMessage, in_python
from nplm.cli._options import chosen_model, models_of

Options = dict[str, click.Option | str]  # by parameter
# Parameters of Python whose options have other names, or are no options.
OTHER_NAMES = {"X_val": "valid", "checkpoint": "output", "before": "continued"}
OTHER_WORDS: Options = {"X": "TEXT", "running_text": "--text running"}

# Errors that a fit raises: the last two where a file stands in place of a folder.
REPORTED = (
    ValueError, DivergenceError, MemoryError, FileExistsError, NotADirectoryError,
)  # fmt: skip


@contextmanager
def report_in_options() -> Iterator[None]:
    """Report warnings, each once, and errors of a fit in terms of the options."""
    context, reported = click.get_current_context(), set()

    def report(message: Warning | str, *args: Any, **kwargs: Any) -> None:
        with context.scope(cleanup=False):  # of another thread, too
            note = in_options(message)
        if note not in reported:
            reported.add(note)
            # Not by click.echo, which would write into the line of a bar.
            print(f"Note: {note}", file=sys.stderr)

    with warnings.catch_warnings():  # which restores `showwarning`, too
        warnings.simplefilter("always")
        warnings.showwarning = report
        try:
            yield
        except REPORTED as error:
            raise click.ClickException(sentence_of(error)) from error


def check_auto_settings(settings: dict[str, object]) -> None:
    """Refuse choices of `AutoLM`, those of --set and --members, that it has not."""
    from nplm.models.auto.choosing import checked_settings

    try:
        checked_settings(settings)
    except ValueError as error:
        raise click.UsageError(in_options(error)) from error


def sentence_of(error: Exception) -> str:
    """Return the message of an error, without the error numbers of the system."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror.removesuffix('.')}."
    if isinstance(error, MemoryError):
        return f"out of memory: {in_options(error) or 'this process gets no more'}."
    return in_options(error)


def in_options(problem: BaseException | str) -> str:
    """Return the message of an error or a warning, in terms of the options."""
    context = click.get_current_context(silent=True)
    [message, *_] = getattr(problem, "args", ()) or [None]
    if context is None or not isinstance(message, ParameterMessage):
        return str(problem)
    chosen = chosen_model(context)
    options = {
        str(option.name): option
        for option in context.command.params
        if isinstance(option, click.Option)
        and (chosen is None or chosen in models_of(option))
    }
    others = {name: options[of] for name, of in OTHER_NAMES.items() if of in options}
    options.pop("output", None)  # a parameter of networks has this name
    inner = {name.partition("__")[2]: option for name, option in options.items()}
    words = OTHER_WORDS | inner | options | others
    return message.in_words(partial(_as_option, words))


def _as_option(options: Options, name: str, words: str, *value: object) -> str:
    option = options.get(name)
    if option is None:
        return in_python(name, words, *value)
    if isinstance(option, str):
        return option
    if option.is_flag:
        is_off = value == (False,) and option.secondary_opts
        return (option.secondary_opts if is_off else option.opts)[0]
    return " ".join([option.opts[0], *map(_as_typed, value)])


def _as_typed(value: object) -> str:
    """Return a value of a parameter as an option takes it."""
    if isinstance(value, (list, tuple)):
        return ",".join(map(_as_typed, value))
    return f"{value:.12g}" if isinstance(value, float) else str(value)
