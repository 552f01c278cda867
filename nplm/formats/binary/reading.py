"""Read binary files of n-grams: the n-grams, without a model of them."""

from __future__ import annotations

import os
from pathlib import Path

from nplm.base.encoded_words import WORD_ARRAYS, EncodedWords
from nplm.base.files.tensors import TensorFile
from nplm.base.fitted import Fitted
from nplm.formats._ngrams import Ngrams
from nplm.formats._words import check_words
from nplm.formats.binary.headers import VERSION, damaged, read_header, split_of
from nplm.formats.binary.mapped_trie import read_mapped
from nplm.formats.binary.verified import is_verified, note_verified
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.hashing import index_of
from nplm.models.ngrams.trie.quantized_checks import restored_quantized
from nplm.models.ngrams.trie.quantized_trie import QuantizedTrie

__all__ = ["read_ngrams"]


def read_ngrams(
    file: TensorFile, *, verify: bool, mmap: bool = True
) -> Ngrams[BackoffTrie | QuantizedTrie]:
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
        raise damaged(file.path, error) from error


def _read(
    file: TensorFile, *, verify: bool, mmap: bool
) -> Ngrams[BackoffTrie | QuantizedTrie]:
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
    # Imported here: few files lack a hash table. Without it, look-ups trust the trie.
    from nplm.models.ngrams.saved import restored_trie

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
