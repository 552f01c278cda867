"""nplm: neural and n-gram language models with a scikit-learn API.

The models of Bengio, Ducharme, Vincent and Jauvin (2003), *A Neural
Probabilistic Language Model*, Journal of Machine Learning Research 3.
"""

import nplm._kernels  # noqa: F401 (first: unbuilt sources say what to run)
from nplm.base import lazy_names

__version__ = "0.1.0"

SUBMODULES = ("datasets", "experiments", "formats", "inspection", "kenlm")

# Most programs need few of the models.
__all__, __getattr__ = lazy_names(__name__, __file__, SUBMODULES)


def __dir__() -> list[str]:
    return sorted({*__all__, *SUBMODULES, "mpi", "__version__"})
