"""Mixture weights by expectation maximisation, one set per context bin.

The procedure of the interpolated trigram (section 4.1 of Bengio et al. 2003,
after Jelinek and Mercer 1980), for any member distributions.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nplm.base.warnings import warn

__all__ = [
    "BIN_PRIOR", "FrequencyBins", "MixtureFit", "checked_weights",
    "fit_mixture_weights",
]  # fmt: skip

# Number of prior samples. A bin with a few held-out samples may not need the uniform
# member: with weight 0 for it, an unseen word would have no probability.
BIN_PRIOR = 1.0


class FrequencyBins(NamedTuple):
    """Bins of context frequency, footnote 4: ``q = ceil(-log((1 + freq) / T))``.

    `first`, `last`: the bins of the most frequent context and of a context never seen.
    """

    first: int
    last: int

    @classmethod
    def of_training(cls, max_frequency: int, n_tokens: int) -> FrequencyBins:
        """Return the bins of a training corpus.

        - `max_frequency`: the count of the most frequent context
        - `n_tokens`: t, the size of the training corpus
        """
        first, last = (
            math.ceil(-math.log((1 + f) / n_tokens)) for f in (max_frequency, 0)
        )
        return cls(first, last)

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return self.last - self.first + 1

    def row(self, frequency: NDArray[np.int64], n_tokens: int) -> NDArray[np.intp]:
        """Return the row of each context's bin, 0 for the most frequent ones.

        - `frequency` (n_samples,): count of each context
        - `n_tokens`: t, the size of the corpus that `frequency` was counted in. If that
          is not the whole training corpus, a value of q outside the bins is mapped to
          the nearest bin
        """
        q = np.ceil(-np.log((1 + frequency) / n_tokens)).astype(np.intp)
        return np.clip(q, self.first, self.last) - self.first


class MixtureFit(NamedTuple):
    """The result of `fit_mixture_weights`.

    - `weights` (n_bins, n_members): rows sum to 1
    - `log_likelihood`: mean log-likelihood of the samples before each step, and at the
      end; it includes the log-density of the weights if there is a prior
    - `converged`: whether the last step gained less than `tol`
    """

    weights: NDArray[np.float64]
    log_likelihood: list[float]
    converged: bool = True

    @property
    def n_iter(self) -> int:
        """Number of EM steps."""
        return len(self.log_likelihood) - 1

    def warn_unless_converged(self, model: str, max_iter: int, tol: float) -> None:
        """Warn if EM reached `max_iter`; with ``tol=0`` this is expected."""
        if self.converged or max_iter == 0 or tol == 0:
            return
        # Imported here: the commands mix n-grams without scikit-learn.
        from sklearn.exceptions import ConvergenceWarning

        gain = self.log_likelihood[-1] - self.log_likelihood[-2]
        warn(
            f"{model}: the weights still gained {gain:.2g} nats per token at "
            f"max_iter={max_iter}; raise max_iter, or tol={tol:g}.",
            ConvergenceWarning,
        )


def checked_weights(
    weights: ArrayLike, n_members: int, max_error: float = 1e-6
) -> NDArray[np.float64]:
    """Return weights as an array, or raise unless they sum to 1 within `max_error`."""
    values = np.asarray(weights, dtype=np.float64)
    is_valid = values.shape == (n_members,) and (values >= 0).all()
    if not is_valid or not abs(values.sum() - 1) <= max_error:
        raise ValueError(
            f"weights={values.tolist()} must be numbers, 0 or more, that sum to 1: one "
            f"for each model, of which there are {n_members}."
        )
    return values


def fit_mixture_weights(
    probs: NDArray[np.float64],
    bins: NDArray[np.intp],
    n_bins: int,
    *,
    max_iter: int,
    tol: float,
    prior: float = 0.0,
) -> MixtureFit:
    """Maximise the likelihood of held-out samples over the mixture weights.

    The initial weights are equal. A bin without samples takes the weights of the
    nearest bin with samples (of two equally near, that of rarer contexts). A sample
    that has probability 0 under every member is left out.

    - `probs` (n_samples, n_members): probability of each sample under each member
    - `bins` (n_samples,): the bin of each sample
    - `max_iter`: maximum number of steps
    - `tol`: stop when a step gains less than this, in nats per sample
    - `prior`: number of prior samples added to each bin, divided between the members by
      the weights of one bin of all samples (and equally in that bin): a member that few
      samples never needed then keeps a small weight. 0 is maximum likelihood

    Raises ValueError if every sample has probability 0 under every member.

    Examples
    --------
    >>> import numpy as np
    >>> probs = np.array([[0.8, 0.1], [0.8, 0.1], [0.8, 0.1], [0.0, 0.1]])
    >>> bins = np.zeros(4, dtype=np.intp)
    >>> fit_mixture_weights(probs, bins, 1, max_iter=100, tol=1e-9).weights.round(3)
    array([[0.714, 0.286]])
    """
    possible = probs.any(axis=1)
    if not possible.any():
        raise ValueError(
            f"none of the {len(probs)} held-out samples has any probability under "
            "any member: the mixture weights cannot be estimated; add a member that "
            "gives every word some probability."
        )
    if not possible.all():
        probs, bins = probs[possible], bins[possible]
    n_members = probs.shape[1]
    size = np.bincount(bins, minlength=n_bins)
    weights = np.full((n_bins, n_members), 1 / n_members)
    extra = np.full(n_members, prior / n_members)
    if prior > 0 and n_bins > 1:
        one_bin = np.zeros_like(bins)
        overall = fit_mixture_weights(
            probs, one_bin, 1, max_iter=max_iter, tol=tol, prior=prior
        )
        extra = prior * overall.weights[0]
    log_likelihood: list[float] = []
    while True:
        joint = weights[bins] * probs
        mixture = joint.sum(axis=1)
        total = np.log(mixture).sum()
        if prior > 0:
            total += (np.log(weights[size > 0]) @ extra).sum()
        log_likelihood.append(float(total / len(mixture)))
        gained = (
            len(log_likelihood) < 2 or log_likelihood[-1] - log_likelihood[-2] >= tol
        )
        if len(log_likelihood) > max_iter or not gained:
            break
        joint /= mixture[:, np.newaxis]
        for member in range(n_members):
            expected = np.bincount(bins, joint[:, member], minlength=n_bins)
            expected += extra[member]
            weights[:, member] = expected / np.maximum(size + prior, 1)
        # Without samples all expectations are 0, which is not a distribution.
        weights[size == 0] = 1 / n_members
    filled = np.flatnonzero(size)
    for empty in np.flatnonzero(size == 0):
        distance = np.abs(filled - empty)
        weights[empty] = weights[filled[::-1][distance[::-1].argmin()]]
    return MixtureFit(weights, log_likelihood, not gained)
