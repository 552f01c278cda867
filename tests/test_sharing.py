"""Data that are mapped, forks, threads that share a model: always the same bits."""

import os
import pickle
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from multiprocessing.connection import Pipe
from threading import Barrier

import numpy as np
import pytest
from sklearn.base import clone

from nplm import EnergyLM, KneserNeyLM, TextLM, UniformLM, WordClasses, windows
from nplm.formats import load_binary, save_binary
from nplm.ngrams import backoff
from nplm.parallel import threads
from tests.helpers import paper_lm, small_models, small_text

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
        "neural, energy, two threads": EnergyLM(**neural, n_jobs=2, **size),
        "neural, adam, dropout": paper_lm(**neural, solver="adam", dropout=0.2, **size),
        "uniform": UniformLM(**size),
        "classes of words": WordClasses(4, random_state=0, **size),
        "text": TextLM(KneserNeyLM(**size), n_context=2, boundary=11),
    }


every = pytest.mark.parametrize("name", estimators())


def fit(name, X=X, y=Y):
    """Fit a clone to windows, or to the words that come next."""
    model = clone(estimators()[name])
    if isinstance(model, WordClasses):
        return model.fit(y)
    if isinstance(model, TextLM):
        return model.fit(np.array_split(y, 7))
    return model.fit(X, y)


@cache
def fitted(name):
    return fit(name)


def answers(model, X=X, y=Y):
    """All that it says, to compare bit by bit."""
    if isinstance(model, WordClasses):
        said = [model.labels_, model.transform(y)]
    elif isinstance(model, TextLM):
        said = [model.score_samples(np.array_split(y, 7)), model.scorer().score(y[:5])]
    else:
        said = [
            model.log_prob(X, y),
            model.predict_proba(X),
            model.candidate_log_prob(X, y[:3]),
        ]
    return [np.asarray(array).tobytes() for array in said]


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


@pytest.mark.parametrize("options", [{}, {"compact": True}, {"bits": 8}], ids=str)
def test_eight_threads_score_a_mapped_file(tmp_path, options):
    save_binary(fitted("Kneser-Ney"), tmp_path / "model", WORDS, **options)
    alone = answers(load_binary(tmp_path / "model")[0])
    shared, _ = load_binary(tmp_path / "model")
    with ThreadPoolExecutor(N_THREADS) as pool:
        assert set(map(tuple, pool.map(answers, [shared] * 24))) == {tuple(alone)}


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


# What Python says of a fork of a process with threads.
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@every
def test_a_fork_scores_and_fits(name):
    alone = answers(fitted(name))
    model = fitted(name)
    assert in_a_child(lambda: (answers(model), answers(fit(name)))) == (alone, alone)


# The locks that all fits, or all tables of n-grams, share.
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize(
    ("name", "lock", "use"),
    [
        ("neural", threads._Inside.lock, lambda model: None),
        ("Kneser-Ney", backoff._HASHING, lambda model: model.tree_.hashed),
    ],
)
def test_a_fork_while_another_thread_holds_a_lock(name, lock, use):
    """It goes on without that thread, which would never let go there."""
    alone = answers(fitted(name))
    model = pickle.loads(pickle.dumps(fitted(name)))

    def work():
        use(model)
        return answers(model), answers(fit(name))

    with ThreadPoolExecutor(1) as pool:
        pool.submit(lock.acquire).result()
        try:
            said = in_a_child(work)
        finally:
            pool.submit(lock.release).result()
    assert said == (alone, alone)
