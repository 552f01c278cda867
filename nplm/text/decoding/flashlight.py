"""flashlight_lm: a language model for flashlight-text and torchaudio."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nplm.base.exceptions import optional_module
from nplm.text.decoding.word_steps import WordSteps
from nplm.text.lm.text_lm import TextLM


def flashlight_lm(lm: TextLM, words: Sequence[str] | Any) -> Any:
    """Make a language model for the decoders of flashlight-text and torchaudio.

    Parameters
    ----------
    lm : TextLM
        A fitted text model of words: of n-grams, a network, classes, or a mixture. For
        a decoder without a lexicon, its words are the tokens of the acoustic model.
    words : sequence of str, or flashlight.lib.text.dictionary.Dictionary
        The word of each index of the decoder: the dictionary that it is given, or the
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
