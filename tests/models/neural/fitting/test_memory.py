"""What a fit holds in memory: one copy of the weights, no copy of the windows."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

from nplm import windows
from nplm._kernels.neural._loops import row_stride
from tests.helpers import paper_lm, peak_of

WEIGHTS = ["C_", "H_", "d_", "U_", "W_", "b_"]

# A small fit first, so that what it loads and the threads' stacks do not count.
FIT = """
import sys
import numpy as np
from nplm import NeuralLM, windows

def status(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(1024 * int(x.split()[1]) for x in lines if x.startswith(name))

V, h, m, K, held_out = map(int, sys.argv[1:])
X, y = windows(np.arange(60), 4)
val = dict(X_val=X, y_val=y) if held_out else {}
for n_words in (200, V):
    before = status("VmRSS")
    lm = NeuralLM.from_paper("MLP9", n_words=n_words, n_hidden=h, embedding_dim=m)
    lm.set_params(max_iter=3, batch_size=K).fit(X, y, **val)
print(status("VmHWM") - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("K", "held_out"), [(1, True), (128, False)])
def test_peak_memory_of_a_fit_is_one_copy_and_scratch(K, held_out):
    V, h, m = 30_000, 100, 30
    out = subprocess.run(
        [sys.executable, "-c", FIT, *map(str, (V, h, m, K, int(held_out)))],
        stdout=subprocess.PIPE, check=True, timeout=120,
    )  # fmt: skip
    weights = 4 * V * (row_stride(h + 1) + m)
    scratch = 4 * V * K
    # Early stopping keeps the weights of the best epoch.
    want = weights * (2 if held_out else 1) + scratch
    assert int(out.stdout) < 1.1 * want + (5 << 20)


@pytest.fixture(scope="module")
def fitted():
    X, y = windows(np.arange(500) % 300, 3)
    lm = paper_lm(
        n_words=20_000, n_hidden=20, embedding_dim=5, direct=True, max_iter=3,
        learning_rate_init=0.05, random_state=0,
    )  # fmt: skip
    return lm.fit(X, y), X, y


def test_scoring_and_pickles_copy_no_weights(fitted):
    lm, X, y = fitted
    weights = 4 * lm.n_parameters_
    dumped = pickle.dumps(lm)
    classes = lm.classes_.nbytes
    assert len(dumped) < weights + classes + (10 << 10)
    for model in (lm, pickle.loads(dumped)):
        assert peak_of(lambda model=model: model.log_prob(X[:5], y[:5])) < weights / 10
        np.testing.assert_array_equal(model.log_prob(X, y), lm.log_prob(X, y))
        for name in WEIGHTS:
            np.testing.assert_array_equal(getattr(model, name), getattr(lm, name))


@pytest.mark.slow
@pytest.mark.parametrize("reloaded", [False, True])
def test_scores_use_weights_written_in_place(fitted, reloaded):
    lm, X, y = fitted
    X, y = X[:60], y[:60]
    dumped = pickle.dumps(lm)
    # In place, one attribute by another array, and one of another type.
    for change in (
        lambda model: model.U_.__setitem__(slice(0, 300, 2), 0.5),
        lambda model: setattr(model, "b_", np.linspace(0, 1, 20_000)),
        lambda model: setattr(model, "W_", np.asfortranarray(model.W_[::-1])),
        lambda model: setattr(model, "C_", model.C_ * 20.0),
    ):
        model = pickle.loads(dumped)
        change(model)
        if reloaded:
            model = pickle.loads(pickle.dumps(model))
        x = model.C_[X[:, ::-1]].reshape(len(X), -1)
        a = np.tanh(model.d_ + x @ model.H_.T)
        logits = model.b_ + x @ model.W_.T + a @ model.U_.T
        want = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        np.testing.assert_allclose(model.predict_log_proba(X), want, atol=1e-4)
        want = want[np.arange(len(y)), y]
        np.testing.assert_allclose(model.log_prob(X, y), want, atol=1e-4)
        assert not np.allclose(lm.log_prob(X, y), want, atol=1e-4)


def test_continuing_does_not_change_earlier_arrays(fitted):
    lm, X, y = fitted
    model = pickle.loads(pickle.dumps(lm)).set_params(warm_start=True)
    for go_on in (model.fit, model.partial_fit):
        before = {name: getattr(model, name) for name in WEIGHTS}
        copies = {name: array.copy() for name, array in before.items()}
        go_on(X, y)
        for name, array in before.items():
            np.testing.assert_array_equal(array, copies[name])
            assert not np.shares_memory(array, getattr(model, name))


@pytest.mark.parametrize("dtype", [np.int32, np.uint16])
def test_a_fit_from_a_mapped_token_file_copies_no_windows(tmp_path, dtype):
    n, n_context = 200_000, 8
    ids = np.arange(n) % 50
    np.save(tmp_path / "tokens.npy", ids.astype(dtype))
    lm = paper_lm(
        n_words=50, n_hidden=2, embedding_dim=1, batch_size=256, max_iter=1,
        random_state=0,
    )  # fmt: skip

    def fit():
        tokens = np.load(tmp_path / "tokens.npy", mmap_mode="r")
        lm.fit(*windows(tokens, n_context))

    # A stream of int32, the order of the epoch, and less than half a copy more.
    assert peak_of(fit) < 4 * n + 4 * n + 4 * n * n_context / 2
    want = paper_lm(**lm.get_params()).fit(*windows(ids, n_context))
    np.testing.assert_array_equal(lm.U_, want.U_)


def test_the_fingerprint_of_a_checkpoint_copies_no_windows(tmp_path):
    X, y = windows(np.arange(100_000) % 50, 8)
    lm = paper_lm(n_words=50, n_hidden=2, embedding_dim=1, batch_size=256, max_iter=1)
    peak = peak_of(lambda: lm.fit(X, y, checkpoint=tmp_path))
    assert peak < X.size * X.itemsize / 2
