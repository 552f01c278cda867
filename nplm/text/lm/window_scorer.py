"""WindowWordScorer: score words one by one with a model of windows; cached rows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm.base.array_types import Floats, Ids, Index
from nplm.base.blocks import Texts
from nplm.base.estimators.scored_texts import (
    context_of_texts,
    reads_texts,
    texts_log_prob,
)
from nplm.text.documents import Documents
from nplm.text.lm.text_scores import sums_by_document
from nplm.text.samples import check_tokens, unknown_word

MAX_BYTES = 1 << 26

Context = tuple[Any, ...]
# The row of a context, and what the states of the words after it go on with.
Kept = tuple[NDArray[Any], Any]


class RowCache:
    """Log-probabilities of all words after the contexts that were used last.

    For a model that sums over all words to score one, such as a network with a softmax:
    hypotheses with the same context, whatever their next words, then cost one sum. At
    least one row is kept. A context of a model that reads texts ends with a state.

    The bits of a row do not depend on the other contexts of a call. Threads may share a
    cache: two of them may compute a row twice, and one that finds another thread
    keeping rows does not keep its own.
    """

    def __init__(self, model: Any, max_bytes: int = MAX_BYTES) -> None:
        self.model, self.max_bytes = model, max_bytes
        self._rows: OrderedDict[Context, Kept] = OrderedDict()
        self._keeping = Lock()
        self.capacity = max(1, max_bytes // (np.dtype(float).itemsize * model.n_words_))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.model, self.max_bytes)

    def row(self, context: Context) -> NDArray[Any]:
        """Return the log-probabilities (n_words_,) of all words after a context."""
        return self._rows_of([context])[context][0]

    def after(self, contexts: Sequence[Context]) -> list[Any]:
        """Return what the states of the words after each context go on with."""
        after: list[object] = []
        for start in range(0, len(contexts), self.capacity):
            part = contexts[start : start + self.capacity]
            rows = self._rows_of(part)
            after += [rows[context][1] for context in part]
        return after

    def log_prob(self, contexts: Sequence[Context], ids: Sequence[int]) -> Floats:
        """Return the log-probability (n,) of a word after each context."""
        out = np.empty(len(ids))
        for start in range(0, len(ids), self.capacity):
            part = slice(start, start + self.capacity)
            rows = self._rows_of(contexts[part])
            log_probs = [rows[c][0][i] for c, i in zip(contexts[part], ids[part])]
            out[part] = log_probs
        return out

    def _computed(self, contexts: list[Context]) -> Iterable[Kept]:
        if not reads_texts(self.model):
            rows = self.model.predict_log_proba(np.array(contexts, dtype=np.int32))
            return ((row, None) for row in rows)
        X = np.array([context[:-1] for context in contexts], dtype=np.int32)
        return zip(*self.model.step_states(X, [context[-1] for context in contexts]))

    def _rows_of(self, contexts: Sequence[Context]) -> dict[Context, Kept]:
        """Return the row of each distinct context; at most `capacity` of them."""
        kept = {context: self._rows.get(context) for context in contexts}
        rows = {context: row for context, row in kept.items() if row is not None}
        missing = [context for context in kept if context not in rows]
        if missing:
            for context, (row, after) in zip(missing, self._computed(missing)):
                # A view would keep the rows of all of them in memory.
                rows[context] = row.copy(), after
        # Without waiting: a fork may lack the thread that holds the lock.
        if self._keeping.acquire(blocking=False):
            try:
                self._keep(rows)
            finally:
                self._keeping.release()
        return rows

    def _keep(self, rows: dict[Context, Kept]) -> None:
        for context, row in rows.items():
            self._rows[context] = row
            self._rows.move_to_end(context)
        for _ in range(len(self._rows) - self.capacity):
            self._rows.popitem(last=False)


# Ids of the last n_context words; of models that read texts, those of the few words
# that they see at once, and the state before the last of them.
State = tuple[Any, ...]
MAX_CACHED_TOKENS = 64
UNKNOWN_REMEDY = (
    'set handle_unknown="symbol" of a TextLM whose vocabulary has a symbol for them'
)


def order_of(model: object, n_context: int) -> int:
    """Return the number of words in the windows that a model looks at."""
    return min(n_context + 1, getattr(model, "order_", n_context + 1))


def columns_of(model: object, n_context: int) -> int:
    """Return the words of context before the first token of a text to be scored."""
    return context_of_texts(model) if reads_texts(model) else n_context


class WindowWordScorer:
    """Score words with a model of windows, a sentence in one call.

    Models that read texts take one step for a word. The word scorer of backoff n-grams
    has the same methods. `ids` is None if words are ids; `unknown` of -1 refuses words
    that are not in it.
    """

    def __init__(
        self,
        model: Any,
        n_context: int,
        boundary: int,
        ids: dict[Any, int] | None,
        unknown: int,
    ) -> None:
        self.model, self.n_context, self.boundary = model, n_context, boundary
        self.ids, self.unknown = ids, unknown
        self.order = order_of(model, n_context)
        self.cache: RowCache | None = None
        self._reads = reads_texts(model)
        n_context = columns_of(model, n_context)
        if self._reads or getattr(model, "sums_over_words", False):
            self.cache = RowCache(model)
        self._start: State = (boundary,) * n_context + (None,) * self._reads
        # Positions of the windows of a short sentence.
        self._positions = np.arange(MAX_CACHED_TOKENS)[:, None] + np.arange(n_context)

    def begin(self, bos: bool = True) -> State:
        """Return the state before the first word: after a boundary."""
        self._check(bos)
        return self._start

    def step(self, state: State, word: Hashable) -> tuple[float, State]:
        """Return the log-probability of a word, and the state after it."""
        [log_prob], [after] = self.steps([state], [word])
        return float(log_prob), after

    def steps(
        self, states: Sequence[State], words: Sequence[object]
    ) -> tuple[Floats, list[State]]:
        """Return the results of `step` for pairs of a state and a word."""
        ids = self._ids_of(words)
        log_probs = self._log_probs(states, ids)
        return log_probs, self.after(states, ids)

    def end(self, state: State) -> float:
        """Return the log-probability of the boundary."""
        return float(self._log_probs([state], [self.boundary])[0])

    def full_step(self, state: State, word: Hashable) -> tuple[float, int, State]:
        """Return `step`, with the size of the window between; None is the boundary."""
        [i] = [self.boundary] if word is None else self._ids_of([word])
        log_prob = float(self._log_probs([state], [i])[0])
        return log_prob, self.order, self.after([state], [i])[0]

    def full_scores(
        self,
        words: Sequence[object],
        base: float,
        zero: float,
        bos: bool = True,
        eos: bool = True,
    ) -> list[tuple[float, int, bool]]:
        """Return the logarithm of each word, the size of its window, if it is unknown.

        The logarithm is to the base, and `zero` for probability 0.
        """
        ids = self._ids_of(words)
        lengths = np.array([len(ids)], dtype=np.intp)
        flat = np.array(ids, dtype=np.int32)
        log_prob, _ = self.tokens(flat, lengths, bos, eos)
        scaled = np.where(np.isneginf(log_prob), zero, log_prob / np.log(base))
        unknown = [i == self.unknown for i in ids] + [False] * eos
        return [
            (score, self.order, oov) for score, oov in zip(scaled.tolist(), unknown)
        ]

    def candidates(self, state: State, words: Sequence[object]) -> Floats:
        """Return the log-probabilities of words that may come next."""
        ids = self._ids_of(words)
        if self.cache is not None:
            return self.cache.log_prob([state] * len(ids), self._checked(ids))
        X, y = np.array([state], dtype=np.int32), np.array(ids, dtype=np.int32)
        if not hasattr(self.model, "candidate_log_prob"):
            return self.model.log_prob(np.repeat(X, len(y), axis=0), y)
        return self.model.candidate_log_prob(X, y)[0]

    def sentence(
        self, words: Iterable[object], bos: bool = True, eos: bool = True
    ) -> float:
        """Return the log-probability of a sentence, by default with its boundary."""
        ids = self._ids_of(words)
        n = len(ids) + eos
        if self._reads or not 0 < n <= MAX_CACHED_TOKENS or self.boundary in ids:
            return float(self.sentences([words], bos, eos)[0])
        self._check(bos)
        stream = np.array([*self._start, *ids, self.boundary], dtype=np.int32)
        X, y = stream[self._positions[:n]], stream[self.n_context :][:n]
        return float(self.model.log_prob(X, y).sum())

    def sentences(
        self, sentences: Iterable[Iterable[Hashable]], bos: bool, eos: bool
    ) -> Floats:
        """Return the log-probability of each sentence."""
        ids = [self._ids_of(words) for words in sentences]
        lengths = np.array([len(sentence) for sentence in ids], dtype=np.intp)
        flat = np.fromiter((i for sentence in ids for i in sentence), dtype=np.int32)
        log_prob, _ = self.tokens(flat, lengths, bos, eos)
        return sums_by_document(log_prob, lengths + eos)

    def tokens(
        self, ids: Ids, lengths: Index, bos: bool, eos: bool, details: bool = False
    ) -> tuple[Floats, dict[str, NDArray[Any]]]:
        """Return the log-probability (n_tokens,) of each token, and details by name.

        `ids` (n_words,) are those of the sentences, of `lengths` (n_sentences,). The
        `details` of a mixture are its ``weights``.
        """
        self._check(bos)
        texts, tokens = self._texts(ids, lengths, bool(eos))
        if len(lengths) == 0 or len(texts) == 0:
            return np.empty(0), {}
        model, by_token = self.model, dict[str, NDArray[Any]]()
        if details and hasattr(model, "member_weights"):
            by_token["weights"] = model.member_weights(texts.windows()[0][tokens])
        return texts_log_prob(model, texts)[tokens], by_token

    def _texts(self, ids: Ids, lengths: Index, eos: bool) -> tuple[Texts, Any]:
        """Return texts of sentences, and which of their rows are those of tokens."""
        n_context = len(self._start) - self._reads
        documents = Documents(ids, lengths)
        return documents.texts(n_context, self.boundary, ends=eos), slice(None)

    def after(self, states: Sequence[State], ids: Sequence[int]) -> list[State]:
        """Return the state after each state and word."""
        if not self._reads:
            return [self._after(state[1:], i) for state, i in zip(states, ids)]
        assert self.cache is not None
        ends = self.cache.after(states)
        following = zip(states, ids, ends)
        return [self._after(state[1:-1], i, end) for state, i, end in following]

    def _after(self, words: State, i: int, *end: object) -> State:
        return self._start if i == self.boundary else (*words, i, *end)

    def _log_probs(self, states: Sequence[State], ids: Sequence[int]) -> Floats:
        """Return the log-probability of a word after each state."""
        if self.cache is not None:
            return self.cache.log_prob(states, self._checked(ids))
        if len(ids) == 0:
            return np.empty(0)
        X, y = np.array(states, dtype=np.int32), np.array(ids, dtype=np.int32)
        return self.model.log_prob(X, y)

    def _checked(self, ids: Sequence[int]) -> Sequence[int]:
        """Return ids, or raise an error if one is not a word's."""
        n_words = self.model.n_words_
        for i in ids:
            if not 0 <= i < n_words:
                raise ValueError(
                    f"{i} is not a word id: ids are from 0 to {n_words - 1}."
                )
        return ids

    def _ids_of(self, words: Iterable[Any]) -> list[int]:
        if self.ids is None:
            return list(words)
        get, unknown = self.ids.get, self.unknown
        words = list(words)
        try:
            ids = [get(word, unknown) for word in words]
        except TypeError:  # a word that cannot be looked up
            check_tokens(words)
            raise
        if unknown in ids:
            words = [word for word in words if get(word) is None]
            check_tokens(words)
            if unknown < 0:
                raise unknown_word(words[0], self.model.n_words_, UNKNOWN_REMEDY)
        return ids

    def _check(self, bos: bool) -> None:
        if not bos:
            raise ValueError(
                f"bos=False: {type(self.model).__name__} needs a whole window before "
                "each word; only backoff n-grams do with less. Leave bos=True."
            )
