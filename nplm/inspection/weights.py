"""MixtureWeightsDisplay: the weights of the members of a mixture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from nplm.inspection._display import Axes, Display, above, check_matplotlib

ORDERS = ("uniform", "unigram", "bigram", "trigram")


class MixtureWeightsDisplay(Display):
    r"""Weights of the members of a mixture, by training frequency of the context.

    Use `from_estimator` to create a display.

    Parameters
    ----------
    weights : array-like of float, shape (n_bins, n_members) or (n_members,)
        The weights; rows sum to 1.
    names : sequence of str, length n_members
        Names of the members.
    bins : array-like of int, shape (n_bins,), optional
        The :math:`q = \lceil -\log((1 + freq) / T) \rceil` of each row (footnote 4
        of the paper), for frequencies of the context among T tokens, from the largest
        to 0.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure of the axes.
    bars_ : list of matplotlib BarContainer
        For each member, a bar for each bin, stacked on those of previous members.

    Examples
    --------
    >>> import numpy as np
    >>> from nplm import InterpolatedTrigram, windows
    >>> from nplm.inspection import MixtureWeightsDisplay
    >>> X, y = windows(np.random.default_rng(0).integers(0, 5, 200), 2)
    >>> model = InterpolatedTrigram(n_words=5).fit(X, y)
    >>> display = MixtureWeightsDisplay.from_estimator(model)
    >>> display.names
    ['uniform', 'unigram', 'bigram', 'trigram']
    """

    def __init__(
        self, weights: ArrayLike, names: Sequence[str], *, bins: ArrayLike | None = None
    ) -> None:
        self.weights = np.atleast_2d(np.asarray(weights))
        self.names = list(names)
        self.bins = None if bins is None else np.asarray(bins)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Axes | None = None, **kwargs: Any
    ) -> Self:
        """Plot the weights of a mixture.

        Parameters
        ----------
        estimator : MixtureLM, InterpolatedTrigram, or a TextLM of one
            Fitted.
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.
        **kwargs : dict
            Passed to matplotlib's ``bar``, such as ``width=1``.

        Returns
        -------
        display : MixtureWeightsDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If the estimator is not a mixture.
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        check_is_fitted(estimator)
        model = getattr(estimator, "estimator_", estimator)
        names = member_names(model)
        if not names:
            raise TypeError(
                f"{type(model).__name__} is not a mixture: pass a MixtureLM or an "
                "InterpolatedTrigram."
            )
        weights = model.weights_
        bins = getattr(model, "bins_", None) if weights.ndim == 2 else None
        return cls(weights, names, bins=bins).plot(ax, **kwargs)

    def _draw(self, ax: Axes, **kwargs: Any) -> None:
        columns = np.arange(len(self.weights)) if self.bins is None else self.bins
        bottom = np.zeros(len(self.weights))
        self.bars_ = []
        for name, weight in zip(self.names, self.weights.T):
            self.bars_.append(
                ax.bar(columns, weight, bottom=bottom, label=name, **kwargs)
            )
            bottom = bottom + weight
        if self.bins is None:
            ax.set_xticks([0], ["all contexts"])
        else:
            ax.set_xlabel("bin q of the context: often seen (left) to never (right)")
            ax.locator_params(axis="x", integer=True)
        ax.set_ylabel("weight")
        above(ax)


def member_names(model: object) -> list[str]:
    """Return the names of a mixture's members, or of a trigram's orders; else []."""
    members = getattr(model, "named_estimators_", None)
    if members is not None:
        return list(members)
    weights = getattr(model, "weights_", None)
    if weights is None:
        return []
    n_orders = weights.shape[1]
    return [*ORDERS, *(f"{n}-gram" for n in range(4, n_orders))][:n_orders]
