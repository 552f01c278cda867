"""The loop of whatever trains in passes: time, saves, progress, interrupts."""

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

# Called a few times a second with (steps done, steps in all if every pass is run, the
# figure that is made better).
OnProgress = Callable[[float, float, float], None]


@runtime_checkable
class Closing(Protocol):
    """Progress that can say what happens at the end of a pass."""

    def closing(self, text: str) -> None:
        """Show what is done after the last step of a pass."""


class Job(Protocol):
    """What is trained in passes, each of so many steps.

    A pass begins with what it draws from the random generator and goes on in calls
    of `work`: given the generator's state when it began, and `arrays` and `facts` at
    any moment between calls, it can be gone on with to the same bits.
    """

    name: str  # for messages
    pass_name: str  # "epoch", or what its field calls a pass
    closing: str  # what `end` does, if it takes a while
    n_steps: int  # of a pass
    least: int  # steps of a call, or multiples of it
    seconds_a_call: float

    @property
    def n_ended(self) -> int:
        """Passes closed by `end`."""

    def n_passes(self, done: int) -> int:
        """How many passes there are at most, after so many."""

    def more(self, done: int) -> bool:
        """Whether there is another pass, after so many."""

    def begin(self, rng: np.random.RandomState, *, anew: bool) -> None:
        """Draw what a pass needs; not `anew`, one that is gone on with."""

    def work(self, start: int, stop: int) -> None:
        """Do these steps of the pass."""

    def steps_done(self, passes: int) -> int:
        """Say how far the pass after so many is, if a call was interrupted."""

    def figure(self, done: int) -> float:
        """Give the figure for progress after so many steps, agreed on; may raise."""

    def end(self, number: int, seconds: float) -> None:
        """Close a pass: what it reached goes to the history."""

    def close(self) -> None:
        """Leave what is to be kept, after the last pass or an interrupt."""

    def kept(self) -> str:
        """Say what is kept after an interrupt."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All arrays that passes change."""

    def facts(self) -> dict[str, Any]:
        """All else that passes change, for JSON."""

    def resume(self, arrays: Fitted, facts: Fitted, *, passes: int, steps: int) -> None:
        """Set what `arrays` and `facts` gave, so far into the fit.

        Nothing is believed of them: they may come from anyone's file. A ValueError
        says that no fit leaves them.
        """


@dataclass
class _Position:
    """Where a fit stands, beside its job."""

    passes: int = 0  # done
    steps: int = 0  # done of the next
    seconds: float = 0.0  # spent on it


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

    A `checkpoint` is gone on from, if it has a save, and saved to, on an interrupt
    too: by several processes together, whichever of them is interrupted or terminated.
    A `progress` with a method ``closing`` is told at the end of a pass. With `verbose`,
    a line says that the job resumes from a checkpoint, and where.

    Returns
    -------
    interrupt : KeyboardInterrupt or None
        What ended the job early: to be raised once the result is kept.

    Raises
    ------
    KeyboardInterrupt
        In one of several processes, or before the job began: nothing is to keep. In
        all of them: what is to keep is in the checkpoint.
    """
    at = _Position()
    if checkpoint is not None:
        saved = checkpoint.load(lambda *given: _resume(*given, job=job, rng=rng))
        if saved is not None:
            at = saved
            if verbose:
                _tell_where(job, at, checkpoint)
            _warn_of_more(job, at)
    order = rng.get_state(legacy=False)  # at the start of the pass
    try:
        while job.more(at.passes):
            started = time.perf_counter() - at.seconds
            job.begin(rng, anew=at.steps == 0)
            before = at.passes * job.n_steps
            for done in calls(
                job.work, job.n_steps, at.steps,
                least=job.least, seconds_a_call=job.seconds_a_call,
                agree=processes.agree,
            ):  # fmt: skip
                at.steps, at.seconds = done, time.perf_counter() - started
                figure = job.figure(done)
                if progress is not None:
                    total = job.n_passes(at.passes) * job.n_steps
                    progress(before + done, total, figure)
                if checkpoint is None or done == job.n_steps:
                    continue
                due, interrupt = checkpoint.due()
                if due:
                    _save(checkpoint, job, at, order)
                if interrupt is not None:
                    raise interrupt
            if job.closing and isinstance(progress, Closing):
                progress.closing(job.closing)
            job.end(at.passes + 1, time.perf_counter() - started)
            order = rng.get_state(legacy=False)
            at = _Position(at.passes + 1)
            if checkpoint is not None:
                _save(checkpoint, job, at, order)
    except KeyboardInterrupt as interrupt:
        if processes.size > 1:
            raise  # the others may not know of it
        warn(
            f"{job.name}: interrupted in {job.pass_name} {at.passes + 1} of at most "
            f"{job.n_passes(at.passes)}; it keeps {job.kept()}.",
            RuntimeWarning,
        )
        # Not between two passes, where it is saved anyway.
        if checkpoint is not None and job.n_ended == at.passes:
            at.steps = job.steps_done(at.passes)
            _save(checkpoint, job, at, order)
        return interrupt
    finally:
        job.close()
    return None


def _tell_where(job: Job, at: _Position, checkpoint: Checkpoint) -> None:
    n, most = at.passes, job.n_passes(at.passes)
    where = f"after {job.pass_name} {n} of at most {most}"
    if at.steps:
        share = at.steps / job.n_steps
        where = f"in {job.pass_name} {n + 1} of at most {most}, {share:.0%} done"
    print(f"[{job.name}] resumes from {checkpoint.folder}: {where}")


def _warn_of_more(job: Job, at: _Position) -> None:
    n, most = at.passes + (at.steps > 0), job.n_passes(at.passes)
    if n > most:
        warn(
            f"{job.name}: the checkpoint is of {job.pass_name} {n} already, beyond "
            f"max_iter={most}; the model is that of the checkpoint.",
            RuntimeWarning,
        )


def _save(
    checkpoint: Checkpoint, job: Job, at: _Position, order: dict[str, Any]
) -> None:
    """Save a fit as it stands; `order` is the generator at the pass's start."""
    order = plain_state(order)
    key = order.pop("key")
    facts = {"at": asdict(at), "job": job.facts(), "order": order}
    checkpoint.save(job.arrays() | {"order": key}, facts)


def _resume(
    arrays: Fitted, facts: Fitted, *, job: Job, rng: np.random.RandomState
) -> _Position:
    """Put a fit where `_save` left it."""
    where = facts.inner("at")
    at = _Position(
        passes=where.whole("passes"),
        steps=where.whole("steps", 0, job.n_steps),
        seconds=where.number("seconds", 0),
    )
    order = Fitted(facts.take("order", dict) | {"key": arrays.take("order")}, "order.")
    state = taken_state(order)
    order.done()
    job.resume(arrays, facts.inner("job"), passes=at.passes, steps=at.steps)
    rng.set_state(state)
    return at
