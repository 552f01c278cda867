"""Reader processes, whose crashes and hangs are reported as failures."""

import multiprocessing
import os
import shutil
import tempfile
from pathlib import Path
from random import Random

from tests.fuzz.mutations import mutated
from tests.fuzz.seeds import seeds
from tests.fuzz.structures import FOLDER, PIPE
from tests.fuzz.worker import serve

# A case takes milliseconds, but the machine may be busy.
TIMEOUT_SECONDS = 60.0


def case(kind, number):
    """Return the files of a case, given its kind and its number."""
    rng = Random(f"{kind} {number}")
    return mutated(kind, rng.choice(seeds(kind)), rng)


def put(path, data):
    """Create a file of a case, or the pipe or folder in its place."""
    if data == PIPE:
        os.mkfifo(path)
    elif data == FOLDER:
        path.mkdir()
    else:
        path.write_bytes(data)


class Reader:
    """A process that reads cases, and is started again after a crash."""

    def __init__(self):
        self._process = None

    def __enter__(self):
        self._folder = Path(tempfile.mkdtemp(prefix="nplm-fuzz-"))
        return self

    def __exit__(self, *error):
        self._end()
        shutil.rmtree(self._folder)

    def read(self, kind, files):
        """Return the outcome of a case: {"outcome": ...}, with "why" if it failed."""
        folder = self._folder / "case"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name, data in files.items():
            put(folder / name, data)
        if self._process is None:
            self._start()
        self._pipe.send((kind, folder))
        return self._report()

    def _start(self):
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._errors = self._folder / "errors"
        self._process = context.Process(target=serve, args=(theirs, self._errors))
        self._process.start()
        theirs.close()
        self._pipe.recv()  # without a timeout: a busy machine may start it slowly

    def _report(self):
        if not self._pipe.poll(TIMEOUT_SECONDS):
            self._end()
            why = f"did not end within {TIMEOUT_SECONDS} s"
            return {"outcome": "failed", "why": why}
        try:
            return self._pipe.recv()
        except EOFError:
            why = f"ended with {self._end()}: {self._errors.read_text()[-3000:]}"
            return {"outcome": "failed", "why": why}

    def _end(self):
        if self._process is None:
            return None
        process, self._process = self._process, None
        process.kill()
        process.join()
        self._pipe.close()
        return process.exitcode
