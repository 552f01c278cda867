"""Conversions in bounded memory write the same bytes as those in memory."""

import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nplm import KneserNeyLM
from nplm.base.encoded_words import EncodedWords
from nplm.formats import load_binary, read_arpa, save_binary, write_arpa
from nplm.formats._words import StoredWords
from nplm.formats.ngrams_file import NgramsFile
from nplm.models.ngrams.stages.quantizing import unquantized
from nplm.models.ngrams.stages.scratch import Scratch
from nplm.models.ngrams.trie import hashing
from nplm.models.ngrams.trie.quantized_trie import QuantizedTrie
from tests.helpers import small_text, text
from tests.helpers.ngrams import convert_arpa, cut_in_memory

pytestmark = small_text
KINDS = ["mapped", "quantized", "arpa"]


def output(path, kind, bits=6):
    if kind == "arpa":
        return NgramsFile(path, "arpa")
    return NgramsFile(path, "binary", bits if kind == "quantized" else None)


def convert_trie(trie, words, target, memory, folder):
    with Scratch(folder, memory) as scratch:
        unpack = unquantized if isinstance(trie, QuantizedTrie) else type(trie).unpacked
        target.write(unpack(trie, scratch), words, scratch)


def in_memory(model, words, path, kind):
    if kind == "arpa":
        write_arpa(model, path, words)
    else:
        save_binary(model, path, words, bits=6 if kind == "quantized" else None)


def fitted(seed, order, boundary, n=400, n_words=9):
    model = KneserNeyLM(order, n_words=n_words, boundary=boundary)
    return model.fit_stream(text(n, seed=seed, n_words=n_words))


def without_some(model, share, seed):
    """Drop n-grams at random: contexts and suffixes of the others too."""
    rng = np.random.default_rng(seed)
    keep = rng.random(len(model.trie_.words)) < share
    model._set_trie(cut_in_memory(model.trie_, keep), None)
    return model


def with_lines_in_disorder(path, seed):
    """Shuffle the n-grams of each order, 2 and higher."""
    parts = path.read_text().split("\n\n")
    for i, part in enumerate(parts):
        title, *lines = part.split("\n")
        if title[:1] == "\\" and title not in ("\\data\\", "\\1-grams:", "\\end\\"):
            random.Random(seed).shuffle(lines)
        parts[i] = "\n".join([title, *lines])
    path.write_text("\n\n".join(parts))


@pytest.mark.slow
@settings(max_examples=25)
@given(
    order=st.integers(1, 5),
    boundary=st.sampled_from([None, 0, 3]),
    memory=st.sampled_from([1 << 10, 3 << 10, 1 << 28]),
    share=st.sampled_from([1.0, 0.7, 0.2]),
    kind=st.sampled_from(KINDS),
    disorder=st.booleans(),
    seed=st.integers(0, 99),
)
def test_file_is_that_of_the_model_in_memory(
    order, boundary, memory, share, kind, disorder, seed
):
    kind = "mapped" if order == 1 and kind == "quantized" else kind
    model = without_some(fitted(seed, order, boundary), share, seed)
    words = [f"w{i}" for i in range(9)]
    if boundary is not None:
        words[boundary] = "</s>"
    with tempfile.TemporaryDirectory() as folder:
        found, expected, source = (
            Path(folder) / name for name in ("found", "expected", "source")
        )
        write_arpa(model, source, words)
        if disorder:
            with_lines_in_disorder(source, seed)
        model, words = read_arpa(source, add_unknown=True)
        in_memory(model, words, expected, kind)
        convert_arpa(source, output(found, kind), memory=memory, folder=folder)
        assert found.read_bytes() == expected.read_bytes()
        # From a file of mapped n-grams too.
        save_binary(model, source, words)
        mapped, words = load_binary(source)
        own = StoredWords(EncodedWords.of(words), mapped.boundary), output(found, kind)
        convert_trie(mapped.trie_, *own, memory=memory, folder=folder)
        assert found.read_bytes() == expected.read_bytes()
        assert len(list(Path(folder).iterdir())) == 3


