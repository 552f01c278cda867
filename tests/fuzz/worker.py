"""Reads one case after the other, in a process that may crash.

``python -m tests.fuzz.worker``: a line of JSON, (kind, folder), on standard input for
each; a line of JSON for what came of it on standard output.
"""

import contextlib
import faulthandler
import json
import resource
import sys
import time
import traceback
import warnings
from pathlib import Path

from nplm.base.files.compressed import reading
from tests.fuzz.readers import WrongError, read

# Memory that reading may take beside what the process has: so many bytes, and so many
# for each byte of the files, unpacked.
LEAST, A_BYTE = 64 << 20, 100
# Beyond it nothing is given, whatever a file asks for.
ADDRESSES = 4 << 30


def main():
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("error")
    # Python's own of a pattern, which is told to whoever uses it.
    warnings.filterwarnings("ignore", "Possible nested set")
    out, sys.stdout = sys.stdout, sys.stderr
    print(json.dumps({"came": "ready"}), file=out, flush=True)
    for line in sys.stdin:
        kind, folder = json.loads(line)
        print(json.dumps(_reported(kind, Path(folder))), file=out, flush=True)


def _reported(kind, folder):
    size = sum(map(_size, folder.iterdir()))
    before, began = _restart_peak(), time.perf_counter()
    try:
        report = {"came": read(kind, folder)}
    except WrongError as error:
        report = {"came": "wrong", "why": str(error)}
    except BaseException:
        report = {"came": "wrong", "why": traceback.format_exc()}
    report["seconds"] = time.perf_counter() - began
    report["memory"] = taken = _kilobytes("VmHWM") * 1024 - before
    if report["came"] != "wrong" and taken > LEAST + A_BYTE * size:
        report |= {"came": "wrong", "why": f"{taken} bytes of memory for {size}"}
    return report


def _size(path):
    """Bytes of a file, unpacked where it is packed."""
    if not path.is_file():
        return 0
    size = path.stat().st_size
    with contextlib.suppress(ValueError), reading(path) as file:
        packed, size = size, 0
        while part := file.read(1 << 16):
            size += len(part)
        size = max(size, packed)
    return size


def _restart_peak():
    """Let the peak of memory begin anew, where the system does; bytes in use."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _kilobytes("VmHWM") * 1024


def _kilobytes(name):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    return 0


if __name__ == "__main__":
    main()
