"""NeuralLM: the model of section 2."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from nplm.base.checks import plain
from nplm.base.warnings import warn
from nplm.models.neural.conflicts import check_neural
from nplm.models.neural.fitting.windows import Windows
from nplm.models.neural.network.dropout import Dropout
from nplm.models.neural.network.features import (
    Composed,
    Features,
    Fixed,
    checked_embeddings,
    checked_parts,
)
from nplm.models.neural.network.hidden import Projected
from nplm.models.neural.network.inputs import Concatenation, MixedSenses
from nplm.models.neural.network.network import Parts
from nplm.models.neural.network.outputs.base import Output
from nplm.models.neural.network.outputs.classes import Classes
from nplm.models.neural.network.outputs.sampled import (
    SampledSoftmax,
    SampledTiedSoftmax,
)
from nplm.models.neural.network.outputs.softmax import Softmax, TiedSoftmax
from nplm.models.neural.network.outputs.tree import Tree
from nplm.models.neural.network_lm import NetworkLM, view
from nplm.models.neural.paper import settings_of
from nplm.models.neural.shared_docs import documented
from nplm.text.word_rows import SPELLING
from nplm.training.checkpoint import fingerprint

__all__ = ["NeuralLM"]

# Words are drawn where the vocabulary has more than so many times as many.
MANY = 2


@documented
class NeuralLM(NetworkLM):
    """Feed-forward neural language model of Bengio et al. (2003), section 2.

    The unnormalised log-probability of every word is equation (1)::

        y = b + W x + U tanh(d + H x)

    where x is the concatenation of the learned feature vectors ``C[w]`` of the
    context's words, nearest first; a softmax turns y into probabilities.
    The defaults are one recipe, to begin with on any text
    (:doc:`/measured/default` has how far a search gets beyond it): much dropout, Adam,
    drawn words where the vocabulary is large, and a step that falls, and a fit that
    ends, by what held-out windows say.
    `from_paper` makes the paper's networks with the paper's training.

    Parameters
    ----------
    order : int or None, default=None
        The n of the model: it sees the nearest ``order - 1`` words. None uses
        every column of X.
    n_words : int or None, default=None
        Size of the vocabulary; None takes the largest id of the training
        windows plus one, and then refuses ids beyond it.
    n_hidden : int, default=320
        Hidden units, h. 0 needs ``direct=True``.
    embedding_dim : int, default=144
        Features of a word, m.
    direct : bool, default=False
        Direct connections W from the features to the output units.
    tied : bool, default=False
        Let the features of the words be the weights of their output units too::

            y = b + C R tanh(d + H x)

        with a learned projection R (``R_``) to `embedding_dim` numbers; direct
        connections have it project x too, beside the hidden units. Far fewer
        parameters; best with a large `embedding_dim` and `batch_size` and "adam". A
        `loss` that draws words makes and learns the features of few at each update,
        several times as fast.
    embeddings : array-like of float, shape (n_words, embedding_dim), or None
        Where the features C begin, such as `cooccurrence_embeddings` or
        ``Vocabulary.embeddings``; with `word_features`, what each word has alone. None
        draws them. Not looked at where training goes on. Inside a `TextLM` they are
        given by word: a dict of word to vector, gensim's ``KeyedVectors``, or a tuple
        ``(words, vectors)``, such as `nplm.formats.read_vectors` returns. A word of
        the vocabulary that has no vector gets one as ``Vocabulary.embeddings`` draws
        it (by `random_state`, or 0 if that is None). The `TextLM` refuses an array
        unless the words of its vocabulary are given.
    train_embeddings : bool, default=True
        False leaves C as `embeddings` has it. (The paper found such fixed features
        "unsuccessful"; :doc:`/measured/features` has figures.)
    word_features : sparse matrix or array-like, shape (n_words, n_features), or None
        What the words are made of, such as ``Vocabulary.spelling_features`` or parts
        of speech: the features of word w are its own, and for each feature f of it
        learned ones G(f) (``G_``) times the entry at (w, f) of the matrix. Inside a
        `TextLM` they are given by word: "spelling" for the
        ``Vocabulary.spelling_features`` of its vocabulary, a dict of word to row, or a
        tuple ``(words, matrix)``. A word that has no row has no such features. The
        `TextLM` refuses a matrix unless the words of its vocabulary are given.
    n_senses : int, default=1
        Feature vectors of a word (section 5.2, item 6). With two or more, to the
        features of each word of the window is added a mixture of so many learned ones
        (``S_``), by a softmax of what learned weights (``Q_``) make of the sum of the
        features of the window's other words. The first 2,000 words, which a
        `Vocabulary` has the most frequent, have their own, and the others share some.
        1 is the paper's network.
    [[n_distant]]
    output : {"softmax", "classes", "tree"}, default="softmax"
        How probabilities are made (section 5.2). "softmax" is equation (1): to train or
        score a word takes the rows of all. "classes" multiplies P(class | context) by
        P(word | class, context), two softmaxes over about ``sqrt(|V|)`` rows each.
        "tree" makes the words the leaves of a binary tree, whose inner nodes are
        logistic units that choose a branch: about ``log2 |V|`` rows for a word. Either
        sums to 1 by itself, and its threads need ``parallel="async"``. Which to choose:
        :doc:`/guide/outputs`.
    word_classes : WordClasses or array-like of int, shape (n_words,), optional
        For "classes": the class of each word, or a fitted `WordClasses` (for a grid
        search or a `TextLM`, which clone it, its ``labels_``), numbered without gaps.
        By default about ``sqrt(|V|)`` classes with the same share of the tokens of
        ``y`` each, by falling frequency: found at once, but alike in a class is then
        how frequent its words are and no more.
    word_tree : array-like of int, shape (n_words - 1, 2), or "huffman", optional
        For "tree": a row an inner node, with its two children: a word, or `n_words`
        plus the row of another node. `nplm.word_tree` makes one from classes, the best
        if they are there, and scikit-learn's clusterings from anything (``children_``).
        By default words that come after the same words are near each other: their
        principal components are cut in two again and again, which takes seconds.
        "huffman" is the tree of the words' frequencies in ``y``, which visits the
        fewest nodes, but has words together that have nothing in common. Training
        that goes on refuses another than the tree that it began with.
    loss : {"auto", "exact", "importance", "nce"}, default=?
        [[loss]]

        "auto" is "importance" where the vocabulary has more than twice `n_samples`
        words, and the other parameters allow it: of a softmax, in floats of 32 or 64
        bits, with `n_jobs` None or 1, or ``parallel="async"``. Else it is "exact", but
        for tied features with ``parallel="async"``, which train on drawn words alone.
        So threads that share rows train on all words, which takes longer than one
        thread takes with drawn ones: a warning says so.
    [[sampling]]
    [[solver]]
    learning_rate_init : float, default=2e-3
        Step at the start: for "sgd" that of one example's gradient, where the paper
        has 1e-3.
    [[learning_rate_decay]]
    alpha : float, default=0.1
        Weight decay on C, H, U and W (and on R, G, S, Q and what words have alone), not
        on the biases d and b nor on P: each example ("adam": each update) takes
        ``step * alpha`` of every weight away. The paper's, for "sgd", is 1e-4.
    dropout : float or array-like of float, shape (3,), default=(0.1, 0.25, 0.15)
        Share of the numbers that each training example leaves out, at random, while
        the others grow by as much (Srivastava et al., 2014): of the features x, of the
        hidden units, and with `tied` of what R projects them to; or a share for each.
        A large network then learns by heart less of what it sees. Scores look at all
        numbers.
    [[training]]
    precision : {"float32", "float64", "bfloat16"}, default="float32"
        Type of the parameters and of the arithmetic. "bfloat16" rounds what the
        output units multiply, in training and in scoring, to 8 bits of precision;
        parameters and sums stay in float32. It is twice as fast or more where
        the processor multiplies bfloat16 (AMX, AVX512_BF16) and refused where
        it does not. A fitted model may change between it and "float32".
    [[running]]

    Attributes
    ----------
    C_ : ndarray, shape (n_words_, embedding_dim)
        Feature vectors of the words. With `word_features` it can be set, but not
        written into.
    H_ : ndarray, shape (n_hidden, (order_ - 1) * embedding_dim)
        Hidden weights; the first `embedding_dim` columns meet the nearest word. With
        `n_distant`, H_ and W_ have `embedding_dim` columns more for each average.
    d_ : ndarray, shape (n_hidden,)
        Hidden biases.
    U_ : ndarray, shape (n_words_, n_hidden), or None
        Hidden-to-output weights; None with `tied`.
    W_ : ndarray, shape (n_words_, (order_ - 1) * embedding_dim), or None
        Direct connections; None without them, and with `tied`.
    b_ : ndarray, shape (n_words_,)
        Output biases.
    word_classes_ : ndarray of int32, shape (n_words_,), or None
        The class of each word, numbered without gaps, with ``output="classes"``. The
        rows of U_, W_ and b_ are then the classes, followed by the words in the order
        of ``np.argsort(word_classes_, kind="stable")``.
    word_tree_ : ndarray of int32, shape (n_words_ - 1, 2), or None
        The tree, with ``output="tree"``: the children of the inner node of each row of
        U_, W_ and b_, the root first. The first child has the probability
        ``sigmoid(y)``, the second ``sigmoid(-y)``.
    P_ : ndarray, shape (n_averages, n_distant), or None
        Weights of distant words by position, the nearest first; None without them.
    S_, Q_ : ndarray, shape (min(n_words_, 2001), n_senses * embedding_dim), or None
        Senses, one after the other, and the weights that choose among them: rows of
        the first words, and a last one of all others; None with one sense.
    R_ : ndarray, shape (embedding_dim, n_hidden), or None
        The projection of `tied`; direct connections are more columns.
    G_ : ndarray, shape (n_features, embedding_dim), or None
        Features of what words are made of; None without `word_features`.
    n_parameters_ : int
        Free parameters: ``|V|(1 + nm + h) + h(1 + (n-1)m)`` with direct
        connections and without `n_distant` and `n_senses`.
    [[progress]]
    order_, n_words_, classes_, n_features_in_
        The order in use, the vocabulary size, the word ids, the columns of X.

    See Also
    --------
    InterpolatedTrigram, KneserNeyLM : The n-gram models of the paper.
    MixtureLM : Mixes their probabilities with this model's.

    References
    ----------
    Bengio, Ducharme, Vincent and Jauvin (2003), A Neural Probabilistic Language
    Model, JMLR 3:1137-1155: sections 2, 3.2 and 5.1, equation (1).

    Bengio and Senecal (2003), Quick training of probabilistic neural nets by
    importance sampling, AISTATS; and (2008), Adaptive importance sampling to
    accelerate training of a neural probabilistic language model, IEEE Transactions
    on Neural Networks 19(4).

    Srivastava, Hinton, Krizhevsky, Sutskever and Salakhutdinov (2014), Dropout: a
    simple way to prevent neural networks from overfitting, JMLR 15:1929-1958.

    Mnih and Teh (2012), A fast and simple algorithm for training neural probabilistic
    language models, ICML.

    Goodman (2001), Classes for fast maximum entropy training, ICASSP.

    Morin and Bengio (2005), Hierarchical probabilistic neural network language model,
    AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> from nplm import NeuralLM, windows
    >>> X, y = windows(np.tile([0, 1, 2, 3], 50), 2)
    >>> lm = NeuralLM(n_words=4, n_hidden=8, embedding_dim=4, dropout=0,
    ...               learning_rate_init=0.05, random_state=0).fit(X, y)
    >>> lm.predict([[0, 1], [2, 3]]).tolist()
    [2, 0]
    >>> bool(lm.perplexity(X, y) < 1.5)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NetworkLM._parameter_constraints,
        "dropout": [Real, "array-like"],
        "direct": ["boolean"],
        "loss": [StrOptions({"auto", "exact", "importance", "nce"})],
        "tied": ["boolean"],
        "n_senses": [Interval(Integral, 1, None, closed="left")],
        "embeddings": ["array-like", None],
        "train_embeddings": ["boolean"],
        "word_features": ["array-like", "sparse matrix", StrOptions({SPELLING}), None],
        "output": [StrOptions({"softmax", "classes", "tree"})],
        "word_classes": ["array-like", HasMethods("transform"), None],
        "word_tree": ["array-like", StrOptions({"huffman"}), None],
    }

    def __init__(
        self,
        order: int | None = None,
        *,
        n_words: int | None = None,
        n_hidden: int = 320,
        embedding_dim: int = 144,
        direct: bool = False,
        tied: bool = False,
        embeddings: ArrayLike | None = None,
        train_embeddings: bool = True,
        word_features: Any = None,
        n_senses: int = 1,
        n_distant: int = 0,
        output: str = "softmax",
        word_classes: Any = None,
        word_tree: ArrayLike | str | None = None,
        loss: str = "auto",
        n_samples: int = 1024,
        proposal: str | ArrayLike = "unigram",
        proposal_power: float = 1.0,
        min_effective_samples: float = 0,
        solver: str = "adam",
        learning_rate: str = "adaptive",
        learning_rate_init: float = 2e-3,
        learning_rate_decay: float = 1e-8,
        alpha: float = 0.1,
        dropout: float | ArrayLike = (0.1, 0.25, 0.15),
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-5,
        batch_size: int = 256,
        max_iter: int = 100,
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 2,
        tol: float = 1e-3,
        shuffle: bool = True,
        n_jobs: int | None = None,
        parallel: str = "rows",
        precision: str = "float32",
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.order = order
        self.n_words = n_words
        self.n_hidden = n_hidden
        self.embedding_dim = embedding_dim
        self.direct = direct
        self.tied = tied
        self.embeddings = embeddings
        self.train_embeddings = train_embeddings
        self.word_features = word_features
        self.n_senses = n_senses
        self.n_distant = n_distant
        self.output = output
        self.word_classes = word_classes
        self.word_tree = word_tree
        self.loss = loss
        self.n_samples = n_samples
        self.proposal = proposal
        self.proposal_power = proposal_power
        self.min_effective_samples = min_effective_samples
        self.solver = solver
        self.learning_rate = learning_rate
        self.learning_rate_init = learning_rate_init
        self.learning_rate_decay = learning_rate_decay
        self.alpha = alpha
        self.dropout = dropout
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.shuffle = shuffle
        self.n_jobs = n_jobs
        self.parallel = parallel
        self.precision = precision
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def from_paper(cls, name: str, **changes: Any) -> Self:
        """Make a network of the paper's tables, to be trained as it was there.

        Example by example, with a step of ``1e-3 / (1 + 1e-8 t)`` and weight decay of
        1e-4 for Brown and 1e-5 for AP News, for 20 epochs and 5 at most (section 4.2).
        Held-out windows stop it early, as there (`early_stopping`).

        Parameters
        ----------
        name : {"MLP1", "MLP3", "MLP5", "MLP7", "MLP9", "AP"}
            Row of Table 1, or "AP" for the network of Table 2. The rows with even
            numbers are mixtures: `MixtureLM` of one of these and
            `InterpolatedTrigram`.
        **changes
            Other parameters, or other values, such as ``batch_size=32``, which is
            much faster.

        Returns
        -------
        lm : NeuralLM
            Not fitted.

        Raises
        ------
        ValueError
            If no network of the paper has that name.

        Examples
        --------
        >>> from nplm import NeuralLM
        >>> lm = NeuralLM.from_paper("MLP9", n_words=17_907)
        >>> lm.order, lm.n_hidden, lm.embedding_dim, lm.direct, lm.batch_size
        (5, 100, 30, False, 1)
        """
        return cls(**(settings_of(name) | changes))

    def _loss(self) -> str:
        """Give the loss; "auto" draws words where that can be done, and is faster."""
        if self.loss != "auto":
            return self.loss
        draws = self._would_draw() and not self._shares_rows()
        return "importance" if draws else "exact"

    def _would_draw(self) -> bool:
        """Whether one thread draws words, with "auto"."""
        # A short-list's network predicts some words: no proposal has just these.
        all_words = self.output == "softmax" and self._n_outputs is None
        must = self.tied and self.parallel != "rows"
        many = getattr(self, "n_words_", 0) > MANY * plain(self.n_samples)
        return all_words and self.precision != "bfloat16" and (must or many)

    def _shares_rows(self) -> bool:
        """Whether threads are asked to share the output's rows, on any machine."""
        return self.parallel == "rows" and self.n_jobs not in (None, 1)

    def _output(self) -> Output:
        direct, estimate = bool(self.direct), self._estimate()
        if self.tied:  # the projection looks at x, not the output
            if estimate is None:
                return TiedSoftmax(False)
            return SampledTiedSoftmax(False, estimate=estimate)
        if estimate is not None:
            return SampledSoftmax(direct, estimate=estimate)
        if self.output == "classes":
            return Classes(direct, self.word_classes)
        if self.output == "tree":
            return Tree(direct, self.word_tree)
        return Softmax(direct)

    def _dropout(self) -> Dropout:
        return Dropout.of(self.dropout)

    def _parts(self) -> Parts:
        parts, n_senses = super()._parts(), int(self.n_senses)
        if n_senses > 1:
            assert isinstance(parts.inputs, Concatenation)
            parts = parts._replace(inputs=MixedSenses(parts.inputs, n_senses))
        if not self.tied:
            return parts
        m, direct = parts.features.m, bool(self.direct)
        return parts._replace(hidden=Projected(parts.hidden.n_hidden, m, direct))

    def _features(self) -> Features:
        m, start = int(self.embedding_dim), None
        if self.embeddings is not None:
            start = checked_embeddings(self.embeddings, self.n_words_, m)
        if self.word_features is not None:
            matrix = checked_parts(self.word_features, self.n_words_)
            return Composed(m, start, bool(self.tied), matrix)
        return (
            Features(m, start, bool(self.tied))
            if self.train_embeddings
            else Fixed(m, start)
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._dropout()  # raises where it is none
        check_neural(self)

    def _check_fit(self, *args: Any) -> Windows:
        windows = super()._check_fit(*args)
        self._features()  # raises where they are none of these words
        if self.loss == "auto" and self._shares_rows() and self._would_draw():
            warn(
                f"n_jobs={self.n_jobs} with parallel='rows' shares out all "
                f"{self.n_words_} words, and so the fit trains on all of them: "
                f"loss='auto' draws {self.n_samples} a mini-batch with n_jobs=1 or "
                "parallel='async', which takes a fraction of the time. Set either, or "
                "loss='exact' for threads that train on all words.",
                UserWarning,
            )
        return windows

    def _shape(self) -> dict[str, Any]:
        parameters = self._parameters
        direct, tied = self.W_ is not None, parameters.tied
        if tied:
            direct = self.R_.shape[1] > len(self.d_)
        return super()._shape() | {
            "direct": direct,
            "output": self._made_of.output.name,
            "train_embeddings": parameters.derived != ("C",) or self.G_ is not None,
            "tied": tied,
            "n_senses": getattr(self._made_of.inputs, "n_senses", 1),
        }

    def _check_shape(self) -> None:
        super()._check_shape()
        fitted = getattr(self._made_of.features, "matrix", None)
        asked = self.word_features
        if asked is not None and fitted is not None:
            asked = checked_parts(asked, self.n_words_)
            if asked.shape == fitted.shape and not (asked != fitted).nnz:
                return
        if asked is not None or fitted is not None:
            raise ValueError(
                "word_features are not those of the network fitted so far, which "
                "cannot change while training goes on; set them back, or fit a new "
                "model (clone this one)."
            )

    def _made_with(self) -> dict[str, Any]:
        # The loss is not "auto", which other parameters decide.
        own = {"tied": self._parameters.tied, "loss": "exact"}
        given = self._made_of.output.made_with() | self._made_of.features.made_with()
        return super()._made_with() | own | given

    def _fingerprint(self) -> dict[str, Any]:
        decided = {"loss": self._loss()}
        given: dict[str, Any] = {"embeddings": None, "word_features": None}
        if self.embeddings is not None:
            given["embeddings"] = np.asarray(self.embeddings)
        if self.word_features is not None:
            matrix = checked_parts(self.word_features, self.n_words_)
            for name in ("data", "indices", "indptr"):
                given[f"word_features.{name}"] = getattr(matrix, name)
        if self.word_classes is not None:
            labels = getattr(self.word_classes, "labels_", self.word_classes)
            given["word_classes"] = np.asarray(labels)
        if self.word_tree is not None and not isinstance(self.word_tree, str):
            given["word_tree"] = np.asarray(self.word_tree)
        return super()._fingerprint() | fingerprint(decided, given)

    @property
    def word_classes_(self) -> NDArray[np.int32] | None:
        """The class of each word, or None without classes."""
        check_is_fitted(self)
        labels: NDArray[np.int32] | None = getattr(self._made_of.output, "labels", None)
        return labels

    @property
    def word_tree_(self) -> NDArray[np.int32] | None:
        """The children of each inner node, or None without a tree."""
        check_is_fitted(self)
        tree: NDArray[np.int32] | None = getattr(self._made_of.output, "children", None)
        return tree

    U_ = view("U", "Hidden-to-output weights, or None.")
    W_ = view("W", "Direct connections, or None.")
    S_ = view("S", "Senses of words, or None.")
    Q_ = view("Q", "What their senses ask of other words, or None.")
    R_ = view("R", "Projection to the features, or None.")
    G_ = view("G", "Features of what words are made of, or None.")
