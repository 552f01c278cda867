"""MixtureLM: a weighted average of the probabilities of several models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from operator import attrgetter
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from nplm.base.array_types import Floats, Ids
from nplm.base.atomic import fit_copy, fitted_or_interrupted
from nplm.base.blocks import Texts
from nplm.base.estimators.bases import (
    Whole,
    _BaseComposition,
    hyperparameters,
    non_negative,
)
from nplm.base.estimators.checked_inputs import HeldOut, columns_needed
from nplm.base.estimators.scored_texts import context_of_texts, reads_texts
from nplm.base.fitted import Fitted, Item, invalid_item
from nplm.base.progress import stages
from nplm.base.warnings import warn
from nplm.models.mixtures.mixed_scores import MixedScores
from nplm.models.mixtures.uniform_lm import UniformLM
from nplm.models.ngrams.interpolated_trigram import RelativeFrequencies
from nplm.models.ngrams.stages.counts import NgramCounts, taken_counts
from nplm.models.ngrams.trie.trie_checks import arrays_of
from nplm.models.training.em import (
    BIN_PRIOR,
    MAX_ITER,
    TOL,
    checked_weights,
    fit_mixture_weights,
)


@hyperparameters
class MixtureLM(_BaseComposition, MixedScores):
    r"""Mixture of language models (section 2, "Mixture of models").

    .. math:: P(w | c) = \sum_i \alpha_i P_i(w | c)

    The paper's MLP2, 4, 6, 8 and 10 mix a network with the interpolated
    trigram, because they make different errors. The paper's three weightings are
    available: fixed weights, weights learned by maximum likelihood on held-out
    windows, and weights :math:`\alpha_i(q)` learned for each bin of the context's
    frequency, "using the same procedure that combines trigram, bigram, and
    unigram in the interpolated trigram" (see `InterpolatedTrigram`).

    Parameters
    ----------
    estimators : list of (str, language model or "drop")
        Names and members, which may be mixtures; ``set_params(name="drop")`` leaves out
        a member and its entry of given `weights`. `fit` fits a clone of each. A
        member wrapped in ``sklearn.frozen.FrozenEstimator`` is used without a fit; if
        it was fitted on fewer columns, it gets the nearest ones.
    weights : {"auto", "uniform", "learned", "context"} or array-like, default="auto"
        Weight of each member: equal ("uniform"), given (0 or more, summing to 1),
        or learned by EM on the held-out windows of `fit`: "learned" is one set of
        weights, "context" one set for each bin of the training frequency of the
        two preceding words. "auto" is "learned" if `fit` gets held-out windows, else
        "uniform".
    n_words : int or None, default=None
        Size of the vocabulary, set on members whose own is None. By default each
        member infers it, and all must agree.
    include_uniform : bool, default=False
        Whether to add the uniform distribution 1 / n_words as the last member, named
        "uniform".
    max_iter : int, default=1000
        Maximum number of iterations of EM, accelerated by Newton's method.
    tol : float, default=1e-7
        EM stops when no weights gain more than this, in nats per token.
    verbose : int, default=0
        2 shows a bar of the whole fit: the current member and its progress, then the
        learning of the weights. 1 prints a line for each, and one a minute.

    Attributes
    ----------
    estimators_ : list of language models
        Fitted members.
    named_estimators_ : Bunch
        Fitted members by name.
    weights_ : ndarray of float64, shape (n_members,) or (n_bins, n_members)
        Weights in use; with "context" one row per bin. A bin without held-out
        windows has the weights of the nearest bin with held-out windows.
    bins_ : ndarray of int64, shape (n_bins,)
        With "context", the :math:`q = \lceil -\log((1 + freq) / T) \rceil` of each
        row, from the most frequent contexts to unseen ones.
    n_iter_ : int
        Number of iterations of EM; 0 if no weights are learned.
    n_parameters_ : int
        Number of parameters of all members, plus that of free learned weights.
    n_words_, classes_, n_features_in_
        The vocabulary size, the word ids, the number of columns of X.

    References
    ----------
    Bengio et al. (2003), section 2 ("Mixture of models") and Table 1.

    F. Jelinek and R. L. Mercer (1980). Interpolated estimation of Markov source
    parameters from sparse data. Pattern Recognition in Practice.

    Examples
    --------
    >>> import numpy as np
    >>> from nplm import InterpolatedTrigram, MixtureLM, windows
    >>> X, y = windows(np.random.default_rng(0).integers(0, 5, 200), 2)
    >>> members = [("trigram", InterpolatedTrigram()),
    ...            ("bigram", InterpolatedTrigram(order=2))]
    >>> mix = MixtureLM(members, n_words=5).fit(X, y)
    >>> mix.weights_.tolist()
    [0.5, 0.5]

    Weights learned on held-out windows:

    >>> mix = mix.fit(X[:150], y[:150], X_val=X[150:], y_val=y[150:])
    >>> mix.n_iter_ > 0, float(mix.weights_.sum().round(6))
    (True, 1.0)

    Weights for each bin of the context's frequency, learned on held-out windows:

    >>> mix = MixtureLM(members, "context", n_words=5, include_uniform=True)
    >>> mix = mix.fit(X[:150], y[:150], X_val=X[150:], y_val=y[150:])
    >>> mix.bins_.tolist(), mix.weights_.shape
    ([3, 4, 5, 6], (4, 3))
    """

    # `names_of` and `weights_of` check the other parameters.
    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        "include_uniform": ["boolean"],
        "max_iter": [Whole(0)],
        "tol": [non_negative()],
        "verbose": ["verbose"],
    }

    estimators: list[tuple[str, object]] = field(kw_only=False)
    weights: str | ArrayLike = field(default="auto", kw_only=False)
    n_words: int | None = None
    include_uniform: bool = False
    max_iter: int = MAX_ITER
    tol: float = TOL
    verbose: int = 0

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return self._get_params("estimators", deep=deep)

    def set_params(self, **params: object) -> Self:
        """Set parameters of the mixture, a member by name, or ``name__parameter``.

        Parameters
        ----------
        **params : dict
            Names and values.

        Returns
        -------
        self : MixtureLM
        """
        self._set_params("estimators", **params)
        return self

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        **fit_params: object,
    ) -> Self:
        """Fit all members that are not frozen, and learn the weights.

        Parameters
        ----------
        X : array-like of int, shape (n_samples, n_context)
            Contexts, the nearest word in the last column. With "context" weights
            they are counted, even if all members are frozen.
        y : array-like of int, shape (n_samples,)
            Next words.
        X_val, y_val : array-like of int, optional
            Held-out windows, passed to the members (early stopping, EM). The mixture
            itself learns its weights on them, unless these are "uniform" or given.
            "learned" and "context" require them: on the training windows the member
            that overfits most would get the largest weight.
        **fit_params
            As ``name__parameter``, passed to ``fit`` of that member:
            ``network__checkpoint="folder"``.

        Returns
        -------
        self : MixtureLM

        Raises
        ------
        ValueError
            If the weights, the members or the ids are out of range or inconsistent; if
            a fit parameter names no member; if weights must be learned but there are no
            held-out windows, or all of these have probability 0 under every member.
        KeyboardInterrupt
            On an interrupt. If it interrupts the fit of the last member, and that keeps
            what it has learned, as a network does, the mixture is fitted with it; else
            it stays as it was before the fit. So put a network last.
        """
        return fit_copy(
            self, lambda model: model._fit_parts(X, y, X_val, y_val, fit_params)
        )

    def fit_texts(
        self, texts: Texts, held_out: Texts | None, **fit_params: object
    ) -> Self:
        if not self.reads_texts:
            return super().fit_texts(texts, held_out, **fit_params)
        X, y = texts.windows()
        X_val, y_val = (None, None) if held_out is None else held_out.windows()
        data, pair = (X, y, X_val, y_val), (texts, held_out)
        return fit_copy(self, lambda model: model._fit_parts(*data, fit_params, pair))

    def _fit_parts(
        self,
        X: ArrayLike,
        y: ArrayLike | None,
        X_val: ArrayLike | None,
        y_val: ArrayLike | None,
        fit_params: dict[str, object],
        texts: tuple[Texts, Texts | None] | None = None,
    ) -> KeyboardInterrupt | None:
        """Fit; return the interrupt, if one came and left all members fitted."""
        uniform = ["uniform"] if self.include_uniform else []
        names = names_of(self.estimators) + uniform
        self._validate_names(names)
        has_held_out = X_val is not None or y_val is not None
        kept = kept_of(self.estimators)
        kept_names = [*dict(kept), *uniform]
        weights = weights_of(self.weights, names, kept_names, has_held_out)
        X, y = self._start_fit(X, y)
        if weights is None and not has_held_out:
            raise ValueError(
                f"weights={self.weights!r} are learned on held-out windows: pass X_val "
                "and y_val to fit, or set weights to fixed numbers."
            )
        if texts is not None:
            self.n_features_in_ = self._columns_needed()
            self.order_ = self.n_features_in_ + 1
        names, params_of = kept_names, fit_params_of(kept_names, fit_params)
        members: list[Any] = []
        interrupt = None
        with stages(int(self.verbose), type(self).__name__) as begin:
            for i, (name, model) in enumerate(kept, 1):
                begin(f"{name} ({i} of {len(kept)})")
                member = clone(model)
                self._set_n_words(member, self.n_words)
                data: Any = X, y
                method, arguments = "fit", {"X_val": X_val, "y_val": y_val}
                if texts is not None and reads_texts(member):
                    data, method, arguments = texts, "fit_texts", {}
                arguments |= params_of[name]
                member, interrupt = fitted_or_interrupted(
                    member, *data, fit=method, **arguments
                )
                self._check_part(member, f"member {name!r}")
                members.append(member)
                if interrupt is not None and i < len(kept):
                    warn(
                        f"{type(self).__name__}: interrupted while {name!r} was "
                        f"fitted, before {kept[i][0]!r}; the mixture stays as it was "
                        "before the fit.",
                        RuntimeWarning,
                    )
                    try:
                        raise interrupt
                    finally:
                        del interrupt  # avoids a reference cycle with this frame
            self.n_words_ = self._common_n_words(names, members)
            held_out = texts[1] if texts else self._check_held_out(X_val, y_val)
            if self.include_uniform:
                members.append(UniformLM(n_words=self.n_words_).fit(X, y))
            self.estimators_ = members
            self.named_estimators_ = Bunch(**dict(zip(names, members)))
            self._set_contexts(self._count_contexts(X, y))
            self.n_iter_ = 0
            if weights is not None:
                self.weights_ = weights
            elif held_out is not None:
                self.weights_ = self._learn_weights(held_out, begin)
        return interrupt

    def _columns_needed(self) -> int:
        """Return those of the member that needs most, and two to count contexts."""
        return max(2, *(columns_needed(model) for _, model in kept_of(self.estimators)))

    def _common_n_words(self, names: list[str], members: list[Any]) -> int:
        """Return the size of the members' vocabulary, or raise ValueError."""
        sizes = {name: member.n_words_ for name, member in zip(names, members)}
        n_words: int = members[0].n_words_
        if len(set(sizes.values())) > 1 or n_words < self.n_words_:
            raise ValueError(
                "the members and the windows disagree on the vocabulary: n_words is "
                f"{sizes} and at least {self.n_words_} in X and y; set the same "
                "n_words in all members, or set n_words of the mixture."
            )
        return n_words

    def columns_of_texts(self) -> int:
        """Return the columns that members need which do not read texts."""
        kept = kept_of(self.estimators)
        return max(2, *(columns_of_texts(model) for _, model in kept))

    @property
    def reads_texts(self) -> bool:
        """Whether a member reads texts."""
        members = vars(self).get("estimators_") or dict(self.estimators).values()
        return any(getattr(member, "reads_texts", False) for member in members)

    def _count_contexts(self, X: Ids, y: Ids) -> RelativeFrequencies | None:
        """Count the contexts of two words, whose frequency selects the weights."""
        if not (isinstance(self.weights, str) and self.weights == "context"):
            return None
        counts = NgramCounts.from_windows(X[:, -2:], y, n_words=self.n_words_)
        return RelativeFrequencies(counts)

    def _set_contexts(self, contexts: RelativeFrequencies | None) -> None:
        self._contexts = contexts
        if contexts is not None:
            self.bins_ = contexts.bins.numbers

    def _learn_weights(
        self, held_out: HeldOut | Texts, begin: Callable[[str], None]
    ) -> Floats:
        X, _ = held_out.windows() if isinstance(held_out, Texts) else held_out
        log_probs = self.member_log_probs(held_out, begin)
        begin("weights")
        fit = fit_mixture_weights(
            np.exp(log_probs),
            self._rows(X),
            1 if self._contexts is None else self._contexts.bins.n_bins,
            max_iter=self.max_iter,
            tol=self.tol,
            prior=0.0 if self._contexts is None else BIN_PRIOR,
        )
        fit.warn_unless_converged(type(self).__name__, self.max_iter, self.tol)
        self.n_iter_ = fit.n_iter
        return fit.weights[0] if self._contexts is None else fit.weights

    @property
    def n_parameters_(self) -> int:
        """Number of parameters of all members, plus that of free learned weights."""
        check_is_fitted(self)
        n = sum(member.n_parameters_ for member in self.estimators_)
        if self.n_iter_ > 0:
            n += self.weights_.size - self.weights_.size // len(self.estimators_)
        return n

    # -- files ----------------------------------------------------------------

    _saved: ClassVar[dict[str, Item]] = {
        "names": Item(Fitted.texts, of=lambda lm: list(lm.named_estimators_)),
        "members": Item(Fitted.take, list, of=attrgetter("estimators_")),
        "weights": Item(Fitted.shares, None),
        "n_iter": Item(Fitted.whole),
        "contexts": Item(
            taken_counts,
            of=lambda lm: lm._contexts and arrays_of(lm._contexts.counts),
            is_optional=True,
        ),
    }

    def _set_saved(self, values: dict[str, Any]) -> None:
        super()._set_saved(values)
        names, members, counts = values["names"], values["members"], values["contexts"]
        sizes: set[Any] = {getattr(member, "n_words_", None) for member in members}
        are_models = all(hasattr(member, "log_prob") for member in members)
        if len(sizes) != 1 or None in sizes or not are_models:
            raise invalid_item("members", members)
        if not len(set(names)) == len(names) == len(members):
            raise invalid_item("names", names)
        self.n_words_ = sizes.pop()
        if self.order_ <= self.n_features_in_:  # the order of all columns
            raise invalid_item("order", self.order_)
        for name, member in zip(names, members):
            self._check_part(member, f"member {name!r}")
        self.estimators_ = members
        self.named_estimators_ = Bunch(**dict(zip(names, members)))
        order = min(self.n_features_in_, 2) + 1
        if counts and (counts.n_words, counts.order) != (self.n_words_, order):
            raise ValueError("the contexts have another vocabulary or length")
        self._set_contexts(counts and RelativeFrequencies(counts))
        rows = (len(self.bins_),) if counts else ()
        if self.weights_.shape != (*rows, len(members)):
            raise invalid_item("weights", self.weights_)

    # -- scikit-learn ---------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimators_")

    def _sk_visual_block_(self) -> object:
        """Return scikit-learn's diagram, with the members side by side."""
        from sklearn.utils._repr_html.estimator import _VisualBlock

        names, models = zip(*self.estimators)
        return _VisualBlock("parallel", models, names=names)


