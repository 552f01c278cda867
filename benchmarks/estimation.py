"""Text to model in bounded memory, beside lmplz: python benchmarks/estimation.py.

    python benchmarks/estimation.py text --text TEXT --from wiki16m.txt.xz --words 50
    python benchmarks/estimation.py nplm lmplz --text TEXT --memory 1G --kenlm FOLDER

``text`` makes a text of so many million words: another, and then again with a part of
its words drawn anew from all of them, so that n-grams grow as in more text. ``nplm``
and ``lmplz`` estimate a model of it in processes of their own, nplm into a mapped file
with its hash table, lmplz into an ARPA file, which ``binary`` makes KenLM's probing
table of. KenLM is in no Python package: ``--kenlm`` is the folder of its programs. Peak
memory is that of the process, with what is mapped of files.
"""

from __future__ import annotations

import gzip
import json
import lzma
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common.process import fresh, resident, serve
from common.table import parser, report

OPENERS = {".xz": lzma.open, ".gz": gzip.open}


def make_text(path: Path, source: Path, n_words: int, noise: float) -> None:
    """Write a text of so many words; the first of them are the source's."""
    with OPENERS.get(source.suffix, open)(source, "rt", encoding="utf-8") as file:
        lines = [line.split() for line in file if line.strip()]
    words = [word for line in lines for word in line]
    rng, written = random.Random(0), 0
    with open(path, "w", encoding="utf-8") as file:
        again = False
        while written < n_words:
            for line in lines:
                own = line
                if again:
                    own = [
                        words[int(rng.random() * len(words))]
                        if rng.random() < noise
                        else word
                        for word in line
                    ]
                file.write(" ".join(own) + "\n")
                written += len(own)
                if written >= n_words:
                    break
            again = True


def by_nplm(
    text: str, model: str, order: int, memory: str, threads: int, folder: str
) -> dict[str, Any]:
    """Estimate, in this process: its times by stage, and its peak."""
    from nplm import KneserNeyLM
    from nplm.formats import estimate_binary

    stages: dict[str, float] = {}
    now = ["beginning", time.process_time()]

    def progress(stage: str, _done: int, _total: int) -> None:
        if stage != now[0]:
            end()
            now[:] = [stage, time.process_time()]

    def end() -> None:
        seconds = time.process_time() - now[1]
        stages[now[0]] = round(stages.get(now[0], 0) + seconds, 2)

    start = time.perf_counter()
    estimated = estimate_binary(
        KneserNeyLM(order), [text], model, memory=memory, n_jobs=threads,
        folder=folder, progress=progress,
    )  # fmt: skip
    end()
    return {
        "wall": time.perf_counter() - start,
        "cpu": time.process_time(),
        "peak": resident("VmHWM"),
        "stages": stages,
        "words": estimated.n_tokens,
        "vocabulary": estimated.n_words,
        "ngrams": int(estimated.n_ngrams.sum()),
    }


def watched(*command: str, text: Path | None = None) -> dict[str, Any]:
    """Run another program: its times, and its peak as it is seen now and then."""
    with open(text or os.devnull) as file:
        start, before = time.perf_counter(), os.times()
        process = subprocess.Popen(command, stdin=file, stderr=subprocess.PIPE)
        peak = 0.0
        status = Path(f"/proc/{process.pid}/status")
        os.set_blocking(process.stderr.fileno(), False)
        told = b""
        while process.poll() is None:
            told += process.stderr.read() or b""
            seen = [x for x in status.read_text().splitlines() if "VmHWM" in x]
            peak = max([peak, *(1024.0 * int(x.split()[1]) for x in seen)])
            time.sleep(0.05)
        after = os.times()
    if process.returncode:
        raise SystemExit(told.decode(errors="replace"))
    cpu = after.children_user - before.children_user
    cpu += after.children_system - before.children_system
    return {"wall": time.perf_counter() - start, "cpu": cpu, "peak": peak}


def row(what: str, found: dict[str, Any], n_words: int, path: Path) -> dict[str, Any]:
    return {
        "what": what,
        "million words": n_words / 1e6,
        "CPU s": found["cpu"],
        "wall s": found["wall"],
        "words a CPU second": n_words / found["cpu"],
        "peak MB": found["peak"] / 1e6,
        "file MB": path.stat().st_size / 1e6,
        "load": os.getloadavg()[0],
        "stages": found.get("stages"),
    }


def count_words(text: Path) -> int:
    with open(text, "rb") as file:
        return sum(len(line.split()) for line in file)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("what", nargs="*", choices=[*WORK, []])
    options.add_argument("--text", type=Path, required="--child" not in sys.argv)
    options.add_argument("--from", dest="source", type=Path, help="the text to grow")
    options.add_argument("--words", type=float, default=50, help="millions of them")
    options.add_argument("--noise", type=float, default=0.2, help="words drawn anew")
    options.add_argument("--order", type=int, default=5)
    options.add_argument("--memory", default="1G")
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--folder", type=Path, help="for the models and what is kept")
    options.add_argument("--kenlm", type=Path, help="folder of lmplz and build_binary")
    options.add_argument("--child")
    given = options.parse_args()
    if given.child:
        serve(given.child, {"by_nplm": by_nplm})
        return
    if "text" in given.what:
        make_text(given.text, given.source, round(given.words * 1e6), given.noise)
    rows = []
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        for what in ("nplm", "lmplz"):
            if what in given.what:
                rows += WORK[what](given, Path(folder))
    if rows:
        report(f"Estimation, order {given.order}, {given.memory}", rows, given.json)


def run_nplm(given: Any, folder: Path) -> list[dict[str, Any]]:
    path = folder / "model.nplm"
    found = fresh(
        __file__, "by_nplm", text=str(given.text), model=str(path), order=given.order,
        memory=given.memory, threads=given.threads, folder=str(folder),
    )  # fmt: skip
    print(json.dumps(found))
    return [row("nplm, with its hash table", found, found["words"], path)]


def run_lmplz(given: Any, folder: Path) -> list[dict[str, Any]]:
    n_words, arpa = count_words(given.text), folder / "model.arpa"
    found = watched(
        str(given.kenlm / "lmplz"), "-o", str(given.order), "-S", given.memory,
        "-T", str(folder), "--arpa", str(arpa), "--discount_fallback", text=given.text,
    )  # fmt: skip
    rows = [row("lmplz, to ARPA", found, n_words, arpa)]
    if "binary" in given.what:
        path = folder / "model.probing"
        found = watched(
            str(given.kenlm / "build_binary"), "-T", str(folder), "probing", str(arpa),
            str(path),
        )  # fmt: skip
        rows.append(row("build_binary probing of it", found, n_words, path))
    return rows


WORK = {"text": None, "nplm": run_nplm, "lmplz": run_lmplz, "binary": None}


if __name__ == "__main__":
    main()
