"""Do the models reach the perplexities of the paper and of the n-gram toolkits?

Trains on Brown or the Penn Treebank (see nplm.datasets for how to have them) and
prints validation and test perplexity beside the recorded figures: SRILM 1.7.3's
for Kneser-Ney, an independent computation for the interpolated trigram, the
paper's Table 1 for the networks. CPU seconds are of all threads, fit only.

    python benchmarks/paper/perplexity.py --corpus brown --networks MLP9 MLP1
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

from sklearn.frozen import FrozenEstimator

from common.networks import NETWORKS
from common.table import parser, report
from nplm import InterpolatedTrigram, KneserNeyLM, MixtureLM
from nplm.datasets import fetch_brown, fetch_ptb

BACK_OFF = {"interpolate": False, "min_counts": (1, 1, 2)}  # SRILM's default cutoffs

# (valid, test) by corpus, model, order: ngram-count -kndiscount [-interpolate].
RECORDED = {
    ("brown", "trigram", 3): (355.80, 329.81),
    ("brown", "interpolated", 3): (332.35, 310.03),
    ("brown", "interpolated", 5): (329.46, 307.29),
    ("brown", "back-off", 3): (346.02, 325.00),
    ("brown", "back-off", 5): (347.62, 326.02),
    ("ptb", "trigram", 3): (177.28, 168.07),
    ("ptb", "interpolated", 3): (157.8, 148.3),
    ("ptb", "interpolated", 5): (148.0, 141.19),
    ("ptb", "back-off", 3): (169.6, 161.1),
    ("ptb", "back-off", 5): (164.8, 158.6),
    # Table 1 of the paper, on its edition of Brown: alone, and mixed half and
    # half with the trigram.
    ("brown", "MLP1", 5): (284, 268),
    ("brown", "MLP3", 5): (327, 310),
    ("brown", "MLP5", 5): (296, 279),
    ("brown", "MLP7", 3): (309, 293),
    ("brown", "MLP9", 5): (280, 276),
    ("brown", "MLP1 + trigram", 5): (275, 257),
    ("brown", "MLP3 + trigram", 5): (286, 272),
    ("brown", "MLP5 + trigram", 5): (273, 259),
    ("brown", "MLP7 + trigram", 3): (284, 270),
    ("brown", "MLP9 + trigram", 5): (265, 252),
}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--corpus", choices=["brown", "ptb"], default="brown")
    options.add_argument("--networks", nargs="*", choices=list(NETWORKS), default=[])
    options.add_argument("--precision", nargs="+", default=["float32"])
    options.add_argument("--jobs", type=int, default=1, help="threads of a network")
    args = options.parse_args()
    corpus = fetch_brown() if args.corpus == "brown" else fetch_ptb()

    # The trigram's and the networks' figures are for one stream, sentences and all.
    sentences = corpus.windows(4)
    stream = replace(corpus, boundary=None).windows(4)
    rows: list[dict[str, Any]] = []

    def measure(
        model: Any, name: str, order: int, data: Any, precision: str = ""
    ) -> Any:
        train, valid, test = data
        started = time.process_time()
        model.fit(*train, X_val=valid[0], y_val=valid[1])
        seconds = time.process_time() - started
        wanted = RECORDED.get((args.corpus, name, order), (None, None))
        rows.append({
            "model": name, "n": order, "precision": precision,
            "valid": model.perplexity(*valid), "recorded valid": wanted[0],
            "test": model.perplexity(*test), "recorded test": wanted[1],
            "parameters": model.n_parameters_, "CPU s": seconds,
        })  # fmt: skip
        return model

    V, boundary = corpus.n_words, corpus.boundary
    # 20 steps of EM from equal weights, as the recorded figure.
    em = {"max_iter": 20, "tol": 0.0}
    trigram = measure(InterpolatedTrigram(n_words=V, **em), "trigram", 3, stream)
    for order in (3, 5):
        for name, kind in (("interpolated", {}), ("back-off", BACK_OFF)):
            kn = KneserNeyLM(order, n_words=V, boundary=boundary, **kind)
            measure(kn, name, order, sentences)
    for name, precision in product(args.networks, args.precision):
        shape = replace(NETWORKS[name], n_words=V)
        lm = shape.estimator(precision=precision, n_jobs=args.jobs, verbose=1)
        measure(lm, name, shape.n, stream, precision)
        members = [
            ("network", FrozenEstimator(lm)),
            ("trigram", FrozenEstimator(trigram)),
        ]
        mixture = MixtureLM(members, "uniform")
        measure(mixture, f"{name} + trigram", shape.n, stream, precision)
    report(f"Perplexity on {args.corpus}", rows, args.json)


if __name__ == "__main__":
    main()
