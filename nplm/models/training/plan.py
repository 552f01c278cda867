"""The planned length of a fit, which a clock may correct."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from nplm.base.fitted import Fitted

# A correction: the number of steps done, and the planned number from then on.
Correction = tuple[int, int]

# Shares of the time of a fit after which a clock corrects the plan. The first ones
# replace an estimate by a measurement, the last ones end the fit on time.
CHECKS = (
    0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93,
    0.95, 0.97, 0.98, 0.99,
)  # fmt: skip
# Shares of the steps done that follow them when a fit is asked to end soon, and when
# the held-out loss stops improving.
LAST_STEPS, COOLING_STEPS = 0.04, 0.2
# Shares of the time of a fit: before held-out text is first sampled, and of all samples
# that follow.
FIRST_SAMPLE, SAMPLE_SHARE = 0.1, 0.005


class Plan:
    """Number of steps of a fit, over all its passes, with the recorded corrections.

    The learning rate falls to 0 at step `n_steps`, and the fit stops at `last` if that
    is before it. A plan without a clock makes the same fit again.
    """

    n_sample = 0  # size of the samples of held-out text within a pass, for progress

    def __init__(
        self,
        n_steps: int,
        corrections: Sequence[Correction] = (),
        last: int | None = None,
    ) -> None:
        self.n_steps, self.last = n_steps, last
        self.corrections: list[Correction] = []
        # Of the last pass, or of a sample after that.
        self.held_out_loss, self.is_sampled = math.nan, False
        self._recorded = [(int(done), int(n)) for done, n in corrections]

    @property
    def end(self) -> int:
        """The step after which the fit ends."""
        return self.n_steps if self.last is None else min(self.last, self.n_steps)

    def limit(self, done: int) -> int:
        """Correct the plan after `done` steps, if that is due.

        Returns the step up to which it is not corrected again, at most `done` at the
        end.
        """
        while self._recorded and self._recorded[0][0] <= done:
            self._correct(*self._recorded.pop(0))
        following = [at for at, _ in self._recorded[:1]]
        return min([self.end, *following])

    def _correct(self, done: int, n_steps: int) -> None:
        self.n_steps = n_steps
        self.corrections.append((done, n_steps))

    def cool(self, done: int) -> None:
        """Let the learning rate fall to 0 soon, between two passes."""
        self.limit(done)  # a recorded correction

    def closed(self, seconds: float, loss: float) -> None:
        """Note how long the work took that followed a pass, and the held-out loss."""
        self.held_out_loss, self.is_sampled = loss, False

    @property
    def wants_sample(self) -> bool:
        """Whether the held-out text is to be sampled now."""
        return False

    def sampled(self, seconds: float, loss: float) -> None:
        """Note how long a sample took, and its loss."""
        self.held_out_loss, self.is_sampled = loss, True

    def facts(self) -> dict[str, object]:
        """Return the state, for JSON."""
        return {"n_steps": self.n_steps, "made": self.corrections}

    def resume(self, facts: Fitted) -> None:
        """Restore the state of `facts`, or raise ValueError."""
        pairs = facts.take("made", list)
        try:
            corrections = [(done, n) for done, n in pairs]
        except (TypeError, ValueError):
            raise facts.invalid_item("made", pairs) from None
        if not all(type(n) is int and n >= 0 for pair in pairs for n in pair):
            raise facts.invalid_item("made", pairs)
        self.corrections, self.n_steps = corrections, facts.whole("n_steps", 1)
        self._recorded = self._recorded[len(pairs) :]


class TimedPlan(Plan):
    """A plan that a clock corrects, at most once at each of `CHECKS`, to end at `ends`.

    - `ends`: by ``time.perf_counter``
    - `closing_seconds`: expected after each pass; the last step is followed by it
      `n_closings` times, and by `reserved` seconds of other work after `ends`
    - `expected_speed`: steps a second for which these are expected; 0 if unknown
    - `n_sample`: as of `Plan`
    """

    def __init__(
        self,
        n_steps: int,
        ends: float,
        *,
        steps_a_pass: int,
        closing_seconds: float,
        most: int,
        n_closings: int = 1,
        reserved: float = 0.0,
        expected_speed: float = 0.0,
        n_sample: int = 0,
    ) -> None:
        super().__init__(min(n_steps, most))
        self.ends, self.most = ends, most
        self._n_closings, self._reserved = n_closings, reserved
        self._expected_speed, self._has_closed = expected_speed, False
        self._steps_a_pass, self._closing_seconds = steps_a_pass, closing_seconds
        self._started = time.perf_counter()
        self._asked_to_end = self._ends_soon = False
        self._trained_seconds, self._trained_steps, self._called_at = 0.0, 0, 0
        self._measure(0, None)
        self.n_sample, self._scored_at = n_sample, self._started
        self._wait = FIRST_SAMPLE * (ends - self._started)

    def _measure(self, done: int, now: float | None) -> None:
        """Measure the duration of a step anew."""
        self._measured_from, self._seconds, self._last_call = done, 0.0, now

    @property
    def speed(self) -> float:
        """Steps a second of all calls; 0 before the first."""
        return self._trained_steps / self._trained_seconds if self._trained_steps else 0

    @property
    def share(self) -> float:
        """Share of the time of the fit that is over."""
        now = time.perf_counter()
        return (now - self._started) / max(self.ends - self._started, 1e-9)

    def end_soon(self) -> None:
        """Let the learning rate fall to 0 in few further steps."""
        self._asked_to_end = True

    def cool(self, done: int) -> None:
        further = math.ceil(COOLING_STEPS * done)
        self._ends_soon = True
        self._correct(done, min(self.n_steps, done + further))

    def limit(self, done: int) -> int:
        """Correct the plan after `done` steps, if that is due; see `Plan.limit`."""
        now, is_first = time.perf_counter(), self._last_call is None
        if self._last_call is not None:
            seconds, steps = now - self._last_call, done - self._called_at
            self._seconds += seconds
            self._trained_seconds += seconds
            self._trained_steps += steps
        elif not self._seconds:  # the first call, or that of a resumed fit
            self._measured_from = done
        self._last_call, self._called_at = now, done
        if self._asked_to_end:
            self._asked_to_end, self._ends_soon = False, True
            self._correct(done, done + max(1, math.ceil(LAST_STEPS * done)))
        # A pass that has begun has steps.
        elif not is_first and done > self._measured_from and self._is_due(done):
            self._correct(done, self._on_time(done, now))
            self._measure(done, now)
        return self.n_steps

    def _is_due(self, done: int) -> bool:
        """Return whether the clock corrects the plan after `done` steps."""
        n_corrections = len(self.corrections)
        if self._ends_soon or n_corrections == len(CHECKS):
            return False
        share = self.share
        ends_early = done >= self.n_steps < self.most and share < CHECKS[-1]
        return ends_early or share >= CHECKS[n_corrections]

    def _on_time(self, done: int, now: float) -> int:
        """Return the number of steps with which the fit ends on time."""
        seconds_a_step = self._seconds / (done - self._measured_from)
        slowdown = max(1.0, self._expected_speed * seconds_a_step)
        closing = self._closing_seconds * (1.0 if self._has_closed else slowdown)
        after = self._n_closings * closing + (slowdown - 1) * self._reserved
        left = max(0.0, self.ends - now - after)
        further = left / (seconds_a_step + closing / self._steps_a_pass)
        return min(self.most, done + int(further))

    def closed(self, seconds: float, loss: float) -> None:
        super().closed(seconds, loss)
        self._closing_seconds, self._has_closed, self._last_call = seconds, True, None
        self._scored_at = time.perf_counter()

    @property
    def wants_sample(self) -> bool:
        return time.perf_counter() - self._scored_at >= self._wait

    def sampled(self, seconds: float, loss: float) -> None:
        super().sampled(seconds, loss)
        self._scored_at, self._wait = time.perf_counter(), seconds / SAMPLE_SHARE
        if self._last_call is not None:
            self._last_call += seconds  # it is no training


class Probe(Plan):
    """A plan that ends after some seconds of training, to measure the speed.

    - `speed`: steps a second; without those of the first call, which fills the caches,
      if others follow
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(10**12)
        self.speed, self._seconds_left = 0.0, seconds
        self._timed_steps, self._timed_seconds = 0, 0.0
        self._last_call: tuple[int, float] | None = None

    def limit(self, done: int) -> int:
        """Measure the call before; end the fit if its seconds are over."""
        now = time.perf_counter()
        if self._last_call is not None:
            steps, seconds = done - self._last_call[0], now - self._last_call[1]
            self._seconds_left -= seconds
            if self.speed:
                self._timed_steps += steps
                self._timed_seconds += seconds
                steps, seconds = self._timed_steps, self._timed_seconds
            self.speed = steps / max(seconds, 1e-9)
            if self._seconds_left <= 0:
                self.n_steps = done
        self._last_call = done, now
        return self.n_steps

    def closed(self, seconds: float, loss: float) -> None:
        self._last_call = None  # it is no training
