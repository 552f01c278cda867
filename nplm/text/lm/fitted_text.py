"""FittedText: a fitted model of windows, and the windows of documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from nplm.text.codecs import Codec, codec_of
from nplm.text.documents import Documents, Tokens
from nplm.text.vocabulary import Vocabulary
from nplm.text.words.known_words import ids_and_unknown

__all__ = ["FittedText"]


class FittedText:
    """The fitted attributes of `TextLM`, and the windows of documents."""

    boundary: int | str
    predict_boundary: bool
    handle_unknown: str

    estimator_: Any
    tokenizer_: Any
    vocabulary_: Vocabulary | None
    n_words_: int
    n_context_: int
    boundary_: int

    @property
    def _codec(self) -> Codec:
        check_is_fitted(self)
        refuse = self.handle_unknown == "error"
        return codec_of(self.tokenizer_, self.vocabulary_, refuse=refuse)

    def _ids_and_unknown(self) -> tuple[Any, int]:
        """Return the ids of words, None for documents of ids, and the unknown id.

        -1 refuses unknown words.
        """
        if self.vocabulary_ is None:
            return None, -1
        ids, unknown = ids_and_unknown(self.vocabulary_)
        return ids, -1 if self.handle_unknown == "error" else unknown

    def _tokens(self, documents: Documents, name: str, *, n_known: int = 0) -> Tokens:
        """Cut documents into windows; the model has words with ids below `n_known`."""
        self._check_documents(documents, name, n_known)
        return documents.tokens(
            self.n_context_, self.boundary_, ends=self.predict_boundary
        )

    def _windows(
        self, documents: Documents, name: str, *, n_known: int = 0
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Cut documents into contexts and targets, in less memory than `_tokens`."""
        self._check_documents(documents, name, n_known)
        return documents.windows(
            self.n_context_, self.boundary_, ends=self.predict_boundary
        )

    def _check_documents(self, documents: Documents, name: str, n_known: int) -> None:
        """Raise an error if documents have an ambiguous 0, or no token."""
        n = len(documents.lengths)
        self._check_zeros(documents, lambda i: f"{name}[{i}]", n_known)
        if len(documents.ids) + (n if self.predict_boundary else 0) == 0:
            raise ValueError(
                f"{name} has {n} documents and no token: pass at least one document "
                "that is not empty."
            )

    def _check_zeros(
        self, documents: Documents, name_of: Callable[[int], str], n_known: int
    ) -> None:
        """Raise an error if ids contain 0 and `boundary` is not given."""
        if self.boundary != "auto" or self.vocabulary_ is not None:
            return
        zeros = np.flatnonzero(documents.ids == 0)
        if len(zeros) == 0:
            return
        document, position = documents.find(int(zeros[0]))
        largest = max(int(documents.ids.max()), n_known - 1)
        raise ValueError(
            f"{name_of(document)} has the id 0 at position {position}, and 0 is the "
            "boundary by default. If 0 is a word, set boundary to an unused id (the "
            f"largest id is {largest}: boundary={largest + 1}); if 0 ends a sentence "
            "inside a document, set boundary=0; if the numbers are events, not ids, "
            "set vocabulary=Vocabulary(). Then fit."
        )
