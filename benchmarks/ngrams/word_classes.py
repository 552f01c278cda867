"""What does a pass of WordClasses cost, and how good are the classes?

Prints the time of a pass on the Brown corpus (``fetch_brown``), as text and classes
grow.

    python benchmarks/ngrams/word_classes.py --mkcls mkcls-v2/mkcls

instead runs that program (which is in no Python package) and WordClasses, one after the
other, on the first two million tokens of Wiki. Perplexity is that of the class bigrams
on the text clustered, ``exp(H - I)``: H the entropy of its words, I the mutual
information of neighbouring classes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import numpy as np
from numpy.typing import NDArray

from common.process import cpu_seconds
from common.table import parser, report
from nplm import WordClasses
from nplm.datasets import fetch_brown, load_wiki
from nplm.formats import read_classes


def entropy(ids: NDArray[np.int32]) -> float:
    """Entropy of the words, in nats."""
    p = np.unique(ids, return_counts=True)[1] / len(ids)
    return float(-(p * np.log(p)).sum())


def cost(stream: NDArray[np.int32], max_classes: int) -> list[dict[str, Any]]:
    """Mean CPU time of the passes of a short fit, as text and classes grow."""
    rows = []
    for n_tokens in (100_000, 200_000, 400_000, 800_000):
        ids = stream[:n_tokens]
        n_words = len(np.unique(ids))
        n_bigrams = len(np.unique(ids[:-1].astype(np.int64) << 32 | ids[1:]))
        for n_classes in (50, 100, 200, 500, 1000, 2000):
            if n_classes > max_classes:
                continue
            model = WordClasses(n_classes, max_iter=20, random_state=0)
            a_pass = cpu_seconds(model.fit, ids) / model.n_iter_
            rows.append(
                {
                    "tokens": n_tokens,
                    "|V|": n_words,
                    "distinct bigrams": n_bigrams,
                    "classes": n_classes,
                    "ms a pass": 1e3 * a_pass,
                    "ns a bigram and class": 1e9 * a_pass / (n_bigrams * n_classes),
                }
            )
    return rows


def beside_mkcls(program: Path, sizes: list[int]) -> list[dict[str, Any]]:
    """Classes of the same text, whose lines end at full stops, by both programs."""
    corpus = load_wiki()
    words = [str(word).replace(" ", "_") for word in corpus.words]
    ids = corpus.train[:2_000_000]
    after = np.flatnonzero(ids[:-1] == words.index(".")) + 1
    boundary = len(words)
    stream = np.concatenate([[boundary], np.insert(ids, after, boundary), [boundary]])
    stream = stream.astype(np.int32)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        text, found = Path(folder) / "text", Path(folder) / "classes"
        text.write_text(
            "\n".join(" ".join(words[i] for i in line) for line in np.split(ids, after))
        )
        for n_classes in sizes:
            made = {}
            for max_iter in (80, 180):
                model = WordClasses(
                    n_classes, max_iter=max_iter, boundary=boundary, random_state=0
                )
                seconds = cpu_seconds(model.fit, stream)
                made[f"nplm, max_iter={max_iter}"] = seconds, model.labels_
            before = os.times()
            command = [str(program), f"-c{n_classes}", "-n1", f"-p{text}", f"-V{found}"]
            subprocess.run([*command, "opt"], check=True, stdout=subprocess.DEVNULL)
            spent = np.subtract(os.times(), before)
            spelled, numbers = read_classes(found)
            label = dict(zip(spelled, numbers.tolist(), strict=True))
            of_marks = max(label.values()) + 1
            labels = [*(label.get(word, of_marks) for word in words), of_marks]
            made["mkcls"] = float(spent[2] + spent[3]), np.array(labels)
            for name, (seconds, labels) in made.items():
                nats = information(stream, labels)
                rows.append({
                    "program": name, "tokens": len(stream), "classes": n_classes,
                    "CPU s": seconds, "MI, nats": f"{nats:.4f}",
                    "perplexity": f"{np.exp(entropy(stream) - nats):.2f}",
                })  # fmt: skip
    return rows


def information(ids: NDArray[np.int32], labels: NDArray[Any]) -> float:
    """Mutual information of neighbouring classes, in nats."""
    n = int(labels.max()) + 1
    pairs = labels[ids[:-1]].astype(np.int64) * n + labels[ids[1:]]
    p = np.bincount(pairs, minlength=n * n).reshape(n, n) / len(pairs)
    apart = np.outer(p.sum(axis=1), p.sum(axis=0))
    return float((p[p > 0] * np.log(p[p > 0] / apart[p > 0])).sum())


def main() -> None:
    options = parser(__doc__)
    options.add_argument(
        "--max-classes", type=int, default=2000, help="leave out more classes than this"
    )
    options.add_argument("--mkcls", type=Path, help="the program, to run beside it")
    options.add_argument("--classes", type=int, nargs="+", default=[200, 500])
    given = options.parse_args()
    if given.mkcls:
        rows = beside_mkcls(given.mkcls, given.classes)
        report("Word classes on Wiki", rows, given.json)
        return
    report("Cost of a pass", cost(fetch_brown().train, given.max_classes), given.json)


if __name__ == "__main__":
    main()
