"""QuickLookUps: log-probabilities of few windows without the checks of all inputs."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nplm._kernels.ngrams._trie import take_logs
from nplm.base.blocks import BLOCK_WINDOWS
from nplm.base.estimators.language_model import LanguageModel

__all__ = ["QuickLookUps", "ReadFromFile"]

INT32 = np.dtype(np.int32)


class QuickLookUps(LanguageModel):
    """Base class of models whose kernel checks ids itself.

    A sentence is looked up in less time than the checks of all inputs take. Windows in
    arrays of int32 go to the kernel at once; other inputs and all errors are for the
    base class.
    """

    # All n-grams, and the attribute with those that a kernel looks up, if there are.
    trie_: Any
    _looked_up_in: ClassVar[str]

    def log_prob(self, X: ArrayLike, y: ArrayLike | None = None) -> NDArray[np.float64]:
        # The attributes are read from one dictionary, which a fit replaces as a whole.
        fitted = vars(self)
        ngrams: Any = fitted.get(self._looked_up_in)
        if ngrams is not None:
            kernel = ngrams.kernel
            if (
                fitted["n_features_in_"] == kernel.n_context
                and fitted["n_words_"] == kernel.n_words
                and "feature_names_in_" not in fitted
            ):
                log_prob: NDArray[np.float64] | None
                log_prob = kernel.few_log_prob(X, y, BLOCK_WINDOWS)
                if log_prob is not None:
                    return log_prob
                if are_windows(X, y, kernel.n_context):
                    log_prob = ngrams.next_word_log_prob(X, y)
                    if log_prob is not None:
                        return log_prob
        return super().log_prob(X, y)

    def _log_prob(
        self, X: NDArray[np.int32], y: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        ngrams: Any = getattr(self, self._looked_up_in)
        # Ids are checked, but another thread may change the array: then it is None.
        log_prob = None if ngrams is None else ngrams.next_word_log_prob(X, y)
        if log_prob is None:
            log_prob = self.trie_.next_word_prob(X, y)
            take_logs(log_prob)  # a file may contain words of probability 0
        return log_prob

    def _n_known(self) -> int:
        return int(self.trie_.n_words)


class ReadFromFile(QuickLookUps):
    """Base class of models that are read from a file, not fitted."""

    _reader: ClassVar[str]  # the function of nplm.formats that reads the file

    def __init__(
        self,
        order: int | None = None,
        *,
        n_words: int | None = None,
        boundary: int | None = None,
    ) -> None:
        self.order = order
        self.n_words = n_words
        self.boundary = boundary

    @classmethod
    def _of_sizes(cls, order: int, n_words: int, boundary: int | None) -> Self:
        """Return a model with the parameters and attributes of these sizes."""
        model = cls(order, n_words=n_words, boundary=boundary)
        model.order_, model.n_words_ = order, n_words
        model.n_features_in_ = max(order - 1, 1)
        return model

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
    ) -> Self:
        """Raise TypeError: the model is read from a file, not fitted.

        Parameters
        ----------
        X, y, X_val, y_val : array-like of int
            Ignored.

        Raises
        ------
        TypeError
            Always.
        """
        raise TypeError(
            f"{type(self).__name__} is read from a file (nplm.formats.{self._reader}) "
            "and cannot be fitted. To score documents with it, use TextLM.from_model; "
            "to estimate a model from windows, use KneserNeyLM."
        )


def are_windows(X: Any, y: Any, n_context: int) -> bool:
    """Whether `X` and `y` are arrays of int32 of the shapes of windows."""
    return (
        type(X) is np.ndarray
        and type(y) is np.ndarray
        and X.dtype is INT32
        and y.dtype is INT32
        and y.ndim == 1
        and X.shape == (*y.shape, n_context)
        and y.shape != (0,)
    )
