"""Texts and documents: fits and scores of models that read them word by word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from nplm.base.array_types import Array, Floats, Ids
from nplm.base.atomic import read_at_once
from nplm.base.blocks import BLOCK_WINDOWS, Texts
from nplm.base.checks import MAX_N_WORDS, check_boundary, check_ids, copies_of
from nplm.base.estimators.checked_inputs import CheckedInputs
from nplm.base.estimators.scored_texts import context_of_texts, shown_blocks

# Log-probabilities of all words after some contexts, and the states after these.
Stepped = tuple[Array, Sequence[object]]


class StreamModel(CheckedInputs):
    """Mixin of models of windows that fit and score texts."""

    def fit_stream(
        self,
        ids: ArrayLike | Sequence[ArrayLike],
        ids_val: ArrayLike | Sequence[ArrayLike] | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        **fit_params: object,
    ) -> Self:
        """Fit the model to a text, or to documents.

        Parameters
        ----------
        ids : array-like of int, shape (n_tokens,), or a list of them
            Word ids in text order: one text, or a list of documents. No context spans
            two documents. A model with a ``boundary`` predicts every token: boundaries
            fill the contexts at the start of a text, and one is appended to each
            document of a list, in which it must not occur, as KenLM refuses ``</s>``
            inside a line. Without one, the first words of a text, as many as a context
            has, are context only. (A `KneserNeyLM` counts shorter n-grams of them, if
            they are in a list.)
        ids_val : array-like of int, or a list of them, optional
            Held-out text or documents, for what `fit` uses held-out windows for.
        sample_weight : array-like of shape (n_documents,), optional
            How often each document of a list counts, as of `TextLM.fit`.
        **fit_params
            Passed to `fit`, such as ``checkpoint`` of a network.

        Returns
        -------
        self : object
            The model that `fit` makes of the windows of the same text. Those of one
            text are views of `ids`, and take no memory of their own. Documents are
            copied once, and networks keep 4 more bytes a token.

        Raises
        ------
        ValueError
            If ``order`` is None, no token has a whole context, or a document contains
            the boundary. See also `fit`.

        Examples
        --------
        >>> from nplm import InterpolatedTrigram
        >>> lm = InterpolatedTrigram().fit_stream([0, 1, 2, 0, 1, 3] * 20)
        >>> lm.log_prob_stream([0, 1, 2]).round(2)
        array([-0.7])
        """
        return self._fit_streams(ids, ids_val, sample_weight, **fit_params)

    # Whether texts of a fit may have weights that are not whole.
    takes_fractions = False

    def _copies(self, ids: Any, sample_weight: Any) -> tuple[Any, Any]:
        """Return documents as often as they count, and the weight of each copy."""
        if sample_weight is None:
            return ids, None
        if not _are_documents(ids):
            raise ValueError("sample_weight is for a list of documents: pass a list.")
        whole_of = "" if self.takes_fractions else type(self).__name__
        copies, weights = copies_of(sample_weight, len(ids), whole_of)
        return [ids[i] for i in copies], weights

    def texts_to_fit(
        self, ids: Any, ids_val: Any, sample_weight: Any
    ) -> tuple[Texts, Texts | None]:
        """Return the checked texts of a fit, and the held-out ones."""
        ids, weights = self._copies(ids, sample_weight)
        n_context, n_words = self.columns_of_texts(), self.n_words
        texts = replace(self._texts(ids, "ids", n_context, n_words), weights=weights)
        if ids_val is None:
            return texts, None
        return texts, self._texts(ids_val, "ids_val", n_context, n_words)

    def _fit_streams(
        self, ids: Any, ids_val: Any, sample_weight: Any, **fit_params: Any
    ) -> Self:
        texts = self.texts_to_fit(ids, ids_val, sample_weight)
        return self.fit_texts(*texts, **fit_params)

    def fit_texts(
        self, texts: Texts, held_out: Texts | None, **fit_params: Any
    ) -> Self:
        """Fit the model to checked texts."""
        X, y = texts.windows()
        X_val, y_val = (None, None) if held_out is None else held_out.windows()
        return self.fit(X, y, X_val=X_val, y_val=y_val, **fit_params)

    @read_at_once
    def log_prob_stream(self, ids: ArrayLike | Sequence[ArrayLike]) -> Floats:
        """Return the log-probability of each token of a text, or of documents.

        Parameters
        ----------
        ids : array-like of int, shape (n_tokens,), or a list of them
            Word ids in text order: one text, or a list of documents, which do not
            depend on each other. As in `fit_stream`, a model with a ``boundary`` scores
            every token, and one that it appends to each document of a list; without a
            boundary, the first words of each text are context only.

        Returns
        -------
        log_prob : ndarray of float64, shape (n_scored,)
            Natural logarithms of all scored tokens, in text order. The memory besides
            them does not grow with the text.
        """
        return self.log_prob_of_texts(self._scored_texts(ids))

    def score_stream(
        self, ids: ArrayLike | Sequence[ArrayLike], **options: object
    ) -> float:
        """Return the mean of `log_prob_stream`; the perplexity is ``exp(-score)``.

        Parameters
        ----------
        ids : array-like of int, shape (n_tokens,), or a list of them
            One text, or a list of documents.
        **options
            Passed to `log_prob_stream`, such as ``n_columns`` of a network.

        Returns
        -------
        score : float
            Mean natural-log probability per token.
        """
        return float(np.mean(self.log_prob_stream(ids, **options)))

    @property
    def reads_texts(self) -> bool:
        """Whether a state goes on within a text, further than windows reach."""
        return False

    def log_prob_of_texts(self, texts: Texts) -> Floats:
        """Return the log-probability of the tokens of checked texts."""
        X, y, out = self._nearest(texts.X), texts.y, np.empty(len(texts))
        for part in shown_blocks(type(self).__name__, out, BLOCK_WINDOWS):
            rows = texts.rows(part)
            out[part] = self._log_prob(X[rows], y[rows])
        return out

    def step_states(self, X: Ids, states: Sequence[object]) -> Stepped:
        """Return log-probabilities of all words after contexts, and the states."""
        return self._predict_log_proba(self._nearest(X)), [None] * len(X)

    def state_of_text(self, ids: Ids) -> Any:
        """Return the state before the last word of a text, for `step_states`."""
        return None

    def n_context_of_texts(self) -> int:
        """Return the words of context before the first token of a text to be scored."""
        return self.order_ - 1

    def _scored_texts(self, ids: ArrayLike | Sequence[ArrayLike]) -> Texts:
        self._check_fitted()
        return self._texts(ids, "ids", context_of_texts(self), self.n_words_)

    def columns_of_texts(self) -> int:
        """Return the columns of the windows of a stream; it has none to infer from."""
        self._validate_params()
        if self.get_params(deep=False).get("order", 1) is None:
            raise ValueError(
                "order is None, and neither a stream nor documents have columns to "
                f"infer it from: set order, for example {type(self).__name__}(order=5)."
            )
        return self._columns_needed()

    def _texts(
        self, ids: object, name: str, n_context: int, n_words: int | None
    ) -> Texts:
        """Check one text or a list of documents, and put them into one array."""
        checked, is_list = self._checked_texts(ids, name, n_words)
        boundary = getattr(self, "boundary", None)
        texts = Texts.of(checked, n_context, boundary, ends=is_list)
        if len(texts) == 0:
            raise ValueError(
                f"{name} has {sum(map(len, checked))} tokens, of which none has "
                f"{n_context} words of context before it; pass more ids."
            )
        return texts

    def _checked_texts(
        self, ids: Any, name: str, n_words: int | None
    ) -> tuple[list[Ids], bool]:
        """Return the checked ids of each text, and whether they are a list."""
        self._validate_params()
        boundary = getattr(self, "boundary", None)
        check_boundary(boundary, MAX_N_WORDS if n_words is None else n_words)
        is_list = _are_documents(ids)
        names = [f"{name}[{i}]" for i in range(len(ids))] if is_list else [name]
        with self._inferred_n_words():
            texts = [
                check_ids(document, its_name, ndim=1, n_words=n_words)
                for document, its_name in zip(ids if is_list else [ids], names)
            ]
        if not is_list and len(texts[0]) == 0:
            raise ValueError(f"{name} is empty: there is no token.")
        for its_name, text in zip(names, texts):
            inside = np.flatnonzero(text == boundary)
            if is_list and len(inside):
                raise ValueError(
                    f"{its_name} has the boundary, {boundary}, at {inside[0]}; a list "
                    "of documents has one added to each: remove it, or split the "
                    "document there."
                )
        return texts, is_list


def _are_documents(ids: object) -> bool:
    """Return whether ids are a list of documents, and not one text."""
    return isinstance(ids, (list, tuple)) and len(ids) > 0 and np.ndim(ids[0]) == 1
