"""Read and write files of n-gram models, counts, classes and word vectors."""

from nplm.formats.arpa.arpa_files import read_arpa, write_arpa
from nplm.formats.binary.binary_files import load_binary, save_binary
from nplm.formats.classes import read_classes, write_classes
from nplm.formats.counts.count_files import read_counts, write_counts
from nplm.formats.counts.count_tables import CountTables
from nplm.formats.counts.estimation import Estimated, estimate_arpa, estimate_binary
from nplm.formats.onnx import write_onnx
from nplm.formats.vectors import read_vectors, write_vectors

__all__ = [
    "CountTables",
    "Estimated",
    "estimate_arpa",
    "estimate_binary",
    "load_binary",
    "read_arpa",
    "read_classes",
    "read_counts",
    "read_vectors",
    "save_binary",
    "write_arpa",
    "write_classes",
    "write_counts",
    "write_onnx",
    "write_vectors",
]
