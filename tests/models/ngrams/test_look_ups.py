"""Windows in arrays of int32 are scored without the checks of all inputs."""

import signal

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from nplm import BackoffLM, TextLM, windows
from nplm.formats import load_binary, save_binary
from nplm.models.ngrams.looked_up_lm import QuickLookUps
from tests.helpers import arpa

N_WORDS = 50


@pytest.fixture(params=["hashed", "not hashed", "quantized"])
def fitted(request, tmp_path):
    model, X, y = arpa.fitted(4, n_words=N_WORDS, boundary=1)
    if request.param == "quantized":
        words = [f"w{i}" for i in range(N_WORDS)]
        save_binary(model, tmp_path / "model.nplm", words, bits=6)
        model, _ = load_binary(tmp_path / "model.nplm")
    elif request.param == "not hashed":
        model = BackoffLM.from_trie(model.trie_, boundary=1)
    return model, X.astype(np.int32), y.astype(np.int32)


def test_log_prob_of_arrays_is_that_of_other_inputs_bit_for_bit(fitted):
    model, X, y = fitted
    expected = model.log_prob(X.tolist(), y.tolist())
    for own in ((X, y), (X.astype(np.int64), y), (np.asfortranarray(X), y)):
        assert_array_equal(model.log_prob(*own), expected)
    for n in (1, 7, 33, 64, 255, 257):
        parts = [model.log_prob(X[i : i + n], y[i : i + n]) for i in range(0, 600, n)]
        found = np.concatenate(parts)
        assert_array_equal(found, expected[: len(found)])
    assert_array_equal(model.log_prob(X[::7], y[::7]), expected[::7])


def test_views_have_the_log_prob_of_copies_bit_for_bit(fitted):
    model, *_ = fitted
    text = np.random.default_rng(3).integers(0, N_WORDS, 70_000).astype(np.int32)
    stream = np.lib.stride_tricks.sliding_window_view(text[:-1], 3)
    table = np.zeros((len(text), 5), np.int32)
    table[:, 1:4] = text[:, None]
    for X in (
        stream, stream[:1], stream[::-1], stream[5::9], table[:, 1:4],
        np.broadcast_to(stream[7], (500, 3)), stream[:, ::-1],
    ):  # fmt: skip
        y = np.ascontiguousarray(text[: len(X)][::-1])
        expected = model.log_prob(X.tolist(), y.tolist())
        assert_array_equal(model.log_prob(X, y), expected)
        assert_array_equal(model.log_prob(X.copy(), y), expected)


def test_an_interrupt_ends_a_long_call(fitted):
    model, X, _ = fitted
    X, y = np.broadcast_to(X[0], (10**7, 3)), np.zeros(10**7, np.int32)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    try:
        with pytest.raises(KeyboardInterrupt):
            model.log_prob(X, y)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("value", [-1, N_WORDS, 2**31 - 1])
@pytest.mark.parametrize("where", ["X", "y"])
def test_ids_out_of_range_are_refused(fitted, value, where):
    model, X, y = fitted
    X, y = X[:30].copy(), y[:30].copy()
    (X if where == "X" else y)[3] = value
    with pytest.raises(ValueError, match=f"{where} has {value} at"):
        model.log_prob(X, y)


def test_windows_that_do_not_fit_are_refused(fitted):
    model, X, y = fitted
    for own in ((X[:, 1:], y), (X, y[1:]), (X[:0], y[:0]), (X[0], y[:1]), (X, None)):
        with pytest.raises((ValueError, TypeError)):
            model.log_prob(*own)
    model.n_words_ = N_WORDS + 1
    with pytest.raises(ValueError, match="adds no words"):
        model.log_prob(X, y)


def test_messages_are_those_of_the_base_class(fitted):
    """Arrays of other dimensions, and those that have no buffer."""
    model, X, y = fitted
    for own, message in (
        ((X[:6].reshape(2, 3, -1), y[:6].reshape(2, 3)), "array with dim 3"),
        ((X[0], y[0].reshape(())), "Expected 2D array, got 1D"),
        ((X.astype("M8[s]"), y), r"X must hold word ids.*datetime64\[s\]"),
        ((X, y.astype("m8[s]")), r"y must hold word ids.*timedelta64\[s\]"),
        ((X[:6], y[:6].astype("M8[s]")), r"y must hold word ids.*datetime64\[s\]"),
    ):
        with pytest.raises(ValueError, match=message):
            model.log_prob(*own)


def test_usual_windows_skip_the_checks(fitted, monkeypatch):
    model, X, y = fitted
    assert isinstance(model, QuickLookUps)
    if getattr(model, "index_", model) is not None:
        monkeypatch.setattr(type(model), "checked_windows", None)
        assert len(model.log_prob(X, y)) == len(y)


def test_words_of_a_sentence_have_the_log_prob_of_their_windows(fitted):
    model, *_ = fitted
    rng = np.random.default_rng(0)
    text = TextLM.from_model(model, boundary=1)
    scorer = text.scorer()
    for n in (0, 1, 5, 31, 32, 33, 80):
        ids = rng.integers(2, N_WORDS, n).astype(np.int32)
        X, y = windows(np.append(ids, 1), 3, boundary=1)
        expected = model.log_prob(X.astype(np.int32), y.astype(np.int32))
        assert scorer.score(ids) == pytest.approx(expected.sum(), rel=1e-12)
        state, found = scorer.begin(), []
        for word in ids.tolist():
            after = scorer.candidates(state, [word, 2, 3])
            log_prob, state = scorer.step(state, word)
            assert after[0] == pytest.approx(log_prob, rel=1e-12)
            found.append(log_prob)
        found.append(scorer.end(state))
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    # The context of the first word may be empty.
    if getattr(model, "index_", model) is not None:
        alone = scorer.score(ids[:1], bos=False, eos=False)
        assert alone == pytest.approx(float(np.log(model.trie_.prob[ids[0]])))
