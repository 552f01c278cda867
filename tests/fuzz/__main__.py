"""Read damaged files of every kind: ``python -m tests.fuzz --minutes 60``.

The files of failed cases are kept in a folder.
"""

import argparse
import collections
import itertools
import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.fuzz.pool import Reader, case, put
from tests.fuzz.seeds import kinds


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--kinds", nargs="+", choices=kinds(), default=kinds())
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--first", type=int, default=None, help="number of a case")
    parser.add_argument("--keep", type=Path, default=Path("fuzzed"))
    options = parser.parse_args()
    first = secrets.randbelow(10**12) if options.first is None else options.first
    print(f"cases from {first} on")
    deadline = time.monotonic() + 60 * options.minutes
    work = zip(itertools.cycle(options.kinds), itertools.count(first))
    counts = collections.Counter()
    slowest, largest = collections.Counter(), collections.Counter()

    def run(_):
        with Reader() as reader:
            while time.monotonic() < deadline:
                kind, number = next(work)
                files = case(kind, number)
                report = reader.read(kind, files)
                counts[kind, report["outcome"]] += 1
                seconds, memory = report.get("seconds", 0), report.get("memory", 0)
                slowest[kind] = max(slowest[kind], seconds)
                largest[kind] = max(largest[kind], memory)
                if report["outcome"] == "failed":
                    _keep(options.keep / kind / str(number), files, report["why"])

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(run, range(options.jobs)))
    for kind in options.kinds:
        outcomes = ", ".join(
            f"{counts[kind, name]} {name}" for name in ("read", "refused", "failed")
        )
        print(
            f"{kind:20} {outcomes}; at most {slowest[kind]:.2f} s and "
            f"{largest[kind] / 1e6:.1f} MB per file"
        )
    failed = sum(n for (_, name), n in counts.items() if name == "failed")
    raise SystemExit(f"{failed} cases failed: see {options.keep}" if failed else 0)


def _keep(folder, files, why):
    print(f"{folder}: {why.strip().splitlines()[-1]}", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        put(folder / name, data)
    folder.with_suffix(".txt").write_text(why)


if __name__ == "__main__":
    main()
