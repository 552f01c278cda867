"""The training loop of all jobs: passes, saves, progress and interrupts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from nplm.base.fitted import Fitted
from nplm.base.generators import plain_state, taken_state
from nplm.base.warnings import warn
from nplm.training.checkpoint import Checkpoint
from nplm.training.pace import calls
from nplm.training.parallel.processes import Processes

__all__ = ["Job", "OnProgress", "run_passes"]

# Called a few times a second with (steps done, steps of all passes, the figure that is
# optimised).
OnProgress = Callable[[float, float, float], None]


@runtime_checkable
class Closing(Protocol):
    """Progress that can show the work at the end of a pass."""

    def closing(self, text: str) -> None:
        """Show the work after the last step of a pass."""


class Job(Protocol):
    """A model that is trained in passes of `n_steps` steps each.

    A pass first draws from the random generator, then calls `work` repeatedly. Between
    calls, the generator's state at the start of the pass, `arrays` and `facts`
    determine the rest: a pass resumed from them has the same bits.
    """

    name: str  # for messages
    pass_name: str  # "epoch" or "pass"
    closing: str  # describes the work of `end` if it takes a while
    n_steps: int  # steps of a pass
    least: int  # a call has a multiple of this number of steps
    seconds_a_call: float

    @property
    def n_ended(self) -> int:
        """Number of passes closed by `end`."""

    def n_passes(self, done: int) -> int:
        """Return the maximum number of passes, after `done` of them."""

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

    def end(self, number: int, seconds: float) -> None:
        """Close a pass and add it to the history."""

    def close(self) -> None:
        """Set the final state, after the last pass or an interrupt."""

    def kept(self) -> str:
        """Describe the state kept after an interrupt."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays that passes change."""

    def facts(self) -> dict[str, Any]:
        """Return all other state that passes change, for JSON."""

    def resume(self, arrays: Fitted, facts: Fitted, *, passes: int, steps: int) -> None:
        """Restore the state of `arrays` and `facts`.

        They are untrusted, because a file may come from anywhere: raise a ValueError
        if a value is invalid.
        """


@dataclass
class _Position:
    """Position of a fit: passes done, and the state of the current pass."""

    passes: int = 0
    steps: int = 0  # done in the current pass
    seconds: float = 0.0  # spent on the current pass


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
    terminated. If `progress` has a method ``closing``, it is called at the end of each
    pass. With `verbose`, a line reports where a job resumes.

    Returns
    -------
    interrupt : KeyboardInterrupt or None
        The interrupt that ended the job early; raise it once the result is kept.

    Raises
    ------
    KeyboardInterrupt
        In one of several processes, or before the job began: there is no result. In
        all of them: the state is in the checkpoint.
    """
    position = _Position()
    if checkpoint is not None:
        saved = checkpoint.load(lambda *given: _resume(*given, job=job, rng=rng))
        if saved is not None:
            position = saved
            if verbose:
                _print_position(job, position, checkpoint)
            _warn_beyond_max_iter(job, position)
    order = rng.get_state(legacy=False)  # at the start of the pass
    try:
        while job.more(position.passes):
            started = time.perf_counter() - position.seconds
            job.begin(rng, anew=position.steps == 0)
            before = position.passes * job.n_steps
            for done in calls(
                job.work, job.n_steps, position.steps,
                least=job.least, seconds_a_call=job.seconds_a_call,
                agree=processes.agree,
            ):  # fmt: skip
                position.steps = done
                position.seconds = time.perf_counter() - started
                figure = job.figure(done)
                if progress is not None:
                    total = job.n_passes(position.passes) * job.n_steps
                    progress(before + done, total, figure)
                if checkpoint is None or done == job.n_steps:
                    continue
                due, interrupt = checkpoint.due()
                if due:
                    _save(checkpoint, job, position, order)
                if interrupt is not None:
                    raise interrupt
            if job.closing and isinstance(progress, Closing):
                progress.closing(job.closing)
            job.end(position.passes + 1, time.perf_counter() - started)
            order = rng.get_state(legacy=False)
            position = _Position(position.passes + 1)
            if checkpoint is not None:
                _save(checkpoint, job, position, order)
    except KeyboardInterrupt as interrupt:
        if processes.size > 1:
            raise  # the other processes may not be interrupted
        n_passes = job.n_passes(position.passes)
        warn(
            f"{job.name}: interrupted in {job.pass_name} {position.passes + 1} of at "
            f"most {n_passes}; it keeps {job.kept()}.",
            RuntimeWarning,
        )
        # Between two passes the state has been saved already.
        if checkpoint is not None and job.n_ended == position.passes:
            position.steps = job.steps_done(position.passes)
            _save(checkpoint, job, position, order)
        return interrupt.with_traceback(None)  # which holds frames, and their arrays
    finally:
        job.close()
    return None


def _print_position(job: Job, position: _Position, checkpoint: Checkpoint) -> None:
    n, most = position.passes, job.n_passes(position.passes)
    where = f"after {job.pass_name} {n} of at most {most}"
    if position.steps:
        share = position.steps / job.n_steps
        where = f"in {job.pass_name} {n + 1} of at most {most}, {share:.0%} done"
    print(f"[{job.name}] resumes from {checkpoint.folder}: {where}")


def _warn_beyond_max_iter(job: Job, position: _Position) -> None:
    n, most = position.passes + (position.steps > 0), job.n_passes(position.passes)
    if n > most:
        warn(
            f"{job.name}: the checkpoint is at {job.pass_name} {n}, beyond "
            f"max_iter={most}; the model is that of the checkpoint.",
            RuntimeWarning,
        )


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