@pytest.mark.slow
@settings(max_examples=15)
@given(
    order=st.integers(2, 5),
    boundary=st.sampled_from([None, 0, 3]),
    memory=st.sampled_from([1 << 10, 1 << 26]),
    share=st.sampled_from([1.0, 0.7, 0.2]),
    seed=st.integers(0, 99),
)
def test_quantized_file_has_the_lines_of_its_numbers(
    order, boundary, memory, share, seed
):
    model = without_some(fitted(seed, order, boundary), share, seed)
    words = [f"w{i}" for i in range(9)]
    if boundary is not None:
        words[boundary] = "</s>"
    with tempfile.TemporaryDirectory() as folder:
        small, found, again = (Path(folder) / name for name in ("q", "found", "again"))
        save_binary(model, small, words, bits=8)
        quantized, words = load_binary(small)
        stored = StoredWords(EncodedWords.of(words), quantized.boundary)
        to_arpa = output(found, "arpa")
        convert_trie(quantized.trie_, stored, to_arpa, memory=memory, folder=folder)
        expected = quantized.predict_proba(X := contexts(order, seed))
        lines, own_words = read_arpa(found)
        ids = [own_words.index(word) for word in words]
        renamed = np.array(ids, dtype=np.int32)[X]
        np.testing.assert_allclose(
            lines.predict_proba(renamed)[:, ids], expected, rtol=1e-5
        )
        # Few values have a code each: nothing is lost in another quantized file.
        to_bits = output(again, "quantized", 8)
        convert_trie(quantized.trie_, stored, to_bits, memory=memory, folder=folder)
        assert again.read_bytes() == small.read_bytes()


def contexts(order, seed):
    return np.random.default_rng(seed).integers(0, 9, (50, order - 1), dtype=np.int32)


@pytest.mark.parametrize("share", [1.0, 0.3])
def test_file_does_not_depend_on_windows(tmp_path, monkeypatch, share):
    monkeypatch.setattr(hashing, "SPILL", 64)
    model = without_some(fitted(0, 4, 0, n=5000, n_words=60), share, 0)
    words = ["</s>", *(f"w{i}" for i in range(1, 60))]
    expected, found = tmp_path / "expected", tmp_path / "found"
    save_binary(model, expected, words)
    own = StoredWords(EncodedWords.of(words), 0), output(found, "mapped")
    convert_trie(model.trie_, *own, memory=1 << 10, folder=tmp_path)
    assert found.read_bytes() == expected.read_bytes()


@pytest.mark.slow
def test_table_of_a_trie_with_more_contexts_than_ngrams_grows(tmp_path):
    # Most contexts are not n-grams, and most n-grams lack their suffixes.
    rng = np.random.default_rng(0)
    grams = {tuple(row) for row in rng.integers(0, 60, (3000, 4)).tolist()}
    lines = [f"-1\tw{i}" for i in range(60)] + ["-1\t</s>", "-99\t<s>\t-0.5"]
    path, found, expected = (tmp_path / name for name in ("a.arpa", "found", "expect"))
    sections = ["\\1-grams:", *lines, "\\2-grams:", "\\3-grams:", "\\4-grams:"]
    sections += ["-2\t" + " ".join(f"w{i}" for i in gram) for gram in grams]
    counts = [f"ngram {k}={n}" for k, n in enumerate((62, 0, 0, len(grams)), 1)]
    path.write_text("\n".join(["\\data\\", *counts, *sections, "\\end\\"]))
    save_binary(*read_arpa(path, add_unknown=True)[:1], expected, _words(path))
    convert_arpa(path, output(found, "mapped"), memory=1 << 10, folder=tmp_path)
    assert found.read_bytes() == expected.read_bytes()


def _words(path):
    return read_arpa(path, add_unknown=True)[1]


