"""Scorers of files of n-grams, which are ready without scikit-learn."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from nplm.base.files.tensors import TensorFile
from nplm.formats._kinds import Kind, kind_of
from nplm.formats.binary import headers
from nplm.formats.binary.reading import read_ngrams
from nplm.models.ngrams.trie.hash_table import HashTable
from nplm.models.ngrams.trie.hashing import index_of
from nplm.models.ngrams.trie.quantized_trie import QuantizedTrie
from nplm.models.ngrams.trie.word_scorer import word_scorer_of
from nplm.models.ngrams.trie.work import InMemory
from nplm.text.codecs import Text
from nplm.text.lm.scorer import Scorer
from nplm.text.words.known_words import ids_and_unknown, known_words_of
from nplm.text.words.splitting import BETWEEN_BLANKS, Splitter

__all__ = ["ngram_scorer"]


def ngram_scorer(
    path: str | os.PathLike[str], *, mmap: bool = True, verify: bool = False
) -> Scorer | None:
    """Make the scorer of a file of n-grams, without the model.

    It returns the scores of ``nplm.load(path).scorer()``, but does not import
    scikit-learn, which takes longer than most texts to score.

    - `path`: any file
    - `mmap`, `verify`: as in `nplm.load`

    Returns `scorer`: None if the file has no n-grams, their order is 1 or above 16, or
    those of a binary file have no boundary. `nplm.load` loads such a file, or says what
    is wrong. Raises ValueError or OSError, as in `nplm.load`.
    """
    path = Path(path)
    kind = kind_of(path)
    if kind is Kind.TEXT:
        return _of_arpa(path)
    return _of_tensors(path, mmap, verify) if kind is Kind.TENSORS else None


def _of_arpa(path: Path) -> Scorer | None:
    # Imported here: it would slow the start with other files.
    from nplm.formats.arpa import reading

    trie, boundary, words = reading.read_ngrams(path, InMemory(), add_unknown=True)
    reading.check_boundary(boundary, words, path)
    return _scorer_of(index_of(trie), boundary, words, Splitter(BETWEEN_BLANKS))


def _of_tensors(path: Path, mmap: bool, verify: bool) -> Scorer | None:
    try:
        file = TensorFile(path)
    except (ValueError, TypeError, RecursionError):  # `nplm.load` says what is wrong
        return None
    if file.metadata.get("format") != headers.FORMAT:
        return None
    trie, table, boundary, words = read_ngrams(file, verify=verify, mmap=mmap)
    ngrams = trie if isinstance(trie, QuantizedTrie) else table
    splitter = Splitter(**headers.split_params(file))
    try:
        scorer = _scorer_of(ngrams, boundary, words, splitter)
    except ValueError as error:  # the words are not those of their hash table
        raise headers.damaged(path, error) from error
    if scorer is not None:
        known = scorer.codec.vocabulary
        known._spelling = headers.spelling_of(file, known.unknown)
    return scorer


def _scorer_of(
    ngrams: HashTable | QuantizedTrie | None,
    boundary: int | None,
    words: Sequence[str],
    splitter: Splitter,
) -> Scorer | None:
    if ngrams is None or boundary is None:
        return None
    known = known_words_of(words, boundary)
    word_scorer = word_scorer_of(ngrams, boundary, *ids_and_unknown(known))
    return Scorer(word_scorer, Text(splitter, known))
