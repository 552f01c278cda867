"""Scorer: a text model for decoders and loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Scorer", "splitter_of"]


class Scorer:
    """Scores sentences and words, one by one, and checks nothing again.

    For decoders, n-best lists and loops: `TextLM.scorer` makes it of any fitted model.
    For n-grams that back off (`KneserNeyLM`, `BackoffLM`) it looks words up in the
    model's hash table, in compiled code: a sentence costs microseconds. Of other models
    a sentence is one call for all its windows.

    It is of the model as it is when it is made: after a further fit make another.

    Parameters
    ----------
    word_scorer : object
        What looks words up.
    split : callable or None
        What makes words of a string; None where documents are no strings.
    eos : bool
        Whether the end of a sentence counts where nothing is said.

    See Also
    --------
    TextLM.token_scores : The log-probability of each token, and where it comes from.
    nplm.NeuralLM.candidate_log_prob : Candidates after many contexts at once.

    Notes
    -----
    Words are what the tokenizer makes of a string, or elements of a list; those that
    are unknown count as ``<unk>``. A word that spells the boundary ends a sentence, and
    what comes after it sees nothing of what was before it.

    **States** are small, can be kept as long as you like, and are equal, with equal
    hashes, where what may follow has the same probabilities: paths of a lattice whose
    states are equal can be recombined.

    Examples
    --------
    >>> from nplm import InterpolatedTrigram, TextLM
    >>> lm = TextLM(InterpolatedTrigram(), n_context=2).fit(["to be or not to be"] * 9)
    >>> scorer = lm.scorer()
    >>> bool(scorer.score("to be or not") > scorer.score("be to not or"))
    True

    Word by word, as a decoder goes:

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
        self, word_scorer: Any, split: Callable[[str], list[str]] | None, *, eos: bool
    ) -> None:
        self._word_scorer, self._split, self._eos = word_scorer, split, eos

    def begin(self, *, bos: bool = True) -> Any:
        """Return the state before the first word.

        Parameters
        ----------
        bos : bool, default=True
            Whether a sentence begins here. False is a context of no words, which
            n-grams that back off know.

        Returns
        -------
        state : hashable
        """
        return self._word_scorer.begin(bos)

    def step(self, state: Any, word: Any) -> tuple[float, Any]:
        """Give the log-probability of a word, and the state after it.

        Parameters
        ----------
        state : state
            Of `begin`, or of an earlier step.
        word : str, or whatever documents are made of
            One word; it is not split.

        Returns
        -------
        log_prob : float
            Natural logarithm.
        state : hashable
        """
        return self._word_scorer.step(state, word)

    def end(self, state: Any) -> float:
        """Log-probability that the sentence ends here.

        Parameters
        ----------
        state : state
            After its last word.

        Returns
        -------
        log_prob : float
        """
        return self._word_scorer.end(state)

    def candidates(self, state: Any, words: Sequence[Any]) -> NDArray[np.float64]:
        """Log-probabilities of words that may come next.

        Parameters
        ----------
        state : state
            After the words before them.
        words : sequence of words, shape (n,)
            The candidates.

        Returns
        -------
        log_prob : ndarray of float64, shape (n,)
        """
        return self._word_scorer.candidates(state, words)

    def score(
        self, sentence: Any, *, bos: bool = True, eos: bool | None = None
    ) -> float:
        """Log-probability of a sentence.

        Parameters
        ----------
        sentence : str or sequence of words
            A string, or its words.
        bos : bool, default=True
            Whether it begins as sentences do.
        eos : bool, optional
            Whether its end counts; by default as in the fit (``predict_boundary``).

        Returns
        -------
        log_prob : float
            Natural logarithm.
        """
        if self._split is not None and isinstance(sentence, str):
            sentence = self._split(sentence)
        return self._word_scorer.sentence(
            sentence, bos, self._eos if eos is None else eos
        )

    def score_many(
        self, sentences: Iterable[Any], *, bos: bool = True, eos: bool | None = None
    ) -> NDArray[np.float64]:
        """Log-probability of each sentence.

        Parameters
        ----------
        sentences : iterable of str or of sequence of words
            A generator will do.
        bos, eos : bool
            As of `score`.

        Returns
        -------
        log_prob : ndarray of float64, shape (n_sentences,)
        """
        if self._split is not None:
            split = self._split
            sentences = (split(s) if isinstance(s, str) else s for s in sentences)
        eos = self._eos if eos is None else eos
        return self._word_scorer.sentences(sentences, bos, eos)


def splitter_of(tokenizer: Any) -> Callable[[str], list[str]] | None:
    """Return what makes the tokens of one string, as fast as a tokenizer can."""
    if tokenizer is None:
        return None
    make = getattr(tokenizer, "_splitter", None)
    return (lambda text: tokenizer.transform([text])[0]) if make is None else make()
