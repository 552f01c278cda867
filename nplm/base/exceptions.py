"""Exceptions of nplm, and modules whose packages may be missing."""

from collections.abc import Callable
from importlib import import_module
from string import Formatter
from typing import Any, Self


class ParameterMessage(str):
    """A message of an error or a warning that names parameters.

    In `text`, ``{alpha}`` is a parameter with its value, or its name alone if
    `parameters` lacks it; ``{alpha:the alpha}`` is its name, which is "the alpha" in
    Python; and ``{0}`` is the first of `details`. `advice` is a sentence at the end
    that only Python can follow.
    """

    def __new__(
        cls, text: str, *details: object, advice: str = "", **parameters: object
    ) -> Self:
        """Write the message as Python does."""
        fields = _Fields(in_python, parameters)
        message = super().__new__(cls, fields.vformat(text, details, {}) + advice)
        message.text, message.details, message.advice = text, details, advice
        message.parameters = parameters
        return message

    text: str
    details: tuple[object, ...]
    advice: str
    parameters: dict[str, object]

    def __getnewargs_ex__(self) -> Any:
        return (self.text, *self.details), self.parameters | {"advice": self.advice}

    def in_words(self, say: Callable[..., str]) -> str:
        """Return the message, in which ``say(name, words, *value)`` is a parameter."""
        return _Fields(say, self.parameters).vformat(self.text, self.details, {})


def parameter_error(text: str, *details: object, **parameters: Any) -> ValueError:
    """Return the error of a `ParameterMessage`."""
    return ValueError(ParameterMessage(text, *details, **parameters))


class _Parameter(str):
    """The name of a parameter in a message."""


class _Fields(Formatter):
    """The fields of a message."""

    def __init__(self, say: Callable[..., str], parameters: dict[str, object]) -> None:
        self._say, self._parameters = say, parameters

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        is_detail = field_name.isdigit()
        field = args[int(field_name)] if is_detail else _Parameter(field_name)
        return field, field_name

    def format_field(self, value: Any, format_spec: str) -> str:
        if not isinstance(value, _Parameter):
            return str(super().format_field(value, format_spec))
        has_value = not format_spec and value in self._parameters
        values = [self._parameters[value]] if has_value else []
        return self._say(str(value), format_spec, *values)


def in_python(name: str, words: str, *value: object) -> str:
    """Return a parameter of a message as Python writes it."""
    return f"{name}={value[0]!r}" if value else words or name


class CheckpointError(ValueError):
    """A checkpoint is damaged, belongs to another fit, or is in use by one."""


class DivergenceError(ArithmeticError):
    """Training diverged: the loss grew beyond reason or became NaN.

    The model stays as it was before the fit.
    """


def damaged_file(name: object, why: object) -> ValueError:
    """Return the error of a damaged file; `why` may be about it already."""
    reason = str(why).rstrip(".")
    if reason.startswith(f"{name} "):
        return ValueError(f"{reason}.")
    return ValueError(f"{name} is damaged: {reason}; copy or save it again.")


def missing_packages(user: str, *packages: str, otherwise: str = "") -> ImportError:
    """Return the error for optional packages that `user` requires.

    Its command names packages, not an extra of nplm, so that it holds in a clone too.
    """
    names = " and ".join(packages)
    command = f"python -m pip install {' '.join(packages)}"
    end = f". {otherwise}" if otherwise else ""
    return ImportError(f"{user} requires {names}: {command}{end}")


def optional_module(
    name: str, user: str, package: str | None = None, otherwise: str = ""
) -> Any:
    """Import a module, or raise the error of `missing_packages`."""
    try:
        return import_module(name)
    except ImportError as error:
        raise missing_packages(user, package or name, otherwise=otherwise) from error
