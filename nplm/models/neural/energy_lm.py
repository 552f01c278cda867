"""EnergyLM, the model of section 5.1."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _num_samples, check_is_fitted, column_or_1d

from nplm.base.array_types import Ids
from nplm.base.atomic import all_or_nothing
from nplm.base.checks import check_ids
from nplm.base.estimators.bases import Whole, hyperparameters
from nplm.models.neural.fitted_network import view
from nplm.models.neural.network_lm import NetworkLM
from nplm.models.neural.options.outputs import Energy, Output


@hyperparameters
class EnergyLM(NetworkLM):
    """Energy-minimisation network of Bengio et al. (2003), section 5.1.

    The next word is represented by its features, as the words of the context are. A
    network computes the energy of a context and a next word, low for a likely pair::

        E = v . tanh(d + H x) + b[w]

    where x is the concatenation of the feature vectors ``C[w]`` of the next word and
    of the context's, nearest first; the probability of a next word is proportional
    to exp(-E), normalised over all words. Similar words then have similar
    probabilities, and a word that is not in the training data can be added with an
    estimate of its features: see `add_words`.

    Each example computes a tanh for every word and hidden unit, so training takes
    several times as long as `NeuralLM`'s, with far fewer parameters.

    The parameters come in five groups:

    - **Size**: `order`, `n_words`, `n_hidden`, `embedding_dim`.
    - **Inputs**: `n_distant`, `target_weights`.
    - **Large vocabularies**: `loss`.
    - **Training**: `solver`, `learning_rate_init`, `alpha`, `batch_size`, `max_iter`,
      `early_stopping`, `validation_fraction`, `n_iter_no_change`, `tol`, `shuffle`.
    - **Running**: `n_jobs`, `parallel`, `precision`, `warm_start`, `random_state`,
      `verbose`.

    Parameters
    ----------
    order : int or None, default=None
        The n of the model, which uses the nearest ``order - 1`` words. None uses
        every column of X.
    n_words : int or None, default=None
        Size of the vocabulary of the training data. None takes the largest id of the
        training windows plus one. `add_words` increases ``n_words_``, not `n_words`.
    n_hidden : int, default=100
        Number of hidden units, h: one layer, whose units also see the next word.
    embedding_dim : int, default=30
        Number of features of a word, m.
    n_distant : int, default=0
        Number of words, nearest first, whose averaged features are further inputs, as
        in `NeuralLM`. 0 is the network of the paper.
    target_weights : bool, default=False
        Whether each next word has a v of its own, "indexed by the identity of the
        target word", with about as many parameters as a `NeuralLM`. False uses one v
        for all words.
    precision : {"float32", "float64"}, default="float32"
        Type of the parameters and of the arithmetic.
    loss, solver, learning_rate_init, alpha, batch_size, max_iter, early_stopping, \
