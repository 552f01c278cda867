"""How fast are outputs other than the exact softmax?

MLP9's shape (section 4), one thread, in mini-batches of 128 where K is not named. A row
is one way to train:

learn: Brown (section 4) for --epochs, or once through the first --windows of the Wiki
protocol with --words words. The time is the processor's and of training alone, the
perplexity between parts of the training exact, of some of the validation windows.

speed: examples a second that a network of 17,907, 100,000 and a million words trains on
and scores, on random windows, and the memory that a fresh process has for it at most.

sums: how far from 1 the exponentials of all words' scores sum to, on Brown, by epoch:
what log_prob(normalize=False) of a network trained by nce leaves out.

page: nothing is measured.

--rows is the folder that keeps what was measured, a file a row. A row that is there is
not measured again. So a page may come of several runs: each has the machine's load with
it, and the page tells it.
--docs writes the tables and the picture of docs/measured of all the rows there are.

    python benchmarks/large_vocabularies/outputs.py learn --rows FOLDER \\
        --ways "exact, K = 1"
    python benchmarks/large_vocabularies/outputs.py page --rows FOLDER \\
        --docs docs/measured
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import numpy as np

from common.networks import NETWORKS, Windows, random_windows
from common.process import cpu_seconds, fresh, resident, serve
from common.table import kept, parser, report
from large_vocabularies.outputs_page import draw, learnt, summed, tables
from large_vocabularies.texts import Text, brown, classes_of, of_wiki
from nplm import NCE, NeuralLM, Tree, word_tree

BATCH = 128
BINARY: dict[str, Any] = {"tree": "huffman", "n_branches": 2}
WAYS: dict[str, dict[str, Any]] = {
    "exact, K = 1": {"batch_size": 1},
    "exact": {},
    "importance, 128 words": {"loss": "importance", "n_noise": 128},
    "importance, 512 words": {"loss": "importance", "n_noise": 512},
    "nce, 512 words": {"loss": "nce", "n_noise": 512},
    "classes of WordClasses": {"output": "classes", "groups": "found"},
    "classes by frequency": {"output": "classes"},
    "classes at random": {"output": "classes", "groups": "random"},
    "tree of WordClasses": {"output": "tree", "n_branches": 2, "groups": "found"},
    "tree by default": {"output": "tree", "n_branches": 2},
    "Huffman's tree": {"output": "tree"} | BINARY,
}
# Only those of which the speed does not depend on what is learned.
TIMED: dict[str, dict[str, Any]] = {
    "exact, K = 1": WAYS["exact, K = 1"],
    "exact": WAYS["exact"],
    "importance, 512 words": WAYS["importance, 512 words"],
    "nce, 512 words": WAYS["nce, 512 words"],
    "classes, K = 1": {"output": "classes", "batch_size": 1},
    "classes": {"output": "classes"},
    "tree, K = 1": {"output": "tree", "batch_size": 1} | BINARY,
    "tree": {"output": "tree"} | BINARY,
}
# Ways whose sums of exponentials are compared.
SUMMED: dict[str, dict[str, Any]] = {
    "nce, 128 words": {"loss": "nce", "n_noise": 128},
    "nce, 512 words": WAYS["nce, 512 words"],
    "importance, 512 words": WAYS["importance, 512 words"],
}
PARTS = {"brown": 200_000, "wiki": 100_000}  # windows between two perplexities
SIZES = [17_907, 100_000, 1_000_000]
BLOCK = 12_800  # windows of a call that scores
MEGA = 1e6


# -- perplexity against time -------------------------------------------------------


def estimator(n_words: int, settings: dict[str, Any]) -> NeuralLM:
    shape = replace(NETWORKS["MLP9"], n_words=n_words)
    return shape.estimator(**{"batch_size": BATCH} | settings)


def grouped(way: str, text: Text, folder: Path) -> tuple[dict[str, Any], float]:
    """The settings of a way, and the CPU seconds of grouping the words for it."""
    settings = dict(WAYS[way])
    groups, seconds = settings.pop("groups", None), 0.0
    if groups == "found":
        labels, seconds = classes_of(text, folder)
    elif groups == "random":
        n = round(text.n_words**0.5)
        labels = np.random.default_rng(0).integers(0, n, text.n_words)
    if groups and settings["output"] == "classes":
        settings["classes"] = labels
    elif groups:
        started = time.process_time()
        settings["tree"] = word_tree(text.tokens, labels)
        seconds += time.process_time() - started
    return settings, seconds


def learn(way: str, text: Text, folder: Path, epochs: int) -> dict[str, Any]:
    """Train, and note the perplexity now and then."""
    settings, grouping = grouped(way, text, folder)
    lm, (X, y) = estimator(text.n_words, settings), text.train
    started = time.process_time()
    trainer = lm.trainer(X, y)
    if isinstance(lm.output, Tree) and lm.output.tree is None:
        grouping = time.process_time() - started  # the default tree is made now
    seen, seconds, points = 0, 0.0, list[list[float]]()
    for epoch in range(epochs):
        order = np.random.default_rng(epoch).permutation(len(y))
        for start in range(0, len(y), PARTS[text.name]):
            part = order[start : start + PARTS[text.name]]
            seconds += cpu_seconds(trainer.train, part)
            seen += len(part)
            points.append([seen, seconds, trainer.keep().perplexity(*text.watched)])
            print(way, *points[-1], file=sys.stderr, flush=True)
    return {
        "corpus": text.name, "words": text.n_words, "windows": len(y), "way": way,
        "grouping": grouping, "seen": seen, "seconds": seconds, "points": points,
    }  # fmt: skip


# -- speed and memory --------------------------------------------------------------


def rate(work: Callable[[int], Any], least: int, seconds: float) -> float:
    """Examples a second of CPU time, in whole mini-batches: more, until it is long."""
    n = least
    while True:
        started = time.process_time()
        work(n)
        took = time.process_time() - started
        if took > seconds:
            return n / took
        n = int(n / least * min(16.0, 1.5 * seconds / max(took, 1e-4)) + 1) * least


def since_now() -> float:
    """Memory of this process; its maximum begins again from here."""
    Path("/proc/self/clear_refs").write_text("5")
    return resident("VmRSS")


def training(lm: NeuralLM, data: Windows, seconds: float) -> dict[str, float]:
    """Examples a second, and memory; leaves the model as it is then."""
    rows = np.random.default_rng(0).permutation(len(data[1]))
    bare = since_now()
    trainer = lm.trainer(*data)
    work = lambda n: trainer.train(np.resize(rows, n))  # noqa: E731
    made = {"trains": rate(work, lm.batch_size, seconds)}
    made["training MB"] = (resident("VmHWM") - bare) / MEGA
    trainer.keep()
    return made


def scoring(lm: NeuralLM, data: Windows, seconds: float) -> dict[str, float]:
    """Examples a second, and memory beside the model's."""
    X, y = data
    only = {"normalize": False} if type(lm.loss) is NCE else {}

    def score(n: int) -> None:
        for start in range(0, n, BLOCK):
            rows = slice(0, min(BLOCK, n - start))
            lm.log_prob(X[rows], y[rows], **only)

    score(1)  # an output may have things to prepare, once
    bare = since_now()
    made = {"scores": rate(score, BATCH, seconds)}
    return made | {"scoring MB": (resident("VmHWM") - bare) / MEGA}


