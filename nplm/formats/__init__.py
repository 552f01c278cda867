"""Files of n-gram models and counts, shared with SRILM and KenLM."""

from nplm.formats.arpa import read_arpa, write_arpa

__all__ = ["read_arpa", "write_arpa"]
