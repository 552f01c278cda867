"""Leave a module whose optional dependency is absent out of the doctests."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("mpi4py") else ["nplm/mpi.py"]
