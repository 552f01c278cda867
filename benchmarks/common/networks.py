"""The paper's networks: their shapes, and one in training without a fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from nplm import EnergyLM, NeuralLM, Softmax, windows
from nplm.experiments import grouped

Windows = tuple[NDArray[np.int32], NDArray[np.int32]]


@dataclass(frozen=True)
class Shape:
    """|V|, n, h, m and the direct connections, in the paper's letters."""

    n_words: int
    n: int
    h: int
    m: int
    direct: bool

    @property
    def inputs(self) -> int:
        return (self.n - 1) * self.m

    @property
    def width(self) -> int:
        """Parameters of an output unit, 1 + (n - 1) m + h."""
        return 1 + self.direct * self.inputs + self.h

    @property
    def below(self) -> int:
        """Operations of the hidden and feature layers, which ranks duplicate."""
        return self.h * (1 + self.inputs) + self.inputs

    def output_share(self) -> float:
        """Share of the output units in all operations: 99.7% in section 3.2."""
        outputs = self.n_words * self.width
        return outputs / (outputs + self.below)

    def output_bytes(self) -> int:
        """Size of the output units' weights, one row a word."""
        return 4 * self.n_words * self.width

    def estimator(self, **settings: Any) -> NeuralLM:
        return paper_lm(
            order=self.n, n_words=self.n_words, n_hidden=self.h, embedding_dim=self.m,
            direct=self.direct, random_state=0, **settings,
        )  # fmt: skip


# Where a loss or a solver is chosen by name.
USUAL: dict[str, dict[str, Any]] = {
    "importance": {"n_noise": 512}, "nce": {"n_noise": 512}, "adam": {"epsilon": 1e-8},
}  # fmt: skip


def changed(lm: Any, **settings: Any) -> Any:
    """The model with other parameters; those of options by their own name."""
    for name in (settings.get("loss"), settings.get("solver")):
        settings = USUAL.get(name, {}) | settings
    return lm.set_params(**grouped(settings))


def paper_lm(**settings: Any) -> NeuralLM:
    """MLP9 with these settings, trained as in the paper but in mini-batches."""
    recipe = {
        "learning_rate": "invscaling", "learning_rate_init": 4e-3, "batch_size": 32,
        "max_iter": 12,
    }  # fmt: skip
    return changed(NeuralLM.from_paper("MLP9"), **(recipe | settings))


def energy_lm(**settings: Any) -> EnergyLM:
    """An energy model with these settings, trained as the paper's networks."""
    recipe = {
        "loss": "exact", "solver": "sgd", "learning_rate": "invscaling",
        "learning_rate_init": 1e-2, "alpha": 1e-4, "batch_size": 32, "max_iter": 12,
        "n_iter_no_change": 3, "tol": 1e-4,
    }  # fmt: skip
    return changed(EnergyLM(), **(recipe | settings))


# Table 1, with the vocabulary of nplm.datasets.fetch_brown, and section 4.2's AP
# News with that of nplm.datasets.load_wiki.
NETWORKS = {
    "MLP1": Shape(17_907, 5, 50, 60, True),
    "MLP3": Shape(17_907, 5, 0, 60, True),
    "MLP5": Shape(17_907, 5, 50, 30, True),
    "MLP7": Shape(17_907, 3, 50, 30, True),
    "MLP9": Shape(17_907, 5, 100, 30, False),
    "AP": Shape(17_964, 6, 60, 100, True),
}
TIMED = ["MLP1", "MLP9", "AP"]  # the others differ little from one of these
# Networks of today on a vocabulary as large as Brown's, and on one of 50,000 words, as
# of Wikipedia. Each is trained as its parameters say.
BROWN, WIKI = 17_907, 50_000
TODAY: dict[str, NeuralLM | EnergyLM] = {
    "default": NeuralLM(order=6, n_words=BROWN),
    "default, 50,000 words": NeuralLM(order=6, n_words=WIKI),
    "tied": NeuralLM(
        order=6,
        n_hidden=400,
        embedding_dim=128,
        batch_size=512,
        output=Softmax(direct=True, tied=True),
        n_words=WIKI,
    ),
    "distant": NeuralLM(
        order=6, n_hidden=400, embedding_dim=128, n_distant=128, n_words=BROWN
    ),
    "classes": NeuralLM(order=6, output="classes", n_words=BROWN),
    "tree": NeuralLM(order=6, output="tree", n_words=BROWN),
    "energy": EnergyLM(order=6, n_words=BROWN),
}


def random_windows(n_examples: int, shape: Shape) -> Windows:
    """Windows for the paper's network of this shape."""
    return zipf_windows(n_examples, shape.n_words, shape.n - 1)


def zipf_windows(n_examples: int, n_words: int, n_context: int) -> Windows:
    """Words as frequent as in text (Zipf): what is visited often is in cache."""
    rng = np.random.default_rng(0)
    p = 1 / np.arange(1, n_words + 1)
    n_tokens = n_examples + n_context
    ids = rng.choice(n_words, n_tokens, p=p / p.sum()).astype(np.int32)
    return windows(ids, n_context)


class Trainer(Protocol):
    """The methods of trainers, of `NeuralLM.trainer` and of `nplm.mpi.trainer`."""

    def train(self, examples: Any) -> float: ...

    def costs(self) -> dict[str, float]: ...

    def keep(self) -> NeuralLM: ...


def trainer(
    shape: Shape, data: Windows, make: Any = NeuralLM.trainer, **settings: Any
) -> Trainer:
    """A network in training by hand, which is a fit's kernels and little else.

    With a step that is small for random windows, however many make a mini-batch.
    """
    lm = shape.estimator(learning_rate_init=1e-3, **settings)
    begun: Trainer = make(lm, *data)
    return begun


def trainer_of_today(name: str, **settings: Any) -> Trainer:
    """One of `TODAY` in training by hand, on random windows.

    The step is so small that nothing is learned: the number of noise samples stays.
    """
    lm = clone(TODAY[name]).set_params(
        learning_rate_init=1e-6, random_state=0, **settings
    )
    n_context = max(lm.order - 1, lm.n_distant, lm.n_memory)
    begun: Trainer = lm.trainer(*zipf_windows(8192, lm.n_words, n_context))
    return begun
