"""Corpora by name or by path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from nplm.datasets import Corpus, fetch_brown, fetch_ptb, load_python_docs, load_text

__all__ = ["load_corpus"]

CORPORA: dict[str, Callable[[], Corpus]] = {
    "python-docs": load_python_docs,
    "brown": fetch_brown,
    "ptb": fetch_ptb,
}


def load_corpus(ctx: click.Context, name: str, lines: bool, min_count: int) -> Corpus:
    """Load a named corpus, or the text at a path.

    Options that are for a path are refused with a name.
    """
    if name not in CORPORA:
        if not Path(name).exists():
            raise ValueError(
                f"--corpus {name}: there is no such file or folder, and the named "
                f"corpora are {', '.join(CORPORA)}."
            )
        return load_text(name, lines=lines, min_count=min_count)
    for option in ("lines", "min_count"):
        if ctx.get_parameter_source(option) != click.core.ParameterSource.DEFAULT:
            raise click.UsageError(
                f"--{option.replace('_', '-')} is for --corpus PATH; {name} has its "
                "own protocol."
            )
    return CORPORA[name]()
