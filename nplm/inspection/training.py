"""TrainingDisplay: learning curves of a network."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from nplm.inspection._display import Axes, Display, check_matplotlib


class TrainingDisplay(Display):
    """Learning curves: perplexity by epoch, or by seconds of training.

    Use `from_estimator` to create a display. To compare several networks, draw them on
    the same axes: ``from_estimator(other, ax=display.ax_)``.

    Parameters
    ----------
    perplexity : array-like of float, shape (n_epochs,)
        Perplexity of the training windows in each epoch. Each window is scored just
        before its update, so the value is higher than at the end of the epoch.
    seconds : array-like of float, shape (n_epochs,)
        Duration of the training of each epoch, without scoring.
    val_perplexity : array-like of float, shape (n_epochs,), optional
        Perplexity of the held-out windows at the end of each epoch, if there are any.
    name : str, optional
        Name in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure of the axes.
    lines_ : list of matplotlib Line2D
        The training curve, and the held-out one if there is one.

    Examples
    --------
    >>> import numpy as np
    >>> from nplm import NeuralLM, windows
    >>> from nplm.inspection import TrainingDisplay
    >>> X, y = windows(np.tile([0, 1, 2, 3], 50), 2)
    >>> lm = NeuralLM(n_hidden=4, max_iter=2, random_state=0).fit(X, y)
    >>> display = TrainingDisplay.from_estimator(lm)
    >>> display.perplexity.shape, display.val_perplexity.shape
    ((2,), (2,))
    """

    def __init__(
        self,
        perplexity: ArrayLike,
        seconds: ArrayLike,
        *,
        val_perplexity: ArrayLike | None = None,
        name: str | None = None,
    ) -> None:
        self.perplexity = np.asarray(perplexity)
        self.seconds = np.asarray(seconds)
        self.val_perplexity = (
            None if val_perplexity is None else np.asarray(val_perplexity)
        )
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: object,
        *,
        name: str | None = None,
        x: Literal["epochs", "seconds"] = "epochs",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Plot the learning curves of a fitted network; that of training is dashed.

        Parameters
        ----------
        estimator : NeuralLM, EnergyLM, ShortlistLM, or a TextLM of these
            Fitted.
        name : str, optional
            Name in the legend; by default that of the class.
        x : {"epochs", "seconds"}, default="epochs"
            Unit of the horizontal axis.
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.
        **kwargs : dict
            Passed to matplotlib's ``plot``, such as ``color="black"``.

        Returns
        -------
        display : TrainingDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If the estimator is not trained in epochs.
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        check_is_fitted(estimator)
        model = getattr(estimator, "estimator_", estimator)
        model = getattr(model, "network_", model)
        history = getattr(model, "history_", {})
        if "loss" not in history:
            raise TypeError(
                f"{type(model).__name__} has no loss per epoch: pass a fitted "
                "NeuralLM, EnergyLM or ShortlistLM, or a TextLM of one."
            )
        val_perplexity = np.exp(history["val_loss"])
        display = cls(
            np.exp(history["loss"]),
            history["seconds"],
            val_perplexity=None if np.isnan(val_perplexity).all() else val_perplexity,
            name=type(model).__name__ if name is None else name,
        )
        return display.plot(ax, x=x, **kwargs)

    def _draw(
        self,
        ax: Axes,
        *,
        name: str | None = None,
        x: Literal["epochs", "seconds"] = "epochs",
        **kwargs: Any,
    ) -> None:
        if x not in ("epochs", "seconds"):
            raise ValueError(f'x must be "epochs" or "seconds", got {x!r}.')
        name = self.name if name is None else name
        label = "" if name is None else f"{name}, "
        if x == "epochs":
            times = np.arange(1, len(self.perplexity) + 1)
            ax.locator_params(axis="x", integer=True)
        else:
            times = np.cumsum(self.seconds)
        style = {"marker": ".", "linestyle": "--"} | kwargs
        self.lines_ = ax.plot(times, self.perplexity, label=f"{label}training", **style)
        if self.val_perplexity is not None:
            style = {"marker": "o", "color": self.lines_[0].get_color()} | kwargs
            self.lines_ += ax.plot(
                times, self.val_perplexity, label=f"{label}validation", **style
            )
        ax.set(xlabel="epoch" if x == "epochs" else x, ylabel="perplexity")
        ax.legend()
