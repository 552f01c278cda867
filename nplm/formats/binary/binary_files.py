"""The binary file of nplm: arrays to be mapped into memory, without pickle."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm.base.checks import MAX_N_WORDS
from nplm.formats._model_files import check_writable
from nplm.formats._models import trie_of
from nplm.formats._words import check_words
from nplm.formats.binary.arrays import ArrayFile, is_whole, write_arrays
from nplm.formats.binary.quantized import (
    arrays_of_quantized,
    dtypes_of_quantized,
    header_of_quantized,
    quantized_of_arrays,
)
from nplm.models.ngrams.backoff_lm import BackoffLM
from nplm.models.ngrams.backoff_model import BackoffModel
from nplm.models.ngrams.quantized_lm import QuantizedLM
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.checks import check_ranges, check_sizes
from nplm.models.ngrams.trie.hash_table import (
    BUCKET_SLOTS,
    MAX_HASHED_ORDER,
    SLOT_BYTES,
    HashTable,
    index_of,
    is_hashable,
)
from nplm.models.ngrams.trie.quantized_trie import MAX_BITS, MIN_BITS, QuantizedTrie

__all__ = ["ARRAYS", "dtypes_of_trie", "load_binary", "save_binary"]

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
    bits: int | None = None,
) -> None:
    """Save an n-gram model in a file that loads without being read.

    The model's hash table, ``index_``, is part of the file: loading it makes none.

    Parameters
    ----------
    model : BackoffLM or KneserNeyLM
        A fitted model.
    path : path-like
        The file to write. It takes its place when all is written.
    words : sequence of str, shape (n_words_,)
        The word of each id.
    compact : bool, default=False
        Write a file of a quarter of the size, without the hash table and to be
        unpacked when it is loaded. Probabilities and weights are rounded to 65,535
        even steps of their logarithm, which moves the log10 of a probability by
        0.0001 at most for each n-gram and weight that makes it (half a step; the
        steps are finer where the probabilities of a model span less than 13 powers
        of ten).
    bits : int, optional
        Write a quantized file: a tenth of the size, in which windows are scored as it
        is, by a `QuantizedLM`. A probability or a weight takes so many bits, from 3 to
        12; 8 change a perplexity by less than half a per cent. Orders 2 to 16.

    Raises
    ------
    TypeError
        If the model is none of n-grams that back off.
    NotFittedError
        If it is not fitted.
    ValueError
        If the words are not one an id, distinct, and without blanks; or `bits` is out
        of range, or given with `compact`, or the order is 1 or above 16.
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
    trie = trie_of(model)
    text = "\n".join(check_words(words, trie.n_words)).encode()
    header: dict[str, Any] = {
        "n_words": trie.n_words,
        "boundary": None if model.boundary is None else int(model.boundary),
    }
    arrays = {"vocabulary": np.frombuffer(text, dtype=np.uint8)}
    if bits is not None:
        quantized = QuantizedTrie.of(trie, _check_bits(bits, compact, trie))
        header["quantized"] = header_of_quantized(quantized)
        arrays |= arrays_of_quantized(quantized)
    elif compact:
        header["codes"], rounded = _rounded(trie)
        arrays |= rounded
    else:
        index = index_of(trie) if model.index_ is None else model.index_
        arrays |= {name: getattr(trie, name) for name in ARRAYS} | _arrays_of(index)
    write_arrays(path, header, arrays)


