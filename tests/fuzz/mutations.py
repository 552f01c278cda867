"""Damage files: random bytes, or changed contents with valid checksums.

One random generator determines all damage, so the kind and the number of a case
reproduce it.
"""

import json
import re
import tempfile
from pathlib import Path

import numpy as np

from nplm.base.files.tensors import CHECKSUM, METADATA, write_tensors
from tests.fuzz.structures import (
    BUILDERS,
    FOLDER,
    PIPE,
    bomb,
    codec_of,
    nodes,
    streams,
)
from tests.helpers.binary import change_header, tensors_of

TOKENS = [
    "", " ", "\t", "\n", "\r\n", "\0", "\x1c", "\u2028", "\u00a0", "\ufeff", "a", "<s>",
    "</s>", "<unk>", "0", "1", "-1", "-99", "-0.0", "1e400", "-1e400", "1e-400", "nan",
    "inf", "-inf", "1_0", "0x10", "٣", "9" * 30, "1" * 5000, "99999999999",
    "2147483647",
    "2147483648", "0.5", "\\data\\", "\\end\\", "\\1-grams:", "\\2-grams:", "ngram 1=0",
    "ngram 1=999999999", "ngram 2=1", "ngram 300=1",
]  # fmt: skip
FLOATS = [0.0, -1.0, 0.5, 2.0, np.nan, np.inf, -np.inf, 1e30, 3e38, -3e38, 1e-45, 1e308]
WHOLE = [0, 1, -1, 2, 3, 7, 100, 2**16, 2**31 - 1, -(2**31), 2**32, 2**62, -(2**63)]
JSON_VALUES = [
    None, True, False, -1, 0, 1, 3, 2**31, 2**40, 10**30, 0.5, 1e308, "", "softmax",
    "NeuralLM", [], {}, [[]], {"object": 0}, {"object": 99}, {"array": "absent"},
    {"dict": 3}, {"tuple": [[1, 2]]}, {"float": "nan"}, {"sparse": [[1, 1]]},
    {"words": 3}, {"pattern": ["(", 0]}, float("nan"), float("inf"), "x" * 3000,
]  # fmt: skip
# Readers of these kinds accept pipes.
PIPED = ("text", "stream", "corpus")
TEXT = ("arpa", "counts", "classes", "definitions", "vectors", *PIPED)


def mutated(kind, files, rng):
    """Return a damaged copy of a case's files."""
    files = dict(files)
    name = rng.choice(sorted(name for name in files if name != "lock"))
    if kind.startswith("checkpoint"):
        return _checkpoint(files, name, rng)
    files[name] = _mutated(kind, files[name], rng)
    return files


def _mutated(kind, data, rng):
    if rng.random() < 0.02:
        # A reader of text would wait for the writer of a pipe.
        return FOLDER if kind in PIPED else rng.choice([PIPE, FOLDER])
    if kind in TEXT and rng.random() < 0.1:
        return bomb(data, rng)
    if kind in TEXT and rng.random() < 0.15:
        return streams(data, rng)
    if rng.random() >= 0.7:
        return _bytes(data, rng)
    if kind in TEXT:
        decompress, compress = codec_of(data) or (bytes, bytes)
        return compress(_text(decompress(data), rng))
    change = {"binary": _binary, "saved": _saved}.get(kind.split(",")[0], _bytes)
    return change(data, rng)


# -- bytes, and lines of text ----------------------------------------------------------


