"""The experiments of the paper, as functions, and those that go past it."""

from nplm.experiments.ablation import ABLATIONS, NETWORKS, as_stream, network
from nplm.experiments.comparison import Row, compare

__all__ = ["ABLATIONS", "NETWORKS", "Row", "as_stream", "compare", "network"]
