"""Tables 1 and 2 of the paper: rows, figures, and how we train the models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from nplm.datasets import Corpus, fetch_brown, load_wiki
from nplm.datasets.corpus import PARTS
from nplm.experiments.fits import (
    TRIGRAM_SETTINGS,
    ClassFit,
    Fit,
    KneserNeyFit,
    NetworkFit,
    Row,
    TrigramFit,
)
from nplm.models.neural.network_parameters import OPTIONS
from nplm.models.neural.presets import paper_network

# How we train the networks of Table 1. The stochastic gradient of the exact loss and
# the weight decay are the paper's (`NeuralLM.from_paper` has all its values). We use
# mini-batches, and a larger learning rate that falls in a line to 0 within seven
# epochs, where the paper's falls as 1 / (1 + r t). The validation part chose these
# values, with networks trained on noise samples, which takes a tenth of the time. Ten
# epochs that begin with half the learning rate are as good.
FAST: dict[str, object] = {
    "batch_size": 32, "solver__learning_rate": "linear", "learning_rate_init": 2e-2,
    "max_iter": 7, "n_iter_no_change": 2, "random_state": 0,
}  # fmt: skip
# Table 2 has 70 million examples. Noise samples for each mini-batch (Bengio and
# Senécal, 2003), 1,024 of 17,964 words, save the night that all words would take.
FAST_AP = FAST | {
    "loss": "importance", "batch_size": 128, "learning_rate_init": 6e-3, "max_iter": 5,
}  # fmt: skip
AS_PRINTED = {"random_state": 0}  # all else is the paper's
# SRILM's default: n-grams of three words or more are kept if they occur twice.
SRILM_CUTOFFS = (1, 1, 2)

# The paper's perplexities of the training part (None if it has none), the validation
# and the test part.
Perplexities = tuple[float | None, float, float]


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper: its text, the parts that are scored, and its fits."""

    name: str
    title: str
    load: Callable[[], Corpus]
    n_context: int
    scored: tuple[str, ...]
    fits: tuple[Fit, ...]

    @property
    def rows(self) -> list[Row]:
        """All rows, with the paper's figures."""
        return [row for fit in self.fits for row in fit.rows]

    def fits_of(self, names: Sequence[str] | None) -> list[Fit]:
        """Return the fits of rows, by names or patterns such as ``"MLP*"``.

        None is all, from the bottom of the table up: n-grams take minutes, networks
        hours.
        """
        if names is None:
            return list(reversed(self.fits))
        chosen: list[Fit] = []
        for name in names:
            fits = [fit for fit in self.fits if any(_is(r, name) for r in fit.rows)]
            if not fits:
                raise ValueError(
                    f"{name!r} is not a row of {self.name}: choose among "
                    f"{', '.join(row.name for row in self.rows)}; patterns such as "
                    "'MLP*' choose several."
                )
            chosen += [fit for fit in fits if fit not in chosen]
        return chosen

    def trained_otherwise(
        self, as_printed: bool, changes: dict[str, object]
    ) -> PaperTable:
        """Return a table whose networks have the paper's settings, or changed ones."""

        def changed(fit: Fit) -> Fit:
            if not isinstance(fit, NetworkFit):
                return fit
            ours = AS_PRINTED if as_printed else fit.changes
            network = {"network": fit.settings["network"]}
            return replace(fit, settings=network | ours | changes)

        return replace(self, fits=tuple(map(changed, self.fits)))


def _is(row: Row, name: str) -> bool:
    pattern = " ".join(name.lower().split())
    return any(fnmatchcase(text.lower(), pattern) for text in (row.name, row.model))


def _networks(
    network: str,
    settings: dict[str, Any],
    alone: Perplexities | None,
    mixed: tuple[str, Perplexities],
) -> Fit:
    """Return the fit of a network: alone, if the table has that row, and mixed."""
    rows = [mixed] if alone is None else [(network, alone), mixed]
    paper = paper_network(network)
    shape = paper["n_hidden"], paper["embedding_dim"], paper["output__direct"]
    return NetworkFit(
        [
            Row(name, paper["order"], *shape, *figures, mix=name == mixed[0], name=name)
            for name, figures in rows
        ],
        {"network": network, **settings},
    )


def _trigram(figures: Perplexities) -> Fit:
    return TrigramFit([_ngrams("Del. Int.", 3, figures, "")], TRIGRAM_SETTINGS)