def _bytes(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        at, n = rng.randrange(len(data) + 1), rng.choice([1, 2, 4, 8, 64])
        to = rng.randrange(len(data) + 1)
        kind = rng.choice(
            ["flip", "cut", "more", "zeros", "ones", "swap", "lose", "last"]
        )
        if kind == "flip" and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == "cut":
            del data[at:]
        elif kind == "more":
            data[at:at] = bytes(rng.randrange(256) for _ in range(n))
        elif kind in ("zeros", "ones"):
            data[at : at + n] = (b"\0" if kind == "zeros" else b"\xff") * n
        elif kind == "swap":
            data[at : at + n], data[to : to + n] = data[to : to + n], data[at : at + n]
        elif kind == "lose":
            del data[at : at + n]
        elif kind == "last":
            del data[-1:]
    return bytes(data)


def _text(data, rng):
    lines = data.decode(errors="surrogateescape").split("\n")
    for _ in range(rng.choice([1, 1, 2, 5])):
        i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
        kind = rng.choice(
            ["token", "token", "token", "mark", "lose", "twice", "swap", "line"]
        )
        if kind == "token":
            tokens = lines[i].split(rng.choice(" \t"))
            tokens[rng.randrange(len(tokens))] = rng.choice(TOKENS)
            lines[i] = rng.choice(" \t").join(tokens)
        elif kind == "mark":
            # In all places of a word, to which the rest of the file fits, or in one.
            word = re.escape(rng.choice(lines[i].split() or ["a"]))
            mark = rng.choice(["<s>", "</s>", "<s> </s>", "</s> <s>"])
            places = re.compile(rf"(?<!\S){word}(?!\S)")
            marked = places.sub(mark, "\n".join(lines), count=rng.choice([0, 0, 1]))
            lines = marked.split("\n")
        elif kind == "lose" and len(lines) > 1:
            del lines[i]
        elif kind == "twice":
            lines.insert(j, lines[i])
        elif kind == "swap":
            lines[i], lines[j] = lines[j], lines[i]
        elif kind == "line":
            lines.insert(i, rng.choice(TOKENS))
    return "\n".join(lines).encode(errors="surrogateescape")


# -- contents with valid checksums -----------------------------------------------------


def _array(array, rng):
    """Change numbers of an array, its shape or its type."""
    array = array.copy()
    kind = rng.choice(["number"] * 4 + ["swap", "cut", "type", "turn", "more"])
    if kind == "number" and array.size:
        flat = array.reshape(-1)
        values = FLOATS if array.dtype.kind == "f" else WHOLE
        for _ in range(rng.choice([1, 1, 3])):
            with np.errstate(all="ignore"):
                value = np.array(rng.choice(values)).astype(array.dtype)
            flat[rng.randrange(array.size)] = value
    elif kind == "swap" and array.size:
        flat, (i, j) = array.reshape(-1), (rng.randrange(array.size) for _ in "ij")
        flat[[i, j]] = flat[[j, i]]
    elif kind == "cut" and array.ndim:
        array = array[: rng.randrange(len(array) + 1)]
    elif kind == "type":
        with np.errstate(all="ignore"):
            array = array.astype(rng.choice(["i4", "i8", "f4", "f8", "u1", "?"]))
    elif kind == "turn":
        array = array.T if array.ndim > 1 else array[::-1]
    elif kind == "more" and array.ndim:
        array = np.concatenate([array, array[:1]])
    return np.ascontiguousarray(array)


def _json(node, rng):
    """Change one value in a JSON value, in place."""
    positions = list(nodes(node))
    if not positions:
        return
    parent, key = rng.choice(positions)
    kind = rng.choice(["value", "value", "lose", "copy"])
    if kind == "value":
        parent[key] = rng.choice(JSON_VALUES)
    elif kind == "lose":
        del parent[key]
    else:
        other, other_key = rng.choice(positions)
        parent[key] = json.loads(json.dumps(other[other_key]))


def _binary(data, rng):
    """Change a file of save_binary."""
    arrays, texts = tensors_of(data)
    if rng.random() < 0.8:
        name = rng.choice(list(arrays))
        dtype, arrays[name] = arrays[name].dtype, _array(arrays[name], rng)
        if rng.random() < 0.8:  # keep the type in the header, or not
            with np.errstate(all="ignore"):
                arrays[name] = arrays[name].astype(dtype)
    if rng.random() < 0.3:
        model = json.loads(texts["model"])
        _json(model, rng)
        texts["model"] = json.dumps(model)
    return _put_tensors(arrays, texts, rng)


def _put_tensors(arrays, texts, rng):
    """Return a safetensors file, possibly invalid, with valid checksums."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        write_tensors(path, arrays, texts)
        if rng.random() < 0.1:
            change_header(path, lambda header: _json(header, rng))
        return path.read_bytes()


def _saved(data, rng):
    """Change a file of nplm.save."""
    arrays, texts = tensors_of(data)
    objects = json.loads(arrays["objects.json"].tobytes())
    if (how := rng.random()) < 0.6:
        if how < 0.3:
            _json(objects, rng)
        else:
            del arrays["objects.json"]
            rng.choice(BUILDERS)(objects, arrays, rng)
        arrays["objects.json"] = np.frombuffer(json.dumps(objects).encode(), np.uint8)
    else:
        _change_arrays(arrays, rng)
    return _put_tensors(arrays, texts, rng)


def _change_arrays(arrays, rng):
    name = rng.choice(sorted(arrays))
    if rng.random() < 0.1:
        del arrays[name]
    elif rng.random() < 0.1:
        arrays[name] = arrays[rng.choice(sorted(arrays))]
    else:
        arrays[name] = _array(arrays[name], rng)


def _checkpoint(files, name, rng):
    """Change a checkpoint; mostly update the checksum in latest.json to match."""
    if rng.random() < 0.2:
        files[name] = _bytes(files[name], rng)
        return files
    latest = json.loads(files["latest.json"])
    if name == "latest.json":
        _json(latest, rng)
    else:
        arrays, texts = tensors_of(files[name])
        if rng.random() < 0.5:
            state = json.loads(texts["state"])
            _json(state, rng)
            texts["state"] = json.dumps(state)
        else:
            _change_arrays(arrays, rng)
        files[name] = _put_tensors(arrays, texts, rng)
        if rng.random() < 0.9:
            n = int.from_bytes(files[name][:8], "little")
            found = json.loads(files[name][8 : 8 + n]).get(METADATA)
            if isinstance(found, dict):
                latest["files"] = [found[CHECKSUM]]
    files["latest.json"] = json.dumps(latest).encode()
    return files
