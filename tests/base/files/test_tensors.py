"""Safetensors files: written, filled in place, mapped, and refused when damaged."""

import json
import os

import numpy as np
import pytest

from nplm.base.files import tensors
from nplm.base.files.tensors import (
    CHECKSUM,
    METADATA,
    NotTensorsError,
    TensorFile,
    read_tensors,
    write_tensors,
)
from tests.helpers.binary import change_header

ARRAYS = {
    "words": np.arange(13, dtype=np.uint8),
    "none": np.zeros(0, dtype=np.float32),
    "start": np.arange(-3, 4),
    "closed": np.array([True]),
    "prob": np.linspace(0, 1, 37, dtype=np.float32),
}
SIZES = {name: (array.dtype, len(array)) for name, array in ARRAYS.items()}
TEXT = {"format": "numbers", "of": "ähnlich"}


@pytest.fixture
def path(tmp_path):
    write_tensors(tmp_path / "file", ARRAYS, TEXT)
    return tmp_path / "file"


def same(found, wanted=ARRAYS):
    assert list(found) == list(wanted)
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("mmap", [True, False])
def test_arrays_and_text_again(path, mmap):
    found, text = read_tensors(path, mmap=mmap)
    same(found)
    assert {name: text[name] for name in TEXT} == TEXT
    assert text[CHECKSUM] == write_tensors(path, ARRAYS, TEXT)
    assert all(type(array) is np.ndarray for array in found.values())
    assert found["prob"].flags.writeable is not mmap


def test_filled_arrays_make_the_file_that_is_written(tmp_path, path, monkeypatch):
    monkeypatch.setattr(tensors, "BLOCK_BYTES", 16)  # several blocks an array

    def fill(arrays):
        same(arrays, {n: np.zeros_like(own) for n, own in ARRAYS.items()})
        assert not (tmp_path / "filled").exists()
        for name, own in ARRAYS.items():
            arrays[name][:] = own

    first = dict([next(iter(ARRAYS.items()))])
    checksum = write_tensors(tmp_path / "filled", {}, TEXT, SIZES, fill)
    assert (tmp_path / "filled").read_bytes() == path.read_bytes()
    assert checksum == TensorFile(path).metadata[CHECKSUM]
    rest = {name: size for name, size in SIZES.items() if name not in first}

    def fill_rest(arrays):
        for name in rest:
            for part in (slice(1, None), slice(1)):  # through the file, and mapped
                tensors.put(arrays[name][part], ARRAYS[name][part])
            same({name: arrays[name]}, {name: ARRAYS[name]})

    write_tensors(tmp_path / "mixed", first, TEXT, rest, fill_rest)
    assert (tmp_path / "mixed").read_bytes() == path.read_bytes()


def test_a_disk_without_room_is_told_before_arrays_are_filled(tmp_path, monkeypatch):
    def full(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full)
    with pytest.raises(OSError, match=rf"the disk of {tmp_path} is full"):
        write_tensors(tmp_path / "filled", {}, TEXT, SIZES, pytest.fail)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("mmap", [True, False])
def test_arrays_begin_at_lines_of_the_cache(path, mmap):
    n = int.from_bytes(path.read_bytes()[:8], "little")
    header = json.loads(path.read_bytes()[8 : 8 + n])
    starts = {name: 8 + n + header[name]["data_offsets"][0] for name in ARRAYS}
    assert {at % 64 for at in starts.values()} == {0}
    found = TensorFile(path).arrays(mmap=mmap)
    assert {own.ctypes.data % 64 for own in found.values() if own.size} == {0}


def test_only_chosen_arrays_are_checked(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1  # of the last array, prob
    path.write_bytes(bytes(data))
    file = TensorFile(path)
    same({n: own for n, own in file.arrays(check=["words"]).items() if n != "prob"},
         {n: own for n, own in ARRAYS.items() if n != "prob"})  # fmt: skip
    for check in (None, ["prob"]):
        with pytest.raises(ValueError, match=r"^the checksum of prob is wrong$"):
            file.arrays(check=check)


def header_of(data):
    return data[8 : 8 + int.from_bytes(data[:8], "little")]


def with_header(data, header):
    n = len(header_of(data))
    return len(header).to_bytes(8, "little") + header + data[8 + n :]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: b"", "does not begin like a safetensors"),
        (lambda data: data[:8], "does not begin like a safetensors"),
        (lambda data: b"\xff" + data[1:7] + b"\xff" + data[8:], "does not begin"),
        (lambda data: data[:20], "it is truncated: its header has .* bytes"),
        (lambda data: data[:-1], "it is truncated: it has .* bytes, but its header"),
        (lambda data: data + b"0", "^it has .* bytes, but its header says"),
        (lambda data: data.replace(b"numbers", b"Numbers"), "checksum of its header"),
        (lambda data: data.replace(b"numbers", b'"umbers'), "its header is not JSON"),
        (lambda data: with_header(data, b"{"), "its header is not JSON"),
        (lambda data: with_header(data, b"{}"), "its header is not one of nplm's"),
        (lambda data: with_header(data, b"{\xff"), "its header is not JSON"),
        (lambda data: with_header(data, b'{"a":' * 10**5), "its header is not JSON"),
        # A header that is one byte longer: arrays do not begin at multiples of a type.
        (
            lambda data: with_header(data, header_of(data) + b" "),
            "the offsets of .* are",
        ),
    ],
)
def test_damage(path, change, message):
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ValueError, match=message) as told:
        TensorFile(path)
    assert isinstance(told.value, NotTensorsError) is ("not begin" in message)


INVALID_ENTRIES = [
    {"dtype": "O"}, {"dtype": "F128"}, {"dtype": "F32"}, {"dtype": 3}, {"dtype": []},
    {"shape": [6]}, {"shape": [-1]}, {"shape": [True]}, {"shape": [2**70]},
    {"shape": [7] * 9}, {"shape": None}, {"data_offsets": [0]},
    {"data_offsets": [64, 65]}, {"data_offsets": None}, {"other": 1},
]  # fmt: skip


def swapped(header):
    header["prob"], header["start"] = header["start"], header["prob"]


def updated(name, **changes):
    return lambda header: header[name].update(changes)


NOT_OURS = "its header is not one of nplm's"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (swapped, None),  # types and places go together
        *(
            (updated("start", **own), "its header has|the off")
            for own in INVALID_ENTRIES
        ),
        (lambda header: header.pop("start"), "the offsets of"),
        (lambda header: header.update(more=header["none"]), "no checksums of its arr"),
        (lambda header: header[METADATA].pop("arrays"), "its header is not JSON"),
        (updated(METADATA, arrays="{}"), "no checksums of"),
        (updated(METADATA, of=3), NOT_OURS),
        (lambda header: header.update({METADATA: 3}), NOT_OURS),
    ],
)
def test_headers_whose_checksum_is_right(path, change, message):
    change_header(path, lambda header: change(header) and None)
    if message is None:
        with pytest.raises(ValueError, match=r"checksum of (prob|start) is wrong"):
            read_tensors(path, mmap=True)
    else:
        with pytest.raises(ValueError, match=message):
            TensorFile(path)
