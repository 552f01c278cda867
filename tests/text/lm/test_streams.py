"""Streams: fits of any iterable are those of a list, in bounded memory."""

import errno
import io
import os
import re
import tempfile
from multiprocessing.connection import Pipe

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nplm import (
    EnergyLM,
    InterpolatedTrigram,
    KneserNeyLM,
    MixtureLM,
    NeuralLM,
    Subwords,
    TextLM,
    UniformLM,
    Vocabulary,
)
from nplm.base import blocks as blocks_module
from nplm.base import checks
from nplm.text import codecs as codecs_module
from nplm.text import document_streams
from nplm.text import documents as documents_module
from nplm.text.document_streams import IdCollector
from nplm.text.documents import Documents
from nplm.text.lm.fitted_text import fitted_text
from tests.helpers import energy_lm, paper_lm, peak_of

TEXTS = ["the cat sat on the mat .", "a dog saw the cat .", "the dog sat ."] * 500
NGRAMS = KneserNeyLM(discount_fallback=(0.5, 1, 1.5))
SMALL = dict(n_hidden=4, embedding_dim=3, max_iter=2, random_state=0)


def text_lm(model=None, **params):
    return TextLM(InterpolatedTrigram() if model is None else model, 3, **params)


class Again:
    """Documents that can be read again, and have no length."""

    def __init__(self, texts):
        self.texts = texts

    def __iter__(self):
        return iter(self.texts)


STREAMS = {
    "object": Again,
    "function": lambda texts: lambda: iter(texts),
    "generator": lambda texts: (text for text in texts),
    "text file": lambda texts: io.StringIO("\n\n".join(texts)),
    "binary file": lambda texts: io.BytesIO("\r\n".join(texts).encode("utf-8-sig")),
}


@pytest.mark.parametrize("kind", STREAMS)
def test_fit_of_a_stream_is_that_of_a_list(kind):
    expected = text_lm(vocabulary=Vocabulary(min_count=600)).fit(TEXTS)
    lm = text_lm(vocabulary=Vocabulary(min_count=600)).fit(STREAMS[kind](TEXTS))
    assert lm.vocabulary_.ids_ == expected.vocabulary_.ids_
    np.testing.assert_array_equal(
        lm.score_samples(TEXTS), expected.score_samples(TEXTS)
    )


@pytest.mark.parametrize("returned", [None, "a text", b"text", 3])
def test_a_function_returns_documents(returned):
    with pytest.raises(TypeError, match=r"X is a function that returns a \w+: let it"):
        text_lm().fit(lambda: returned)


@pytest.mark.parametrize(
    "model",
    [
        paper_lm(**SMALL),
        energy_lm(**SMALL),
        MixtureLM([("a", NGRAMS), ("b", UniformLM())]),
    ],
    ids=lambda model: type(model).__name__,
)
def test_networks_and_mixtures_fit_streams_with_the_same_bits(model):
    expected = text_lm(model).fit(TEXTS, X_val=TEXTS[:9])
    lm = text_lm(model).fit(Again(TEXTS), X_val=Again(TEXTS[:9]))
    np.testing.assert_array_equal(
        lm.score_samples(TEXTS), expected.score_samples(TEXTS)
    )


def test_streams_of_tokens_and_of_ids_are_fitted():
    sessions = [["login", ("read", 3)], [], ["login", 404]] * 500
    lm = text_lm().fit(Again(sessions))
    expected = text_lm().fit(sessions)
    assert lm.vocabulary_.ids_ == expected.vocabulary_.ids_
    assert lm.score(sessions) == expected.score(sessions)
    ids = [np.array([1, 2]), np.array([2, 2, 3])] * 600
    lm = text_lm().fit(Again(ids))
    assert lm.vocabulary_ is None
    assert lm.score(ids) == text_lm().fit(ids).score(ids)


def test_an_iterator_cannot_be_read_for_the_tokenizer_first():
    pytest.importorskip("tokenizers")
    lm = text_lm(NGRAMS, tokenizer=Subwords("bpe", n_words=280))
    message = "X is a generator, which can be read only once, .* returns a new one"
    with pytest.raises(TypeError, match=message):
        lm.fit(text for text in TEXTS)
    assert lm.fit(Again(TEXTS)).score(TEXTS) == lm.fit(TEXTS).score(TEXTS)


