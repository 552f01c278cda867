"""The threads of a call, which joblib starts and ends."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from types import FrameType, SimpleNamespace
from typing import Any, Generic, TypeVar

from joblib import Parallel, delayed
from joblib.parallel import ThreadingBackend

from nplm.base.exceptions import ParameterMessage

T = TypeVar("T")
Handler = Callable[[int, FrameType | None], Any]
SIGNALS = signal.valid_signals()
POLL_SECONDS = 0.05  # interval of checks for signals while threads run


def run_in_threads(
    work: Callable[[T], None],
    parts: Sequence[T],
    n: int,
    give_up: Callable[[], None],
    finish: bool,
) -> None:
    """Run ``work(part)`` for every part in n threads, in any ``parallel_config``.

    On an error `give_up` must make running parts return; on an interrupt too, unless
    they are to `finish`.
    """
    call = _Call(work, give_up, finish)
    with _handlers_deferred(call.interrupt):
        try:
            Parallel(
                n, backend=_Backend(call.stop), prefer="threads", require="sharedmem",
                pre_dispatch="all", batch_size=1, verbose=0,
            )(delayed(call.run)(part) for part in parts)  # fmt: skip
        except BaseException as error:
            call.errors.append(error)
    try:
        if call.errors:
            raise call.errors[0]
    finally:
        call.errors.clear()  # avoids a reference cycle with this frame and its arrays


class _Call(Generic[T]):
    """Work on parts, of which none begins once the call stops."""

    def __init__(
        self, work: Callable[[T], None], give_up: Callable[[], None], finish: bool
    ) -> None:
        self.errors: list[BaseException] = []
        self._work, self._give_up, self._finish = work, give_up, finish
        self._stopped = False

    def run(self, part: T) -> None:
        try:
            if not self._stopped:
                self._work(part)
        except BaseException as error:
            self.errors.append(error)
            self.stop()

    def interrupt(self, error: BaseException) -> None:
        self.errors.insert(0, error)
        if not self._finish:
            self.stop()

    def stop(self) -> None:
        # Once only: a signal may arrive within `give_up`, which may hold a lock.
        if not self._stopped:
            self._stopped = True
            self._give_up()


@contextmanager
def _handlers_deferred(interrupt: Callable[[BaseException], None]) -> Iterator[None]:
    """Pass what signal handlers raise to `interrupt`, at any moment of the context.

    Raised within joblib or the standard library, it could leave a lock locked forever.
    Handlers run in the main thread: in another one this changes nothing.
    """
    process = os.getpid()

    def handle(handler: Handler, number: int, frame: FrameType | None) -> None:
        try:
            handler(number, frame)
        except BaseException as error:
            if os.getpid() != process:  # in a fork, or after the context
                raise
            interrupt(error)

    def restore(number: int, handler: Handler, deferred: Handler) -> None:
        if signal.getsignal(number) is deferred:  # no handler has replaced it
            signal.signal(number, handler)

    is_main = threading.current_thread() is threading.main_thread()
    try:
        with ExitStack() as stack:
            for number in SIGNALS if is_main else ():
                handler = signal.getsignal(number)
                if callable(handler):
                    deferred = partial(handle, handler)
                    stack.callback(restore, number, handler, deferred)
                    signal.signal(number, deferred)
            yield
    finally:
        process = 0


class _Backend(ThreadingBackend):
    """The threads of a call: all of them, or an error and none.

    joblib's own backend leaves threads behind if it cannot start one, and polls for
    results every 10 ms. `stop` must make running tasks return.
    """

    supports_retrieve_callback = False

    def __init__(self, stop: Callable[[], None]) -> None:
        super().__init__()
        self._stop = stop

    def configure(self, n_jobs: int = 1, parallel: object = None, **_: object) -> int:
        """Make a pool that starts `n_jobs` threads: fewer could wait for the others."""
        self._pool = ThreadPoolExecutor(n_jobs)
        return n_jobs

    def submit(
        self, func: Callable[[], T], callback: Callable[[T], object]
    ) -> SimpleNamespace:
        """Start a task; return an object whose `get` waits for the result."""

        def call() -> T:
            result = func()
            callback(result)  # before `get` returns: joblib polls for callbacks
            return result

        def get() -> T:
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
            message = ParameterMessage(
                "the system cannot start another thread: lower {n_jobs}, or raise its "
                "limits on memory and threads"
            )
            raise MemoryError(message) from error
        return SimpleNamespace(get=get)

    apply_async = submit  # its name in joblib 1.4

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """End the threads after an error of joblib or of the pool."""
        self._stop()
        self.terminate()

    def terminate(self) -> None:
        """Wait for the threads to end."""
        self._pool.shutdown(cancel_futures=True)
