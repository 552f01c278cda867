"""``python -m tests.hours.soak --minutes 60``: fits, scores, saves, loads, interrupts.

Memory, open files and threads must stay where they were after the first rounds.
"""

import argparse
import os
import signal
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np

import nplm
from nplm import (
    EnergyLM,
    Importance,
    KneserNeyLM,
    MixtureLM,
    NeuralLM,
    TextLM,
    windows,
)
from nplm.formats import load_binary, read_arpa, save_binary, write_arpa
from tests.helpers import energy_lm, paper_lm

IDS = (np.random.default_rng(0).zipf(1.4, 6000) % 50).astype(np.int32)
X, Y = windows(IDS, 3, boundary=0)
SMALL = dict(n_words=50, n_hidden=8, embedding_dim=6, max_iter=1, batch_size=16)
WORDS = ["</s>", *(f"w{i}" for i in range(1, 50))]
# Rounds after which nothing new should be taken; bytes that allocators may keep.
WARM_UP, ALLOWED = 8, 24 << 20


def a_round(folder):
    """Fit, save, load and score one of each."""
    ngrams = KneserNeyLM(n_words=50, boundary=0)
    models = [
        NeuralLM(**SMALL),
        NeuralLM(**SMALL, loss=Importance(n_noise=8)),
        NeuralLM(**SMALL, n_jobs=2, parallel="async"),
        paper_lm(**SMALL),
        paper_lm(**SMALL, n_jobs=2),
        paper_lm(**SMALL, n_jobs=2, parallel="async"),
        paper_lm(**SMALL, solver="adam", loss="nce", n_noise=8),
        energy_lm(**SMALL),
        ngrams,
        MixtureLM([("a", KneserNeyLM()), ("b", NeuralLM(**SMALL))], n_words=50),
    ]
    for i, model in enumerate(models):
        options = {}
        if isinstance(model, NeuralLM | EnergyLM):
            options["checkpoint"] = folder / f"saves {i}"
        model.fit(X, Y, X_val=X[:200], y_val=Y[:200], **options)
        nplm.save(model, folder / "model")
        for mmap in (True, False):
            again = nplm.load(folder / "model", mmap=mmap)
            assert (
                again.log_prob(X[:300], Y[:300]) == model.log_prob(X[:300], Y[:300])
            ).all()
    write_arpa(ngrams, folder / "arpa.gz", WORDS)
    read_arpa(folder / "arpa.gz")
    for options in ({}, {"bits": 8}):
        save_binary(ngrams, folder / "binary", WORDS, **options)
        model, words = load_binary(folder / "binary", verify=True)
        text = TextLM.from_model(model, words)
        text.score_samples(["w1 w2 w3"] * 20)
        text.scorer().score("w1 w2")
    for path in folder.glob("saves */*"):
        path.unlink()


def interrupted(work, seconds):
    """Do it again and again until a signal interrupts it."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        while True:
            work()
    except KeyboardInterrupt:
        pass
    timer.join()


def interrupts(folder, rng):
    """Interrupt fits, scores and saves, in one thread and in several."""
    for parallel in ("sync", "async"):
        lm = NeuralLM(**SMALL, n_jobs=2, parallel=parallel)
        interrupted(lambda lm=lm: lm.fit(X, Y), rng.uniform(0.01, 0.2))
        lm.fit(X, Y)
        for _ in range(5):
            interrupted(lambda lm=lm: lm.log_prob(X, Y), rng.uniform(0.001, 0.02))
    saves = folder / "saves interrupted"
    checked = NeuralLM(**SMALL)
    interrupted(lambda: checked.fit(X, Y, checkpoint=saves), rng.uniform(0.05, 0.3))
    for path in saves.glob("*"):
        path.unlink()
    interrupted(lambda: nplm.save(lm, folder / "model"), rng.uniform(0.001, 0.02))
    text = TextLM(NeuralLM(**SMALL), n_context=3)
    interrupted(lambda: text.fit([IDS % 49 + 1]), rng.uniform(0.05, 0.3))


def in_use():
    """Bytes of memory, open files, threads."""
    time.sleep(0.05)  # threads that are done may still be ending
    fields = Path("/proc/self/statm").read_text().split()
    pages = int(fields[1]) - int(fields[2])  # not those of mapped files
    n_files = len(os.listdir("/proc/self/fd"))
    # The system's number: Python does not count threads that it did not name.
    n_threads = len(os.listdir("/proc/self/task"))
    return pages * os.sysconf("SC_PAGESIZE"), n_files, n_threads


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.hours.soak")
    parser.add_argument("--minutes", type=float, default=60)
    until = time.monotonic() + 60 * parser.parse_args().minutes
    warnings.simplefilter("ignore")
    n, first, last, rng = 0, None, None, np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        while time.monotonic() < until or n <= WARM_UP:
            a_round(Path(name))
            interrupts(Path(name), rng)
            n, last = n + 1, in_use()
            if n == WARM_UP:
                first = last
                print(f"after {n} rounds: {_told(*first)}", flush=True)
    print(f"after {n} rounds: {_told(*last)}")
    grown = last[0] - first[0]
    if grown > ALLOWED or last[1] > first[1] or last[2] > first[2]:
        raise SystemExit("more than after the first rounds")


def _told(memory, n_files, n_threads):
    return f"{memory / 1e6:.1f} MB, {n_files} open files, {n_threads} threads"


if __name__ == "__main__":
    main()
