"""``LD_PRELOAD=fail_malloc.so python -m tests.faults.allocations``: memory that ends.

Each piece of work is done again and again, and each time another allocation fails. That
must be a MemoryError that leaves everything as it was: the same work then has the same
bits. Ends with a line of how many failed.
"""

import argparse
import ctypes
import hashlib
import pickle
import tempfile
import warnings
from pathlib import Path

import numpy as np
from numpy._core import _multiarray_umath
from sklearn.base import clone

import nplm
from nplm import (
    ClassLM,
    InterpolatedTrigram,
    KneserNeyLM,
    WordClasses,
    windows,
)
from nplm.formats import load_binary, read_arpa, save_binary, write_arpa
from tests.helpers import energy_lm, neural_lm, paper_lm

# Of an array or a buffer, in bytes.
LEAST = 512
# Where NumPy's table of functions has PyDataMem_SetHandler.
SET_HANDLER = 304
IDS = (np.random.default_rng(0).zipf(1.4, 500) % 150).astype(np.int32)
X, Y = windows(IDS, 2)
SMALL = dict(n_words=150, n_hidden=12, embedding_dim=8, max_iter=1, random_state=0)
MODELS = {
    "default": neural_lm(**SMALL, batch_size=16, direct=True),
    "default, drawn words": neural_lm(
        **SMALL, batch_size=16, loss="importance", n_noise=20
    ),
    "the paper's": paper_lm(**SMALL, batch_size=16, direct=True),
    "adam, drawn words": paper_lm(
        **SMALL, batch_size=16, solver="adam", loss="importance", n_noise=20,
        dropout=0.1,
    ),
    "classes": neural_lm(**SMALL, batch_size=16, output="classes"),
    # Not the default tree: SciPy's LU decomposition goes on after an error of memory.
    "tree": neural_lm(
        **SMALL, batch_size=16, output="tree", tree="huffman", n_senses=2
    ),
    "energy": energy_lm(**SMALL, batch_size=16),
    "Kneser-Ney": KneserNeyLM(n_words=150),
    "trigram": InterpolatedTrigram(n_words=150),
    "class model": ClassLM(n_classes=6, random_state=0, n_words=150),
    "word classes": WordClasses(6, n_words=150, max_iter=2, random_state=0),
}  # fmt: skip


def fit(model):
    """Fit to the windows, or to the words."""
    return model.fit(IDS) if isinstance(model, WordClasses) else model.fit(X, Y)


class Fitting:
    """Fit a fitted model anew: it is that of before, or the new one."""

    def __init__(self, name):
        self.model = fit(clone(MODELS[name]))
        if hasattr(self.model, "random_state"):
            self.model.set_params(random_state=1)
        self.state = fitted_state(self.model)

    def work(self):
        fit(self.model)

    def result(self, found):
        self.state = fitted_state(self.model)
        return self.state

    def after_a_failure(self):
        now = fitted_state(self.model)
        changed = [name for name in now if now[name] != self.state.get(name)]
        assert now == self.state, f"half of a fit is left: {changed}"


def fitted_state(model):
    """Digests of what a fit left, but for the time it took."""
    state = pickle.loads(pickle.dumps(vars(model)))
    if "history_" in state:
        for name in ("seconds", "scoring_seconds"):
            state["history_"].pop(name, None)
    return {k: hashlib.sha256(pickle.dumps(v)).hexdigest() for k, v in state.items()}


class Scoring:
    """Score windows: no state at all."""

    def __init__(self, name):
        self.model = fit(clone(MODELS[name]))

    def work(self):
        return self.model.log_prob(X, Y), self.model.predict_proba(X[:60])

    def result(self, found):
        return [part.tobytes() for part in found]

    def after_a_failure(self):
        pass


class Saving:
    """Save a model over an old file, and load it again."""

    def __init__(self, name):
        self.model, self.folder = fit(clone(MODELS[name])), Path(tempfile.mkdtemp())
        words = [f"w{i}" for i in range(150)]
        self.pairs = [(nplm.save, nplm.load)]
        if name == "Kneser-Ney":
            self.pairs += [
                (lambda m, p: write_arpa(m, p, words), read_arpa),
                (lambda m, p: save_binary(m, p, words), load_binary),
                (lambda m, p: save_binary(m, p, words, bits=8),
                 lambda p: load_binary(p, verify=True)),
            ]  # fmt: skip
        for i in range(len(self.pairs)):
            (self.folder / str(i)).write_bytes(b"old")

    def work(self):
        for i, (save, load) in enumerate(self.pairs):
            save(self.model, self.folder / str(i))
            load(self.folder / str(i))

    def result(self, found):
        return [path.read_bytes() for path in sorted(self.folder.iterdir())]

    def after_a_failure(self):
        left = {path.name for path in self.folder.iterdir()}
        assert left == {str(i) for i in range(len(self.pairs))}, "a part is left"


WORK = {
    **{f"fit {name}": (Fitting, name) for name in MODELS},
    **{f"score {name}": (Scoring, name) for name in MODELS if name != "word classes"},
    **{f"save {name}": (Saving, name) for name in MODELS},
}


def preloaded():
    """Give the library that makes allocations fail, which NumPy's arrays now are of."""
    shim, python = ctypes.CDLL(None), ctypes.pythonapi
    shim.fail_from.argtypes = ctypes.c_long, ctypes.c_size_t
    python.PyCapsule_GetPointer.restype = ctypes.c_void_p
    python.PyCapsule_GetPointer.argtypes = ctypes.py_object, ctypes.c_char_p
    python.PyCapsule_New.restype = ctypes.py_object
    python.PyCapsule_New.argtypes = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
    table = python.PyCapsule_GetPointer(_multiarray_umath._ARRAY_API, None)
    address = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[SET_HANDLER]
    set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(address)
    handler = ctypes.addressof(ctypes.c_char.in_dll(shim, "handler"))
    set_handler(python.PyCapsule_New(handler, b"mem_handler", None))
    return shim


def run(shim, name, stride):
    """Do a piece of work with each `stride`-th allocation failing; how many did."""
    make, model = WORK[name]
    make(model).work()  # what is imported late, and kept
    piece = make(model)
    expected, n, n_failed = None, 1, 0
    while True:
        shim.fail_from(n, LEAST)
        try:
            found, ended = piece.work(), True
        except MemoryError:
            ended = False
        finally:
            has_failed = shim.failed()
            shim.fail_from(0, 0)
        if not ended:
            piece.after_a_failure()
        else:  # one that could be done without, or none at all
            result = piece.result(found)
            assert expected in (None, result), "other bits"
            expected = result
        if not has_failed:
            return n_failed
        n, n_failed = n + stride, n_failed + 1


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.faults.allocations")
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("--work", nargs="*", choices=list(WORK), default=list(WORK))
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    shim = preloaded()
    for name in asked.work:
        print(f"{name}: {run(shim, name, asked.stride)} allocations failed", flush=True)


if __name__ == "__main__":
    main()
