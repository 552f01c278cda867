"""ARPA files: the n-gram models of SRILM, KenLM and others, as text."""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nplm.base.files.compressed import reading
from nplm.formats._lines import Lines, shown
from nplm.formats._model_files import check_writable
from nplm.formats._models import trie_of
from nplm.formats._words import BEGIN, END, WordText, check_marks, check_words
from nplm.formats.arpa.arpa_lines import NgramLines, write_lines
from nplm.models.ngrams.backoff_lm import BackoffLM
from nplm.models.ngrams.backoff_model import BackoffModel
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie, DuplicateNgramError
from nplm.models.ngrams.trie.checks import multiplies
from nplm.models.ngrams.trie.context_trie import MAX_NGRAMS
from nplm.models.ngrams.trie.hash_table import index_of
from nplm.text.vocabulary import UNKNOWN

__all__ = ["read_arpa", "write_arpa"]

# log10 of a probability that a file rounded may come out above 0 by this much.
ROUNDING = 1e-4
# Below it SRILM and KenLM mean zero (they write -99 or -100).
LOG_ZERO = -98.0
# log10 of a back-off weight; float32 ends soon above.
HEAVIEST = 38.0
# Lines above the header, which are comments: toolkits write a few.
MAX_COMMENTS = 10_000
# As the other orders are read; float() takes more, 1_0 for one.
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.A)
# Far above what any model is made with; a trie takes time with its square.
MAX_ORDER = 255


def write_arpa(
    model: BackoffModel, path: str | os.PathLike[str], words: Sequence[str]
) -> None:
    """Write an n-gram model as an ARPA file, for SRILM, KenLM and others.

    The file takes its place when all is written, so an error leaves no half file.

    Parameters
    ----------
    model : BackoffLM or KneserNeyLM
        A fitted model.
    path : path-like
        The file to write; packed if its name ends in ``.gz`` or ``.xz``.
    words : sequence of str, shape (n_words_,)
        The word of each id, as in ``corpus.words``.

    Raises
    ------
    TypeError
        If the model is none of n-grams that back off.
    NotFittedError
        If it is not fitted.
    ValueError
        If the words are not one an id, distinct, and without blanks.
    OSError
        If `path` cannot be written, before any work is done.

    Notes
    -----
    A model with a ``boundary`` has it written as ``</s>`` where it is predicted and
    as ``<s>`` where it is a context, whatever its name. Without a boundary a text
    is one stream, and ``<s>`` and ``</s>`` are there with no probability, because
    KenLM reads no file that lacks them: score with ``bos=False, eos=False``.
    Probabilities have seven decimals of log10.

    Examples
    --------
    >>> from nplm import KneserNeyLM, windows
    >>> from nplm.formats import read_arpa, write_arpa
    >>> import tempfile
    >>> ids = [0, 1, 2, 0, 2, 1, 2, 2] * 5
    >>> model = KneserNeyLM(discount_fallback=(0.5, 1, 1.5)).fit(*windows(ids, 2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_arpa(model, f"{folder}/model.arpa", ["a", "b", "c"])
    ...     again, words = read_arpa(f"{folder}/model.arpa")
    >>> words
    ['a', 'b', 'c']
    >>> bool(np.allclose(again.predict_proba([[0, 1]]), model.predict_proba([[0, 1]])))
    True
    """
    check_writable(path)
    trie, boundary = trie_of(model), model.boundary
    words = check_words(words, trie.n_words)
    check_marks(words, boundary)
    if boundary is not None:
        words[boundary] = END
    write_lines(path, NgramLines(trie, words, boundary))


