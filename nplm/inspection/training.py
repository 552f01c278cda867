"""Learning curves: the perplexity of a network, epoch by epoch."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from nplm.inspection._display import Display, check_matplotlib

__all__ = ["TrainingDisplay"]


class TrainingDisplay(Display):
    """Learning curves: perplexity by epoch, or by seconds of training.

    It is best made by `from_estimator`; curves of several networks go on the same
    axes, ``from_estimator(other, ax=display.ax_)``.

    Parameters
    ----------
    perplexity : array-like of float, shape (n_epochs,)
        Of the training windows, each just before its update: so that of an epoch is
        that of no one moment, and higher than the network's at its end.
    seconds : array-like of float, shape (n_epochs,)
        What each epoch took.
    val_perplexity : array-like of float, shape (n_epochs,), optional
        Of held-out windows at the end of each epoch, where the fit was given some.
    name : str, optional
        For the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        What was drawn on.
    figure_ : matplotlib Figure
        Whose they are.
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
        cls, estimator: Any, *, name: str | None = None, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Show how a fit went.

        Parameters
        ----------
        estimator : NeuralLM, EnergyLM, ShortlistLM, or a TextLM of these
            Fitted.
        name : str, optional
            For the legend; by default the name of its class.
        ax : matplotlib Axes, optional
            What to draw on; new ones by default.
        **kwargs : dict
            Handed to `plot`.

        Returns
        -------
        display : TrainingDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed (``nplm[plots]``).
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
                f"{type(model).__name__} has no loss an epoch: give a fitted NeuralLM, "
                "EnergyLM or ShortlistLM, or a TextLM of one."
            )
        val_perplexity = np.exp(history["val_loss"])
        display = cls(
            np.exp(history["loss"]),
            history["seconds"],
            val_perplexity=None if np.isnan(val_perplexity).all() else val_perplexity,
            name=type(model).__name__ if name is None else name,
        )
        return display.plot(ax, **kwargs)

    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        x: Literal["epochs", "seconds"] = "epochs",
        **kwargs: Any,
    ) -> Self:
        """Draw the curves, that of the training windows dashed.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            What to draw on; new ones by default.
        name : str, optional
            For the legend.
        x : {"epochs", "seconds"}, default="epochs"
            What the horizontal axis is.
        **kwargs : dict
            For matplotlib's ``plot``, such as ``color="black"``.

        Returns
        -------
        display : TrainingDisplay
            This object.
        """
        if x not in ("epochs", "seconds"):
            raise ValueError(f'x must be "epochs" or "seconds", got {x!r}.')
        ax = self._axes(ax)
        name = self.name if name is None else name
        label = "" if name is None else f"{name}, "
        if x == "epochs":
            at = np.arange(1, len(self.perplexity) + 1)
            ax.xaxis.get_major_locator().set_params(integer=True)
        else:
            at = np.cumsum(self.seconds)
        style = {"marker": ".", "linestyle": "--"} | kwargs
        self.lines_ = ax.plot(at, self.perplexity, label=f"{label}training", **style)
        if self.val_perplexity is not None:
            style = {"marker": "o", "color": self.lines_[0].get_color()} | kwargs
            self.lines_ += ax.plot(
                at, self.val_perplexity, label=f"{label}validation", **style
            )
        ax.set(xlabel="epoch" if x == "epochs" else x, ylabel="perplexity")
        ax.legend()
        return self
