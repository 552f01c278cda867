"""Binary files of n-gram models: safetensors files that are mapped into memory."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nplm.base.blocks import BLOCK_WINDOWS, blocks
from nplm.base.checks import MAX_N_WORDS
from nplm.base.encoded_words import WORD_ARRAYS, EncodedWords
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
from nplm.formats.binary.checking import check_hashed
from nplm.formats.binary.verified import is_verified, note_verified
from nplm.models.ngrams.backoff_lm import BackoffLM
from nplm.models.ngrams.backoff_model import BackoffModel
from nplm.models.ngrams.external.quantizing import Quantizing
from nplm.models.ngrams.external.scratch import Scratch
from nplm.models.ngrams.quantized_lm import QuantizedLM
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.checks import check_ranges, check_sizes, check_values
from nplm.models.ngrams.trie.hash_table import (
    BUCKET_BYTES,
    MAX_HASHED_ORDER,
    HashTable,
    index_of,
    is_hashable,
)
from nplm.models.ngrams.trie.packed_trie import PackedTrie, packed_sizes
from nplm.models.ngrams.trie.quantized_checks import restored_quantized
from nplm.models.ngrams.trie.quantized_trie import MAX_BITS, MIN_BITS
from nplm.models.training.parallel.threads import Threads
from nplm.text.tokenizer import BETWEEN_BLANKS, Tokenizer

__all__ = [
    "ARRAYS", "FORMAT", "check_bits", "damaged", "dtypes_of_trie", "header_of",
    "load_binary", "metadata_of", "old_binary", "read_binary", "save_binary",
    "sizes_of_hashed", "tokenizer_of", "write_quantized",
]  # fmt: skip

FORMAT = "nplm n-grams"
# Files before version 4 were no safetensors files.
# Files of version 4 had the arrays of the trie beside its hash table.
# Files of version 5 had no hash table of words.
VERSION = "6"
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

    The file is a safetensors file, with the words of the model and their hash table
    (about 20 bytes a word beside its letters), the hash table of the n-grams,
    ``index_``, and the packed structure of the trie: about 22 bytes per n-gram.

    Parameters
    ----------
    model : BackoffLM or KneserNeyLM
        A fitted model.
    path : path-like
        The file to write. It appears when it is complete.
    words : sequence of str, shape (n_words_,)
        The word of each id.
    compact : bool, default=False
        Write a file of half the size, without the hash table. Loading it unpacks the
        n-grams and makes the hash table. Probabilities and weights are rounded to
        65,535 even steps of their logarithm. Each n-gram and weight that makes a
        probability moves its log10 by 0.0001 at most (half a step; the steps are finer
        if the probabilities of a model span less than 13 powers of ten).
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
    header, arrays = header_of(stored), stored.arrays()
    if bits is not None:
        if compact:
            raise ValueError(
                f"bits={bits} and compact=True are two kinds of file: set one of them."
            )
        n_bits = check_bits(bits, trie.order)
        folder = followed(Path(path).absolute()).parent
        with Scratch(folder, QUANTIZING_BYTES, Threads(1)) as scratch:
            write_quantized(path, stored, trie.verified(), n_bits, scratch)
        return
    if compact:
        header["codes"], rounded = _rounded(trie)
        arrays |= rounded
    else:
        index = index_of(trie) if model.index_ is None else model.index_
        if index is None:
            arrays |= {name: getattr(trie, name) for name in ARRAYS}
        else:
            arrays |= _arrays_of(PackedTrie.of(trie), index)
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
    sizes = words.sizes | quantizing.sizes
    with filling_arrays(path, sizes, metadata) as arrays:
        words.fill(arrays)
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
        tokenizer._finder()  # compiles its pattern
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
    unpacked, and its hash table is made. (`nplm.load` maps the words too.)

    Parameters
    ----------
    path : path-like
        The file; it must stay as it is while the model is in use.
    verify : bool, default=False
        Whether to read all of the file, compare its checksums, check that all numbers
        are in range, and that the hash table is that of the n-grams: for a file that
        may be damaged, or that comes from someone you do not trust. By default only the
        header and the sizes are checked (a compact file is checked in any case). A
        damaged array may then give wrong words or probabilities, but look-ups read and
        write nothing outside of the arrays, and pruning or writing the n-grams checks
        their numbers first.

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
        truncated, its header (with `verify` any of it) is damaged, or its words are not
        UTF-8.
    OSError
        If it cannot be read.

    See Also
    --------
    nplm.load : Gives a `TextLM`.

    Notes
    -----
    `verify` takes under a microsecond for each n-gram, and some tens of megabytes of
    memory whatever the size of the file, which it reads in blocks; of a file that is
    not quantized also temporary files, about 60 bytes for each n-gram. A file that
    passes is noted in the user's cache, ``nplm/verified`` in ``XDG_CACHE_HOME`` or
    ``~/.cache``. It is
    checked again only after it was written, replaced or moved: the note has its path,
    size, inode, times and checksum. It is no error if no note can be written. There are
    no notes of compact files, which are read in full.
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
    model, words = read_binary(file, verify=verify)
    return model, words.tolist()


def read_binary(
    file: TensorFile, *, verify: bool, mmap: bool = True
) -> tuple[BackoffLM | QuantizedLM, EncodedWords]:
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
    words : EncodedWords
        The word of each id.

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
) -> tuple[BackoffLM | QuantizedLM, EncodedWords]:
    header = _header_of(file)
    n_words, boundary, compact = (
        header["n_words"], header["boundary"], "codes" in header
    )  # fmt: skip
    trusted = verify and is_verified(file)
    # A compact file is read in full anyway.
    check = compact or (verify and not trusted)
    arrays = file.arrays(mmap=mmap, check=None if check else [])
    fitted = Fitted(arrays | header.get("quantized", {}))
    words = _words(fitted, n_words, file.path, check=check)
    if "quantized" in header:
        quantized = restored_quantized(fitted, check=check)
        fitted.done()
        if quantized.n_words != n_words:
            raise ValueError(f"it has {quantized.n_words} words, not {n_words}")
        if check:
            note_verified(file)
        return QuantizedLM.from_trie(quantized, boundary=boundary), words
    if "buckets" in arrays:
        mapped, table = _hashed(fitted, n_words, file.path, check=check)
        if check:
            note_verified(file)
        return BackoffLM.from_trie(mapped, table, boundary=boundary), words
    dtypes = dtypes_of_trie(n_words, compact=compact)
    own = {name: fitted.array(name, kind, (None,)) for name, kind in dtypes.items()}
    fitted.done()
    check_sizes(own, n_words, compact=compact)
    if compact:
        own = _restored(own, header["codes"])
    trie = BackoffTrie(n_words, **own)
    # Without a hash table, look-ups trust the trie.
    check_ranges(trie)
    return BackoffLM.from_trie(trie, index_of(trie), boundary=boundary), words


def _unpacked(name: str) -> Any:
    """Return a property: an attribute of the unpacked trie."""
    return property(lambda self: getattr(self.verified(), name))


class MappedTrie(BackoffTrie):
    """A trie in a mapped file, which is unpacked and checked when it is needed.

    Probabilities need no unpacking: they come from the hash table, and the words that
    follow a context from the packed structure.

    Parameters
    ----------
    packed : PackedTrie
        The structure.
    table : HashTable
        The values.
    file : Path
        Named in error messages.
    """

    context_word = _unpacked("context_word")
    child_start = _unpacked("child_start")
    start = _unpacked("start")
    words = _unpacked("words")
    prob = _unpacked("prob")
    bow = _unpacked("bow")
    arrays = _unpacked("arrays")

    packed: PackedTrie
    table: HashTable
    file: Path

    def __init__(self, packed: PackedTrie, table: HashTable, file: Path) -> None:
        own = {"packed": packed, "table": table, "file": file}
        own |= {"n_words": packed.n_words, "level_start": packed.level_start}
        vars(self).update(own)

    @property
    def n_ngrams(self) -> NDArray[np.int64]:
        """Number of n-grams of each order."""
        return self.packed.n_ngrams

    def verified(self) -> BackoffTrie:  # type: ignore[override]
        """Return the trie, unpacked and checked; raise if it is damaged."""
        return self._verified

    @cached_property
    def _verified(self) -> BackoffTrie:
        try:
            trie = self.packed.unpacked(self.table)
            check_values(trie)
        except ValueError as error:
            raise damaged(self.file, error) from error
        return trie

    def next_word_prob(
        self, X: NDArray[np.int32], y: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Return the probability of each next word given its context."""
        return self.table.next_word_prob(X, y)

    def words_prob(
        self, X: NDArray[np.int32], words: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Return the probability of several words after each context."""
        out, n = np.empty(words.shape), words.shape[1]
        for rows in blocks(len(X), max(1, BLOCK_WINDOWS // max(1, n))):
            contexts = np.repeat(X[rows], n, axis=0)
            prob = self.table.next_word_prob(contexts, words[rows].ravel())
            out[rows] = prob.reshape(-1, n)
        return out

    def distribution(self, X: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the probability of every word after each context."""
        return self.packed.distribution(self.table, X)

    def __reduce__(self) -> Any:
        own = self.verified()
        return BackoffTrie, tuple(getattr(own, field.name) for field in fields(own))


def _hashed(
    fitted: Fitted, n_words: int, path: Path, *, check: bool
) -> tuple[MappedTrie, HashTable]:
    """Return the trie of a file with a hash table, and the table."""
    own = {n: fitted.array(n, kind, (None,)) for n, kind in HASHED.items()}
    fitted.done()
    # Kernels read sizes when they are called, and trust them.
    for name in ("n_ngrams", "level_start", "bucket_start"):
        own[name] = np.array(own[name])
    packed = PackedTrie(n_words, **{name: own[name] for name in PACKED})
    closed = own["closed"]
    table = HashTable(
        own["prob"], own["bow"], own["buckets"], own["bucket_start"],
        len(closed) == 1 and bool(closed[0]),
    )  # fmt: skip
    # Kernels trust sizes. Python's numbers do not overflow.
    starts = own["bucket_start"].tolist()
    if not (
        packed.has_valid_sizes()
        and len(own["prob"]) == len(own["bow"]) == n_words
        and len(starts) == len(packed.level_start)
        and is_hashable(len(starts) - 1)
        and starts[:2] == [0, 0]
        and all(end - start >= 1 for start, end in pairwise(starts[1:]))
        and starts[-1] * BUCKET_BYTES == len(own["buckets"])
        and len(closed) == 1
    ):
        raise ValueError("its arrays do not fit together")
    trie = MappedTrie(packed, table, path)
    if check:
        check_hashed(packed, table)
    return trie, table


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


def _words(fitted: Fitted, n_words: int, path: Path, *, check: bool) -> EncodedWords:
    own = {n: fitted.array(n, kind, (None,)) for n, kind in WORD_ARRAYS.items()}
    words = EncodedWords(**own, name=os.fspath(path))
    if len(words) != n_words:
        raise ValueError(f"it has {len(words)} words, but n_words={n_words}")
    if check:
        try:
            words.check()
            check_words(words.tolist(), n_words)
        except ValueError as error:
            raise ValueError(f"its vocabulary is invalid ({error})") from error
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


# The arrays of a trie.
ARRAYS = ("level_start", "context_word", "child_start", "start", "words", "prob", "bow")
# Those of a packed trie, and of its hash table.
PACKED: dict[str, DTypeLike] = {
    name: kind for name, (kind, _) in packed_sizes(1, 2, 2, 1).items()
}
HASHED = PACKED | {
    "prob": np.float32, "bow": np.float32, "buckets": np.uint8,
    "bucket_start": np.int64, "closed": np.bool_,
}  # fmt: skip


def dtypes_of_trie(n_words: int, *, compact: bool = False) -> dict[str, np.dtype[Any]]:
    """Return the type of each array of a trie, in the order of the file."""
    dtypes = dict.fromkeys(ARRAYS[:-2], "<i4") | dict.fromkeys(ARRAYS[-2:], "<f4")
    if compact:
        word = np.min_scalar_type(n_words - 1).newbyteorder("<").str
        dtypes |= {"context_word": word, "words": word, "prob": "<u2", "bow": "<u2"}
    return {name: np.dtype(kind) for name, kind in dtypes.items()}


def sizes_of_hashed(
    n_words: int, n_contexts: int, n_ngrams: int, bucket_start: NDArray[np.int64]
) -> dict[str, tuple[DTypeLike, int]]:
    """Return the type and length of each array of a file with a hash table.

    Parameters
    ----------
    n_words, n_contexts, n_ngrams : int
        Sizes of the trie.
    bucket_start : ndarray of int64, shape (order + 1,)
        First bucket of each level.

    Returns
    -------
    sizes : dict of str to (dtype, int)
        In the order of the file, after the vocabulary.
    """
    order = len(bucket_start) - 1
    own = packed_sizes(n_words, order, n_contexts, n_ngrams)
    lengths = {name: size for name, (_, size) in own.items()}
    lengths |= {"prob": n_words, "bow": n_words, "closed": 1}
    lengths |= {"buckets": int(bucket_start[-1]) * BUCKET_BYTES}
    lengths |= {"bucket_start": order + 1}
    return {name: (kind, lengths[name]) for name, kind in HASHED.items()}


def _arrays_of(packed: PackedTrie, index: HashTable) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file with a hash table, in its order."""
    own = {name: getattr(packed, name) for name in PACKED}
    table = {
        "prob": index.prob, "bow": index.bow, "buckets": index.buckets,
        "bucket_start": index.bucket_start, "closed": np.array([index.closed]),
    }  # fmt: skip
    return own | table


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
