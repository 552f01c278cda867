"""Data that are mapped, forks, threads that share a model: always the same bits."""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import sysconfig
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from multiprocessing.connection import Pipe
from threading import Barrier, Event, Thread

import numpy as np
import pytest
from sklearn.base import clone

from nplm import (
    KneserNeyLM,
    MixtureLM,
    TextLM,
    UniformLM,
    Vocabulary,
    WordClasses,
    windows,
)
from nplm.formats import load_binary, save_binary
from nplm.models.training.parallel import blas
from tests.helpers import energy_lm, paper_lm, small_models, small_text

pytestmark = small_text
N_WORDS, N_THREADS, SECONDS = 12, 8, 30
IDS = (np.random.default_rng(0).choice([1, 1, 1, 2, 3], 150).cumsum() % 10).astype("i4")
X, Y = windows(IDS, 3)
WORDS = ["</s>", *(f"w{i}" for i in range(1, N_WORDS))]


@cache
def estimators():
    neural = dict(n_hidden=4, embedding_dim=3, max_iter=2, random_state=0)
    size = dict(n_words=N_WORDS)
    return small_models(N_WORDS) | {
        "neural, two threads": paper_lm(**neural, n_jobs=2, **size),
        "neural, energy, two threads": energy_lm(**neural, n_jobs=2, **size),
        "neural, adam, dropout": paper_lm(**neural, solver="adam", dropout=0.2, **size),
        "uniform": UniformLM(**size),
        "classes of words": WordClasses(4, random_state=0, **size),
        "text": TextLM(KneserNeyLM(**size), n_context=2, boundary=11),
    }


every = pytest.mark.parametrize("name", estimators())


def fit(name, X=X, y=Y):
    return fit_again(clone(estimators()[name]), X, y)


def fit_again(model, X, y):
    """Fit to windows, or to the words that come next."""
    if isinstance(model, WordClasses):
        return model.fit(y)
    if isinstance(model, TextLM):
        return model.fit(np.array_split(y, 7))
    return model.fit(X, y)


@cache
def fitted(name):
    return fit(name)


def questions(model, X=X, y=Y):
    if isinstance(model, WordClasses):
        return [lambda: model.labels_, lambda: model.transform(y)]
    if isinstance(model, TextLM):
        return [
            lambda: model.score_samples(np.array_split(y, 7)),
            lambda: model.scorer().score(y[:5]),
        ]
    return [
        lambda: model.log_prob(X, y),
        lambda: model.predict_proba(X),
        lambda: model.candidate_log_prob(X, y[:3]),
    ]


def answers(model, X=X, y=Y):
    """All that it says, to compare bit by bit."""
    return [np.asarray(ask()).tobytes() for ask in questions(model, X, y)]


@every
def test_read_only_maps(tmp_path, name):
    """As joblib hands large arrays to its workers."""
    for part, array in (("X", X), ("y", Y)):
        np.save(tmp_path / part, array)
    mapped = [np.load(tmp_path / f"{part}.npy", mmap_mode="r") for part in "Xy"]
    model = fit(name, *mapped)
    assert answers(model, *mapped) == answers(model) == answers(fitted(name))


@every
def test_eight_threads_score_a_model_while_its_clone_is_fitted(name, monkeypatch):
    alone = answers(fitted(name))
    # What is made at the first call is made by all at once.
    shared = pickle.loads(pickle.dumps(fitted(name)))
    together = Barrier(N_THREADS + 1)

    def score(_):
        together.wait(SECONDS)
        return [answers(shared) for _ in range(2)]

    switches_after = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        with ThreadPoolExecutor(N_THREADS) as pool:
            scored = [pool.submit(score, i) for i in range(N_THREADS)]
            together.wait(SECONDS)
            again = fit(name)
        assert all(said == alone for one in scored for said in one.result())
    finally:
        sys.setswitchinterval(switches_after)
    assert answers(again) == alone


# Other windows, of which a refit makes another model.
OTHERS = X[::-1], (Y[::-1] * 7) % 10


def sized(model, n_words):
    """Have the next fit know so many words; not where it is given features of all."""
    sizes = {
        name: n_words
        for name, value in model.get_params().items()
        if name.split("__")[-1] == "n_words" and value is not None
    }
    if model.get_params().get("features__word_features") is None:
        model.set_params(**sizes)
    return model


