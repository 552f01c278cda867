"""Text to model in bounded memory, beside lmplz.

    python benchmarks/ngrams/estimation.py --tokens 50M --memory 500M \\
        --from wiki16m.txt.xz --rows ROWS --folder DISK --kenlm kenlm/build/bin --docs

One command makes a text of so many words (another, and then again with a part of its
words drawn anew from all of them, so that n-grams grow as in more text), and estimates
models of it in processes of their own: nplm a mapped file with its hash table and an
ARPA file, lmplz an ARPA file with as much memory, build_binary KenLM's probing table of
that. Each is a row, a file in the folder ``--rows``, with the machine and its load; a
row that is there is not measured again, so a long run can be broken off. ``--docs``
writes docs/measured/estimation.inc of all rows in that folder. KenLM is in no Python
package: ``--kenlm`` is the folder of its programs; without it its rows are left out.
Peak memory is that of the process, with what it has of mapped files.
"""

from __future__ import annotations

import gzip
import json
import lzma
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import numpy as np

from common.page import cpus, list_table, loads, table
from common.process import fresh, resident, serve
from common.table import Rows, kept, parser, report

OPENERS = {".xz": lzma.open, ".gz": gzip.open}
PAGE = Path(__file__).parents[2] / "docs" / "measured" / "estimation.inc"
MILLION = 1_000_000
CHUNK = 1 << 20
WAYS = {
    "nplm": "nplm, to a mapped file",
    "nplm-arpa": "nplm, to ARPA",
    "lmplz": "lmplz, to ARPA",
    "probing": "build_binary of it",
}


def make_text(path: Path, source: Path, n_words: int, noise: float) -> None:
    """Write a text of so many words; the first of them are the source's."""
    with OPENERS.get(source.suffix, open)(source, "rb") as file:
        lines = [line.split() for line in file.read().split(b"\n") if line.strip()]
    number: dict[bytes, int] = {}
    found = [number.setdefault(word, len(number)) for line in lines for word in line]
    ids = np.array(found, dtype=np.int32)
    ends = np.zeros(len(ids), dtype=bool)
    ends[np.cumsum([len(line) for line in lines]) - 1] = True
    # Words with what stands behind them: those at the end of a line come second.
    spelled = [word + b" " for word in number] + [word + b"\n" for word in number]
    words = np.array(spelled, dtype=object)
    rng, written = np.random.default_rng(0), 0
    with open(path, "wb") as file:
        while written < n_words:
            for first in range(0, len(ids), CHUNK):
                own = ids[first : first + CHUNK]
                if written >= len(ids):
                    anew = ids[rng.integers(len(ids), size=len(own))]
                    own = np.where(rng.random(len(own)) < noise, anew, own)
                own = own + len(number) * ends[first : first + CHUNK]
                own = own[: n_words - written]
                file.write(b"".join(words[own].tolist()))
                written += len(own)


def by_nplm(
    text: str, model: str, order: int, memory: str, threads: int, folder: str
) -> dict[str, Any]:
    """Estimate, in this process: its times by stage, and its peak."""
    from nplm import KneserNeyLM
    from nplm.formats import estimate_arpa, estimate_binary

    stages: dict[str, float] = {}
    now = ["beginning", time.process_time()]

    def progress(stage: str, _done: int, _total: int) -> None:
        if stage != now[0]:
            end()
            now[:] = [stage, time.process_time()]

    def end() -> None:
        seconds = time.process_time() - now[1]
        stages[now[0]] = round(stages.get(now[0], 0) + seconds, 2)

    base, start = resident("VmHWM"), time.perf_counter()
    estimate = estimate_arpa if model.endswith(".arpa") else estimate_binary
    estimated = estimate(
        KneserNeyLM(order), [text], model, memory=memory, n_jobs=threads,
        folder=folder, progress=progress,
    )  # fmt: skip
    end()
    return {
        "wall": time.perf_counter() - start,
        "cpu": time.process_time(),
        "peak": resident("VmHWM"),
        "base": base,
        "stages": stages,
        "words": estimated.n_tokens,
        "vocabulary": estimated.n_words,
        "ngrams": int(estimated.n_ngrams.sum()),
    }


def watched(*command: str, text: Path | None = None) -> dict[str, Any]:
    """Run another program: its times, and its peak as it is seen now and then."""
    with open(text or os.devnull) as file, tempfile.TemporaryFile() as told:
        start, before = time.perf_counter(), os.times()
        process = subprocess.Popen(command, stdin=file, stderr=told)
        peak = 0.0
        status = Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            seen = [x for x in status.read_text().splitlines() if "VmHWM" in x]
            peak = max([peak, *(1024.0 * int(x.split()[1]) for x in seen)])
            time.sleep(0.05)
        after = os.times()
        if process.returncode:
            told.seek(0)
            raise SystemExit(told.read().decode(errors="replace"))
    cpu = after.children_user - before.children_user
    cpu += after.children_system - before.children_system
    return {"wall": time.perf_counter() - start, "cpu": cpu, "peak": peak}


