"""The n-gram models beside KenLM.

    python benchmarks/ngrams/beside_kenlm.py [--json FILE]

Order 5 on the 14 million training tokens of `nplm.datasets.load_wiki`.
``lmplz`` and ``build_binary`` are in no Python package: their figures are recorded
ones, on text of the same size. The ``kenlm`` module, which is one, reads the ARPA
file that nplm writes; both score in turn. About 10 GB of memory and 3 GB of disk.
"""

from __future__ import annotations

import sys
import tempfile
import time
from argparse import SUPPRESS
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import numpy as np

from common.process import fresh, resident, serve
from common.table import parser, report
from nplm import BackoffLM, KneserNeyLM, windows
from nplm.datasets import load_wiki
from nplm.formats import load_binary, read_arpa, save_binary, write_arpa

ORDER = 5
N_SCORED = 1_000_000
# A line for score(): sentences of the usual length.
LINE_WORDS = 25
LMPLZ_TOKENS_PER_SECOND = 530e3
LMPLZ_PEAK_GB = 1.9
PROBING_MB, TRIE_Q8_MB = 691, 130
# KenLM's trie of 8 bits as a share of the speed of its probing table: the module
# builds no binary files.
TRIE_SHARE = 0.43
BATCHES = (100_000, 1000, 25)


@dataclass
class Row:
    """One measurement, beside its peer's where there is one."""

    what: str
    value: float
    unit: str
    peer: str = ""
    peer_value: float | None = None
    # Whether more is better: the ratio is above 1 where ours is better.
    more_is_better: bool = True
    # Where the peer is no public package its figure was recorded elsewhere.
    recorded: bool = False

    def shown(self) -> dict[str, Any]:
        ratio = None
        if self.peer_value is not None:
            ratio = self.value / self.peer_value
            ratio = ratio if self.more_is_better else 1 / ratio
        return {
            "what": self.what,
            "nplm": float(self.value),
            "unit": self.unit,
            "peer": self.peer + (" (recorded)" if self.recorded else ""),
            "its figure": None if self.peer_value is None else float(self.peer_value),
            "ratio": ratio,
        }


def best_of(function: Callable[[], object], repeats: int = 5) -> float:
    """Seconds of CPU time of the fastest of several calls."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        seconds.append(time.process_time() - start)
    return min(seconds)


def estimate(*, path: str, n_words: int) -> dict[str, float]:
    """CPU time and peak memory of a fit, in this process alone."""
    X, y = windows(np.load(path), ORDER - 1)
    start = time.process_time()
    KneserNeyLM(n_words=n_words).fit(X, y)
    seconds = time.process_time() - start
    return {"seconds": seconds, "peak_gb": resident("VmHWM") / 1e9}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--repeats", type=int, default=7)
    options.add_argument("--child", help=SUPPRESS)
    arguments = options.parse_args()
    if arguments.child:
        serve(arguments.child, {"estimate": estimate})
        return
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(Path(folder), arguments.repeats)
    shown = [row.shown() for row in rows]
    report("n-gram models, order 5, 14M tokens", shown, arguments.json)


def measure(folder: Path, repeats: int) -> list[Row]:
    corpus = load_wiki()
    train, valid, words = corpus.train, corpus.valid, corpus.words.tolist()
    np.save(folder / "train.npy", train)
    path = str(folder / "train.npy")
    runs = [
        fresh(__file__, "estimate", path=path, n_words=len(words)) for _ in range(2)
    ]
    speed = len(train) / min(run["seconds"] for run in runs)
    peak = min(run["peak_gb"] for run in runs)
    rows = [
        Row("estimate", speed, "tokens/s CPU", "lmplz", LMPLZ_TOKENS_PER_SECOND,
            recorded=True),
        Row("its peak memory", peak, "GB", "lmplz, 0.8 to 1.9", LMPLZ_PEAK_GB,
            False, True),
    ]  # fmt: skip
    model = KneserNeyLM(n_words=len(words)).fit(*windows(train, ORDER - 1))
    X, y = windows(valid, ORDER - 1, history=train)
    X, y = X[:N_SCORED], y[:N_SCORED]
    rows += score(model, X, y, words, folder, repeats)
    rows += binaries(model, words, folder)
    one = best_of(lambda: [model.predict_proba(X[:1]) for _ in range(100)], 9) / 100
    rows.append(Row("predict_proba, one context", one * 1e3, "ms"))
    rows.append(Row("perplexity, validation", model.perplexity(X, y), ""))
    return rows


def score(model, X, y, words, folder: Path, repeats: int) -> list[Row]:
    """log_prob of all windows, and kenlm's score() of the same words, in turn."""
    start = time.process_time()
    BackoffLM.from_trie(model.trie_).build_index()
    hashing = time.process_time() - start
    path = str(folder / "model.arpa")
    start = time.process_time()
    write_arpa(model, path, words)
    writing = time.process_time() - start
    start = time.process_time()
    read_arpa(path)
    reading = time.process_time() - start
    rows = [
        Row("hash the n-grams", hashing, "s CPU"),
        Row("write_arpa", writing, "s CPU"),
        Row("read_arpa", reading, "s CPU"),
    ]
    try:
        import kenlm
    except ImportError:
        ours = best_of(lambda: model.log_prob(X, y), repeats)
        return [*rows, Row("log_prob", len(y) / ours, "windows/s")]
    start = time.process_time()
    other = kenlm.Model(path)
    rows[-1].peer, rows[-1].peer_value = "kenlm", time.process_time() - start
    rows[-1].more_is_better = False
    text = [words[w] for w in y]
    lines = [" ".join(text[i : i + LINE_WORDS]) for i in range(0, len(y), LINE_WORDS)]
    ours, theirs = [], []
    for _ in range(repeats):
        ours.append(best_of(lambda: model.log_prob(X, y), 1))
        theirs.append(
            best_of(lambda: [other.score(s, bos=False, eos=False) for s in lines], 1)
        )
    peer = len(y) / min(theirs)
    rows.append(Row("log_prob", len(y) / min(ours), "windows/s", "kenlm score()", peer))
    for size in BATCHES:
        n = min(len(y), 4000 * size)
        each = best_of(lambda n=n, size=size: in_batches(model, X[:n], y[:n], size))
        what = f"log_prob, {size:,} at a time"
        rows.append(Row(what, n / each, "windows/s", "kenlm score()", peer))
    path = folder / "model.nplm"
    save_binary(model, path, words, bits=8)
    packed, _ = load_binary(path)
    own = best_of(lambda: packed.log_prob(X, y), repeats)
    rows.append(
        Row("log_prob, 8 bits", len(y) / own, "windows/s", "KenLM trie -q 8",
            peer * TRIE_SHARE, recorded=True)
    )  # fmt: skip
    loss = packed.perplexity(X, y) / model.perplexity(X, y) - 1
    rows.append(Row("8 bits raise the perplexity by", 100 * loss, "%"))
    n_bytes = path.stat().st_size / model.n_ngrams_.sum()
    rows.append(Row("8 bits", n_bytes, "bytes an n-gram"))
    names = "its words in Elias-Fano codes", "these of ranks"
    rows += [
        Row(name, own, "bytes an n-gram")
        for name, own in zip(names, elias_fano(packed.trie_))
    ]
    return rows


