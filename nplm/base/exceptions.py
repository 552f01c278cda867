"""Exceptions of nplm, and modules whose packages may be missing."""

from importlib import import_module
from typing import Any

__all__ = [
    "CheckpointError",
    "DivergenceError",
    "damaged_file",
    "missing_packages",
    "optional_module",
]


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
    """Return the error for optional packages that cannot be imported.

    Its command names the packages, and no extra of nplm: so it holds in a clone and
    beside a wheel, whatever name nplm has on a package index.

    - `user`: what requires them, such as the name of a function
    - `packages`: their names on the package index
    - `otherwise`: a sentence about what to do without them
    """
    names = " and ".join(packages)
    command = f"python -m pip install {' '.join(packages)}"
    end = f". {otherwise}" if otherwise else ""
    return ImportError(f"{user} requires {names}: {command}{end}")


def optional_module(
    name: str, user: str, package: str | None = None, otherwise: str = ""
) -> Any:
    """Import a module, or raise the error of `missing_packages`.

    `package`: its package; by default that of the same name.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise missing_packages(user, package or name, otherwise=otherwise) from error
