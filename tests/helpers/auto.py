"""Settings and texts of small fits of `AutoLM`."""

import numpy as np

from tests.helpers.texts import texts

__all__ = ["ENDLESS", "NGRAMS", "SMALL", "TEXTS", "equal"]

NGRAMS = {"members": ["ngrams"]}
SMALL = {"n_hidden": 16, "embedding_dim": 8}
ENDLESS = SMALL | {"epochs": 10_000, "early_stopping": False}
TEXTS = texts(2000, n_words=50)


def equal(one, other):
    np.testing.assert_array_equal(
        one.score_samples(TEXTS[:50]), other.score_samples(TEXTS[:50])
    )
