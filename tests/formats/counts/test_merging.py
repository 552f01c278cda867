"""Count files: merged as sums of dictionaries, and as the source of models."""

import gzip
import io
import math
import os
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nplm import KneserNeyLM, Vocabulary
from nplm.formats import (
    CountFiles,
    count_ngrams,
    estimate_arpa,
    estimate_binary,
    load_binary,
    read_arpa,
    read_counts,
    write_counts,
)

TEXTS = ["a b a\nb\nc a b a\n", "b a b\nc c c c\nb\n", "d a\n"]
LINES = st.lists(st.lists(st.sampled_from("abcde"), min_size=1, max_size=6), min_size=1)
FALLBACK = {"discount_fallback": (0.5, 1, 1.5)}


def counted(text, order):
    """Count the n-grams of a text in a dictionary."""
    counts = Counter()
    for line in filter(None, text.splitlines()):
        words = ["<s>", *line.split(), "</s>"]
        for end in range(2, len(words) + 1):
            for n in range(1, min(order, end) + 1):
                counts[" ".join(words[end - n : end])] += 1
    return counts


def in_file(path):
    lines = Path(path).read_text().splitlines()
    rows = (line.split("\t") for line in lines)
    return Counter({gram: int(count) for gram, count in rows if int(count)})


def files_of(folder, texts, order):
    paths = [f"{folder}/{i}.gz" for i in range(len(texts))]
    for text, path in zip(texts, paths):
        count_ngrams([io.BytesIO(text.encode())], path, order)
    return paths


@pytest.mark.slow
@settings(max_examples=25)
@given(
    texts=st.lists(LINES, min_size=1, max_size=3),
    order=st.integers(1, 5),
    longer=st.integers(0, 2),
    weights=st.lists(st.sampled_from([1, 3, 0.5, 2.5, 0.4]), min_size=3, max_size=3),
    memory=st.sampled_from([1 << 10, 1 << 24]),
)
def test_merged_counts_are_weighted_sums(texts, order, longer, weights, memory):
    texts = ["".join(" ".join(line) + "\n" for line in lines) for lines in texts]
    weights = weights[: len(texts)]
    expected = Counter()
    for text, weight in zip(texts, weights):
        # The longest n-grams and those from <s> on have the weight.
        for gram, count in counted(text, order).items():
            words = gram.split()
            if len(words) < order and words[0] != "<s>":
                continue
            count = max(1, math.floor(count * weight + 0.5))
            for first in range(len(words)):
                suffix = words[first:]
                if suffix != ["<s>"]:
                    expected[" ".join(suffix)] += count
    with tempfile.TemporaryDirectory() as folder:
        paths = files_of(folder, texts, order + longer)
        found = f"{folder}/found"
        count_ngrams(CountFiles(paths, weights), found, order, memory=memory)
        assert in_file(found) == expected


@pytest.mark.slow
@settings(max_examples=8)
@given(
    texts=st.lists(LINES, min_size=1, max_size=3),
    order=st.integers(1, 4),
    weights=st.lists(st.sampled_from([1, 0.4, 0.1, 1e-9, 1.3]), min_size=3, max_size=3),
)
def test_whatever_is_merged_is_read_back_and_trained_from(texts, order, weights):
    # `fit_counts` refuses an order without n-grams.
    assume(max(len(line) for lines in texts for line in lines) + 2 >= order)
    texts = ["".join(" ".join(line) + "\n" for line in lines) for lines in texts]
    model = KneserNeyLM(order, **FALLBACK)
    with tempfile.TemporaryDirectory() as folder:
        own = CountFiles(files_of(folder, texts, order), weights[: len(texts)])
        merged, again = f"{folder}/merged", f"{folder}/again"
        count_ngrams(own, merged, order)
        count_ngrams(CountFiles([merged]), again, order)
        assert in_file(again) == in_file(merged)
        tables, counts, words = read_counts(merged)
        assert set(words) == {"</s>", *"".join(texts).split()}
        assert all(n.min() >= 1 for n in counts)
        in_memory = KneserNeyLM(order, boundary=words.index("</s>"), **FALLBACK)
        in_memory.fit_counts(tables[:order], counts[:order])
        for source in (own, CountFiles([merged])):
            estimate_binary(model, source, f"{folder}/model")
            loaded, _ = load_binary(f"{folder}/model", verify=True)
            estimate_arpa(model, source, f"{folder}/arpa")
            from_arpa, _ = read_arpa(f"{folder}/arpa")
            assert from_arpa.n_ngrams_.tolist() == loaded.n_ngrams_.tolist()


