"""The binary file of nplm: arrays to be mapped into memory, without pickle."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm._checks import MAX_N_WORDS
from nplm.formats._files import check_writable, writing
from nplm.formats._models import tree_of
from nplm.formats._words import check_words
from nplm.ngrams.backoff import BackoffTree
from nplm.ngrams.backoff_lm import BackoffLM
from nplm.ngrams.backoff_model import BackoffModel
from nplm.ngrams.soundness import check_ranges, check_sizes

__all__ = ["load_binary", "save_binary"]

MAGIC = b"nplm n-grams\r\n\x1a\n"
VERSION = 1
# Arrays begin at lines of the cache; so does the first, after the header.
ALIGNMENT = 64
# 0 is the code of probability 0; the others are even steps of the logarithm.
N_CODES = 1 << 16
# The logarithms of what float32 holds.
MIN_LOG, MAX_LOG = -104.0, 88.72


def save_binary(
    model: BackoffModel,
    path: str | os.PathLike[str],
    words: Sequence[str],
    *,
    compact: bool = False,
) -> None:
    """Save an n-gram model in a file that loads without being read.

    Parameters
    ----------
    model : BackoffLM or KneserNeyLM
        A fitted model.
    path : path-like
        The file to write. It takes its place when all is written.
    words : sequence of str, shape (n_words_,)
        The word of each id.
    compact : bool, default=False
        Write a file of little more than half the size, to be unpacked when it is
        loaded. Probabilities and weights are rounded to 65,535 even steps of their
        logarithm, which moves the log10 of a probability by 0.0001 at most for
        each n-gram and weight that makes it (half a step; the steps are finer
        where the probabilities of a model span less than 13 powers of ten).

    Raises
    ------
    TypeError
        If the model is none of n-grams that back off.
    NotFittedError
        If it is not fitted.
    ValueError
        If the words are not one an id, distinct, and without blanks.
    OSError
        If `path` cannot be written, before any work is done.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from nplm import KneserNeyLM, windows
    >>> from nplm.formats import load_binary, save_binary
    >>> ids = np.random.default_rng(0).zipf(1.5, size=5000) % 100
    >>> X, y = windows(ids, 2)
    >>> model = KneserNeyLM(n_words=100).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_binary(model, f"{folder}/model.nplm", [f"w{i}" for i in range(100)])
    ...     again, words = load_binary(f"{folder}/model.nplm")
    ...     bool((again.log_prob(X, y) == model.log_prob(X, y)).all())
    True
    """
    check_writable(path)
    tree = tree_of(model)
    text = "\n".join(check_words(words, tree.n_words)).encode()
    header: dict[str, Any] = {
        "version": VERSION,
        "n_words": tree.n_words,
        "boundary": None if model.boundary is None else int(model.boundary),
    }
    arrays = {"vocabulary": np.frombuffer(text, dtype=np.uint8)}
    if compact:
        header["codes"], packed = _packed(tree)
        arrays |= packed
    else:
        arrays |= {name: getattr(tree, name) for name in ARRAYS}
    header["arrays"] = [
        {
            "name": name,
            "dtype": array.dtype.newbyteorder("<").str,
            "size": len(array),
            "crc32": zlib.crc32(np.ascontiguousarray(array).data),
        }
        for name, array in arrays.items()
    ]
    encoded = json.dumps(header).encode()
    prefix = MAGIC + len(encoded).to_bytes(4, "little")
    prefix += zlib.crc32(encoded).to_bytes(4, "little") + encoded
    with writing(path) as file:
        file.write(prefix + bytes(-len(prefix) % ALIGNMENT))
        for array in arrays.values():
            little = array.astype(array.dtype.newbyteorder("<"), copy=False)
            file.write(np.ascontiguousarray(little).data)
            file.write(bytes(-array.nbytes % ALIGNMENT))


def load_binary(
    path: str | os.PathLike[str], *, verify: bool = False
) -> tuple[BackoffLM, list[str]]:
    """Load a model that `save_binary` wrote.

    Nothing is read but the header and the words: the rest is mapped, and read as
    it is needed, by all processes in one. A compact file is unpacked.

    Parameters
    ----------
    path : path-like
        The file; it must stay as it is while the model is in use.
    verify : bool, default=False
        Read all of it first, compare its checksums, and see that all its numbers
        are in range: for a file that may have been damaged, or that comes from
        someone you do not trust. Without it only the header, the words and the
        sizes are checked (a compact file is read and checked in any case), and
        nothing is promised of the rest: a damaged array may give wrong
        probabilities or end the process, and one made to do harm may have the
        process write where it should not.

    Returns
    -------
    model : BackoffLM
        Scores as the model saved.
    words : list of str
        The word of each id.

    Raises
    ------
    ValueError
        If the file is none of ``save_binary``'s, of another version, cut short or
        (its header or its words, or with `verify` any of it) damaged.
    OSError
        If it cannot be read.
    """
    path = Path(path)
    header, offset = _read_header(path)
    compact = "codes" in header
    arrays = {}
    size = path.stat().st_size
    for entry in header["arrays"]:
        name, n = entry["name"], entry["size"]
        dtype = _dtypes(header["n_words"], compact=compact)[name]
        n_bytes = n * dtype.itemsize
        if offset + n_bytes > size:
            raise ValueError(
                f"{path} is cut short: it has {size} bytes, but {name} ends at "
                f"{offset + n_bytes}; copy or save it again."
            )
        array = np.zeros(0, dtype=dtype)
        if n_bytes:
            array = np.memmap(path, dtype, "r", offset=offset, shape=(n,))
        # A compact file is read in full anyway, and so are the words.
        check = verify or compact or name == "vocabulary"
        if check and zlib.crc32(array.data) != entry["crc32"]:
            raise _damaged(path, f"the checksum of {name} is wrong")
        arrays[name] = array
        offset += n_bytes + -n_bytes % ALIGNMENT
    words = _words(
        arrays.pop("vocabulary"), header["n_words"], path, check=verify or compact
    )
    try:
        check_sizes(arrays, header["n_words"], compact=compact)
        if compact:
            arrays = _unpacked(arrays, header["codes"])
        tree = BackoffTree(header["n_words"], **arrays)
        if verify or compact:
            check_ranges(tree)
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    return BackoffLM.from_tree(tree, boundary=header["boundary"]), words


def _damaged(path: Path, why: str) -> ValueError:
    return ValueError(f"{path} is damaged: {why}; copy or save it again.")


def _words(
    text: NDArray[np.uint8], n_words: int, path: Path, *, check: bool
) -> list[str]:
    try:
        words = text.tobytes().decode().split("\n")
        if check:
            check_words(words, len(words))
    except ValueError as error:  # UnicodeDecodeError is one
        raise _damaged(path, f"its vocabulary is none ({error})") from error
    if len(words) != n_words:
        raise _damaged(path, f"it has {len(words)} words, but n_words={n_words}")
    return words


def _read_header(path: Path) -> tuple[dict[str, Any], int]:
    """Return the header, and where the first array begins."""
    with open(path, "rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise ValueError(
                f"{path} is no file of save_binary: it does not begin as one."
            )
        n = int.from_bytes(file.read(4), "little")
        checksum = int.from_bytes(file.read(4), "little")
        encoded = file.read(min(n, os.fstat(file.fileno()).st_size))
        end = file.tell()
    if len(encoded) < n or zlib.crc32(encoded) != checksum:
        raise ValueError(
            f"{path} is damaged or cut short: the checksum of its header is wrong; "
            "copy or save it again."
        )
    try:
        header = json.loads(encoded)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"its header is no JSON ({error})") from error
    if not isinstance(header, dict) or "version" not in header:
        raise _damaged(path, "its header says no version")
    if header["version"] != VERSION:
        raise ValueError(
            f"{path} is of version {header['version']!r}, but this nplm reads version "
            f"{VERSION}; save the model again with this nplm, or update it."
        )
    _check_header(header, path)
    return header, end + -end % ALIGNMENT


def _check_header(header: dict[str, Any], path: Path) -> None:
    """Refuse a header with anything that `save_binary` does not write."""
    n_words: Any = header.get("n_words")
    boundary = header.get("boundary", "missing")
    if not _is_whole(n_words, 1, MAX_N_WORDS):
        raise _damaged(path, f"its header has n_words={n_words!r}")
    if boundary is not None and not _is_whole(boundary, 0, n_words - 1):
        raise _damaged(path, f"its header has boundary={boundary!r}")
    compact, entries = "codes" in header, header.get("arrays")
    dtypes = _dtypes(n_words, compact=compact)
    if not isinstance(entries, list) or len(entries) != len(dtypes):
        raise _damaged(path, f"its header does not list {len(dtypes)} arrays")
    for (name, dtype), entry in zip(dtypes.items(), entries):
        sound = (
            isinstance(entry, dict)
            and entry.get("name") == name
            and entry.get("dtype") == dtype.str
            and _is_whole(entry.get("size"), 0, np.iinfo(np.int64).max // 8)
            and _is_whole(entry.get("crc32"), 0, np.iinfo(np.uint32).max)
        )
        if not sound:
            raise _damaged(
                path, f"its header has {entry!r} where {name} should be, {dtype.str}"
            )
    if compact and not _are_spans(header["codes"]):
        raise _damaged(path, f"its header has codes={header['codes']!r}")


def _is_whole(value: Any, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def _are_spans(codes: Any) -> bool:
    """Whether these are the least and the greatest logarithm of `prob` and `bow`."""
    if not isinstance(codes, dict) or codes.keys() != {"prob", "bow"}:
        return False
    return all(
        isinstance(span, list)
        and len(span) == 2
        and all(type(end) is float for end in span)
        and MIN_LOG <= span[0] <= span[1] <= MAX_LOG
        for span in codes.values()
    )


# What a tree is made of, beside `n_words`.
ARRAYS = ("level_start", "context_word", "child_start", "start", "words", "prob", "bow")


def _dtypes(n_words: int, *, compact: bool) -> dict[str, np.dtype[Any]]:
    """Return the one type that each array has, in the order of the file."""
    dtypes = {"vocabulary": "<u1"} | dict.fromkeys(ARRAYS[:-2], "<i4")
    dtypes |= dict.fromkeys(ARRAYS[-2:], "<f4")
    if compact:
        word = np.min_scalar_type(n_words - 1).newbyteorder("<").str
        dtypes |= {"context_word": word, "words": word, "prob": "<u2", "bow": "<u2"}
    return {name: np.dtype(kind) for name, kind in dtypes.items()}


def _packed(tree: BackoffTree) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return what undoes the rounding, and the arrays in few bytes."""
    word_type = _dtypes(tree.n_words, compact=True)["words"]
    prob_range, prob = _encode(tree.prob)
    bow_range, bow = _encode(tree.bow)
    arrays = {
        "level_start": tree.level_start,
        "context_word": tree.context_word.astype(word_type),
        # The longest contexts have no children.
        "child_start": tree.child_start[: tree.level_start[-2]],
        "start": tree.start,
        "words": tree.words.astype(word_type),
        "prob": prob,
        "bow": bow,
    }
    return {"prob": prob_range, "bow": bow_range}, arrays