def test_errors_name_the_document_of_a_stream():
    texts = [*TEXTS, None]
    with pytest.raises(TypeError, match=r"X\[1500\] is missing"):
        text_lm().fit(Again(texts))
    with pytest.raises(TypeError, match=r"X\[1500\] is of type bytes"):
        text_lm().fit(Again([*TEXTS, b"bytes"]))
    with pytest.raises(TypeError, match=r"X\[1200\] is of type int"):
        text_lm(tokenizer=Subwords("characters")).fit(Again([*TEXTS[:1200], 3]))
    with pytest.raises(ValueError, match=r"X\[1200\] has -1 at 1"):
        text_lm().fit(Again([[1, 2]] * 1200 + [[1, -1]]))
    lm = text_lm().fit(TEXTS)
    with pytest.raises(TypeError, match=r"X\[1001\] is of type int"):
        lm.text_scores(Again([*TEXTS[:1001], 3]))
    with pytest.raises(TypeError, match=r"X\[0\] is of type dict with the keys 'text'"):
        text_lm().fit(Again([{"text": "a rose"}]))
    with pytest.raises(ValueError, match=r"X, line 2: not UTF-8 .*TextLines"):
        text_lm().fit(io.BytesIO(b"good\ncaf\xe9\n"))
    with pytest.raises(ValueError, match="X has 0 documents and no token"):
        text_lm().fit(Again([]))


# -- memory ---------------------------------------------------------------------


def peak_of_a_fit(n_documents):
    """Return the greatest memory of Python and NumPy during a fit of a stream."""
    text = " ".join(["word"] * 99)
    lm = TextLM(UniformLM(), n_context=9)
    return peak_of(lambda: lm.fit(text for _ in range(n_documents)))


def test_memory_does_not_grow_with_a_stream(monkeypatch):
    # Blocks of a short text.
    monkeypatch.setattr(documents_module, "WORDS_A_BLOCK", 1 << 12)
    monkeypatch.setattr(blocks_module, "BLOCK_WINDOWS", 1 << 12)
    monkeypatch.setattr(document_streams, "IDS_A_BLOCK", 1 << 12)
    monkeypatch.setattr(document_streams, "LENGTH_A_BLOCK", 1 << 12)
    monkeypatch.setattr(codecs_module, "IDS_A_BLOCK", 1 << 12)
    monkeypatch.setattr(checks, "BLOCK_IDS", 1 << 12)
    peak_of_a_fit(10)  # loads what is loaded once
    # 2 and 10 blocks. In memory, ids and windows of 30,000 tokens take 1.3 MB; the
    # lengths of 300 documents 5 KB.
    few, many = peak_of_a_fit(100), peak_of_a_fit(400)
    assert many - few < 100_000


@settings(max_examples=40)
@given(
    st.lists(st.lists(st.integers(1, 9), max_size=9), min_size=1, max_size=12),
    st.integers(1, 4),
    st.integers(1, 5),
    st.booleans(),
    st.booleans(),
)
def test_windows_in_blocks_are_those_of_all_documents(
    texts, n_context, n_words_a_block, ends, on_disk
):
    if not ends and not any(texts):
        return
    with IdCollector(on_disk=on_disk) as collector:
        for ids in texts:
            collector.add(ids)
        collected = collector.documents()
    expected = Documents.of_ids(texts, "X", None)
    np.testing.assert_array_equal(collected.ids, expected.ids)
    np.testing.assert_array_equal(collected.lengths, expected.lengths)
    padded = [[0] * n_context + ids + [0] * ends for ids in texts]
    expected_windows = [
        ids[i : i + n_context + 1]
        for ids in padded
        for i in range(len(ids) - n_context)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents_module, "WORDS_A_BLOCK", n_words_a_block)
        patch.setattr(blocks_module, "BLOCK_WINDOWS", n_words_a_block)
        contexts, targets = collected.texts(n_context, 0, ends=ends).windows()
    windows = np.column_stack([contexts, targets])
    np.testing.assert_array_equal(windows, expected_windows)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device is always full")
