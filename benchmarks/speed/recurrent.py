"""How fast does the preset "memory" train, beside PyTorch's LSTM?

Both train on the first words of the Penn Treebank as one text, 1,024 words an update in
32 columns, with tied output units and 1,024 noise samples, on one core. Words a second
are those of the updates, by processor time. With --words 0 they train for an epoch, and
the perplexity of the valid part says whether both learn alike. Needs the Penn Treebank
in NPLM_DATA, and PyTorch for its rows.
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

from common.table import Rows, parser, report
from nplm import Importance, NeuralLM, available_tiers, windows
from nplm.datasets import fetch_ptb

try:
    from peers.torch_models import Network
except ImportError:
    Network = None

SIZES = (128, 256), (256, 256), (256, 512)  # features of a word, hidden units
Ids = NDArray[np.int32]


def nplm_fit(
    m: int, h: int, precision: str, train: Ids, valid: Ids,
    fit: Callable[..., Any] = NeuralLM.fit,
    clock: Callable[[], float] = time.process_time, **params: Any,
) -> tuple[float, float]:  # fmt: skip
    lm = NeuralLM.preset(
        "memory", n_words=int(max(train.max(), valid.max())) + 1, embedding_dim=m,
        n_hidden=h, precision=precision, max_iter=1, early_stopping=False,
        loss=Importance(n_noise=1024), random_state=0, **params,
    )  # fmt: skip
    updates: list[tuple[float, float]] = []

    def note(done: float, total: float, loss: float) -> None:
        updates.append((done, clock()))

    fit(lm, *windows(train, 128), progress=note)
    if not updates:  # a rank without the display
        return 0.0, np.nan
    (first, begun), (last, ended) = updates[0], updates[-1]
    perplexity = np.exp(-lm.score_stream(valid)) if len(valid) > 1 else np.nan
    return (last - first) / (ended - begun), float(perplexity)


def torch_fit(
    m: int, h: int, precision: str, train: Ids, valid: Ids
) -> tuple[float, float]:
    settings: dict[str, Any] = dict(
        kind="lstm", features=m, hidden=h, batch=32, length=32, noise=1024,
        bfloat16=precision == "bfloat16",
    )  # fmt: skip
    n_words = int(max(train.max(), valid.max())) + 1
    seconds = 4.0
    network = Network(n_words, settings).fit(train, seconds)
    speed = network.seen / seconds
    if len(valid) < 2:
        return speed, np.nan
    network = Network(n_words, settings).fit(train, len(train) / speed)
    log_p = network.log_prob(valid, train[-1000:])
    return network.seen / (len(train) / speed), float(np.exp(-log_p.mean()))


def main() -> None:
    arguments = parser(__doc__ or "")
    arguments.add_argument("--words", type=int, default=100_000, help="0 is an epoch")
    arguments.add_argument("--repeats", type=int, default=1)
    args = arguments.parse_args()
    corpus = fetch_ptb()
    train, valid = corpus.train, corpus.valid
    if args.words:
        train, valid = train[: args.words], valid[:1]
    makers = {"nplm": nplm_fit} | ({} if Network is None else {"PyTorch": torch_fit})
    precisions = ["float32", "bfloat16"]
    if available_tiers("bfloat16") == ["plain"]:
        precisions.remove("bfloat16")
    rows: Rows = []
    for m, h in SIZES:
        for precision in precisions:
            best = dict.fromkeys(makers, (0.0, np.nan))
            for _ in range(args.repeats):  # in turn: other programs share the machine
                for name, fit in makers.items():
                    best[name] = max(best[name], fit(m, h, precision, train, valid))
            row: dict[str, Any] = {
                "features, hidden": f"{m}, {h}",
                "precision": precision,
            }
            for name, (speed, perplexity) in best.items():
                row |= {f"{name}, words/s": round(speed), f"{name}, valid": perplexity}
            if Network is not None:
                row["ratio"] = best["nplm"][0] / best["PyTorch"][0]
            rows.append(row)
    report("Training of a recurrent network", rows, args.json)


if __name__ == "__main__":
    main()
