"""Options for the output: softmax, classes or tree; and the output of an energy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import HasMethods, StrOptions

from nplm.base.array_types import Counts, Ids
from nplm.base.checks import check_classes
from nplm.base.estimators.bases import Whole, hyperparameters
from nplm.base.exceptions import parameter_error
from nplm.base.word_trees import huffman
from nplm.models.neural.network.hidden import Linear, Projected, Tanh
from nplm.models.neural.network.outputs import base, classes, energy, softmax, tree
from nplm.models.neural.network.outputs.estimates import Estimate
from nplm.models.neural.options.base import Option

MakeWindows = Callable[[], tuple[Ids, Ids]]


class Output(Option):
    """Base class of the outputs, with values for the parameters that a kind lacks."""

    name: ClassVar[str]  # the string that selects it with its defaults
    has_samples: ClassVar[bool] = False  # whether noise samples can train it

    direct: bool = False
    tied: bool = False
    target_weights: bool = False
    n_outputs: int | None = None
    classes: Any = None
    tree: Any = None
    tree_from: str = "given"  # the origin of `tree`: or "huffman", or "contexts"
    n_branches: int = 2

    def part(self, estimate: Estimate | None) -> base.Output:
        """Return the part of a network, which trains with an estimate or exactly."""
        raise NotImplementedError

    def hidden_layer(self, units: Tanh, embedding_dim: int) -> Tanh:
        """Return the hidden units that the part uses, made of the network's."""
        return units

    def checked(self, n_words: int) -> Self:
        """Return the option with a checked copy of its classes or tree, if any."""
        return self

    def learned(self, counts: Counts, windows: MakeWindows) -> Self:
        """Return the option with its classes or tree, made for training if need be."""
        return self

    def check_continued(self, fitted: Self) -> None:
        """Raise ValueError unless training continues with the same classes or tree."""


@hyperparameters
class Softmax(Output):
    """A softmax over all words, equation (1) of the paper.

    Exact training and scoring compute the output units of all words.

    Parameters
    ----------
    direct : bool, default=False
        Direct connections W from the features to the output units.
    tied : bool, default=False
        The features of the words are also the weights of their output units::

            y = b + C R tanh(d + H x)

        with a learned projection R (``R_``) to ``embedding_dim`` values; with `direct`
        it projects x too. Such a network has far fewer parameters, and works best with
        a large ``embedding_dim`` and ``batch_size`` and with `Adam`. With noise
        samples, an update changes the features of few words, and is several times as
        fast.
    n_outputs : int or None, default=None
        Number of outcomes, if they are not the vocabulary, such as the positions of a
        short-list (`ShortlistLM` sets it). None uses the vocabulary.

    See Also
    --------
    Classes, Tree : Probabilities of a next word from few output units.

    Examples
    --------
    >>> from nplm import NeuralLM, Softmax
    >>> NeuralLM(output=Softmax(direct=True)).get_params()["output__tied"]
    False
    """

    name = "softmax"
    has_samples = True
    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        "direct": ["boolean"],
        "tied": ["boolean"],
        "n_outputs": [Whole(1), None],
    }

    direct: bool = False
    tied: bool = False
    n_outputs: int | None = None

    def part(self, estimate: Estimate | None) -> base.Output:
        direct = self.direct and not self.tied  # direct connections of R are its own
        if estimate is not None:
            if self.tied:
                return softmax.SampledTiedSoftmax(direct, estimate=estimate)
            return softmax.SampledSoftmax(direct, estimate=estimate)
        exact = softmax.TiedSoftmax if self.tied else softmax.Softmax
        return exact(direct, n_outputs=self.n_outputs)

    def hidden_layer(self, units: Tanh, embedding_dim: int) -> Tanh:
        if not self.tied:
            return units
        return Projected(units.n_hidden, units, embedding_dim, self.direct)


@hyperparameters
class Classes(Output):
    """Two softmaxes: P(class | context) times P(word | class, context).

    Each has about ``sqrt(|V|)`` output units (section 5.2; Goodman, 2001). The
    probabilities sum to 1.

    Parameters
    ----------
    classes : WordClasses or array-like of int, shape (n_words,), or None
        The class of each word, numbered without gaps, or a fitted `WordClasses` (in a
        grid search or a `TextLM`, which clone it, its ``labels_``). None makes about
        ``sqrt(|V|)`` classes of words of similar frequency, each with the same share of
        the next words. They are fast to make, but the words of a class only have their
        frequency in common.
    direct : bool, default=False
        Direct connections W from the features to the output units.

    See Also
    --------
    WordClasses : Finds classes of words with similar contexts.
    Tree : Several levels, with fewer output units for each word.

    References
    ----------
    Goodman (2001), Classes for fast maximum entropy training, ICASSP.

    Examples
    --------
    >>> from nplm import Classes, NeuralLM
    >>> lm = NeuralLM(output=Classes([0, 0, 1, 1]), n_words=4)
    >>> lm.output
    Classes(classes=[0, 0, 1, 1])
    """

    name = "classes"
    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        "classes": ["array-like", HasMethods("transform"), None],
        "direct": ["boolean"],
    }

    classes: Any = field(default=None, kw_only=False)
    direct: bool = False

    def part(self, estimate: Estimate | None) -> base.Output:
        return classes.Classes.from_labels(self.direct, self.classes)

    def checked(self, n_words: int) -> Self:
        if self.classes is None:
            return self
        return self._with(check_classes(self.classes, "classes", n_words))

    def _with(self, labels: Ids) -> Self:
        return type(self)(frozen(labels), direct=self.direct)

    def learned(self, counts: Counts, windows: MakeWindows) -> Self:
        if self.classes is None:
            return self._with(classes.frequency_bins(counts + 1))
        return self.checked(len(counts))

    def check_continued(self, fitted: Self) -> None:
        labels = self.checked(len(fitted.classes)).classes
        if labels is not None and not np.array_equal(labels, fitted.classes):
            raise changed("output__classes is", back=" (or to None)")


