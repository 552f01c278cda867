"""Build structures for small files: repeats, references, chains, bombs.

Mutations change valid files; these structures are unlikely to arise from mutations.
"""

import bz2
import gzip
import io
import json
import lzma
import re
from copy import deepcopy
from importlib.util import find_spec

import numpy as np

from tests.helpers.saving import entry, mixture_of

# These stand for the bytes of a file.
PIPE, FOLDER = "a pipe", "a folder"
CODECS = {
    b"\x1f\x8b": (gzip.decompress, lambda data: gzip.compress(data, mtime=0)),
    b"\xfd7zXZ\0": (lzma.decompress, lambda data: lzma.compress(data, preset=0)),
    b"BZh": (bz2.decompress, bz2.compress),
}
STREAMS = re.compile(rb"(?P<xz>\xfd7zXZ\0)|BZh[1-9](1AY&SY|\x17rE8P\x90)")
LINES = [
    b"\n", b"a", b" ", b"\0", b"\xff", b"a 1\n", b"a\t1\n", b"a a a 1\n", b"-1 a\n",
    b"\\data\\\n", b"a 0.5 0.5\n", b"\r", b"1 ",
]  # fmt: skip
PATTERNS = [
    ["[!-\U0010fff0]" * 12_000, 34], ["(?i:[!-\U0010fff0])", 34], ["a" * 5000, 32],
    ["(?:" * 900 + ")" * 900, 0], ["a{99999999999}", 0], ["[[a]]", 0], ["a", 2**40],
    ["a", -1], [3, 0], [None, None], ["(a)", 256], ["a|b" * 1000, 2],
]  # fmt: skip
# Files of subword units, and values that break the libraries that read them.
MARKS = [{"id": 0, "content": "[UNK]", "single_word": False, "lstrip": False,
          "rstrip": False, "normalized": False, "special": True}]  # fmt: skip
UNITS = {
    "tokenizers": {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": MARKS,
        "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None, "decoder": {"type": "WordPiece", "prefix": "##",
        "cleanup": True}, "model": {"type": "WordLevel", "unk_token": "[UNK]",
        "vocab": {"[UNK]": 0, "a": 1, "rose": 2}},
    },
    "tiktoken": {
        "name": "few", "pat_str": "[a-z]+|[^a-z]", "special_tokens": {"<end>": 9},
        "mergeable_ranks": [["YQ==", 0], ["IA==", 1], ["cm9zZQ==", 2]],
    },
}  # fmt: skip
UNIT_VALUES = [
    None, -1, 2**31, 2**32, 2**64, 0.5, "", "a", "(", [], {}, [[]], "\ud800",
    {"type": "Precompiled", "precompiled_charsmap": "BAAAAAECAwRhYg=="},
    {"type": "Precompiled", "precompiled_charsmap": ""}, {"type": "BPE"},
    {"type": "Replace", "pattern": {"Regex": "("}, "content": ""},
]  # fmt: skip


def codec_of(data):
    """Return (decompress, compress) for a compressed file, None for another."""
    return next((own for magic, own in CODECS.items() if data.startswith(magic)), None)


# Of a bomb.
MAX_LINES = 100_000


