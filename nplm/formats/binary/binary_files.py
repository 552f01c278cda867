"""Binary files of n-gram models: safetensors files that are mapped into memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from nplm.base.encoded_words import EncodedWords
from nplm.base.files.atomic_files import followed
from nplm.base.files.tensors import NotTensorsError, TensorFile
from nplm.formats._kinds import Kind, kind_of
from nplm.formats._model_files import check_writable
from nplm.formats._models import trie_of
from nplm.formats._words import StoredWords, check_words
from nplm.formats.binary.headers import (
    FORMAT,
    damaged,
    old_binary,
)
from nplm.formats.binary.reading import read_ngrams
from nplm.formats.binary.writing import check_bits, write_mapped, write_quantized
from nplm.models.ngrams.backoff_lm import BackoffLM
from nplm.models.ngrams.backoff_model import BackoffModel
from nplm.models.ngrams.quantized_lm import QuantizedLM
from nplm.models.ngrams.stages.scratch import Scratch
from nplm.models.ngrams.trie.hashing import index_of
from nplm.models.ngrams.trie.quantized_trie import QuantizedTrie
from nplm.models.ngrams.trie.work import InMemory
from nplm.models.training.parallel.threads import Threads

__all__ = ["load_binary", "read_binary", "save_binary"]

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
    if bits is not None:
        n_bits = check_bits(bits, trie.order)
        folder = followed(Path(path).absolute()).parent
        with Scratch(folder, QUANTIZING_BYTES, Threads(1)) as scratch:
            write_quantized(path, stored, trie.verified(), n_bits, scratch)
    else:
        index = index_of(trie) if model.index_ is None else model.index_
        write_mapped(path, stored, trie, InMemory(), index=index)


def load_binary(
    path: str | os.PathLike[str], *, verify: bool = False
) -> tuple[BackoffLM | QuantizedLM, list[str]]:
    """Load a model that `save_binary` wrote.

    Only the header and the words are read. The other arrays are mapped into memory and
    read when they are used, once for all processes. A mapped file has the hash table,
    so the first look-up is as fast as later ones. (`nplm.load` maps the words too.)

    Parameters
    ----------
    path : path-like
        The file; it must stay as it is while the model is in use.
    verify : bool, default=False
        Whether to read all of the file, compare its checksums, check that all numbers
        are in range, and that the hash table is that of the n-grams: for a file that
        may be damaged, or that comes from someone you do not trust. By default only the
        header and the sizes are checked. A damaged array may then give wrong words or
        probabilities, but look-ups read and write nothing outside of the arrays, and
        pruning or writing the n-grams checks their numbers first.

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
    size, inode, times and checksum. It is no error if no note can be written.
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

    - `file`: a file whose format is `FORMAT`
    - `verify`: whether to check all of it
    - `mmap`: whether arrays stay in the file

    Returns `words`, the word of each id. Raises ValueError if the file has another
    version, or is damaged.
    """
    trie, table, boundary, words = read_ngrams(file, verify=verify, mmap=mmap)
    if isinstance(trie, QuantizedTrie):
        return QuantizedLM.from_trie(trie, boundary=boundary), words
    return BackoffLM.from_trie(trie, table, boundary=boundary), words


def _is_no_binary(path: Path) -> str:
    """Return the message for a file that `save_binary` did not write."""
    kind = kind_of(path)
    if kind is Kind.OLD_BINARY:
        return old_binary(path)
    hint = "it does not begin as one"
    if kind is Kind.TENSORS:
        hint = "nplm.load reads files of nplm.save"
    elif kind is Kind.TEXT:
        hint += " (read_arpa reads ARPA files)"
    return f"{path} is not a file of save_binary: {hint}."
