"""Files of arrays that are mapped into memory: a header, and what it says is there."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nplm.base.blocks import blocks
from nplm.base.files.atomic_files import allocate, forget, opened, replacing
from nplm.formats._model_files import check_writable, writing

__all__ = ["ArrayFile", "filling_arrays", "is_whole", "write_arrays"]

MAGIC = b"nplm n-grams\r\n\x1a\n"
VERSION = 3
# Arrays begin at lines of the cache; so does the first, after the header.
ALIGNMENT = 64
# Of an array, looked at at once.
BLOCK_BYTES = 1 << 20


def write_arrays(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write a file of arrays; it takes its place when all is written.

    Parameters
    ----------
    path : path-like
        The file.
    header : dict
        What JSON can hold, beside the arrays and the version.
    arrays : dict of ndarray
        One-dimensional, by name.
    """
    little = {
        name: np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        for name, array in arrays.items()
    }
    entries = [
        _entry(name, array.dtype, len(array), zlib.crc32(array.data))
        for name, array in little.items()
    ]
    with writing(path) as file:
        file.write(_prefix(header, entries))
        for array in little.values():
            file.write(array.data)
            file.write(bytes(-array.nbytes % ALIGNMENT))


@contextmanager
def filling_arrays(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    sizes: Mapping[str, tuple[DTypeLike, int]],
) -> Iterator[dict[str, NDArray[Any]]]:
    """Make a file of arrays that are filled where they are, mapped into memory.

    It takes its place when they are filled, and is then what `write_arrays` writes.

    Parameters
    ----------
    path : path-like
        The file.
    header : dict
        What JSON can hold, beside the arrays and the version.
    sizes : dict of (dtype, int)
        The type of each array and its size, by name.

    Yields
    ------
    arrays : dict of ndarray
        Zeros, to be filled.

    Raises
    ------
    OSError
        If the disk has no room for it, before anything is filled.
    """
    path = check_writable(path)
    dtypes = {
        name: np.dtype(dtype).newbyteorder("<") for name, (dtype, _) in sizes.items()
    }
    entries = [_entry(name, dtypes[name], size, 0) for name, (_, size) in sizes.items()]
    first = len(_prefix(header, entries))
    offsets, end = {}, first
    for name, (_, size) in sizes.items():
        offsets[name] = end
        n_bytes = size * dtypes[name].itemsize
        end += n_bytes + -n_bytes % ALIGNMENT
    with replacing(path) as file:
        allocate(file, end, path.absolute().parent)
        arrays = {}
        for name, (_, size) in sizes.items():
            arrays[name] = np.zeros(0, dtype=dtypes[name])
            if size:
                arrays[name] = np.memmap(
                    file, dtypes[name], "r+", offsets[name], shape=(size,)
                )
        yield arrays
        for entry in entries:
            entry["crc32"] = _checksum(arrays[entry["name"]])
        file.seek(0)
        file.write(_prefix(header, entries))


def _entry(name: str, dtype: np.dtype[Any], size: int, crc32: int) -> dict[str, Any]:
    return {"name": name, "dtype": dtype.str, "size": size, "crc32": crc32}


def _prefix(header: Mapping[str, Any], entries: list[dict[str, Any]]) -> bytes:
    """Return what stands before the arrays: as long, whatever the checksums are."""

    def encoded(entries: list[dict[str, Any]]) -> bytes:
        whole = {"version": VERSION} | dict(header) | {"arrays": entries}
        return json.dumps(whole).encode()

    longest = encoded([entry | {"crc32": (1 << 32) - 1} for entry in entries])
    own = encoded(entries).ljust(len(longest))
    prefix = MAGIC + len(own).to_bytes(4, "little")
    prefix += zlib.crc32(own).to_bytes(4, "little") + own
    return prefix + bytes(-len(prefix) % ALIGNMENT)


def _checksum(array: NDArray[Any]) -> int:
    """Return the checksum of an array on disk, part by part."""
    found = 0
    for part in blocks(len(array), BLOCK_BYTES):
        found = zlib.crc32(array[part].data, found)
        forget(array)
    return found