def elias_fano(trie: Any) -> list[float]:
    """Bytes an n-gram with the words of the trie in Elias-Fano codes, and ranked.

    The words of a range rise; what all ranges before come to is added, so that all of a
    level do (Pibiri and Venturini 2017, 3.1). Ranked, a word is its place among those
    that stand before the next newer word (3.2).
    """
    bits = np.zeros(2)
    starts, newest = trie.start, np.arange(trie.n_words)
    for i, level in enumerate(trie.levels):
        words, _, _, offsets = trie.unpacked(i)
        newer = np.repeat(newest, np.diff(starts))
        pairs = newer * trie.n_words + words
        if i == 0:
            bigrams, ranks = pairs, words
        else:
            ranks = np.searchsorted(bigrams, pairs) - trie.start[newer]
        bits += [rising_bits(words, starts), rising_bits(ranks, starts)]
        bits += level.n * trie.bits
        if offsets is not None:
            bits += level.n * trie.bits + coded_bits(level.n, int(offsets[-1]))
            starts, newest = offsets, words
    return (bits / 8 / trie.n_ngrams.sum()).tolist()


def rising_bits(numbers, starts) -> int:
    last = numbers[starts[1:][np.diff(starts) > 0] - 1]
    return coded_bits(len(numbers), int((last + 1).sum()))


def coded_bits(n: int, most: int) -> int:
    """Bits of n rising numbers up to the largest, without what finds the i-th fast."""
    low = max(0, (most // n).bit_length() - 1)
    return n * (low + 1) + (most >> low) + 1


def in_batches(model, X, y, size: int) -> None:
    for first in range(0, len(y), size):
        rows = slice(first, first + size)
        model.log_prob(X[rows], y[rows])


def binaries(model, words, folder: Path) -> list[Row]:
    rows = []
    for name, options, peer, size in [
        ("binary", {}, "probing", PROBING_MB),
        ("8-bit binary", {"bits": 8}, "trie -q 8 -b 8 -a 22", TRIE_Q8_MB),
    ]:
        path = folder / "model.nplm"
        save_binary(model, path, words, **options)
        megabytes = path.stat().st_size / 1e6
        rows.append(Row(name, megabytes, "MB", f"KenLM {peer}", size, False, True))
        seconds = []
        for _ in range(5):
            start = time.perf_counter()
            load_binary(path)
            seconds.append(time.perf_counter() - start)
        rows.append(Row(f"load the {name}", min(seconds) * 1e3, "ms"))
    return rows


if __name__ == "__main__":
    main()
