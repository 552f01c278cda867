"""Parts of data, one for each process."""

from __future__ import annotations

import os
from typing import Any, TypeVar

__all__ = ["part_of"]

T = TypeVar("T")


def part_of(data: T, process: int, n_processes: int) -> T:
    """Return the slice of a sequence or array that is the part of a process.

    The parts are contiguous, in order, and as long as each other to within one item.
    """
    if isinstance(data, (str, bytes, os.PathLike)):
        raise TypeError(
            f"data={data!r} is one name: pass a list of names of files, or the array "
            "of a file, such as np.load(path, mmap_mode='r')."
        )
    items: Any = data
    n = len(items)
    if n < n_processes:
        raise ValueError(
            f"data has {n} items, which is too few for parts of {n_processes} "
            "processes; start fewer processes, or make more files."
        )
    part: T = items[n * process // n_processes : n * (process + 1) // n_processes]
    return part
