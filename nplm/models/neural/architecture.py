"""Describe a network: its sizes and kinds of parts, without trained parameters."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace

from scipy.sparse import csr_array

from nplm.base.array_types import Counts, Ids
from nplm.base.exceptions import parameter_error
from nplm.models.neural.network import word_features
from nplm.models.neural.network.hidden import LSTM, NoHidden, Residual, Tanh
from nplm.models.neural.network.inputs import (
    Concatenation,
    DistantAverages,
    MixedSenses,
)
from nplm.models.neural.network.outputs.estimates import Estimate
from nplm.models.neural.network.parts import Parts
from nplm.models.neural.network.word_features import checked_embeddings, checked_parts
from nplm.models.neural.options.features import Features
from nplm.models.neural.options.losses import Loss
from nplm.models.neural.options.outputs import Output, Softmax, changed

SIZES = ("n_words", "order", "n_hidden", "embedding_dim", "n_distant", "n_memory")
# Parameters of some kind of output, in the order of files.
OUTPUT_PARAMETERS = (
    "direct", "tied", "target_weights", "n_outputs", "classes", "tree", "tree_from",
    "n_branches",
)  # fmt: skip
# Settings that are arrays by word, or how to make them.
ARRAYS = (
    "features__embeddings", "features__word_features", "output__classes",
    "output__tree",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Architecture:
    """Describe a network and make its parts.

    After training, `features` and `output` have the classes or tree that it made, and
    no initial features.
    """

    n_words: int
    order: int
    n_hidden: int | tuple[int, ...]  # h, or that and the units of each block
    embedding_dim: int
    n_distant: int = 0
    n_memory: int = 0
    features: Features = field(default_factory=Features)
    output: Output = field(default_factory=Softmax)

    def items(self) -> dict[str, object]:
        """Return the architecture as the items of a file."""
        features, output = self.features, self.output
        return {
            **{name: getattr(self, name) for name in SIZES},
            "n_senses": features.n_senses,
            "trained": features.trained,
            "word_features": features.word_features,
            "output": output.name,
            **{name: getattr(output, name) for name in OUTPUT_PARAMETERS},
        }

    def settings(self) -> dict[str, object]:
        """Return what identifies a fit, by the names of the estimator's parameters."""
        of_features = self.features.settings()
        settings = {f"features__{name}": value for name, value in of_features.items()}
        for name in OUTPUT_PARAMETERS:
            if name != "tree_from":  # follows from `tree`
                option = "" if name == "target_weights" else "output__"
                settings[f"{option}{name}"] = getattr(self.output, name)
        sizes = {name: getattr(self, name) for name in SIZES}
        return sizes | {"output": self.output.name} | settings

    @property
    def h(self) -> int:
        """Number of hidden units."""
        return self.n_hidden if isinstance(self.n_hidden, int) else self.n_hidden[0]

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of units of each residual block."""
        return () if isinstance(self.n_hidden, int) else self.n_hidden[1:]

    @property
    def n_context(self) -> int:
        """Number of context words that the network uses."""
        return max(self.order - 1, self.n_distant, self.n_memory)

    @property
    def n_outcomes(self) -> int:
        """Number of outcomes that the network predicts."""
        return self.output.n_outputs or self.n_words

    @property
    def starts_from_counts(self) -> bool:
        """Whether the first features are computed from counts of neighbours."""
        start = self.features.embeddings
        if not isinstance(start, str) or not self.n_context:
            return False
        return start == "counts" or self.output.tied

    # -- checks ---------------------------------------------------------------

    def check_next_words(self, words: Ids, name: str) -> None:
        """Raise ValueError if next words are not outcomes of `n_outputs`."""
        n_outputs = self.output.n_outputs
        if n_outputs is not None and words.size and words.max() >= n_outputs:
            raise ValueError(
                f"{name} has {words.max()}, but output__n_outputs={n_outputs}; next "
                "words must be below it."
            )

    def check(self, loss: Loss) -> None:
        """Raise ValueError if the options are incompatible."""
        output, samples = self.output, loss.has_samples
        if self.n_hidden == 0 and not output.direct:
            raise parameter_error(
                "{n_hidden} without direct connections leaves no path from the context "
                "to the output units; set {output__direct} or {n_hidden:n_hidden} "
                "above 0.", n_hidden=0, output__direct=True,
            )  # fmt: skip
        if self.n_memory:
            self._check_memory()
        start = self.features.embeddings
        if isinstance(start, str) and start == "counts" and not self.n_context:
            raise ValueError(
                f"features__embeddings={start!r} counts the words of contexts, and "
                f"order={self.order} has none; set order above 1, or None."
            )
        if samples and not output.has_samples:
            raise ValueError(
                f"loss={loss.name!r} replaces a softmax over all words by noise "
                f"samples, but output={output.name!r} has no such softmax; set "
                "loss='exact' or output='softmax'."
            )
        is_composed = self.features.word_features is not None
        if not self.features.trained and (output.tied or is_composed):
            name = "output__tied" if output.tied else "features__word_features"
            raise ValueError(
                f"features__trained=False keeps the features fixed, but {name} trains "
                "them; set only one of the two."
            )
        if output.n_outputs is not None and (output.tied or samples):
            name = f"loss={loss.name!r}" if samples else "output__tied=True"
            raise ValueError(
                f"output__n_outputs={output.n_outputs} needs a full softmax with "
                f"weights of its own, but {name} needs one output unit per word; set "
                "only one of the two."
            )

    def _check_memory(self) -> None:
        if self.h == 0:
            raise ValueError(
                f"n_memory={self.n_memory} is a state of hidden units, and n_hidden=0 "
                "has none; set n_hidden above 0, or n_memory=0."
            )
        if self.output.n_outputs is not None:
            raise ValueError(
                f"n_memory={self.n_memory} would train no state from word to word, "
                "because next words are outcomes with "
                f"output__n_outputs={self.output.n_outputs}; set only one of the two."
            )
        n_inputs = max(self.order - 1, self.n_distant)
        if n_inputs == 0:
            raise ValueError(
                f"n_memory={self.n_memory} has nothing to remember, because the hidden "
                "units see no word with order=1; set order above 1, or n_memory=0."
            )
        if self.n_memory <= n_inputs:
            raise ValueError(
                f"n_memory={self.n_memory} leaves nothing to remember: the hidden "
                f"units see the nearest {n_inputs} words anyway; set a number above "
                f"{n_inputs}, or n_memory=0."
            )

    def check_shared(self, loss: Loss, name: str) -> None:
        """Raise ValueError unless processes can share the output units (3.2)."""
        output = self.output
        if output.name == "softmax" and not output.tied and not loss.has_samples:
            return
        if output.name == "energy":
            raise ValueError(
                "a shard of a network has output units of a full softmax (section "
                f"3.2), but {name} has no softmax; set keep='all'."
            )
        # "auto" may choose a sampled loss once the other options have changed.
        chosen, wanted = [], ["loss='exact'"]
        if loss.has_samples:
            chosen.append(f"loss={loss.name!r}")
        if output.tied:
            chosen.append("output__tied=True")
            wanted.append("output__tied=False")
        if output.name != "softmax":
            chosen.append(f"output={output.name!r}")
            wanted.append("output='softmax'")
        raise ValueError(
            "a shard of a network has output units of a full softmax with weights of "
            f"its own (section 3.2), but this {name} has {', '.join(chosen)}; set "
            f"keep='all', or call set_params({', '.join(wanted)}), as "
            "NeuralLM.from_paper does."
        )

    # -- from windows, and from an earlier fit ----------------------------------

    def with_checked_arrays(self) -> Architecture:
        """Return the architecture with checked arrays of features by word."""
        features, n_words = copy(self.features), self.n_words
        if features.embeddings is not None and not isinstance(features.embeddings, str):
            features.embeddings = checked_embeddings(
                features.embeddings, n_words, self.embedding_dim
            )
        if features.word_features is not None:
            features.word_features = checked_parts(features.word_features, n_words)
        return replace(self, features=features)

    def learned(
        self, counts: Counts, windows: Callable[[], tuple[Ids, Ids]]
    ) -> Architecture:
        """Return the architecture with the classes or tree made for training."""
        features = copy(self.features)
        features.embeddings = None
        return replace(
            self, features=features, output=self.output.learned(counts, windows)
        )

    def check_continues(self, fitted: Architecture) -> None:
        """Raise ValueError if a fitted network has another architecture."""
        before = fitted.settings()
        for name, value in self.settings().items():
            if name not in ARRAYS and value != before[name]:
                raise changed(f"{name}={value!r} is", f" ({before[name]!r})")
        matrices = self.features.word_features, fitted.features.word_features
        if not _same_matrix(*matrices):
            raise changed("features__word_features is")
        self.output.check_continued(fitted.output)

    # -- parts ----------------------------------------------------------------

    def parts(self, loss: Loss) -> Parts:
        """Make the parts for training with `loss`, after `learned`."""
        estimate, m = loss.estimate(), self.embedding_dim
        inputs = Concatenation(self.order - 1, m)
        if self.n_distant:
            inputs = DistantAverages(self.order - 1, m, self.n_distant)
        n_senses = self.features.n_senses
        return Parts(
            MixedSenses(inputs, n_senses) if n_senses > 1 else inputs,
            self.output.hidden_layer(self._units(), m),
            self.output.part(estimate),
            self._features(estimate),
        )

    def _units(self) -> Tanh:
        units = Tanh(self.h) if self.h else NoHidden()
        if self.n_memory:
            units = LSTM(self.h, self.n_memory)
        return Residual(self.h, units, self.widths) if self.widths else units

    def _features(self, estimate: Estimate | None) -> word_features.Features:
        m, features, tied = self.embedding_dim, self.features, self.output.tied
        if self.output.name == "energy" and estimate is None:
            # An exact update changes the features of all words.
            return word_features.DenselyUpdated(m)
        if features.word_features is not None:
            return word_features.Composed(m, tied, features.word_features)
        if not features.trained:
            return word_features.Fixed(m)
        return word_features.Features(m, tied)


def _same_matrix(a: csr_array | None, b: csr_array | None) -> bool:
    if a is None or b is None:
        return a is b
    return bool(a.shape == b.shape and not (a != b).nnz)
