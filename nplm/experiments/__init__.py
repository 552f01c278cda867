"""The experiments of the paper, as functions."""

from nplm.experiments.comparison import compare, conclusion
from nplm.experiments.fits import Row
from nplm.experiments.paper_tables import TABLES, grouped
from nplm.experiments.reports import as_markdown, draw, figures, findings, times
from nplm.experiments.reproduction import reproduce, results_of

__all__ = [
    "TABLES", "Row", "as_markdown", "compare", "conclusion", "draw", "figures",
    "findings", "grouped", "reproduce", "results_of", "times",
]  # fmt: skip
