"""FittedText: a fitted model of windows, and documents as its texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from nplm.base.array_types import Floats
from nplm.base.atomic import read_at_once
from nplm.base.estimators.scored_texts import reads_texts
from nplm.text.codecs import Ids, Words, codec_of
from nplm.text.documents import Documents
from nplm.text.lm.drawing import most_probable
from nplm.text.lm.scorer import Scorer
from nplm.text.lm.text_scores import ScoredTokens
from nplm.text.lm.window_scorer import WindowWordScorer, columns_of
from nplm.text.vocabulary import Vocabulary


class TextAttributes:
    """The parameters of a `TextLM`, and its attributes, which `fitted_text` reads."""

    estimator: Any
    n_context: int | str
    tokenizer: Any
    vocabulary: Vocabulary | str | None
    boundary: int | str
    predict_boundary: bool
    handle_unknown: str

    estimator_: Any
    tokenizer_: object
    vocabulary_: Vocabulary | None
    n_words_: int
    n_context_: int
    boundary_: int

    def _window_scorer(self) -> type[WindowWordScorer]:
        """Return the scorer of single words of a model without n-grams."""
        return WindowWordScorer


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


@read_at_once
def fitted_text(lm: TextAttributes) -> FittedText:
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
        lm._window_scorer(),
    )


def no_token(n_documents: int, name: str = "X") -> ValueError:
    """Return the error of documents without a token."""
    return ValueError(
        f"{name} has {n_documents} document{'s' * (n_documents != 1)} and no token: "
        "pass at least one document that is not empty."
    )
