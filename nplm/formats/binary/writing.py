"""Write binary files of n-grams, in memory or on disk."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nplm.base.array_types import Counts
from nplm.base.blocks import blocks
from nplm.base.encoded_words import EncodedWords
from nplm.base.exceptions import parameter_error
from nplm.base.files.atomic_files import check_writable, followed
from nplm.base.files.tensors import write_tensors
from nplm.formats._model_files import NGRAMS, trie_of
from nplm.formats._words import StoredWords, check_words
from nplm.formats.binary.binary_reading import sizes_of_hashed
from nplm.models.ngrams.stages.quantizing import Quantizing
from nplm.models.ngrams.stages.scratch import Scratch
from nplm.models.ngrams.trie import hashing
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.hash_table import HashTable
from nplm.models.ngrams.trie.packed_trie import fill_packed
from nplm.models.ngrams.trie.quantized_trie import MAX_BITS, MIN_BITS
from nplm.models.ngrams.trie.trie_checks import arrays_of
from nplm.models.ngrams.trie.work import Work
from nplm.text.words.splitting import Splitter, params_of

if TYPE_CHECKING:
    from nplm.models.ngrams.backoff_model import BackoffModel

# Memory in which n-grams are sorted for a quantized file.
QUANTIZING_BYTES = 1 << 28


def save_binary(
    model: BackoffModel,
    path: str | os.PathLike[str],
    words: Sequence[str],
    *,
    bits: int | None = None,
) -> None:
    """Save an n-gram model in a file that loads by mapping it into memory.

    The file is a safetensors file, with the words of the model and their hash table
    (about 20 bytes a word beside its letters), the hash table of the n-grams,
    ``index_``, and the packed structure of the trie: about 21 bytes per n-gram.

    Parameters
    ----------
    model : BackoffLM or KneserNeyLM
        A fitted model.
    path : path-like
        The file to write. It appears when it is complete.
    words : sequence of str, shape (n_words_,)
        The word of each id.
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
        `bits` is out of range, or the order is 1 or above 16.
    OSError
        If `path` cannot be written, before any work is done.

    Examples
    --------
    >>> import numpy as np
    >>> from nplm import KneserNeyLM, windows
    >>> from nplm.formats import load_binary, save_binary
    >>> ids = np.random.default_rng(0).zipf(1.5, size=5000) % 100
    >>> X, y = windows(ids, 2)
    >>> model = KneserNeyLM(n_words=100).fit(X, y)
    >>> save_binary(model, "model.nplm", [f"w{i}" for i in range(100)])
    >>> again, words = load_binary("model.nplm")
    >>> bool((again.log_prob(X, y) == model.log_prob(X, y)).all())
    True
    """
    check_writable(path)
    trie = trie_of(model)
    boundary = None if model.boundary is None else int(model.boundary)
    stored = StoredWords(EncodedWords.of(check_words(words, trie.n_words)), boundary)
    if bits is not None:
        n_bits = check_bits(bits, trie.order)
        folder = followed(Path(path).absolute()).parent
        with Scratch(folder, QUANTIZING_BYTES) as scratch:
            write_quantized(path, stored, trie, n_bits, scratch)
    else:
        index = hashing.index_of(trie) if model.index_ is None else model.index_
        write_mapped(path, stored, trie, Work(), index=index)


def write_mapped(
    path: str | os.PathLike[str],
    words: StoredWords,
    trie: BackoffTrie,
    work: Work,
    *,
    index: HashTable | None = None,
) -> None:
    """Write a file of mapped n-grams, with their hash table if their order has one."""
    metadata = metadata_of(words)
    if not hashing.is_hashable(trie.order):
        write_tensors(path, words.words.arrays | arrays_of(trie), metadata)
        return
    n_contexts, n_ngrams = len(trie.context_word), len(trie.words)
    starts = hashing.buckets_of_levels(trie.n_ngrams, trie.level_start)
    for bucket_start in starts if index is None else [index.bucket_start]:
        sizes = sizes_of_hashed(trie.n_words, n_contexts, n_ngrams, bucket_start)
        fill = partial(_fill_hashed, trie, index, bucket_start, work)
        with suppress(hashing.TableFullError):
            write_tensors(path, words.words.arrays, metadata, sizes, fill)
            return


def _fill_hashed(
    trie: BackoffTrie,
    index: HashTable | None,
    bucket_start: Counts,
    work: Work,
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Fill the arrays of `sizes_of_hashed`."""
    arrays["bucket_start"][:] = bucket_start
    arrays["prob"][:] = trie.prob[: trie.n_words]
    arrays["bow"][:] = trie.bow[1 : trie.n_words + 1]
    buckets = arrays["buckets"]
    if index is None:
        arrays["closed"][:] = hashing.fill_table(trie, buckets, bucket_start, work)
    else:
        arrays["closed"][:] = index.closed
        for part in blocks(len(buckets), work.block):
            buckets[part] = index.buckets[part]
            work.release_pages(index.buckets, buckets)
    fill_packed(trie, arrays, work)


def write_quantized(
    path: str | os.PathLike[str],
    words: StoredWords,
    trie: BackoffTrie,
    bits: int,
    work: Work,
) -> None:
    """Write a quantized file in bounded memory, with codes of `bits` bits."""
    quantizing = Quantizing(trie, bits, work)
    metadata = metadata_of(words, quantized=quantizing.header)
    sizes, fill = quantizing.sizes, quantizing.fill
    write_tensors(path, words.words.arrays, metadata, sizes, fill)


def check_bits(bits: object, order: int) -> int:
    """Return the number of bits of a code, or raise."""
    if not isinstance(bits, int | np.integer) or not MIN_BITS <= bits <= MAX_BITS:
        message = "{bits:bits} must be None or {0} to {1}, got {2!r}."
        raise parameter_error(message, MIN_BITS, MAX_BITS, bits)
    if not hashing.is_hashable(order):
        raise parameter_error(
            "{bits} quantizes orders 2 to {0}, but the model's order is {1}: leave "
            "{bits:bits} out.", hashing.MAX_HASHED_ORDER, order, bits=bits,
        )  # fmt: skip
    return int(bits)


def metadata_of(words: StoredWords, **more: object) -> dict[str, str]:
    """Return what a file says of the model in it, beside its arrays."""
    header: dict[str, Any] = {"n_words": words.n_words, "boundary": words.boundary}
    if words.tokenizer is not None and not words.tokenizer.splits_at_blanks:
        check_tokenizer(words.tokenizer)
        header["tokenizer"] = params_of(words.tokenizer)
    if words.spelling is not None:
        header["spelling"] = words.spelling.params
    return NGRAMS.metadata(model=json.dumps(header | more))


def check_tokenizer(tokenizer: Splitter) -> None:
    """Raise ValueError if a file cannot hold the tokenizer: its pattern is compiled."""
    pattern = tokenizer.pattern
    if pattern is not None and not isinstance(pattern, str):
        raise ValueError(
            f"the tokenizer has a compiled pattern, {pattern!r:.200}, but a file of "
            "n-grams holds patterns as strings: set pattern to a string, with its "
            r"flags inside, such as '(?i)\w+'."
        )
