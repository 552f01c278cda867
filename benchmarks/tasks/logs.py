"""How well does LMDetector find anomalies in logs, beside an isolation forest?

In FOLDER are public files, of which nplm has no copy:

- ``hdfs_train`` and ``hdfs_test_abnormal``, sessions of HDFS as numbers of templates,
  as https://github.com/wuyifan18/DeepLog has them: the 4,855 usual sessions that
  DeepLog (Du et al., 2017) is fitted on, and the 16,838 abnormal ones of its test. A
  third of the usual ones, drawn at random, is held out for the test.
- ``BGL_2k.log``, 2,000 lines of Blue Gene/L with labels, from
  https://github.com/logpai/loghub: models are fitted on the usual lines of the first
  half, without labels and headers, and tested on all lines of the second.

Seconds are CPU time on one thread: of a fit, and of the scores of all that is tested.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from common.table import parser, report
from nplm import KneserNeyLM, LMDetector, TextLM, Tokenizer

CONTAMINATION = 0.01
HEADER_FIELDS = 9


def sessions_of_hdfs(folder: Path) -> tuple[list[Any], list[Any], NDArray[np.bool_]]:
    """Return sessions to fit on, sessions to test on, and which of these are odd."""
    usual, odd = (
        [line.split() for line in (folder / name).read_text().splitlines()]
        for name in ("hdfs_train", "hdfs_test_abnormal")
    )
    order = np.random.RandomState(0).permutation(len(usual)).tolist()
    n = 2 * len(usual) // 3
    held_out = [usual[i] for i in order[n:]]
    is_odd = np.arange(len(held_out) + len(odd)) >= len(held_out)
    return [usual[i] for i in order[:n]], held_out + odd, is_odd


def lines_of_bgl(folder: Path) -> tuple[list[Any], list[Any], NDArray[np.bool_]]:
    """Return lines to fit on, lines to test on, and which of these are odd."""
    lines = (folder / "BGL_2k.log").read_text().splitlines()
    # The first field is the label; then come the time, the place and the level.
    is_odd = np.array([not line.startswith("- ") for line in lines])
    texts = [line.split(" ", HEADER_FIELDS)[-1] for line in lines]
    half = len(texts) // 2
    usual = [text for text, odd in zip(texts[:half], is_odd) if not odd]
    return usual, texts[half:], is_odd[half:]


def detector(order: int, aggregate: str, tokenizer: Tokenizer | None) -> LMDetector:
    """Return a detector of n-grams."""
    ngrams = KneserNeyLM(order, discount_fallback=(0.5, 1, 1.5))
    lm = TextLM(ngrams, tokenizer=tokenizer)
    return LMDetector(lm, aggregate=aggregate, contamination=CONTAMINATION)


def forest(split: Callable[[Any], list[str]], longest: int) -> Any:
    """Return an isolation forest on the TF-IDF of n-grams."""
    weights = TfidfVectorizer(
        tokenizer=split, token_pattern=None, lowercase=False, ngram_range=(1, longest)
    )
    trees = IsolationForest(random_state=0, contamination=CONTAMINATION)
    return make_pipeline(weights, trees)


def row(log: str, name: str, model: Any, data: Any) -> dict[str, Any]:
    """Fit a detector, and measure it."""
    train, test, is_odd = data
    began = time.process_time()
    model.fit(train)
    fitted = time.process_time()
    scores = model.score_samples(test)
    scored = time.process_time()
    alarms = model.predict(test) == -1
    return {
        "log": log,
        "detector": name,
        "AUC": round(float(roc_auc_score(is_odd, -scores)), 4),
        "found": round(float(alarms[is_odd].mean()), 3),
        "false alarms": round(float(alarms[~is_odd].mean()), 4),
        "fit s": round(fitted - began, 2),
        "scores s": round(scored - fitted, 2),
    }


def main() -> None:
    """Measure and report."""
    made = parser(__doc__.splitlines()[0])
    made.add_argument("folder", type=Path, metavar="FOLDER")
    options = made.parse_args()
    rows = []
    hdfs, bgl = sessions_of_hdfs(options.folder), lines_of_bgl(options.folder)
    for aggregate in ("mean", "min"):
        name = f"LMDetector, {aggregate} of trigrams"
        rows.append(row("HDFS", name, detector(3, aggregate, None), hdfs))
    for n in (1, 3):
        name = f"IsolationForest, TF-IDF of 1 to {n} events"
        rows.append(row("HDFS", name, forest(list, n), hdfs))
    for words, tokenizer in (
        ("words", Tokenizer()),
        ("for_logs()", Tokenizer.for_logs()),
    ):
        name = f"LMDetector, mean of trigrams, {words}"
        rows.append(row("BGL", name, detector(3, "mean", tokenizer), bgl))
        name = f"IsolationForest, TF-IDF, {words}"
        rows.append(row("BGL", name, forest(tokenizer.split_function(), 1), bgl))
    report("Anomalies in logs", rows, options.json)


if __name__ == "__main__":
    main()