@pytest.mark.slow
@every
def test_model_is_scored_while_it_is_fitted_again(name):
    old, new = fit(name), fit_again(sized(fit(name), N_WORDS + 2), *OTHERS)
    either = list(zip(answers(old), answers(new)))
    assert all(before != after for before, after in either)
    done, together = Event(), Barrier(3)

    def score():
        n = 0
        together.wait(SECONDS)
        while not done.is_set() or n == 0:
            for said, allowed in zip(answers(old), either):
                assert said in allowed
            n += 1

    switches_after = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(2) as pool:
            scored = [pool.submit(score) for _ in range(2)]
            together.wait(SECONDS)
            try:
                fit_again(sized(old, N_WORDS + 2), *OTHERS)
                fit_again(sized(old, N_WORDS), X, Y)
                fit_again(sized(old, N_WORDS + 2), *OTHERS)
            finally:
                done.set()
        for one in scored:
            one.result()
    finally:
        sys.setswitchinterval(switches_after)
    assert answers(old) == answers(new)


@every
def test_fit_changes_a_model_in_one_step(name):
    """Whatever attribute it sets first."""
    model = sized(fit(name), N_WORDS + 2)
    before, n_set = answers(model), 0

    def setting(self, attribute, value):
        nonlocal n_set
        object.__setattr__(self, attribute, value)
        if attribute != "__dict__":
            n_set += 1
            assert answers(model) == before

    watched = {"__setattr__": setting, "__init__": type(model).__init__}
    own = type(model)
    model.__class__ = type(own.__name__, (own,), watched)
    fit_again(model, *OTHERS)
    object.__setattr__(model, "__class__", own)
    assert n_set > 2
    assert answers(model) != before


NO_IDS = np.array([2**31 - 1, -1, N_WORDS, -(2**31)], np.int32)


def unchecked(monkeypatch):
    """Let ids through unchecked, as where they change once they were checked."""

    def check_ids(values, *args, **kwargs):
        return np.asarray(values, np.int32)

    for module in [m for n, m in sys.modules.items() if n.startswith("nplm.")]:
        for check in ("check_ids", "plain_ids"):
            if hasattr(module, check):
                monkeypatch.setattr(module, check, check_ids)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("name", [name for name in estimators() if name != "text"])
def test_id_that_changes_once_it_is_checked_is_the_last_words(name, monkeypatch):
    """No kernel, and no array of NumPy's, is read or written out of bounds."""
    changed = np.random.default_rng(0).random((len(Y), 4)) < 0.3
    ids = np.column_stack([X, Y])
    all_changed = np.where(changed, np.resize(NO_IDS, ids.shape), ids)
    # Older words may also be unknown ones: n-grams are looked for, and not found.
    changed[:, :2] = False
    now = np.where(changed, all_changed, ids)
    ids[changed] = N_WORDS - 1
    model, read = fitted(name), (ids[:, :3], ids[:, 3])
    expected = answers(model, *read), answers(fit(name, *read))
    unchecked(monkeypatch)

    def work():
        for windows_now in [(a[:, :3], a[:, 3]) for a in (all_changed, now)]:
            said = answers(model, *windows_now), answers(fit(name, *windows_now))
        return said

    assert in_a_child(work) == expected


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@every
def test_another_thread_writes_to_the_windows(name):
    """It gets an answer or an error, and ends no process."""
    X_now, y_now, model = X.copy(), Y.copy(), fitted(name)

    def write(done):
        while not done.is_set():
            X_now[:, :], y_now[:] = NO_IDS[0], NO_IDS[0]
            X_now[:, :], y_now[:] = X, Y

    def work():
        done = Event()
        writer = Thread(target=write, args=(done,))
        sys.setswitchinterval(1e-5)
        writer.start()
        until = time.monotonic() + 0.05
        while time.monotonic() < until:
            for ask in (
                *questions(model, X_now, y_now),
                lambda: fit(name, X_now, y_now),
            ):
                with contextlib.suppress(ValueError, IndexError):
                    ask()
        done.set()
        writer.join()
        return answers(model)

    assert in_a_child(work) == answers(model)


@every
def test_n_words_set_by_hand_is_refused(name):
    model = pickle.loads(pickle.dumps(fitted(name)))
    beyond = np.full_like(X, 10**5), np.full_like(Y, 10**5)
    model.n_words_ = 10**6
    for ask in questions(model, *beyond)[isinstance(model, WordClasses) :]:
        with pytest.raises(ValueError, match="100000"):
            ask()
    if not isinstance(model, (WordClasses, TextLM, MixtureLM)):
        with pytest.raises(ValueError, match=r"n_words_=1000000, but this .* 12 words"):
            model.log_prob(X, Y)


