"""Perplexity by model, and by how often the context or the word was seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nplm.base.checks import check_ids
from nplm.inspection._display import Display, above, check_matplotlib

__all__ = ["PerplexityDisplay"]


class PerplexityDisplay(Display):
    """Perplexity of several models on the same windows, whole or in bins.

    A model of counts knows what it has seen often, and one that generalises what it has
    not: bins by how often the context, or the word, was seen in training show where
    each is ahead. It is best made by `from_estimator`.

    Parameters
    ----------
    perplexity : array-like of float, shape (n_models, n_bins)
        Of each model in each bin; nan where there is no token.
    names : sequence of str, length n_models
        The models'.
    n_tokens : array-like of int, shape (n_bins,)
        Tokens in each bin.
    bins : array-like of int, shape (n_bins,), optional
        The least frequency of each; None for one bin that has all tokens.
    by : {"context", "word"}, optional
        Whose frequency it is.

    Attributes
    ----------
    ax_ : matplotlib Axes
        What was drawn on.
    figure_ : matplotlib Figure
        Whose they are.
    bars_ : matplotlib BarContainer
        Without bins, a bar a model.
    lines_ : list of matplotlib Line2D
        With bins, a line a model.

    Examples
    --------
    >>> import numpy as np
    >>> from nplm import InterpolatedTrigram, UniformLM, windows
    >>> from nplm.inspection import PerplexityDisplay
    >>> X, y = windows(np.random.default_rng(0).zipf(1.5, 500) % 20, 2)
    >>> train, test = (X[:400], y[:400]), (X[400:], y[400:])
    >>> models = {"trigram": InterpolatedTrigram(n_words=20).fit(*train),
    ...           "uniform": UniformLM(n_words=20).fit(*train)}
    >>> display = PerplexityDisplay.from_estimator(
    ...     models, *test, by="word", train=train, bins=[0, 10, 100])
    >>> display.perplexity.shape, int(display.n_tokens.sum())
    ((2, 3), 98)
    """

    def __init__(
        self,
        perplexity: ArrayLike,
        names: Sequence[str],
        n_tokens: ArrayLike,
        *,
        bins: ArrayLike | None = None,
        by: str | None = None,
    ) -> None:
        self.perplexity = np.asarray(perplexity, np.float64)
        self.names = list(names)
        self.n_tokens = np.asarray(n_tokens)
        self.bins = None if bins is None else np.asarray(bins)
        self.by = by

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        by: Literal["context", "word"] | None = None,
        train: tuple[ArrayLike, ArrayLike] | None = None,
        n_context: int = 2,
        bins: ArrayLike | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Score windows by one model or several.

        Parameters
        ----------
        estimator : language model, or dict of str to language model
            Fitted, on windows of as many columns as X has.
        X : array-like of int, shape (n_samples, n_context)
            Contexts, the nearest word in the last column.
        y : array-like of int, shape (n_samples,)
            Next words.
        by : {"context", "word"}, optional
            Bins by how often the nearest `n_context` words, or the next word, were
            seen in the training windows; by default there are none.
        train : tuple of (X, y), optional
            The training windows, for `by`.
        n_context : int, default=2
            Words of a context that is looked for in the training windows.
        bins : array-like of int, optional
            The least frequency of each bin, rising from 0; by default 0, 1, 10, 100
            and so on.
        ax : matplotlib Axes, optional
            What to draw on; new ones by default.
        **kwargs : dict
            Handed to `plot`.

        Returns
        -------
        display : PerplexityDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed (``nplm[plots]``).
        ValueError
            If bins are asked for without training windows, or do not rise from 0.
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        models = estimator if isinstance(estimator, Mapping) else None
        models = models or {type(estimator).__name__: estimator}
        log_prob = np.array([model.log_prob(X, y) for model in models.values()])
        edges, place = None, np.zeros(log_prob.shape[1], np.intp)
        if by is not None:
            frequency = _frequency(X, y, by, train, n_context)
            edges = _edges(bins, int(frequency.max()))
            place = np.searchsorted(edges, frequency, side="right") - 1
        n_bins = 1 if edges is None else len(edges)
        n_tokens = np.bincount(place, minlength=n_bins)
        total = [np.bincount(place, row, minlength=n_bins) for row in log_prob]
        with np.errstate(invalid="ignore", over="ignore"):
            perplexity = np.exp(-np.array(total) / n_tokens)
        display = cls(perplexity, list(models), n_tokens, bins=edges, by=by)
        return display.plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw a bar for each model, or with bins a line.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            What to draw on; new ones by default.
        **kwargs : dict
            For matplotlib's ``barh``, or for its ``plot``.

        Returns
        -------
        display : PerplexityDisplay
            This object.
        """
        ax = self._axes(ax)
        if self.bins is None:
            self._plot_bars(ax, kwargs)
        else:
            self._plot_lines(ax, kwargs)
        return self

    def _plot_bars(self, ax: Any, kwargs: dict[str, Any]) -> None:
        values = self.perplexity[:, 0]
        rows = np.arange(len(values))
        self.bars_ = ax.barh(rows, values, **kwargs)
        ax.bar_label(self.bars_, fmt="%.1f", padding=3)
        ax.set_yticks(rows, self.names)
        ax.invert_yaxis()
        ax.margins(x=0.12)
        ax.set_xlabel("perplexity")

    def _plot_lines(self, ax: Any, kwargs: dict[str, Any]) -> None:
        from matplotlib.ticker import LogFormatter

        assert self.bins is not None
        columns = np.arange(len(self.bins))
        style = {"marker": "o"} | kwargs
        self.lines_ = [
            line
            for name, row in zip(self.names, self.perplexity)
            for line in ax.plot(columns, row, label=name, **style)
        ]
        share = self.n_tokens / self.n_tokens.sum()
        ax.set_xticks(
            columns,
            [f"{name}\n{part:.0%}" for name, part in zip(_named(self.bins), share)],
        )
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter("{x:g}")
        # Labels between the powers of ten where there are few of these.
        ax.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1.2, 0.4)))
        ax.set(
            xlabel=f"times that the {self.by} was seen in training; share of tokens",
            ylabel="perplexity",
        )
        above(ax)


