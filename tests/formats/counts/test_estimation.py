"""Estimation in bounded memory writes the same bytes as models in memory."""

import io
import itertools
import os
import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import nplm
from nplm import KneserNeyLM, Tokenizer, Vocabulary
from nplm.formats import (
    estimate_arpa,
    estimate_binary,
    load_binary,
    save_binary,
    write_arpa,
)
from nplm.models.ngrams.stages import levels
from nplm.models.ngrams.trie import hashing
from tests.helpers import pairwise
from tests.helpers.binary import assert_same_ngrams, ngrams_of, read_parts
from tests.helpers.texts import joined, lines_of

pytestmark = pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate")

LETTERS = st.sampled_from("abcdefgh")
LINES = st.lists(st.lists(LETTERS, min_size=1, max_size=9), min_size=1, max_size=40)


def in_memory(path, lines, vocabulary, *args, save=save_binary, **parameters):
    """Write the file of the same model, fitted in memory."""
    ids = vocabulary.fit_transform(lines)
    model = KneserNeyLM(
        *args,
        n_words=vocabulary.n_words_,
        boundary=vocabulary.boundary_id_,
        **parameters,
    )
    save(model.fit_stream(ids), path, vocabulary.words_.tolist())
    return model


@pytest.mark.slow
@settings(max_examples=25)
@given(
    lines=LINES,
    order=st.integers(1, 6),
    memory=st.sampled_from(["1K", "3K", "1M"]),
    n_jobs=st.integers(1, 3),
    min_count=st.integers(1, 2),
    interpolate=st.sampled_from(["all", "longer", "none"]),
    discounts=st.sampled_from(["modified", "plain"]),
    min_counts=st.sampled_from([None, None, (1, 1, 2), (1, 2), (2, 2, 3)]),
    min_counts_of=st.sampled_from(["modified", "text"]),
)
def test_file_is_that_of_the_model_in_memory(
    lines,
    order,
    memory,
    n_jobs,
    min_count,
    interpolate,
    discounts,
    min_counts,
    min_counts_of,
):
    vocabulary = Vocabulary(min_count)
    parameters = {"interpolate": interpolate != "none", "discounts": discounts}
    parameters["interpolate_unigrams"] = interpolate == "all"
    parameters |= {"min_counts": min_counts, "min_counts_of": min_counts_of}
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for estimate, save in [
            (estimate_binary, save_binary),
            (estimate_arpa, write_arpa),
            (partial(estimate_binary, bits=6), partial(save_binary, bits=6)),
        ][: 2 + (order > 1)]:
            estimate(
                KneserNeyLM(order, **parameters), [joined(lines)], folder / "found",
                vocabulary=vocabulary, memory=memory, n_jobs=n_jobs,
            )  # fmt: skip
            in_memory(
                folder / "expected", lines, vocabulary, order, save=save, **parameters
            )
            assert_same_ngrams(folder)


def test_tokenizer_splits_the_text_and_is_loaded_with_the_model(tmp_path):
    text = "\ufeffDon't pay $3.50, sir.\n\nPay; it isn't much.\n" * 3
    lines = [
        own for own in Tokenizer().transform(text.lstrip("\ufeff").split("\n")) if own
    ]
    found, expected = (tmp_path / name for name in ("found", "expected"))
    estimated = estimate_binary(
        KneserNeyLM(3), [io.BytesIO(text.encode())], found, tokenizer=Tokenizer()
    )
    in_memory(expected, lines, Vocabulary(), 3)
    for name, array in read_parts(expected)[1].items():
        assert_array_equal(array, read_parts(found)[1][name])
    assert (estimated.n_lines, estimated.n_tokens) == (6, sum(map(len, lines)))
    loaded = nplm.load(found)
    assert str(loaded.tokenizer_) == str(Tokenizer())
    plain = nplm.load(expected)
    assert_array_equal(
        loaded.score_samples(["Don't pay."]), plain.score_samples(["Don't pay ."])
    )
    with pytest.raises(ValueError, match="line 2: not UTF-8"):
        estimate_binary(
            KneserNeyLM(3), [io.BytesIO(b"a\n\xff")], found, tokenizer=Tokenizer()
        )


