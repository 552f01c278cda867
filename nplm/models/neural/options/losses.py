"""Options for the loss: exact, or estimated from noise samples."""

from __future__ import annotations

from dataclasses import field
from numbers import Real
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from nplm.base.array_types import AnyArray
from nplm.base.estimators.bases import Whole, hyperparameters
from nplm.models.neural.network.outputs import estimates
from nplm.models.neural.options.base import Option


class Loss(Option):
    """Base class of the losses."""

    name: ClassVar[str]  # the string that selects it with its defaults
    has_samples: ClassVar[bool] = True

    def estimate(self) -> estimates.Estimate | None:
        """Return the estimate of the gradient from noise samples, if it is one."""
        return None


@hyperparameters
class Exact(Loss):
    """The log-likelihood over all words, as in the paper.

    See Also
    --------
    Importance, NCE : Many times as fast with a large vocabulary.

    Examples
    --------
    >>> from nplm import Exact, NeuralLM
    >>> NeuralLM(loss=Exact()).loss
    Exact()
    """

    name = "exact"
    has_samples = False


@hyperparameters
class NCE(Loss):
    """Noise-contrastive estimation.

    Training learns to tell the next words from noise samples (Mnih and Teh, 2012). The
    scores of the network then approach log-probabilities without normalisation, so
    that ``log_prob(X, y, normalize=False)`` costs the same for any vocabulary. The
    probabilities are those of all words, and held-out losses are exact.

    Parameters
    ----------
    n_noise : int, default=512
        Number of noise samples of each example, at most the size of the vocabulary.
    proposal : {"unigram"} or array-like of float, shape (n_words,), default="unigram"
        The distribution of the noise. "unigram" uses the counts of the next words of
        the training windows, plus one. An array has a positive weight for each word.
    proposal_power : float, default=1
        Exponent of the weights, from 0 to 1. 0 gives the uniform distribution; below 1,
        rare words are sampled more often than they occur.

    See Also
    --------
    Importance : Closer to the exact gradient.

    References
    ----------
    Mnih and Teh (2012), A fast and simple algorithm for training neural probabilistic
    language models, ICML.

    Examples
    --------
    >>> from nplm import NCE, NeuralLM
    >>> NeuralLM(loss=NCE(n_noise=100)).loss
    NCE(n_noise=100)
    """

    name = "nce"
    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        "n_noise": [Whole(1)],
        "proposal": [StrOptions({"unigram"}), "array-like"],
        "proposal_power": [Interval(Real, 0, 1, closed="both")],
    }

    n_noise: int = field(default=512, kw_only=False)
    proposal: str | ArrayLike = "unigram"
    proposal_power: float = 1.0

    def plain_copy(self) -> Self:
        option = super().plain_copy()
        option.proposal_power = float(option.proposal_power)
        if not isinstance(self.proposal, str):
            option.proposal = np.array(self.proposal)  # a copy
        return option

    def settings(self) -> dict[str, object]:
        return super().settings() | {"proposal": self._weights()}

    def _weights(self) -> AnyArray | None:
        return None if isinstance(self.proposal, str) else np.asarray(self.proposal)

    def estimate(self) -> estimates.Estimate:
        return estimates.NoiseContrastive(
            self.n_noise, self._weights(), self.proposal_power
        )


@hyperparameters
class Importance(NCE):
    """Importance sampling: the gradient of the log-likelihood from noise samples.

    All examples of a mini-batch share the noise samples (section 5.1; Bengio and
    Senecal, 2003, 2008). The probabilities of the network are those of all words, and
    held-out losses are exact.

    Parameters
    ----------
    n_noise : int, default=512
        Number of distinct noise samples of each mini-batch, at most the size of the
        vocabulary.
    proposal : {"unigram"} or array-like of float, shape (n_words,), default="unigram"
        The distribution of the noise, as in `NCE`.
    proposal_power : float, default=1
        Exponent of the weights, as in `NCE`.
    min_effective_samples : float, default=0
        While the mean effective sample size of recent mini-batches is smaller,
        `n_noise` is doubled, to at most 16 times its value. 0 never changes it.
        ``history_`` has both figures. Each ``fit`` and ``partial_fit`` starts with
        `n_noise` and with the unigrams of its own next words.

    See Also
    --------
    NCE : Scores that need no normalisation.

    References
    ----------
    Bengio and Senecal (2003), Quick training of probabilistic neural nets by
    importance sampling, AISTATS; and (2008), Adaptive importance sampling to
    accelerate training of a neural probabilistic language model, IEEE Transactions
    on Neural Networks 19(4).

    Examples
    --------
    >>> from nplm import Importance, NeuralLM
    >>> lm = NeuralLM(loss=Importance(min_effective_samples=100))
    >>> lm.set_params(loss__n_noise=1024).loss
    Importance(min_effective_samples=100, n_noise=1024)
    """

    name = "importance"
    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **NCE._parameter_constraints,
        "min_effective_samples": [Interval(Real, 0, None, closed="left")],
    }

    min_effective_samples: float = 0.0

    def plain_copy(self) -> Self:
        option = super().plain_copy()
        option.min_effective_samples = float(option.min_effective_samples)
        return option

    def estimate(self) -> estimates.Estimate:
        return estimates.Importance(
            self.n_noise, self._weights(), self.proposal_power,
            self.min_effective_samples,
        )  # fmt: skip


LOSSES: dict[str, type[Loss]] = {kind.name: kind for kind in (Exact, Importance, NCE)}
