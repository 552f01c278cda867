"""Read and write files of n-gram models, counts, classes and word vectors."""

from importlib import import_module
from typing import Any

# Where each public name is; ``__init__.pyi`` says the same to type checkers.
MODULES = {
    "CountFiles": "nplm.formats.counts.merging",
    "CountTables": "nplm.formats.counts.count_tables",
    "Estimated": "nplm.formats.counts.estimation",
    "count_ngrams": "nplm.formats.counts.counting",
    "estimate_arpa": "nplm.formats.counts.estimation",
    "estimate_binary": "nplm.formats.counts.estimation",
    "load_binary": "nplm.formats.loading",
    "read_arpa": "nplm.formats.arpa.arpa_files",
    "read_class_definitions": "nplm.formats.classes",
    "read_classes": "nplm.formats.classes",
    "read_counts": "nplm.formats.counts.count_files",
    "read_vectors": "nplm.formats.vectors",
    "save_binary": "nplm.formats.binary.writing",
    "write_arpa": "nplm.formats.arpa.arpa_files",
    "write_class_definitions": "nplm.formats.classes",
    "write_classes": "nplm.formats.classes",
    "write_counts": "nplm.formats.counts.count_files",
    "write_fst": "nplm.formats.arpa.text_fst",
    "write_onnx": "nplm.formats.onnx",
    "write_vectors": "nplm.formats.vectors",
}
__all__ = sorted(MODULES)


def __getattr__(name: str) -> Any:
    """Load what is asked for: most programs need few of the formats."""
    if name not in MODULES:
        raise AttributeError(f"module 'nplm.formats' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__
