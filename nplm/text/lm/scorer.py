"""Scorer: fast scoring of sentences and words, for decoders and loops."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from nplm.base.array_types import Floats
from nplm.text.codecs import Ids, Text, Words
from nplm.text.lm.text_scores import ScoredTokens, TextSize

# Sentences that are read at once, to score their words together.
N_TOGETHER = 1 << 6


class Scorer:
    """Score sentences and words one by one, without repeated validation.

    For decoders, n-best lists and loops. `TextLM.scorer` makes one from any fitted
    model. For backoff n-grams (`KneserNeyLM`, `BackoffLM`) it looks words up in the
    model's hash table, in compiled code: a sentence costs microseconds. Other models
    score all windows of a sentence in one call.

    A scorer uses the model as it was when the scorer was made: after a further fit,
    make another.

    Parameters
    ----------
    word_scorer : object
        Scores the words.
    codec : Codec
        Splits strings into words, and has the vocabulary.
    eos : bool
        Whether the end of a sentence counts by default.

    Attributes
    ----------
    word_scorer, codec, eos
        As given; not to be changed.

    See Also
    --------
    TextLM.token_scores : The log-probability and the n-gram order of each token.
    nplm.NeuralLM.candidate_log_prob : Candidates after several contexts at once.

    Notes
    -----
    Words are the tokens of a string, or the elements of a list; unknown words count as
    ``<unk>``. A word that spells the boundary ends a sentence: words after it do not
    depend on words before it.

    **States** are small and stay valid. Two states are equal, with equal hashes, if
    they give the same probabilities to all continuations: lattice paths with equal
    states can be recombined. That of a network with LSTM cells is the state of the
    cells, so that a step takes as long after any number of words.

    Scorers and states pickle, for processes. The pickle of a scorer has a copy of the
    model, also of n-grams that are mapped from a file: to share these, send a
    `nplm.ModelFile`, and make the scorer in each process.

    Examples
    --------
    >>> from nplm import InterpolatedTrigram, TextLM
    >>> lm = TextLM(InterpolatedTrigram(), n_context=2).fit(["to be or not to be"] * 9)
    >>> scorer = lm.scorer()
    >>> bool(scorer.score("to be or not") > scorer.score("be to not or"))
    True

    Word by word, as in a decoder:

    >>> state, total = scorer.begin(), 0.0
    >>> for word in ["to", "be", "or"]:
    ...     log_prob, state = scorer.step(state, word)
    ...     total += log_prob
    >>> abs(total + scorer.end(state) - scorer.score("to be or")) < 1e-9
    True
    >>> int(scorer.candidates(state, ["to", "not"]).argmax())
    1
    """

    def __init__(
        self, word_scorer: Any, codec: Ids | Words, *, eos: bool = True
    ) -> None:
        self.word_scorer, self.codec, self.eos = word_scorer, codec, eos
        # Of a vocabulary whose words are between blanks; the kernel then splits text.
        self._words = codec.word_ids if hasattr(word_scorer, "text") else None
        self._split = None if codec.tokenizer is None else splitter_of(codec.tokenizer)
        # Without a call in between, which is a tenth of the time of a step.
        self.step = word_scorer.step  # type: ignore[method-assign]

    def __reduce__(self) -> tuple[object, ...]:
        return partial(type(self), eos=self.eos), (self.word_scorer, self.codec)

    def begin(self, *, bos: bool = True) -> Hashable:
        """Return the state before the first word.

        Parameters
        ----------
        bos : bool, default=True
            Whether a sentence begins here. False is an empty context, which only
            backoff n-grams support.

        Returns
        -------
        state : hashable
        """
        return self.word_scorer.begin(bos)

    def begin_text(self) -> None:
        """Begin another text, of a model whose documents follow each other in one.

        For `nplm.AutoLM` with ``running_text``, of which `tokens` goes on with the text
        of the call before.
        """
        getattr(self.word_scorer, "restart", lambda: None)()

    def step(self, state: Hashable, word: Hashable) -> tuple[float, Hashable]:
        """Return the log-probability of a word, and the state after it.

        Parameters
        ----------
        state : state
            From `begin` or an earlier step.
        word : str, or another token of the documents
            One word; it is not split.

        Returns
        -------
        log_prob : float
            Natural logarithm.
        state : hashable
        """
        return self.word_scorer.step(state, word)

    def steps(
        self, states: Sequence[Hashable], words: Sequence[Hashable]
    ) -> tuple[Floats, list[Hashable]]:
        """Return the log-probabilities of words after many states, and the new states.

        The results are those of `step`, with the same bits. A network computes all
        contexts in one call, and each of them once: hypotheses that have recombined
        share it. It keeps the distributions of the contexts that were used last, in at
        most 64 MiB, for `step`, `candidates` and `end` too.

        Parameters
        ----------
        states : sequence of states, shape (n,)
            From `begin` or earlier steps.
        words : sequence of words, shape (n,)
            The next word after each state; a word is not split.

        Returns
        -------
        log_prob : ndarray of float64, shape (n,)
            Natural logarithms.
        states : list of states

        Raises
        ------
        ValueError
            If there is not one word for each state.

        Examples
        --------
        >>> from nplm import InterpolatedTrigram, TextLM
        >>> lm = TextLM(InterpolatedTrigram(), 2).fit(["to be or not to be"] * 9)
        >>> scorer = lm.scorer()
        >>> states = [scorer.begin(), scorer.begin()]
        >>> log_prob, states = scorer.steps(states, ["to", "not"])
        >>> bool(log_prob[0] > log_prob[1])
        True
        """
        if len(states) != len(words):
            raise ValueError(
                f"steps got {len(states)} states and {len(words)} words: pass one word "
                "for each state."
            )
        return self.word_scorer.steps(states, words)

    def end(self, state: Hashable) -> float:
        """Return the log-probability that the sentence ends here.

        Parameters
        ----------
        state : state
            The state after its last word.

        Returns
        -------
        log_prob : float
        """
        return self.word_scorer.end(state)

    def candidates(self, state: Hashable, words: Sequence[Hashable]) -> Floats:
        """Return the log-probabilities of words that may come next.

        Parameters
        ----------
        state : state
            The state before the candidates.
        words : sequence of words, shape (n,)
            The candidates.

        Returns
        -------
        log_prob : ndarray of float64, shape (n,)
        """
        self._check(words, "words")
        return self.word_scorer.candidates(state, words)

    def score(
        self, sentence: object, *, bos: bool = True, eos: bool | None = None
    ) -> float:
        """Return the log-probability of a sentence.

        Parameters
        ----------
        sentence : str or sequence of words
            A string, or its words.
        bos : bool, default=True
            Whether the text begins a sentence.
        eos : bool, optional
            Whether its end counts; ``predict_boundary`` of the model by default.

        Returns
        -------
        log_prob : float
            Natural logarithm.
        """
        eos = bool(self.eos if eos is None else eos)
        if self._words is not None and isinstance(sentence, str):
            return self.word_scorer.text(self._words, sentence, bos, eos)
        return self.word_scorer.sentence(self._split_one(sentence), bos, eos)

    def score_many(
        self, sentences: Iterable[object], *, bos: bool = True, eos: bool | None = None
    ) -> Floats:
        """Return the log-probability of each sentence.

        Parameters
        ----------
        sentences : iterable of str or of sequence of words
            The sentences; may be a generator.
        bos, eos : bool
            As in `score`.

        Returns
        -------
        log_prob : ndarray of float64, shape (n_sentences,)
        """
        eos = bool(self.eos if eos is None else eos)
        if self._words is None:
            return self.word_scorer.sentences(map(self._split_one, sentences), bos, eos)
        words, word_scorer = self._words, self.word_scorer
        log_prob, rest = [np.empty(0)], iter(sentences)
        while block := list(islice(rest, N_TOGETHER)):
            if all(isinstance(sentence, str) for sentence in block):
                log_prob.append(word_scorer.texts(words, block, bos, eos))
            else:
                of_each = (self.score(sentence, bos=bos, eos=eos) for sentence in block)
                log_prob.append(np.fromiter(of_each, np.float64))
        return np.concatenate(log_prob)

    def tokens(
        self,
        documents: Sequence[object],
        *,
        bos: bool = True,
        eos: bool | None = None,
        details: bool = False,
        words: bool = False,
        start: int = 0,
    ) -> ScoredTokens:
        """Return the log-probability of each token of documents.

        Parameters
        ----------
        documents : sequence of documents
            Of the kind that the model was fitted on. They are checked.
        bos, eos : bool
            As in `score`.
        details : bool, default=False
            Whether to return the ``weights`` of a mixture, too.
        words : bool, default=False
            Whether to return the tokens as the tokenizer splits them, too.
        start : int, default=0
            Index of the first document, for errors.

        Returns
        -------
        tokens : ScoredTokens
        """
        eos = bool(self.eos if eos is None else eos)
        split: list[Any] | None = None
        if words:
            split, (ids, lengths) = self.codec.encode_split(documents)
        else:
            ids, lengths = self.codec.encode(documents, start=start)
        word_scorer = self.word_scorer
        log_prob, by_token = word_scorer.tokens(ids, lengths, bool(bos), eos, details)
        if eos:
            ids = np.insert(ids, np.cumsum(lengths), word_scorer.boundary)
        unknown = ids == self.codec.unknown_id
        lengths = lengths + eos
        return ScoredTokens(ids, log_prob, unknown, lengths, words=split, **by_token)

    def _split_one(self, sentence: object) -> Any:
        """Return the words of one sentence."""
        if self._split is not None and isinstance(sentence, str):
            return self._split(sentence)
        self._check(sentence, "the sentence")
        return sentence

    def _check(self, words: object, name: str) -> None:
        """Raise an error if a single word stands in place of a list."""
        if self.codec.vocabulary is not None:
            self.codec.vocabulary.known.check_one_document(words, name)


def measured(
    scorer: Scorer, texts: Sequence[str], tokens: ScoredTokens
) -> tuple[TextSize, float]:
    """Return the size of texts, and the log-probability of unknown words' spelling."""
    assert isinstance(scorer.codec, Text)  # others have no texts
    unknown = np.flatnonzero(tokens.unknown)
    document = tokens.document[unknown]
    position = unknown - (np.cumsum(tokens.lengths) - tokens.lengths)[document]
    spelling = scorer.codec.spelling_log_prob(texts, document, position, tokens.words)
    return TextSize.of(texts, ends=scorer.eos), spelling


def splitter_of(tokenizer: Any) -> Callable[[str], list[str]]:
    """Return a function that splits one string, without validation where possible."""
    make = getattr(tokenizer, "split_function", None)
    return (lambda text: tokenizer.transform([text])[0]) if make is None else make()
