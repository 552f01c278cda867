"""Files of n-gram models and counts: of SRILM and KenLM, and of nplm itself."""

from nplm.formats.arpa import read_arpa, write_arpa
from nplm.formats.binary import load_binary, save_binary
from nplm.formats.counts import read_counts, write_counts

__all__ = [
    "load_binary",
    "read_arpa",
    "read_counts",
    "save_binary",
    "write_arpa",
    "write_counts",
]