def read_arpa(
    path: str | os.PathLike[str], *, add_unknown: bool = False, index: bool = True
) -> tuple[BackoffLM, list[str]]:
    """Read an n-gram model from an ARPA file.

    Parameters
    ----------
    path : path-like
        The file, plain, or packed by gzip or xz.
    add_unknown : bool, default=False
        Whether a file with neither ``<unk>`` nor ``<UNK>``, as SRILM writes unless told
        ``-unk``, gets a last word ``<unk>`` of probability 0. ``TextLM.from_model``
        takes words that the model lacks for it, instead of refusing them.
    index : bool, default=True
        Whether to make the hash table that look-ups use. False saves its time and
        memory, about 24 bytes an n-gram, where a model is only pruned or written;
        ``model.build_index()`` makes it later.

    Returns
    -------
    model : BackoffLM
        Scores as the toolkit that wrote the file does.
    words : list of str
        The word of each id: the unigrams in the order of the file.

    Raises
    ------
    ValueError
        If the file is no ARPA file, is cut short, holds other numbers of n-grams
        than it says, a word that is no unigram, a number that is none, not finite
        or out of range, n-grams of more than 255 words, or text that is not UTF-8.
        The error names the line.
    OSError
        If the file cannot be read.

    Notes
    -----
    ``<s>``, the context that begins a sentence, and ``</s>``, which is predicted
    at its end, become one id, the model's ``boundary``; its word is ``</s>``. If
    they have no probability and no n-grams, as in a model of a stream, both are
    left out. A lone ``<s>``, or ``<s>`` beside a ``</s>`` that is a context as
    well, stays a word of its own that is never predicted.
    """
    with reading(path) as file:
        lines = Lines(file, path)
        counts = _read_header(lines)
        words, prob, bow = _read_unigrams(lines, counts[0])
        text = WordText(words)
        ids = np.arange(len(words), dtype=np.int32)[:, np.newaxis]
        tables, probs, bows = [ids], [prob], [bow]
        first_line = {1: 0}
        for k, count in enumerate(counts[1:], 2):
            _expect(lines, f"\\{k}-grams:")
            first_line[k] = lines.n_read + 1
            ngrams, log_prob, log_bow = lines.ngrams(
                k,
                text,
                count,
                weights=k < len(counts),
                highest=ROUNDING,
                heaviest=HEAVIEST,
            )
            tables.append(ngrams)
            probs.append(_power(log_prob))
            bows.append(_power(log_bow))
        _expect(lines, "\\end\\")
    words, boundary = _settle_marks(words, tables, probs, bows)
    if not words:
        raise ValueError(f"{os.fspath(path)} has no word beside <s> and </s>.")
    if add_unknown and not any(mark in words for mark in UNKNOWN):
        tables[0] = np.append(tables[0], [[len(words)]], axis=0).astype(np.int32)
        probs[0], bows[0] = np.append(probs[0], 0.0), np.append(bows[0], 1.0)
        words = [*words, UNKNOWN[0]]
    try:
        trie = BackoffTrie.from_tables(tables, probs, bows[:-1], n_words=len(words))
    except DuplicateNgramError as error:
        gram = " ".join(words[w] for w in tables[error.order - 1][error.row])
        line = first_line[error.order] + error.row
        raise ValueError(
            f"{os.fspath(path)}, line {line} (not counting blank lines among the "
            f"{error.order}-grams): {shown(gram)} occurs twice."
        ) from error
    except ValueError as error:  # more contexts than have numbers
        raise ValueError(f"{os.fspath(path)} has {error}") from error
    if not multiplies(trie):
        raise ValueError(
            f"{os.fspath(path)} has back-off weights whose product overflows: no model "
            "has such; estimate it again."
        )
    table = index_of(trie) if index else None
    return BackoffLM.from_trie(trie, table, boundary=boundary), words


def _expect(lines: Lines, wanted: str) -> None:
    line = lines.next()
    if line is None:
        raise lines.error(
            f"the file ends before {wanted!r}: it is cut short", ended=True
        )
    if line != wanted:
        raise lines.error(f"{shown(line)} where {wanted!r} should be")


def _read_header(lines: Lines) -> list[int]:
    """Return the number of n-grams of each order."""
    line = lines.next()
    # SRILM allows comments above.
    n_comments = 0
    while line is not None and line != "\\data\\":
        n_comments += 1
        if n_comments > MAX_COMMENTS:
            raise lines.error(
                f"no line '\\data\\' within {MAX_COMMENTS} lines: this is no ARPA file"
            )
        line = lines.next()
    if line is None:
        raise lines.error("no line '\\data\\': this is no ARPA file", ended=True)
    counts: list[int] = []
    while True:
        line = lines.next()
        if line is None:
            raise lines.error(
                "the file ends in its header: it is cut short", ended=True
            )
        if line == "\\1-grams:" and counts:
            return counts
        # No number of more digits than those of any file.
        found = re.fullmatch(r"ngram\s+0*(\d{1,18})\s*=\s*0*(\d{1,18})", line, re.A)
        if not found or int(found[1]) != len(counts) + 1:
            raise lines.error(
                f"{shown(line)} where 'ngram {len(counts) + 1}=' and a number should be"
            )
        counts.append(int(found[2]))
        if len(counts) > MAX_ORDER:
            raise lines.error(f"n-grams of more than {MAX_ORDER} words are not read")
        if sum(counts) > MAX_NGRAMS:
            raise lines.error(
                f"{sum(counts)} n-grams so far; more than {MAX_NGRAMS} are not read"
            )


