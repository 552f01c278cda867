"""Text FSTs: n-gram models as the grammars of Kaldi, k2 and OpenFst."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nplm.base.array_types import Floats
from nplm.base.exceptions import parameter_error
from nplm.base.files.atomic_files import check_writable
from nplm.base.files.compressed import reading
from nplm.base.files.lines import read_lines
from nplm.formats._model_files import trie_of, writing
from nplm.formats._words import NOT_IN_WORDS, check_marks, check_words
from nplm.formats.arpa.arpa_lines import unpredicted_in
from nplm.models.ngrams.stages.tables import NgramTable, NgramTables
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.context_trie import blocks_of_contexts
from nplm.models.ngrams.trie.work import Work
from nplm.text.words.splitting import BEGIN, BLANKS, END

if TYPE_CHECKING:
    from nplm.models.ngrams.backoff_model import BackoffModel

EPSILON = "<eps>"
BACKOFF = "#0"
# No id: it pads contexts that are shorter than others.
NO_WORD = -1
ARC, FINAL = "%d\t%d\t%s\t%.7g\n", "%d\t%.7g\n"


def write_fst(
    model: BackoffModel,
    path: str | os.PathLike[str],
    words: Sequence[str],
    *,
    symbols: str | os.PathLike[str] | None = None,
    backoff: str = BACKOFF,
) -> None:
    r"""Write an n-gram model as an FST in text form, for OpenFst, Kaldi and k2.

    An existing file is replaced once the new one is complete.

    Parameters
    ----------
    model : BackoffLM or KneserNeyLM
        A fitted model.
    path : path-like
        The file to write; compressed if its name ends in ``.gz`` or ``.xz``.
    words : sequence of str, shape (n_words_,)
        The word of each id, as in ``corpus.words``.
    symbols : path-like, optional
        A table of symbols, such as Kaldi's ``words.txt``. If the file exists, it must
        have all words; otherwise it is written. The labels of the arcs are then its
        numbers. By default they are the words.
    backoff : str, default="#0"
        The input label of back-off arcs. ``"<eps>"`` makes them epsilon arcs.

    Raises
    ------
    TypeError
        If the model is not a back-off n-gram model.
    NotFittedError
        If it is not fitted.
    ValueError
        If the words are not one per id, distinct, and without blanks, if one of them
        is ``<eps>`` or `backoff`, or if the table of symbols lacks some, or gives two
        the same number.
    OSError
        If a file cannot be read or written.

    Notes
    -----
    A state is a context, and the first line leaves the start state, of ``<s>``. The
    cost of an arc is -ln of a probability or a back-off weight; words of probability 0
    have none. ``</s>`` is the cost of a final state. Without a boundary, a text may
    begin anywhere, and all states are final. A back-off arc has the output label
    ``<eps>``. Paths with more back-off arcs than are needed are kept: with ``<eps>``,
    the best path may cost less than the text does by the model.

    Examples
    --------
    >>> from pathlib import Path
    >>> from nplm import KneserNeyLM, windows
    >>> from nplm.formats import write_fst
    >>> ids = [0, 1, 2, 0, 2, 1, 2, 2] * 5
    >>> model = KneserNeyLM(discount_fallback=(0.5, 1, 1.5)).fit(*windows(ids, 1))
    >>> write_fst(model, "G.txt", ["a", "b", "c"])
    >>> lines = Path("G.txt").read_text().splitlines()
    >>> lines[0].split("\t")[:4]
    ['0', '1', 'a', 'a']
    """
    check_writable(path)
    trie = trie_of(model)
    words = check_words(words, trie.n_words)
    write_fst_of(trie, path, words, model.boundary, Work(), symbols, backoff)


def write_fst_of(
    trie: BackoffTrie,
    path: str | os.PathLike[str],
    words: Sequence[str],
    boundary: int | None,
    work: Work,
    symbols: str | os.PathLike[str] | None = None,
    backoff: str = BACKOFF,
) -> None:
    """Write the FST of a trie block by block; see `write_fst`."""
    check_marks(words, boundary)
    if not backoff or NOT_IN_WORDS.intersection(backoff):
        message = "{backoff}: a label must not be empty, nor contain a blank."
        raise parameter_error(message, backoff=backoff)
    if symbols is not None and os.path.realpath(symbols) == os.path.realpath(path):
        message = "{symbols} is the file of the FST, too: name another."
        raise parameter_error(message, symbols=os.fspath(symbols))
    words = list(words)
    marks = [EPSILON] if backoff == EPSILON else [EPSILON, backoff]
    for mark in set(marks).intersection(words):
        raise ValueError(
            f"words has {mark!r}, which is the label of arcs without a word; rename it."
        )
    names = [*marks[:1], *(w for i, w in enumerate(words) if i != boundary), *marks[1:]]
    label = {name: name for name in names}
    if symbols is not None:
        label = _numbers(symbols, names, [] if boundary is None else [BEGIN, END])
    labels = [label.get(word, "") for word in words]  # the boundary needs none
    trie = _whole(trie, work)
    if boundary is not None and trie.prob[boundary] == 0:
        boundary = None  # a text may end anywhere
    arcs = _Arcs(trie, boundary, labels, f"{label[backoff]}\t{label[EPSILON]}")
    work.stage("writing", int(trie.n_ngrams.sum()))
    with writing(path) as file:
        for level, first, last in arcs.blocks(work):
            file.write("".join(arcs.lines(level, first, last)).encode())
            work.release_pages(*trie.every_array)
            work.advance(int(trie.start[last] - trie.start[first]))


def _numbers(
    path: str | os.PathLike[str], names: list[str], marks: list[str]
) -> dict[str, str]:
    """Return the number of each symbol in a table, which is made if there is none.

    `names` are the labels of arcs, ``<eps>`` first; a new table has `marks` too.
    """
    if not os.path.exists(path):
        table = {name: str(i) for i, name in enumerate(names + marks)}
        with writing(path) as file:
            file.write("".join(f"{n} {i}\n" for n, i in table.items()).encode())
        return table
    name, table, numbers = os.fspath(path), dict[str, str](), set[str]()
    with reading(path) as file:
        for where, line in read_lines(file, name, "replace"):
            text = line.strip(BLANKS)
            symbol, *number = re.split(f"[{BLANKS}]+", text)
            if len(number) != 1 or not re.fullmatch("[0-9]+", number[0]):
                raise ValueError(
                    f"{where}: expected a symbol and its number, got {text!r:.80}."
                )
            if symbol in table or number[0] in numbers:
                raise ValueError(
                    f"{where}: {text!r:.80} has a symbol or a number of a line before: "
                    "labels would be confused."
                )
            table[symbol] = number[0]
            numbers.add(number[0])
    if table.get(EPSILON) != "0":
        raise ValueError(f"{name} does not give {EPSILON} the number 0, as FSTs do.")
    lacking = [name for name in names if name not in table]
    if lacking:
        raise ValueError(
            f"{name} lacks {len(lacking):,} symbols, such as {lacking[0]!r}: add them, "
            "name a new file, or limit the model to the words of the table."
        )
    return table


def _whole(trie: BackoffTrie, work: Work) -> BackoffTrie:
    """Return the same model with all contexts as n-grams, to which arcs can lead."""
    while any(map(len, missing := unpredicted_in(trie, trie.contexts_made(), work))):
        tables = NgramTables(work, trie.n_words)
        for level in range(1, trie.order):
            ngrams = np.concatenate([trie.ngrams(level), missing[level]])
            prob = trie.next_word_prob(ngrams[:, :-1], ngrams[:, -1])
            bow = None
            if level + 1 < trie.order:
                bow = np.ones(len(ngrams))
                context = trie.context(ngrams)
                bow[context >= 0] = trie.bow[context[context >= 0]]
            tables.add(NgramTable(ngrams, prob, bow))
        every = np.arange(trie.n_words, dtype=np.int32)[:, np.newaxis]
        numbers = trie.prob[: trie.n_words], trie.bow[1 : 1 + trie.n_words]
        unigrams = [values.astype(np.float64) for values in numbers]
        trie = tables.trie(trie.order, NgramTable(every, *unigrams))
    return trie


class _Arcs:
    """The lines of the arcs and final states of a trie."""

    def __init__(
        self, trie: BackoffTrie, boundary: int | None, labels: list[str], backoff: str
    ) -> None:
        self._trie, self._boundary, self._parents = trie, boundary, trie.parents()
        self._labels = np.array([f"{label}\t{label}" for label in labels], dtype=object)
        self._backoff = backoff
        # The start state is number 0.
        self._start = 0 if boundary is None or trie.order == 1 else 1 + boundary
        self._state = np.arange(len(trie.context_word))
        self._state[[0, self._start]] = self._start, 0

    def blocks(self, work: Work) -> Iterator[tuple[int, int, int]]:
        """Yield the level and the range of contexts, the start state first."""
        trie, start = self._trie, self._start
        yield int(start > 0), start, start + 1
        for level, ends in enumerate(pairwise(trie.level_start.tolist())):
            for first, last in blocks_of_contexts(trie.start, *ends, work.block):
                if first <= start < last:
                    yield level, first, start
                    first = start + 1
                yield level, first, last

    def lines(self, level: int, first: int, last: int) -> Iterator[str]:
        """Yield the lines of some contexts of `level` words."""
        trie = self._trie
        contexts = np.arange(first, last, dtype=np.int32)
        states = self._state[contexts]
        row = np.repeat(np.arange(len(contexts)), np.diff(trie.start[first : last + 1]))
        ngrams = slice(int(trie.start[first]), int(trie.start[last]))
        words, cost = trie.words[ngrams], _cost(trie.prob[ngrams])
        history = np.full((len(words), trie.order), NO_WORD, dtype=np.int32)
        history[:, -1] = words
        history[:, -1 - level : -1] = trie.context_words(contexts, level)[row]
        target = self._state[trie.longest_contexts(history[:, 1:])]
        ends = words == self._boundary
        kept = np.isfinite(cost) & ~ends
        columns = states[row], target, self._labels[words], cost
        yield from map(ARC.__mod__, zip(*(column[kept].tolist() for column in columns)))
        if first > 0:
            cost_of_backoff = _cost(trie.bow[contexts])
            kept = np.isfinite(cost_of_backoff)
            shorter = self._state[self._parents[contexts]]
            backoff = states, shorter, cost_of_backoff
            for source, to, cost_of in zip(*(c[kept].tolist() for c in backoff)):
                yield ARC % (source, to, self._backoff, cost_of)
        final = states[row[ends]], cost[ends]
        if self._boundary is None:
            final = states, np.zeros(len(states))
        yield from map(FINAL.__mod__, zip(*(column.tolist() for column in final)))


def _cost(prob: NDArray[np.float32]) -> Floats:
    """Return -ln of probabilities or weights."""
    with np.errstate(divide="ignore"):
        return 0.0 - np.log(prob.astype(np.float64))
