"""Scoring: log-probabilities and perplexities of documents and of their tokens."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from nplm.base.array_types import Floats
from nplm.base.checks import check_weights
from nplm.base.estimators.scored_texts import perplexities, perplexity
from nplm.base.warnings import warn
from nplm.text.codecs import Text
from nplm.text.document_streams import blocks_of, readable
from nplm.text.lm.fitted_text import TextAttributes, fitted_text, no_token
from nplm.text.lm.scorer import Scorer, measured
from nplm.text.lm.text_scores import (
    NO_SPELLING,
    PerplexitySums,
    TextScores,
    TokenScores,
)


class Scoring(TextAttributes):
    """Methods of `TextLM` that score documents."""

    def score_samples(self, X: Sequence[object]) -> Floats:
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
        text = fitted_text(self)
        sentences = text.codec.sentences(X)
        if sentences is not None and text.ngram_scorer() is not None:
            return text.scorer().score_many(sentences)
        tokens = text.tokens(X)
        return tokens.sums(tokens.log_prob)

    def score(
        self, X: Sequence[object], y: object = None, sample_weight: object = None
    ) -> float:
        """Return the mean natural-log probability per token of all documents.

        Parameters
        ----------
        X : sequence of documents
            Of the kind that the model was fitted on.
        y : ignored
        sample_weight : array-like of shape (n_documents,), optional
            How often the tokens of each document count.

        Returns
        -------
        score : float
        """
        tokens = fitted_text(self).tokens(X)
        weights = None
        if sample_weight is not None:
            weights = check_weights(sample_weight, len(tokens.lengths))
            weights = np.repeat(weights, tokens.lengths)
        return float(np.average(tokens.log_prob, weights=weights))

    def token_scores(
        self, X: Sequence[object], *, bos: bool = True, eos: bool | None = None
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
            Whether the end of each document counts; ``predict_boundary`` by default.

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
        scorer = self.scorer()
        tokens = scorer.tokens(X, bos=bos, eos=eos, details=True)
        words = scorer.codec.words
        return [
            TokenScores(words(d.ids), d.log_prob, d.unknown, d.order, d.weights)
            for d in tokens.documents()
        ]

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
        return fitted_text(self).scorer()

    def perplexity(
        self, X: Sequence[object], *, skip: object = None, per_document: bool = False
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
        text = fitted_text(self)
        tokens = text.tokens(X)
        counts = np.ones(len(tokens.ids), dtype=bool)
        if skip is not None:
            [skipped] = text.codec.encode_words([skip])
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
