"""Load corpora: one that is on every machine, the paper's, and your own texts.

Each function returns a `Corpus`: the ids of a training, a validation and a test
part in text order, their windows, and the vocabulary.
"""

from nplm.datasets._corpora import (
    fetch_brown,
    fetch_ptb,
    load_python_docs,
    load_text,
)
from nplm.datasets._wiki import load_wiki
from nplm.datasets.corpus import Corpus

__all__ = [
    "Corpus", "fetch_brown", "fetch_ptb", "load_python_docs", "load_text", "load_wiki",
]  # fmt: skip
