"""Display: the base class of the displays."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from nplm.base.exceptions import optional_module

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure, SubFigure
else:
    Axes = object  # matplotlib is imported late


def check_matplotlib(caller: str) -> None:
    """Raise an ImportError that says how to install matplotlib if it is missing."""
    optional_module("matplotlib", caller)


class Display:
    """Base class of the displays, which follow scikit-learn's conventions."""

    ax_: Axes
    figure_: Figure | SubFigure
    _draw: Callable[..., None]  # on axes, with the options of `plot`

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw what the display has.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.
        **kwargs : dict
            As of `from_estimator`.

        Returns
        -------
        display : Display
            This object.
        """
        check_matplotlib(f"{type(self).__name__}.plot")
        import matplotlib.pyplot as plt

        new, axes = plt.subplots() if ax is None else (None, ax)
        try:
            self._draw(axes, **kwargs)
        except BaseException:
            if new is not None:  # an empty figure would be shown
                plt.close(new)
            raise
        self.ax_, self.figure_ = axes, axes.figure
        return self


def above(ax: Axes) -> None:
    """Put a legend above the axes, where it hides no data."""
    _, labels = ax.get_legend_handles_labels()
    ax.legend(
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=min(len(labels), 3),
        frameon=False,
    )
