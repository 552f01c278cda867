"""ShallowFusion: a language model beside the generators of transformers."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from nplm.text.lm.fitted_text import fitted_text
from nplm.text.lm.text_lm import TextLM
from nplm.text.lm.window_scorer import Context, RowCache, WindowWordScorer


class ShallowFusion:
    """Add the scores of a language model to those of a Hugging Face generator.

    For ``generate(..., logits_processor=LogitsProcessorList([...]))`` of the package
    transformers: the next token maximises the generator's log-probability plus
    `weight` times the language model's.

    Parameters
    ----------
    lm : TextLM
        A fitted text model of the generator's tokens. Its documents are token ids, or
        the tokens themselves if `tokens` are given.
    weight : float, default=0.3
        Weight of the language model.
    tokens : sequence of str, optional
        The token of each id, such as
        ``tokenizer.convert_ids_to_tokens(range(len(tokenizer)))``. None means that the
        ids of the language model are those of the generator.
    n_prompt : int, default=1
        Tokens at the beginning of each sequence that the language model does not see:
        the decoder's start token, or a prompt.
    eos_token_id : int, optional
        The token that ends a text; it gets the probability of the boundary. Without it,
        the boundary must be an id of the generator.

    Raises
    ------
    TypeError
        If `lm` is not a text model, or has a vocabulary without `tokens`.
    ValueError
        If `weight` is not finite, or `n_prompt` or `eos_token_id` is negative or not
        whole.

    Notes
    -----
    Tokens beyond the vocabulary of the language model, which pad some generators, get
    probability 0, unless `weight` is 0, which leaves all scores as they are.
    Distributions are kept for the contexts used last, so that the beams of a search
    share them.

    Examples
    --------
    A recogniser that knows the words of a field::

        fusion = nplm.ShallowFusion(lm, 0.3, n_prompt=4, eos_token_id=50257)
        model.generate(features, num_beams=5, logits_processor=[fusion])
    """

    def __init__(
        self,
        lm: TextLM,
        weight: float = 0.3,
        *,
        tokens: Sequence[str] | None = None,
        n_prompt: int = 1,
        eos_token_id: int | None = None,
    ) -> None:
        if not isinstance(lm, TextLM):
            raise TypeError(
                f"ShallowFusion needs a TextLM, got {type(lm).__name__}: fit a TextLM "
                "on the generator's tokens."
            )
        text = fitted_text(lm)
        for name, value in (("n_prompt", n_prompt), ("eos_token_id", eos_token_id)):
            if value is not None and not (isinstance(value, Integral) and value >= 0):
                raise ValueError(
                    f"{name} must be a whole number from 0, got {value!r}."
                )
        if not np.isfinite(weight):
            raise ValueError(f"weight must be a finite number, got {weight!r}.")
        self.weight, self.n_prompt = float(weight), int(n_prompt)
        if lm.vocabulary_ is None:
            ids = np.arange(lm.n_words_, dtype=np.int32)
        elif tokens is None:
            raise TypeError(
                "the language model has a vocabulary: pass tokens, the token of each "
                "id of the generator, or fit the model on token ids."
            )
        else:
            ids = lm.vocabulary_.transform([list(tokens)])[0]
        # The id in the language model of each token, and of tokens beyond.
        self._ids = np.append(ids, lm.boundary_).astype(np.intp)
        self._eos, self._boundary = eos_token_id, lm.boundary_
        options = text.model, text.n_context, text.boundary, None, -1
        self._scorer = WindowWordScorer(*options)
        self._cache = self._scorer.cache or RowCache(text.model)
        self._states: dict[Context, Context] = {}  # after the texts of the last call

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Return the scores of the next tokens with the language model's added.

        - `input_ids` (n_sequences, n_tokens): the tokens so far
        - `scores` (n_sequences, n_scores): logits or log-probabilities of the generator

        Returns `scores`, (n_sequences, n_scores).
        """
        if self.weight == 0:
            return scores
        states = {}
        added = np.full(tuple(scores.shape), -np.inf, dtype=np.float32)
        columns = self._ids[:-1][: added.shape[1]]
        for out, tokens in zip(added, input_ids[:, self.n_prompt :].tolist()):
            ids = self._ids.take(np.array(tokens, dtype=np.intp), mode="clip")
            text = tuple(ids.tolist())
            states[text] = self._state(text)
            row = self._cache.row(states[text])
            out[: len(columns)] = row[columns]
            if self._eos is not None:
                out[: len(columns)][columns == self._boundary] = -np.inf
                out[self._eos] = row[self._boundary]
        self._states = states
        # Whatever the weight, probability 0 stays 0.
        np.multiply(added, self.weight, out=added, where=np.isfinite(added))
        return scores + scores.new_tensor(added)

    def _state(self, text: Context) -> Context:
        """Return the state after a text."""
        # A beam mostly goes on with one of the last call.
        known = len(text)
        while known > 0 and text[:known] not in self._states:
            known -= 1
        state = self._states[text[:known]] if known else self._scorer.begin()
        for word in text[known:]:
            [state] = self._scorer.after([state], [word])
        return state