def test_error_of_a_full_disk_names_the_folder_of_temporary_files(monkeypatch):
    def full(**_):
        return open("/dev/full", "w+b")

    monkeypatch.setattr(document_streams.tempfile, "TemporaryFile", full)
    folder = re.escape(tempfile.gettempdir())
    with pytest.raises(OSError, match=f"the disk of {folder} is full: ") as caught:
        text_lm().fit(iter(TEXTS))
    assert caught.value.errno == errno.ENOSPC


# -- part by part -------------------------------------------------------------------


def test_partial_fit_of_counts_is_a_fit_of_all_documents():
    vocabulary = Vocabulary(words=["the", "cat", "sat", "dog"])
    lm = text_lm(NGRAMS, vocabulary=vocabulary)
    for part in (TEXTS[:2], Again(TEXTS[2:100]), TEXTS[100:]):
        assert lm.partial_fit(part) is lm
    expected = text_lm(NGRAMS, vocabulary=vocabulary).fit(TEXTS)
    np.testing.assert_array_equal(
        lm.score_samples(TEXTS), expected.score_samples(TEXTS)
    )


def test_partial_fit_trains_a_network_on_the_windows_of_each_call():
    network = paper_lm(**SMALL)
    lm = text_lm(network).partial_fit(TEXTS[:60]).partial_fit(["a zebra saw the dog"])
    assert "zebra" not in lm.vocabulary_.ids_  # which the first call has chosen
    own = paper_lm(**SMALL, n_words=lm.n_words_)
    for texts in (TEXTS[:60], ["a zebra saw the dog"]):
        documents = fitted_text(lm).codec.encode(texts)
        own.partial_fit(*documents.texts(3, 0, ends=True).windows())
    X, y = fitted_text(lm).codec.encode(TEXTS).texts(3, 0, ends=True).windows()
    np.testing.assert_array_equal(lm.estimator_.log_prob(X, y), own.log_prob(X, y))


def test_partial_fit_continues_from_a_fit():
    lm = text_lm(NGRAMS).fit(TEXTS[:3])
    before = lm.vocabulary_
    lm.partial_fit(TEXTS[3:])
    assert lm.vocabulary_ is before
    assert lm.score(TEXTS) == text_lm(NGRAMS).fit(TEXTS).score(TEXTS)


def test_partial_fit_needs_an_estimator_that_has_it():
    with pytest.raises(TypeError, match="InterpolatedTrigram has no partial_fit"):
        text_lm().partial_fit(TEXTS)
    assert hasattr(NeuralLM(), "partial_fit")
    assert hasattr(EnergyLM(), "partial_fit")


def test_an_error_in_partial_fit_leaves_the_model_as_it_was():
    lm = text_lm(NGRAMS)
    with pytest.raises(TypeError, match=r"X\[1\] is missing"):
        lm.partial_fit(["a cat", None])
    assert not hasattr(lm, "estimator_")
    before = lm.partial_fit(TEXTS).score(TEXTS)
    with pytest.raises(TypeError, match=r"X\[0\] is missing"):
        lm.partial_fit([None])
    assert lm.score(TEXTS) == before


@pytest.mark.parametrize("at", [0, 50, 149])
@pytest.mark.parametrize("name", ["X", "X_val"])
def test_a_source_that_forks_is_read_by_both_processes(name, at, monkeypatch):
    """The child first: what it writes is not in the parent's file."""
    monkeypatch.setattr(document_streams, "IDS_A_BLOCK", 100)
    monkeypatch.setattr(document_streams, "DOCUMENTS_A_BLOCK", 7)

    def read(texts):
        documents = {"X": some, "X_val": some, name: texts}
        return text_lm().fit(**documents).score(some)

    some = TEXTS[:150]
    want = read(some)
    receiving, sending = Pipe(duplex=False)
    child = None

    def forking():
        nonlocal child
        for i, text in enumerate(some):
            if i == at:
                child = os.fork()
                if child != 0:
                    assert receiving.poll(30)
            yield text

    got = None
    try:
        got = read(forking())
    finally:
        if child == 0:
            sending.send(got)
            os._exit(0)
    os.waitpid(child, 0)
    assert (got, receiving.recv()) == (want, want)
