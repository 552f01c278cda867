"""The windows of a fit: those that it trains on, and those that it holds out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm.base.checks import plain
from nplm.base.warnings import warn

__all__ = ["ENOUGH_WINDOWS", "Windows", "with_held_out"]

# Of so many windows a fit holds some out, where it is not told.
ENOUGH_WINDOWS = 100


@dataclass(frozen=True)
class Windows:
    """What a fit works on, checked."""

    X: NDArray[np.int32]
    y: NDArray[np.int32]
    held_out: tuple[NDArray[np.int32], NDArray[np.int32]] | None

    def held_back(self, n: int) -> Windows:
        """Give the same with the last n held out."""
        X, y = self.X, self.y
        return Windows(X[:-n], y[:-n], (X[-n:], y[-n:]))


def with_held_out(lm: Any, windows: Windows) -> Windows:
    """Give windows of which some are held out, where `lm` is to do that by itself."""
    n_windows = len(windows.y)
    if windows.held_out is not None or not lm.early_stopping:  # NumPy's False too
        return windows
    if lm.early_stopping == "auto" and n_windows < ENOUGH_WINDOWS:
        _warn_of_no_end(lm, n_windows)
        return windows
    n_val = max(1, round(plain(lm.validation_fraction) * n_windows))
    if n_val >= n_windows:
        raise ValueError(
            f"early_stopping={lm.early_stopping!r} holds out {n_val} of {n_windows} "
            "windows and leaves none to train on; give more windows, a smaller "
            "validation_fraction, or X_val and y_val."
        )
    return windows.held_back(n_val)


def _warn_of_no_end(lm: Any, n_windows: int) -> None:
    """Warn where held-out windows should end a fit, and there are none."""
    if lm.learning_rate == "adaptive":
        warn(
            f"{type(lm).__name__}: too few windows to hold some out "
            f"({n_windows} of {ENOUGH_WINDOWS}), and without these nothing lowers "
            f"the step or ends the fit before epoch {lm.max_iter}, by which "
            "it may learn the windows by heart: give held-out data (X_val; in nplm "
            "train --valid), or say how long to train without (early_stopping="
            "False and max_iter; --schedule linear and --epochs).",
            UserWarning,
        )
