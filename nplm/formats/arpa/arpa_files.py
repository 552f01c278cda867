"""ARPA files: n-gram models of SRILM, KenLM and others, as text."""

from __future__ import annotations

import os
from collections.abc import Sequence

from nplm.base.files.atomic_files import check_writable
from nplm.formats._model_files import trie_of
from nplm.formats._words import check_words
from nplm.formats.arpa.arpa_lines import write_ngrams
from nplm.formats.arpa.arpa_reading import read_ngrams
from nplm.models.ngrams.backoff_model import BackoffLM, BackoffModel
from nplm.models.ngrams.trie.hashing import index_of
from nplm.models.ngrams.trie.work import Work


def write_arpa(
    model: BackoffModel, path: str | os.PathLike[str], words: Sequence[str]
) -> None:
    """Write an n-gram model as an ARPA file, for SRILM, KenLM and others.

    An existing file is replaced once the new one is complete.

    Parameters
    ----------
    model : BackoffLM or KneserNeyLM
        A fitted model.
    path : path-like
        The file to write; compressed if its name ends in ``.gz`` or ``.xz``.
    words : sequence of str, shape (n_words_,)
        The word of each id, as in ``corpus.words``.

    Raises
    ------
    TypeError
        If the model is not a back-off n-gram model.
    NotFittedError
        If it is not fitted.
    ValueError
        If the words are not one per id, distinct, and without blanks.
    OSError
        If `path` cannot be written, before any work is done.

    Notes
    -----
    A ``boundary`` is written as ``</s>`` as a predicted word and as ``<s>`` as a
    context, whatever its name. Without a boundary a text is one stream; the file then
    has ``<s>`` and ``</s>`` of probability 0, because KenLM requires them: score with
    ``bos=False, eos=False``. The log10 of probabilities has seven decimals.

    Examples
    --------
    >>> import numpy as np
    >>> from nplm import KneserNeyLM, windows
    >>> from nplm.formats import read_arpa, write_arpa
    >>> ids = [0, 1, 2, 0, 2, 1, 2, 2] * 5
    >>> model = KneserNeyLM(discount_fallback=(0.5, 1, 1.5)).fit(*windows(ids, 2))
    >>> write_arpa(model, "model.arpa", ["a", "b", "c"])
    >>> again, words = read_arpa("model.arpa")
    >>> words
    ['a', 'b', 'c']
    >>> bool(np.allclose(again.predict_proba([[0, 1]]), model.predict_proba([[0, 1]])))
    True
    """
    check_writable(path)
    trie, boundary = trie_of(model), model.boundary
    words = check_words(words, trie.n_words)
    write_ngrams(path, trie, words, boundary, Work())


def read_arpa(
    path: str | os.PathLike[str], *, add_unknown: bool = False, index: bool = True
) -> tuple[BackoffLM, list[str]]:
    """Read an n-gram model from an ARPA file.

    Parameters
    ----------
    path : path-like
        The file, plain, gzip, bzip2, xz or zstd.
    add_unknown : bool, default=False
        Whether to add a last word ``<unk>`` of probability 0 to a file with neither
        ``<unk>`` nor ``<UNK>``, such as SRILM writes without ``-unk``.
        ``TextLM.from_model`` then maps unknown words to it, instead of refusing them.
    index : bool, default=True
        Whether to build the hash table for look-ups. False saves its time and
        memory, about 16 bytes per n-gram, if the model is only pruned or written;
        ``model.build_index()`` builds it later.

    Returns
    -------
    model : BackoffLM
        The model, which scores as the toolkit that wrote the file does.
    words : list of str
        The word of each id: the unigrams in the order of the file.

    Raises
    ------
    ValueError
        If the file is not an ARPA file or is truncated, its header has the wrong
        numbers of n-grams, a word is not a unigram, a number is invalid, not finite
        or out of range, n-grams have more than 255 words, or the text is not UTF-8.
        The error names the line.
    OSError
        If the file cannot be read.

    Notes
    -----
    ``<s>``, the context that begins a sentence, and ``</s>``, which is predicted
    at its end, become one id, the model's ``boundary``; its word is ``</s>``. If
    they have no probability and no n-grams, as in a model of a stream, both are
    left out. In a file of unigrams, ``</s>`` ends sentences if the file has ``<s>`` too
    and ``</s>`` has a probability.

    Some toolkits also write n-grams that no sentence reaches: with ``<s>`` after
    another word, or with ``</s>`` before one. They are left out. But if no n-gram
    begins with ``<s>``, which has no weight either, n-grams with ``</s>`` before
    another word make it a word of a stream, and there is no boundary. If there is no
    ``</s>``, ``<s>`` stays a word of its own that is never predicted.
    """
    ngrams = read_ngrams(path, Work(), add_unknown=add_unknown)
    table = index_of(ngrams.trie) if index else None
    model = BackoffLM.from_trie(ngrams.trie, table, boundary=ngrams.boundary)
    return model, list(ngrams.words)
