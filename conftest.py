"""Leave modules whose optional dependency is absent out of the doctests."""

from importlib.util import find_spec

NEEDS_MPI = ["nplm/mpi.py", "nplm/parallel/agreement.py"]
collect_ignore = [] if find_spec("mpi4py") else NEEDS_MPI
