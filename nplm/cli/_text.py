"""Lines of text from files or standard input, in blocks."""

from __future__ import annotations

import io
import os
import select
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import repeat
from typing import Any, BinaryIO, NamedTuple, cast

import click

from nplm.base.files.atomic_files import check_regular, opened
from nplm.base.files.compressed import unpacked
from nplm.base.files.lines import BYTE_ORDER_MARK, decoded_line, text_in_json
from nplm.cli._options import flag, option
from nplm.cli._outputs import notify
from nplm.text.words.splitting import BEGIN, BLANKS, END, LineMarks

# Memory does not grow with the text.
CHUNK_BYTES = 1 << 17
# Between two looks at a file that grows.
SECONDS_A_LOOK = 0.2

INPUTS = click.Argument(
    ["inputs"],
    nargs=-1,
    metavar="[TEXT]...",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
)
BLANK_LINES = option("--blank-lines", ["skip", "sentences"], "skip",
    "Skip lines without words, as SRILM does, or take each as a sentence without "
    "words, as KenLM does.",
    callback=lambda _ctx, _param, value: value == "sentences",
)  # fmt: skip
NO_MARKS = flag("--no-marks -n",
    "Score lines without <s> before and </s> after them, as KenLM's query -n: the "
    "first word has no context, and the end is no token. For back-off n-grams.",
)  # fmt: skip
ERRORS = option("--errors", ["strict", "replace", "skip"], "strict",
    "A line that is not UTF-8, or has a NUL byte, or a mark (<s>, </s>) inside: end "
    "with an error, put U+FFFD in place of each, or leave the line out (skip, also a "
    "line without a text in --field).",
)  # fmt: skip
FIELD = option("--field", None, None,
    "Lines are objects of JSON: the text of a document, of one or more lines, is in "
    "this field.",
)  # fmt: skip


