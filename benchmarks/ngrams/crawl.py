"""A filter of a crawl, beside KenLM.

    python benchmarks/ngrams/crawl.py TEXT [--json FILE]

``nplm score --per-token`` and a loop over the ``score`` of the ``kenlm`` module score
the same lines with the same 5-gram model, estimated from the lines before them. CPU
time of the process, without that of its start, which is measured with no line to score.
KenLM reads an ARPA file as it starts, so the model is small beside the text.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

from common.table import parser, report

BY_KENLM = """
import sys
import kenlm

model = kenlm.Model(sys.argv[1])
for line in sys.stdin:
    line = line.rstrip("\\n")
    print(f"{model.score(line) / (len(line.split()) + 1):.6f}")
"""


def cpu_seconds(command: list[str], text: Path) -> tuple[float, list[float]]:
    """CPU time of a process that reads a text, and the numbers that it prints."""
    before = os.times()
    with open(text) as given:
        done = subprocess.run(
            command, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            check=True,
        )  # fmt: skip
    after = os.times()
    spent = after.children_user + after.children_system
    spent -= before.children_user + before.children_system
    return spent, [float(number) for number in done.stdout.split()]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("text", type=Path, help="plain text, a document a line")
    options.add_argument("--train", type=int, default=5_000, help="lines of the model")
    options.add_argument("--lines", type=int, default=40_000, help="lines to score")
    options.add_argument("--repeats", type=int, default=3)
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with open(arguments.text, encoding="utf-8") as file:
            lines = (line for line in file if line.strip())
            for part, n in ("train", arguments.train), ("crawl", arguments.lines):
                (folder / part).write_text("".join(islice(lines, n)), "utf-8")
        (folder / "nothing").touch()
        nplm = [sys.executable, "-m", "nplm"]
        model, arpa = str(folder / "model"), str(folder / "model.arpa")
        train = ["train", str(folder / "train"), "--tokens", "blanks", "--order", "5"]
        options = ["--memory", "500M", "--min-count", "2", "-o", model]
        subprocess.run([*nplm, *train, *options], check=True, capture_output=True)
        subprocess.run([*nplm, "convert", model, arpa], check=True, capture_output=True)
        commands = {
            "nplm score": [*nplm, "score", "--per-token", model],
            "kenlm": [sys.executable, "-c", BY_KENLM, arpa],
        }
        seconds: dict[tuple[str, str], list[float]] = {}
        numbers = {}
        for _ in range(arguments.repeats):
            for command, own in commands.items():
                for text in ("nothing", "crawl"):
                    spent, numbers[command] = cpu_seconds(own, folder / text)
                    seconds.setdefault((command, text), []).append(spent)
        n_words = len((folder / "crawl").read_text("utf-8").split())
    assert len(numbers["kenlm"]) == len(numbers["nplm score"])
    differences = (abs(a - b) for a, b in zip(*numbers.values()))
    least = {
        command: min(seconds[command, "crawl"]) - min(seconds[command, "nothing"])
        for command in commands
    }
    rows = [
        {
            "command": command,
            "seconds": own,
            "words a second": n_words / own,
            "times kenlm": own / least["kenlm"],
        }
        for command, own in least.items()
    ]
    n = len(numbers["kenlm"])
    title = f"{n:,} lines of {n_words:,} words; scores within {max(differences):.6f}"
    report(title, rows, arguments.json)


if __name__ == "__main__":
    main()
