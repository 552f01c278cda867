"""Safetensors files: a header in JSON, then arrays that can be mapped into memory.

The first eight bytes give the length of the header. The header gives the type, the
shape and the place of each array, and text of the writer's own. Each array begins at a
line of the cache; the format allows no gaps, so arrays of zeros stand between them.

The tests compare these files with the ``safetensors`` package.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import zlib
from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nplm.base.array_types import AnyArray, Bytes
from nplm.base.files.atomic_files import (
    allocate,
    followed,
    opened,
    release_pages,
    replacing,
    use_large_pages,
)

# Every array begins at a line of the cache.
ALIGNMENT_BYTES = 64
# The safetensors package refuses longer headers.
MAX_HEADER_BYTES = 100_000_000
# Checksums of mapped arrays are computed block by block.
BLOCK_BYTES = 1 << 20
METADATA = "__metadata__"
# Names of the arrays of zeros between the others.
PADDING = "__padding__"
CHECKSUM, MAX_CHECKSUM = "crc32", (1 << 32) - 1
TYPES = {
    "F64": "<f8", "I64": "<i8", "U64": "<u8", "F32": "<f4", "I32": "<i4", "U32": "<u4",
    "F16": "<f2", "I16": "<i2", "U16": "<u2", "I8": "<i1", "U8": "<u1", "BOOL": "|b1",
}  # fmt: skip
DTYPES = {name: np.dtype(kind) for name, kind in TYPES.items()}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


class NotTensorsError(ValueError):
    """A file does not begin as a safetensors file."""


class FileArray(np.memmap):
    """An array mapped from a file that is open for writing."""

    file: Any = None

    def __array_finalize__(self, obj: Any) -> None:
        super().__array_finalize__(obj)
        self.file = getattr(obj, "file", None)


def put(
    target: Any, values: NDArray[Any], file: Any = None, piece: int | None = None
) -> None:
    """Copy values into an array of their size and type, through its file if it has one.

    The system fills a page of a mapped file with zeros before the first value comes,
    but not one that is written as a whole.
    """
    file = getattr(target, "file", file)
    if file is None or not target.size:
        target[:] = values
        return
    memory = np.frombuffer(target._mmap, np.uint8)
    mapped = target.offset - target.offset % mmap.ALLOCATIONGRANULARITY
    at = mapped + target.ctypes.data - memory.ctypes.data
    rest = np.ascontiguousarray(values, target.dtype).reshape(-1).view(np.uint8).data
    while rest:
        n_written = os.pwrite(file.fileno(), rest[:piece], at)
        rest, at = rest[n_written:], at + n_written


def is_storable(dtype: np.dtype[Any]) -> bool:
    """Whether a file can hold arrays of this type, in any byte order."""
    return dtype.newbyteorder("<") in NAMES


def write_tensors(
    path: str | os.PathLike[str],
    arrays: Mapping[str, NDArray[Any]],
    metadata: Mapping[str, str],
    sizes: Mapping[str, tuple[DTypeLike, int]] = MappingProxyType({}),
    fill: Callable[[dict[str, NDArray[Any]]], object] = lambda arrays: None,
) -> str:
    """Write arrays and text to a file, which appears when it is complete.

    `fill` is called with the arrays of `sizes` (type and length), zeros mapped into
    memory, for which OSError is raised if the disk has no room. Mapped `arrays` are
    released from memory. Returns the checksum of the header.
    """
    types = {n: (a.dtype.newbyteorder("<"), a.shape) for n, a in arrays.items()}
    types |= {
        n: (np.dtype(t).newbyteorder("<"), (size,)) for n, (t, size) in sizes.items()
    }
    entries, n_bytes = _entries(types)
    start = len(_header(entries, metadata, dict.fromkeys(types, 0))[0])
    begins = {name: start + entries[name]["data_offsets"][0] for name in types}
    with replacing(Path(path)) as file:
        if sizes:
            allocate(file, start + n_bytes, followed(Path(path).absolute()).parent)
        else:
            file.truncate(start + n_bytes)
        sums = {}
        for name, array in arrays.items():
            file.seek(begins[name])
            little = np.asanyarray(array, types[name][0], order="C").reshape(-1)
            sums[name] = _checksum(little, file.write)
        file.flush()
        filled = {}
        for name in sizes:
            dtype, shape = types[name]
            filled[name] = np.zeros(shape, dtype)
            if filled[name].size:
                mapped = FileArray(file, dtype, "r+", begins[name], shape)
                mapped.file, filled[name] = file, mapped
                use_large_pages(mapped)
        fill(filled)
        sums |= {name: _checksum(array) for name, array in filled.items()}
        header, checksum = _header(entries, metadata, sums)
        file.seek(0)
        file.write(header)
    return checksum


def _entries(
    types: Mapping[str, tuple[np.dtype[np.generic], tuple[int, ...]]],
) -> tuple[dict[str, Any], int]:
    """Return the entries of arrays and of the padding between them, and the end."""
    entries: dict[str, Any] = {}
    end = 0

    def add(name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        nonlocal end
        start, end = end, end + dtype.itemsize * math.prod(shape)
        places = {"shape": list(shape), "data_offsets": [start, end]}
        entries[name] = {"dtype": NAMES[dtype]} | places

    for name, (dtype, shape) in types.items():
        if padding := -end % ALIGNMENT_BYTES:
            add(f"{PADDING}{len(entries)}", np.dtype(np.uint8), (padding,))
        add(name, dtype, shape)
    return entries, end


def _header(
    entries: Mapping[str, Any], metadata: Mapping[str, str], sums: dict[str, int]
) -> tuple[bytes, str]:
    """Return the bytes before the arrays, and their checksum."""

    def encoded(sums: dict[str, int]) -> tuple[bytes, str]:
        text = dict(metadata) | {"arrays": json.dumps(sums)}
        header: dict[str, Any] = {METADATA: text} | dict(entries)
        text[CHECKSUM] = checksum = header_checksum(header)
        return json.dumps(header).encode(), checksum

    n = len(encoded(dict.fromkeys(sums, MAX_CHECKSUM))[0])
    n += -(8 + n) % ALIGNMENT_BYTES
    header, checksum = encoded(sums)
    return n.to_bytes(8, "little") + header.ljust(n), checksum


def _checksum(
    array: NDArray[Any], write: Callable[[Any], object] = lambda block: None
) -> int:
    """Return the checksum of an array, write its blocks, and release it if mapped."""
    checksum, step = 0, BLOCK_BYTES // array.dtype.itemsize
    for at in range(0, len(array), step):
        block = array[at : at + step].data
        checksum = zlib.crc32(block, checksum)
        write(block)
        release_pages(array)
    return checksum


class TensorFile:
    """A file of `write_tensors`: the header is read and checked, the arrays are not.

    Its `stamp` differs once the file is written, replaced or moved. Raises
    NotTensorsError for another file, and ValueError for a damaged header.
    """

    def __init__(
        self, path: str | os.PathLike[str], file: BinaryIO | None = None
    ) -> None:
        self.path = Path(path)
        with opened(self.path) if file is None else nullcontext(file) as source:
            self._read(source)

    def _read(self, file: BinaryIO) -> None:
        file.seek(0)
        self.stamp = stamp_of(file.fileno())
        size = os.fstat(file.fileno()).st_size
        start = file.read(9)
        n = int.from_bytes(start[:8], "little")
        if not begins_as_tensors(start):
            raise NotTensorsError("it does not begin like a safetensors file")
        if n > size - 8:
            raise ValueError(f"it is truncated: its header has {n} bytes")
        header = _parsed(start[8:] + file.read(n - 1))
        self._start = 8 + n
        self.metadata: dict[str, str] = header.pop(METADATA)
        places = {name: _layout(name, entry) for name, entry in header.items()}
        end = 0
        for name, (dtype, shape, first, last) in sorted(
            places.items(), key=lambda item: item[1][2:]
        ):
            n_bytes = dtype.itemsize * math.prod(shape)
            is_aligned = (self._start + first) % dtype.itemsize == 0
            if first != end or last - first != n_bytes or not is_aligned:
                raise ValueError(f"the offsets of {name} are wrong")
            end = last
        if self._start + end != size:
            kind = "is truncated: it " if size < self._start + end else ""
            raise ValueError(
                f"it {kind}has {size} bytes, but its header says {self._start + end}"
            )
        self._places = {n: p for n, p in places.items() if not n.startswith(PADDING)}
        self._sums = _json(self.metadata.get("arrays", ""))
        if (
            not isinstance(self._sums, dict)
            or self._sums.keys() != self._places.keys()
            or not all(type(checksum) is int for checksum in self._sums.values())
        ):
            raise ValueError("its header has no checksums of its arrays")
        self._data: Bytes = np.zeros(0, np.uint8)
        if end:
            self._data = np.memmap(
                file, np.uint8, "r", offset=self._start, shape=(end,)
            )

    def arrays(
        self,
        *,
        mmap: bool = True,
        check: Collection[str] | None = None,
        progress: Callable[[Any], object] = lambda block: None,
    ) -> dict[str, AnyArray]:
        """Return the arrays, as read-only parts of the mapped file or in memory.

        Those in `check`, by default all, are compared with their checksums, and
        `progress` is called with each block.
        """
        data = self._data if mmap else in_memory(self._data)
        for name, (_, _, first, end) in self._places.items():
            is_checked = check is None or name in check
            if is_checked and _checksum(data[first:end], progress) != self._sums[name]:
                raise ValueError(f"the checksum of {name} is wrong")
        return {
            name: data[first:end].view(dtype).reshape(shape)
            for name, (dtype, shape, first, end) in self._places.items()
        }

    def plain_arrays(self, *, mmap: bool = True) -> dict[str, AnyArray]:
        """Return `arrays` without the class of a map, which results would have too."""
        arrays = self.arrays(mmap=mmap)
        return {name: array.view(np.ndarray) for name, array in arrays.items()}


def empty_lines(n_bytes: int) -> Bytes:
    """Return memory that begins at a line of the cache."""
    # Not np.zeros: NumPy asks for large pages for large np.empty arrays.
    memory = np.empty(n_bytes + ALIGNMENT_BYTES, np.uint8)
    skipped = -memory.ctypes.data % ALIGNMENT_BYTES
    return memory[skipped : skipped + n_bytes]


def in_memory(mapped: Bytes) -> Bytes:
    """Return a copy of a mapped file, which begins at a line of the cache."""
    copy = empty_lines(len(mapped))
    for start in range(0, len(mapped), BLOCK_BYTES):
        part = slice(start, start + BLOCK_BYTES)
        copy[part] = mapped[part]
        release_pages(mapped)
    return copy


def read_tensors(
    path: Path, *, mmap: bool
) -> tuple[dict[str, AnyArray], dict[str, str]]:
    """Read a file of `write_tensors`, and compare it with its checksums."""
    file = TensorFile(path)
    return file.plain_arrays(mmap=mmap), file.metadata


def begins_as_tensors(start: bytes) -> bool:
    """Whether the first nine bytes are a length of a header, and the header's first."""
    n = int.from_bytes(start[:8], "little")
    return n <= MAX_HEADER_BYTES and start[8:9] == b"{"


