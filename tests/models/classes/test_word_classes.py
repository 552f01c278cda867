"""WordClasses: the kernel against its twin, and the objective."""

import pickle
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from nplm import CheckpointError, WordClasses, windows
from nplm._kernels.classes import _exchange
from nplm.models.classes.partition import Bigrams, Partition
from tests import helpers
from tests.helpers.checkpoint import Killed
from tests.reference import classes as reference

N_WORDS = 30
text = partial(helpers.text, n_words=N_WORDS)


def partition(ids, n_classes, boundary=None, n_words=N_WORDS):
    X, y = windows(ids, 1, boundary=boundary)
    return Partition(Bigrams(X[:, 0], y, n_words), n_classes, boundary)


def move(module, state, words, temperature, uniforms):
    module.exchange(
        words,
        uniforms,
        np.full(len(words), temperature),
        state.bigrams.arrays(module.Neighbours),
        state.arrays(module.Classes),
    )


def information(ids, labels):
    """Return the mutual information of neighbouring classes, by its definition."""
    c = np.asarray(labels)[ids]
    pairs, joint = np.unique(np.stack([c[:-1], c[1:]]), axis=1, return_counts=True)
    joint = joint / joint.sum()
    left, right = (np.bincount(side, joint) for side in pairs)
    return (joint * np.log(joint / (left[pairs[0]] * right[pairs[1]]))).sum()


@pytest.mark.parametrize("boundary", [None, 2])
@pytest.mark.parametrize("temperature", [0.0, 1.0, 30.0])
@pytest.mark.parametrize("n_classes", [3, 7, 70])
def test_exchange_kernel(n_classes, temperature, boundary):
    ids = text(600, n_words=70)
    fast, naive = (partition(ids, n_classes, boundary, 70) for _ in range(2))
    uniforms = np.random.default_rng(1).random(len(fast.words))
    step = 1 if n_classes < 70 else 5  # the twin counts all anew
    words = fast.words[::step].copy()
    for _ in range(2):
        move(_exchange, fast, words, temperature, uniforms)
        move(reference, naive, words, temperature, uniforms)
        assert_array_equal(fast.labels, naive.labels)
        assert_array_equal(fast.counts, naive.counts)
        assert_array_equal(fast.nonzero, naive.nonzero)
        assert_array_equal(fast.totals, naive.totals)
        assert_allclose(fast.tally, naive.tally, atol=1e-8)


@settings(max_examples=25)
@given(st.integers(2, 400), st.integers(1, 70), st.integers(0, 2**16))
def test_gain_of_a_move_equals_gain_of_the_objective(n_tokens, n_classes, seed):
    state = partition(text(n_tokens, seed), n_classes)
    rng = np.random.default_rng(seed)
    before = reference.bigram_objective(state.counts[0], state.totals)
    for word in rng.choice(state.words, 10):
        state.tally[:] = 0
        one = np.array([word], dtype=np.int32)
        move(_exchange, state, one, float(rng.choice([0.0, 2.0])), rng.random(1))
        after = reference.bigram_objective(state.counts[0], state.totals)
        assert state.tally[0] == pytest.approx(after - before, abs=1e-8)
        before = after


def test_gains_of_rare_words_beside_frequent_classes():
    ids = np.minimum(np.random.default_rng(0).zipf(1.5, 40_000), 90) - 1
    state = partition(ids, 30, n_words=90)
    objective = reference.bigram_objective(state.counts[0], state.totals)
    # The kernel tabulates gains of up to 16 bigrams with classes of fewer than 4,096.
    assert state.counts[0, 0, 0] > 4096
    assert 0 < state.bigrams.count[0, state.bigrams.start[0, 70]] <= 16
    for temperature in (1.0, 0.0):
        move(_exchange, state, state.words, temperature, np.full(90, 0.7))
    after = reference.bigram_objective(state.counts[0], state.totals)
    assert state.tally[0] == pytest.approx(after - objective, abs=1e-6)


