"""Read the parts of binary files, and write invalid ones."""

import json

import numpy as np

from nplm.base.files.tensors import (
    CHECKSUM,
    METADATA,
    PADDING,
    TYPES,
    header_checksum,
    write_tensors,
)
from nplm.formats._model_files import NGRAMS


def tensors_of(data):
    """Arrays and texts of the bytes of a file of safetensors."""
    n = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + n])
    texts, arrays = header.pop(METADATA), {}
    for name, entry in header.items():
        first, end = (8 + n + at for at in entry["data_offsets"])
        array = np.frombuffer(data[first:end], TYPES[entry["dtype"]])
        if not name.startswith(PADDING):
            arrays[name] = array.reshape(entry["shape"]).copy()
    return arrays, texts


def read_parts(path):
    """What a file of save_binary says of its model, and its arrays."""
    arrays, texts = tensors_of(path.read_bytes())
    return json.loads(texts["model"]), arrays


def ngrams_of(path):
    """What a file has, but for how unknown words are spelled: counts do not say it."""
    if not path.read_bytes()[8:].startswith(b'{"'):
        return path.read_bytes()
    header, arrays = read_parts(path)
    header.pop("spelling", None)
    return header, {name: array.tobytes() for name, array in arrays.items()}


def assert_same_ngrams(folder, found="found"):
    """Raise unless two files in a folder have the same n-grams: found and expected."""
    assert ngrams_of(folder / found) == ngrams_of(folder / "expected")


def write_parts(path, header, arrays, **texts):
    """Write a file whose checksums are right, whatever is in it."""
    metadata = NGRAMS.metadata(model=json.dumps(header))
    write_tensors(path, arrays, metadata | texts)


def change_header(path, change):
    """Change all of a file's header, and put its checksum right."""
    data = path.read_bytes()
    n = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + n])
    del header[METADATA][CHECKSUM]
    header = change(header) or header
    if isinstance(header.get(METADATA), dict):
        header[METADATA][CHECKSUM] = header_checksum(header)
    write_header(path, json.dumps(header).encode(), data[8 + n :])


def write_header(path, encoded, arrays=b""):
    """Write bytes in place of a header."""
    encoded += b" " * (-(8 + len(encoded)) % 64)
    path.write_bytes(len(encoded).to_bytes(8, "little") + encoded + arrays)