def _unpacked(
    arrays: dict[str, NDArray[Any]], codes: dict[str, Any]
) -> dict[str, NDArray[Any]]:
    n_contexts = int(arrays["level_start"][-1])
    child_start = np.full(n_contexts + 1, n_contexts, dtype=np.int32)
    child_start[: len(arrays["child_start"])] = arrays["child_start"]
    return arrays | {
        "context_word": arrays["context_word"].astype(np.int32),
        "child_start": child_start,
        "words": arrays["words"].astype(np.int32),
        "prob": _decode(arrays["prob"], codes["prob"]),
        "bow": _decode(arrays["bow"], codes["bow"]),
    }


def _encode(values: NDArray[np.float32]) -> tuple[list[float], NDArray[np.uint16]]:
    """Return the range of the logarithms, and 16-bit codes of them."""
    positive = values > 0
    log = np.log(values, out=np.zeros_like(values), where=positive)
    low, high = float(log.min(initial=0)), float(log.max(initial=0))
    step = (high - low) / (N_CODES - 2) or 1.0
    codes = np.rint((log - low) / step) + 1
    return [low, high], np.where(positive, codes, 0).astype(np.uint16)


def _decode(codes: NDArray[np.uint16], span: list[float]) -> NDArray[np.float32]:
    low, high = span
    table = np.exp(np.linspace(low, high, N_CODES - 1), dtype=np.float64)
    return np.concatenate([[0.0], table]).astype(np.float32)[codes]