def bomb(data, rng):
    """Return many repeats of a line or of part of a file, mostly compressed."""
    codec = codec_of(data)
    plain = codec[0](data) if codec else data
    start = rng.randrange(len(plain) + 1)
    part = plain[start : start + rng.choice([1, 50, 5000])] or b"\n"
    line = rng.choice([*LINES, part])
    size = 10 ** rng.choice([4, 5, 6, 7]) * rng.choice([1, 3])
    size = min(size, MAX_LINES * len(line))  # short lines take readers seconds
    repeats = line * (size // len(line))
    end = plain.find(b"\n", start) + 1
    plain = rng.choice(
        [repeats, plain + repeats, repeats + plain, plain[:end] + repeats]
    )
    if size < 10**6 and rng.random() < 0.2:
        return plain
    _, compress = rng.choice([*CODECS.values()])
    data = compress(plain)
    # In parts, as `cat a.gz b.gz` makes them.
    return data * rng.choice([1, 1, 1, 2, 5])


def streams(data, rng):
    """Compress a text in streams, mostly with padding or damage between them."""
    codec = codec_of(data)
    plain = codec[0](data) if codec else data
    compress = codec[1] if codec else rng.choice([*CODECS.values()])[1]
    parts = []
    for line in plain.splitlines(keepends=True):
        parts.append(compress(line))
        between = rng.choice(["nothing", "nothing", "zeros", "bytes", "cut", "flip"])
        if between == "zeros":
            parts.append(bytes(rng.choice([1, 4, 4, 512, 9000])))
        elif between == "bytes":
            parts.append(rng.choice([b"a", b"junk", parts[0][:6], parts[0][6:]]))
        elif between == "cut":
            parts[-1] = parts[-1][: rng.randrange(len(parts[-1]))]
        elif between == "flip":
            flipped = bytearray(parts[-1])
            flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
            parts[-1] = bytes(flipped)
        if rng.random() < 0.5:  # most damage is alone
            parts += [compress(part) for part in plain.splitlines(keepends=True)]
            break
    return b"".join(parts)


def whole_text(data):
    """Return the text of all streams of xz or bzip2, with zeros between them or not.

    None of a damaged file, and of one that is neither.
    """
    known = STREAMS.match(data)
    new = lzma.LZMADecompressor if known and known["xz"] else bz2.BZ2Decompressor
    text = []
    while data and known:
        stream = new()
        try:
            text.append(stream.decompress(data))
        except (OSError, lzma.LZMAError):
            return None
        if not stream.eof:
            return None
        data = stream.unused_data.lstrip(b"\0")
    return b"".join(text) if known else None


def _estimators(objects):
    """Return the indices of the estimators in a saved file."""
    return [
        i for i, entry in enumerate(objects)
        if isinstance(entry, dict) and entry.get("kind") != "RandomState"
    ]  # fmt: skip


def _mixture(members, rng):
    fitted = None
    if rng.random() < 0.5:
        # A valid fitted state, so that valid files are scored.
        state = {
            "names": [f"m{i}" for i in range(len(members))],
            "members": [{"object": n} for n in members],
            "weights": {"array": "mixed"}, "n_iter": 0, "n_context": 2, "order": 3,
        }  # fmt: skip
        fitted = {"dict": state}
    return mixture_of(*members, fitted=fitted)


def chained(objects, arrays, rng):
    """Add estimators that refer to earlier ones."""
    n_each = rng.choice([1, 2, 2, 3])
    arrays["mixed"] = np.full(n_each, 1 / n_each)
    make = rng.choice(["mixture", "mixture", "frozen", "pipeline", "any"])
    for _ in range(rng.choice([1, 2, 5, 12, 45, 200])):
        known = _estimators(objects) or [0]
        newest = rng.random() < 0.8
        members = [known[-1] if newest else rng.choice(known) for _ in range(n_each)]
        kind = rng.choice(["mixture", "frozen", "pipeline"]) if make == "any" else make
        if kind == "mixture":
            objects.append(_mixture(members, rng))
        elif kind == "frozen":
            objects.append(entry("FrozenEstimator", estimator={"object": members[0]}))
        else:
            steps = [{"tuple": [f"s{i}", {"object": n}]} for i, n in enumerate(members)]
            objects.append(entry("Pipeline", steps=steps))
    if '"mixed"' not in json.dumps(objects):
        del arrays["mixed"]


def repeated(objects, arrays, rng):
    """Repeat an array, a reference or another value as often as a small file can."""
    positions = list(nodes(objects))
    kinds = [(p, k) for p, k in positions if isinstance(p[k], dict) and len(p[k]) == 1]
    where, key = rng.choice(kinds or positions)
    node, n = where[key], rng.choice([2, 20, 500, 20_000])
    of_arrays = ["words", "sparse"] if arrays else []
    kind = rng.choice(["list", "tuple", "dict", "entries", *of_arrays])
    if kind == "list":
        where[key] = [node] * n
    elif kind == "tuple":
        where[key] = {"tuple": [node] * n}
    elif kind == "dict":
        where[key] = {"dict": {f"k{i}": node for i in range(n)}}
    elif kind == "words":
        where[key] = [{"words": {"array": rng.choice(sorted(arrays))}}] * n
    elif kind == "sparse":
        name = {"array": rng.choice(sorted(arrays))}
        where[key] = [{"sparse": [[n, n], name, name, name]}] * n
    else:
        entry = rng.choice(objects)
        objects[:0] = [entry] * min(n, 500)


def deep(objects, arrays, rng):
    """Nest lists or other values deeply."""
    where, key = rng.choice(list(nodes(objects)))
    kind = rng.choice(["list", "tuple", "dict", "words"])
    for _ in range(rng.choice([3, 100, 400])):
        node = where[key]
        where[key] = {
            "list": [node], "tuple": {"tuple": [node]}, "words": {"words": node},
            "dict": {"dict": {"a": node}},
        }[kind]  # fmt: skip


def patterns(objects, arrays, rng):
    """Add tokenizers with unusual patterns."""
    for _ in range(rng.choice([1, 1, 3, 50])):
        pattern = {"pattern": rng.choice(PATTERNS)}
        if rng.random() < 0.3:
            pattern = pattern["pattern"][0]
        own = entry("Tokenizer", {"dict": {}}, pattern=pattern)
        objects.insert(rng.choice([0, len(objects)]), own)


def units(objects, arrays, rng):
    """Add subword units whose library refuses them, or panics."""
    library = rng.choice(sorted(filter(find_spec, UNITS)) or sorted(UNITS))
    described = deepcopy(UNITS[library])
    for _ in range(rng.choice([0, 1, 1, 2])):
        where, key = rng.choice(list(nodes(described)))
        where[key] = rng.choice(UNIT_VALUES)
    data = json.dumps(described).encode()
    arrays["units"] = np.frombuffer(data[: rng.choice([None, None, -9])], np.uint8)
    model = {"subwords": [library, {"array": "units"}]}
    objects.append(entry("Subwords", {"dict": {"model": model}}, model=model))


BUILDERS = [chained, chained, repeated, repeated, deep, patterns, units]


def tables():
    """Yield Parquet files of bigrams and their counts."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    rows = [(0, 1, 20), (1, 2, 20), (2, 0, 20), (2, 2, 10)]
    whole = pa.table(dict(zip("abn", zip(*rows * 100))))
    for options in ({}, {"compression": "gzip"}, {"use_dictionary": False}):
        out = io.BytesIO()
        parquet.write_table(whole, out, **options)
        yield {"file": out.getvalue()}


def nodes(node):
    """Yield the positions in a JSON value, each as (list or dict, key)."""
    if isinstance(node, (list, dict)):
        for key in range(len(node)) if isinstance(node, list) else list(node):
            yield node, key
            yield from nodes(node[key])
