"""Files of safetensors: a header in JSON, then arrays that can be mapped as they are.

Eight bytes say how long the header is; it has the type, the shape and the place of each
array, and text of the writer's own. The package of that name reads and writes them too,
but through copies in memory, and not atomically, nor does it say where an array stands;
so it is only for the tests, which hold these files against it.
"""

from __future__ import annotations

import json
import math
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm.base.files.atomic_files import followed, full_disk_named, opened, replacing

__all__ = ["CHECKSUM", "is_storable", "read_tensors", "write_tensors"]

# The first array begins at a line of the cache.
ALIGNMENT = 64
# What the package takes for a header; more is none.
MAX_HEADER = 100_000_000
METADATA = "__metadata__"
CHECKSUM = "crc32"
TYPES = {
    "F64": "<f8", "I64": "<i8", "U64": "<u8", "F32": "<f4", "I32": "<i4", "U32": "<u4",
    "F16": "<f2", "I16": "<i2", "U16": "<u2", "I8": "<i1", "U8": "<u1", "BOOL": "|b1",
}  # fmt: skip
DTYPES = {name: np.dtype(kind) for name, kind in TYPES.items()}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


def is_storable(dtype: np.dtype[Any]) -> bool:
    """Whether arrays of this type can be in a file, in any order of bytes."""
    return dtype.newbyteorder("<") in NAMES


def write_tensors(
    path: str | os.PathLike[str],
    arrays: Mapping[str, NDArray[Any]],
    metadata: Mapping[str, str],
) -> str:
    """Write arrays and text in a file that takes its place when all is written.

    Parameters
    ----------
    path : path-like
        The file.
    arrays : mapping of str to ndarray
        Of numbers or booleans.
    metadata : mapping of str to str
        What the header says beside them.

    Returns
    -------
    checksum : str
        Of all that is in it: of a header that has those of the arrays.
    """
    # The largest types first: then each array begins at a multiple of its type's size.
    little = {
        name: np.asarray(array, array.dtype.newbyteorder("<"), order="C")
        for name, array in sorted(
            arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0])
        )
    }
    header: dict[str, Any] = {METADATA: dict(metadata)}
    sums, end = {}, 0
    for name, array in little.items():
        start, end = end, end + array.nbytes
        header[name] = {
            "dtype": NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [start, end],
        }
        sums[name] = zlib.crc32(array.data)
    header[METADATA]["arrays"] = json.dumps(sums)
    header[METADATA][CHECKSUM] = checksum = header_checksum(header)
    encoded = json.dumps(header).encode()
    encoded += b" " * (-(8 + len(encoded)) % ALIGNMENT)
    full = full_disk_named(followed(Path(path).absolute()).parent, "more is")
    with full, replacing(Path(path)) as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        for array in little.values():
            file.write(array.data)
    return checksum


def read_tensors(
    path: Path, *, mmap: bool
) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Read what `write_tensors` wrote, and compare it with its checksums.

    Parameters
    ----------
    path : Path
        The file.
    mmap : bool
        Whether arrays are read-only parts of the file, mapped into memory.

    Returns
    -------
    arrays : dict of str to ndarray
    metadata : dict of str to str
        With that of the whole, as `CHECKSUM`.

    Raises
    ------
    ValueError
        Saying what is wrong with it.
    """
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        n = int.from_bytes(file.read(8), "little")
        if size < 8 or n > min(size - 8, MAX_HEADER):
            raise ValueError("it does not begin as a file of safetensors does")
        header = _parsed(file.read(n))
    start, metadata = 8 + n, header.pop(METADATA)
    places = {name: _place(name, entry) for name, entry in header.items()}
    at = 0
    for name, (dtype, shape, first, end) in sorted(
        places.items(), key=lambda item: item[1][2:]
    ):
        if first != at or end - first != dtype.itemsize * math.prod(shape):
            raise ValueError(f"{name} is not where it should be")
        at = end
    if start + at != size:
        raise ValueError(f"it has {size} bytes, and its header says {start + at}")
    data: NDArray[np.uint8] = np.zeros(0, np.uint8)
    if at:
        data = np.memmap(path, np.uint8, "r", offset=start, shape=(at,))
        # Not a memmap any more, for what is computed of one would be one too.
        data = data.view(np.ndarray) if mmap else np.array(data)
    arrays = {
        name: data[first:end].view(dtype).reshape(shape)
        for name, (dtype, shape, first, end) in places.items()
    }
    sums = _json(metadata.get("arrays", ""))
    if not isinstance(sums, dict) or sums.keys() != arrays.keys():
        raise ValueError("its header has no checksums of its arrays")
    for name, array in arrays.items():
        if zlib.crc32(array.data) != sums[name]:
            raise ValueError(f"the checksum of {name} is wrong")
    return arrays, metadata


def _parsed(encoded: bytes) -> dict[str, Any]:
    """Give the header, if it is one whose checksum is right."""
    header = _json(encoded)
    metadata = header.get(METADATA) if isinstance(header, dict) else None
    if not isinstance(metadata, dict) or not all(
        isinstance(text, str) for text in metadata.values()
    ):
        raise ValueError("its header is none of nplm's")
    checksum = metadata.pop(CHECKSUM, None)
    if checksum != header_checksum(header):
        raise ValueError("the checksum of its header is wrong")
    metadata[CHECKSUM] = checksum
    result: dict[str, Any] = header
    return result


def _json(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its header is no JSON ({error})") from None


def header_checksum(header: dict[str, Any]) -> str:
    """CRC-32 of all that the header says, whatever its blanks and its order."""
    return f"{zlib.crc32(json.dumps(header, sort_keys=True).encode()):08x}"


Place = tuple[np.dtype[Any], tuple[int, ...], int, int]  # with its first byte and end


def _place(name: str, entry: Any) -> Place:
    sound = (
        isinstance(entry, dict)
        and entry.keys() == {"dtype", "shape", "data_offsets"}
        and entry["dtype"] in TYPES
        and _are_sizes(entry["shape"])
        and _are_sizes(entry["data_offsets"])
        and len(entry["data_offsets"]) == 2
        and len(entry["shape"]) <= 8
    )
    if not sound:
        raise ValueError(f"its header has {entry!r:.80} for {name}")
    return DTYPES[entry["dtype"]], tuple(entry["shape"]), *entry["data_offsets"]


def _are_sizes(values: Any) -> bool:
    return isinstance(values, list) and all(
        type(n) is int and 0 <= n < 1 << 60 for n in values
    )
