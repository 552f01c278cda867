"""Warnings that point at the user's own line."""

from __future__ import annotations

import multiprocessing
import os
import re
import sys
import threading
import warnings
from types import CodeType, FrameType
from typing import cast
from weakref import WeakKeyDictionary

# A pipeline or a grid search may call a fit, at any depth, in a thread or a process.
_CALLERS = (
    "nplm", "sklearn", "joblib", "multiprocessing", "concurrent.futures", "dask",
    "distributed",
)  # fmt: skip
# Lines that were warned about, each with the start of the messages.
_WARNED: WeakKeyDictionary[CodeType, set[tuple[int, str]]] = WeakKeyDictionary()


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line that called nplm, scikit-learn or joblib from outside.

    Of warnings that differ from the first number on, as those of folds, a line gets
    one, unless the filters show each. In a worker, the warning names the worker.
    """
    # Equivalent to skip_file_prefixes of Python 3.12.
    frame, skipped = cast(FrameType | None, sys._getframe()), _skipped()
    while frame is not None and (
        frame.f_code.co_filename.startswith(skipped)
        # The first line of a process that multiprocessing spawns.
        or "spawn_main" in frame.f_code.co_names
    ):
        frame = frame.f_back
    if frame is None:
        filename, line, module = f"<worker {_worker()}>", 1, "nplm"
        code, registry = warn.__code__, {}
    else:
        filename, line, code = frame.f_code.co_filename, frame.f_lineno, frame.f_code
        module = str(frame.f_globals.get("__name__", filename))
        registry = frame.f_globals.setdefault("__warningregistry__", {})
    warned = _WARNED.setdefault(code, set())
    kind = line, re.split(r"\d", message)[0]
    if kind in warned and not _shows_each(message, category, module, line):
        return
    warned.add(kind)
    warnings.warn_explicit(message, category, filename, line, module, registry)


def _skipped() -> tuple[str, ...]:
    """Return how the names of files begin that are not the user's."""
    packages = [sys.modules[name] for name in _CALLERS if name in sys.modules]
    folders = [os.path.dirname(os.path.abspath(str(p.__file__))) for p in packages]
    files = [os.path.join(folder, "") for folder in folders]
    return (*files, str(threading.__file__), "<frozen ")


def _worker() -> str:
    process = multiprocessing.current_process()
    if multiprocessing.parent_process() is not None:
        return process.name
    return threading.current_thread().name


def _shows_each(message: str, category: type[Warning], module: str, line: int) -> bool:
    """Return whether the filters show a warning again at the same line, or raise it."""
    # Python 3.14 may have other filters in each context.
    filters = getattr(warnings, "_get_filters", lambda: warnings.filters)()
    for action, text, kind, name, number in filters:
        if (
            issubclass(category, kind)
            and number in (0, line)
            and (text is None or text.match(message))
            and (name is None or name.match(module))
        ):
            return action in ("always", "all", "error")
    return False
