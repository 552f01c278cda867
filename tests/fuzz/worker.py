"""Read one case after the other, in a process that may crash."""

import contextlib
import faulthandler
import os
import resource
import sys
import time
import traceback
import warnings
from pathlib import Path

from nplm.base.files.compressed import reading
from tests.fuzz.readers import InvalidResultError, read

# Memory that reading may add to the process: this many bytes, and this many for each
# byte of the decompressed files.
FREE_BYTES, MAX_BYTES_PER_BYTE = 64 << 20, 100
# These are also quantized, with a table of the range that the weights are in.
QUANTIZED, FREE_BYTES_QUANTIZED = "binary, unverified", 256 << 20
# Larger allocations fail.
MAX_ADDRESS_SPACE_BYTES = 4 << 30


def serve(pipe, errors):
    """Read each case, (kind, folder), and send its outcome; crashes go to a file."""
    file = open(errors, "w")  # noqa: SIM115  (as long as the process lives)
    os.dup2(file.fileno(), sys.stderr.fileno())
    faulthandler.enable(file)
    os.environ["XDG_CACHE_HOME"] = os.devnull  # no notes of verified files
    limits = MAX_ADDRESS_SPACE_BYTES, MAX_ADDRESS_SPACE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, limits)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("error")
    # Python's warning about a pattern, which is meant for the user.
    warnings.filterwarnings("ignore", "Possible nested set")
    pipe.send("ready")
    with contextlib.suppress(EOFError):
        while True:
            pipe.send(_reported(*pipe.recv()))


def _reported(kind, folder):
    size = sum(map(_size, folder.iterdir()))
    before, start = _restart_peak(), time.perf_counter()
    try:
        report = {"outcome": read(kind, folder)}
    except InvalidResultError as error:
        report = {"outcome": "failed", "why": str(error)}
    except BaseException:
        report = {"outcome": "failed", "why": traceback.format_exc()}
    free = FREE_BYTES_QUANTIZED if kind == QUANTIZED else FREE_BYTES
    report["seconds"] = time.perf_counter() - start
    report["memory"] = memory = _kilobytes("VmHWM") * 1024 - before
    if report["outcome"] != "failed" and memory > free + MAX_BYTES_PER_BYTE * size:
        report |= {"outcome": "failed", "why": f"{memory} bytes of memory for {size}"}
    return report


def _size(path):
    """Return the size of a file, decompressed if it is compressed."""
    if not path.is_file():
        return 0
    size = path.stat().st_size
    with contextlib.suppress(ValueError), reading(path) as file:
        compressed, size = size, 0
        while part := file.read(1 << 16):
            size += len(part)
        size = max(size, compressed)
    return size


def _restart_peak():
    """Reset the peak of memory, if the system can; return the bytes in use."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _kilobytes("VmHWM") * 1024


def _kilobytes(name):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    return 0
