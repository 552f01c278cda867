"""Fit 16 million words of Wikipedia as a stream, and measure the memory that it takes.

    NPLM_DATA=/path/to/corpora python -m tests.hours.streams > tests/hours/streams.log

Each fit runs in a process of its own, which reports its anonymous memory (``RssAnon``,
Linux). Pages of temporary files are not counted: the system can drop them.
"""

import os
import subprocess
import sys
import threading
import time

from nplm import KneserNeyLM, NeuralLM, Subwords, TextLM, UniformLM, Vocabulary
from nplm.datasets import TextLines

N_CONTEXT = 4
FITS = {
    "the text alone (UniformLM)": lambda: TextLM(
        UniformLM(), N_CONTEXT, vocabulary=Vocabulary(min_count=4)
    ),
    "subwords (UniformLM)": lambda: TextLM(
        UniformLM(), N_CONTEXT, tokenizer=Subwords("bpe", n_words=8000)
    ),
    "a small NeuralLM, one epoch": lambda: TextLM(
        NeuralLM(n_hidden=8, embedding_dim=8, max_iter=1, random_state=0),
        N_CONTEXT,
        vocabulary=Vocabulary(min_count=4),
    ),
    "KneserNeyLM of order 3": lambda: TextLM(
        KneserNeyLM(3), N_CONTEXT, vocabulary=Vocabulary(min_count=4)
    ),
}


def path():
    """Return the text in one of the folders of NPLM_DATA."""
    folders = os.environ["NPLM_DATA"].split(os.pathsep)
    paths = [os.path.join(folder, "wiki16m.txt.xz") for folder in folders]
    return next(p for p in paths if os.path.exists(p))


def anonymous_mb():
    with open("/proc/self/status") as file:
        [line] = [line for line in file if line.startswith("RssAnon")]
    return int(line.split()[1]) / 1024


class Peak(threading.Thread):
    """The largest anonymous memory, looked up 50 times a second."""

    def __init__(self):
        super().__init__(daemon=True)
        self.mb = 0.0

    def run(self):
        while True:
            self.mb = max(self.mb, anonymous_mb())
            time.sleep(0.02)


def fit(name):
    lm, peak = FITS[name](), Peak()
    before = anonymous_mb()
    peak.start()
    start = time.process_time()
    lm.fit(TextLines(path()))
    seconds, mb = time.process_time() - start, peak.mb - before
    print(
        f"{name:<30} vocabulary {lm.n_words_:>7,}, {seconds:5.0f} s of CPU, "
        f"peak {mb:6,.0f} MB above the interpreter",
        flush=True,
    )


def main():
    if len(sys.argv) > 1:
        fit(sys.argv[1])
        return
    n_tokens = sum(len(text.split()) for text in TextLines(path()))
    print(f"{n_tokens:,} words between white space; n_context={N_CONTEXT}", flush=True)
    for name in FITS:
        command = [sys.executable, "-W", "ignore", "-m", "tests.hours.streams", name]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
