"""Exceptions of nplm."""

__all__ = ["CheckpointError", "DivergenceError"]


class CheckpointError(ValueError):
    """A checkpoint is damaged, belongs to another fit, or is in use by one."""


class DivergenceError(ArithmeticError):
    """Training diverged: the loss grew beyond reason or became NaN.

    The model stays as it was before the fit.
    """
