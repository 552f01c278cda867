"""Lines of text from files or standard input, in blocks."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, BinaryIO

import click

from nplm.base.files.compressed import reading, unpacked
from nplm.text.streams import HAS_A_NUL
from nplm.text.tokenizer import BLANKS

__all__ = [
    "BLANK_LINES", "INPUTS", "blocks_of_lines", "files_of", "lines_of", "texts_of",
]  # fmt: skip

# Memory does not grow with the text.
LINES_A_BLOCK = 2000

INPUTS = click.argument(
    "inputs",
    nargs=-1,
    metavar="[TEXT]...",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
)


BLANK_LINES = click.option(
    "--blank-lines",
    type=click.Choice(["skip", "sentences"]),
    default="skip",
    show_default=True,
    callback=lambda _ctx, _param, given: given == "sentences",
    help="Skip lines without words, as SRILM does, or take each as a sentence without "
    "words, as KenLM does.",
)


def blocks_of_lines(inputs: Iterable[str], *, blank_lines: bool) -> Iterator[list[str]]:
    """Yield the lines of all files in lists, by default those of standard input.

    A line is a document; `blank_lines` says whether one without words is, too. Files
    may be compressed.
    """
    lines = _documents(inputs, blank_lines)
    while block := list(islice(lines, LINES_A_BLOCK)):
        yield block


def texts_of(inputs: Iterable[str], *, blank_lines: bool = False) -> list[str]:
    """Return the lines of all files, by default those with words."""
    return list(_documents(inputs, blank_lines))


def _documents(inputs: Iterable[str], blank_lines: bool) -> Iterator[str]:
    return (line for line in lines_of(inputs) if blank_lines or line.strip(BLANKS))


def files_of(inputs: Iterable[str]) -> Iterator[BinaryIO]:
    """Yield the files one after another, open and decompressed."""
    for name in inputs or ["-"]:
        with _opened(name) as file:
            yield file


def lines_of(inputs: Iterable[str]) -> Iterator[str]:
    """Yield the lines of all files, without their ends."""
    for name in inputs or ["-"]:
        with _opened(name) as file:
            yield from _decoded(file, "standard input" if name == "-" else name)


@contextmanager
def _opened(name: str) -> Iterator[BinaryIO]:
    if name == "-":
        stdin: Any = sys.stdin.buffer
        if not hasattr(stdin, "peek"):  # not a real one
            stdin = io.BufferedReader(stdin)
        with unpacked(stdin, "standard input") as file:
            yield file
    else:
        with reading(name, pipes=True) as file:
            yield file


def _decoded(file: BinaryIO, name: str) -> Iterator[str]:
    number = 0
    try:
        for number, line in enumerate(file, 1):
            if b"\0" in line:
                raise ValueError(f"{name}, line {number}: {HAS_A_NUL}")
            # The file may begin with a byte order mark.
            encoding = "utf-8-sig" if number == 1 else "utf-8"
            yield line.decode(encoding).rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name}, line {number}: not UTF-8 ({error.reason}); convert it, for "
            "example with: iconv -f latin1 -t utf-8."
        ) from None