@pytest.mark.parametrize("order", [1, 2])
def test_lines_of_equal_ngrams_are_rounded_one_by_one(tmp_path, order):
    path = tmp_path / "counts"
    once = "</s>\t1\na\t1\n<s> a\t1\na </s>\t1\n"
    path.write_text(once + once + "b\t1\n<s> b\t1\nb </s>\t1\n</s>\t1\n")
    # The vocabulary has the words by the counts that the n-grams have.
    vocabulary = Vocabulary(min_count=2)
    count_ngrams(
        CountFiles([path], [0.5]), tmp_path / "found", order, vocabulary=vocabulary
    )
    found = in_file(tmp_path / "found")
    assert found["a"] == 2
    assert found["<unk>"] == 1


def test_counts_read_into_memory_are_those_on_disk(tmp_path):
    """A byte order mark is no part of a word."""
    path = Path(files_of(tmp_path, TEXTS[:1], 2)[0])
    plain, marked = (tmp_path / name for name in ("plain", "marked"))
    plain.write_bytes(gzip.decompress(path.read_bytes()))
    marked.write_bytes(b"\xef\xbb\xbf" + plain.read_bytes())
    found, expected = read_counts(marked), read_counts(plain)
    assert found[2] == expected[2]
    for own, other in zip(found[0] + found[1], expected[0] + expected[1]):
        assert own.tolist() == other.tolist()
    for own in (marked, plain):
        count_ngrams(CountFiles([own]), tmp_path / f"{own.name} again", 2)
    model = KneserNeyLM(2, boundary=found[2].index("</s>"), **FALLBACK)
    write_counts(model.fit_counts(*found[:2]), tmp_path / "again", found[2])
    for name in ("marked again", "plain again"):
        assert in_file(tmp_path / name) == in_file(tmp_path / "again")
    plain.write_bytes(b"\xef\xbb\xbf")
    with pytest.raises(ValueError, match="is empty"):
        read_counts(plain)


@pytest.mark.parametrize("parameters", [{}, {"min_count": 2}, {"words": ["b", "c"]}])
@pytest.mark.parametrize("order", [1, 2, 4])
def test_model_is_that_of_the_text(tmp_path, order, parameters):
    paths = files_of(tmp_path, TEXTS, 4)
    model, vocabulary = KneserNeyLM(order, **FALLBACK), Vocabulary(**parameters)
    texts = [io.BytesIO("".join(TEXTS).encode())]
    for name, source in (("text", texts), ("counts", CountFiles(paths))):
        own = estimate_binary(model, source, tmp_path / name, vocabulary=vocabulary)
        assert own.n_tokens == 18
        assert own.n_lines == 7
    assert (tmp_path / "text").read_bytes() == (tmp_path / "counts").read_bytes()


def test_counts_that_are_not_complete_are_refused(tmp_path):
    path = Path(files_of(tmp_path, TEXTS[:1], 2)[0]).with_name("plain")
    count_ngrams([io.BytesIO(TEXTS[0].encode())], path, 2)
    lines = path.read_text().splitlines()
    found = tmp_path / "found"

    def refused(lines, message, order=2):
        path.write_text("\n".join(lines), errors="surrogateescape")
        with pytest.raises(ValueError, match=message):
            count_ngrams(CountFiles([path]), found, order)
        assert not found.exists()

    cut = [line for line in lines if line != "b a\t2"]
    assert len(cut) == len(lines) - 1
    refused(cut, "plain does not have the counts of complete lines: 'a' has the count")
    refused(lines, "n-grams of up to 3 words or more, without cut-offs", order=3)
    refused(lines, "order=10, but count files", order=10)
    refused([own for own in lines if not own.startswith("</s>")], "no count of </s>")
    refused(
        [*lines, "a nobody\t1"], f"plain, line {len(lines) + 1}: 'a nobody.* a word"
    )
    refused([*lines, "a b\tmany"], f"line {len(lines) + 1}: .*whole number")
    refused([*lines, "\udce9\t1"], rf"plain, line {len(lines) + 1}: not UTF-8")


