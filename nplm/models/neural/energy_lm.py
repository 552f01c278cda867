"""EnergyLM: the model of section 5.1."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _num_samples, check_is_fitted, column_or_1d

from nplm.base.atomic import all_or_nothing
from nplm.base.checks import Whole, check_ids
from nplm.base.fitted import Fitted
from nplm.models.neural.fitting.fit import Door, goes_on
from nplm.models.neural.fitting.windows import Windows
from nplm.models.neural.network.features import Features, Met
from nplm.models.neural.network.hidden import Linear
from nplm.models.neural.network.network import Parts
from nplm.models.neural.network.outputs.base import Output
from nplm.models.neural.network.outputs.energy import Energy
from nplm.models.neural.network.outputs.sampled import SampledEnergy
from nplm.models.neural.network.parameters import Parameters
from nplm.models.neural.network.solvers import State
from nplm.models.neural.network_lm import NetworkLM, view
from nplm.models.neural.shared_docs import documented

__all__ = ["EnergyLM"]


@documented
class EnergyLM(NetworkLM):
    """Energy-minimisation network of Bengio et al. (2003), section 5.1.

    The next word is represented by its features, as the context's words are. A network
    gives the energy of a context and a next word, low where they go together::

        E = v . tanh(d + H x) + b[w]

    where x is the concatenation of the feature vectors ``C[w]`` of the next word and
    of the context's, nearest first; the probability of a next word is proportional
    to exp(-E), normalised over all words. Similar words then have similar
    probabilities, and a word that training never saw can be added with a guess of its
    features alone: see `add_words`.

    Each example computes a tanh for every word and hidden unit, so training takes
    several times as long as `NeuralLM`'s, with far fewer parameters.

    Parameters
    ----------
    order : int or None, default=None
        The n of the model: it sees the nearest ``order - 1`` words. None uses
        every column of X.
    n_words : int or None, default=None
        Size of the vocabulary that training begins with; None takes the largest id of
        the training windows plus one, and then refuses ids beyond it. Words added
        later come on top: ``n_words_`` then is larger, and a clone begins anew with
        ``n_words``.
    n_hidden : int, default=100
        Hidden units, h.
    embedding_dim : int, default=30
        Features of a word, m.
    target_weights : bool, default=False
        Whether each next word has a v of its own, "indexed by the identity of the
        target word": about as many parameters as a `NeuralLM` has. False is one v for
        all.
    [[n_distant]]
    loss : {"exact", "importance", "nce"}, default="exact"
        [[loss]]
    [[sampling]]
    [[solver]]
    learning_rate_init : float, default=1e-2
        Step at the start: for "sgd" that of one example's gradient. The paper's 1e-3
        comes to about the same perplexity in several times the epochs.
    [[learning_rate_decay]]
    alpha : float, default=1e-4
        Weight decay on C, H, H_next and v, not on the biases d and b nor on P: each
        example ("adam": each update) takes ``step * alpha`` of every weight away.
    [[training]]
    precision : {"float32", "float64"}, default="float32"
        Type of the parameters and of the arithmetic.
    [[running]]

    Attributes
    ----------
    C_ : ndarray, shape (n_words_, embedding_dim)
        Feature vectors of the words.
    H_next_ : ndarray, shape (n_hidden, embedding_dim)
        Hidden weights that meet the next word's features. The paper's H is
        ``np.hstack([H_next_, H_])``.
    H_ : ndarray, shape (n_hidden, (order_ - 1) * embedding_dim)
        Hidden weights that meet the context's features; the first `embedding_dim`
        columns meet the nearest word. With `n_distant`, `embedding_dim` columns more
        for each average.
    d_ : ndarray, shape (n_hidden,)
        Hidden biases.
    v_ : ndarray, shape (n_hidden,), or (n_words_, n_hidden) with `target_weights`
        Output weights.
    b_ : ndarray, shape (n_words_,)
        Biases of the next word, energies: the larger, the less probable. Those of
        context words, which the paper's sum has too, cancel in the normalisation.
    P_ : ndarray, shape (n_averages, n_distant), or None
        Weights of distant words by position, the nearest first; None without them.
    n_parameters_ : int
        Free parameters: ``|V|(1 + m) + h(2 + nm)`` with one v, ``|V|(1 + m + h) +
        h(1 + nm)`` with `target_weights`; without `n_distant`.
    n_added_ : int
        Words that came by `add_words`.
    [[progress]]
    order_, n_words_, classes_, n_features_in_
        The order in use, the vocabulary size, the word ids, the columns of X.

    See Also
    --------
    NeuralLM : The model of section 2.
    Vocabulary.add_words, TextLM.add_words : New words from text.

    References
    ----------
    Bengio, Ducharme, Vincent and Jauvin (2003), A Neural Probabilistic Language
    Model, JMLR 3:1137-1155: section 5.1.

    Examples
    --------
    >>> import numpy as np
    >>> from nplm import EnergyLM, windows
    >>> X, y = windows(np.tile([0, 1, 2, 3], 50), 2)
    >>> lm = EnergyLM(n_hidden=8, embedding_dim=2, max_iter=50,
    ...               learning_rate_init=0.03, random_state=0).fit(X, y)
    >>> lm.predict([[0, 1], [2, 3]]).tolist()
    [2, 0]
    >>> bool(lm.perplexity(X, y) < 1.5)
    True

    A fifth word, met where 2 is expected:

    >>> lm.add_words([[0, 1]], [4]).n_words_
    5
    >>> lm.predict([[1, 4]]).tolist()
    [3]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NetworkLM._parameter_constraints,
        "n_hidden": [Whole(1)],
        "target_weights": ["boolean"],
        "precision": [StrOptions({"float32", "float64"})],
    }

    def __init__(
        self,
        order: int | None = None,
        *,
        n_words: int | None = None,
        n_hidden: int = 100,
        embedding_dim: int = 30,
        target_weights: bool = False,
        n_distant: int = 0,
        loss: str = "exact",
        n_samples: int = 512,
        proposal: str | ArrayLike = "unigram",
        proposal_power: float = 1.0,
        min_effective_samples: float = 0,
        solver: str = "sgd",
        learning_rate: str = "invscaling",
        learning_rate_init: float = 1e-2,
        learning_rate_decay: float = 1e-8,
        alpha: float = 1e-4,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        batch_size: int = 32,
        max_iter: int = 12,
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 3,
        tol: float = 1e-4,
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
        self.target_weights = target_weights
        self.n_distant = n_distant
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

    _parameters: Parameters
    _solver_state: State

    def _output(self) -> Output:
        own, estimate = bool(self.target_weights), self._estimate()
        if estimate is None:
            return Energy(target_weights=own)
        return SampledEnergy(False, target_weights=own, estimate=estimate)

    def _features(self) -> Features:
        # An exact update changes those of all words; another, those that it visits.
        kind = Met if self.loss == "exact" else Features
        return kind(int(self.embedding_dim))

    def _parts(self) -> Parts:
        parts = super()._parts()
        return parts._replace(hidden=Linear(parts.hidden.n_hidden))

    def _check_fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None,
        X_val: ArrayLike | None,
        y_val: ArrayLike | None,
        door: Door,
    ) -> Windows:
        if not goes_on(self, door):
            self.n_added_ = 0
        return super()._check_fit(X, y, X_val, y_val, door)

    def _shape(self) -> dict[str, Any]:
        shape = super()._shape() | {"target_weights": self.v_.ndim == 2}
        if self.n_words is not None:
            shape["n_words"] = self.n_words_ - self.n_added_
        return shape

    def _fitted(self) -> dict[str, Any]:
        return super()._fitted() | {"n_added": self.n_added_}

    def _restore(self, fitted: Fitted) -> None:
        super()._restore(fitted)
        self.n_added_ = fitted.whole("n_added", 0, self.n_words_ - 1)

    # -- new words ------------------------------------------------------------

    @all_or_nothing
    def add_words(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Add words that training never saw, from contexts in which they were met.

        A new word j gets as features a guess from the words that could have been in
        its place (section 5.1), ``C(j) = sum over i of C(i) P(i | context)``; with
        `target_weights` its weights v are guessed alike. The paper says nothing of its
        bias, which stands for how frequent it is: it gets that of the rarest known
        word, the largest of ``b_``, for those that could have been in its place were
        seen more often than it. Where more is known of it, set ``b_`` afterwards.

        The new words are part of the vocabulary from then on: they have probabilities,
        may stand in contexts, and `partial_fit` trains them with the others.

        Parameters
        ----------
        X : array-like of int, shape (n_samples, n_context)
            Contexts of known words, the nearest in the last column.
        y : array-like of int, shape (n_samples,)
            The new word met after each, by ids that follow on from ``n_words_``. What
            several rows say of a word is averaged.

        Returns
        -------
        self : EnergyLM

        Raises
        ------
        NotFittedError
            Before the fit.
        ValueError
            When an id is known already or leaves a gap, or a context has a word that
            the model does not know. The model then stays as it was.

        Examples
        --------
        >>> import numpy as np
        >>> from nplm import EnergyLM, windows
        >>> X, y = windows(np.tile([0, 1, 2, 3], 50), 2)
        >>> lm = EnergyLM(n_hidden=8, embedding_dim=2, random_state=0).fit(X, y)
        >>> lm.add_words([[0, 1], [2, 3], [0, 1]], [4, 5, 4]).n_words_
        6
        >>> lm.predict_proba([[0, 1]]).shape
        (1, 6)
        """
        check_is_fitted(self)
        n_contexts, n_met = _num_samples(X), _num_samples(y)
        if not n_contexts == n_met > 0:
            raise ValueError(
                f"X has {n_contexts} contexts, but y {n_met} words: give with each new "
                "word a context in which it was met, by which its features are guessed."
            )
        contexts = self._check_X(X)
        new = self._check_new(y) - self.n_words_
        own = self._parameters
        n_new, n_rows = int(new.max()) + 1, np.bincount(new)
        known = [own.C] if own.U is None else [own.C, own.U]
        guessed = [np.zeros((n_new, a.shape[1])) for a in known]
        for rows in self._blocks(len(contexts)):
            proba = self._predict_proba(contexts[rows])
            for array, sums in zip(known, guessed):
                np.add.at(sums, new[rows], proba @ array)
        C, *U = (sums / n_rows[:, None] for sums in guessed)
        b = np.full(n_new, own.b.max())
        self._parameters = own.with_words(C, U[0] if U else None, b)
        self._solver_state = {
            name: np.concatenate([array, np.zeros_like(array[:1]).repeat(n_new, 0)])
            if name.endswith(("_C", "_E")) else array
            for name, array in self._solver_state.items()
        }  # fmt: skip
        self.n_words_ += n_new
        self.n_added_ += n_new
        self.classes_ = np.arange(self.n_words_)
        return self

    def _check_new(self, y: ArrayLike) -> NDArray[np.int32]:
        """Ids of words to add, or an error that names what is wrong with them."""
        ids = check_ids(np.array(column_or_1d(y)), "y", ndim=1)  # a copy
        known = np.flatnonzero(ids < self.n_words_)
        if len(known):
            raise ValueError(
                f"y has {ids[known[0]]} at {known[0]}, a word that is known already: "
                f"ids of new words begin at n_words_={self.n_words_}."
            )
        # No array of all ids up to the largest: that may be any number.
        new = np.unique(ids)
        gap = np.flatnonzero(new != self.n_words_ + np.arange(len(new)))
        if len(gap):
            raise ValueError(
                f"y has {new[gap[0]]}, but no context of {self.n_words_ + gap[0]}: ids "
                f"of new words follow on from n_words_={self.n_words_} without a gap."
            )
        return ids

    H_next_ = view("H_next", "Hidden weights of the next word's features.")

    _shared = view("v", "Output weights of all words, or None.")
    _own = view("U", "Output weights of each word, or None.")

    @property
    def v_(self) -> NDArray[Any]:
        """Output weights."""
        own: NDArray[Any] = self._shared if self._own is None else self._own
        return own

    @v_.setter
    def v_(self, values: Any) -> None:
        if self._own is None:
            self._shared = values
        else:
            self._own = values