def _parsed(encoded: bytes) -> dict[str, Any]:
    """Return the header if its checksum is right."""
    header = _json(encoded)
    metadata = header.get(METADATA) if isinstance(header, dict) else None
    if not isinstance(metadata, dict) or not all(
        isinstance(text, str) for text in metadata.values()
    ):
        raise ValueError("its header is not one of nplm's")
    checksum = metadata.pop(CHECKSUM, None)
    if checksum != header_checksum(header):
        raise ValueError("the checksum of its header is wrong")
    metadata[CHECKSUM] = checksum
    return header


def _json(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its header is not JSON ({error})") from None


def header_checksum(header: Mapping[str, object]) -> str:
    """CRC-32 of the contents of the header, whatever its blanks and its order."""
    return f"{zlib.crc32(json.dumps(header, sort_keys=True).encode()):08x}"


def stamp_of(file: int | Path) -> tuple[int, ...]:
    """Return numbers that differ once a file is written, replaced or moved."""
    status = os.stat(file)
    times = status.st_mtime_ns, status.st_ctime_ns
    return status.st_dev, status.st_ino, status.st_size, *times


Layout = tuple[np.dtype[Any], tuple[int, ...], int, int]  # type, shape, start, end


def _layout(name: str, entry: Any) -> Layout:
    is_valid = (
        isinstance(entry, dict)
        and entry.keys() == {"dtype", "shape", "data_offsets"}
        and isinstance(entry["dtype"], str)
        and entry["dtype"] in TYPES
        and _are_sizes(entry["shape"])
        and _are_sizes(entry["data_offsets"])
        and len(entry["data_offsets"]) == 2
        and len(entry["shape"]) <= 8
    )
    if not is_valid:
        raise ValueError(f"its header has {entry!r:.80} for {name}")
    return DTYPES[entry["dtype"]], tuple(entry["shape"]), *entry["data_offsets"]


def _are_sizes(values: object) -> bool:
    return isinstance(values, list) and all(
        type(n) is int and 0 <= n < 1 << 60 for n in values
    )
