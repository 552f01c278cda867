"""``python -m tests.hours.kills --kills 100``: fits killed at random moments.

Each kind of fit is made once whole. Then it is begun with a checkpoint and killed
(SIGKILL) after a random time, again and again until it has been killed so many times,
and ends with the same bits each time that it comes to its end.

An estimation on disk keeps nothing to go on from: killed, it leaves the file that was
there, or the new one whole, and at most an unfinished file; begun anew it removes that,
and comes to the same bytes.
"""

import argparse
import hashlib
import io
import os
import random
import re
import shutil
import signal
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np

from nplm import Importance, KneserNeyLM, NeuralLM, WordClasses, windows
from nplm.formats import estimate_arpa, estimate_binary
from nplm.models.training import checkpoint, pace
from tests.helpers import energy_lm, paper_lm

IDS = np.random.default_rng(0).zipf(1.4, 12_000) % 40
X, Y = windows(IDS.astype(np.int32), 3)
SMALL = dict(n_words=40, n_hidden=8, embedding_dim=6, random_state=0, max_iter=3)
FITS = {
    "the paper's": paper_lm(**SMALL, batch_size=8),
    "the paper's, two threads": paper_lm(**SMALL, batch_size=16, n_jobs=2),
    "the default": NeuralLM(**SMALL, batch_size=16),
    "the default, drawn words": NeuralLM(
        **SMALL, batch_size=16, loss=Importance(n_noise=8)
    ),
    "the default, two threads": NeuralLM(**SMALL, batch_size=16, n_jobs=2),
    # Mini-batches have several runs of the text, the last one shorter runs.
    "a memory": NeuralLM(
        **SMALL, order=2, n_memory=3, batch_size=128, dropout=0.1, shuffle=False
    ),
    "a memory, two threads": NeuralLM(
        **SMALL | dict(n_hidden=(8, 40)), order=2, n_memory=3, batch_size=128, n_jobs=2
    ),
    "adam, drawn words": paper_lm(
        **SMALL, batch_size=16, solver="adam", loss="importance", n_noise=8,
        dropout=0.1,
    ),
    "energy": energy_lm(**SMALL, batch_size=16),
    "classes": WordClasses(12, n_words=40, max_iter=60, random_state=0),
}  # fmt: skip


ESTIMATIONS = {"estimation": estimate_binary, "estimation, ARPA": estimate_arpa}
TEXT = "\n".join(
    " ".join(f"w{i}" for i in line) for line in IDS.reshape(-1, 8)
).encode()


def fitted(model, folder=None):
    """Fit, and give a digest of all that was learned."""
    checkpoint.SECONDS_A_SAVE, pace.SECONDS_A_CALL = 0, 0.002
    if isinstance(model, WordClasses):
        model.fit(IDS, checkpoint=folder)
        learned = [model.labels_, np.array(model.history_["mutual_information"])]
    else:
        model.fit(X, Y, X_val=X[:500], y_val=Y[:500], checkpoint=folder)
        learned = [
            *model._trained.parameters.named().values(),
            np.array(model.history_["loss"]),
        ]
    return hashlib.sha256(b"".join(map(np.ascontiguousarray, learned))).hexdigest()


def in_a_child(work, kill_after=None):
    """Work in a process of its own, and maybe kill it.

    Returns the text that the work returned, empty after a kill, and its seconds.
    """
    began = time.monotonic()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.write(writing, work().encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with open(reading, "rb") as answer:
        if kill_after is not None:
            time.sleep(kill_after)
            os.kill(child, signal.SIGKILL)
        text = answer.read().decode()
    _, status = os.waitpid(child, 0)
    if kill_after is None and status != 0:
        raise SystemExit("the process failed")
    return text, time.monotonic() - began


def killed(name, n_kills, rng):
    """Kill a fit so many times; give how many ends there were."""
    with tempfile.TemporaryDirectory() as one:
        whole, seconds = in_a_child(partial(fitted, FITS[name], Path(one) / "saves"))
        n = n_ends = n_gone_on = 0
        while n < n_kills:
            folder = Path(one) / f"saves {n_ends}"
            fit, digest = partial(fitted, FITS[name], folder), ""
            while not digest and n < n_kills:
                went_on = (folder / "latest.json").exists()
                digest, _ = in_a_child(fit, rng.uniform(0, seconds))
                # One that ends before is no kill. On a machine whose speed changes,
                # the moments follow it: about one fit in four comes to its end.
                if not digest:
                    n, n_gone_on = n + 1, n_gone_on + went_on
                seconds *= 0.9 if digest else 1.03
            digest = digest or in_a_child(fit)[0]
            n_ends += 1
            if digest != whole:
                raise SystemExit(f"{name}: other bits after {n} kills")
            shutil.rmtree(folder)
    print(
        f"{name}: {n} kills ({n_gone_on} of a fit that had been killed before), "
        f"{n_ends} ends, all with the same bits",
        flush=True,
    )


def estimated(name, folder):
    """Estimate a model in a folder."""
    ESTIMATIONS[name](
        KneserNeyLM(4), [io.BytesIO(TEXT)], folder / "model", memory="8K",
        folder=folder, n_jobs=2,
    )  # fmt: skip
    return "estimated"


def estimation_killed(name, n_kills, rng):
    """Kill an estimation so many times, and look at what it leaves."""
    n_whole, left = 0, set()
    with tempfile.TemporaryDirectory() as one:
        folder = Path(one)
        estimate = partial(estimated, name, folder)
        _, seconds = in_a_child(estimate)
        whole = (folder / "model").read_bytes()
        for _ in range(n_kills):
            (folder / "model").write_bytes(b"old")
            in_a_child(estimate, rng.uniform(0, 1.1 * seconds))
            found = (folder / "model").read_bytes()
            if found not in (b"old", whole):
                raise SystemExit(f"{name}: half a file after a kill")
            n_whole += found == whole
            kept = sorted(set(os.listdir(folder)) - {"model"})
            if not all(re.fullmatch(r"model\.\w+\.part", name) for name in kept):
                raise SystemExit(f"{name}: a kill left {kept}")
            left.update(kept)
        in_a_child(estimate)
        if (folder / "model").read_bytes() != whole:
            raise SystemExit(f"{name}: other bytes among what kills left")
        if os.listdir(folder) != ["model"]:
            raise SystemExit(f"{name}: what kills left stays: {os.listdir(folder)}")
    print(
        f"{name}: {n_kills} kills, {n_whole} of them when the file was there, the "
        f"others left the old one; {len(left)} unfinished files were left, which the "
        "next removed; then the same bytes",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.hours.kills")
    parser.add_argument("--kills", type=int, default=100, help="of each kind of fit")
    kinds = [*FITS, *ESTIMATIONS]
    parser.add_argument("--fits", nargs="*", choices=kinds, default=kinds)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    rng = random.Random(asked.seed)
    for name in asked.fits:
        kill = estimation_killed if name in ESTIMATIONS else killed
        kill(name, asked.kills, rng)


if __name__ == "__main__":
    main()
