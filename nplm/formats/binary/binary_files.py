"""Binary files of n-gram models: safetensors files that are mapped into memory."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm.base.checks import MAX_N_WORDS
from nplm.base.files.atomic_files import followed
from nplm.base.files.tensors import (
    NotTensorsError,
    TensorFile,
    filling_arrays,
    write_tensors,
)
from nplm.base.fitted import Fitted
from nplm.formats._kinds import Kind, kind_of
from nplm.formats._model_files import check_writable
from nplm.formats._models import trie_of
from nplm.formats._words import StoredWords, check_words
from nplm.models.ngrams.backoff_lm import BackoffLM
from nplm.models.ngrams.backoff_model import BackoffModel
from nplm.models.ngrams.external.quantizing import Quantizing
from nplm.models.ngrams.external.scratch import Scratch
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
from nplm.models.ngrams.trie.quantized_checks import restored_quantized
from nplm.models.ngrams.trie.quantized_trie import MAX_BITS, MIN_BITS
from nplm.models.training.parallel.threads import Threads
from nplm.text.tokenizer import BETWEEN_BLANKS, Tokenizer, compiled

__all__ = [
    "ARRAYS", "FORMAT", "check_bits", "damaged", "dtypes_of_trie", "header_of",
    "load_binary", "metadata_of", "old_binary", "read_binary", "save_binary",
    "tokenizer_of", "write_quantized",
]  # fmt: skip

FORMAT = "nplm n-grams"
# Files before version 4 were no safetensors files.
VERSION = "4"
# 0 is the code of probability 0; the others are even steps of the logarithm.
N_CODES = 1 << 16
# The range of natural logarithms of float32 numbers.
MIN_LOG, MAX_LOG = -104.0, 88.72
# Memory in which n-grams are sorted for a quantized file.
QUANTIZING_BYTES = 1 << 28


def save_binary(
    model: BackoffModel,
    path: str | os.PathLike[str],
    words: Sequence[str],
    *,
    compact: bool = False,
    bits: int | None = None,
) -> None:
    """Save an n-gram model in a file that loads by mapping it into memory.

    The file is a safetensors file, with the words of the model and its hash table,
    ``index_``.

    Parameters
    ----------
    model : BackoffLM or KneserNeyLM
        A fitted model.
    path : path-like
        The file to write. It appears when it is complete.
    words : sequence of str, shape (n_words_,)
        The word of each id.
    compact : bool, default=False
        Write a file of a quarter of the size, without the hash table. Loading it
        unpacks the n-grams and makes the hash table. Probabilities and weights are
        rounded to 65,535 even steps of their logarithm. Each n-gram and weight that
        makes a probability moves its log10 by 0.0001 at most (half a step; the steps
        are finer if the probabilities of a model span less than 13 powers of ten).
    bits : int, optional
        Write a quantized file: a tenth of the size. Loading it gives a `QuantizedLM`,
        which scores windows in the file as it is. A probability or a weight takes this
        number of bits, from 3 to 12; 8 change a perplexity by less than half a per
        cent. Orders 2 to 16.

    Raises
    ------
    TypeError
        If the model is not a back-off model of n-grams.
    NotFittedError
        If it is not fitted.
    ValueError
        If there is not one word for each id, or words are equal or have blanks; if
        `bits` is out of range, is given with `compact`, or the order is 1 or above 16.
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
    boundary = None if model.boundary is None else int(model.boundary)
    stored = StoredWords(check_words(words, trie.n_words), boundary)
    header, arrays = header_of(stored), {"vocabulary": stored.text}
    if bits is not None:
        if compact:
            raise ValueError(
                f"bits={bits} and compact=True are two kinds of file: set one of them."
            )
        n_bits = check_bits(bits, trie.order)
        folder = followed(Path(path).absolute()).parent
        with Scratch(folder, QUANTIZING_BYTES, Threads(1)) as scratch:
            write_quantized(path, stored, trie, n_bits, scratch)
        return
    if compact:
        header["codes"], rounded = _rounded(trie)
        arrays |= rounded
    else:
        index = index_of(trie) if model.index_ is None else model.index_
        arrays |= {name: getattr(trie, name) for name in ARRAYS} | _arrays_of(index)
    write_tensors(path, arrays, metadata_of(header))


