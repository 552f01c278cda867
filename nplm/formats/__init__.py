"""Read and write files of n-gram models, counts, classes and word vectors."""

from nplm.base import lazy_names

# Most programs need few of the formats.
__all__, __getattr__ = lazy_names(__name__, __file__)


def __dir__() -> list[str]:
    return __all__
