"""Corpora: one that is on every machine, the paper's, and texts of your own.

Each function returns a ``Bunch`` with the ids of a training, a validation and a
test part in text order, and the words they stand for.
"""

from nplm.datasets._corpora import (
    fetch_brown,
    fetch_ptb,
    load_python_docs,
    load_text,
)

__all__ = ["fetch_brown", "fetch_ptb", "load_python_docs", "load_text"]
