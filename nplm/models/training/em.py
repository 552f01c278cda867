"""Mixture weights by expectation maximisation, one set per context bin.

The procedure of the interpolated trigram (section 4.1 of Bengio et al. 2003,
after Jelinek and Mercer 1980), for any member distributions.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nplm.base.warnings import warn

__all__ = [
    "BIN_PRIOR", "MAX_ITER", "TOL", "FrequencyBins", "MixtureFit", "checked_weights",
    "fit_mixture_weights",
]  # fmt: skip

# Where EM stops: with weights that are worse than the best by 0.00001% at most.
MAX_ITER, TOL = 1000, 1e-7
# An iteration keeps this share of the weight that two steps of EM leave.
MIN_KEPT = 1e-3

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
    - `log_likelihood`: mean log-likelihood of the samples at the start and after each
      iteration; it includes the log-density of the weights if there is a prior
    - `gap`: bound of what the best weights gain over these, in nats per sample
    """

    weights: NDArray[np.float64]
    log_likelihood: list[float]
    gap: float

    @property
    def n_iter(self) -> int:
        """Number of iterations of EM."""
        return len(self.log_likelihood) - 1

    def warn_unless_converged(self, model: str, max_iter: int, tol: float) -> None:
        """Warn if EM reached `max_iter`; with ``tol=0`` this is expected."""
        if self.gap <= tol or max_iter == 0 or tol == 0:
            return
        # Imported here: the commands mix n-grams without scikit-learn.
        from sklearn.exceptions import ConvergenceWarning

        warn(
            f"{model}: the best weights may gain {self.gap:.2g} nats per token at "
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
    bins: NDArray[np.intp] | None = None,
    n_bins: int = 1,
    *,
    max_iter: int = MAX_ITER,
    tol: float = TOL,
    prior: float = 0.0,
) -> MixtureFit:
    """Maximise the likelihood of held-out samples over the mixture weights.

    The initial weights are equal. A bin without samples takes the weights of the
    nearest bin with samples (of two equally near, that of rarer contexts). A sample
    that has probability 0 under every member is left out. Each iteration has two steps
    of EM, and goes on in their direction if the likelihood does not become less than
    by the first one (SQUAREM; Varadhan and Roland 2008).

    - `probs` (n_samples, n_members): probability of each sample under each member
    - `bins` (n_samples,): the bin of each sample; by default there is one
    - `max_iter`: maximum number of iterations
    - `tol`: stop when no weights gain more than this, in nats per sample
    - `prior`: number of prior samples added to each bin, divided between the members by
      the weights of one bin of all samples (and equally in that bin): a member that few
      samples never needed then keeps a small weight. 0 is maximum likelihood

    Raises ValueError if every sample has probability 0 under every member.

    Examples
    --------
    >>> import numpy as np
    >>> probs = np.array([[0.8, 0.1], [0.8, 0.1], [0.8, 0.1], [0.0, 0.1]])
    >>> fit_mixture_weights(probs).weights.round(3)
    array([[0.714, 0.286]])
    """
    tol = float(tol)  # NumPy compares a float with a float16 as float16
    if bins is None:
        bins = np.zeros(len(probs), dtype=np.intp)
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
    is_filled = size > 0
    weights = np.full((n_bins, n_members), 1 / n_members)
    extra = np.full(n_members, prior / n_members)
    if prior > 0 and n_bins > 1:
        overall = fit_mixture_weights(probs, max_iter=max_iter, tol=tol, prior=prior)
        extra = prior * overall.weights[0]
    log_likelihood: list[float] = []

    def step(weights: NDArray[np.float64]) -> tuple[Any, NDArray[np.float64]]:
        """Return the log-likelihood of each bin, and new weights over old ones."""
        mixture = (weights[bins] * probs).sum(axis=1)
        with np.errstate(divide="ignore"):
            total = np.bincount(bins, np.log(mixture), minlength=n_bins)
            if prior > 0:
                total[is_filled] += np.log(weights[is_filled]) @ extra
        ratio = np.ones_like(weights)
        for i in range(n_members):
            sums = np.bincount(bins, probs[:, i] / mixture, minlength=n_bins)
            if prior > 0:
                sums += extra[i] / weights[:, i]
            ratio[is_filled, i] = (sums / np.maximum(size + prior, 1))[is_filled]
        return total, ratio

    twice, least = weights, np.full(n_bins, -np.inf)
    while True:
        total, ratio = step(weights)
        is_lower = ~(total >= least)
        if is_lower.any():
            weights = np.where(is_lower[:, None], twice, weights)
            least = np.where(is_lower, -np.inf, total)
            continue
        log_likelihood.append(float(total.sum() / len(probs)))
        # The likelihood is concave: this bounds what any weights could gain.
        gap = float((ratio.max(axis=1) - 1) @ (size + prior) / len(probs))
        once = weights * ratio
        if len(log_likelihood) > max_iter or gap <= tol:
            break
        least, ratio = step(once)
        twice = once * ratio
        moved, turned = once - weights, twice - 2 * once + weights
        with np.errstate(invalid="ignore", divide="ignore"):
            length = np.linalg.norm(moved, axis=1) / np.linalg.norm(turned, axis=1)
        length = np.where(np.isfinite(length), np.maximum(length, 1), 1)[:, None]
        far = weights + 2 * length * moved + length**2 * turned
        weights = np.maximum(far, MIN_KEPT * twice)
        weights /= weights.sum(axis=1, keepdims=True)
    filled = np.flatnonzero(size)
    for empty in np.flatnonzero(size == 0):
        distance = np.abs(filled - empty)
        weights[empty] = weights[filled[::-1][distance[::-1].argmin()]]
    return MixtureFit(weights, log_likelihood, gap)