def speed(way: str, n_words: int, seconds: float) -> dict[str, Any]:
    """One row; in a process of its own."""
    lm = estimator(n_words, {"learning_rate_init": 1e-3} | TIMED[way])
    data = random_windows(400_000, replace(NETWORKS["MLP9"], n_words=n_words))
    return {
        "words": n_words, "way": way, **training(lm, data, seconds),
        **scoring(lm, data, seconds), "parameters MB": 4 * lm.n_parameters_ / MEGA,
    }  # fmt: skip


def speeds(args: Any) -> Iterator[dict[str, Any]]:
    for n_words, way in product(args.words or SIZES, args.ways or TIMED):
        options = {"way": way, "n_words": n_words, "seconds": args.seconds}
        work = partial(fresh, __file__, "speed", **options)
        yield kept(args.rows, f"speed, {n_words}, {way}", work)


# -- normalisers -------------------------------------------------------------------


def sums(way: str, text: Text, epochs: int) -> dict[str, Any]:
    """Logarithms of the normalisers of watched windows, after each epoch."""
    lm = estimator(text.n_words, SUMMED[way])
    trainer, reached = lm.trainer(*text.train), []
    for epoch in range(epochs):
        trainer.train(np.random.default_rng(epoch).permutation(len(text.train[1])))
        fitted = trainer.keep()
        logs = fitted.normalizers(text.watched[0])
        exact = fitted.log_prob(*text.watched)
        reached.append({
            "mean": logs.mean(), "deviation": logs.std(),
            "farthest": np.abs(logs).max(), "perplexity": np.exp(-exact.mean()),
            "of the scores": np.exp(-(exact + logs).mean()),
        })  # fmt: skip
    return {"way": way, "reached": reached}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("part", choices=["learn", "speed", "sums", "page"])
    options.add_argument("--rows", type=Path, required=True, help="what was measured")
    options.add_argument("--ways", nargs="+", help="by name; else all")
    options.add_argument("--corpus", choices=PARTS, default="brown")
    options.add_argument("--words", nargs="+", type=int, help="|V|; 100,000 for wiki")
    options.add_argument("--windows", type=int, default=1_000_000, help="of wiki")
    options.add_argument("--epochs", type=int, default=3, help="of Brown")
    options.add_argument("--seconds", type=float, default=2.0, help="a speed")
    options.add_argument("--docs", type=Path, help="write docs/measured's files here")
    args = options.parse_args()
    args.rows.mkdir(exist_ok=True)
    if args.part == "speed":
        rows = list(speeds(args))
        report("Speed", rows, args.json)
    elif args.part == "learn":
        epochs = args.epochs if args.corpus == "brown" else 1
        text = (
            brown()
            if args.corpus == "brown"
            else of_wiki((args.words or [100_000])[0], args.windows, args.rows)
        )
        rows = [
            kept(
                args.rows, f"learn, {text.name}, {way}",
                partial(learn, way, text, args.rows, epochs),
            )
            for way in args.ways or WAYS
        ]  # fmt: skip
        report(f"Learning {text.name}", learnt(rows), args.json)
    elif args.part == "sums":
        text = brown()
        rows = [
            kept(args.rows, f"sums, {way}", partial(sums, way, text, args.epochs))
            for way in args.ways or SUMMED
        ]
        report("Normalisers", summed(rows), args.json)
    if args.docs:
        found = [
            json.loads(path.read_text())
            for part in ("learn", "speed", "sums")
            for path in args.rows.glob(f"{part}-*.json")
        ]
        for name, table in tables(found, list(WAYS), list(TIMED)).items():
            (args.docs / f"outputs_{name}.inc").write_text(table)
        if any("points" in row for row in found):
            draw(args.docs / "outputs.svg", found, list(WAYS))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        serve(sys.argv[2], {"speed": speed})
    else:
        main()