def write_quantized(
    path: str | os.PathLike[str],
    words: StoredWords,
    trie: BackoffTrie,
    bits: int,
    scratch: Scratch,
) -> None:
    """Write a quantized file in bounded memory.

    Parameters
    ----------
    path : path-like
        The file.
    words : StoredWords
        The words, and the id of the boundary.
    trie : BackoffTrie
        The n-grams, in memory or mapped.
    bits : int
        Bits of a code.
    scratch : Scratch
        The temporary folder.
    """
    quantizing = Quantizing(trie, bits, scratch)
    metadata = metadata_of(header_of(words) | {"quantized": quantizing.header})
    sizes = {"vocabulary": (np.dtype("<u1"), len(words.text))} | quantizing.sizes
    with filling_arrays(path, sizes, metadata) as arrays:
        arrays["vocabulary"][:] = words.text
        quantizing.fill(arrays)


def header_of(words: StoredWords) -> dict[str, Any]:
    """Return what a file says of its words."""
    header = {"n_words": words.n_words, "boundary": words.boundary}
    if words.tokenizer is not None and words.tokenizer.pattern != BETWEEN_BLANKS:
        header["tokenizer"] = words.tokenizer.get_params()
    return header


def tokenizer_of(file: TensorFile) -> Tokenizer:
    """Return the tokenizer of the text that a file's model was estimated from.

    By default it splits at blanks.

    Raises
    ------
    ValueError
        If the file is damaged.
    """
    try:
        given = _header_of(file).get("tokenizer")
        if given is None:
            return Tokenizer(BETWEEN_BLANKS)
        names = Tokenizer().get_params()
        if not isinstance(given, dict) or given.keys() != names.keys():
            raise ValueError(f"its header has tokenizer={given!r:.80}")
        tokenizer = Tokenizer(**given)
        tokenizer._validate_params()
        compiled(tokenizer.pattern)
    except ValueError as error:
        raise damaged(file.path, error) from error
    return tokenizer


def metadata_of(header: Mapping[str, Any]) -> dict[str, str]:
    """Return what a file says of the model in it, beside its arrays."""
    return {"format": FORMAT, "version": VERSION, "model": json.dumps(header)}


def load_binary(
    path: str | os.PathLike[str], *, verify: bool = False
) -> tuple[BackoffLM | QuantizedLM, list[str]]:
    """Load a model that `save_binary` wrote.

    Only the header and the words are read. The other arrays are mapped into memory and
    read when they are used, once for all processes. A mapped file has the hash table,
    so the first look-up is as fast as later ones. A compact file is read in full and
    unpacked, and its hash table is made.

    Parameters
    ----------
    path : path-like
        The file; it must stay as it is while the model is in use.
    verify : bool, default=False
        Whether to read all of the file, compare its checksums, check that all numbers
        are in range, and that the hash table is that of the n-grams: for a file that
        may be damaged, or that comes from someone you do not trust. By default only
        the header, the words and the sizes are checked (a compact file is checked in
        any case). A damaged array may then give wrong probabilities, but look-ups read
        and write nothing outside of the arrays, and pruning or writing the n-grams
        checks their numbers first.

    Returns
    -------
    model : BackoffLM or, of a quantized file, QuantizedLM
        A model that scores as the one that was saved.
    words : list of str
        The word of each id.

    Raises
    ------
    ValueError
        If `save_binary` did not write the file, or another version did; if the file is
        truncated, or its header or its words (with `verify` any of it) are damaged.
    OSError
        If it cannot be read.

    See Also
    --------
    nplm.load : Checks all of the file, and gives a `TextLM`.
    """
    path = Path(path)
    try:
        file = TensorFile(path)
        if file.metadata.get("format") != FORMAT:
            raise NotTensorsError("it has no n-grams of save_binary")
    except NotTensorsError as error:
        raise ValueError(_is_no_binary(path)) from error
    except ValueError as error:
        raise damaged(path, error) from error
    return read_binary(file, verify=verify)


def read_binary(
    file: TensorFile, *, verify: bool, mmap: bool = True
) -> tuple[BackoffLM | QuantizedLM, list[str]]:
    """Read the model of an open file, as `load_binary` does.

    Parameters
    ----------
    file : TensorFile
        A file whose format is `FORMAT`.
    verify : bool
        Whether to check all of it.
    mmap : bool, default=True
        Whether arrays stay in the file.

    Returns
    -------
    model : BackoffLM or QuantizedLM
    words : list of str

    Raises
    ------
    ValueError
        If the file is of another version, or damaged.
    """
    version = file.metadata.get("version")
    if version != VERSION:
        raise ValueError(
            f"{file.path} is of version {version!r:.80}, but this nplm reads version "
            f"{VERSION!r}; save the model again with this nplm, or update it."
        )
    try:
        return _read(file, verify=verify, mmap=mmap)
    except ValueError as error:
        raise damaged(file.path, error) from error