@pytest.mark.parametrize(
    "changes", [{"lowercase": True}, {"number": "<num>"}, {"proper_noun": "<name>"}]
)
def test_tokenizer_that_changes_words_between_blanks_is_loaded(tmp_path, changes):
    tokenizer = Tokenizer(r"[^ \t\r\n]+", **changes)
    estimate_binary(
        KneserNeyLM(2), [io.BytesIO(b"a Rose 3\n" * 3)], tmp_path / "model",
        tokenizer=tokenizer,
    )  # fmt: skip
    loaded = nplm.load(tmp_path / "model")
    assert loaded.tokenizer_.get_params() == tokenizer.get_params()
    [ids] = loaded.vocabulary_.transform(loaded.tokenizer_.transform(["a Rose 3"]))
    assert loaded.vocabulary_.unknown_id_ not in ids


@pairwise(
    {
        "order": [2, 4],
        "n_jobs": [1, 2],
        "cut": [None, "modified", "text"],
        "name": ["binary", "arpa.gz"],
    }
)
def test_file_does_not_depend_on_runs_and_windows(
    tmp_path, monkeypatch, order, n_jobs, cut, name
):
    # Runs merge in two steps, and each thread fills hash tables in several windows.
    monkeypatch.setattr(levels, "MAX_RUNS", 8)
    monkeypatch.setattr(hashing, "SPILL", 16)
    monkeypatch.setattr(hashing, "MIN_BUCKETS", 1 << 8)
    lines, seen, parameters = lines_of(), [], {}
    if cut is not None:
        min_counts = (1, 2) if order == 2 else (1, 1, 2)
        parameters = {"min_counts": min_counts, "min_counts_of": cut}
    found, expected = (tmp_path / f"{which}.{name}" for which in ("found", "expected"))
    estimate, save = estimate_binary, save_binary
    if name == "arpa.gz":
        estimate, save = estimate_arpa, write_arpa
    estimated = estimate(
        KneserNeyLM(order, **parameters),
        [joined(lines)],
        found,
        memory="2K",
        n_jobs=n_jobs,
        folder=tmp_path,
        progress=lambda *told: seen.append(told),
    )
    model = in_memory(expected, lines, Vocabulary(), order, save=save, **parameters)
    assert ngrams_of(found) == ngrams_of(expected)
    assert sorted(os.listdir(tmp_path)) == [f"expected.{name}", f"found.{name}"]
    # SRILM's rule leaves n-grams without their suffixes, and KenLM's does not.
    tables = [set(map(tuple, model.trie_.ngrams(k).tolist())) for k in range(order)]
    lacking = [
        gram
        for shorter, longer in itertools.pairwise(tables)
        for gram in longer
        if gram[1:] not in shorter
    ]
    assert bool(lacking) == (cut == "modified" and order > 3)
    assert_array_equal(estimated.n_ngrams, model.n_ngrams_)
    assert_array_equal(estimated.discounts, model.discounts_)
    assert (estimated.n_lines, estimated.n_tokens) == (len(lines), sum(map(len, lines)))
    stages = list(dict.fromkeys(stage for stage, _, _ in seen))
    assert stages == [
        "reading",
        "sorting n-grams",
        "merging runs",
        "merging",
        "putting together",
        "estimating",
        "writing" if name == "arpa.gz" else "hashing",
    ]
    last = {stage: (done, total) for stage, done, total in seen}
    assert all(done == total for done, total in list(last.values())[1:]), last


def test_texts_are_read_from_files_archives_and_streams(tmp_path):
    import gzip

    lines = lines_of(400)
    (tmp_path / "a.txt").write_bytes(joined(lines[:20]).getvalue())
    packed = gzip.compress(joined(lines[20:30]).getvalue() + b"\n \n\n")
    (tmp_path / "b.txt.gz").write_bytes(packed)
    texts = [tmp_path / "a.txt", str(tmp_path / "b.txt.gz"), joined(lines[30:])]
    vocabulary = Vocabulary(words=["w1", "w2", "</s>"])
    estimated = estimate_binary(
        KneserNeyLM(3), texts, tmp_path / "found", vocabulary=vocabulary
    )
    in_memory(tmp_path / "expected", lines, vocabulary, 3)
    assert_same_ngrams(tmp_path)
    assert estimated.n_unknown == vocabulary.count_unknown(lines).sum()
    assert not hasattr(KneserNeyLM(3), "order_")
    model, _ = load_binary(tmp_path / "found", verify=True)
    assert_allclose(model.predict_proba([[0, 1]]).sum(), 1, rtol=1e-6)
    (tmp_path / "b.txt.gz").write_bytes(packed[:-9])
    with pytest.raises(ValueError, match=r"b.txt.gz cannot be decompressed"):
        estimate_binary(KneserNeyLM(3), texts, tmp_path / "found")
