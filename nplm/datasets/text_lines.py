"""TextLines: the lines of text files, read as often as needed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Literal

from nplm.base.files.compressed import reading
from nplm.base.files.lines import read_lines, text_in_json
from nplm.text.words.splitting import BLANKS

ADVICE = ' Or set errors="replace" or "skip".'
SKIP = ' Or set errors="skip".'


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
        leave their line out. "skip" also leaves out lines without a string in `field`.

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
                    has_words = bool(line.strip(BLANKS))
                    if self.field is not None and has_words:
                        try:
                            line = text_in_json(line, self.field)
                        except ValueError as error:
                            if self.errors == "skip":
                                continue
                            raise ValueError(f"{where}: {error}.{SKIP}") from None
                        has_words = bool(line.strip(BLANKS))
                    if self.blank_lines or has_words:
                        yield line

    def __repr__(self) -> str:
        """Return the call that makes it."""
        field = "" if self.field is None else f", field={self.field!r}"
        return f"TextLines({', '.join(repr(os.fspath(p)) for p in self.paths)}{field})"
