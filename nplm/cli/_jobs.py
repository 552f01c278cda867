"""Workers for the blocks of a text."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from nplm.cli._options import option
from nplm.cli._text import Chunk
from nplm.cli._values import N_JOBS
from nplm.models.training.parallel.threads import n_threads

if TYPE_CHECKING:
    from concurrent.futures import Future

Result = TypeVar("Result")

# Blocks that wait for their turn in the output, for each worker.
AHEAD = 3
# N-grams score less text in the time in which a process starts.
MIN_BYTES = 1 << 19

JOBS = option(
    "--jobs n_jobs", N_JOBS, 1, "Processes, which share one model; -1 is all cores."
)


def in_order(
    work: Callable[[Chunk], Result], chunks: Iterable[Chunk], n_jobs: int, n_bytes: int
) -> Iterator[Result]:
    """Yield the result of each chunk, in order, from forks that share the memory.

    Where a chunk pauses, all results up to it come before the next one is read. A text
    of `n_bytes` that n-grams score may need fewer processes; 0 if that is unknown.
    """
    n_jobs = n_threads(n_jobs)
    if n_bytes:
        n_jobs = min(n_jobs, -(-n_bytes // MIN_BYTES))
    if n_jobs == 1:
        yield from map(work, chunks)
        return
    # Only here: their import takes a tenth of the time in which a command starts.
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    context = get_context("fork")
    with ProcessPoolExecutor(n_jobs, context, _Worker.begin, (work,)) as processes:
        due: deque[Future[Result]] = deque()
        try:
            for chunk in chunks:
                due.append(processes.submit(_Worker.call, chunk))
                room = 0 if chunk.pauses else AHEAD * n_jobs
                while len(due) > room:
                    yield due.popleft().result()
            while due:
                yield due.popleft().result()
        finally:
            processes.shutdown(cancel_futures=True)


class _Worker:
    """The work of a process, which it inherits."""

    work: Callable[[Chunk], object]

    @classmethod
    def begin(cls, work: Callable[[Chunk], object]) -> None:
        cls.work = work
        # Ctrl-C reaches all processes, and the first one ends the others.
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    @classmethod
    def call(cls, chunk: Chunk) -> Any:
        return cls.work(chunk)
