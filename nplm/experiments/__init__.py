"""The experiments of the paper, as functions, and those that go past it."""

from nplm.experiments.ablation import ABLATIONS, NETWORKS, as_stream, network
from nplm.experiments.comparison import QUICK, Row, compare, conclusion

__all__ = [
    "ABLATIONS",
    "NETWORKS",
    "QUICK",
    "Row",
    "as_stream",
    "compare",
    "conclusion",
    "network",
]