@hyperparameters
class Tree(Output):
    """Hierarchical softmax: a tree with the words as leaves.

    Each inner node is a softmax over its branches (section 5.2; Morin and Bengio,
    2005). The probabilities sum to 1.

    Parameters
    ----------
    tree : array-like of int, shape (n_words - 1, 2), or "huffman" or None
        A binary tree. A row for each inner node has its two children: a word, or
        ``n_words`` plus the row of another node. `nplm.word_tree` makes a tree from
        classes of words, which may give better results; scikit-learn's hierarchical
        clusterings have one as ``children_``. None makes a tree in seconds, by repeated
        bisection of canonical variables of words and the two words before them: words
        that follow the same words are close. "huffman" makes the tree of the
        frequencies of the next words: it has the shortest paths, but puts unrelated
        words together. Continued training keeps its tree.
    n_branches : int, default=128
        Maximum number of branches of an inner node, from 2 to 1,024. A node takes in
        the inner nodes of `tree` below it, one by one in the order of their rows, until
        it has that many branches. So the first rows should split the most frequent
        words, as those of the default tree and of "huffman" do, or choose between
        classes, as those of `word_tree` do: best have as many classes as branches, or
        more. 2 is `tree` itself. More branches give a lower perplexity and take longer.
    direct : bool, default=False
        Direct connections W from the features to the output units.

    See Also
    --------
    word_tree : Makes a tree from classes of words.
    Classes : Two levels.

    References
    ----------
    Morin and Bengio (2005), Hierarchical probabilistic neural network language model,
    AISTATS.

    Examples
    --------
    >>> from nplm import NeuralLM, Tree
    >>> NeuralLM(output=Tree("huffman", n_branches=2)).output
    Tree(n_branches=2, tree='huffman')
    """

    name = "tree"
    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        "tree": ["array-like", StrOptions({"huffman"}), None],
        "n_branches": [Whole(2, tree.MAX_BRANCHES)],
        "direct": ["boolean"],
    }

    tree: Any = field(default=None, kw_only=False)
    n_branches: int = 128
    direct: bool = False

    def part(self, estimate: Estimate | None) -> base.Output:
        return tree.Tree.from_children(self.direct, self.tree, self.n_branches)

    def checked(self, n_words: int) -> Self:
        if self.tree is None or isinstance(self.tree, str):
            return self
        return self._with(tree.checked_tree(self.tree, n_words), "given")

    def _with(self, children: Ids, tree_from: str) -> Self:
        option = type(self)(
            frozen(children), n_branches=self.n_branches, direct=self.direct
        )
        option.tree_from = tree_from
        return option

    def learned(self, counts: Counts, windows: MakeWindows) -> Self:
        if self.tree is None:
            return self._with(tree.context_tree(counts, *windows()), "contexts")
        if isinstance(self.tree, str):
            return self._with(huffman(counts + 1), self.tree)
        return self.checked(len(counts))

    def check_continued(self, fitted: Self) -> None:
        # New windows would make another tree, so compare the origins.
        if self.tree is None:
            is_same = fitted.tree_from in ("contexts", "given")
        elif isinstance(self.tree, str):
            is_same = fitted.tree_from == self.tree
        else:
            tree = self.checked(len(fitted.tree) + 1).tree
            is_same = np.array_equal(tree, fitted.tree)
        if not is_same:
            raise changed("output__tree is", back=" (or to tree_)")


@hyperparameters
class Energy(Output):
    """The output of `EnergyLM`, whose parameters select it."""

    name = "energy"
    has_samples = True
    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        "target_weights": ["boolean"],
    }

    target_weights: bool = False

    def part(self, estimate: Estimate | None) -> base.Output:
        if estimate is None:
            return energy.Energy(target_weights=self.target_weights)
        return energy.SampledEnergy(
            False, target_weights=self.target_weights, estimate=estimate
        )

    def hidden_layer(self, units: Tanh, embedding_dim: int) -> Tanh:
        return Linear(units.n_hidden)


OUTPUTS: dict[str, type[Output]] = {
    kind.name: kind for kind in (Softmax, Classes, Tree)
}


def frozen(array: Ids) -> Ids:
    """Return a read-only copy: kernels index by it."""
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def changed(what: str, was: str = "", back: str = "") -> ValueError:
    """Return the error of a parameter that is not that of the fitted network."""
    return parameter_error(
        "{0} not that of the fitted network{1}, and cannot change when training "
        "continues", what, was,
        advice=f"; set it back{back}, or fit a new model (clone this one).",
    )  # fmt: skip
