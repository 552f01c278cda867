"""Reader processes, whose crashes and hangs are reported as failures."""

import json
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random

import nplm
from tests.fuzz.mutations import mutated
from tests.fuzz.seeds import seeds
from tests.fuzz.structures import FOLDER, PIPE

# A case takes milliseconds, but the machine may be busy.
TIMEOUT_SECONDS = 60.0
ROOT = Path(__file__).parents[2]


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
        self._errors = tempfile.TemporaryFile("w+")
        self._folder = Path(tempfile.mkdtemp(prefix="nplm-fuzz-"))
        return self

    def __exit__(self, *error):
        self._end()
        self._errors.close()
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
        self._process.stdin.write(json.dumps([kind, str(folder)]) + "\n")
        self._process.stdin.flush()
        return self._report()

    def _start(self):
        folders = [str(ROOT), str(Path(nplm.__file__).parents[1])]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.worker"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            text=True,
        )  # fmt: skip
        # Without a timeout: a busy machine may start it slowly.
        if not self._process.stdout.readline():
            raise RuntimeError(f"the reader does not start: {self._stderr()}")

    def _report(self):
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(TIMEOUT_SECONDS):
                self._end()
                why = f"did not end within {TIMEOUT_SECONDS} s"
                return {"outcome": "failed", "why": why}
        line = self._process.stdout.readline()
        if line:
            return json.loads(line)
        code = self._end()
        return {"outcome": "failed", "why": f"ended with {code}: {self._stderr()}"}

    def _stderr(self):
        self._errors.seek(0)
        text = self._errors.read()[-3000:]
        self._errors.truncate(0)
        return text

    def _end(self):
        if self._process is None:
            return None
        self._process.kill()
        code = self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()
        self._process = None
        return code
