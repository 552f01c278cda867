"""What the displays share: matplotlib, when it is asked for, and axes."""

from __future__ import annotations

from typing import Any

__all__ = ["Display", "above", "check_matplotlib"]


def check_matplotlib(caller: str) -> None:
    """Raise ImportError, with what to do, where matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f'{caller} requires matplotlib: python -m pip install "nplm[plots]".'
        ) from error


class Display:
    """Base of the displays, which are as scikit-learn has them.

    ``from_estimator`` computes what is to be seen, and the object keeps it: ``plot``
    draws it, again and in another manner if need be, without computing anything.
    """

    ax_: Any
    figure_: Any

    def _axes(self, ax: Any) -> Any:
        """Give the axes to draw on, new ones if need be, and remember them."""
        check_matplotlib(f"{type(self).__name__}.plot")
        import matplotlib.pyplot as plt

        self.ax_ = plt.subplots()[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        return self.ax_


def above(ax: Any) -> None:
    """Put a legend above the axes, where it hides nothing."""
    _, labels = ax.get_legend_handles_labels()
    ax.legend(
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=min(len(labels), 3),
        frameon=False,
    )
