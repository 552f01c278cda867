"""Which output is best once a network is well trained?

MLP9's shape with each output and loss, as common/trained.py trains. The time of finding
classes and of making a tree is told beside that of training.

--rows is a folder that keeps the rows, a file each; rows that it has are not measured
again. --page writes docs/measured/outputs_trained.inc.

    python benchmarks/large_vocabularies/trained_outputs.py --rows FOLDER --page
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

from numpy.typing import NDArray

from common.table import parser, report
from common.trained import Way, measured, network, page
from nplm import Classes, Importance, NeuralLM, Tree, WordClasses, word_tree
from nplm.datasets import Corpus

PAGE = Path(__file__).parents[2] / "docs" / "measured" / "outputs_trained.inc"


def found(corpus: Corpus) -> NDArray[Any]:
    """Classes of the words, as many as the root of their number."""
    n_classes = round(corpus.n_words**0.5)
    found = WordClasses(n_classes, n_words=corpus.n_words, random_state=0)
    return found.fit(corpus.train).labels_


# Output units that few examples train need more weight decay.
of_few_units = partial(network, alpha=0.1)


def of_found_classes(corpus: Corpus) -> NeuralLM:
    return of_few_units(corpus, output=Classes(found(corpus)))


def of_tree_of_classes(corpus: Corpus) -> NeuralLM:
    return of_few_units(corpus, output=Tree(word_tree(corpus.train, found(corpus))))


WAYS: dict[str, Way] = {
    "softmax, 512 noise samples": partial(network, loss=Importance(n_noise=512)),
    "softmax, 128 noise samples": partial(network, loss=Importance(n_noise=128)),
    "found classes": of_found_classes,
    "tree of found classes": of_tree_of_classes,
    "default tree": partial(of_few_units, output=Tree()),
}


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--rows", type=Path, required=True, help="what was measured")
    options.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    options.add_argument("--page", action="store_true", help=f"write {PAGE.name}")
    args = options.parse_args()
    args.rows.mkdir(exist_ok=True)
    rows = measured(args.rows, "outputs", {way: WAYS[way] for way in args.ways})
    report("Outputs of well-trained networks", rows, args.json)
    if args.page:
        PAGE.write_text(page(rows, "output"))


if __name__ == "__main__":
    main()
