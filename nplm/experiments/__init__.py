"""The experiments of the paper, as functions, and those that go past it."""

from nplm.experiments.ablation import ABLATIONS, NETWORKS, as_stream, network
from nplm.experiments.comparison import QUICK, Row, compare, conclusion
from nplm.experiments.paper_tables import TABLES
from nplm.experiments.reports import as_markdown, draw, figures, findings, times
from nplm.experiments.reproduction import reproduce, results_of

__all__ = [
    "ABLATIONS", "NETWORKS", "QUICK", "TABLES", "Row", "as_markdown", "as_stream",
    "compare", "conclusion", "draw", "figures", "findings", "network", "reproduce",
    "results_of", "times",
]  # fmt: skip
