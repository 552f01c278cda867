"""AutoLM by a simulated clock, which the work of networks moves."""

from functools import cache

import numpy as np
import pytest

from nplm import AutoLM
from tests.helpers import markov_stream
from tests.helpers.auto import SimulatedClock
from tests.helpers.texts import texts

PARAMETERS_A_SECOND = 1e9
WORDS = [f"w{i}" for i in markov_stream(10_000)]
CHAIN = [" ".join(WORDS[i : i + 20]) for i in range(0, len(WORDS), 20)]
DOCUMENTS = {"chain": CHAIN, "words": texts(500, n_words=50)}


@cache  # tests compare several fits with those of a machine that is free
def timed_by_a_simulated_clock(minutes, name="chain", seed=0, **busy):
    with pytest.MonkeyPatch.context() as context:
        clock = SimulatedClock(context, PARAMETERS_A_SECOND, **busy)
        lm = AutoLM(minutes, random_state=seed).fit(DOCUMENTS[name][:450])
    assert clock.seconds < 1.05 * 60 * minutes
    return lm


@pytest.mark.slow
@pytest.mark.parametrize("name", DOCUMENTS)
def test_more_minutes_are_not_worse(name):
    # Slow enough that neither fit has the time for all the passes that teach something.
    busy = {"slowdown": 8.0, "until": float("inf")}
    short, long = (timed_by_a_simulated_clock(n, name, 0, **busy) for n in (0.07, 0.21))
    assert long.recipe_.planned > 1.5 * short.recipe_.planned
    test = DOCUMENTS[name][450:]
    assert long.perplexity(test) < 1.02 * short.perplexity(test)


@pytest.mark.slow
@pytest.mark.parametrize("slowdown", [10, 1 / 4])
def test_machine_that_was_measured_wrong_has_the_network_of_its_true_speed(slowdown):
    fits = [
        timed_by_a_simulated_clock(0.21, "chain", seed, **busy)
        for busy in ({}, {"slowdown": slowdown, "until": 0.6})
        for seed in (0, 1)
    ]
    free, _, lm, _ = fits
    for name in ("n_hidden", "embedding_dim"):
        assert lm.recipe_.network[name] == free.recipe_.network[name]
    assert 0.5 < lm.recipe_.planned / free.recipe_.planned < 2
    seen, seen_by_free = (fit.recipe_.corrections[-1][1] for fit in (lm, free))
    assert seen == pytest.approx(seen_by_free, rel=0.2)
    # In the mean of two seeds, which differ by 7% in so short a fit.
    perplexities = [fit.perplexity(CHAIN[450:]) for fit in fits]
    assert sum(perplexities[2:]) < 1.02 * sum(perplexities[:2])
    again = AutoLM(recipe=lm.recipe_).fit(CHAIN[:450])
    np.testing.assert_array_equal(
        again.score_samples(CHAIN[450:]), lm.score_samples(CHAIN[450:])
    )
