"""Settings, texts and the clock of small fits of `AutoLM`."""

import time

import numpy as np

from nplm.models.neural.fitting.epochs import Epochs
from nplm.models.neural.fitting.scoring import Scoring
from tests.helpers.texts import texts

__all__ = ["ENDLESS", "NGRAMS", "SMALL", "TEXTS", "SimulatedClock", "equal"]

NGRAMS = {"members": ["ngrams"]}
SMALL = {"n_hidden": 16, "embedding_dim": 8}
ENDLESS = SMALL | {"epochs": 10_000, "early_stopping": False}
TEXTS = texts(2000, n_words=50)


class SimulatedClock:
    """Time of a machine on which a word takes as long as its network is large.

    - `slowdown`: times that work takes longer in the first `until` seconds
    """

    def __init__(self, monkeypatch, parameters_a_second, *, slowdown=1.0, until=0.0):
        self.seconds, self._slowdown, self._until = 0.0, slowdown, until
        self._parameters_a_second = parameters_a_second
        for job, words_a_word in ((Epochs, 1.0), (Scoring, 0.2)):
            monkeypatch.setattr(job, "work", self._timed(job.work, words_a_word))
        monkeypatch.setattr(time, "perf_counter", lambda: self.seconds)

    def _timed(self, work, words_a_word):
        def timed(job, start, stop):
            work(job, start, stop)
            arrays = job.network.parameters.trained().values()
            n_parameters = words_a_word * (stop - start) * sum(a.size for a in arrays)
            self._advance(n_parameters / self._parameters_a_second)

        return timed

    def _advance(self, seconds):
        slow = min(self._slowdown * seconds, max(0.0, self._until - self.seconds))
        self.seconds += slow + seconds - slow / self._slowdown


def equal(one, other):
    np.testing.assert_array_equal(
        one.score_samples(TEXTS[:50]), other.score_samples(TEXTS[:50])
    )
