"""Processes that read cases, and what is made of one that crashes or hangs."""

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

# A case takes milliseconds; a machine may do other things.
SECONDS = 60.0
ROOT = Path(__file__).parents[2]


def case(kind, number):
    """Give the files of a case, by its kind and its number."""
    rng = Random(f"{kind} {number}")
    return mutated(kind, rng.choice(seeds(kind)), rng)


def put(path, data):
    """Make a file of a case, or what stands in its place."""
    if data == PIPE:
        os.mkfifo(path)
    elif data == FOLDER:
        path.mkdir()
    else:
        path.write_bytes(data)


class Reader:
    """A process that reads cases, another one after a crash."""

    def __init__(self):
        self._job = None

    def __enter__(self):
        self._errors = tempfile.TemporaryFile("w+")
        self._folder = Path(tempfile.mkdtemp(prefix="nplm-fuzz-"))
        return self

    def __exit__(self, *error):
        self._end()
        self._errors.close()
        shutil.rmtree(self._folder)

    def read(self, kind, files):
        """Give what came of a case: {"came": ...}, with why if it is wrong."""
        folder = self._folder / "case"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name, data in files.items():
            put(folder / name, data)
        if self._job is None:
            self._begin()
        self._job.stdin.write(json.dumps([kind, str(folder)]) + "\n")
        self._job.stdin.flush()
        return self._report()

    def _begin(self):
        places = [str(ROOT), str(Path(nplm.__file__).parents[1])]
        self._job = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.worker"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            text=True,
        )  # fmt: skip
        # However long it takes to begin, on a machine that does other things.
        if not self._job.stdout.readline():
            raise RuntimeError(f"the reader does not begin: {self._said()}")

    def _report(self):
        with selectors.DefaultSelector() as selector:
            selector.register(self._job.stdout, selectors.EVENT_READ)
            if not selector.select(SECONDS):
                self._end()
                return {"came": "wrong", "why": f"did not end within {SECONDS} s"}
        line = self._job.stdout.readline()
        if line:
            return json.loads(line)
        code = self._end()
        return {"came": "wrong", "why": f"ended with {code}: {self._said()}"}

    def _said(self):
        self._errors.seek(0)
        said = self._errors.read()[-3000:]
        self._errors.truncate(0)
        return said

    def _end(self):
        if self._job is None:
            return None
        self._job.kill()
        code = self._job.wait()
        self._job.stdin.close()
        self._job.stdout.close()
        self._job = None
        return code