validation_fraction, n_iter_no_change, tol, shuffle, n_jobs, parallel, warm_start, \
random_state, verbose
        As in `NeuralLM`. `alpha` is the weight decay of C, H, H_next and v, but not of
        the biases d and b nor of P.

    Attributes
    ----------
    C_ : ndarray, shape (n_words_, embedding_dim)
        Feature vectors of the words.
    H_next_ : ndarray, shape (n_hidden, embedding_dim)
        Hidden weights of the features of the next word. The H of the paper is
        ``np.hstack([H_next_, H_])``.
    H_ : ndarray, shape (n_hidden, (order_ - 1) * embedding_dim)
        Hidden weights of the features of the context; the first `embedding_dim` columns
        are those of the nearest word. With `n_distant`, each average has
        `embedding_dim` more columns.
    d_ : ndarray, shape (n_hidden,)
        Hidden biases.
    v_ : ndarray, shape (n_hidden,), or (n_words_, n_hidden) with `target_weights`
        Output weights.
    b_ : ndarray, shape (n_words_,)
        Biases of the next words, which are energies: larger ones are less probable. The
        biases of context words in the paper's sum cancel in the normalisation.
    P_ : ndarray, shape (n_averages, n_distant), or None
        Weights of distant words by position, the nearest first; None without them.
    n_parameters_ : int
        Number of free parameters: ``|V|(1 + m) + h(2 + nm)`` with one v, ``|V|(1 + m +
        h) + h(1 + nm)`` with `target_weights`; without `n_distant`.
    n_added_ : int
        Number of words added by `add_words`.
    n_iter_, n_seen_, words_per_second_, history_, val_loss_, loss_, precision_
        As of `NeuralLM`. `add_words` keeps ``val_loss_``.
    order_, n_words_, classes_, n_features_in_
        The order, the vocabulary size, the word ids, and the number of columns of X.

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
    >>> lm = EnergyLM(n_hidden=8, embedding_dim=4, learning_rate_init=0.05,
    ...               random_state=0).fit(X, y)
    >>> lm.predict([[0, 1], [2, 3]]).tolist()
    [2, 0]
    >>> bool(lm.perplexity(X, y) < 1.5)
    True

    Add a fifth word, seen where 2 is expected:

    >>> lm.add_words([[0, 1]], [4]).n_words_
    5
    >>> lm.predict([[1, 4]]).tolist()
    [3]
    """

    _outputs: ClassVar[dict[str, type[Output]]] = {"energy": Energy}
    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **NetworkLM._parameter_constraints,
        "n_hidden": [Whole(1)],
        "target_weights": ["boolean"],
        "precision": [StrOptions({"float32", "float64"})],
    }

    n_hidden: int = 100
    embedding_dim: int = 30
    target_weights: bool = False
    precision: str = "float32"

    @property
    def n_added_(self) -> int:
        """Number of words added by `add_words`."""
        return self._fit_result("n_added").n_added

    # -- new words ------------------------------------------------------------

    @all_or_nothing
    def add_words(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Add words that are not in the training data, from contexts of their use.

        The features of a new word j are estimated from the words expected in its place
        (section 5.1), ``C(j) = sum over i of C(i) P(i | context)``; with
        `target_weights`, so are its weights v. The paper does not define its bias,
        which represents its frequency: it is that of the rarest known word, the maximum
        of ``b_``. If you know the frequency better, set ``b_`` afterwards.

        The new words are then part of the vocabulary: they have probabilities, may
        occur in contexts, and `partial_fit` trains them with the others.

        Parameters
        ----------
        X : array-like of int, shape (n_samples, n_context)
            Contexts of known words, the nearest in the last column.
        y : array-like of int, shape (n_samples,)
            The new word after each context. New ids continue from ``n_words_`` without
            a gap. The estimates of several rows of a word are averaged.

        Returns
        -------
        self : EnergyLM

        Raises
        ------
        NotFittedError
            Before the fit.
        ValueError
            If an id is not new or leaves a gap, or a context has an unknown word. The
            model is then not changed.

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
        n_contexts, n_targets = _num_samples(X), _num_samples(y)
        if not n_contexts == n_targets > 0:
            raise ValueError(
                f"X has {n_contexts} contexts, but y has {n_targets} words; give one "
                "context for each word of y, and at least one."
            )
        contexts = self._check_X(X)
        new = self._check_new(y) - self.n_words_
        trained = self._trained
        parameters = trained.parameters
        n_new, n_rows = int(new.max()) + 1, np.bincount(new)
        known = [parameters.C] if parameters.U is None else [parameters.C, parameters.U]
        estimates = [np.zeros((n_new, a.shape[1])) for a in known]
        for rows in self._blocks(len(contexts)):
            proba = self._predict_proba(contexts[rows])
            for array, sums in zip(known, estimates):
                np.add.at(sums, new[rows], proba @ array)
        C, *U = (sums / n_rows[:, None] for sums in estimates)
        b = np.full(n_new, parameters.b.max())
        state = {
            name: np.concatenate([array, np.zeros_like(array[:1]).repeat(n_new, 0)])
            if name.endswith(("_C", "_E")) else array
            for name, array in trained.solver_state.items()
        }  # fmt: skip
        self.n_words_ += n_new
        self._trained = replace(
            trained,
            architecture=replace(trained.architecture, n_words=self.n_words_),
            parameters=parameters.with_words(C, U[0] if U else None, b),
            solver_state=state,
            n_added=trained.n_added + n_new,
        )
        return self

    def _check_new(self, y: ArrayLike) -> Ids:
        """Return the ids of the words to add, or raise ValueError."""
        ids = check_ids(np.array(column_or_1d(y)), "y", ndim=1)  # a copy
        known = np.flatnonzero(ids < self.n_words_)
        if len(known):
            raise ValueError(
                f"y has {ids[known[0]]} at {known[0]}, which is not a new word; ids of "
                f"new words start at n_words_={self.n_words_}."
            )
        # An array of all ids up to the largest could be huge.
        new = np.unique(ids)
        gap = np.flatnonzero(new != self.n_words_ + np.arange(len(new)))
        if len(gap):
            raise ValueError(
                f"y has {new[gap[0]]}, but not {self.n_words_ + gap[0]}; ids of new "
                f"words must continue from n_words_={self.n_words_} without a gap."
            )
        return ids

    H_next_ = view("H_next", "Hidden weights of the next word's features.")

    v_ = view("v", "Output weights.", of_words="U")
