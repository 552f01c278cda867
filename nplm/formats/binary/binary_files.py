"""Binary files of n-gram models: safetensors files that are mapped into memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from nplm.base.files.atomic_files import followed
from nplm.formats._model_files import check_writable
from nplm.formats._models import trie_of
from nplm.formats._words import StoredWords, check_words
from nplm.formats.binary.writing import check_bits, write_mapped, write_quantized
from nplm.models.ngrams.backoff_model import BackoffModel
from nplm.models.ngrams.stages.scratch import Scratch
from nplm.models.ngrams.trie.hashing import index_of
from nplm.models.ngrams.trie.work import InMemory
from nplm.models.training.parallel.threads import Threads

__all__ = ["save_binary"]

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
