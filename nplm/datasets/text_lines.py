"""TextLines: the lines of text files, read as often as needed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, Literal

from nplm.base.files.compressed import reading
from nplm.base.files.lines import read_lines
from nplm.text.words.splitting import BLANKS

__all__ = ["TextLines"]

ADVICE = ' Or set errors="replace" or "skip".'


class TextLines:
    r"""The lines of text files as documents, read anew by each iteration.

    A stream for `nplm.TextLM.fit` and `nplm.TextLM.text_scores`: the text may be larger
    than the memory.

    Parameters
    ----------
    *paths : path-like
        UTF-8 text files, plain, gzip, bzip2, xz or zstd.
    field : str, optional
        The files are JSON lines (``jsonl``): each line is an object, and the document
        is its string of this name. By default the line itself is the document.
    blank_lines : bool, default=False
        Whether lines without words are empty documents; by default they are left out.
        With a `field`, whether documents without words are kept.
    errors : {"strict", "replace", "skip"}, default="strict"
        Whether bytes that are not UTF-8, and NULs, are an error, become U+FFFD, or
        leave their line out.

    Raises
    ------
    OSError
        While it is read, if a file cannot be read.
    ValueError
        While it is read, if a file is damaged or not UTF-8, a line is not a JSON object
        with the field, or its value is not a string.

    Examples
    --------
    >>> import gzip
    >>> from nplm.datasets import TextLines
    >>> with gzip.open("pages.jsonl.gz", "wt") as file:
    ...     _ = file.write('{"text": "a rose"}\n{"text": "is", "id": 2}\n')
    >>> lines = TextLines("pages.jsonl.gz", field="text")
    >>> list(lines), list(lines)
    (['a rose', 'is'], ['a rose', 'is'])
    """

    def __init__(
        self,
        *paths: str | os.PathLike[str],
        field: str | None = None,
        blank_lines: bool = False,
        errors: Literal["strict", "replace", "skip"] = "strict",
    ) -> None:
        if not paths or not all(isinstance(p, (str, os.PathLike)) for p in paths):
            raise TypeError(
                f"paths must be names of files, got {paths!r:.100}: pass each as an "
                "argument, TextLines(*paths)."
            )
        if errors not in ("strict", "replace", "skip"):
            raise ValueError(
                f'errors must be "strict", "replace" or "skip", got {errors!r}.'
            )
        self.paths, self.field = paths, field
        self.blank_lines, self.errors = blank_lines, errors

    def __iter__(self) -> Iterator[str]:
        for path in self.paths:
            with reading(path) as file:
                for where, line in read_lines(
                    file, os.fspath(path), self.errors, ADVICE
                ):
                    text = line if self.field is None else self._of_field(line, where)
                    if self.blank_lines or text.strip(BLANKS):
                        yield text

    def __repr__(self) -> str:
        """Return the call that makes it."""
        field = "" if self.field is None else f", field={self.field!r}"
        return f"TextLines({', '.join(repr(os.fspath(p)) for p in self.paths)}{field})"

    def _of_field(self, line: str, where: str) -> str:
        if not line.strip(BLANKS):
            return ""
        try:
            row: Any = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"{where}: not JSON ({error}); leave field out if lines are plain text."
            ) from None
        text = row.get(self.field) if isinstance(row, dict) else None
        if not isinstance(text, str):
            keys = f"an object with {', '.join(row)}" if isinstance(row, dict) else line
            raise ValueError(
                f"{where}: no string is under field={self.field!r} (it is {keys:.80})."
            )
        return text
