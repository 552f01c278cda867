"""Binary files taken apart, and written with what no reader should take."""

import json
import zlib

import numpy as np

from nplm.formats.binary.arrays import MAGIC


def parts_of(data):
    """Header and arrays of the bytes of a file of save_binary."""
    n = int.from_bytes(data[16:20], "little")
    header, at, arrays = json.loads(data[24 : 24 + n]), 24 + n, {}
    for entry in header["arrays"]:
        at += -at % 64
        dtype = np.dtype(entry["dtype"])
        arrays[entry["name"]] = np.frombuffer(data, dtype, entry["size"], at).copy()
        at += entry["size"] * dtype.itemsize
    return header, arrays


def read_parts(path):
    """Header and arrays of a file of save_binary."""
    return parts_of(path.read_bytes())


def write_parts(path, header, arrays):
    """Write a file whose checksums are right, whatever is in it."""
    for entry, array in zip(header["arrays"], arrays.values()):
        entry |= {"size": len(array), "crc32": zlib.crc32(array.tobytes())}
    # As long as with the longest checksums.
    n_missing = sum(10 - len(str(entry["crc32"])) for entry in header["arrays"])
    write_raw(path, json.dumps(header).encode() + b" " * n_missing, arrays)


def write_raw(path, encoded, arrays):
    data = MAGIC + len(encoded).to_bytes(4, "little")
    data += zlib.crc32(encoded).to_bytes(4, "little") + encoded
    for array in arrays.values():
        data += bytes(-len(data) % 64) + array.tobytes()
    path.write_bytes(data + bytes(-len(data) % 64))
