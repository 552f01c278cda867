"""Networks with a memory: what they learn, their parameters, files and searches."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone

import nplm
from nplm import NeuralCacheLM, NeuralLM, adapted_log_prob, windows
from nplm.base.fitted import restore, saved
from nplm.models.neural.fitted_network import scoring_network
from nplm.models.neural.fitting.fit import Training, fit
from nplm.models.neural.fitting.training_windows import RunOrder
from nplm.models.neural.network.hidden import n_runs
from nplm.models.neural.network.network import own_examples
from nplm.models.neural.network_lm import FitRequest
from tests.helpers import text
from tests.helpers.networks import weights_of, wide
from tests.reference import neural as reference

SMALL = dict(
    order=3, n_words=12, n_hidden=5, embedding_dim=3, n_memory=9, batch_size=64,
    max_iter=2, random_state=0,
)  # fmt: skip
X, Y = windows(text(600), 12)


def remembering(**settings):
    return NeuralLM(**SMALL | settings)


def named_earlier(n, rng):
    """Return a text of lines, at whose start a word names the one at its end."""
    lines = rng.integers(2, 6, (n, 10))
    lines[:, 0], lines[:, 8] = rng.integers(6, 9, n), 1
    lines[:, 9] = lines[:, 0] + 3
    return lines.ravel()


def test_a_word_far_back_is_remembered():
    rng = np.random.default_rng(0)
    wide, y = windows(named_earlier(1500, rng), 12)
    at_end = (y >= 9) & (wide[:, -1] == 1)
    settings = dict(
        n_words=12, max_iter=12, dropout=0, alpha=0, learning_rate_init=0.03,
        n_hidden=16, embedding_dim=8, early_stopping=False,
    )  # fmt: skip
    near = remembering(**settings, n_memory=0).fit(wide, y)
    far = remembering(**settings, n_memory=12).fit(wide, y)
    # One of three words: only what was 9 words back tells which.
    assert near.perplexity(wide[at_end], y[at_end]) > 2.7
    assert far.perplexity(wide[at_end], y[at_end]) < 1.5


@pytest.mark.parametrize("output", ["softmax", "classes", "tree"])
def test_scores_depend_on_nothing_but_the_window(output):
    lm = remembering(output=output, n_hidden=(5, 7)).fit(X, Y)
    scores = lm.log_prob(X, Y)
    shuffled = np.random.default_rng(0).permutation(len(Y))
    np.testing.assert_array_equal(
        lm.log_prob(X[shuffled], Y[shuffled]), scores[shuffled]
    )
    np.testing.assert_array_equal(lm.log_prob(X[7:8], Y[7:8]), scores[7:8])
    other = X.copy()
    other[:, :3] = 0  # beyond n_memory
    np.testing.assert_array_equal(lm.log_prob(other, Y), scores)
    other[:, 3] = (X[:, 3] + 1) % 12
    assert (lm.log_prob(other, Y) != scores).mean() > 0.9


def begin_alike():
    """Return more windows than are known at a time; some begin alike, some repeat."""
    rng = np.random.default_rng(0)
    some = rng.integers(1, 50, (300, 12)).astype(np.int32)
    some[100:200, :8], some[150:160] = some[:100, :8], some[:10]
    for k, n in enumerate(rng.integers(0, 12, 300)):
        some[k, :n] = 0  # before the start of a text
    return some, rng.integers(0, 50, 300)


WINDOWS = {
    "text": windows(text(120), 12),
    "documents": windows(text(120), 12, boundary=0),
    "alike": begin_alike(),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_among_others_have_the_bits_of_single_ones(name):
    lm, (some, y) = remembering(n_memory=12, n_words=50).fit(X, Y), WINDOWS[name]
    alone = [lm.log_prob(some[i : i + 1], y[i : i + 1])[0] for i in range(len(y))]
    np.testing.assert_array_equal(lm.log_prob(some, y), alone)
    lm.set_params(n_jobs=3)
    np.testing.assert_array_equal(lm.log_prob(some, y), alone)


def test_boundaries_before_a_text_are_not_remembered():
    lm, rng = remembering(n_memory=12).fit(X, Y), np.random.default_rng(0)
    lm.V_, lm.d_ = rng.normal(size=lm.V_.shape), rng.normal(size=lm.d_.shape)
    filled, (a, c) = np.array([[0] * 8 + [3, 4, 0, 5]], np.int32), np.zeros((2, 5))
    for context in ([0, 0], [0, 3], [3, 4], [4, 0], [0, 5]):
        x = lm.C_[context[::-1]].ravel()
        keep, out, z = np.split(lm.d_ + lm.H_ @ x + lm.V_ @ a, 3)
        keep = 1 / (1 + np.exp(-keep))
        c = keep * c + (1 - keep) * np.tanh(z)
        a = np.tanh(c) / (1 + np.exp(-out))
    logits = lm.b_ + lm.U_ @ a
    want = np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose(lm.predict_proba(filled)[0], want, rtol=1e-5)


# Mini-batches of 4 runs of 32: the last one of an epoch is whole, has shorter runs with
# or without windows that are left, has only such, or is the only one. A step of 16 runs
# is a panel of the kernels, which 8 and 5 runs do not fill.
@pytest.mark.parametrize(
    ("n", "batch_size"),
    [*((n, 128) for n in (512, 524, 525, 513, 131, 128, 100)), (1088, 512)],
)
@pytest.mark.parametrize("shuffle", [False, True])
def test_threads_cut_no_run_of_the_text(n, batch_size, shuffle):
    X, Y = windows(text(1100), 12)
    Y = Y.copy()
    Y[[200, 733]] = (Y[[200, 733]] + 1) % 12  # three texts
    settings = dict(
        precision="float64", batch_size=batch_size, n_hidden=(5, 40), max_iter=2,
        early_stopping=False, shuffle=shuffle, dropout=0.1 * (batch_size == 512),
    )  # fmt: skip
    one, *more = (
        remembering(**settings, n_jobs=n_jobs).fit(X[:n], Y[:n]).log_prob(X, Y)
        for n_jobs in (1, 2, 3, 12)
    )
    np.testing.assert_allclose(more, [one] * 3, rtol=1e-9)


def test_threads_cut_no_run_that_a_trainer_is_given():
    settings = dict(precision="float64", batch_size=128, n_hidden=(5, 40))
    rng = np.random.default_rng(0)
    examples = [rng.permutation(len(Y)), range(300), [*range(90), *range(200, 290)]]
    one, two = (
        remembering(**settings, n_jobs=n_jobs).trainer(X, Y) for n_jobs in (1, 2)
    )
    for index in examples:
        assert two.train(index) == pytest.approx(one.train(index), rel=1e-9)
    found = [t.keep().log_prob(X, Y) for t in (one, two)]
    np.testing.assert_allclose(*found, rtol=1e-9)


def test_classes_train_in_one_thread():
    lm, two = (
        remembering(output="classes", n_jobs=n_jobs).fit(X, Y) for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(lm.log_prob(X, Y), two.log_prob(X, Y))


@pytest.mark.parametrize(
    ("batch_size", "runs"),
    [(1, 1), (31, 1), (64, 2), (256, 8), (1000, 25), (97, 1), (1024, 32), (2048, 32)],
)
def test_a_mini_batch_has_runs_of_one_length(batch_size, runs):
    assert n_runs(batch_size) == runs


@pytest.mark.parametrize("n", [5, 64, 100, 1000, 1023])
@pytest.mark.parametrize("shuffle", [False, True])
def test_an_epoch_has_every_window_once_in_runs(n, shuffle):
    order = RunOrder(n, 64, shuffle=shuffle)
    order.begin(np.random.RandomState(0))
    index = np.concatenate([order.examples(i, min(i + 64, n)) for i in range(0, n, 64)])
    assert sorted(index) == list(range(n))
    ends = [[], []]
    for start in range(0, n - 63, 64):
        for run in range(2):
            own = index[start + 32 * run : start + 32 * (run + 1)]
            follows = np.diff(own) == 1
            assert follows.sum() >= 30  # but where the text ends and begins again
            ends[run].append((own[0], own[-1]))
    for run in ends:  # each goes on where the last mini-batch stopped
        assert all((b[0] - a[1]) % n == 1 for a, b in pairwise(run))


def test_short_documents_leave_the_memory_at_the_ends_of_runs():
    ids = text(600)
    ids[::5] = 0
    request = FitRequest.of(remembering(), windows(ids, 12, boundary=0))
    training = Training(request.recipe, request.windows)
    n = len(request.windows.y)
    order = RunOrder(n, 64, shuffle=False)
    order.begin(np.random.RandomState(0))
    training.train(order.examples(0, 64))
    memory = training.network.memory
    assert memory["memory_last"].tolist() == [[31, n // 2 + 31, -1]]
    assert (memory["memory"][0, :2] != 0).all()


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_held_out_windows_are_scored_as_a_text(n_jobs):
    settings = dict(precision="float64", early_stopping=True, max_iter=1)
    lm = remembering(**settings, n_jobs=n_jobs, n_memory=9)
    # Of the second, one part is the whole; the first has 16, and no document a state.
    ids = text(5000, seed=1)
    ids[::7] = 0
    for n, rel in [(5000, 1e-3), (70, 1e-12)]:
        held_out = windows(ids[:n], 12, boundary=0)
        lm.fit(X, Y, X_val=held_out[0], y_val=held_out[1])
        assert lm.val_loss_ == pytest.approx(-as_text(lm, *held_out).mean(), rel=rel)


def as_text(lm, X, y):
    """Return the scores of NumPy, whose state goes from each row to the next."""
    weights = wide(weights_of(scoring_network(lm)))
    near = X[:, -weights.n_context :]
    memory = reference.Carried(X[:, -9:], y, 1).of(np.arange(len(y)))
    logits = reference.forward(weights, near, memory=memory)[-1]
    return weights.output.log_p(logits)[np.arange(len(y)), y]


def test_a_text_is_read_to_the_same_bits_in_any_mini_batches():
    lm = remembering().fit(X, Y)
    network, near = scoring_network(lm), np.ascontiguousarray(X[:, -9:])
    expected = network.reader(len(Y))(near, Y, np.arange(len(Y)))
    for n in (1, 7, 64):
        reader, rows = network.reader(n), np.split(np.arange(len(Y)), [50, 51])
        got = np.hstack([reader(near, Y, some) for some in rows])
        np.testing.assert_array_equal(got, expected)


def test_files_and_further_training(tmp_path):
    lm = remembering(n_hidden=(5, 7)).fit(X, Y)
    nplm.save(lm, tmp_path / "lm")
    loaded = nplm.load(tmp_path / "lm")
    np.testing.assert_array_equal(loaded.log_prob(X, Y), lm.log_prob(X, Y))
    loaded.partial_fit(X, Y)
    assert loaded.n_iter_ == 3
    loaded.set_params(n_memory=7)
    with pytest.raises(ValueError, match=r"n_memory=7 is not that of the fitted"):
        loaded.partial_fit(X, Y)


def test_files_from_before_there_was_a_memory_load():
    lm = remembering(n_memory=0).fit(X, Y)
    items, loaded = saved(lm), clone(lm)
    del items["architecture"]["n_memory"]
    restore(loaded, items)
    np.testing.assert_array_equal(loaded.log_prob(X, Y), lm.log_prob(X, Y))


def test_files_of_the_memory_before_lstm_cells_are_refused_by_name():
    lm = remembering().fit(X, Y)
    items = saved(lm)
    items["arrays"] |= {"F": items["arrays"].pop("V"), "f": np.zeros(5, np.float32)}
    with pytest.raises(ValueError, match="quasi-recurrent memory of a development"):
        restore(clone(lm), items)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (dict(n_memory=2), "n_memory=2 leaves nothing to remember"),
        (dict(n_distant=9), "n_memory=9 leaves nothing to remember"),
        (dict(order=None), "n_memory=9 requires order"),
        (dict(order=1), "n_memory=9 has nothing to remember"),
        (dict(n_hidden=0, output__direct=True), "n_hidden=0 has none"),
        (dict(output__n_outputs=7), "n_memory=9 would train no state"),
        (dict(n_memory=-1), "'n_memory' parameter of NeuralLM must be"),
        (dict(n_memory=1.5), "'n_memory' parameter of NeuralLM must be"),
    ],
)
def test_what_cannot_be_remembered_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        NeuralLM().set_params(**SMALL | settings).fit(X, Y)


def test_processes_do_not_share_classes():
    class Processes:
        rank, size = 0, 2

    request = FitRequest.of(remembering(output="classes"), (X, Y))
    with pytest.raises(ValueError, match="output='classes' trains without MPI"):
        fit(request.recipe, request.windows, processes=Processes())


@pytest.mark.parametrize("n", [1000, 1023, 130, 50])
def test_each_worker_has_runs_of_its_own(n):
    order = RunOrder(n, 64, shuffle=False, n_workers=3)
    order.begin(np.random.RandomState(0))
    examples = [order.examples(i, min(i + 384, n)) for i in range(0, n, 384)]
    every = []
    for worker in range(3):
        own = [own_examples(some, worker, 3, 64, 2) for some in examples]
        own = np.concatenate(own)
        every.append(own)
        ends = [[], []]
        for start in range(0, len(own) - 63, 64):
            for run in range(2):
                rows = own[start + 32 * run : start + 32 * (run + 1)]
                assert (np.diff(rows) == 1).all()
                ends[run].append((rows[0], rows[-1]))
        for run in ends:  # each goes on where the worker's last mini-batch stopped
            assert all(b[0] - a[1] == 1 for a, b in pairwise(run))
    assert sorted(np.concatenate(every)) == list(range(n))


def test_trainers_and_readers():
    lm = remembering()
    trainer = lm.trainer(X, Y)
    losses = [trainer.train(range(64)) for _ in range(30)]
    assert losses[-1] < losses[0]
    trainer.keep()
    assert adapted_log_prob(lm, X, Y, learning_rate=1e-3).mean() > lm.score(X, Y)
    cached = NeuralCacheLM(remembering(n_memory=7)).fit(X, Y)
    np.testing.assert_allclose(cached.predict_proba(X[:20]).sum(axis=1), 1, atol=1e-6)
    with pytest.raises(ValueError, match="beside the 12 of the network"):
        NeuralCacheLM(remembering(n_memory=12)).fit(X, Y)
