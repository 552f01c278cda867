"""Word features in two dimensions: `feature_map`, and the display that draws it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

from nplm.base.array_types import Floats
from nplm.base.checks import check_word_of_each
from nplm.inspection._display import Axes, Display, check_matplotlib
from nplm.inspection.words import ids_of
from nplm.text.embeddings import learned_features


class FeatureMap(NamedTuple):
    """Words and their positions, returned by `feature_map`.

    Attributes
    ----------
    words : list of length n
        The words.
    positions : ndarray of float64, shape (n, 2)
        Position of each word.
    explained_variance_ratio : ndarray of float64, shape (2,), or None
        Share of the variance of each axis, for principal components; None if the
        features have two dimensions.
    """

    words: list[Any]
    positions: Floats
    explained_variance_ratio: Floats | None


def feature_map(
    estimator: object,
    words: Sequence[object] | NDArray[np.object_] | None = None,
    *,
    of: Sequence[object] | None = None,
    n_words: int = 100,
    normalize: bool = False,
) -> FeatureMap:
    """Return the word features that a network has learned, in two dimensions.

    Features of two dimensions are not reduced. Features of more dimensions
    are reduced to the first two principal components over the words chosen.

    Parameters
    ----------
    estimator : NeuralLM, EnergyLM, a mixture with one, or a TextLM of these
        Fitted.
    words : sequence of str, shape (n_words_,), optional
        The word of each id; a `TextLM` has its own.
    of : sequence of str, optional
        Words of the map; by default the first `n_words`.
    n_words : int, default=100
        Number of words if `of` is None: those of the lowest ids, with a `Vocabulary`
        the most frequent.
    normalize : bool, default=False
        Whether to scale the features of each word to unit length first. Words are then
        near each other by the cosine, as for ``TextLM.nearest``, and few long features
        do not take up the map.

    Returns
    -------
    feature_map : FeatureMap

    Raises
    ------
    TypeError
        If the estimator has no word features.
    ValueError
        If `words` does not have one word per id, or lacks a word of `of`.

    Examples
    --------
    >>> from nplm import NeuralLM, TextLM
    >>> from nplm.inspection import feature_map
    >>> network = NeuralLM(n_hidden=4, embedding_dim=3, random_state=0)
    >>> lm = TextLM(network, n_context=2).fit(["a rose is a rose"] * 20)
    >>> found = feature_map(lm, of=["a", "rose", "is"])
    >>> found.positions.shape, found.explained_variance_ratio.sum().round(6)
    ((3, 2), np.float64(1.0))
    """
    check_is_fitted(estimator)
    if words is None:
        vocabulary = getattr(estimator, "vocabulary_", None)
        if vocabulary is None:
            raise ValueError(
                f"words=None, but {type(estimator).__name__} has no vocabulary: "
                "pass the word of each id."
            )
        words = vocabulary.words_
    C = learned_features(getattr(estimator, "estimator_", estimator))
    check_word_of_each(words, len(C), "len(C_)")
    of = list(words[:n_words]) if of is None else list(of)
    features = np.asarray(C, np.float64)[ids_of(of, words, "of")]
    if normalize:
        lengths = np.linalg.norm(features, axis=1, keepdims=True)
        features /= np.maximum(lengths, np.finfo(features.dtype).tiny)
    if features.shape[1] == 2:
        return FeatureMap(of, features, None)
    pca = PCA(2, svd_solver="full").fit(features)
    return FeatureMap(of, pca.transform(features), pca.explained_variance_ratio_)


class FeaturesDisplay(Display):
    """Visualization of word features in two dimensions (section 5.2, item 5).

    Words with similar usage are near each other. Use `from_estimator` to create a
    display.

    Parameters
    ----------
    positions : array-like of float, shape (n, 2)
        Position of each word.
    words : sequence of str, length n
        The words.
    explained_variance_ratio : array-like of float, shape (2,), optional
        Share of the variance of each axis, for principal components; None if the
        features have two dimensions.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure of the axes.
    points_ : matplotlib PathCollection
        A point for each word.
    texts_ : list of matplotlib Annotation
        The words.

    Examples
    --------
    >>> from nplm import NeuralLM, TextLM
    >>> from nplm.inspection import FeaturesDisplay
    >>> network = NeuralLM(n_hidden=4, embedding_dim=2, random_state=0)
    >>> lm = TextLM(network, n_context=2).fit(["a rose is a rose"] * 20)
    >>> display = FeaturesDisplay.from_estimator(lm, of=["a", "rose", "is"])
    >>> display.positions.shape, display.explained_variance_ratio is None
    ((3, 2), True)
    """

    def __init__(
        self,
        positions: ArrayLike,
        words: Sequence[object],
        *,
        explained_variance_ratio: ArrayLike | None = None,
    ) -> None:
        self.positions = np.asarray(positions)
        self.words = list(words)
        self.explained_variance_ratio = explained_variance_ratio

    @classmethod
    def from_estimator(
        cls,
        estimator: object,
        words: Sequence[object] | NDArray[np.object_] | None = None,
        *,
        of: Sequence[object] | None = None,
        n_words: int = 100,
        ax: Axes | None = None,
        text_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Plot the word features that a network has learned; see `feature_map`.

        Parameters
        ----------
        estimator, words, of, n_words
            As of `feature_map`.
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.
        text_kw : dict, optional
            Passed to matplotlib's ``annotate``, such as ``{"fontsize": 7}``.

        Returns
        -------
        display : FeaturesDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.

        See Also
        --------
        feature_map : The same as arrays; its errors are those of the plot.
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        features = feature_map(estimator, words, of=of, n_words=n_words)
        display = cls(
            features.positions,
            features.words,
            explained_variance_ratio=features.explained_variance_ratio,
        )
        return display.plot(ax, text_kw=text_kw)

    def _draw(self, ax: Axes, *, text_kw: dict[str, Any] | None = None) -> None:
        x, y = self.positions.T
        self.points_ = ax.scatter(x, y, s=6, alpha=0.5)
        text_kw = {
            "fontsize": "small",
            "xytext": (2, 2),
            "textcoords": "offset points",
        } | (text_kw or {})
        self.texts_ = [
            ax.annotate(str(word), position, parse_math=False, **text_kw)
            for word, position in zip(self.words, self.positions)
        ]
        if self.explained_variance_ratio is None:
            labels = ["first feature", "second feature"]
        else:
            labels = [
                f"{which} principal component ({ratio:.0%} of the variance)"
                for which, ratio in zip(
                    ("first", "second"), np.asarray(self.explained_variance_ratio)
                )
            ]
        ax.set(xlabel=labels[0], ylabel=labels[1])
