"""Options for the output: softmax, classes or tree."""

from __future__ import annotations

from typing import Any, ClassVar

from numpy.typing import ArrayLike
from sklearn.utils._param_validation import HasMethods, StrOptions

from nplm.base.estimators import Whole
from nplm.models.neural.network.outputs.tree import MAX_BRANCHES
from nplm.models.neural.options.base import Option

__all__ = ["OUTPUTS", "Classes", "Softmax", "Tree"]


class Softmax(Option):
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "direct": ["boolean"],
        "tied": ["boolean"],
        "n_outputs": [Whole(1), None],
    }

    def __init__(
        self, *, direct: bool = False, tied: bool = False, n_outputs: int | None = None
    ) -> None:
        self.direct = direct
        self.tied = tied
        self.n_outputs = n_outputs

    def _fields(self) -> dict[str, Any]:
        n_outputs = None if self.n_outputs is None else int(self.n_outputs)
        return {
            "output": "softmax", "direct": bool(self.direct), "tied": bool(self.tied),
            "n_outputs": n_outputs,
        }  # fmt: skip


class Classes(Option):
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "classes": ["array-like", HasMethods("transform"), None],
        "direct": ["boolean"],
    }

    def __init__(self, classes: Any = None, *, direct: bool = False) -> None:
        self.classes = classes
        self.direct = direct

    def _fields(self) -> dict[str, Any]:
        own = {"classes": self.classes, "direct": bool(self.direct)}
        return {"output": "classes", **own}


class Tree(Option):
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "tree": ["array-like", StrOptions({"huffman"}), None],
        "n_branches": [Whole(2, MAX_BRANCHES)],
        "direct": ["boolean"],
    }

    def __init__(
        self,
        tree: ArrayLike | str | None = None,
        *,
        n_branches: int = 128,
        direct: bool = False,
    ) -> None:
        self.tree = tree
        self.n_branches = n_branches
        self.direct = direct

    def _fields(self) -> dict[str, Any]:
        tree = str(self.tree) if isinstance(self.tree, str) else self.tree
        return {
            "output": "tree", "tree": tree, "n_branches": int(self.n_branches),
            "direct": bool(self.direct),
        }  # fmt: skip


OUTPUTS: dict[str, type[Option]] = {
    "softmax": Softmax, "classes": Classes, "tree": Tree,
}  # fmt: skip
