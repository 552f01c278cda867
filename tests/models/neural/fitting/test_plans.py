"""Fits of a planned number of examples, which a clock corrects."""

import time

import numpy as np
import pytest

from nplm import Adam, NeuralLM, windows
from nplm.models.neural.network_lm import FitRequest
from nplm.models.training import plan as plans
from nplm.models.training.plan import Plan, Probe, TimedPlan
from tests.helpers import markov_stream, paper_lm
from tests.helpers.checkpoint import Killed


@pytest.fixture(scope="module")
def data():
    return windows(markov_stream(3000), 2)


def network(**settings):
    return NeuralLM(
        n_words=20, n_hidden=8, embedding_dim=4, batch_size=32, early_stopping=False,
        solver=Adam("linear"), random_state=0, **settings,
    )  # fmt: skip


def fitted(lm, data, plan, **options):
    request = FitRequest.of(lm, data[:2], data[2:] or None)
    request.fit(plan=plan, **options)
    return lm


def equal(one, other):
    assert one.n_seen_ == other.n_seen_
    for name in ("C_", "H_", "U_", "b_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_planned_epochs_are_those_of_max_iter(data):
    X, y = data
    equal(fitted(network(), data, Plan(2 * len(y))), network(max_iter=2).fit(X, y))


def test_learning_rate_falls_to_0_within_an_epoch(data):
    X, y = data[0][:200], data[1][:200]
    settings = dict(
        n_words=20, n_hidden=4, embedding_dim=3, batch_size=50, alpha=0, shuffle=False,
        early_stopping=False, random_state=0,
    )  # fmt: skip
    lm = paper_lm(learning_rate="linear", learning_rate_init=0.05, **settings)
    fitted(lm, (X, y), Plan(300))  # 6 mini-batches, 4 of them an epoch
    by_hand = paper_lm(learning_rate="constant", **settings)
    by_hand.set_params(learning_rate_init=1e-30).partial_fit(X, y)  # as it begins
    for i in range(6):
        rows = slice(i % 4 * 50, i % 4 * 50 + 50)
        by_hand.set_params(learning_rate_init=0.05 * (1 - i / 6))
        by_hand.partial_fit(X[rows], y[rows])
    assert lm.n_seen_ == 300
    assert len(lm.history_["loss"]) == 2
    np.testing.assert_allclose(lm.U_, by_hand.U_, rtol=1e-5, atol=1e-6)


def test_correction_changes_the_learning_rate(data):
    corrected = fitted(network(), data, Plan(3000, [(640, 2000), (1280, 4000)]))
    assert corrected.n_seen_ == pytest.approx(4000, abs=31)
    planned = fitted(network(), data, Plan(4000))
    assert not np.array_equal(corrected.U_, planned.U_)
    # A correction to the plan that there was changes nothing.
    equal(fitted(network(), data, Plan(4000, [(640, 4000)])), planned)


class Clock:
    """Time that passes by steps: at first as planned, then twice as fast, or slowly."""

    def __init__(self, monkeypatch, seconds_a_step):
        self.now, self.seconds_a_step = 100.0, seconds_a_step
        monkeypatch.setattr(plans.time, "perf_counter", lambda: self.now)

    def run(self, plan, call=100, passes_of=50_000, closing=0.2):
        done = 0
        while done < plan.end:
            before = done
            while (limit := min(plan.limit(done), before + passes_of)) > done:
                step = min(call, limit - done)
                self.now += step * self.seconds_a_step(done)
                done += step
            self.now += closing
            plan.closed(closing, 1.0)
        return done


@pytest.mark.parametrize("planned", [1000, 90_000, 2_000_000])
@pytest.mark.parametrize(
    "seconds_a_step",
    [
        lambda done: 1e-3,
        lambda done: 1e-3 if done < 20_000 else 5e-4,
        lambda done: 1e-3 if done < 20_000 else 3e-3,
    ],
    ids=["even", "faster", "slower"],
)
def test_timed_plan_ends_on_time(planned, seconds_a_step, monkeypatch):
    clock = Clock(monkeypatch, seconds_a_step)
    plan = TimedPlan(
        planned, 200.0, steps_a_pass=50_000, closing_seconds=1.0, most=10**9
    )
    done = clock.run(plan)
    assert 197 < clock.now < 202
    assert done == plan.n_steps
    assert len(plan.corrections) <= 20
    # Without a clock, the same steps.
    again = Plan(planned, plan.corrections)
    assert Clock(monkeypatch, seconds_a_step).run(again) == done


def test_slow_machine_has_the_time_for_the_work_after_its_steps(monkeypatch):
    clock = Clock(monkeypatch, lambda done: 4e-3)  # four times slower than expected
    plan = TimedPlan(
        90_000, 190.0, steps_a_pass=50_000, closing_seconds=2.0, most=10**9,
        n_closings=2, reserved=5.0, expected_speed=1000.0,
    )  # fmt: skip
    clock.run(plan, closing=8.0)
    assert 190 < clock.now + 8.0 + 20.0 < 197


def test_timed_plan_makes_at_most_its_steps(monkeypatch):
    clock = Clock(monkeypatch, lambda done: 1e-3)
    plan = TimedPlan(1000, 200.0, steps_a_pass=50_000, closing_seconds=1.0, most=30_000)
    assert clock.run(plan) == 30_000
    assert clock.now < 140


def test_timed_plan_that_is_to_end_soon_ends_within_a_twentieth(monkeypatch):
    clock = Clock(monkeypatch, lambda done: 1e-3)
    plan = TimedPlan(
        90_000, 200.0, steps_a_pass=50_000, closing_seconds=1.0, most=10**9
    )

    def seconds_a_step(done):
        if done == 20_000:
            plan.end_soon()
        return 1e-3

    clock.seconds_a_step = seconds_a_step
    assert clock.run(plan) == plan.corrections[-1][1] < 20_100 * 1.05


# Less than a call, less than a pass, and more.
@pytest.mark.parametrize("seconds", [0.5, 8.0, 80.0])
def test_probe_measures_the_speed_after_a_slow_first_call(seconds, monkeypatch):
    clock = Clock(monkeypatch, lambda done: 1e-3 if done else 2e-2)
    probe = Probe(seconds)
    done = clock.run(probe)
    trained = 2.0 + 1e-3 * (done - 100)
    assert seconds <= trained < max(seconds + 0.2, 2.1)
    assert probe.speed == pytest.approx(50 if seconds < 2.0 else 1000)


def timed(data, seconds):
    now = time.perf_counter()
    return TimedPlan(
        1000, now + seconds, steps_a_pass=len(data[1]), closing_seconds=0.01,
        most=10**9,
    )  # fmt: skip


def test_timed_fit_is_made_again_without_a_clock(data):
    plan = timed(data, 0.4)
    lm = fitted(network(), data, plan)
    assert lm.n_iter_ > 1
    equal(fitted(network(), data, Plan(1000, plan.corrections)), lm)


def test_killed_fit_has_the_bits_of_its_corrections(data, tmp_path):
    def progress(done, total, loss):
        if done > 20_000:
            raise Killed

    options = dict(checkpoint=tmp_path)
    with pytest.raises(Killed):
        fitted(network(), data, timed(data, 0.8), progress=progress, **options)
    plan = timed(data, 0.8)
    lm = fitted(network(), data, plan, **options)
    assert plan.corrections[0][0] < 20_000 < plan.corrections[-1][0]
    equal(fitted(network(), data, Plan(1000, plan.corrections)), lm)


def test_stalled_fit_goes_on_from_its_best_epoch_with_a_falling_rate(data, tmp_path):
    X, y = data
    parts = (X[:300], y[:300]), (X[1500:2000], y[1500:2000])

    def fit(plan, **options):
        lm = network(n_iter_no_change=2, learning_rate_init=0.03, alpha=0)
        lm.set_params(early_stopping=True)
        request = FitRequest.of(lm, parts[0], parts[1])
        request.fit(plan=plan, **options)
        return lm

    now = time.perf_counter()
    options = dict(steps_a_pass=300, closing_seconds=0.01, most=300_000)
    plan = TimedPlan(300_000, now + 3600, **options)
    lm = fit(plan)
    losses = lm.history_["val_loss"]
    done, planned = plan.corrections[-1]
    stalled = done // 300
    assert done % 300 == 0
    assert planned <= 1.2 * done + 1
    assert lm.n_seen_ == pytest.approx(planned, abs=32)
    assert min(losses[stalled - 2 : stalled]) > min(losses[: stalled - 2]) - 1e-3
    assert -lm.score(*parts[1]) == pytest.approx(min(losses), rel=1e-5)
    assert min(losses[stalled:]) < min(losses[:stalled])
    equal(fit(Plan(300_000, plan.corrections)), lm)

    def kill(done, total, loss):
        if total - done < 900:  # in the last epochs
            raise Killed

    now = time.perf_counter()
    with pytest.raises(Killed):
        fit(
            TimedPlan(300_000, now + 3600, **options), checkpoint=tmp_path,
            progress=kill,
        )  # fmt: skip
    again = TimedPlan(300_000, now + 3600, **options)
    equal(fit(again, checkpoint=tmp_path), lm)
    assert again.corrections == plan.corrections
