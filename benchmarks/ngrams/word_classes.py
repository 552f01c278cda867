"""How good are the classes of WordClasses, how fast, and what does a pass cost?

The Brown corpus (the paper's section 4; ``fetch_brown``). Perplexity is that of
the class bigrams on the text clustered, ``exp(H - I)``: H the entropy of its
words, I the mutual information of neighbouring classes. Rows marked "recorded"
were measured on another day, on a machine like this one: mkcls (exchange with
threshold accepting), brown-cluster (Liang 2005) and SRILM's ngram-class.

    python benchmarks/ngrams/word_classes.py --mkcls mkcls-v2/mkcls

instead runs that program (which is in no Python package) and WordClasses, one after the
other, on the first two million tokens of Wiki.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import numpy as np
from numpy.typing import NDArray

from common.table import named, parser, report
from nplm import WordClasses
from nplm.datasets import fetch_brown, load_wiki
from nplm.formats import read_classes

# Tokens, classes, program, CPU seconds, mutual information (or perplexity).
RECORDED = [
    (100_000, 100, "mkcls", 4.4, None, 193.9),
    (100_000, 500, "mkcls", 20.5, None, 92.2),
    (100_000, 500, "brown-cluster", 60.6, None, 96.0),
    (800_000, 150, "mkcls", 26.2, 1.0571, 271.5),
    (800_000, 150, "brown-cluster", 20.7, 1.0168, 282.7),
    (800_000, 200, "mkcls", 45.8, 1.1143, 256.4),
    (800_000, 200, "brown-cluster", 41.8, 1.0742, 266.9),
    (800_000, 500, "mkcls", 208.0, 1.3417, 204.28),
    (800_000, 500, "brown-cluster", 204.0, 1.3103, 210.78),
    (800_000, 500, "ngram-class", 1149.0, 1.3059, 211.72),
]
RUNS = [
    (100_000, 100, 80),
    (100_000, 500, 80),
    (800_000, 150, 80),
    (800_000, 200, 80),
    (800_000, 500, 0),
    (800_000, 500, 20),
    (800_000, 500, 80),
    (800_000, 500, 300),
    (800_000, 1000, 80),
    (800_000, 2000, 80),
]


def entropy(ids: NDArray[np.int32]) -> float:
    """Entropy of the words, in nats."""
    p = np.unique(ids, return_counts=True)[1] / len(ids)
    return float(-(p * np.log(p)).sum())


def row(
    n_tokens: int,
    n_classes: int,
    program: str,
    seconds: float,
    information: float | None,
    perplexity: float,
) -> dict[str, Any]:
    return {
        "program": program,
        "tokens": n_tokens,
        "classes": n_classes,
        "CPU s": seconds,
        "MI, nats": None if information is None else f"{information:.4f}",
        "perplexity": f"{perplexity:.2f}",
    }


def fit(ids: NDArray[np.int32], n_classes: int, max_iter: int) -> tuple[Any, float]:
    started = time.process_time()
    model = WordClasses(n_classes, max_iter=max_iter, random_state=0).fit(ids)
    return model, time.process_time() - started


def quality(stream: NDArray[np.int32], max_classes: int) -> list[dict[str, Any]]:
    rows = []
    for n_tokens, n_classes, max_iter in RUNS:
        if n_classes > max_classes:
            continue
        ids = stream[:n_tokens]
        model, seconds = fit(ids, n_classes, max_iter)
        information = model.mutual_information_
        perplexity = float(np.exp(entropy(ids) - information))
        name = f"nplm, max_iter={max_iter}"
        rows.append(row(n_tokens, n_classes, name, seconds, information, perplexity))
    rows += [row(t, c, f"{name} (recorded)", *rest) for t, c, name, *rest in RECORDED]
    return sorted(rows, key=lambda r: (r["tokens"], r["classes"]))


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
            model, seconds = fit(ids, n_classes, 20)
            a_pass = seconds / model.n_iter_
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
                started = time.process_time()
                model.fit(stream)
                seconds = time.process_time() - started
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
                perplexity = float(np.exp(entropy(stream) - nats))
                own = len(stream), n_classes, name, seconds, nats, perplexity
                rows.append(row(*own))
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
    stream = fetch_brown().train
    rows = quality(stream, given.max_classes)
    report("Word classes on Brown", rows, given.json)
    costs = cost(stream, given.max_classes)
    report("Cost of a pass", costs, named(given.json, "cost"))


if __name__ == "__main__":
    main()
