"""PerplexityDisplay: perplexity by model, and by training frequency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from nplm.base.array_types import AnyArray, Counts, Index
from nplm.base.checks import check_ids
from nplm.base.estimators.scored_texts import perplexities
from nplm.inspection._display import Axes, Display, above, check_matplotlib


class PerplexityDisplay(Display):
    """Perplexity of several models on the same windows, in total or in bins.

    Models of counts are good at frequent contexts, and models that generalise at rare
    ones: bins by the training frequency of the context, or of the word, show where
    each is better. Use `from_estimator` to create a display.

    Parameters
    ----------
    perplexity : array-like of float, shape (n_models, n_bins)
        Perplexity of each model in each bin; NaN in a bin without tokens.
    names : sequence of str, length n_models
        Names of the models.
    n_tokens : array-like of int, shape (n_bins,)
        Number of tokens in each bin.
    bins : array-like of int, shape (n_bins,), optional
        The least frequency of each bin; None for a single bin of all tokens.
    by : {"context", "word"}, optional
        Whether bins are of context or word frequencies.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure of the axes.
    bars_ : matplotlib BarContainer
        Without bins, a bar for each model.
    lines_ : list of matplotlib Line2D
        With bins, a line for each model.

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
        estimator: object,
        X: ArrayLike,
        y: ArrayLike,
        *,
        by: Literal["context", "word"] | None = None,
        train: tuple[ArrayLike, ArrayLike] | None = None,
        n_context: int = 2,
        bins: ArrayLike | None = None,
        ax: Axes | None = None,
        **kwargs: object,
    ) -> Self:
        """Plot the perplexity of one or several models on windows.

        Parameters
        ----------
        estimator : language model, or dict of str to language model
            Fitted on windows with the same number of columns as X.
        X : array-like of int, shape (n_samples, n_context)
            Contexts, the nearest word in the last column.
        y : array-like of int, shape (n_samples,)
            Next words.
        by : {"context", "word"}, optional
            Bin by the training frequency of the nearest `n_context` words, or of the
            next word; by default there are no bins.
        train : tuple of (X, y), optional
            The training windows; required with `by`.
        n_context : int, default=2
            Number of words of the contexts that are counted in the training windows.
        bins : array-like of int, optional
            The least frequency of each bin, increasing from 0; by default 0, 1, 10, 100
            and so on.
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.
        **kwargs : dict
            Passed to matplotlib's ``barh``, or ``plot`` if there are bins.

        Returns
        -------
        display : PerplexityDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If `by` is given without training windows, or `bins` do not increase from 0.
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        models = estimator if isinstance(estimator, Mapping) else None
        models = models or {type(estimator).__name__: estimator}
        log_prob = np.array([model.log_prob(X, y) for model in models.values()])
        edges, bin_of = None, np.zeros(log_prob.shape[1], np.intp)
        if by is not None:
            frequency = _frequency(X, y, by, train, n_context)
            edges = _edges(bins, int(frequency.max()))
            bin_of = np.searchsorted(edges, frequency, side="right") - 1
        n_bins = 1 if edges is None else len(edges)
        n_tokens = np.bincount(bin_of, minlength=n_bins)
        total = [np.bincount(bin_of, row, minlength=n_bins) for row in log_prob]
        display = cls(
            perplexities(total, n_tokens), list(models), n_tokens, bins=edges, by=by
        )
        return display.plot(ax, **kwargs)

    def _draw(self, ax: Axes, **kwargs: Any) -> None:
        if self.bins is not None:
            self._draw_lines(ax, self.bins, kwargs)
            return
        values = self.perplexity[:, 0]
        rows = np.arange(len(values))
        self.bars_ = ax.barh(rows, values, **kwargs)
        ax.bar_label(self.bars_, fmt="%.1f", padding=3)
        ax.set_yticks(rows, self.names)
        ax.invert_yaxis()
        ax.margins(x=0.12)
        ax.set_xlabel("perplexity")

    def _draw_lines(self, ax: Axes, bins: AnyArray, kwargs: dict[str, Any]) -> None:
        from matplotlib.ticker import LogFormatter

        columns = np.arange(len(bins))
        style = {"marker": "o"} | kwargs
        self.lines_ = [
            line
            for name, row in zip(self.names, self.perplexity)
            for line in ax.plot(columns, row, label=name, **style)
        ]
        share = self.n_tokens / self.n_tokens.sum()
        ax.set_xticks(
            columns,
            [f"{name}\n{part:.0%}" for name, part in zip(_named(bins), share)],
        )
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter("{x:g}")
        # Also label values between powers of ten if there are few of these.
        ax.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1.2, 0.4)))
        ax.set(
            xlabel=f"frequency of the {self.by} in training; share of tokens",
            ylabel="perplexity",
        )
        above(ax)


def _frequency(
    X: ArrayLike,
    y: ArrayLike,
    by: str,
    train: tuple[ArrayLike, ArrayLike] | None,
    n_context: int,
) -> Index:
    """Return the training frequency of the context or the word of each window."""
    if by not in ("context", "word"):
        raise ValueError(f'by must be "context", "word" or None, got {by!r}.')
    if train is None:
        raise ValueError(f"by={by!r} needs the training windows: pass train=(X, y).")
    if by == "word":
        seen, scored = (
            check_ids(ids, name, ndim=1)[:, np.newaxis]
            for ids, name in ((train[1], "y of train"), (y, "y"))
        )
    else:
        seen, scored = (
            check_ids(ids, name, ndim=2)[:, -n_context:]
            for ids, name in ((train[0], "X of train"), (X, "X"))
        )
    both = np.concatenate([seen, scored])
    _, kind = np.unique(both, axis=0, return_inverse=True)
    kind = kind.ravel()
    counts = np.bincount(kind[: len(seen)], minlength=int(kind.max()) + 1)
    return counts[kind[len(seen) :]]


def _edges(bins: ArrayLike | None, most: int) -> Counts:
    """Return the least frequency of each bin."""
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
            "bins must be the least frequency of each bin, increasing from 0, got "
            f"{bins!r}."
        )
    return edges


def _named(edges: AnyArray) -> list[str]:
    """Return the label of each bin: its frequencies."""
    names = []
    for first, after in zip(edges, [*edges[1:], None]):
        if after is None:
            names.append(f"{first:,} or more" if first else "all")
        elif after == first + 1:
            names.append("never" if first == 0 else f"{first:,}")
        else:
            names.append(f"{first:,} to {after - 1:,}")
    return names