@pytest.mark.parametrize("kind", KINDS)
def test_errors_are_those_of_reading_in_memory(tmp_path, kind):
    model, words = fitted(0, 3, 0), ["</s>", *(f"w{i}" for i in range(1, 9))]
    path, found = tmp_path / "a.arpa", tmp_path / "found"
    write_arpa(model, path, words)
    whole = path.read_text().split("\n")
    at = whole.index("\\3-grams:") + 3
    wrong = {
        "twice": [*whole[:at], whole[at - 1], *whole[at + 1 :]],
        "truncated": whole[:at],
        "unknown": [*whole[:at], "-1\tw1 w2 nobody", *whole[at + 1 :]],
    }
    for name, lines in wrong.items():
        path.write_text("\n".join(lines))
        with pytest.raises(ValueError, match=r"a\.arpa") as expected:
            read_arpa(path)
        with pytest.raises(ValueError, match=r"a\.arpa") as error:
            convert_arpa(path, output(found, kind), memory=1 << 10, folder=tmp_path)
        assert str(error.value) == str(expected.value), name
    assert [own.name for own in tmp_path.iterdir()] == ["a.arpa"]


@pytest.mark.parametrize("order", [1, 17])
def test_order_that_has_no_quantized_file_is_refused(tmp_path, order):
    words = [f"w{i}" for i in range(9)]
    write_arpa(fitted(0, order, None, n=60), tmp_path / "arpa", words)
    with pytest.raises(ValueError, match=f"quantizes orders 2 to 16, .* is {order}"):
        convert_arpa(
            tmp_path / "arpa", output(tmp_path / "out", "quantized"), memory=1 << 10
        )
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Return an ARPA file of half a million n-grams, and their number."""
    ids = np.random.default_rng(0).integers(0, 4000, 300_000)
    model = KneserNeyLM(3, n_words=4000, boundary=0, discount_fallback=0.5)
    model.fit_stream(ids)
    words = ["</s>", *(f"w{i}" for i in range(1, 4000))]
    path = tmp_path_factory.mktemp("large") / "a.arpa"
    write_arpa(model, path, words)
    return path, int(model.n_ngrams_.sum())


PEAK = """
import sys
from nplm.formats._words import StoredWords
from nplm.formats.ngrams_file import NgramsFile
from nplm.formats.open_model import open_model
from nplm.models.mixtures.static_mixture import mixed
from nplm.models.ngrams.stages.pruning import pruned_by_entropy
from nplm.models.ngrams.stages.scratch import Scratch

def peak():
    lines = open("/proc/self/status")
    return 1024 * next(int(x.split()[1]) for x in lines if x.startswith("VmHWM"))

source, target, folder, memory, *changes = sys.argv[1:]
for change in changes:
    open("/proc/self/clear_refs", "w").write("5")
    before = peak()
    with Scratch(folder, int(memory)) as work:
        with open_model(source) as file:
            ngrams = file.text_ngrams(work)
        if change == "prune":
            ngrams = ngrams._replace(trie=pruned_by_entropy(ngrams.trie, 1e-5, work))
        elif change == "mix":
            ngrams, *_ = mixed([ngrams, ngrams], [0.5, 0.5], None, work)
        bits = 6 if change == "quantized" else None
        file = NgramsFile(target, "arpa" if change == "arpa" else "binary", bits)
        words = StoredWords.of(ngrams.words, ngrams.boundary, ngrams.tokenizer)
        file.write(ngrams.trie, words, work)
    print(peak() - before)
    del ngrams, words
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells a process's peak")
@pytest.mark.parametrize("kind", ["arpa", "mapped"])
def test_peak_memory_is_bounded(large, tmp_path, kind):
    """Half a million n-grams, 25 MB or more, are processed in less memory."""
    source, n_ngrams = large
    # A chunk of text (32 MB while it is appended to) and the memory allowed.
    memory, bound, changes = 24 << 20, 90 << 20, ["mapped", "mix"]
    if kind == "mapped":
        memory, bound, changes = 6 << 20, 20 << 20, [*KINDS, "prune", "mix"]
        convert_arpa(source, output(tmp_path / "mapped", "mapped"), memory=1 << 28)
        source = tmp_path / "mapped"
    arguments = source, tmp_path / "changed", tmp_path, memory, *changes
    command = [sys.executable, "-c", PEAK, *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    peaks = dict(zip(changes, map(int, done.stdout.split()), strict=True))
    assert n_ngrams > 500_000
    assert all(peak < bound for peak in peaks.values()), peaks
