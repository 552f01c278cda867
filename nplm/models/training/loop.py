"""The training loop of all jobs: passes, saves, progress and interrupts."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from nplm.base.array_types import AnyArray
from nplm.base.exceptions import ParameterMessage
from nplm.base.fitted import Fitted
from nplm.base.generators import plain_state, taken_state
from nplm.base.progress import OnProgress, print_line
from nplm.base.warnings import warn
from nplm.models.training.checkpoint import Checkpoint
from nplm.models.training.pace import calls
from nplm.models.training.parallel.processes import Processes


@runtime_checkable
class Labelled(Protocol):
    """Progress that can name the work that follows a pass."""

    def label(self, text: str) -> None:
        """Name the current work; the empty text is that of passes."""


class Closing(Protocol):
    """Work that follows a pass, or the last one, in `n_steps` steps of its own."""

    text: str  # describes it, for progress and messages
    n_steps: int
    weight: float  # duration of a step, in steps of a pass; for progress
    least: int  # a call has a multiple of this number of steps
    seconds_a_call: float  # 0 for calls of `least` steps

    def begin(self) -> None:
        """Prepare the steps, from the first one."""

    def work(self, start: int, stop: int) -> None:
        """Run the steps from `start` to `stop`."""


class Job(Protocol):
    """A model that is trained in passes of `n_steps` steps each.

    A pass first draws from the random generator, then calls `work` repeatedly. Between
    calls, the generator's state at the start of the pass, `arrays` and `facts`
    determine the rest: a pass resumed from them has the same bits.
    """

    name: str  # for messages
    pass_name: str  # "epoch" or "pass"
    n_steps: int  # steps of a pass
    least: int  # a call has a multiple of this number of steps
    seconds_a_call: float
    closing: Closing | None = None  # between the last step of each pass and `end`
    final: Closing | None = None  # after `close`, unless an interrupt ended the passes

    @property
    def n_ended(self) -> int:
        """Number of passes closed by `end`."""

    def n_passes(self, done: int) -> float:
        """Return the maximum number of passes, of which the last may be a fraction."""

    def limit(self, done: int) -> int:
        """Return the step up to which the next call may go; `done` ends the pass."""
        return self.n_steps

    def more(self, done: int) -> bool:
        """Return whether another pass follows, after `done` of them."""

    def begin(self, rng: np.random.RandomState, *, anew: bool) -> None:
        """Draw what a pass needs; `anew` is False for a resumed pass."""

    def work(self, start: int, stop: int) -> None:
        """Run the steps from `start` to `stop` of the pass."""

    def steps_done(self, passes: int) -> int:
        """Return the steps done in the pass after `passes`, also within a call."""

    def figure(self, done: int) -> float:
        """Return the figure for progress, equal in all processes; may raise."""

    def end(self, number: int, seconds: float, closing_seconds: float) -> None:
        """Close a pass and add it to the history."""

    def close(self) -> None:
        """Set the final state, after the last pass or an interrupt."""
        return

    def kept(self) -> str:
        """Describe the state kept after an interrupt."""

    def arrays(self) -> dict[str, AnyArray]:
        """Return all arrays that passes change."""

    def facts(self) -> dict[str, object]:
        """Return all other state that passes change, for JSON."""

    def resume(self, arrays: Fitted, facts: Fitted, *, passes: int, steps: int) -> None:
        """Restore the state of untrusted `arrays` and `facts`, or raise ValueError."""


@dataclass
class _Position:
    """Position of a fit: passes done, and the state of the current pass."""

    passes: int = 0
    steps: int = 0  # done in the current pass
    seconds: float = 0.0  # spent on the current pass


class _Progress:
    """Progress of a job in steps of passes, with the closing work in proportion."""

    def __init__(self, job: Job, report: OnProgress | None) -> None:
        self._job, self._report = job, report
        self._a_pass = job.n_steps + _cost(job.closing)
        self.figure = math.nan  # not known before a call of `Job.figure`

    def passes(self, passes: int, steps: int, figure: float) -> None:
        """Report `steps` of the pass that follows `passes`."""
        self.figure = figure
        self._show(passes * self._a_pass + steps, passes)

    def closing(self, passes: int, steps: int) -> None:
        """Report steps of the closing work of a pass."""
        self._show(passes * self._a_pass + self._job.n_steps + steps, passes)

    def final(self, passes: int, steps: int) -> None:
        """Report steps of the final work, after `passes`, which were all."""
        before = passes * self._a_pass  # of fewer than the maximum, perhaps
        self._advance(before + steps, before + _cost(self._job.final))

    def label(self, text: str) -> None:
        """Name the current work."""
        if isinstance(self._report, Labelled):
            self._report.label(text)

    def _show(self, done: int, passes: int) -> None:
        total = self._job.n_passes(passes) * self._a_pass + _cost(self._job.final)
        self._advance(done, max(done, round(total)))

    def _advance(self, done: int, total: int) -> None:
        if self._report is not None and not math.isnan(self.figure):
            self._report(done, total, self.figure)


def _cost(closing: Closing | None) -> int:
    """Return the duration of closing work, in steps of a pass."""
    return 0 if closing is None else round(closing.n_steps * closing.weight)


def run_passes(
    job: Job,
    rng: np.random.RandomState,
    processes: Processes,
    *,
    progress: OnProgress | None,
    checkpoint: Checkpoint | None = None,
    verbose: int = 0,
) -> KeyboardInterrupt | None:
    """Run a job to its end.

    The job resumes from `checkpoint` if it has a save, and is saved to it, also on an
    interrupt. Several processes save together if any of them is interrupted or
    terminated. If `progress` has a method ``label``, it is called with the name of the
    work that follows passes. With `verbose`, a line reports where a job resumes.

    Returns the interrupt that ended the job early; raise it once the result is kept.
    Raises KeyboardInterrupt in one of several processes, or before the job began: there
    is no result. In all of them: the state is in the checkpoint.
    """
    position = _Position()
    if checkpoint is not None:
        saved = checkpoint.load(lambda *state: _resume(*state, job=job, rng=rng))
        if saved is not None:
            position = saved
            if verbose:
                _print_position(job, position, checkpoint)
            _warn_beyond_max_iter(job, position)
    order = rng.get_state(legacy=False)  # at the start of the pass
    shown = _Progress(job, progress)
    try:
        while job.more(position.passes):
            passes, started = position.passes, time.perf_counter() - position.seconds
            job.begin(rng, anew=position.steps == 0)
            for done in calls(
                job.work, job.limit, position.steps,
                least=job.least, seconds_a_call=job.seconds_a_call,
                agree=processes.agree,
            ):  # fmt: skip
                position.steps = done
                position.seconds = time.perf_counter() - started
                shown.passes(passes, done, job.figure(done))
                if checkpoint is None or done == job.n_steps:
                    continue
                due, interrupt = checkpoint.due()
                if due:
                    _save(checkpoint, job, position, order)
                if interrupt is not None:
                    raise interrupt
            ended = time.perf_counter()
            if job.closing is not None:
                shown.figure = job.figure(position.steps)  # of no call if resumed here
                shown.label(job.closing.text)
                for done in _closing(job.closing, processes):
                    shown.closing(passes, done)
                    interrupt = None if checkpoint is None else checkpoint.due()[1]
                    if checkpoint is not None and interrupt is not None:
                        _save(checkpoint, job, position, order)
                        raise interrupt
                shown.label("")
            job.end(passes + 1, ended - started, time.perf_counter() - ended)
            order = rng.get_state(legacy=False)
            position = _Position(passes + 1)
            if checkpoint is not None:
                _save(checkpoint, job, position, order)
    except KeyboardInterrupt as interrupt:
        if processes.size > 1:
            raise  # the other processes may not be interrupted
        n_passes = math.ceil(job.n_passes(position.passes))
        warn(
            f"{job.name}: interrupted in {job.pass_name} {position.passes + 1} of at "
            f"most {n_passes}; it keeps {job.kept()}.",
            RuntimeWarning,
        )
        # Between two passes the state has been saved already.
        if checkpoint is not None and job.n_ended == position.passes:
            position.steps = job.steps_done(position.passes)
            _save(checkpoint, job, position, order)
        job.close()
        return interrupt.with_traceback(None)  # which holds frames, and their arrays
    # Not after an error: processes close together, and one may have failed alone.
    job.close()
    if job.final is None:
        return None
    # Without a save: there is one of the last pass, and `close` has changed the state.
    try:
        shown.label(job.final.text)
        for done in _closing(job.final, processes):
            shown.final(position.passes, done)
            everyones = None if checkpoint is None else checkpoint.due()[1]
            if everyones is not None:
                raise everyones
    except KeyboardInterrupt as interrupt:
        if processes.size > 1:
            raise
        warn(
            f"{job.name}: interrupted while {job.final.text}; it keeps {job.kept()}.",
            RuntimeWarning,
        )
        return interrupt.with_traceback(None)
    return None


def _closing(closing: Closing, processes: Processes) -> Iterator[int]:
    """Run closing work; yield what is done, in steps of a pass, after each call."""
    closing.begin()
    for done in calls(
        closing.work, lambda _: closing.n_steps, 0,
        least=closing.least, seconds_a_call=closing.seconds_a_call,
        agree=processes.agree,
    ):  # fmt: skip
        yield round(done * closing.weight)


def _print_position(job: Job, position: _Position, checkpoint: Checkpoint) -> None:
    n, most = position.passes, math.ceil(job.n_passes(position.passes))
    where = f"after {job.pass_name} {n} of at most {most}"
    if position.steps:
        share = position.steps / job.n_steps
        where = f"in {job.pass_name} {n + 1} of at most {most}, {share:.0%} done"
    print_line(f"[{job.name}] resumes from {checkpoint.folder}: {where}")


def _warn_beyond_max_iter(job: Job, position: _Position) -> None:
    n = position.passes + (position.steps > 0)
    most = math.ceil(job.n_passes(position.passes))
    if n > most:
        message = ParameterMessage(
            "{0}: the checkpoint is at {1} {2}, beyond {max_iter}; the model is that "
            "of the checkpoint.", job.name, job.pass_name, n, max_iter=most,
        )  # fmt: skip
        warn(message, RuntimeWarning)


def _save(
    checkpoint: Checkpoint, job: Job, position: _Position, order: dict[str, Any]
) -> None:
    """Save a fit; `order` is the state of the generator at the start of the pass."""
    order = plain_state(order)
    key = order.pop("key")
    facts = {"at": asdict(position), "job": job.facts(), "order": order}
    checkpoint.save(job.arrays() | {"order": key}, facts)


def _resume(
    arrays: Fitted, facts: Fitted, *, job: Job, rng: np.random.RandomState
) -> _Position:
    """Restore a fit from the state that `_save` wrote."""
    where = facts.inner("at")
    position = _Position(
        passes=where.whole("passes"),
        steps=where.whole("steps", 0, job.n_steps),
        seconds=where.number("seconds", 0),
    )
    order = Fitted(facts.take("order", dict) | {"key": arrays.take("order")}, "order.")
    state = taken_state(order)
    order.done()
    job.resume(arrays, facts.inner("job"), passes=position.passes, steps=position.steps)
    rng.set_state(state)
    return position
