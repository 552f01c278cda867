"""FeaturesDisplay: word features in two dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nplm.inspection._display import Display, check_matplotlib
from nplm.inspection.maps import feature_map

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FeaturesDisplay"]


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
        estimator: Any,
        words: Sequence[object] | NDArray[np.object_] | None = None,
        *,
        of: Sequence[Any] | None = None,
        n_words: int = 100,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Plot the word features that a network has learned; see `feature_map`.

        Parameters
        ----------
        estimator, words, of, n_words
            As of `feature_map`.
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.
        **kwargs : dict
            Passed to `plot`.

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
        return display.plot(ax, **kwargs)

    def plot(
        self, ax: Axes | None = None, *, text_kw: dict[str, Any] | None = None
    ) -> Self:
        """Draw the words.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.
        text_kw : dict, optional
            Passed to matplotlib's ``annotate``, such as ``{"fontsize": 7}``.

        Returns
        -------
        display : FeaturesDisplay
            This object.
        """
        ax = self._axes(ax)
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
        return self
