"""FittedText: a fitted model of windows, and documents as its texts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from nplm.base.array_types import Floats
from nplm.base.atomic import read_at_once
from nplm.base.blocks import blocks_of_rows
from nplm.base.estimators.scored_texts import perplexities, perplexity, reads_texts
from nplm.base.warnings import warn
from nplm.text.codecs import Ids, Text, Words, codec_of
from nplm.text.document_streams import blocks_of, readable
from nplm.text.documents import Documents
from nplm.text.lm.drawing import drawn, most_probable, sharpened, without
from nplm.text.lm.scorer import Scorer, measured
from nplm.text.lm.text_scores import (
    NO_SPELLING,
    PerplexitySums,
    ScoredTokens,
    TextScores,
)
from nplm.text.lm.window_scorer import WindowWordScorer, columns_of


@dataclass(frozen=True, eq=False)
class FittedText:
    """A fitted model of windows, and what makes texts of documents."""

    model: Any
    codec: Ids | Words
    n_context: int
    boundary: int
    ends: bool
    scores_windows: type[WindowWordScorer] = WindowWordScorer

    @property
    def continues(self) -> bool:
        """Whether a state of the model goes on within a text."""
        return reads_texts(self.model)

    @property
    def n_columns(self) -> int:
        """Words of context before the first token of a text that is scored."""
        return columns_of(self.model, self.n_context)

    # -- scores -----------------------------------------------------------------

    def ngram_scorer(self) -> Any:
        """Return the scorer of the model's n-grams; None if it has none."""
        make = getattr(self.model, "word_scorer", None)
        if make is None:
            return None
        ids, unknown = self.codec.lookup
        # A table of words by their bytes, if there is one, takes fewer lines of the
        # cache than a dictionary.
        return make(self.boundary, self.codec.word_ids or ids, unknown)

    def scorer(self) -> Scorer:
        """Return a scorer of sentences and words."""
        scorer = self.ngram_scorer()
        if scorer is None:
            scorer = self.scores_windows(
                self.model, self.n_context, self.boundary, *self.codec.lookup
            )
        return Scorer(scorer, self.codec, eos=self.ends)

    def tokens(self, X: Sequence[object]) -> ScoredTokens:
        """Return the log-probability of each token of documents that have a token."""
        tokens = self.scorer().tokens(X)
        if len(tokens.ids) == 0:
            raise no_token(len(tokens.lengths))
        return tokens

    def score_samples(self, X: Sequence[object]) -> Floats:
        """Return `TextLM.score_samples`."""
        sentences = self.codec.sentences(X)
        if sentences is not None and self.ngram_scorer() is not None:
            return self.scorer().score_many(sentences)
        tokens = self.tokens(X)
        return tokens.sums(tokens.log_prob)

    def perplexity(self, X: Sequence[object], skip: object, per_document: bool) -> Any:
        """Return `TextLM.perplexity`."""
        tokens = self.tokens(X)
        counts = np.ones(len(tokens.ids), dtype=bool)
        if skip is not None:
            [skipped] = self.codec.encode_words([skip])
            counts = tokens.ids != skipped
            if not counts.any():
                raise ValueError(
                    f"every token of X is skip={skip!r}: none is left to count."
                )
        if not per_document:
            log_prob = tokens.log_prob[counts]
            return perplexity(log_prob.sum(), len(log_prob))
        total = tokens.sums(np.where(counts, tokens.log_prob, 0))
        return perplexities(total, tokens.sums(counts))

    def text_scores(self, X: Iterable[str]) -> TextScores:
        """Return `TextLM.text_scores`."""
        scorer = self.scorer()
        if not isinstance(scorer.codec, Text):
            raise TypeError(
                "this model was fitted on lists of tokens or on ids, which have no "
                "characters: fit a TextLM to strings."
            )
        sums = PerplexitySums(ends=scorer.eos)
        for start, block in blocks_of(readable(X, "a string")):
            tokens = scorer.tokens(block, start=start)
            sums.add(tokens, *measured(scorer, block, tokens))
        if sums.n_tokens == 0:
            raise no_token(sums.n_documents)
        if math.isnan(sums.spelling):
            warn(
                f"X has {sums.n_unknown} unknown tokens, so its bits per character and "
                f"per byte and its word_perplexity are NaN: {NO_SPELLING}.",
                UserWarning,
            )
        return sums.text_scores

    # -- next words -------------------------------------------------------------

    def state_after(self, document: Documents) -> tuple[NDArray[np.int32], Any]:
        """Return a document's last words, and the state before the last of them."""
        n_columns = self.n_columns
        # The context of the boundary is that of any word that follows.
        texts = document.texts(n_columns, self.boundary, ends=True)
        ids = texts.ids[texts.first[-1] : -1]
        state = self.model.state_of_text(ids) if self.continues else None
        return ids[len(ids) - n_columns :], state

    def next_proba(
        self, last: NDArray[np.int32], states: list[Any]
    ) -> tuple[Floats, Any]:
        """Return the probability of every word after contexts, and the states there."""
        if not self.continues:
            proba = self.model.predict_proba(last)
            return proba.astype(np.float64, copy=False), states
        log_proba, after = self.model.step_states(last, states)
        return np.exp(log_proba, dtype=np.float64), after

    def excluded(self, exclude: Iterable[object], unknown: bool) -> NDArray[np.int32]:
        """Return the ids of excluded words, each once; ``<unk>``, unless `unknown`."""
        ids = self.codec.encode_words(exclude)
        if not unknown and self.codec.unknown_id >= 0:
            ids = np.append(ids, np.int32(self.codec.unknown_id))
        return np.unique(ids)

    def words_after(
        self, document: Documents, k: int, excluded: NDArray[np.int32]
    ) -> tuple[object, Floats]:
        """Return the `k` most probable words after one document, and probabilities."""
        last, state = self.state_after(document)
        next_proba, _ = self.next_proba(last[np.newaxis], [state])
        ids, proba = most_probable(next_proba, k, excluded)
        return self.codec.words(ids), proba

    def generated(
        self,
        context: Any,
        n: int,
        min_words: int,
        max_words: int,
        excluded: NDArray[np.int32],
        random: np.random.RandomState,
        *,
        with_context: bool,
        **shape: Any,
    ) -> list[Any]:
        """Return `n` texts of `TextLM.generate`; `shape`: parameters of `sharpened`."""
        codec, boundary = self.codec, self.boundary
        start, state = self.state_after(codec.encode_one(context, "context"))
        not_ended = np.union1d(excluded, np.array([boundary], np.int32))
        last, states = np.tile(start, (n, 1)), [state] * n
        words = np.full((n, max_words), boundary, dtype=np.int32)
        # Texts whose boundary has not been drawn.
        live = np.arange(n)
        for step in range(max_words):
            left_out = not_ended if step < min_words else excluded
            for rows in blocks_of_rows(len(live), self.model.n_words_):
                some = live[rows].tolist()
                proba, after = self.next_proba(last[some], [states[i] for i in some])
                proba = without(proba, left_out)
                words[some, step] = drawn(sharpened(proba, **shape), random)
                for i, state in zip(some, after):
                    states[i] = state
            live = live[words[live, step] != boundary]
            if len(live) == 0:
                break
            last[live] = np.column_stack([last[live, 1:], words[live, step]])
        ends = np.column_stack([words == boundary, np.ones(n, bool)])
        drawn_ids = [row[:i] for row, i in zip(words, ends.argmax(axis=1))]
        if with_context:
            return [codec.continued(context, ids) for ids in drawn_ids]
        return [codec.decode(ids) for ids in drawn_ids]


@read_at_once
def fitted_text(lm: Any) -> FittedText:
    """Return the fitted text of a text model, or raise NotFittedError."""
    if not hasattr(lm, "predict_boundary"):
        raise TypeError(
            f"lm must be a TextLM, got {type(lm).__name__}: make one of a fitted model "
            "of windows and its vocabulary by TextLM.from_model."
        )
    check_is_fitted(lm)
    n_words = lm.estimator_.n_words_
    codec = codec_of(
        lm.tokenizer_,
        lm.vocabulary_,
        refuse=lm.handle_unknown == "error",
        n_words=n_words,
        n_known=n_words,
        refuse_zero=isinstance(lm.boundary, str),
    )
    return FittedText(
        lm.estimator_,
        codec,
        lm.n_context_,
        lm.boundary_,
        bool(lm.predict_boundary),
        lm.window_scorer,
    )


def no_token(n_documents: int, name: str = "X") -> ValueError:
    """Return the error of documents without a token."""
    return ValueError(
        f"{name} has {n_documents} document{'s' * (n_documents != 1)} and no token: "
        "pass at least one document that is not empty."
    )