def damaged(path: Path, why: object) -> ValueError:
    """Return the error of a damaged file."""
    why = str(why).rstrip(".")
    return ValueError(f"{path} is damaged: {why}; copy or save it again.")


def _is_no_binary(path: Path) -> str:
    """Say what a file is that `save_binary` did not write."""
    kind = kind_of(path)
    if kind is Kind.OLD_BINARY:
        return old_binary(path)
    hint = "it does not begin as one"
    if kind is Kind.TENSORS:
        hint = "nplm.load reads files of nplm.save"
    elif kind is Kind.TEXT:
        hint += " (read_arpa reads ARPA files)"
    return f"{path} is not a file of save_binary: {hint}."


def old_binary(path: Path) -> str:
    """Say that a file is of an earlier version, and what to do."""
    return (
        f"{path} is a binary file of an earlier nplm, which this one does not read: "
        "estimate the model again or read it from an ARPA file, and save it with this "
        "nplm (nplm convert, or save_binary)."
    )


def _read(
    file: TensorFile, *, verify: bool, mmap: bool
) -> tuple[BackoffLM | QuantizedLM, list[str]]:
    header = _header_of(file)
    n_words, boundary, compact = (
        header["n_words"], header["boundary"], "codes" in header
    )  # fmt: skip
    # A compact file is read in full anyway, and so are the words.
    verify = verify or compact
    arrays = file.arrays(mmap=mmap, check=None if verify else ["vocabulary"])
    fitted = Fitted(arrays | header.get("quantized", {}))
    text = fitted.array("vocabulary", np.uint8, (None,))
    words = _words(text, n_words, check=verify)
    if "quantized" in header:
        quantized = restored_quantized(fitted, check=verify)
        fitted.done()
        if quantized.n_words != n_words:
            raise ValueError(f"it has {quantized.n_words} words, not {n_words}")
        return QuantizedLM.from_trie(quantized, boundary=boundary), words
    dtypes = dtypes_of_trie(n_words, compact=compact)
    del dtypes["vocabulary"]
    own = {name: fitted.array(name, kind, (None,)) for name, kind in dtypes.items()}
    fitted.done()
    table = {name: own.pop(name) for name in TABLE if name in own}
    check_sizes(own, n_words, compact=compact)
    if compact:
        own = _restored(own, header["codes"])
    trie = BackoffTrie(n_words, **own)
    if verify:
        check_ranges(trie)
    else:
        trie = MappedTrie(n_words, **own, file=file.path)
    index = index_of(trie) if compact else _index(trie, **table, check=verify)
    return BackoffLM.from_trie(trie, index, boundary=boundary), words


@dataclass(frozen=True, eq=False)
class MappedTrie(BackoffTrie):
    """A trie in a mapped file, whose numbers are not checked until needed.

    Attributes
    ----------
    file : Path
        Named in error messages.
    """

    file: Path

    def verified(self) -> BackoffTrie:  # type: ignore[override]
        """Return the trie with its numbers checked; raise if they are damaged."""
        return self._verified

    @cached_property
    def _verified(self) -> BackoffTrie:
        own = {name: getattr(self, name) for name in ARRAYS}
        trie = BackoffTrie(self.n_words, **own)
        try:
            check_ranges(trie)
        except ValueError as error:
            raise damaged(self.file, error) from error
        return trie

    def __reduce__(self) -> Any:
        own = self.verified()
        return BackoffTrie, tuple(getattr(own, field.name) for field in fields(own))


def check_bits(bits: Any, order: int) -> int:
    """Return the number of bits of a code, or raise."""
    if not isinstance(bits, int | np.integer) or not MIN_BITS <= bits <= MAX_BITS:
        raise ValueError(
            f"bits must be None or {MIN_BITS} to {MAX_BITS}, got {bits!r}."
        )
    if not is_hashable(order):
        raise ValueError(
            f"bits={bits} quantizes orders 2 to {MAX_HASHED_ORDER}, but the model's "
            f"order is {order}: leave bits out."
        )
    return int(bits)


