"""ShortlistLM: a network for the frequent words, a back-off model for the others."""

from __future__ import annotations

import os
from dataclasses import field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.validation import check_is_fitted

from nplm.base.array_types import Floats, Ids
from nplm.base.atomic import fit_copy, fitted_or_interrupted
from nplm.base.checks import count_ids, plain, trusted_ids
from nplm.base.estimators.bases import Whole, hyperparameters
from nplm.base.estimators.checked_inputs import HeldOut, columns_needed
from nplm.base.estimators.language_model import CompositeLM, refusing_weights
from nplm.base.fitted import Fitted, Item, invalid_item
from nplm.base.progress import OnProgress
from nplm.models.neural.fitted_network import trained_network
from nplm.models.neural.neural_lm import NeuralLM
from nplm.models.neural.options.losses import Exact
from nplm.models.neural.options.outputs import Softmax


@hyperparameters
class ShortlistLM(CompositeLM):
    r"""A network that predicts a short-list of words, and a back-off model the others.

    .. math::

       P(w | c) = \begin{cases}
           P_{net}(w | c, w \in S) \, P_{bo}(S | c) & \text{if } w \in S \\
           P_{bo}(w | c) & \text{otherwise,} \end{cases}
       \qquad P_{bo}(S | c) = \sum_{v \in S} P_{bo}(v | c)

    (Schwenk and Gauvain 2002; item 3 of section 5.2 of Bengio et al. 2003). S are the
    most frequent words, which are most of a text, and the costs of a network are those
    of its output units: it has one for each word of S, sees every word in its
    contexts, and trains on the windows whose next word is in S. The back-off model
    says how probable S is as a whole, so the probabilities sum to 1.

    Parameters
    ----------
    network : NeuralLM
        Predicts the words of S. `fit` fits a clone.
    backoff : language model
        Predicts the others, and S together, such as a `KneserNeyLM`. `fit` fits a
        clone; wrapped in ``sklearn.frozen.FrozenEstimator``, it is taken as it was
        fitted (or read from a file), on the same columns or on fewer.
    n_shortlist : int, default=2000
        Words of S, or fewer where training has fewer words.
    n_words : int or None, default=None
        Size of the vocabulary, passed on to both models where they have none of their
        own; None takes what the back-off model has.

    Attributes
    ----------
    network_ : NeuralLM
        Fitted network. Its next words are places in ``words_``: row j of ``U_`` and
        ``b_``, and column j of its probabilities, are those of the word ``words_[j]``
        given that the next word is in S. Its contexts are of all words.
    backoff_ : language model
        Fitted back-off model.
    words_ : ndarray of int32, shape (n_shortlist,)
        Ids of S, the most frequent first; of equally frequent words the lower ids.
    n_parameters_ : int
        Those of both models.
    n_words_, classes_, n_features_in_
        The vocabulary size, the word ids, the columns of X.

    See Also
    --------
    MixtureLM : Averages the probabilities of models of all words.

    Notes
    -----
    The mass of S after each context that a `KneserNeyLM` or `BackoffLM` knows is found
    once, when it is first needed, in a sweep over its n-grams. Of any other back-off
    model it is a sum over its probabilities of all words, for every window.

    References
    ----------
    H. Schwenk and J.-L. Gauvain (2002). Connectionist language modeling for large
    vocabulary continuous speech recognition. ICASSP.

    H. Schwenk (2007). Continuous space language models. Computer Speech and Language
    21.

    Examples
    --------
    >>> import numpy as np
    >>> from nplm import KneserNeyLM, NeuralLM, ShortlistLM, windows
    >>> ids = np.random.default_rng(0).zipf(1.5, size=5000) % 100
    >>> X, y = windows(ids, 2)
    >>> network = NeuralLM(n_hidden=8, max_iter=2, random_state=0)
    >>> lm = ShortlistLM(network, KneserNeyLM(), n_shortlist=10, n_words=100).fit(X, y)
    >>> sorted(lm.words_.tolist())
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    >>> lm.network_.U_.shape
    (10, 8)
    >>> proba = lm.predict_proba([[1, 2], [98, 99]])
    >>> proba.shape, bool(np.allclose(proba.sum(axis=1), 1))
    ((2, 100), True)
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        "network": [NeuralLM],
        "backoff": [HasMethods(["fit", "log_prob", "predict_proba"])],
        "n_shortlist": [Whole(1)],
    }

    network: NeuralLM = field(kw_only=False)
    backoff: object = field(kw_only=False)
    n_shortlist: int = 2000
    n_words: int | None = None

    @refusing_weights
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        progress: OnProgress | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Choose the short-list, and fit both models.

        Parameters
        ----------
        X : array-like of int, shape (n_samples, n_context)
            Contexts, the nearest word in the last column.
        y : array-like of int, shape (n_samples,)
            Next words.
        X_val, y_val : array-like of int, optional
            Held-out windows, handed on: to the network those whose next word is in
            the short-list, for its early stopping.
        progress, checkpoint : optional
            As in `NeuralLM.fit`, for the network's.

        Returns
        -------
        self : ShortlistLM

        Raises
        ------
        ValueError
            If the ids or sizes are out of range or disagree; if the network is to go
            on from an earlier fit (``warm_start``); if no held-out window has a next
            word of the short-list.
        KeyboardInterrupt
            On an interrupt. If the network has begun to train, this model is fitted
            with what it has learned; else it stays as it was before the fit.
        """
        return fit_copy(
            self,
            lambda model: model._fit_parts(
                X, y, X_val, y_val, progress=progress, checkpoint=checkpoint
            ),
        )

    def _fit_parts(
        self,
        X: ArrayLike,
        y: ArrayLike | None,
        X_val: ArrayLike | None,
        y_val: ArrayLike | None,
        **fit_params: object,
    ) -> KeyboardInterrupt | None:
        """Fit; return the interrupt if one came and left the network fitted."""
        X, y = self._start_fit(X, y)
        self._check_network()
        backoff: Any = clone(self.backoff)
        self._set_n_words(backoff, self.n_words)
        backoff.fit(X, y, X_val=X_val, y_val=y_val)
        self._check_part(backoff, "the back-off model")
        self._take_n_words(backoff, "the back-off model")
        held_out = self._check_held_out(X_val, y_val)
        counts = count_ids(y, self.n_words_)
        n = min(plain(self.n_shortlist), int(np.count_nonzero(counts)))
        self._set_list(np.argsort(-counts, kind="stable")[:n].astype(np.int32))
        self.network_, interrupt = self._fitted_network(X, y, held_out, **fit_params)
        self.backoff_ = backoff
        self._mass = backoff.words_mass(self.words_)
        return interrupt

    def _columns_needed(self) -> int:
        return max(columns_needed(self.network), columns_needed(self.backoff))

    def _set_list(self, words: Ids) -> None:
        self.words_ = words
        self._place = np.full(self.n_words_, -1, dtype=np.int32)
        self._place[words] = np.arange(len(words))

    def _check_network(self) -> None:
        """Raise an error for parameters of the network, before any part is fitted."""
        if self.network.warm_start:
            raise ValueError(
                "warm_start=True of the network would continue an earlier fit, whose "
                "short-list may be another. Set it to False; fit(checkpoint=...) "
                "resumes a fit that was interrupted."
            )
        if self.network.n_memory:
            raise ValueError(
                f"n_memory={self.network.n_memory} of the network would train no state "
                "from word to word, because the network sees only windows whose next "
                "word is in the short-list. Set n_memory=0, or use the NeuralLM alone, "
                "with loss='importance' for a large vocabulary."
            )
        self._network_of(1).check_settings()

    def _network_of(self, n_outputs: int) -> NeuralLM:
        """Return a clone of the network, to predict this many words."""
        output = self.network.output
        is_softmax = output == "softmax" or isinstance(output, Softmax)
        is_tied = isinstance(output, Softmax) and output.tied
        exact = isinstance(self.network.loss, Exact) or any(
            self.network.loss == name for name in ("auto", "exact")
        )
        if not is_softmax or is_tied:
            raise ValueError(
                "a short-list needs a softmax with an output unit for each of its "
                f"words, and the network has output={output!r}: set output='softmax'."
            )
        if not exact:
            raise ValueError(
                "the network of a short-list is trained on all words of its list, and "
                f"it has loss={self.network.loss!r}: set loss='exact'."
            )
        network: NeuralLM = clone(self.network)
        return network.set_params(output__n_outputs=n_outputs)

    def _fitted_network(
        self, X: Ids, y: Ids, held_out: HeldOut | None, **fit_params: Any
    ) -> tuple[NeuralLM, KeyboardInterrupt | None]:
        network = self._network_of(len(self.words_))
        self._set_n_words(network, self.n_words_)
        if network.n_words != self.n_words_:
            raise ValueError(
                f"the network has n_words={network.n_words}, but the back-off model "
                f"{self.n_words_}: set n_words of ShortlistLM alone, or the same in "
                "both."
            )
        X_val = y_val = None
        if held_out is not None:
            X_val, y_val = self._of_the_list(*held_out)
            if len(y_val) == 0:
                raise ValueError(
                    f"none of the {len(held_out[1])} held-out windows has a next word "
                    f"of the short-list, of {len(self.words_)} words: pass more."
                )
        return fitted_or_interrupted(
            network, *self._of_the_list(X, y), X_val=X_val, y_val=y_val, **fit_params
        )

    def _of_the_list(self, X: Ids, y: Ids) -> tuple[Ids, Ids]:
        """Keep the windows whose next word is in the list, and give its place."""
        place = self._places(y)
        inside = place >= 0
        return X[inside], place[inside]

    def _n_known(self) -> int:
        return len(self._place)

    def _places(self, words: Ids) -> Ids:
        """Return the places of words in the list, -1 for words outside it."""
        return self._place[trusted_ids(words, len(self._place))]

    @property
    def n_parameters_(self) -> int:
        """Parameters of both models."""
        check_is_fitted(self)
        return self.network_.n_parameters_ + self.backoff_.n_parameters_

    # -- files ----------------------------------------------------------------

    _saved: ClassVar[dict[str, Item]] = {
        "network": Item(Fitted.estimator, NeuralLM),
        "backoff": Item(Fitted.estimator),
        "words": Item(Fitted.ids, (None,)),
    }

    def _set_saved(self, values: dict[str, Any]) -> None:
        super()._set_saved(values)
        network, backoff, words = self.network_, self.backoff_, self.words_
        if not hasattr(backoff, "words_mass"):
            raise invalid_item("backoff", backoff)
        self.n_words_ = backoff.n_words_
        self._check_part(backoff, "the back-off model")
        if self.order_ <= self.n_features_in_:  # members get all columns
            raise invalid_item("order", self.order_)
        n_outcomes = trained_network(network).architecture.n_outcomes
        sound = (
            len(np.unique(words)) == len(words) == n_outcomes
            and words.max() < self.n_words_ == network.n_words_
            and network.n_features_in_ == self.n_features_in_
        )
        if not sound:
            raise ValueError("its network, its back-off model and its list disagree")
        self._set_list(words)
        self._mass = backoff.words_mass(words)

    # -- probabilities --------------------------------------------------------

    def _list_mass(self, X: Ids) -> Floats:
        return self._mass.after(self._nearest_of(self.backoff_, X))

    def _list_log_mass(self, X: Ids) -> Floats:
        with np.errstate(divide="ignore"):  # a model may give the list nothing
            return np.log(self._list_mass(X))

    def _predict_proba(self, X: Ids) -> Floats:
        proba = np.empty((len(X), self.n_words_))
        for rows in self._blocks(len(X)):
            nearest = self._nearest_of(self.backoff_, X[rows])
            proba[rows] = self.backoff_.predict_proba(nearest)
            mass = self._list_mass(X[rows])
            share = self.network_.predict_proba(X[rows])
            proba[rows, self.words_] = share * mass[:, None]
        return proba

    def _log_prob(self, X: Ids, y: Ids) -> Floats:
        out = np.empty(len(y))
        places = self._places(y)
        inside = places >= 0
        if inside.any():
            X_list = X[inside]
            out[inside] = self.network_.log_prob(X_list, places[inside])
            out[inside] += self._list_log_mass(X_list)
        if not inside.all():
            others = self._nearest_of(self.backoff_, X[~inside])
            out[~inside] = self.backoff_.log_prob(others, y[~inside])
        return out

    def _candidate_log_prob(self, X: Ids, candidates: Ids, normalize: bool) -> Floats:
        # The network's are a share of the list's mass: they must be normalised.
        nearest = self._nearest_of(self.backoff_, X)
        out = self.backoff_.candidate_log_prob(nearest, candidates)
        places = self._places(candidates)
        some = (places >= 0).any(axis=1)
        if some.any():
            X, places, outside = X[some], places[some], out[some]
            in_list = self.network_.candidate_log_prob(X, np.maximum(places, 0))
            in_list += self._list_log_mass(X)[:, None]
            out[some] = np.where(places >= 0, in_list, outside)
        return out

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "network_")