def test_counts_beyond_the_table(monkeypatch):
    ids = text(2000)
    state = partition(ids, 5)
    monkeypatch.setattr("nplm.models.classes.partition.TABLE_SIZE", 10)
    small = partition(ids, 5)
    assert len(small.bigrams.table) == 10
    for each in (state, small):
        move(_exchange, each, each.words, 0.0, np.zeros(len(each.words)))
    assert_array_equal(state.labels, small.labels)
    assert state.mutual_information == pytest.approx(small.mutual_information)


@pytest.mark.parametrize("max_iter", [0, 20])
def test_fit(max_iter):
    ids = text(800)
    model = WordClasses(6, n_words=N_WORDS + 2, max_iter=max_iter, random_state=0)
    model.fit(ids)
    assert model.mutual_information_ == pytest.approx(information(ids, model.labels_))
    found = np.array(model.history_["mutual_information"])
    assert found[-1] == pytest.approx(model.mutual_information_)
    assert model.n_iter_ == len(found) == len(model.history_["seconds"])
    assert (np.diff(found[max_iter:]) >= 0).all()
    assert model.history_["n_moves"][-1] == 0
    # The fixed point: no single word has a better class.
    for word in range(N_WORDS):
        for label in range(6):
            moved = model.labels_.copy()
            moved[word] = label
            assert information(ids, moved) <= model.mutual_information_ + 1e-8
    assert_array_equal(model.transform(ids), model.labels_[ids])
    sizes = np.bincount(model.labels_[ids])
    assert (np.diff(sizes) <= 0).all()
    assert len(set(model.labels_[N_WORDS:])) == 1


@pytest.mark.parametrize("boundary", [None, 30])
def test_words_that_do_not_occur_are_with_rare_words(boundary):
    """Not in the class with the most words, nor in that of the boundary."""
    rng = np.random.default_rng(0)
    nouns = np.concatenate([rng.integers(20, 22, 400), np.arange(22, 25)])
    ids = np.stack([rng.integers(0, 20, 403), nouns], axis=1).ravel()
    if boundary is not None:
        ids = np.insert(ids, np.arange(0, len(ids) + 1, 2), boundary)
    model = WordClasses(3, n_words=33, boundary=boundary, random_state=0).fit(ids)
    assert_array_equal(model.labels_[[25, 32]], model.labels_[24])
    assert model.labels_[24] != model.labels_[0]


def test_annealing_beats_greedy_moves():
    ids = text(5000, n_words=200)
    greedy, cooled = (
        WordClasses(15, max_iter=n, random_state=0).fit(ids).mutual_information_
        for n in (0, 40)
    )
    assert cooled > greedy


def test_same_seed_same_classes_and_pickle():
    ids = text(2000)
    model = WordClasses(5, max_iter=10, random_state=3).fit(ids)
    again = clone(model).fit(ids.tolist())
    assert_array_equal(model.labels_, again.labels_)
    assert_array_equal(pickle.loads(pickle.dumps(model)).labels_, model.labels_)
    assert_array_equal(
        clone(model).fit_transform(ids), clone(model).fit(ids).transform(ids)
    )


def test_boundary_is_alone_in_its_class():
    ids = text(2000)
    model = WordClasses(5, boundary=0, max_iter=5, random_state=0).fit(ids)
    assert np.count_nonzero(model.labels_ == model.labels_[0]) == 1
    only = WordClasses(3, boundary=0).fit([0, 0, 0])
    assert only.labels_.tolist() == [0]


def test_more_classes_than_words():
    ids = text(300)
    model = WordClasses(100, max_iter=3, random_state=0).fit(ids)
    assert model.n_classes_ == model.n_words_ == N_WORDS
    assert model.mutual_information_ == pytest.approx(
        information(ids, np.arange(N_WORDS))
    )


def test_verbose_and_progress(capsys):
    seen = []
    model = WordClasses(5, max_iter=3, verbose=1, random_state=0)
    model.fit(text(2000), progress=lambda *at: seen.append(at))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == model.n_iter_
    assert "[WordClasses] pass 1, temperature 1.50: mutual information" in lines[0]
    done, total, found = zip(*seen)
    assert (np.diff(done) > 0).all()
    assert done[-1] == model.n_iter_ == total[-1]
    assert found[-1] == pytest.approx(model.mutual_information_)