class KeptText(click.Path):
    """The name of a text that is read more than once: a pipe would be empty then."""

    def __init__(self) -> None:
        super().__init__(exists=True, dir_okay=False)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the name, or refuse a pipe."""
        path = os.fsdecode(super().convert(value, param, ctx))
        try:
            check_regular(path)
        except OSError as error:
            self.fail(str(error), param, ctx)
        return path


class Chunk(NamedTuple):
    """Lines, without the newline, that were read at once."""

    name: str
    first: int
    lines: list[bytes]
    n_bytes: int  # read so far of all files, as they are on the disk
    pauses: bool  # the writer of a pipe may wait for the answers to these lines

    def documents(
        self,
        marks: LineMarks | None = None,
        errors: str | None = None,
        field: str | None = None,
        *,
        blank_lines: bool = True,
    ) -> tuple[list[int], list[list[str]]]:
        """Return the number of each line, and its text in lines; see `ERRORS`."""
        name = "standard input" if self.name == "-" else self.name
        numbers, documents = list[int](), list[list[str]]()
        if field is None and (plain := self._plain_texts(marks)) is not None:
            for number, text in enumerate(plain, self.first):
                if blank_lines or text.strip(BLANKS):
                    numbers.append(number)
                    documents.append([text])
            return numbers, documents
        for number, line in enumerate(self.lines, self.first):
            try:
                lines = [line] if field is None else _lines_in_json(line, field)
            except ValueError as error:
                if errors == "skip":
                    continue
                raise ValueError(
                    f"{name}, line {number}: {error}. Give another --field, or "
                    "--errors skip."
                ) from None
            texts = [_decoded(part, name, number, marks, errors) for part in lines]
            if None in texts:
                continue
            if blank_lines or any(text and text.strip(BLANKS) for text in texts):
                numbers.append(number)
                documents.append(cast(list[str], texts))
        return numbers, documents

    def _plain_texts(self, marks: LineMarks | None) -> list[str] | None:
        """Return the texts of lines of which none needs a look of its own, or None."""
        data = b"\n".join(self.lines)
        begins_marked = self.first == 1 and data.startswith(BYTE_ORDER_MARK)
        if begins_marked or b"\0" in data or b"\r" in data or not data:
            return None
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return None
        is_marked = marks is not None and marks.sign in text
        return None if is_marked else text.split("\n")


def report_left_out(n_skipped: int, n_lines: int, field: str | None) -> None:
    """Say how many lines were left out, if any, and why."""
    no_text = f", or have no text in {field!r}" if field else ""
    if n_skipped:
        notify(
            f"{n_skipped} of {n_lines} lines were left out: they are not UTF-8, or "
            f"have NUL bytes, or marks inside{no_text}."
        )


def listed_words(path: str, option: str) -> list[str]:
    """Return the words of a file with one a line, which an option names."""
    words = [line.strip(BLANKS) for line in lines_of([path])]
    for number, word in enumerate(words, 1):
        if not set(word).isdisjoint(BLANKS):
            raise click.ClickException(
                f"{option}: {path}, line {number}: {word!r} is more than a word. Give "
                "a word a line; of a lexicon, only the first column: awk '{print $1}'."
            )
    # Lists of SRILM have the marks; <s> is no word of a model.
    words = [word for word in words if word and word != BEGIN]
    if not words:
        raise click.ClickException(f"{option}: {path} has no words.")
    return words


def refuse_empty(path: str | None, purpose: str) -> None:
    """Refuse a text to score that has no words, before the work of a fit."""
    if path is not None and not any(
        line.strip(BLANKS) for line in lines_of([path], LineMarks(END))
    ):
        raise click.ClickException(f"there is no text to {purpose} on in {path}.")


def hint_of_marks(inputs: Iterable[str], tokens: str) -> None:
    """Show a hint if --tokens words splits the ``<unk>`` of a prepared text."""
    files = [name for name in inputs if os.path.isfile(name)]
    if not files or tokens != "words":
        return
    first = next(chunks_of(files), None)  # a hint need not read all
    if first and any(b"<unk>" in line for line in first.lines):
        notify(
            f"Hint: {files[0]} has <unk>, which --tokens words splits into <, unk and "
            ">. If its words are separated by blanks, give --tokens blanks."
        )


class Files:
    """Files one after another, open and decompressed.

    - `n_bytes`: their size on the disk, or 0 if one is standard input or a pipe
    """

    def __init__(self, inputs: Iterable[str]) -> None:
        self._names = list(inputs) or ["-"]
        self.n_bytes = n_bytes_of(self._names)
        self._n_before, self._position = 0, _nothing

    def __iter__(self) -> Iterator[BinaryIO]:
        for name in self._names:
            with _opened(name) as (file, self._position):
                yield file
                self._n_before, self._position = self.n_read, _nothing

    @property
    def n_read(self) -> int:
        """Number of bytes on the disk that were read so far."""
        return self._n_before + self._position()


def lines_of(
    inputs: Iterable[str], marks: LineMarks | None = None, *, blank_lines: bool = True
) -> Iterator[str]:
    """Yield the lines of all files, without their ends, and the marks of these."""
    for chunk in chunks_of(inputs):
        _, documents = chunk.documents(marks, blank_lines=blank_lines)
        yield from (line for [line] in documents)


def chunks_of(inputs: Iterable[str], *, follow: bool = False) -> Iterator[Chunk]:
    """Yield the lines of all files as they come, of a pipe without waiting for more.

    With `follow` the input is one file. It is read for ever as it grows, and so is a
    file that takes its place.
    """
    n_before = 0
    for name in repeat(*inputs) if follow else inputs or ["-"]:
        with _opened(name) as (file, position):
            first, rest = 1, list[bytes]()
            while data := file.read1(CHUNK_BYTES) or (follow and _grown(file, name)):
                *lines, last = data.split(b"\n")
                if lines:
                    lines[0] = b"".join([*rest, lines[0]])
                    n_bytes = n_before + position()
                    yield Chunk(name, first, lines, n_bytes, _pauses(file))
                    first, rest = first + len(lines), []
                rest.append(last)
            n_before += position()
            if any(rest):  # a last line without a newline
                yield Chunk(name, first, [b"".join(rest)], n_before, True)


def n_bytes_of(inputs: Iterable[str]) -> int:
    """Return the size of all files, or 0 if one is standard input or a pipe."""
    names = list(inputs) or ["-"]
    files = [os.stat(name) for name in names if name != "-"]
    is_known = len(files) == len(names) and all(stat.S_ISREG(f.st_mode) for f in files)
    return sum(file.st_size for file in files) if is_known else 0


@contextmanager
def _opened(name: str) -> Iterator[tuple[Any, Callable[[], int]]]:
    """Open a file, decompressed, and the function that tells how much is read of it."""
    if name == "-":
        if sys.stdin is None:
            raise ValueError(
                "standard input is closed: give the names of files, or text on it."
            )
        stdin: Any = sys.stdin.buffer
        if not hasattr(stdin, "peek"):  # not a real one
            stdin = io.BufferedReader(stdin)
        with unpacked(stdin, "standard input") as file:
            yield file, _nothing
    else:
        with opened(name, pipes=True) as raw, unpacked(raw, name) as file:
            yield file, raw.tell if raw.seekable() else _nothing


def _nothing() -> int:
    return 0


def _grown(file: Any, name: str) -> Any:
    """Wait for more of a file; return nothing once another has its place."""
    while True:
        try:
            status = os.fstat(file.fileno())
        except OSError:
            raise ValueError(
                f"{name} is compressed, so it does not grow line by line: leave "
                "--follow out."
            ) from None
        try:
            now = os.stat(name)
        except FileNotFoundError:  # until the next file of a log is there
            now = status
        is_over = not os.path.samestat(status, now) or now.st_size < file.tell()
        # Read after the look at the name: a writer may add lines just before.
        if (data := file.read1(CHUNK_BYTES)) or is_over:
            return data
        time.sleep(SECONDS_A_LOOK)


def _pauses(file: Any) -> bool:
    """Whether there is nothing to read now."""
    try:
        ready, _, _ = select.select([file], [], [], 0)
    except (OSError, ValueError):  # a compressed file is none of the system's
        return False
    return not ready


def _lines_in_json(line: bytes, field: str) -> list[bytes]:
    """Return the lines with words of the text in a field, or an empty one."""
    # Half of a surrogate pair, which JSON may have, is not UTF-8.
    lines = text_in_json(line, field).encode(errors="surrogatepass").split(b"\n")
    return [part for part in lines if part.strip()] or [b""]


def _decoded(
    line: bytes,
    name: str,
    number: int,
    marks: LineMarks | None = None,
    errors: str | None = None,
) -> str | None:
    """Return the text of a line, or None if `errors` (of `ERRORS`) leaves it out."""
    text, wrong = decoded_line(line, number)
    inside = None
    if marks is not None and marks.sign in text:
        text = marks.removed(text)
        inside = marks.error(text)
        wrong = wrong or inside
    if wrong is not None:
        if errors in (None, "strict"):
            advice = " Or give --errors replace, or skip." if errors else ""
            raise ValueError(f"{name}, line {number}: {wrong}{advice}")
        if errors == "skip":
            return None
        if marks is not None and inside is not None:
            text = marks.replaced(text)
    return text
