"""Do several senses of a word pay in NeuralLM (section 5.2, item 6)?

Features(n_senses=2) in MLP9's shape, beside networks of one sense with as many features
and with as many parameters, as common/trained.py trains. What was tried before any was
built is in inputs.py.

--rows is a folder that keeps the rows, a file each; rows that it has are not measured
again. --page writes docs/measured/senses.inc.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

from common.table import parser, report
from common.trained import Way, measured, network, page
from nplm import Features, Importance, NeuralLM
from nplm.datasets import Corpus

PAGE = Path(__file__).parents[2] / "docs" / "measured" / "senses.inc"


def with_senses(n_senses: int, m: int) -> Way:
    def way(corpus: Corpus) -> NeuralLM:
        settings: dict[str, Any] = {"features": Features(n_senses=n_senses)}
        return network(
            corpus, loss=Importance(n_noise=512), embedding_dim=m, **settings
        )

    return way


WAYS: dict[str, Way] = {
    "one sense, m = 43": with_senses(1, 43),
    "one sense, m = 30": with_senses(1, 30),
    "2 senses, m = 30": with_senses(2, 30),
}


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--rows", type=Path, required=True, help="what was measured")
    options.add_argument("--page", action="store_true", help=f"write {PAGE.name}")
    args = options.parse_args()
    args.rows.mkdir(exist_ok=True)
    rows = measured(args.rows, "senses", WAYS)
    report("Senses of words", rows, args.json)
    if args.page:
        PAGE.write_text(page(rows, "senses"))


if __name__ == "__main__":
    main()