def _words(text: NDArray[np.uint8], n_words: int, *, check: bool) -> list[str]:
    try:
        words = text.tobytes().decode().split("\n")
        if check:
            check_words(words, len(words))
    except ValueError as error:  # UnicodeDecodeError is one
        raise ValueError(f"its vocabulary is invalid ({error})") from error
    if len(words) != n_words:
        raise ValueError(f"it has {len(words)} words, but n_words={n_words}")
    return words


def _header_of(file: TensorFile) -> dict[str, Any]:
    """Return what the file says of its model; refuse what `save_binary` never says."""
    try:
        header = json.loads(file.metadata.get("model", ""))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its header is not JSON ({error})") from None
    if not isinstance(header, dict):
        raise ValueError("its header describes no model")
    n_words: Any = header.get("n_words")
    boundary = header.get("boundary", "missing")
    if not _is_id(n_words, 1, MAX_N_WORDS):
        raise ValueError(f"its header has n_words={n_words!r:.80}")
    if boundary is not None and not _is_id(boundary, 0, n_words - 1):
        raise ValueError(f"its header has boundary={boundary!r:.80}")
    if "codes" in header and not _are_spans(header["codes"]):
        raise ValueError(f"its header has codes={header['codes']!r:.80}")
    if not isinstance(header.get("quantized", {}), dict):
        raise ValueError(f"its header has quantized={header['quantized']!r:.80}")
    known = {"n_words", "boundary", "codes", "quantized", "tokenizer"}
    unknown = header.keys() - known
    if unknown or {"codes", "quantized"} <= header.keys():
        raise ValueError(f"its header has {sorted(header)!r:.80}")
    return header


def _is_id(value: Any, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def _are_spans(codes: Any) -> bool:
    """Return whether these are valid ranges of the logarithms of `prob` and `bow`."""
    if not isinstance(codes, dict) or codes.keys() != {"prob", "bow"}:
        return False
    return all(
        isinstance(span, list)
        and len(span) == 2
        and all(type(end) is float for end in span)
        and MIN_LOG <= span[0] <= span[1] <= MAX_LOG
        for span in codes.values()
    )


# The arrays of a trie, and those of its hash table.
ARRAYS = ("level_start", "context_word", "child_start", "start", "words", "prob", "bow")
TABLE = ("slots", "slot_start", "closed")


def dtypes_of_trie(n_words: int, *, compact: bool = False) -> dict[str, np.dtype[Any]]:
    """Return the type of each array, in the order of the file."""
    dtypes = {"vocabulary": "<u1"} | dict.fromkeys(ARRAYS[:-2], "<i4")
    dtypes |= dict.fromkeys(ARRAYS[-2:], "<f4")
    if compact:
        word = np.min_scalar_type(n_words - 1).newbyteorder("<").str
        dtypes |= {"context_word": word, "words": word, "prob": "<u2", "bow": "<u2"}
    else:
        dtypes |= {"slots": "<u1", "slot_start": "<i8", "closed": "|b1"}
    return {name: np.dtype(kind) for name, kind in dtypes.items()}


def _arrays_of(index: HashTable | None) -> dict[str, NDArray[Any]]:
    """Return the arrays of the hash table, empty if the order has no table."""
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
    check: bool,
) -> HashTable | None:
    """Return the hash table of a file, with its sizes checked: kernels trust them."""
    # Python's numbers do not overflow.
    starts = slot_start.tolist()
    sizes = [end - start for start, end in pairwise(starts)]
    hashable = is_hashable(trie.order)
    is_valid = not starts and not len(slots) and not len(closed)
    if hashable:
        is_valid = (
            len(sizes) == trie.order
            and starts[:2] == [0, 0]
            and all(n >= BUCKET_SLOTS and n % BUCKET_SLOTS == 0 for n in sizes[1:])
            and starts[-1] * SLOT_BYTES == len(slots)
            and len(closed) == 1
        )
    if not is_valid:
        raise ValueError("its arrays do not fit together")
    if not hashable:
        return None
    index = HashTable.over(trie, slots, slot_start, closed=bool(closed[0]))
    if check:
        # The table of a trie is unique.
        rebuilt = HashTable.of(trie)
        if not (
            np.array_equal(rebuilt.slot_start, slot_start)
            and np.array_equal(rebuilt.slots, slots)
            and rebuilt.closed == index.closed
        ):
            raise ValueError("slots does not match its n-grams")
    return index


def _rounded(trie: BackoffTrie) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the ranges of the codes, and the arrays of a compact file."""
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
