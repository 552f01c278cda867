"""What do the presets of NeuralLM cost and gain?

Trains each on Brown and the Penn Treebank, read as one stream, until it ends by itself
with the validation part, and scores the test part. A fit is a file in --folder, so that
the table can be made in several runs:

    python benchmarks/networks/presets.py brown --presets default memory --folder runs
    python benchmarks/networks/presets.py brown ptb --folder runs

--spelling adds features of the words' spelling to each network.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import numpy as np

from common.ablations import as_stream
from common.table import file_name, kept, parser, report
from nplm import NeuralLM, available_tiers
from nplm.datasets import Corpus, fetch_brown, fetch_ptb
from nplm.experiments import spelling_of

TEXTS: dict[str, Callable[[], Corpus]] = {"brown": fetch_brown, "ptb": fetch_ptb}
PRESETS = ("small", "default", "large_vocabulary", "distant", "memory")
ORDER = 6  # where the preset has none


def measured(text: str, preset: str, seed: int, *, spelling: bool) -> dict[str, Any]:
    """A fit of one preset."""
    corpus = TEXTS[text]()
    lm = NeuralLM.preset(preset, n_words=corpus.n_words, random_state=seed)
    if lm.order is None:
        lm.set_params(order=ORDER)
    n_context = max(lm.order - 1, lm.n_distant, lm.n_memory)
    train, valid, test = as_stream(corpus, n_context).windows(n_context)
    began = time.process_time()
    if spelling:
        lm.set_params(features__word_features=spelling_of(corpus))
    lm.fit(*train, X_val=valid[0], y_val=valid[1])
    seconds = time.process_time() - began
    return {
        "text": text, "preset": preset + " + spelling" * spelling, "seed": seed,
        "tier": available_tiers()[0], "CPU s": seconds, "epochs": lm.n_iter_,
        "million parameters": lm.n_parameters_ / 1e6,
        "valid": float(np.exp(lm.val_loss_)), "test": float(lm.perplexity(*test)),
    }  # fmt: skip


def main() -> None:
    options = parser(__doc__)
    options.add_argument("texts", nargs="+", choices=list(TEXTS))
    options.add_argument("--presets", nargs="+", choices=PRESETS, default=PRESETS)
    options.add_argument("--seeds", nargs="+", type=int, default=[0])
    options.add_argument("--spelling", action="store_true")
    options.add_argument("--folder", type=Path, required=True, help="a file a fit")
    args = options.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    rows = [
        kept(
            args.folder,
            file_name(f"{text}-{preset}-{seed}" + "-spelling" * args.spelling),
            partial(measured, text, preset, seed, spelling=args.spelling),
        )
        for text in args.texts
        for preset in args.presets
        for seed in args.seeds
    ]
    report("Presets", rows, args.json)


if __name__ == "__main__":
    main()
