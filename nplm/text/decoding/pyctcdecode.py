"""pyctcdecode_lm: a language model for pyctcdecode."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Hashable
from dataclasses import dataclass
from typing import Any

from nplm.text.decoding.word_steps import LN10, WordSteps
from nplm.text.lm.text_lm import TextLM
from nplm.text.lm.window_scorer import order_of

PARAMS = ("alpha", "beta", "unk_score_offset", "score_boundary")
# pyctcdecode's: longer pieces that begin no word are penalised by their length.
PIECE_CHARS = 6


@dataclass(frozen=True)
class State:
    """State of a decoder: that of a word scorer, with the method of its interface."""

    state: Hashable

    def get_mp_safe_state(self) -> State:
        """Return a state that can be sent to another process: this one."""
        return self


def pyctcdecode_lm(
    lm: TextLM,
    unigrams: Collection[str] | None = None,
    *,
    alpha: float = 0.5,
    beta: float = 1.5,
    unk_score_offset: float = -10.0,
    score_boundary: bool = True,
) -> Any:
    """Make a language model for the decoders of pyctcdecode.

    Parameters
    ----------
    lm : TextLM
        A fitted text model of words: of n-grams, a network, classes, or a mixture.
    unigrams : collection of str, optional
        The words that the decoder should prefer; those of the vocabulary by default.
        Words that are not in the vocabulary are left out. If none remains, the decoder
        prefers those of the vocabulary, but no beginning of a word.
    alpha : float, default=0.5
        Weight of the language model.
    beta : float, default=1.5
        Added for each word, because a sum of log-probabilities favours few words.
    unk_score_offset : float, default=-10.0
        Added to log10 of the probability of other words, among them all that the
        vocabulary lacks.
    score_boundary : bool, default=True
        Whether a text begins and ends a sentence. False needs back-off n-grams.

    Returns
    -------
    language_model : pyctcdecode.language_model.AbstractLanguageModel
        For ``BeamSearchDecoderCTC(alphabet, language_model)``. Scores are those of
        pyctcdecode's own ``LanguageModel`` with KenLM: the parameters mean the same.

    Raises
    ------
    ImportError
        If pyctcdecode is not installed. It requires NumPy below 2, but decodes with
        NumPy 2: install it with ``--no-deps``.
    TypeError
        If `lm` is not a fitted text model of words.

    Examples
    --------
    With the labels of an acoustic model::

        decoder = pyctcdecode.BeamSearchDecoderCTC(
            pyctcdecode.Alphabet.build_alphabet(labels), nplm.pyctcdecode_lm(lm)
        )
        text = decoder.decode(logits)
    """
    try:
        from pyctcdecode.language_model import AbstractLanguageModel
    except ImportError as error:
        raise ImportError(
            "pyctcdecode_lm requires pyctcdecode, which asks for NumPy below 2 but "
            "works with NumPy 2: python -m pip install pygtrie hypothesis, then python "
            "-m pip install --no-deps pyctcdecode."
        ) from error
    steps = WordSteps(lm, "pyctcdecode_lm")
    words = frozenset(lm.unigrams())
    known = words if unigrams is None else words.intersection(unigrams)

    class PyctcdecodeLM(AbstractLanguageModel):
        order = order_of(lm.estimator_, lm.n_context_)

        def __init__(self, **params: object) -> None:
            self.sorted = sorted(known)
            self.reset_params(**params)

        def reset_params(self, **params: object) -> None:
            for name in PARAMS:
                if params.get(name) is not None:
                    setattr(self, name, params[name])

        def get_start_state(self) -> State:
            return State(steps.begin(self.score_boundary))

        def score_partial_token(self, partial_token: str) -> float:
            i = bisect_left(self.sorted, partial_token)
            if i < len(self.sorted) and self.sorted[i].startswith(partial_token):
                return 0.0
            return self.unk_score_offset * max(1, len(partial_token) / PIECE_CHARS)

        def score(
            self, prev_state: State, word: str, is_last_word: bool = False
        ) -> tuple[float, State]:
            score, after = steps.step(prev_state.state, word)
            if word not in (known or words):
                score += self.unk_score_offset
            if is_last_word and self.score_boundary:
                score += steps.end(after)
            return self.alpha * score * LN10 + self.beta, State(after)

    return PyctcdecodeLM(
        alpha=alpha,
        beta=beta,
        unk_score_offset=unk_score_offset,
        score_boundary=score_boundary,
    )
