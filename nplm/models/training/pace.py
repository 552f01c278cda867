"""Split work into calls of equal duration, for prompt interrupts, bars and saves."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

# Target duration of a kernel call.
SECONDS_A_CALL = 0.1


def calls(
    work: Callable[[int, int], None],
    limit: Callable[[int], int],
    done: int,
    *,
    least: int,
    seconds_a_call: float,
    agree: Callable[[float], float],
) -> Iterator[int]:
    """Call ``work(start, stop)`` for the steps that follow `done`; yield each `stop`.

    No call goes beyond ``limit(done)``, and none follows if that is `done`. The calls
    split the steps at multiples of `least`. The split depends on the clock, but the
    results do not.
    """
    size = least
    while done < (n := limit(done)):
        started = time.perf_counter()
        stop = min(done + size, n)
        work(done, stop)
        seconds = agree(time.perf_counter() - started)
        done = stop
        yield done
        speed_up = min(4.0, seconds_a_call / max(seconds, 1e-9))
        size = max(1, round(size / least * speed_up)) * least
