"""Language models for the decoders of flashlight-text, torchaudio and pyctcdecode."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from nplm.base.exceptions import optional_module
from nplm.text.lm.text_lm import TextLM
from nplm.text.lm.window_scorer import order_of

LN10 = math.log(10)
# log10 of probability 0, as KenLM has it: infinity would hide all other scores.
LOG10_ZERO = -100.0


def check_words(lm: object, caller: str) -> None:
    """Raise an error unless `lm` is a fitted text model of words."""
    if not isinstance(lm, TextLM) or getattr(lm, "vocabulary_", None) is None:
        raise TypeError(
            f"{caller} needs a fitted TextLM with a vocabulary, got "
            f"{type(lm).__name__}: fit a TextLM on words, or make one by "
            "TextLM.from_model(model, words)."
        )


class WordSteps:
    """Steps of a fitted text model with log10 scores, which are never infinite."""

    def __init__(self, lm: TextLM, caller: str) -> None:
        check_words(lm, caller)
        self.scorer = lm.scorer()

    def begin(self, bos: bool) -> Hashable:
        """Return the state before the first word."""
        return self.scorer.begin(bos=bos)

    def step(self, state: Hashable, word: str) -> tuple[float, Hashable]:
        """Return log10 of the probability of a word, and the state after it."""
        log_prob, after = self.scorer.step(state, word)
        return max(log_prob / LN10, LOG10_ZERO), after

    def end(self, state: Hashable) -> float:
        """Return log10 of the probability that the sentence ends here."""
        return max(self.scorer.end(state) / LN10, LOG10_ZERO)


def flashlight_lm(lm: TextLM, words: Sequence[str] | Any) -> Any:
    """Make a language model for the decoders of flashlight-text and torchaudio.

    Parameters
    ----------
    lm : TextLM
        A fitted text model of words: of n-grams, a network, classes, or a mixture. For
        a decoder without a lexicon, its words are the tokens of the acoustic model.
    words : sequence of str, or flashlight.lib.text.dictionary.Dictionary
        The word of each index of the decoder: the dictionary passed to it, or the
        lines of ``lm_dict`` in torchaudio.

    Returns
    -------
    decoder_lm : flashlight.lib.text.decoder.LM
        Has ``start``, ``score`` and ``finish``. Keep a reference to it as long as the
        decoder is in use, and make one for each decoder.

    Raises
    ------
    ImportError
        If flashlight-text is not installed.
    TypeError
        If `lm` is not a fitted text model of words.

    Notes
    -----
    Scores are log10, as of flashlight's own ``KenLM``, so that a weight (``lm_weight``)
    means the same. A word that the model does not know counts as ``<unk>``; a word of
    probability 0 has -100. Every prefix of words is scored once, and the memory of an
    utterance is released when the next one starts.

    Examples
    --------
    A decoder of torchaudio::

        decoder = torchaudio.models.decoder.ctc_decoder(
            lexicon="lexicon.txt", tokens=tokens, lm_dict="words.txt",
            lm=nplm.flashlight_lm(lm, open("words.txt").read().split()),
        )
    """
    decoder = optional_module(
        "flashlight.lib.text.decoder", "flashlight_lm", "flashlight-text"
    )
    steps = WordSteps(lm, "flashlight_lm")
    dictionary: Any = words
    if hasattr(dictionary, "index_size"):
        words = [dictionary.get_entry(i) for i in range(dictionary.index_size())]

    class FlashlightLM(decoder.LM):  # type: ignore[name-defined]
        """States of flashlight are prefixes; each has a state of nplm and its score."""

        def __init__(self, words: list[str]) -> None:
            super().__init__()
            self.words = words
            self.scored: dict[Any, tuple[Any, float]] = {}

        def start(self, start_with_nothing: bool) -> Any:
            self.scored.clear()
            state = decoder.LMState()
            self.scored[state] = steps.begin(not start_with_nothing), 0.0
            return state

        def score(self, state: Any, usr_token_idx: int) -> tuple[Any, float]:
            if not 0 <= usr_token_idx < len(self.words):
                raise IndexError(
                    f"the decoder asks for the word {usr_token_idx}, but words has "
                    f"{len(self.words)}: pass the words of its dictionary, in order."
                )
            after = state.child(usr_token_idx)
            if after not in self.scored:
                before = self.state_of(state)
                score, following = steps.step(before, self.words[usr_token_idx])
                self.scored[after] = following, score
            return after, self.scored[after][1]

        def finish(self, state: Any) -> tuple[Any, float]:
            after = state.child(-1)
            if after not in self.scored:
                self.scored[after] = None, steps.end(self.state_of(state))
            return after, self.scored[after][1]

        def state_of(self, state: object) -> Any:
            if state not in self.scored:
                raise RuntimeError(
                    "the state is not of this utterance: make one flashlight_lm for "
                    "each decoder."
                )
            return self.scored[state][0]

    return FlashlightLM(list(words))


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
