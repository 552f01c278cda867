"""FittedNetworkLM: attributes, probabilities and files of fitted neural models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from numbers import Integral
from operator import attrgetter
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, check_scalar

from nplm.base.array_types import AnyArray, Array, Floats, Ids, Mask
from nplm.base.atomic import read_at_once, shallow_copy
from nplm.base.blocks import Texts
from nplm.base.checks import MAX_N_WORDS, plain
from nplm.base.estimators.language_model import LanguageModel
from nplm.base.estimators.stream_model import Stepped
from nplm.base.fitted import Fitted, Item, invalid_item
from nplm.base.warnings import warn
from nplm.models.neural.fitting import saved
from nplm.models.neural.network.network import Network
from nplm.models.neural.network.network_scorer import MOST_COLUMNS
from nplm.models.neural.network.parameters import Parameters
from nplm.models.neural.options.base import Option
from nplm.models.neural.options.outputs import Output
from nplm.models.neural.recipe import TrainedNetwork
from nplm.models.training.parallel.threads import Threads, n_threads

Fits = TypeVar("Fits", bound="FittedNetworkLM")


def view(name: str, doc: str, *, of_words: str | None = None) -> property:
    """Return a property, a view of a parameter, or of `of_words` if it exists."""

    def array_in(parameters: Parameters) -> str:
        if of_words is None or parameters.named().get(of_words) is None:
            return name
        return of_words

    def get(self: FittedNetworkLM) -> AnyArray | None:
        parameters = self._fit_result(name).parameters
        return parameters.named().get(array_in(parameters))

    def set_(self: FittedNetworkLM, values: object) -> None:
        parameters = trained_network(self).parameters
        parameters.set(array_in(parameters), values, f"{name}_")

    return property(get, set_, doc=doc)


def trained_network(lm: FittedNetworkLM) -> TrainedNetwork:
    """Return the trained network of a fitted model, or raise NotFittedError."""
    check_is_fitted(lm)
    return lm._trained


def scoring_network(lm: FittedNetworkLM) -> Network:
    """Return the network of a fitted model, to score with its `n_jobs` threads."""
    trained = lm._trained
    return Network(
        trained.parts, trained.parameters, state={},
        precision=trained.precision_for(lm.precision),
        threads=Threads(n_threads(lm.n_jobs)),
    )  # fmt: skip


def with_network(lm: Fits, trained: TrainedNetwork) -> Fits:
    """Return a copy of a fitted model with another network."""
    other = shallow_copy(lm)
    for name, value in vars(lm).items():
        if isinstance(value, Option):  # set_params changes options in place
            setattr(other, name, copy(value))
    other._trained = trained
    return other


class FittedNetworkLM(LanguageModel):
    """Base of `NetworkLM`: attributes, scores and files of a fit, ``_trained``."""

    n_distant: int
    n_memory = 0  # of the estimators that have no such parameter
    n_jobs: int | None
    precision: str

    _trained: TrainedNetwork
    # Kinds of output that the model supports, by name.
    _outputs: ClassVar[dict[str, type[Output]]]

    def __sklearn_is_fitted__(self) -> bool:
        return "_trained" in vars(self)

    # -- the network ----------------------------------------------------------

    @property
    def n_outcomes(self) -> int:
        """Number of outcomes that the fitted network predicts."""
        return self._trained.architecture.n_outcomes

    def _n_known(self) -> int:
        return self._trained.architecture.n_words

    def _n_context(self) -> int:
        trained = vars(self).get("_trained")
        if trained is None:
            return max(self.order_ - 1, plain(self.n_distant), plain(self.n_memory))
        return int(trained.architecture.n_context)

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters, counted as in section 2 of the paper."""
        check_is_fitted(self)
        return self._trained.parameters.size()

    @property
    def history_(self) -> dict[str, list[float]]:
        """Metrics of each epoch."""
        return self._fit_result("history").history

    @property
    def val_loss_(self) -> float:
        """Loss on all held-out windows of the last fit, in nats per token, or NaN."""
        return self._fit_result("val_loss").val_loss

    @property
    def n_iter_(self) -> int:
        """Number of epochs since the weights were drawn."""
        return len(self._fit_result("n_iter").history["loss"])

    @property
    def n_seen_(self) -> int:
        """Number of examples seen, the t of the paper's schedule."""
        return self._fit_result("n_seen").n_seen

    @property
    def words_per_second_(self) -> float:
        """Examples of training a second, scoring left out; NaN before an epoch ends."""
        seconds = sum(self.history_["seconds"])
        return self.n_seen_ / seconds if seconds else math.nan

    def _fit_result(self, name: str) -> TrainedNetwork:
        """Return the trained network, for the attribute `name`, or raise an error."""
        trained: TrainedNetwork | None = vars(self).get("_trained")
        if trained is None:
            raise AttributeError(
                f"{type(self).__name__} has no {name}_ before it is fitted."
            )
        return trained

    @property
    def loss_(self) -> Option:
        """The training loss, also if "auto" chose it."""
        return clone(self._fit_result("loss").loss)

    @property
    def precision_(self) -> str:
        """Precision of the arithmetic of the training, also if "auto" chose it."""
        return self._fit_result("precision").precision

    # -- probabilities --------------------------------------------------------

    @property
    def sums_over_words(self) -> bool:
        """Whether one word costs as much as all words after the same context."""
        return self._trained.parts.output.logits_are_single

    def _predict_proba(self, X: Ids) -> Array:
        return scoring_network(self).predict_proba(X)

    def _predict_log_proba(self, X: Ids) -> Array:
        return scoring_network(self).predict_proba(X, logarithm=True)

    @read_at_once
    def log_prob(
        self, X: ArrayLike, y: ArrayLike | None = None, *, normalize: bool = True
    ) -> Floats:
        """Return the log-probability of each next word given its context.

        The computation is block by block: memory does not grow with
        ``n_samples * n_words_``.

        Parameters
        ----------
        X : array-like of int, shape (n_samples, n_context)
            Contexts, the nearest word in the last column.
        y : array-like of int, shape (n_samples,)
            Next words.
        normalize : bool, default=True
            False returns unnormalised scores, in a time that does not grow with the
            vocabulary. Only for a model trained with ``loss="nce"``, whose scores
            approximate log-probabilities: the difference is ``normalizers(X)``.

        Returns
        -------
        log_prob : ndarray of float64, shape (n_samples,)
            Natural logarithms.

        Raises
        ------
        ValueError
            If ``normalize=False`` and the model was trained with another loss.

        Examples
        --------
        >>> import numpy as np
        >>> from nplm import NeuralLM, windows
        >>> X, y = windows(np.tile([0, 1, 2, 3], 50), 2)
        >>> lm = NeuralLM(n_words=4, n_hidden=8, embedding_dim=2, max_iter=50,
        ...               learning_rate_init=0.05, loss="nce", random_state=0).fit(X, y)
        >>> scores = lm.log_prob(X, y, normalize=False)
        >>> normalized = scores - lm.normalizers(X)
        >>> bool(np.allclose(normalized, lm.log_prob(X, y), atol=1e-5))
        True
        """
        if normalize:
            return super().log_prob(X, y)
        X, y = self.checked_windows(X, y)
        if not self._trained.parts.output.normalizes:
            raise ValueError(
                "normalize=False needs scores that loss='nce' makes close to "
                "log-probabilities, but this model was fitted with another loss; fit "
                "it with loss='nce', or set normalize=True."
            )
        return self._candidate_log_prob(X, y[:, None], normalize=False)[:, 0]

    @read_at_once
    def log_prob_stream(
        self, ids: ArrayLike | Sequence[ArrayLike], *, n_columns: int = 1
    ) -> Floats:
        """Return the log-probability of each token of a text, or of documents.

        Parameters
        ----------
        ids : array-like of int, shape (n_tokens,), or a list of them
            Word ids in text order: one text, or a list of documents, which do not
            depend on each other. The first words of each text, as many as a context
            has, are context only.
        n_columns : int, default=1
            Parts, at most 64, into which one text is cut for a network with
            ``n_memory``, to read them side by side, in threads too. That is faster,
            but not exact: the state before a part is that of the ``n_memory`` words
            before it alone. :ref:`streams` has the difference of a network.

        Returns
        -------
        log_prob : ndarray of float64, shape (n_scored,)
            Natural logarithms of all scored tokens, in text order. The memory besides
            them does not grow with the text.
        """
        check_scalar(n_columns, "n_columns", Integral, min_val=1, max_val=MOST_COLUMNS)
        return self.log_prob_of_texts(self._scored_texts(ids), n_columns)

    def _check_width(self, X: ArrayLike) -> None:
        n, n_memory = np.shape(X)[1], self._trained.architecture.n_memory
        if n < n_memory:
            warn(
                f"X has {n} column{'s' if n > 1 else ''}, and n_memory={n_memory}: of "
                "each window the network reads no earlier words. score_stream(ids) "
                "scores a text with all words before each token.",
                UserWarning,
            )

    def _log_prob(self, X: Ids, y: Ids) -> Floats:
        self._trained.architecture.check_next_words(y, "y")
        return scoring_network(self).log_prob_of_distinct(X, y)

    def n_context_of_texts(self) -> int:
        return self._trained.parts.inputs.n_context

    def log_prob_of_texts(self, texts: Texts, n_columns: int = 1) -> Floats:
        trained = self._trained
        if not trained.architecture.n_memory:
            return super().log_prob_of_texts(texts)
        trained.architecture.check_next_words(texts.y, "ids")
        texts, kept = texts.reread(trained.parts.inputs.n_context)
        counted: slice | Mask = slice(None)
        if n_columns > 1 and len(texts.first) == 1:
            texts, counted = texts.columns(n_columns, trained.architecture.n_memory)
        return scoring_network(self).log_prob_of_texts(texts)[counted][kept]

    def step_states(self, X: Ids, states: Sequence[Any]) -> Stepped:
        trained = self._trained
        if not trained.architecture.n_memory:
            return super().step_states(X, states)
        X = X[:, X.shape[1] - trained.parts.inputs.n_context :]
        return scoring_network(self).step(X, states)

    def state_of_text(self, ids: Ids) -> bytes | None:
        if not self._trained.architecture.n_memory:
            return None
        return scoring_network(self).state_before(ids)

    @read_at_once
    def normalizers(self, X: ArrayLike) -> Floats:
        """Return the log of the sum of exponentiated scores after each context.

        A probability is the exponential of a score over this sum. A model trained with
        ``loss="nce"`` has sums near 1; if their logarithms are near 0,
        ``log_prob(X, y, normalize=False)`` is accurate.

        Parameters
        ----------
        X : array-like of int, shape (n_samples, n_context)
            Contexts, the nearest word in the last column.

        Returns
        -------
        normalizers : ndarray of float64, shape (n_samples,)
        """
        return scoring_network(self).normalizers(self._check_X(X))

    def _candidate_log_prob(self, X: Ids, candidates: Ids, normalize: bool) -> Floats:
        self._trained.architecture.check_next_words(candidates, "candidates")
        # Single logits are in full precision, and a bfloat16 normaliser is not.
        precision = self._trained.precision_for(self.precision)
        rounds = normalize and precision == "bfloat16"
        if rounds or not self._trained.parts.output.logits_are_single:
            return super()._candidate_log_prob(X, candidates, normalize)
        return scoring_network(self).candidates(X, candidates, normalize=normalize)

    # -- files ----------------------------------------------------------------

    _saved: ClassVar[dict[str, Item]] = {
        "architecture": Item(
            Fitted.inner, of=lambda lm: lm._trained.architecture.items()
        ),
        "arrays": Item(Fitted.take, dict, of=lambda lm: saved.arrays_of(lm._trained)),
        "moments": Item(Fitted.inner, of=lambda lm: saved.moments_of(lm._trained)),
        "loss": Item(Fitted.inner, of=lambda lm: saved.loss_items(lm._trained.loss)),
        **{
            name: Item(
                *check,
                of=attrgetter(f"_trained.{name}"),
                is_optional=name == "precision",  # files of nplm 0.1 have none
            )
            for name, check in saved.FIGURES.items()
        },
        "random_state": Item(
            Fitted.take,
            np.random.RandomState,
            of=lambda lm: lm._trained.private_generator,
            is_optional=True,
        ),
    }

    def lightened(self, *, optimizer: bool, dtype: str | None) -> Self:
        """Return a copy to be saved, as `nplm.save` says."""
        return with_network(
            self, saved.lightened(self._trained, optimizer=optimizer, dtype=dtype)
        )

    def _set_saved(self, values: dict[str, Any]) -> None:
        super()._set_saved(values)
        trained = saved.from_items(values, self._outputs)
        architecture = trained.architecture
        self.n_words_ = architecture.n_words
        if architecture.order != self.order_:
            raise ValueError(
                f"architecture.order is {architecture.order}, but order {self.order_}"
            )
        if architecture.n_memory > MAX_N_WORDS:
            raise invalid_item("architecture.n_memory", architecture.n_memory)
        if trained.parts.inputs.n_context > self.n_features_in_:
            raise invalid_item("n_features_in", self.n_features_in_)
        self._trained = trained

    C_ = view("C", "Features of the words.")
    H_ = view("H", "Hidden weights.")
    d_ = view("d", "Hidden biases.")
    b_ = view("b", "Output biases.")
    P_ = view("P", "Weights of distant words by position, or None.")
