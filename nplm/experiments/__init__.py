"""The experiments of the paper, as functions."""

from nplm.experiments.comparison import Row, compare

__all__ = ["Row", "compare"]
