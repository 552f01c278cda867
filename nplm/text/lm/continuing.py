"""Continuing: next words, generated text, and nearest neighbours of a word."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import check_scalar

from nplm.base.array_types import Floats
from nplm.base.blocks import blocks_of_rows
from nplm.base.checks import plain
from nplm.base.generators import private_generator
from nplm.text.embeddings import learned_features, nearest_rows
from nplm.text.lm.drawing import check_drawing, drawn, sharpened, without
from nplm.text.lm.fitted_text import TextAttributes, fitted_text


class Continuing(TextAttributes):
    """Methods of `TextLM` that return words: predicted, generated or similar ones."""

    def next_words(
        self,
        context: object = (),
        k: int = 5,
        *,
        exclude: Iterable[object] = (),
        unknown: bool = False,
    ) -> tuple[Any, Floats]:
        """Return the most probable next words.

        Parameters
        ----------
        context : document, default=()
            The start of one document, of the kind that the model was fitted on; its
            last ``n_context_`` words count.
        k : int, default=5
            Number of words.
        exclude : iterable of words, default=()
            Words to leave out, such as ``["</s>"]``.
        unknown : bool, default=False
            Whether the vocabulary's symbol for unknown words, ``<unk>``, may be among
            the words.

        Returns
        -------
        words : list of length k, or ndarray of int32
            The most probable first; ids where documents are ids. Fewer than `k` in a
            small vocabulary.
        proba : ndarray of float64, shape (k,)
            Their probabilities. If words are left out, ``<unk>`` or others, these are
            conditional on the next word being none of them.

        Raises
        ------
        ValueError
            If `k` is out of range, a word is not in the vocabulary, or no word is left
            that has any probability.

        Examples
        --------
        >>> from nplm import InterpolatedTrigram, TextLM
        >>> lm = TextLM(InterpolatedTrigram()).fit(["to be or not to be"] * 9)
        >>> words, proba = lm.next_words("not to", k=2)
        >>> words[0], bool(proba[0] > proba[1])
        ('be', True)
        """
        check_scalar(k, "k", Integral, min_val=1)
        text = fitted_text(self)
        document = text.codec.encode_one(context, "context")
        return text.words_after(document, k, text.excluded(exclude, unknown))

    def generate(
        self,
        context: Any = (),
        n: int | None = None,
        *,
        min_words: int = 0,
        max_words: int = 50,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        exclude: Iterable[object] = (),
        unknown: bool = False,
        with_context: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> Any:
        """Generate the words that follow a context, one by one, up to the boundary.

        Parameters
        ----------
        context : document, default=()
            The start of one document, of the kind that the model was fitted on.
        n : int, optional
            Number of texts to generate, returned as a list. By default one text, not
            in a list.
        min_words : int, default=0
            Do not draw the boundary before this many words: with 1, no text is empty.
        max_words : int, default=50
            Stop after this many words if no boundary was drawn before.
        temperature : float, default=1.0
            Probabilities are raised to the power of ``1 / temperature`` and
            renormalised: below 1, probable words become more probable.
        top_k : int, optional
            Draw from this many most probable words only.
        top_p : float, optional
            Draw from the fewest words whose probabilities sum to at least this
            (nucleus sampling), after `temperature` and `top_k`.
        exclude : iterable of words, default=()
            Words that are never drawn.
        unknown : bool, default=False
            Whether the vocabulary's symbol for unknown words, ``<unk>``, may be drawn.
        with_context : bool, default=False
            Whether the texts begin with `context`.
        random_state : int, RandomState instance or None, default=None
            An int draws the same words each time.

        Returns
        -------
        words : str, list of tokens, or ndarray of int32; or a list of them
            The generated words, of the kind that the model was fitted on, without the
            boundary, and without `context` by default. The tokenizer joins them to a
            string by its ``inverse_transform``; without one, spaces do.

        Raises
        ------
        ValueError
            If a number is out of range, a word is not in the vocabulary, or no word is
            left that has any probability.

        References
        ----------
        A. Holtzman, J. Buys, L. Du, M. Forbes and Y. Choi (2020). The curious case of
        neural text degeneration. ICLR.

        A. Fan, M. Lewis and Y. Dauphin (2018). Hierarchical neural story generation.
        ACL.

        Examples
        --------
        >>> from nplm import InterpolatedTrigram, TextLM
        >>> lm = TextLM(InterpolatedTrigram()).fit(["to be or not to be"] * 9)
        >>> lm.generate("or not", top_k=1)
        'to be'
        >>> lm.generate("or not", top_k=1, with_context=True)
        'or not to be'
        >>> len(lm.generate(n=3, random_state=0))
        3
        """
        check_drawing(
            n=n, min_words=min_words, max_words=max_words, temperature=temperature,
            top_k=top_k, top_p=top_p,
        )  # fmt: skip
        text = fitted_text(self)
        codec, boundary = text.codec, text.boundary
        start, state = text.state_after(codec.encode_one(context, "context"))
        excluded = text.excluded(exclude, unknown)
        not_ended = np.union1d(excluded, np.array([boundary], np.int32))
        random = private_generator(random_state)
        shape = {"temperature": plain(temperature), "top_k": top_k, "top_p": top_p}
        n_drawn = 1 if n is None else int(n)
        last, states = np.tile(start, (n_drawn, 1)), [state] * n_drawn
        words = np.full((n_drawn, int(max_words)), boundary, dtype=np.int32)
        # Texts whose boundary has not been drawn.
        live = np.arange(n_drawn)
        for step in range(int(max_words)):
            left_out = not_ended if step < min_words else excluded
            for rows in blocks_of_rows(len(live), text.model.n_words_):
                some = live[rows].tolist()
                proba, after = text.next_proba(last[some], [states[i] for i in some])
                proba = without(proba, left_out)
                words[some, step] = drawn(sharpened(proba, **shape), random)
                for i, state in zip(some, after):
                    states[i] = state
            live = live[words[live, step] != boundary]
            if len(live) == 0:
                break
            last[live] = np.column_stack([last[live, 1:], words[live, step]])
        ends = np.column_stack([words == boundary, np.ones(n_drawn, bool)])
        lengths = ends.argmax(axis=1)
        drawn_ids = [row[:length] for row, length in zip(words, lengths)]
        if with_context:
            texts = [codec.continued(context, ids) for ids in drawn_ids]
        else:
            texts = [codec.decode(ids) for ids in drawn_ids]
        return texts[0] if n is None else texts

    def sample(
        self,
        n_samples: int = 1,
        *,
        max_words: int = 1000,
        random_state: int | np.random.RandomState | None = None,
    ) -> list[Any]:
        """Draw documents from the model, unknown words included, as `generate` does.

        Parameters
        ----------
        n_samples : int, default=1
            Number of documents.
        max_words : int, default=1000
            End a document after this many words.
        random_state : int, RandomState instance or None, default=None
            An int draws the same documents each time.

        Returns
        -------
        documents : list
            Of the kind that the model was fitted on.

        Examples
        --------
        >>> from nplm import InterpolatedTrigram, TextLM
        >>> lm = TextLM(InterpolatedTrigram()).fit(["to be or not to be"] * 9)
        >>> len(lm.sample(3, random_state=0))
        3
        """
        check_scalar(n_samples, "n_samples", Integral, min_val=1)
        return self.generate(
            n=n_samples, max_words=max_words, unknown=True, random_state=random_state
        )

    def nearest(
        self, word: Hashable, k: int = 10, *, among: int | None = 2000
    ) -> tuple[Any, Floats]:
        """Return the words with the most similar features learned by a network.

        Parameters
        ----------
        word : str or other word of the vocabulary; int where documents are ids
            The word whose neighbours are returned.
        k : int, default=10
            Number of neighbours.
        among : int or None, default=2000
            Search only this many words of the lowest ids: with a `Vocabulary`, the
            most frequent. The features of rare words hardly differ from their initial
            values. None searches all words.

        Returns
        -------
        words : list, or ndarray of int32
            The nearest first.
        cosines : ndarray of float64
            Cosine similarity of their features to those of `word`, rows of ``C_``
            (section 2).

        Raises
        ------
        TypeError
            If neither the estimator nor a member of it has word features (``C_``).
        ValueError
            If `word` is not in the vocabulary.

        Examples
        --------
        >>> from nplm import NeuralLM, TextLM
        >>> texts = ["the cat sat", "the dog sat", "a cat ran", "a dog ran"] * 50
        >>> network = NeuralLM(n_hidden=10, embedding_dim=10, learning_rate_init=0.01,
        ...                    random_state=0)
        >>> lm = TextLM(network, n_context=2).fit(texts)
        >>> words, cosines = lm.nearest("cat", k=1)
        >>> words
        ['dog']
        """
        text = fitted_text(self)
        features = learned_features(text.model)
        [i] = text.codec.encode_words([word])
        ids, cosines = nearest_rows(features, i, k, among)
        return text.codec.words(ids), cosines