@pytest.mark.parametrize("options", [{}, {"bits": 8}], ids=str)
def test_eight_threads_score_a_mapped_file(tmp_path, options):
    save_binary(fitted("Kneser-Ney"), tmp_path / "model", WORDS, **options)
    alone = answers(load_binary(tmp_path / "model")[0])
    shared, _ = load_binary(tmp_path / "model")
    with ThreadPoolExecutor(N_THREADS) as pool:
        assert set(map(tuple, pool.map(answers, [shared] * 24))) == {tuple(alone)}


@pytest.mark.parametrize("name", ["Kneser-Ney", "neural"])
def test_eight_threads_share_a_scorer(name):
    documents = np.array_split(Y, 50)
    lm = TextLM(clone(estimators()[name]), n_context=2, boundary=11).fit(documents)
    alone = [lm.scorer().score(document) for document in documents]
    shared = lm.scorer()

    def score(_):
        return [shared.score(document) for document in documents]

    with ThreadPoolExecutor(N_THREADS) as pool:
        assert list(pool.map(score, range(N_THREADS))) == [alone] * N_THREADS


IMPORT_KERNELS = """
import importlib, pkgutil, sys
import nplm._kernels as kernels
for module in pkgutil.walk_packages(kernels.__path__, "nplm._kernels."):
    importlib.import_module(module.name)
assert not sys._is_gil_enabled()
"""


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has a GIL"
)
def test_no_kernel_asks_for_the_gil():
    subprocess.run([sys.executable, "-W", "error", "-c", IMPORT_KERNELS], check=True)


def in_a_child(work):
    """Give what it comes to in a fork of this process."""
    reading, writing = Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        try:
            writing.send(work())
        finally:
            os._exit(0)
    writing.close()
    came = reading.poll(SECONDS)
    if not came:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert came, f"the child did not answer within {SECONDS} s"
    return reading.recv()


def unseeded(name):
    """Return an estimator without seeds, and how many it has."""
    model = clone(estimators()[name])
    seeds = [key for key in model.get_params() if key.endswith("random_state")]
    return model.set_params(**dict.fromkeys(seeds)), len(seeds)


def global_states(n):
    """Return the states of NumPy's global generator after 0 to n seeds of fits."""
    rng, states = np.random.RandomState(0), []
    for _ in range(n + 1):
        states.append(rng.get_state(legacy=False)["state"])
        rng.randint(2**32, size=4, dtype=np.uint32)
    return [(state["key"].tolist(), state["pos"]) for state in states]


@every
def test_a_fit_without_a_seed_draws_one_from_numpys_global_generator(name):
    """And nothing else: a fork while it is drawn from would have it locked forever."""
    model, n_seeds = unseeded(name)
    np.random.seed(0)  # noqa: NPY002
    fit_again(model, X, Y)
    state = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    assert (state["key"].tolist(), state["pos"]) in global_states(n_seeds)


def test_texts_and_vectors_without_a_seed_draw_one_from_it():
    lm = fitted("text")
    vocabulary = Vocabulary.from_words(WORDS)
    for draw in (
        lambda: lm.generate(n=50),
        lambda: vocabulary.embeddings(WORDS[:2], np.ones((2, 900))),
    ):
        np.random.seed(0)  # noqa: NPY002
        draw()
        state = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
        assert (state["key"].tolist(), state["pos"]) == global_states(1)[1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_fork_draws_numbers_while_other_threads_fit_without_a_seed():
    rng, ended = np.random.default_rng(0), Event()
    wide, y = windows(rng.integers(0, 3000, 3000), 3)
    lm = paper_lm(n_words=3000, n_hidden=50, max_iter=1)  # which draws for long

    def fits():
        while not ended.is_set():
            clone(lm).fit(wide, y)

    with ThreadPoolExecutor(3) as pool:
        fitting = [pool.submit(fits) for _ in range(3)]
        try:
            for _ in range(10):
                time.sleep(0.02)
                in_a_child(np.random.random)
        finally:
            ended.set()
        for fit_of_thread in fitting:
            fit_of_thread.result()


# What Python says of a fork of a process with threads.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@every
def test_a_fork_scores_and_fits(name):
    alone = answers(fitted(name))
    model = fitted(name)
    assert in_a_child(lambda: (answers(model), answers(fit(name)))) == (alone, alone)


# The lock that all fits share.
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_fork_fits_while_another_thread_holds_the_lock():
    """It goes on without that thread, which would never let go there."""
    name, lock = "neural", blas._BlasLimit.lock
    alone = answers(fitted(name))
    model = pickle.loads(pickle.dumps(fitted(name)))

    def work():
        return answers(model), answers(fit(name))

    with ThreadPoolExecutor(1) as pool:
        pool.submit(lock.acquire).result()
        try:
            said = in_a_child(work)
        finally:
            pool.submit(lock.release).result()
    assert said == (alone, alone)