def load_binary(
    path: str | os.PathLike[str], *, verify: bool = False
) -> tuple[BackoffLM | QuantizedLM, list[str]]:
    """Load a model that `save_binary` wrote.

    Nothing is read but the header and the words: the rest is mapped, and read as
    it is needed, by all processes in one. The hash table is part of a mapped file, so
    the first look-up is as fast as later ones. A compact file is unpacked, and its hash
    table is made.

    Parameters
    ----------
    path : path-like
        The file; it must stay as it is while the model is in use.
    verify : bool, default=False
        Read all of it first, compare its checksums, see that all its numbers are in
        range, and that the hash table is the one that is made of them: for a file
        that may have been damaged, or that comes from someone you do not trust.
        Without it only the header, the words and the sizes are checked (a compact
        file is read and checked in any case). A damaged array may then give wrong
        probabilities, but look-ups read and write nothing outside of the arrays, and
        what goes through all n-grams, such as pruning or writing them, looks at their
        numbers first.

    Returns
    -------
    model : BackoffLM or, of a quantized file, QuantizedLM
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
    file = ArrayFile(path)
    header = file.header
    _check_header(file)
    n_words, compact = header["n_words"], "codes" in header
    if "quantized" in header:
        return _load_quantized(file, verify=verify)
    dtypes = dtypes_of_trie(n_words, compact=compact)
    # A compact file is read in full anyway, and so are the words.
    verify = verify or compact
    arrays = file.arrays(dtypes, list(dtypes) if verify else ["vocabulary"])
    words = _words(arrays.pop("vocabulary"), n_words, file, check=verify)
    table = {name: arrays.pop(name) for name in TABLE if name in arrays}
    try:
        check_sizes(arrays, n_words, compact=compact)
        if compact:
            arrays = _restored(arrays, header["codes"])
        trie = BackoffTrie(n_words, **arrays)
        if verify:
            check_ranges(trie)
        else:
            trie = MappedTrie(n_words, **arrays, file=file)
    except ValueError as error:
        raise file.damaged(str(error)) from error
    if compact:
        index = index_of(trie)
    else:
        index = _index(trie, **table, file=file, check=verify)
    return BackoffLM.from_trie(trie, index, boundary=header["boundary"]), words


@dataclass(frozen=True, eq=False)
class MappedTrie(BackoffTrie):
    """A trie in a file whose numbers were not checked when it was loaded.

    Attributes
    ----------
    file : ArrayFile
        The file, to name it in an error.
    """

    file: ArrayFile

    def verified(self) -> BackoffTrie:  # type: ignore[override]
        """Return the trie as one that is in order; ValueError if it is damaged."""
        return self._verified

    @cached_property
    def _verified(self) -> BackoffTrie:
        own = {name: getattr(self, name) for name in ARRAYS}
        trie = BackoffTrie(self.n_words, **own)
        try:
            check_ranges(trie)
        except ValueError as error:
            raise self.file.damaged(str(error)) from error
        return trie

    def __reduce__(self) -> Any:
        own = self.verified()
        return BackoffTrie, tuple(getattr(own, field.name) for field in fields(own))


def _load_quantized(file: ArrayFile, *, verify: bool) -> tuple[QuantizedLM, list[str]]:
    dtypes = {"vocabulary": np.dtype("<u1")} | dtypes_of_quantized(file)
    arrays = file.arrays(dtypes, list(dtypes) if verify else ["vocabulary"])
    n_words, boundary = file.header["n_words"], file.header["boundary"]
    words = _words(arrays.pop("vocabulary"), n_words, file, check=verify)
    quantized = quantized_of_arrays(file, arrays, check=verify)
    return QuantizedLM.from_trie(quantized, boundary=boundary), words


def _check_bits(bits: Any, compact: bool, trie: BackoffTrie) -> int:
    """Return the bits of a code, or raise."""
    if not isinstance(bits, int | np.integer) or not MIN_BITS <= bits <= MAX_BITS:
        raise ValueError(
            f"bits must be None or {MIN_BITS} to {MAX_BITS}, got {bits!r}."
        )
    if compact:
        raise ValueError(
            f"bits={bits} and compact=True are two kinds of file: give one."
        )
    if not is_hashable(trie.order):
        raise ValueError(
            f"bits={bits} packs orders 2 to {MAX_HASHED_ORDER}, but the model's is "
            f"{trie.order}: leave bits out."
        )
    return int(bits)


def _words(
    text: NDArray[np.uint8], n_words: int, file: ArrayFile, *, check: bool
) -> list[str]:
    try:
        words = text.tobytes().decode().split("\n")
        if check:
            check_words(words, len(words))
    except ValueError as error:  # UnicodeDecodeError is one
        raise file.damaged(f"its vocabulary is none ({error})") from error
    if len(words) != n_words:
        raise file.damaged(f"it has {len(words)} words, but n_words={n_words}")
    return words


def _check_header(file: ArrayFile) -> None:
    """Refuse a header with anything that `save_binary` does not write."""
    header = file.header
    n_words: Any = header.get("n_words")
    boundary = header.get("boundary", "missing")
    if not is_whole(n_words, 1, MAX_N_WORDS):
        raise file.damaged(f"its header has n_words={n_words!r}")
    if boundary is not None and not is_whole(boundary, 0, n_words - 1):
        raise file.damaged(f"its header has boundary={boundary!r}")
    if "codes" in header and not _are_spans(header["codes"]):
        raise file.damaged(f"its header has codes={header['codes']!r}")


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


# What a trie is made of, beside `n_words`, and its hash table.
ARRAYS = ("level_start", "context_word", "child_start", "start", "words", "prob", "bow")
TABLE = ("slots", "slot_start", "closed")


def dtypes_of_trie(n_words: int, *, compact: bool = False) -> dict[str, np.dtype[Any]]:
    """Return the one type that each array has, in the order of the file."""
    dtypes = {"vocabulary": "<u1"} | dict.fromkeys(ARRAYS[:-2], "<i4")
    dtypes |= dict.fromkeys(ARRAYS[-2:], "<f4")
    if compact:
        word = np.min_scalar_type(n_words - 1).newbyteorder("<").str
        dtypes |= {"context_word": word, "words": word, "prob": "<u2", "bow": "<u2"}
    else:
        dtypes |= {"slots": "<u1", "slot_start": "<i8", "closed": "|b1"}
    return {name: np.dtype(kind) for name, kind in dtypes.items()}


def _arrays_of(index: HashTable | None) -> dict[str, NDArray[Any]]:
    """Return the arrays of the hash table, empty ones where the order has none."""
    if index is None:
        none = np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.bool_)
        return dict(zip(TABLE, none))
    own = index.slots, index.slot_start, np.array([index.closed])
    return dict(zip(TABLE, own))


def _index(
    trie: BackoffTrie,
    slots: NDArray[np.uint8],
    slot_start: NDArray[np.int64],
    closed: NDArray[np.bool_],
    *,
    file: ArrayFile,
    check: bool,
) -> HashTable | None:
    """Return the hash table of a file; kernels trust the sizes."""
    # As Python's numbers, which do not overflow.
    starts = slot_start.tolist()
    sizes = [end - start for start, end in pairwise(starts)]
    hashable = is_hashable(trie.order)
    sound = not starts and not len(slots) and not len(closed)
    if hashable:
        sound = (
            len(sizes) == trie.order
            and starts[:2] == [0, 0]
            and all(n >= BUCKET_SLOTS and n % BUCKET_SLOTS == 0 for n in sizes[1:])
            and starts[-1] * SLOT_BYTES == len(slots)
            and len(closed) == 1
        )
    if not sound:
        raise file.damaged("its arrays do not fit together")
    if not hashable:
        return None
    index = HashTable.over(trie, slots, slot_start, closed=bool(closed[0]))
    if check:
        # One trie makes one table.
        own = HashTable.of(trie)
        if not (
            np.array_equal(own.slot_start, slot_start)
            and np.array_equal(own.slots, slots)
            and own.closed == index.closed
        ):
            raise file.damaged("slots has other n-grams than the rest of it")
    return index


def _rounded(trie: BackoffTrie) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return what undoes the rounding, and the arrays in few bytes."""
    word_type = dtypes_of_trie(trie.n_words, compact=True)["words"]
    prob_range, prob = _encode(trie.prob)
    bow_range, bow = _encode(trie.bow)
    arrays = {
        "level_start": trie.level_start,
        "context_word": trie.context_word.astype(word_type),
        # The longest contexts have no children.
        "child_start": trie.child_start[: trie.level_start[-2]],
        "start": trie.start,
        "words": trie.words.astype(word_type),
        "prob": prob,
        "bow": bow,
    }
    return {"prob": prob_range, "bow": bow_range}, arrays


def _restored(
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
