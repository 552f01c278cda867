"""Scoring: log-probabilities and perplexities of documents and of their tokens."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from nplm.base.atomic import read_at_once
from nplm.base.warnings import warn
from nplm.text.codecs import Text
from nplm.text.documents import Tokens
from nplm.text.lm.fitted_text import FittedText
from nplm.text.lm.scorer import Scorer
from nplm.text.lm.text_scores import NO_SPELLING, TextScores, TextSize
from nplm.text.lm.token_scores import TokenScores
from nplm.text.lm.window_scorer import WindowWordScorer
from nplm.text.reading import blocks_of, readable
from nplm.text.samples import texts_of

__all__ = ["Scoring"]


class Scoring(FittedText):
    """Methods of `TextLM` that score documents."""

    @read_at_once
    def score_samples(self, X: Sequence[Any]) -> NDArray[np.float64]:
        """Return the log-probability of each document.

        Parameters
        ----------
        X : sequence of documents
            Of the kind that the model was fitted on.

        Returns
        -------
        log_prob : ndarray of float64, shape (n_documents,)
            Natural logarithm, summed over the tokens of the document; 0 for an
            empty document whose boundary is not predicted.
        """
        codec, ends = self._codec, bool(self.predict_boundary)
        sentences = codec.sentences(X)
        word_scorer = None if sentences is None else self._own_word_scorer()
        if word_scorer is not None:
            if codec.word_ids is not None:
                return word_scorer.texts(codec.word_ids, texts_of(X), True, ends)
            return word_scorer.sentences(sentences, True, ends)
        log_prob, tokens = self._log_prob(X)
        return np.bincount(tokens.document, weights=log_prob, minlength=len(X)).astype(
            np.float64, copy=False
        )

    @read_at_once
    def score(self, X: Sequence[Any], y: Any = None) -> float:
        """Return the mean natural-log probability per token of all documents.

        Parameters
        ----------
        X : sequence of documents
            Of the kind that the model was fitted on.
        y : ignored

        Returns
        -------
        score : float
        """
        return float(np.mean(self._log_prob(X)[0]))

    @read_at_once
    def token_scores(
        self, X: Sequence[Any], *, bos: bool = True, eos: bool | None = None
    ) -> list[TokenScores]:
        """Return the log-probability of each token, and how it was obtained.

        Parameters
        ----------
        X : sequence of documents
            Of the kind that the model was fitted on.
        bos : bool, default=True
            Whether each document begins a sentence. If False, the context of its first
            word is empty, as in KenLM; only backoff n-grams (`KneserNeyLM`,
            `BackoffLM`) support this.
        eos : bool, optional
            Whether the end of each document counts; `predict_boundary` by default.

        Returns
        -------
        scores : list of TokenScores
            One per document: ``words``, ``log_prob``, ``unknown``, and the ``order`` of
            the longest n-gram found or the ``weights`` of members.

        Raises
        ------
        ValueError
            If `bos` is False and the model needs whole windows.

        Examples
        --------
        >>> from nplm import InterpolatedTrigram, TextLM
        >>> lm = TextLM(InterpolatedTrigram()).fit(["to be or not to be"] * 9)
        >>> [scores] = lm.token_scores(["to see"])
        >>> scores.words, scores.unknown.tolist()
        (['to', '<unk>', '</s>'], [False, True, False])
        >>> scores.weights.shape  # of p_0 to p_3
        (3, 4)
        """
        codec = self._codec
        eos = bool(self.predict_boundary if eos is None else eos)
        documents = codec.encode(X, "X", self.n_words_)
        self._check_zeros(documents, lambda i: f"X[{i}]", self.n_words_)
        log_prob, details = self._word_scorer().tokens(*documents, bool(bos), eos)
        last = np.cumsum(documents.lengths + eos)
        ids = np.full(len(log_prob), self.boundary_, dtype=np.int32)
        inside = np.ones(len(ids), dtype=bool)
        if eos:
            inside[last - 1] = False
        ids[inside] = documents.ids
        unknown = np.zeros(len(ids), dtype=bool)
        if self.vocabulary_ is not None:
            unknown = ids == self.vocabulary_.unknown_id_
        return [
            TokenScores(
                codec.words(ids[i:j]), log_prob[i:j], unknown[i:j],
                **{name: values[i:j] for name, values in details.items()},
            )
            for i, j in zip([0, *last.tolist()], last.tolist())
        ]  # fmt: skip

    @read_at_once
    def scorer(self) -> Scorer:
        """Make a `Scorer`, which is fast in loops because it skips validation.

        Returns
        -------
        scorer : Scorer
            Uses the model as it is now.

        Examples
        --------
        >>> from nplm import InterpolatedTrigram, TextLM
        >>> lm = TextLM(InterpolatedTrigram()).fit(["to be or not to be"] * 9)
        >>> scorer = lm.scorer()
        >>> log_prob, state = scorer.step(scorer.begin(), "to")
        >>> abs(scorer.score("to be") - lm.score_samples(["to be"])[0]) < 1e-9
        np.True_
        """
        eos = bool(self.predict_boundary)
        return Scorer(self._word_scorer(), self._codec, eos=eos)

    @read_at_once
    def perplexity(
        self, X: Sequence[Any], *, skip: Any = None, per_document: bool = False
    ) -> Any:
        """Return ``exp(-score)`` of all documents together, or of each.

        Parameters
        ----------
        X : sequence of documents
            Of the kind that the model was fitted on.
        skip : word or int, optional
            A word that is not counted as next word, such as ``"<unk>"`` (its id where
            documents are ids): the toolkits' perplexity "excluding OOVs". It stays in
            the contexts.
        per_document : bool, default=False
            Whether to return the perplexity of each document instead.

        Returns
        -------
        perplexity : float, or ndarray of float64, shape (n_documents,)
            NaN for a document without tokens that count.

        Raises
        ------
        ValueError
            If no token is left to count, or `skip` is not in the vocabulary.
        """
        log_prob, tokens = self._log_prob(X)
        document = tokens.document
        if skip is not None:
            [skipped] = self._codec.encode_words([skip], self.n_words_)
            counts = tokens.targets != skipped
            log_prob, document = log_prob[counts], document[counts]
            if len(log_prob) == 0:
                raise ValueError(
                    f"every token of X is skip={skip!r}: none is left to count."
                )
        with np.errstate(over="ignore", invalid="ignore"):
            if not per_document:
                return float(np.exp(-np.mean(log_prob)))
            total = np.bincount(document, weights=log_prob, minlength=len(X))
            return np.exp(-total / np.bincount(document, minlength=len(X)))

    @read_at_once
    def text_scores(self, X: Iterable[str]) -> TextScores:
        """Return scores that compare between models with different tokens.

        Parameters
        ----------
        X : iterable of str
            Documents, as in `fit`; they may be a stream. They are scored in blocks.

        Returns
        -------
        scores : TextScores
            Bits per character and per byte, perplexities of words and of tokens, and
            the counts behind them, of all documents together. Bits include how unknown
            words are spelled.

        Raises
        ------
        TypeError
            If the model was not fitted on strings.
        ValueError
            If there is no token.

        Warns
        -----
        UserWarning
            If there are unknown words and the model cannot spell them: bits per
            character are then NaN.

        Examples
        --------
        >>> from nplm import KneserNeyLM, Subwords, TextLM
        >>> texts = ["to be or not to be", "not to be or to be"] * 9
        >>> ngrams = KneserNeyLM(discount_fallback=(0.5, 1, 1.5))  # the text is small
        >>> words = TextLM(ngrams).fit(texts)
        >>> characters = TextLM(ngrams, tokenizer=Subwords("characters")).fit(texts)
        >>> scores = words.text_scores(["to be"])
        >>> scores.n_tokens, scores.n_words, scores.n_characters
        (3, 3, 6)
        >>> other = characters.text_scores(["to be"])
        >>> other.n_tokens, other.n_words, other.n_characters
        (6, 3, 6)
        >>> scores.perplexity == scores.word_perplexity
        True
        """
        codec = self._codec
        if not isinstance(codec, Text):
            raise TypeError(
                "this model was fitted on lists of tokens or on ids, which have no "
                "characters: fit a TextLM to strings."
            )
        ends = bool(self.predict_boundary)
        unknown = self.vocabulary_.unknown_id_ if self.vocabulary_ else None
        n_documents = n_tokens = n_unknown = 0
        sizes, total, spelling = TextSize(0, 0, 0), 0.0, 0.0
        for start, block in blocks_of(readable(X, "a string")):
            documents = codec.encode(block, "X", self.n_words_, start)
            size = TextSize.of(block, ends=ends)
            sizes = TextSize(*(a + b for a, b in zip(sizes, size)))
            n_documents += len(block)
            spelling += codec.spelling_log_prob(block, documents)
            if unknown is not None:
                n_unknown += int(np.count_nonzero(documents.ids == unknown))
            if len(documents.ids) + ends:
                contexts, targets = self._windows(documents, "X")
                n_tokens += len(targets)
                total += float(self.estimator_.log_prob(contexts, targets).sum())
        if n_tokens == 0:
            raise ValueError(
                f"X has {n_documents} documents and no token: pass at least one "
                "document that is not empty."
            )
        if math.isnan(spelling):
            warn(
                f"X has {n_unknown} unknown tokens, so its bits per character and per "
                f"byte and its word_perplexity are NaN: {NO_SPELLING}.",
                UserWarning,
            )
            spelling = math.nan  # equal to that of another call
        return TextScores(n_documents, n_tokens, n_unknown, *sizes, total, spelling)

    # -- two ways to score: all windows at once, or word by word ----------------------

    def _log_prob(self, X: Sequence[Any]) -> tuple[NDArray[np.float64], Tokens]:
        """Return the log-probability of each token, and the tokens."""
        documents = self._codec.encode(X, "X", self.n_words_)
        tokens = self._tokens(documents, "X", n_known=self.n_words_)
        return self.estimator_.log_prob(tokens.contexts, tokens.targets), tokens

    def _word_scorer(self) -> Any:
        """Return a scorer of single words: the model's own, else one of windows."""
        word_scorer = self._own_word_scorer()
        if word_scorer is not None:
            return word_scorer
        ids, unknown = self._ids_and_unknown()
        n_context = self.n_context_
        return WindowWordScorer(
            self.estimator_, n_context, self.boundary_, ids, unknown
        )

    def _own_word_scorer(self) -> Any:
        """Return the model's own scorer of single words; None if it has none."""
        check_is_fitted(self)
        make = getattr(self.estimator_, "_word_scorer", None)
        return None if make is None else make(self.boundary_, *self._ids_and_unknown())
