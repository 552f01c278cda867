"""Read and check binary files of n-grams: the n-grams, without a model of them."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from nplm.base.array_types import AnyArray, Counts
from nplm.base.blocks import blocks
from nplm.base.checks import MAX_N_WORDS
from nplm.base.encoded_words import WORD_ARRAYS, EncodedWords
from nplm.base.exceptions import damaged_file
from nplm.base.files.atomic_files import release_pages, replacing, user_cache
from nplm.base.files.tensors import CHECKSUM, TensorFile, stamp_of
from nplm.base.fitted import Fitted
from nplm.formats._model_files import NGRAMS
from nplm.formats._ngrams import AT_BLANKS, Ngrams
from nplm.formats._words import check_words
from nplm.models.ngrams.trie import hashing, packed_trie
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.hash_table import BUCKET_BYTES, HashTable
from nplm.models.ngrams.trie.quantized_trie import QuantizedTrie, restored_quantized
from nplm.models.ngrams.trie.trie_checks import BLOCK_ENTRIES, restored_trie
from nplm.models.ngrams.trie.work import Work
from nplm.text.words.splitting import Splitter, finder_of, params_of

# The arrays of a packed trie, and of its hash table.
PACKED: dict[str, DTypeLike] = {
    name: kind for name, (kind, _) in packed_trie.packed_sizes(1, 2, 2, 1).items()
}
HASHED = PACKED | {
    "prob": np.float32, "bow": np.float32, "buckets": np.uint8,
    "bucket_start": np.int64, "closed": np.bool_,
}  # fmt: skip
# Memory of buffers, and of the buckets that are mapped at once.
CHECKING_BYTES = 1 << 24


def read_ngrams(
    file: TensorFile, *, verify: bool, mmap: bool = True
) -> Ngrams[BackoffTrie | packed_trie.MappedTrie | QuantizedTrie]:
    """Read the n-grams of an open file of format `NGRAMS`, as `load_binary` does."""
    NGRAMS.check_version(file)
    # In JSON only a key is written so.
    if '"codes":' in file.metadata.get("model", ""):
        raise ValueError(
            f"{file.path} was saved with compact=True, which this nplm does not read: "
            "convert it to ARPA with the nplm that saved it (nplm convert), and save "
            "that with this one; bits=8 makes smaller files."
        )
    try:
        return _read(file, verify=verify, mmap=mmap)
    except ValueError as error:
        raise damaged_file(file.path, error) from error


def _read(
    file: TensorFile, *, verify: bool, mmap: bool
) -> Ngrams[BackoffTrie | packed_trie.MappedTrie | QuantizedTrie]:
    header = _header(file)
    n_words = header.whole("n_words", 1, MAX_N_WORDS)
    boundary = header.optional_id("boundary", n_words)
    quantized_items = header.take("quantized", dict) if "quantized" in header else None
    split = _split(header.take("tokenizer")) if "tokenizer" in header else AT_BLANKS
    spelling = header.take("spelling") if "spelling" in header else None
    header.done()
    check = verify and not is_verified(file)
    work = Work()
    if check:
        work.stage("comparing checksums", file.path.stat().st_size)
    arrays = file.arrays(
        mmap=mmap,
        check=None if check else [],
        progress=lambda block: work.advance(len(block)),
    )
    fitted = Fitted(arrays | (quantized_items or {}))
    words = _words(fitted, n_words, file.path, check=check)
    trie: BackoffTrie | packed_trie.MappedTrie | QuantizedTrie
    table = None
    if quantized_items is not None:
        trie = restored_quantized(fitted, check=check)
    elif "buckets" in arrays:
        trie, table = read_mapped(fitted, n_words, file.path, check=check)
    else:  # of the few orders without a hash table: look-ups trust the trie
        trie = restored_trie(fitted)
    fitted.done()
    if trie.n_words != n_words:
        raise ValueError(f"it has {trie.n_words} words, not {n_words}")
    if isinstance(trie, BackoffTrie):
        table = hashing.index_of(trie)
    elif check:
        note_verified(file)
    return Ngrams(trie, table, boundary, words, split, spelling)


def _words(fitted: Fitted, n_words: int, path: Path, *, check: bool) -> EncodedWords:
    arrays = {n: fitted.array(n, kind, (None,)) for n, kind in WORD_ARRAYS.items()}
    words = EncodedWords(**arrays, name=os.fspath(path))
    if len(words) != n_words:
        raise ValueError(f"it has {len(words)} words, but n_words={n_words}")
    if check:
        try:
            words.check()
            check_words(words.tolist(), n_words)
        except ValueError as error:
            raise ValueError(f"its vocabulary is invalid ({error})") from error
    return words


def _split(params: Any) -> dict[str, Any]:
    """Return checked parameters of a `Splitter`, or a `Tokenizer`, of the text."""
    if not (
        isinstance(params, dict)
        # Files from before `identifier` have none.
        and params.keys() | {"identifier"} == params_of(Splitter()).keys()
        and isinstance(params["lowercase"], bool)
        and all(
            value is None or isinstance(value, str)
            for name, value in params.items()
            if name != "lowercase"
        )
    ):
        raise ValueError(f"its header has tokenizer={params!r:.80}")
    finder_of(Splitter(**params))  # compiles its pattern
    return params


def _header(file: TensorFile) -> Fitted:
    """Return what the file says of its model."""
    try:
        header = json.loads(file.metadata.get("model", ""))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its header is not JSON ({error})") from None
    if not isinstance(header, dict):
        raise ValueError("its header describes no model")
    return Fitted(header, "in its header ")


def read_mapped(
    fitted: Fitted, n_words: int, path: Path, *, check: bool
) -> tuple[packed_trie.MappedTrie, HashTable]:
    """Return the trie of a file with a hash table, and the table."""
    arrays = {n: fitted.array(n, kind, (None,)) for n, kind in HASHED.items()}
    # Kernels read sizes when they are called, and trust them.
    for name in ("n_ngrams", "level_start", "bucket_start"):
        arrays[name] = np.array(arrays[name])
    packed = packed_trie.PackedTrie(n_words, **{name: arrays[name] for name in PACKED})
    closed = arrays["closed"]
    table = HashTable(
        arrays["prob"], arrays["bow"], arrays["buckets"], arrays["bucket_start"],
        len(closed) == 1 and bool(closed[0]),
    )  # fmt: skip
    # Kernels trust sizes. Python's numbers do not overflow.
    starts = arrays["bucket_start"].tolist()
    if not (
        packed.has_valid_sizes()
        and len(arrays["prob"]) == len(arrays["bow"]) == n_words
        and len(starts) == len(packed.level_start)
        and hashing.is_hashable(len(starts) - 1)
        and starts[:2] == [0, 0]
        and all(end - start >= 1 for start, end in pairwise(starts[1:]))
        and starts[-1] * BUCKET_BYTES == len(arrays["buckets"])
        and len(closed) == 1
    ):
        raise ValueError("its arrays do not fit together")
    trie = packed_trie.MappedTrie(packed, table, path)
    if check:
        check_hashed(packed, table)
    return trie, table


def sizes_of_hashed(
    n_words: int, n_contexts: int, n_ngrams: int, bucket_start: Counts
) -> dict[str, tuple[DTypeLike, int]]:
    """Return the type and length of each array after the vocabulary, in file order.

    `bucket_start` (order + 1,) has the first bucket of each level.
    """
    order = len(bucket_start) - 1
    packed = packed_trie.packed_sizes(n_words, order, n_contexts, n_ngrams)
    lengths = {name: size for name, (_, size) in packed.items()}
    lengths |= {"prob": n_words, "bow": n_words, "closed": 1}
    lengths |= {"buckets": int(bucket_start[-1]) * BUCKET_BYTES}
    lengths |= {"bucket_start": order + 1}
    return {name: (kind, lengths[name]) for name, kind in HASHED.items()}


def check_hashed(packed: packed_trie.PackedTrie, table: HashTable) -> None:
    """Raise ValueError unless a structure and a hash table are those of one trie.

    The trie is unpacked to temporary files, and its structure packed and its table
    built again: both are unique.
    """
    # Imported here: few files are verified, and they need estimation.
    from nplm.models.ngrams.stages.scratch import Scratch

    with Scratch(None, CHECKING_BYTES) as scratch:
        trie = packed_trie.unpacked(packed, table, scratch, CHECKING_BYTES)
        again = packed_trie.PackedTrie.of(trie, scratch)
        for field in fields(packed):
            name = field.name
            if name != "n_words":
                _check_equal(name, getattr(again, name), getattr(packed, name))
        # Sizes below the right ones are too small.
        sizes = hashing.buckets_of_levels(trie.n_ngrams, trie.level_start)
        expected = next(size for size in sizes if size[-1] >= table.bucket_start[-1])
        _check_equal("bucket_start", expected, table.bucket_start)
        buckets = scratch.array(np.uint8, len(table.buckets))
        try:
            closed = hashing.fill_table(trie, buckets, expected, scratch)
        except hashing.TableFullError:
            raise ValueError("bucket_start does not match its n-grams") from None
        _check_equal("buckets", buckets, table.buckets)
        if closed != table.closed:
            raise ValueError("closed does not match its n-grams")


def _check_equal(name: str, expected: AnyArray, array: AnyArray) -> None:
    """Raise ValueError unless two arrays are equal; release them if they are mapped."""
    same = len(expected) == len(array)
    for part in blocks(len(array), BLOCK_ENTRIES):
        same = same and np.array_equal(expected[part], array[part])
        release_pages(expected, array)
    if not same:
        raise ValueError(f"{name} does not match its n-grams")


# A file is verified once. The note of it is in the user's cache, not beside the file: a
# file that comes from someone else cannot bring its note along, and models may be in
# folders that are read-only.
# Notes of other rules do not count: increase it when verification checks more.
RULES = 2
MAX_NOTE_BYTES = 1 << 16
# Times of files are coarse: a file that was just written may be written again without a
# change of its times.
SETTLED_NANOSECONDS = 2_000_000_000


def is_verified(file: TensorFile) -> bool:
    """Return whether this user has verified the file as it is now."""
    try:
        with open(_path_of(file), "rb") as note:
            # A note of another user says nothing.
            if os.fstat(note.fileno()).st_uid != os.geteuid():
                return False
            noted = json.loads(note.read(MAX_NOTE_BYTES))
    except (OSError, RuntimeError, ValueError, RecursionError):
        return False
    return bool(noted == _note_of(file))


def note_verified(file: TensorFile) -> None:
    """Note that a file has been verified, if it can be, and was not just written."""
    # RuntimeError: the user has no home.
    with suppress(OSError, RuntimeError):
        is_settled = time.time_ns() - max(file.stamp[-2:]) > SETTLED_NANOSECONDS
        if not is_settled or file.stamp != stamp_of(file.path):
            return
        path = _path_of(file)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replacing(path) as note:
            note.write(json.dumps(_note_of(file)).encode())


def _path_of(file: TensorFile) -> Path:
    """Return the path of a file's note."""
    import hashlib  # it loads OpenSSL, and most files are not verified

    name = hashlib.sha256(os.fsencode(os.path.realpath(file.path))).hexdigest()[:32]
    return user_cache() / "verified" / f"{name}.json"


def _note_of(file: TensorFile) -> dict[str, object]:
    # The time of the last change (ctime) cannot be set back, unlike mtime.
    return {
        "rules": RULES,
        "file": os.path.realpath(file.path),
        "stamp": list(file.stamp),
        "checksum": file.metadata[CHECKSUM],
    }
