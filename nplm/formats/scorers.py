"""Scorers of files of n-grams, which are ready without scikit-learn."""

from __future__ import annotations

import os
from pathlib import Path

from nplm.base.files.tensors import TensorFile
from nplm.formats._kinds import Kind, kind_of
from nplm.formats.binary import headers
from nplm.formats.binary.reading import read_ngrams
from nplm.models.ngrams.trie.hash_table import HashTable
from nplm.models.ngrams.trie.quantized_trie import QuantizedTrie
from nplm.models.ngrams.trie.word_scorer import word_scorer_of
from nplm.text.codecs import Text
from nplm.text.lm.scorer import Scorer
from nplm.text.words.known_words import KnownWords
from nplm.text.words.splitting import BETWEEN_BLANKS, Splitter

__all__ = ["ngram_scorer"]


def ngram_scorer(
    path: str | os.PathLike[str], *, mmap: bool = True, verify: bool = False
) -> Scorer | None:
    """Make the scorer of a file of n-grams, without the model.

    It is that of ``nplm.load(path).scorer()``. scikit-learn, which takes longer to
    import than a sentence to score, is not imported.

    Parameters
    ----------
    path : path-like
        Any file.
    mmap, verify : bool
        As in `nplm.load`.

    Returns
    -------
    scorer : Scorer or None
        None of another file than one of n-grams of 2 to 16 words that has a boundary:
        `nplm.load` loads it, or says what is wrong.

    Raises
    ------
    ValueError, OSError
        As in `nplm.load`.
    """
    path = Path(path)
    kind = kind_of(path)
    if kind is Kind.TEXT:
        # Imported here: it would slow the start with other files.
        from nplm.formats.arpa.reading import read_ngrams as read_arpa

        _, table, boundary, spelled = read_arpa(path, add_unknown=True)
        if table is None or boundary is None:
            return None
        words = KnownWords.of(spelled, boundary)
        return _scorer_of(table, words, boundary, Splitter(BETWEEN_BLANKS))
    if kind is not Kind.TENSORS:
        return None
    try:
        file = TensorFile(path)
    except (ValueError, TypeError, RecursionError):
        return None
    if file.metadata.get("format") != headers.FORMAT:
        return None
    trie, table, boundary, encoded = read_ngrams(file, verify=verify, mmap=mmap)
    ngrams = trie if isinstance(trie, QuantizedTrie) else table
    if ngrams is None or boundary is None:
        return None
    splitter = headers.splitter_of(file)
    try:
        words = KnownWords.of(encoded, boundary)
    except ValueError as error:  # the words are not those of their hash table
        raise headers.damaged(path, error) from error
    return _scorer_of(ngrams, words, boundary, splitter)


def _scorer_of(
    ngrams: HashTable | QuantizedTrie,
    words: KnownWords,
    boundary: int,
    splitter: Splitter,
) -> Scorer:
    unknown = -1 if words.unknown_id_ is None else words.unknown_id_
    word_scorer = word_scorer_of(ngrams, boundary, words._lookup, unknown)
    return Scorer(word_scorer, Text(splitter, words))