class ArrayFile:
    """A file that `write_arrays` wrote: its header, read and checked.

    Parameters
    ----------
    path : path-like
        The file.

    Raises
    ------
    ValueError
        If it is none, is of another version, or its header is damaged.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        with opened(self.path) as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise ValueError(
                    f"{self.path} is no file of save_binary: it does not begin as one."
                )
            n = int.from_bytes(file.read(4), "little")
            checksum = int.from_bytes(file.read(4), "little")
            self._size = os.fstat(file.fileno()).st_size
            encoded = file.read(min(n, self._size))
            end = file.tell()
        if len(encoded) < n or zlib.crc32(encoded) != checksum:
            raise ValueError(
                f"{self.path} is damaged or cut short: the checksum of its header is "
                "wrong; copy or save it again."
            )
        try:
            self.header = json.loads(encoded)
        except (ValueError, RecursionError) as error:
            raise self.damaged(f"its header is no JSON ({error})") from error
        if not isinstance(self.header, dict) or "version" not in self.header:
            raise self.damaged("its header says no version")
        if self.header["version"] != VERSION:
            raise ValueError(
                f"{self.path} is of version {self.header['version']!r}, but this nplm "
                f"reads version {VERSION}; save the model again with this nplm, or "
                "update it."
            )
        self._first = end + -end % ALIGNMENT

    def damaged(self, why: str) -> ValueError:
        """Return the error that says so."""
        return ValueError(f"{self.path} is damaged: {why}; copy or save it again.")

    def arrays(
        self, dtypes: Mapping[str, np.dtype[Any]], check: Collection[str]
    ) -> dict[str, NDArray[Any]]:
        """Map the arrays into memory.

        Parameters
        ----------
        dtypes : dict of dtype
            What has to be there, by name, in the order of the file.
        check : collection of str
            The arrays to be read, and compared with their checksums.

        Returns
        -------
        arrays : dict of ndarray
            Read-only.

        Raises
        ------
        ValueError
            If something else is there, the file has another size, or a checksum
            is wrong.
        """
        entries = self.header.get("arrays")
        if not isinstance(entries, list) or len(entries) != len(dtypes):
            raise self.damaged(f"its header does not list {len(dtypes)} arrays")
        for (name, dtype), entry in zip(dtypes.items(), entries):
            if not _is_entry(entry, name, dtype):
                raise self.damaged(
                    f"its header has {entry!r} where {name} should be, {dtype.str}"
                )
        arrays, offset = {}, self._first
        for (name, dtype), entry in zip(dtypes.items(), entries):
            n_bytes = entry["size"] * dtype.itemsize
            end = offset + n_bytes + -n_bytes % ALIGNMENT
            if end > self._size:
                raise ValueError(
                    f"{self.path} is cut short: it has {self._size} bytes, but {name} "
                    f"ends at {end}; copy or save it again."
                )
            array = np.zeros(0, dtype=dtype)
            if n_bytes:
                array = np.memmap(
                    self.path, dtype, "r", offset=offset, shape=(entry["size"],)
                )
            if name in check and zlib.crc32(array.data) != entry["crc32"]:
                raise self.damaged(f"the checksum of {name} is wrong")
            arrays[name], offset = array, end
        if offset < self._size:
            raise self.damaged(f"it has {self._size} bytes, but ends at {offset}")
        return arrays


def is_whole(value: Any, least: int, most: int) -> bool:
    """Whether a value of a header is a whole number from `least` to `most`."""
    return type(value) is int and least <= value <= most


def _is_entry(entry: Any, name: str, dtype: np.dtype[Any]) -> bool:
    return (
        isinstance(entry, dict)
        and entry.get("name") == name
        and entry.get("dtype") == dtype.str
        and is_whole(entry.get("size"), 0, np.iinfo(np.int64).max // 8)
        and is_whole(entry.get("crc32"), 0, np.iinfo(np.uint32).max)
    )
