"""FittedText: a fitted model of windows, and its texts."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from nplm.base.blocks import Texts
from nplm.base.estimators import reads_texts
from nplm.text.codecs import Ids, Words, codec_of
from nplm.text.documents import Documents
from nplm.text.vocabulary import Vocabulary
from nplm.text.words.known_words import known_of

__all__ = ["FittedText", "no_token"]


class FittedText:
    """The fitted attributes of `TextLM`, and documents as its texts."""

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
    def _codec(self) -> Ids | Words:
        check_is_fitted(self)
        return codec_of(
            self.tokenizer_,
            self.vocabulary_,
            refuse=self.handle_unknown == "error",
            n_words=self.estimator_.n_words_,
            n_known=self.estimator_.n_words_,
            refuse_zero=isinstance(self.boundary, str),
        )

    def _ids_and_unknown(self) -> tuple[Any, int]:
        """Return the ids of words, None for documents of ids, and the unknown id.

        -1 refuses unknown words.
        """
        if self.vocabulary_ is None:
            return None, -1
        ids, unknown = known_of(self.vocabulary_).ids_and_unknown
        return ids, -1 if self.handle_unknown == "error" else unknown

    def _texts(self, documents: Documents, name: str, estimator: Any) -> Texts:
        """Return documents as texts, or raise an error without a token."""
        n_documents, ends = len(documents.lengths), bool(self.predict_boundary)
        if len(documents.ids) + n_documents * ends == 0:
            raise no_token(n_documents, name)
        n_context = self.n_context_
        if reads_texts(estimator):
            n_context = estimator._columns_of_texts()
        return documents.texts(n_context, self.boundary_, ends=ends)


def no_token(n_documents: int, name: str = "X") -> ValueError:
    """Return the error of documents without a token."""
    return ValueError(
        f"{name} has {n_documents} document{'s' * (n_documents != 1)} and no token: "
        "pass at least one document that is not empty."
    )
