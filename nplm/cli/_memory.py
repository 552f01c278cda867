"""The option ``--memory``, a size in bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from nplm.formats.counts.estimation import memory_in_bytes

__all__ = ["memory_option"]

Command = TypeVar("Command", bound=Callable[..., Any])


class Memory(click.ParamType):  # type: ignore[type-arg]
    """A size in bytes, with a unit."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """Convert to a number of bytes."""
        try:
            return memory_in_bytes(value)
        except ValueError as error:
            self.fail(str(error).partition("' ")[2] or str(error))


def memory_option(purpose: str) -> Callable[[Command], Command]:
    """Return the option of a command that needs memory for a purpose."""
    return click.option(
        "--memory",
        type=Memory(),
        help=f"Memory to {purpose} (500M, 2G); the rest is done on disk. By default "
        "three quarters of the memory that is available (of half of all memory where "
        "the system does not tell, as macOS).",
    )