def _kneser_ney(model: str, n: int, figures: Perplexities) -> Fit:
    settings = {"order": n, "interpolate": False, "min_counts": SRILM_CUTOFFS}
    return KneserNeyFit([_ngrams(model, n, figures, f" {n}")], settings)


def _classes(c: int, by_order: dict[int, Perplexities]) -> Fit:
    rows = [
        replace(_ngrams("class-based back-off", n, figures, f" {n} c={c}"), c=c)
        for n, figures in by_order.items()
    ]
    settings = {"n_classes": c, "orders": list(by_order), "random_state": 0}
    return ClassFit(rows, settings)


def _ngrams(model: str, n: int, figures: Perplexities, suffix: str) -> Row:
    return Row(model, n, None, None, None, *figures, name=f"{model}{suffix}")


KN, AP_KN = "Kneser-Ney back-off", "Back-off KN"
TABLES = {
    "table1": PaperTable(
        "table1", "Table 1: Brown", fetch_brown, 4, PARTS,
        (
            _networks("MLP1", FAST, (182, 284, 268), ("MLP2", (None, 275, 257))),
            _networks("MLP3", FAST, (201, 327, 310), ("MLP4", (None, 286, 272))),
            _networks("MLP5", FAST, (209, 296, 279), ("MLP6", (None, 273, 259))),
            _networks("MLP7", FAST, (210, 309, 293), ("MLP8", (None, 284, 270))),
            _networks("MLP9", FAST, (175, 280, 276), ("MLP10", (None, 265, 252))),
            _trigram((31, 352, 336)),
            _kneser_ney(KN, 3, (None, 334, 323)),
            _kneser_ney(KN, 4, (None, 332, 321)),
            _kneser_ney(KN, 5, (None, 332, 321)),
            _classes(150, {3: (None, 348, 334)}),
            _classes(200, {3: (None, 354, 340)}),
            _classes(500, {
                3: (None, 326, 312), 4: (None, 327, 312), 5: (None, 327, 312),
            }),
            _classes(1000, {3: (None, 335, 319)}),
            _classes(2000, {3: (None, 343, 326)}),
        ),
    ),
    # The paper's corpus is not published, so its figures are for another text.
    "table2": PaperTable(
        "table2", "Table 2: Wikipedia, in place of AP News", load_wiki, 5,
        ("valid", "test"),
        (
            _networks("AP", FAST_AP, None, ("MLP10", (None, 104, 109))),
            _trigram((None, 126, 132)),
            _kneser_ney(AP_KN, 3, (None, 121, 127)),
            _kneser_ney(AP_KN, 4, (None, 113, 119)),
            _kneser_ney(AP_KN, 5, (None, 112, 117)),
        ),
    ),
}  # fmt: skip

# Networks with and without direct connections, to compare.
DIRECT, INDIRECT = "MLP1", "MLP9"

# Findings of section 4.2: a sentence, the row with the lower test perplexity, and the
# row with the higher one.
FINDINGS = (
    ("Hidden units help", "MLP1", "MLP3"),
    ("Hidden units help in mixtures", "MLP2", "MLP4"),
    ("Four words of context help more than two", "MLP5", "MLP7"),
    ("Mixing with the trigram helps", "MLP2", "MLP1"),
    ("Mixing with the trigram helps", "MLP4", "MLP3"),
    ("Mixing with the trigram helps", "MLP6", "MLP5"),
    ("Mixing with the trigram helps", "MLP8", "MLP7"),
    ("Mixing with the trigram helps", "MLP10", "MLP9"),
    ("Without direct connections it ends lower", INDIRECT, DIRECT),
    ("Without direct connections it ends lower in mixtures", "MLP10", "MLP2"),
)


def grouped(settings: Mapping[str, object]) -> dict[str, object]:
    """Return settings with the full names that ``set_params`` takes.

    Parameters
    ----------
    settings : mapping of str
        Parameters of a `NeuralLM` or `EnergyLM`; those of an option by their own name,
        such as ``learning_rate``.

    Returns
    -------
    params : dict of str
        Settings, with those of options under names such as ``solver__learning_rate``.

    Examples
    --------
    >>> from nplm.experiments import grouped
    >>> grouped({"n_hidden": 8, "learning_rate": "constant"})
    {'n_hidden': 8, 'solver__learning_rate': 'constant'}
    """
    full_names = {
        name: f"{parameter}__{name}"
        for parameter, kinds in OPTIONS.items()
        for kind in kinds.values()
        for name in kind().get_params(deep=False)
    }
    return {full_names.get(name, name): value for name, value in settings.items()}
