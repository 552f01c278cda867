"""Describe a network: its sizes and kinds of parts, without trained parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from nplm.base.checks import check_classes
from nplm.models.neural.network.features import (
    Composed,
    DenselyUpdated,
    Features,
    Fixed,
)
from nplm.models.neural.network.hidden import (
    Linear,
    NoHidden,
    Projected,
    Residual,
    Tanh,
)
from nplm.models.neural.network.inputs import (
    Concatenation,
    DistantAverages,
    MixedSenses,
)
from nplm.models.neural.network.memory import Memory
from nplm.models.neural.network.network import Parts
from nplm.models.neural.network.outputs.base import Output
from nplm.models.neural.network.outputs.classes import Classes, frequency_bins
from nplm.models.neural.network.outputs.energy import Energy
from nplm.models.neural.network.outputs.estimates import Estimate
from nplm.models.neural.network.outputs.sampled import (
    SampledEnergy,
    SampledSoftmax,
    SampledTiedSoftmax,
)
from nplm.models.neural.network.outputs.softmax import Softmax, TiedSoftmax
from nplm.models.neural.network.outputs.tree import Tree, checked_tree, make_tree

__all__ = ["Architecture"]

# Estimator parameters of the fields that belong to an option.
PARAMETER_NAMES = {
    "n_senses": "features__n_senses", "trained": "features__trained",
    "word_features": "features__word_features", "direct": "output__direct",
    "tied": "output__tied", "n_outputs": "output__n_outputs",
    "classes": "output__classes", "tree": "output__tree",
    "n_branches": "output__n_branches",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Architecture:
    """Describe a network and make its parts.

    - `n_words`: size of the vocabulary
    - `order`: the n of the n-grams: the context window has the nearest n - 1 words
    - `n_hidden`: number of hidden units h, or that and the number of units of each
      residual block. One without blocks is an int
    - `embedding_dim`: number of features m of a word
    - `n_distant`: number of distant words whose averaged features are further inputs
    - `n_memory`: number of words of a window whose hidden units are remembered; 0
      without a memory
    - `n_senses`: number of feature vectors of a word
    - `trained`: whether training updates the features
    - `word_features` (n_words, n_features): features that words share, such as parts of
      their spelling
    - `output`: the kind of output
    - `direct`, `tied`, `target_weights`: whether the network has direct connections W,
      uses the features as output weights, and has weights v of each word ("energy"
      only)
    - `n_outputs`: number of outcomes of a softmax over something other than the
      vocabulary
    - `classes` (n_words,): the class of each word. If None, `learned` makes the classes
    - `tree` (n_words - 1, 2): the tree of words. If "huffman" or None, `learned` makes
      the tree
    - `tree_from`: the origin of `tree`: "given", "huffman" or "contexts"
    - `n_branches`: maximum number of branches of the tree's inner nodes
    """

    n_words: int
    order: int
    n_hidden: int | tuple[int, ...]
    embedding_dim: int
    n_distant: int = 0
    n_memory: int = 0
    n_senses: int = 1
    trained: bool = True
    word_features: csr_array | None = None
    output: str = "softmax"
    direct: bool = False
    tied: bool = False
    target_weights: bool = False
    n_outputs: int | None = None
    classes: Any = None
    tree: ArrayLike | str | None = None
    tree_from: str = "given"
    n_branches: int = 2

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
        return self.n_words if self.n_outputs is None else self.n_outputs

    # -- checks ---------------------------------------------------------------

    def check_next_words(self, words: NDArray[np.int32], name: str) -> None:
        """Raise ValueError if next words are not outcomes of `n_outputs`."""
        if self.n_outputs is not None and words.size and words.max() >= self.n_outputs:
            raise ValueError(
                f"{name} has {words.max()}, but output__n_outputs={self.n_outputs}; "
                "next words must be below it."
            )

    def check(self, loss: Estimate | None) -> None:
        """Raise ValueError if the options are incompatible."""
        if self.n_hidden == 0 and not self.direct:
            raise ValueError(
                "n_hidden=0 without direct connections leaves no path from the "
                "context to the output units; set output__direct=True or n_hidden "
                "above 0."
            )
        if self.n_memory:
            self._check_memory()
        if loss is not None and self.output not in ("softmax", "energy"):
            raise ValueError(
                f"loss={loss.loss!r} replaces a softmax over all words by noise "
                f"samples, but output={self.output!r} has no such softmax; set "
                "loss='exact' or output='softmax'."
            )
        if not self.trained and (self.tied or self.word_features is not None):
            name = "output__tied" if self.tied else "features__word_features"
            raise ValueError(
                f"features__trained=False keeps the features fixed, but {name} trains "
                "them; set only one of the two."
            )
        if self.n_outputs is not None and (self.tied or loss is not None):
            name = "output__tied=True" if loss is None else f"loss={loss.loss!r}"
            raise ValueError(
                f"output__n_outputs={self.n_outputs} needs a full softmax with weights "
                f"of its own, but {name} needs one output unit per word; set only one "
                "of the two."
            )

    def _check_memory(self) -> None:
        if self.h == 0:
            raise ValueError(
                f"n_memory={self.n_memory} is a memory of hidden units, and n_hidden=0 "
                "has none; set n_hidden above 0, or n_memory=0."
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

    def check_shared(self, loss: Estimate | None, name: str) -> None:
        """Raise ValueError unless processes can share the output units (section 3.2).

        `name` is that of the estimator.
        """
        output = self.kind_of_output(loss)
        if output.rows_are_shared and not output.rows_are_features:
            return
        if self.output == "energy":
            raise ValueError(
                "a shard of a network has output units of a full softmax (section "
                f"3.2), but {name} has no softmax; set keep='all'."
            )
        # "auto" may choose a sampled loss once the other options have changed.
        found, wanted = [], ["loss='exact'"]
        if loss is not None:
            found.append(f"loss={loss.loss!r}")
        if self.tied:
            found.append("output__tied=True")
            wanted.append("output__tied=False")
        if self.output != "softmax":
            found.append(f"output={self.output!r}")
            wanted.append("output='softmax'")
        raise ValueError(
            "a shard of a network has output units of a full softmax with weights of "
            f"its own (section 3.2), but this {name} has {', '.join(found)}; set "
            f"keep='all', or call set_params({', '.join(wanted)}), as "
            "NeuralLM.from_paper does."
        )

    # -- from windows, and from an earlier fit ----------------------------------

    def learned(
        self,
        counts: NDArray[np.int64],
        X: NDArray[np.int32],
        y: NDArray[np.int32],
    ) -> Architecture:
        """Return the architecture with the classes or tree made for training.

        `counts` are those of the next words; a tree of contexts also needs the windows.
        """
        if self.output == "classes":
            if self.classes is None:
                labels = frequency_bins(counts + 1)
            else:
                labels = check_classes(self.classes, "classes", self.n_words)
            return replace(self, classes=_frozen(labels))
        if self.output == "tree":
            made_from = "given"
            if self.tree is None or isinstance(self.tree, str):
                made_from = self.tree or "contexts"
            tree = make_tree(self.tree, counts, X, y)
            return replace(self, tree=_frozen(tree), tree_from=made_from)
        return self

    def continued(self, fitted: Architecture) -> Architecture:
        """Return `fitted`, or raise ValueError if this architecture differs."""
        for name in (
            "order", "n_words", "n_hidden", "embedding_dim", "n_distant", "n_memory",
            "n_senses",
            "trained", "output", "direct", "tied", "target_weights", "n_outputs",
            "n_branches",
        ):  # fmt: skip
            asked, was = getattr(self, name), getattr(fitted, name)
            if asked != was:
                parameter = PARAMETER_NAMES.get(name, name)
                raise _changed(f"{parameter}={asked!r} is", f" ({was!r})")
        if not _same_matrix(self.word_features, fitted.word_features):
            raise _changed("features__word_features is")
        if self.output == "classes" and self.classes is not None:
            asked = check_classes(self.classes, "classes", self.n_words)
            if not np.array_equal(asked, fitted.classes):
                raise _changed("output__classes is", back=" (or to None)")
        if self.output == "tree" and not self._has_tree_of(fitted):
            raise _changed("output__tree is", back=" (or to tree_)")
        return fitted

    def _has_tree_of(self, fitted: Architecture) -> bool:
        # New windows would make another tree, so compare the origins.
        if self.tree is None:
            return fitted.tree_from in ("contexts", "given")
        if isinstance(self.tree, str):
            return fitted.tree_from == self.tree
        return np.array_equal(checked_tree(self.tree, self.n_words), fitted.tree)  # type: ignore[arg-type]

    # -- parts ----------------------------------------------------------------

    def parts(self, loss: Estimate | None) -> Parts:
        """Make the parts for training with `loss`; None is the exact likelihood.

        Call `learned` first if the output uses classes or a tree.
        """
        inputs = self._inputs()
        return Parts(inputs, self._hidden(), self._output(loss), self._features(loss))

    def _inputs(self) -> Concatenation | MixedSenses:
        n_window, m = self.order - 1, self.embedding_dim
        inputs = Concatenation(n_window, m)
        if self.n_distant:
            inputs = DistantAverages(n_window, m, self.n_distant)
        return MixedSenses(inputs, self.n_senses) if self.n_senses > 1 else inputs

    def _hidden(self) -> Tanh:
        if self.output == "energy":
            return Linear(self.h)
        if self.tied:
            return Projected(self.h, self._units(), self.embedding_dim, self.direct)
        return self._units()

    def _units(self) -> Tanh:
        units = Tanh(self.h) if self.h else NoHidden()
        if self.n_memory:
            units = Memory(self.h, self.n_memory, units)
        return Residual(self.h, units, self.widths) if self.widths else units

    def _output(self, loss: Estimate | None) -> Output:
        if self.output == "energy":
            if loss is None:
                return Energy(target_weights=self.target_weights)
            return SampledEnergy(
                False, target_weights=self.target_weights, estimate=loss
            )
        if self.output == "classes":
            return Classes.from_labels(self.direct, self.classes)
        if self.output == "tree":
            return Tree.from_children(self.direct, self.tree, self.n_branches)  # type: ignore[arg-type]
        if self.tied:  # direct connections belong to the projection
            if loss is None:
                return TiedSoftmax(False)
            return SampledTiedSoftmax(False, estimate=loss)
        if loss is None:
            return Softmax(self.direct, n_outputs=self.n_outputs)
        return SampledSoftmax(self.direct, estimate=loss)

    def _features(self, loss: Estimate | None) -> Features:
        m = self.embedding_dim
        if self.output == "energy" and loss is None:
            return DenselyUpdated(
                m
            )  # an exact update changes the features of all words
        if self.word_features is not None:
            return Composed(m, self.tied, self.word_features)
        return Features(m, self.tied) if self.trained else Fixed(m)

    def kind_of_output(self, loss: Estimate | None) -> type[Output]:
        """Return the class of the output that `parts` makes."""
        sampled: dict[str, type[Output]] = {"energy": SampledEnergy}
        exact: dict[str, type[Output]] = {
            "energy": Energy, "classes": Classes, "tree": Tree,
        }  # fmt: skip
        if loss is not None:
            plain = SampledTiedSoftmax if self.tied else SampledSoftmax
            return sampled.get(self.output, plain)
        return exact.get(self.output, TiedSoftmax if self.tied else Softmax)


def _changed(what: str, was: str = "", back: str = "") -> ValueError:
    return ValueError(
        f"{what} not that of the fitted network{was}, and cannot change when training "
        f"continues; set it back{back}, or fit a new model (clone this one)."
    )


def _frozen(array: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return a read-only copy: kernels index by it."""
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def _same_matrix(a: csr_array | None, b: csr_array | None) -> bool:
    if a is None or b is None:
        return a is b
    return bool(a.shape == b.shape and not (a != b).nnz)