def test_files_of_other_kinds_are_refused_with_what_they_are(tmp_path):
    path, found = tmp_path / "given", tmp_path / "found"
    model = KneserNeyLM(2, **FALLBACK)
    texts = [io.BytesIO(TEXTS[0].encode())]

    def refused(message):
        for estimate in (
            lambda: count_ngrams(CountFiles([path]), found, 2),
            lambda: estimate_binary(model, CountFiles([path]), found),
        ):
            with pytest.raises(ValueError, match=f"given {message}.* nplm count"):
                estimate()

    path.write_text(TEXTS[0])
    refused("is plain text, not counts")
    estimate_arpa(model, texts, path)
    refused("is an ARPA file: a model, not counts")
    estimate_binary(model, [io.BytesIO(TEXTS[0].encode())], path)
    refused("has no lines of an n-gram, a tab and its count")


def test_pipes_are_refused_because_files_are_read_twice(tmp_path):
    end, start = os.pipe()
    try:
        os.write(start, b"</s>\t1\na\t1\n<s> a\t1\na </s>\t1\n")
        counts = CountFiles([f"/dev/fd/{end}"])
        with pytest.raises(OSError, match=r"/dev/fd/\d+ is a pipe or a device: write"):
            count_ngrams(counts, tmp_path / "found", 2)
    finally:
        os.close(end)
        os.close(start)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize(
    ("lines", "weight"),
    [("</s>\t0\n", 1), ("</s>\t3\n<s> </s>\t3\n", 1), ("</s>\t0\n", 0.1)],
)
def test_counts_without_a_word_are_refused(tmp_path, order, lines, weight):
    path = tmp_path / "counts"
    path.write_text(lines)
    counts = CountFiles([path], [weight])
    with pytest.raises(ValueError, match="no word that occurs"):
        count_ngrams(counts, tmp_path / "found", order)
    with pytest.raises(ValueError, match="no word that occurs"):
        estimate_binary(KneserNeyLM(order), counts, tmp_path / "found")
    assert not (tmp_path / "found").exists()


def test_parameters_out_of_range_are_refused(tmp_path):
    paths = files_of(tmp_path, TEXTS[:2], 2)
    for weights in ([1], [1, 0], [1, np.inf], [1, "much"]):
        with pytest.raises(ValueError, match=r"must be numbers above 0, .*are 2"):
            CountFiles(paths, weights)
    with pytest.raises(ValueError, match="paths is empty"):
        CountFiles([])
    with pytest.raises(TypeError, match="single str"):
        CountFiles(paths[0])
    found, own = tmp_path / "found", Vocabulary(boundary="<p>")
    for weights, path, order, vocabulary, message in [
        ([1e15, 1e15], found, 2, None, "overflow"),
        (None, paths[0], 2, None, "one of the files"),
        (None, found, 0, None, "order must be"),
        (None, found, 2, own, "boundary='<p>', but"),
    ]:
        files = CountFiles(paths, weights)
        with pytest.raises(ValueError, match=message):
            count_ngrams(files, path, order, vocabulary=vocabulary)


@pytest.mark.parametrize("order", [1, 3])
def test_progress_of_reading_and_sorting_ends_at_its_total(tmp_path, order):
    files, last = files_of(tmp_path, TEXTS, 3), {}

    def told(stage, *progress):
        last[stage] = progress

    count_ngrams(CountFiles(files), tmp_path / "both", order, progress=told)
    n_bytes = sum(Path(f).stat().st_size for f in files)
    n_lines = sum(gzip.decompress(Path(f).read_bytes()).count(b"\n") for f in files)
    assert last["reading"] == (n_bytes, n_bytes)
    assert last["sorting n-grams"] == (n_lines, n_lines)