def names_of(estimators: Any) -> list[str]:
    """Return the names of all members; raise ValueError if none is to be kept."""
    if not estimators:
        raise ValueError("estimators is empty: pass at least one (name, model).")
    try:
        names = [name for name, _ in estimators]
    except (TypeError, ValueError):
        names = []
    # Keys of two letters make a dict look like a list of pairs.
    if not names or isinstance(estimators, Mapping):
        raise ValueError(
            f"estimators must be a list of (name, model) pairs, got {estimators!r}."
        )
    if not kept_of(estimators):
        raise ValueError('all estimators are "drop": keep at least one.')
    return names


def kept_of(estimators: Sequence[tuple[str, object]]) -> list[tuple[str, Any]]:
    """Return the members that are not "drop"."""
    return [
        (name, member)
        for name, member in estimators
        if not (isinstance(member, str) and member == "drop")
    ]


def weights_of(
    weights: str | ArrayLike,
    names: list[str],
    kept_names: list[str],
    has_held_out: bool,
) -> Floats | None:
    """Return the weights of the members kept; None if they must be learned."""
    if isinstance(weights, str):
        if weights not in ("auto", "uniform", "learned", "context"):
            raise ValueError(
                'weights must be "auto", "uniform", "learned", "context" or '
                f"numbers, got {weights!r}."
            )
        if weights == "uniform" or (weights == "auto" and not has_held_out):
            return np.full(len(kept_names), 1 / len(kept_names))
        return None
    kept = np.isin(names, kept_names)
    values = checked_weights(weights, len(names), max_error=1e-5)[kept]
    if not values.any():
        raise ValueError(
            f"weights={weights!r} are 0 for all members that are not "
            '"drop": set a positive one.'
        )
    return values / values.sum()


def fit_params_of(
    names: list[str], fit_params: dict[str, object]
) -> dict[str, dict[str, Any]]:
    """Group ``name__parameter`` by the names of members."""
    by_name: dict[str, dict[str, object]] = {name: {} for name in names}
    for key, value in fit_params.items():
        name, _, parameter = key.partition("__")
        if name not in by_name or not parameter:
            raise ValueError(
                f"fit got {key}, which is not the name of a member, two underscores "
                f"and a parameter: the members are {', '.join(names)}."
            )
        by_name[name][parameter] = value
    return by_name


def columns_of_texts(member: Any) -> int:
    """Return the columns that a member to be fitted on texts needs."""
    if reads_texts(member):
        return int(member.columns_of_texts())
    if isinstance(member, FrozenEstimator):
        return context_of_texts(member)
    return columns_needed(member)
