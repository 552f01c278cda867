"""Lines of UTF-8 text, and what is wrong with those that are not."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
HAS_A_NUL = (
    "it has a NUL byte, as binary files and UTF-16 have: convert UTF-16, for example "
    "with: iconv -f utf-16 -t utf-8. Remove the NULs from other text."
)
NOT_UTF8 = "not UTF-8 ({}); convert it, for example with: iconv -f latin1 -t utf-8.{}"


def check_nuls(data: bytes, name: str, first: int = 1) -> None:
    """Raise an error that names the line if text has a NUL; `first` is the first."""
    at = data.find(b"\0")
    if at >= 0:
        line = first + data.count(b"\n", 0, at)
        raise ValueError(f"{name}, line {line}: {HAS_A_NUL}")


def decoded(data: bytes, name: str, first: int = 1) -> str:
    """Return the text of lines, or raise an error that names the line."""
    check_nuls(data, name, first)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = first + data.count(b"\n", 0, error.start)
        wrong = NOT_UTF8.format(error.reason, "")
        raise ValueError(f"{name}, line {line}: {wrong}") from None


def decoded_line(
    line: bytes, number: int = 2, advice: str = ""
) -> tuple[str, str | None]:
    """Return the text of a line without its end, and what is wrong with its bytes.

    The first line is without a byte order mark. U+FFFD is in place of what is wrong.
    """
    if number == 1:
        line = line.removeprefix(BYTE_ORDER_MARK)
    wrong = HAS_A_NUL if b"\0" in line else None
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        text = line.decode(errors="replace")
        wrong = wrong or NOT_UTF8.format(error.reason, advice)
    text = text.rstrip("\r\n")
    return (text, None) if wrong is None else (text.replace("\0", "\ufffd"), wrong)


def read_lines(
    file: Iterable[bytes],
    name: str,
    errors: str = "strict",
    advice: str = "",
    max_bytes: float = math.inf,
) -> Iterator[tuple[str, str]]:
    """Yield the place of each line, for errors, and its text without the end.

    `errors`: a line whose bytes are not UTF-8, or have a NUL, is an error ("strict"),
    has U+FFFD ("replace"), or is left out ("skip"). `advice` ends the error. A line of
    more than `max_bytes` is always one.
    """
    for number, line in enumerate(file, 1):
        where = f"{name}, line {number}"
        if len(line) > max_bytes:
            raise ValueError(
                f"{where}: longer than {max_bytes} bytes: check that this is the file."
            )
        text, wrong = decoded_line(line, number, advice)
        if wrong is not None and errors == "strict":
            raise ValueError(f"{where}: {wrong}")
        if wrong is None or errors == "replace":
            yield where, text


def text_in_json(line: str | bytes, field: str) -> str:
    """Return the string in a field of an object of JSON.

    The error, which has no full stop, says what is there.
    """
    try:
        row: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"not JSON ({error}); leave the field out if lines are plain text"
        ) from None
    if not isinstance(row, dict):
        raise ValueError(f"not an object of JSON, but {json.dumps(row):.40}")
    if field not in row:
        raise ValueError(f"there is no field {field!r} among {list(row)!s:.80}")
    text = row[field]
    if not isinstance(text, str):
        raise ValueError(f"{field!r} is {json.dumps(text):.40}, not a string")
    return text
