"""Leave what needs an absent optional dependency out of the doctests."""

from importlib.util import find_spec

NEEDS_MPI = ["nplm/mpi.py", "nplm/parallel/agreement.py", "docs/guide/parallel.rst"]
collect_ignore = [] if find_spec("mpi4py") else NEEDS_MPI