def test_interrupt_keeps_the_classes_reached():
    def interrupt(done, total, found):
        if done >= 3:
            raise KeyboardInterrupt

    ids = text(2000)
    model = WordClasses(5, random_state=0)
    with (
        pytest.warns(RuntimeWarning, match="in pass 3 of at most 81; it keeps"),
        pytest.raises(KeyboardInterrupt),
    ):
        model.fit(ids, progress=interrupt)
    assert model.mutual_information_ == pytest.approx(information(ids, model.labels_))
    assert model.n_iter_ == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    # In the first pass, in a cooling pass and in the last, greedy one.
    ("n_words", "boundary"),
    [(1, None), (130, 3), (230, None)],
)
def test_killed_fit_resumes_to_the_same_classes(
    n_words, boundary, tmp_path, monkeypatch
):
    monkeypatch.setattr("nplm.models.training.pace.SECONDS_A_CALL", 0.0)
    monkeypatch.setattr("nplm.models.training.checkpoint.SECONDS_A_SAVE", 0)
    ids = text(1500, n_words=50)
    model = WordClasses(9, random_state=0, boundary=boundary, max_iter=4)
    whole = clone(model).fit(ids)

    def kill(done, total, found):
        if done * 50 >= n_words:
            raise Killed

    with pytest.raises(Killed):
        clone(model).fit(ids, progress=kill, checkpoint=tmp_path)
    began = []
    model.fit(ids, checkpoint=tmp_path, progress=lambda done, *_: began.append(done))
    assert began[0] * 50 > 0.8 * n_words  # it resumed
    np.testing.assert_array_equal(model.labels_, whole.labels_)
    for name in ("mutual_information", "n_moves"):
        assert model.history_[name] == whole.history_[name]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(n_classes=8), "n_classes was 9, now it is 8"),
        (dict(max_iter=11), "cooling was 2, now it is 11"),
    ],
)
def test_checkpoint_of_other_settings_is_refused(changes, message, tmp_path):
    model = WordClasses(9, random_state=0, max_iter=2)
    model.fit(text(500), checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match=message):
        model.set_params(**changes).fit(text(500), checkpoint=tmp_path)


def test_second_interrupt_keeps_the_old_classes(monkeypatch):
    model = WordClasses(2, random_state=0).fit(np.arange(40) % 4)
    old = vars(model).copy()

    def interrupt(state):
        raise KeyboardInterrupt

    monkeypatch.setattr(Partition, "labels_by_size", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(np.arange(60) % 6)
    assert vars(model) == old


def test_error_keeps_the_earlier_fit():
    def fail(done, total, found):
        raise OSError("the screen is gone")

    model = WordClasses(5, random_state=0).fit(text(2000))
    before = vars(model).copy()
    with pytest.raises(OSError, match="the screen is gone"):
        model.fit(text(1000), progress=fail)
    assert vars(model) == before


@pytest.mark.parametrize(
    ("parameters", "ids", "message"),
    [
        (
            {"n_classes": 0},
            [0, 1],
            r"'n_classes' .* range \[1, inf\). Got 0",
        ),
        ({"n_classes": 2.5}, [0, 1], "'n_classes' .* Got 2.5"),
        ({"max_iter": -1}, [0, 1], "'max_iter' .* Got -1"),
        (
            {"boundary": 5, "n_words": 2},
            [0, 1],
            "boundary must be None or a word id .* got 5",
        ),
        ({"boundary": 0, "n_classes": 1}, [0, 1], "n_classes=1 leaves no class"),
        ({"n_words": 2}, [0, 2], "ids has 2 at 1, but n_words=2"),
        ({}, [0], "1 ids are too few"),
        ({}, [], "ids is empty"),
        ({}, [[0, 1]], "ids must have 1 dimension"),
        ({}, [0, -1], "ids has -1 at 1"),
        ({}, ["a", "b"], "map words to ids"),
    ],
)
def test_bad_input(parameters, ids, message):
    with pytest.raises(ValueError, match=message):
        WordClasses(**parameters).fit(ids)


def test_transform_refuses_words_beyond_the_vocabulary():
    model = WordClasses(2, max_iter=0).fit([0, 1, 2, 0])
    with pytest.raises(ValueError, match="ids has 3 at 0, but n_words=3"):
        model.transform([3])
