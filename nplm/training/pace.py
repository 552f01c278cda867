"""Calls of about equal time, so that an interrupt, a bar and a save are prompt."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

__all__ = ["SECONDS_A_CALL", "calls"]

# A kernel call lasts about this long.
SECONDS_A_CALL = 0.1


def calls(
    work: Callable[[int, int], None],
    n: int,
    done: int,
    *,
    least: int,
    seconds_a_call: float,
    agree: Callable[[float], float],
) -> Iterator[int]:
    """Do ``work(start, stop)`` from `done` to n, and yield how far it went.

    The calls only cut the sequence, at multiples of `least`: where they cut depends
    on the clock, but what is computed does not.
    """
    size = least
    while done < n:
        started = time.perf_counter()
        stop = min(done + size, n)
        work(done, stop)
        seconds = agree(time.perf_counter() - started)
        done = stop
        yield done
        speed_up = min(4.0, seconds_a_call / max(seconds, 1e-9))
        size = max(1, round(size / least * speed_up)) * least
