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

from nplm.backoff import BackoffTree
from nplm.backoff_lm import BackoffLM
from nplm.formats._files import check_writable, writing
from nplm.formats._words import check_words

__all__ = ["load_binary", "save_binary"]

MAGIC = b"nplm n-grams\r\n\x1a\n"
VERSION = 1
# Arrays begin at lines of the cache; so does the first, after the header.
ALIGNMENT = 64
# 0 is the code of probability 0; the others are even steps of the logarithm.
N_CODES = 1 << 16


def save_binary(
    model: BackoffLM,
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
    tree = model.tree_
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
        Read all of it and compare its checksums first: for a file that may have
        been damaged. Without it only the header and the sizes are checked (a
        compact file is read and checked in any case), and a damaged array gives
        wrong probabilities or ends the process.

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
        (its header, or with `verify` any of it) damaged.
    OSError
        If it cannot be read.
    """
    path = Path(path)
    header, offset = _read_header(path)
    arrays = {}
    size = path.stat().st_size
    for entry in header["arrays"]:
        dtype = np.dtype(entry["dtype"])
        n_bytes = entry["size"] * dtype.itemsize
        if offset + n_bytes > size:
            raise ValueError(
                f"{path} is cut short: it has {size} bytes, but {entry['name']} ends "
                f"at {offset + n_bytes}; copy or save it again."
            )
        array = np.zeros(0, dtype=dtype)
        if n_bytes:
            array = np.memmap(path, dtype, "r", offset=offset, shape=(entry["size"],))
        # A compact file is read in full anyway.
        check = verify or "codes" in header
        if check and zlib.crc32(array.data) != entry["crc32"]:
            raise ValueError(
                f"{path} is damaged: the checksum of {entry['name']} is wrong; copy "
                "or save it again."
            )
        arrays[entry["name"]] = array
        offset += n_bytes + -n_bytes % ALIGNMENT
    words = arrays.pop("vocabulary").tobytes().decode().split("\n")
    if "codes" in header:
        arrays = _unpacked(arrays, header["codes"])
    tree = BackoffTree(header["n_words"], **arrays)
    _check_sizes(tree, path)
    return BackoffLM.from_tree(tree, boundary=header["boundary"]), words


def _check_sizes(tree: BackoffTree, path: Path) -> None:
    """Refuse arrays that do not belong together: kernels trust their sizes."""
    n_contexts, n_ngrams = len(tree.context_word), len(tree.words)
    levels = tree.level_start
    sound = (
        len(levels) >= 2
        and levels[0] == 0
        and levels[-1] == n_contexts
        and bool((np.diff(levels) >= 0).all())
        and len(tree.child_start) == n_contexts + 1
        and len(tree.start) == n_contexts + 1
        and tree.start[-1] == n_ngrams
        and len(tree.prob) == n_ngrams
        and len(tree.bow) == n_contexts
    )
    if not sound:
        raise ValueError(
            f"{path} is damaged: its arrays do not fit together; copy or save it again."
        )


def _read_header(path: Path) -> tuple[dict[str, Any], int]:
    """Return the header, and where the first array begins."""
    with open(path, "rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise ValueError(
                f"{path} is no file of save_binary: it does not begin as one."
            )
        n = int.from_bytes(file.read(4), "little")
        checksum = int.from_bytes(file.read(4), "little")
        encoded = file.read(n)
        end = file.tell()
    if len(encoded) < n or zlib.crc32(encoded) != checksum:
        raise ValueError(
            f"{path} is damaged or cut short: the checksum of its header is wrong; "
            "copy or save it again."
        )
    header = json.loads(encoded)
    if header["version"] != VERSION:
        raise ValueError(
            f"{path} is of version {header['version']}, but this nplm reads version "
            f"{VERSION}; save the model again with this nplm, or update it."
        )
    return header, end + -end % ALIGNMENT


# What a tree is made of, beside `n_words`.
ARRAYS = ("level_start", "context_word", "child_start", "start", "words", "prob", "bow")


def _packed(tree: BackoffTree) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return what undoes the rounding, and the arrays in few bytes."""
    word_type = np.min_scalar_type(tree.n_words - 1)
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
