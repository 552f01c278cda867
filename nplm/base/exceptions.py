"""What nplm raises that Python has no name for."""

__all__ = ["CheckpointError", "DivergenceError"]


class CheckpointError(ValueError):
    """A checkpoint is damaged, is another fit's, or another fit is at work there."""


class DivergenceError(ArithmeticError):
    """Training diverged: the loss grew beyond reason or became NaN.

    The model stays as it was before the fit.
    """