def _frequency(
    X: ArrayLike,
    y: ArrayLike,
    by: str,
    train: tuple[ArrayLike, ArrayLike] | None,
    n_context: int,
) -> NDArray[np.intp]:
    """Say how often the context or the word of each window was seen in training."""
    if by not in ("context", "word"):
        raise ValueError(f'by must be "context", "word" or None, got {by!r}.')
    if train is None:
        raise ValueError(
            f"by={by!r} counts in the training windows: give them, train=(X, y)."
        )
    if by == "word":
        seen, asked = (
            check_ids(ids, name, ndim=1)[:, np.newaxis]
            for ids, name in ((train[1], "y of train"), (y, "y"))
        )
    else:
        seen, asked = (
            check_ids(ids, name, ndim=2)[:, -n_context:]
            for ids, name in ((train[0], "X of train"), (X, "X"))
        )
    both = np.concatenate([seen, asked])
    _, kind = np.unique(both, axis=0, return_inverse=True)
    kind = kind.ravel()
    counts = np.bincount(kind[: len(seen)], minlength=int(kind.max()) + 1)
    return counts[kind[len(seen) :]]


def _edges(bins: ArrayLike | None, most: int) -> NDArray[np.int64]:
    """Give the least frequency of each bin."""
    if bins is None:
        n_digits = len(str(most)) if most else 0
        return np.array([0, *(10**i for i in range(n_digits))])
    edges = np.asarray(bins)
    if (
        edges.ndim != 1
        or len(edges) == 0
        or edges[0] != 0
        or (np.diff(edges) <= 0).any()
    ):
        raise ValueError(
            f"bins must be the least frequency of each, rising from 0, got {bins!r}."
        )
    return edges


def _named(edges: NDArray[Any]) -> list[str]:
    """Say which frequencies each bin has."""
    names = []
    for first, after in zip(edges, [*edges[1:], None]):
        if after is None:
            names.append(f"{first:,} or more" if first else "all")
        elif after == first + 1:
            names.append("never" if first == 0 else f"{first:,}")
        else:
            names.append(f"{first:,} to {after - 1:,}")
    return names
