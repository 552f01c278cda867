"""Marks of the beginning and the end of a line, in texts of the n-gram toolkits."""

from __future__ import annotations

from collections.abc import Callable

from nplm.text.words.splitting import BLANKS

# The toolkits' sentence marks: <s> is never predicted, </s> is never a context.
BEGIN, END = "<s>", "</s>"


def marks_of(boundary: str) -> list[str]:
    """Return the mark of the end of a line, and that of its beginning, if any."""
    return [END, BEGIN] if boundary == END else [boundary]


def inside(mark: str, boundary: str) -> str:
    """Say what is wrong with a mark inside of a line."""
    where = "end" if mark == boundary else "beginning"
    return (
        f"it has {mark!r} inside, which stands for the {where} of a line: split the "
        "line, or remove it (or choose another boundary of the Vocabulary)."
    )


class LineMarks:
    """The marks in lines of a text.

    One at the beginning or the end of a line stands for it, as in SRILM. Elsewhere, one
    that is a token, if `split` is there to tell, is an error. All contain `sign`.
    """

    def __init__(
        self, boundary: str, split: Callable[[str], list[str]] | None = None
    ) -> None:
        self._marks, self._split = marks_of(boundary), split
        self.sign = "s>" if boundary == END else boundary
        self._begins = [mark + blank for mark in self._marks[1:] for blank in BLANKS]
        self._ends = [blank + boundary for blank in BLANKS]

    def removed(self, line: str) -> str:
        """Return a line without the marks at its ends."""
        if self.sign not in line:
            return line
        line = line.strip(BLANKS)
        if line.startswith(tuple(self._begins)) or line in self._marks[1:]:
            line = line[len(self._marks[1]) :].strip(BLANKS)
        if line.endswith(tuple(self._ends)) or line == self._marks[0]:
            line = line[: -len(self._marks[0])].strip(BLANKS)
        return line

    def error(self, line: str) -> str | None:
        """Say what is wrong with a line that has other marks, None if nothing."""
        marks = [mark for mark in self._marks if mark in line]
        if not marks or self._split is None:
            return None
        tokens = self._split(line)
        bad = next((mark for mark in marks if mark in tokens), None)
        return None if bad is None else inside(bad, self._marks[0])

    def replaced(self, line: str) -> str:
        """Return a line with U+FFFD in place of other marks."""
        for mark in self._marks:
            line = line.replace(mark, "\ufffd")
        return line