def measure(given: Any, folder: Path, text: Path) -> dict[str, Callable[[], Any]]:
    """How each row is measured: a function that returns what it found."""

    def nplm(name: str) -> dict[str, Any]:
        path = folder / name
        found = fresh(
            __file__, "by_nplm", text=str(text), model=str(path), order=given.order,
            memory=given.memory, threads=given.threads, folder=str(folder),
        )  # fmt: skip
        return done(found, path, remove=True)

    def lmplz() -> dict[str, Any]:
        path = folder / "lmplz.arpa"
        found = watched(
            str(given.kenlm / "lmplz"), "-o", str(given.order), "-S", given.memory,
            "-T", str(folder), "--arpa", str(path), "--discount_fallback", text=text,
        )  # fmt: skip
        return done(found, path)

    def probing() -> dict[str, Any]:
        if not (folder / "lmplz.arpa").exists():
            lmplz()
        path = folder / "model.probing"
        found = watched(
            str(given.kenlm / "build_binary"), "-T", str(folder), "probing",
            str(folder / "lmplz.arpa"), str(path),
        )  # fmt: skip
        return done(found, path, remove=True)

    def done(found: dict[str, Any], path: Path, remove: bool = False) -> dict[str, Any]:
        found = {
            "tokens": given.tokens, "memory": given.memory, "order": given.order,
            "threads": given.threads, "file": path.stat().st_size, **found,
        }  # fmt: skip
        if remove:
            path.unlink()
        return found

    ways = {"nplm": lambda: nplm("model.nplm"), "nplm-arpa": lambda: nplm("model.arpa")}
    return ways | ({"lmplz": lmplz, "probing": probing} if given.kenlm else {})


def number_of(text: str) -> int:
    """Read a number of words such as 50M."""
    return round(float(text.removesuffix("M")) * (MILLION if text[-1] == "M" else 1))


COLUMNS = [
    ("", "{way}"), ("million words", "{millions:,g}"), ("order", "{order}"),
    ("allowed", "{allowed}"), ("CPU s", "{cpu:,.1f}"),
    ("words a CPU second", "{speed:,.0f}"), ("peak MB", "{peak MB:,.0f}"),
    ("file MB", "{file MB:,.0f}"),
]  # fmt: skip


def page(rows: dict[str, dict[str, Any]]) -> str:
    """Make the tables of docs/measured/estimation.rst."""
    shown = []
    for name, row in sorted(rows.items(), key=lambda item: _place(*item)):
        n_words = number_of(row["tokens"])
        shown.append(row | {
            "way": WAYS[way_of(name)], "millions": n_words / MILLION,
            "allowed": row["memory"] if way_of(name) != "probing" else "",
            "speed": n_words / row["cpu"], "peak MB": row["peak"] / 1e6,
            "file MB": row["file"] / 1e6,
        })  # fmt: skip
    texts = sorted(
        {
            (row["words"], row["vocabulary"], row["ngrams"], row["order"])
            for row in rows.values()
            if "words" in row
        }
    )
    told = "\n".join(
        f"* {words / MILLION:,.1f} million words, {vocabulary:,} of them different: "
        f"{ngrams / MILLION:,.1f} million n-grams of order {order} and below"
        for words, vocabulary, ngrams, order in texts
    )
    mapped = {name: row for name, row in rows.items() if way_of(name) == "nplm"}
    name, largest = max(mapped.items(), key=lambda item: number_of(item[1]["tokens"]))
    stages = [[stage, f"{s:,.1f}"] for stage, s in largest["stages"].items() if s]
    runs = [run for row in rows.values() for run in row["machines"]]
    threads = max(row["threads"] for row in rows.values())
    where = (
        f"An {cpus(runs)}, {max(run['cores'] for run in runs)} cores, of which "
        f"nplm used {threads}; the load, this included, was {loads(runs)}."
    )
    return "\n\n".join(
        [
            told,
            table("", COLUMNS, shown),
            where,
            list_table(
                f"{WAYS[way_of(name)]}, {largest['tokens']} words, order "
                f"{largest['order']}, by stage",
                ["stage", "CPU s"],
                stages,
            ),
        ]
    )


def way_of(name: str) -> str:
    return name.split(" ", 1)[0]


def _place(name: str, row: dict[str, Any]) -> tuple[int, int, str, int]:
    way = list(WAYS).index(way_of(name))
    return number_of(row["tokens"]), row["order"], row["memory"], way


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--tokens", help="words of the text: 50M")
    options.add_argument("--memory", default="1G")
    options.add_argument("--from", dest="source", type=Path, help="the text to grow")
    options.add_argument("--noise", type=float, default=0.2, help="words drawn anew")
    options.add_argument("--order", type=int, default=5)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--ways", nargs="*", choices=list(WAYS), default=list(WAYS))
    options.add_argument("--rows", type=Path, help="folder of the rows")
    options.add_argument("--folder", type=Path, help="for texts, models, what is kept")
    options.add_argument("--kenlm", type=Path, help="folder of lmplz and build_binary")
    options.add_argument("--docs", action="store_true", help="write the page's tables")
    options.add_argument("--child")
    given = options.parse_args()
    if given.child:
        serve(given.child, {"by_nplm": by_nplm})
        return
    if given.rows is None:
        options.error("--rows: a folder for the rows")
    given.rows.mkdir(exist_ok=True)
    if given.tokens is not None:
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            measure_all(given, Path(folder))
    rows = {
        path.stem.replace("_", " "): json.loads(path.read_text())
        for path in sorted(given.rows.glob("*.json"))
    }
    names = ("cpu", "wall", "peak", "file")
    report(
        "Estimation, order, memory",
        [{"row": name, **{n: row[n] for n in names}} for name, row in rows.items()],
        given.json,
    )
    if given.docs:
        PAGE.write_text(page(rows))


def measure_all(given: Any, folder: Path) -> Rows:
    """Measure the rows of one text and one limit that are not there."""
    text = folder / "text"
    make_text(text, given.source, number_of(given.tokens), given.noise)
    ways = measure(given, folder, text)
    names = {way: f"{way} {given.tokens} {given.memory} {given.order}" for way in ways}
    own = [way for way in given.ways if way in ways]
    return [kept(given.rows, names[way], ways[way]) for way in own]


if __name__ == "__main__":
    main()