def _read_unigrams(
    lines: Lines, n: int
) -> tuple[list[str], NDArray[np.float64], NDArray[np.float64]]:
    words: list[str] = []
    seen: set[str] = set()
    # Not as long as the header says: it may say anything.
    prob, bow = array("d"), array("d")
    for row in range(n):
        line = lines.next()
        if line is None or line.startswith("\\"):
            raise lines.error(
                f"{n} 1-grams in the header, but there are {row}", ended=line is None
            )
        tokens = re.split("[ \t\r\v\f]+", line)
        numbers = tokens[0::2]
        sound = 2 <= len(tokens) <= 3 and all(map(NUMBER.fullmatch, numbers))
        log10 = [float(number) for number in numbers] if sound else []
        if not sound or not np.isfinite(log10).all():
            raise lines.error(
                f"{shown(line)} is not a number, a word and a number (a 1-gram), or "
                "not finite"
            )
        if log10[0] > ROUNDING:
            raise lines.error(
                f"{log10[0]} in {shown(line)} is no log10 of a probability: it is "
                "above 0"
            )
        if log10[-1] > HEAVIEST:
            raise lines.error(
                f"{log10[-1]} in {shown(line)} is no log10 of a back-off weight: 10 to "
                "that power overflows"
            )
        if tokens[1] in seen:
            raise lines.error(f"the 1-gram {shown(tokens[1])} occurs twice")
        seen.add(tokens[1])
        words.append(tokens[1])
        prob.append(log10[0])
        bow.append(log10[1] if len(log10) == 2 else np.nan)
    return words, _power(np.array(prob)), _power(np.array(bow))


def _power(log10: NDArray[np.float64]) -> NDArray[np.float64]:
    """10 to the given power; no number is the logarithm of 1, -99 that of 0."""
    return np.where(log10 < LOG_ZERO, 0.0, 10.0 ** np.nan_to_num(log10))


def _settle_marks(
    words: list[str],
    tables: list[NDArray[np.int32]],
    probs: list[NDArray[np.float64]],
    bows: list[NDArray[np.float64]],
) -> tuple[list[str], int | None]:
    """Make <s> and </s> one id, or leave both out; in place.

    Returns the words that stay, and the id of the boundary.
    """
    if BEGIN not in words:
        return words, None
    begin = words.index(BEGIN)
    # KenLM writes a probability of 1: whatever it is, <s> is never predicted.
    probs[0][begin] = 0
    if END not in words:
        return words, None
    end = words.index(END)
    leads_on = any((table[:, :-1] == begin).any() for table in tables)
    is_used = leads_on or bows[0][begin] != 1
    is_context = any((table[:, :-1] == end).any() for table in tables)
    if is_used and is_context:
        return words, None
    end_is_used = is_context or any((table[:, -1] == end).any() for table in tables[1:])
    dropped = [begin]
    if not is_used and not end_is_used and probs[0][end] == 0:
        dropped.append(end)
    stays = np.ones(len(words), dtype=bool)
    stays[dropped] = False
    new_id = np.cumsum(stays, dtype=np.int32) - np.int32(1)
    new_id[begin] = new_id[end]
    if not is_context:
        # Nothing follows </s>: its weights, which a file may have, are not those of
        # the boundary as a context.
        for table, bow in zip(tables, bows):
            bow[table[:, -1] == end] = 1
        bows[0][end] = bows[0][begin]
    for table in tables[1:]:
        table[:] = new_id[table]
    tables[0] = tables[0][: stays.sum()]
    probs[0], bows[0] = probs[0][stays], bows[0][stays]
    # Pruning may leave no n-gram that begins with <s>, and yet sentences end.
    ends = stays[end] and not is_context and len(tables) > 1
    boundary = int(new_id[end]) if is_used or ends else None
    return [word for word, stay in zip(words, stays) if stay], boundary
