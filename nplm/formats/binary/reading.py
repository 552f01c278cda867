"""Read binary files of n-grams: the n-grams, without a model of them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from nplm.base.checks import MAX_N_WORDS
from nplm.base.encoded_words import WORD_ARRAYS, EncodedWords
from nplm.base.exceptions import damaged_file
from nplm.base.files.tensors import TensorFile
from nplm.base.fitted import Fitted
from nplm.formats._ngrams import AT_BLANKS, Ngrams
from nplm.formats._words import check_words
from nplm.formats.binary.hashed_arrays import read_mapped
from nplm.formats.binary.verified import is_verified, note_verified
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.checks import restored_trie
from nplm.models.ngrams.trie.hashing import index_of
from nplm.models.ngrams.trie.packed_trie import MappedTrie
from nplm.models.ngrams.trie.quantized_trie import QuantizedTrie, restored_quantized
from nplm.text.words.splitting import Splitter, finder_of, params_of

__all__ = ["FORMAT", "VERSION", "read_ngrams"]

FORMAT = "nplm n-grams"
# Files before version 4 were no safetensors files.
# Files of version 4 had the arrays of the trie beside its hash table.
# Files of version 5 had no hash table of words.
# A bucket of version 6 had one bit of the n-grams beyond it.
VERSION = "7"


def read_ngrams(
    file: TensorFile, *, verify: bool, mmap: bool = True
) -> Ngrams[BackoffTrie | MappedTrie | QuantizedTrie]:
    """Read the n-grams of an open file, as `load_binary` does.

    - `file`: a file whose format is `FORMAT`
    - `verify`: whether to check all of it
    - `mmap`: whether arrays stay in the file

    Raises ValueError if the file has another version, or is damaged.
    """
    version = file.metadata.get("version")
    if version != VERSION:
        raise ValueError(
            f"{file.path} has format version {version!r:.80}, but this nplm reads "
            f"version {VERSION!r}; save the model again with this nplm, or update it."
        )
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
) -> Ngrams[BackoffTrie | MappedTrie | QuantizedTrie]:
    header = read_header(file)
    n_words, boundary = header["n_words"], header["boundary"]
    split, spelling = split_of(header), header.get("spelling")
    check = verify and not is_verified(file)
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
        return Ngrams(quantized, None, boundary, words, split, spelling)
    if "buckets" in arrays:
        mapped, table = read_mapped(fitted, n_words, file.path, check=check)
        if check:
            note_verified(file)
        return Ngrams(mapped, table, boundary, words, split, spelling)
    # Few files lack a hash table. Without it, look-ups trust the trie.
    trie = restored_trie(fitted)
    fitted.done()
    if trie.n_words != n_words:
        raise ValueError(f"it has {trie.n_words} words, not {n_words}")
    return Ngrams(trie, index_of(trie), boundary, words, split, spelling)


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


def split_of(header: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a `Splitter`, or a `Tokenizer`, of a model's text.

    A file without them has words between blanks.

    Raises ValueError if the file is damaged.
    """
    split = header.get("tokenizer", AT_BLANKS)
    if split is not AT_BLANKS:
        if not _is_splitter(split):
            raise ValueError(f"its header has tokenizer={split!r:.80}")
        finder_of(Splitter(**split))  # compiles its pattern
    return split


def _is_splitter(params: object) -> bool:
    """Return whether these are parameters of a `Splitter`."""
    return (
        isinstance(params, dict)
        # Files from before `identifier` have none.
        and params.keys() | {"identifier"} == params_of(Splitter()).keys()
        and isinstance(params["lowercase"], bool)
        and all(
            value is None or isinstance(value, str)
            for name, value in params.items()
            if name != "lowercase"
        )
    )


def read_header(file: TensorFile) -> dict[str, Any]:
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
    if not isinstance(header.get("quantized", {}), dict):
        raise ValueError(f"its header has quantized={header['quantized']!r:.80}")
    known = {"n_words", "boundary", "quantized", "tokenizer", "spelling"}
    if header.keys() - known:
        raise ValueError(f"its header has {sorted(header)!r:.80}")
    return header


def _is_id(value: object, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most
