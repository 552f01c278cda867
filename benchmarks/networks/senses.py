"""Do several senses of a word pay in NeuralLM (section 5.2, item 6)?

NeuralLM(n_senses=2) in MLP9's shape, beside networks of one sense with as many features
and with as many parameters, as common/trained.py trains. What was tried before any was
built is in inputs.py.

--rows is a folder that keeps the rows, a file each; rows that it has are not measured
again. --page writes docs/measured/senses.inc.

    python benchmarks/networks/senses.py --rows FOLDER --page
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

from common.table import conditions, parser, report
from common.trained import Way, measured, network, page
from nplm import Features, Importance, NeuralLM
from nplm.datasets import Corpus

PAGE = Path(__file__).parents[2] / "docs" / "measured" / "senses.inc"
# Features of a word with which one sense has as many parameters as two have with 30.
AS_MANY = {"ptb": 53, "brown": 43}

sampled = partial(network, loss=Importance(n_noise=512))


def wider(corpus: Corpus) -> NeuralLM:
    return sampled(corpus, embedding_dim=AS_MANY[corpus.name])


# The others are compared with the first.
WAYS: dict[str, Way] = {
    "one sense, as many parameters": wider,
    "one sense, m = 30": sampled,
    "2 senses, m = 30": partial(sampled, features=Features(n_senses=2)),
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
        PAGE.write_text(f"{page(rows, 'x')}\n{conditions(rows)}\n")


if __name__ == "__main__":
    main()
