"""Load corpora: one that is on every machine, the paper's, and your own texts.

Each function returns a `Corpus`: the ids of a training, a validation and a test
part in text order, their windows, and the vocabulary. `TextLines` reads text of any
size as a stream of documents.
"""

from nplm.datasets._corpora import fetch_brown, fetch_ptb, load_python_docs, load_text
from nplm.datasets._wiki import load_wiki
from nplm.datasets.corpus import Corpus
from nplm.datasets.text_lines import TextLines

__all__ = [
    "Corpus", "TextLines", "fetch_brown", "fetch_ptb", "load_python_docs", "load_text",
    "load_wiki",
]  # fmt: skip
