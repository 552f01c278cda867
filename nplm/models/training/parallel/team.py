"""joblib's threads, for calls that leave none behind."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from joblib.parallel import ThreadingBackend

__all__ = ["Team"]

POLL_SECONDS = 0.05  # interval of checks for signals while threads run


class Team(ThreadingBackend):
    """The threads of a call: all of them, or an error and none.

    joblib's own backend leaves threads behind if it cannot start one, and polls for
    results every 10 ms. `stop` must make running tasks return.
    """

    supports_retrieve_callback = False

    def __init__(self, stop: Callable[[], None]) -> None:
        super().__init__()
        self._stop = stop

    def configure(self, n_jobs: int = 1, parallel: Any = None, **options: Any) -> int:
        """Make a pool that starts `n_jobs` threads: fewer could wait for the others."""
        self._pool = ThreadPoolExecutor(n_jobs)
        return n_jobs

    def submit(self, func: Callable[[], Any], callback: Callable[[Any], Any]) -> Any:
        """Start a task; return an object whose `get` waits for the result."""

        def call() -> Any:
            result = func()
            callback(result)  # before `get` returns: joblib polls for callbacks
            return result

        def get() -> Any:
            # A signal that another thread receives does not wake this one.
            while not task.done():
                with suppress(TimeoutError):
                    task.exception(POLL_SECONDS)
            return task.result()

        try:
            task = self._pool.submit(call)
        except RuntimeError as error:
            # Python has no exception class of its own for it.
            if "can't start new thread" not in str(error):
                raise
            raise MemoryError(
                "the system cannot start another thread: lower n_jobs, or raise its "
                "limits on memory and threads"
            ) from error
        return SimpleNamespace(get=get)

    apply_async = submit  # its name in joblib 1.4

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """End the threads after an error of joblib or of the pool."""
        self._stop()
        self.terminate()

    def terminate(self) -> None:
        """Wait for the threads to end."""
        self._pool.shutdown(cancel_futures=True)
