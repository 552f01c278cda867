"""Mixture weights by expectation maximisation, one set per context bin.

The procedure of the interpolated trigram (section 4.1 of Bengio et al. 2003,
after Jelinek and Mercer 1980), for any member distributions.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nplm.base.array_types import Counts, Floats, Index
from nplm.base.exceptions import ParameterMessage, parameter_error
from nplm.base.warnings import warn

# Where EM stops: with weights that are worse than the best by 0.00001% at most.
MAX_ITER, TOL = 1000, 1e-7
# Weights of all samples, which the priors of bins are made of, are not to depend on it.
TOL_OF_PRIOR = 1e-10
# An iteration keeps this share of the weight that a step of EM leaves.
MIN_KEPT = 1e-3
# Parts of the way from a step of EM to one of Newton's method, which may be too far.
STEPS = (1.0, 0.25, 0.0625, 0.0)
# Added to the diagonal of scaled second derivatives, which equal members make singular.
RIDGE = 1e-12

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
        """Return the bins of `n_tokens`, by the count of the most frequent context."""
        first, last = (
            math.ceil(-math.log((1 + f) / n_tokens)) for f in (max_frequency, 0)
        )
        return cls(first, last)

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return self.last - self.first + 1

    @property
    def numbers(self) -> Counts:
        """The number q of each bin."""
        return np.arange(self.first, self.last + 1)

    def row(self, frequency: Counts, n_tokens: int) -> Index:
        """Return the row of each context's bin, by its count among `n_tokens`.

        Counts of another corpus may be outside the bins, and have the nearest one.
        """
        q = np.ceil(-np.log((1 + frequency) / n_tokens)).astype(np.intp)
        return np.clip(q, self.first, self.last) - self.first


class MixtureFit(NamedTuple):
    """The result of `fit_mixture_weights`; likelihoods include the prior, if any."""

    weights: Floats  # (n_bins, n_members): rows sum to 1
    log_likelihood: list[float]  # mean of the samples, before and after each iteration
    gap: float  # bound of what the best weights gain over these, in nats per sample

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

        # On the command line max_iter is that of the network.
        message = ParameterMessage(
            "{0}: after {1} iterations the best weights may gain {2:.2g} nats per "
            "token.", model, max_iter, self.gap,
            advice=f" Raise max_iter={max_iter}, or tol={tol:g}.",
        )  # fmt: skip
        warn(message, ConvergenceWarning)


def checked_weights(
    weights: ArrayLike, n_members: int, max_error: float = 1e-6
) -> Floats:
    """Return weights as an array, or raise unless they sum to 1 within `max_error`."""
    values = np.asarray(weights, dtype=np.float64)
    is_valid = values.shape == (n_members,) and (values >= 0).all()
    if not is_valid or not abs(values.sum() - 1) <= max_error:
        raise parameter_error(
            "{weights} must be numbers, 0 or more, that sum to 1: one for each model, "
            "of which there are {0}.", n_members, weights=values.tolist(),
        )  # fmt: skip
    return values


def fit_mixture_weights(
    probs: Floats,
    bins: Index | None = None,
    n_bins: int = 1,
    *,
    max_iter: int = MAX_ITER,
    tol: float = TOL,
    prior: float = 0.0,
) -> MixtureFit:
    """Maximise the likelihood of held-out samples over the mixture weights.

    Each iteration is a step of Newton's method (Kim et al. 2020), or one of EM towards
    it if that would lower the likelihood, until no weights gain more than `tol`. A bin
    without samples takes the weights of the nearest bin (of two, that of rarer
    contexts). `prior` samples are added to each bin, divided by the weights of all
    samples: a member that few samples needed then keeps a small weight. 0 is maximum
    likelihood.

    - `probs` (n_samples, n_members): probability of each sample under each member
    - `bins` (n_samples,): the bin of each sample; by default there is one

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
    extra = np.full(n_members, prior / n_members)
    if prior > 0 and n_bins > 1:
        overall, _, _ = _fit_bin(probs, extra, max_iter, min(tol, TOL_OF_PRIOR))
        extra = prior * overall
    filled = np.unique(bins)
    fits = [_fit_bin(probs[bins == i], extra, max_iter, tol) for i in filled]
    # An empty bin has the nearest weights; of two equally near, of rarer contexts.
    distance = np.abs(np.arange(n_bins)[:, np.newaxis] - filled[::-1])
    nearest = distance.argmin(axis=1)
    weights = np.array([fitted for fitted, _, _ in fits])[::-1][nearest]
    n_totals = max(len(totals) for _, totals, _ in fits)
    padded = [np.pad(t, (0, n_totals - len(t)), "edge") for _, t, _ in fits]
    totals = np.sum(padded, axis=0) / len(probs)
    gap = sum(gap for _, _, gap in fits) / len(probs)
    return MixtureFit(weights, totals.tolist(), float(gap))


def _fit_bin(
    probs: Floats, extra: Floats, max_iter: int, tol: float
) -> tuple[Floats, list[float], float]:
    """Fit the weights of a bin, with a prior of `extra` samples of each member alone.

    Returns also the log-likelihoods, and the bound of what the best weights gain.
    """
    n, size = len(probs), len(probs) + extra.sum()

    def total_of(weights: Floats) -> float:
        total = np.log(probs @ weights).sum()
        return float(total + extra @ np.log(weights) if extra.any() else total)

    weights = np.full(probs.shape[1], 1 / probs.shape[1])
    totals = [total_of(weights)]
    while True:
        ratios = probs / (probs @ weights)[:, np.newaxis]
        of_prior = extra / np.maximum(weights, np.finfo(float).tiny)
        gradient = ratios.sum(axis=0) + of_prior
        # The likelihood is concave: this bounds what any weights could gain.
        gap = gradient.max() - size
        if len(totals) > max_iter or gap <= tol * n:
            return weights, totals, float(gap)
        once = weights * gradient / size
        curvature = ratios.T @ ratios + np.diag(of_prior**2 / np.maximum(extra, RIDGE))
        moved = _newton(weights, gradient - size, curvature) - once
        for step in STEPS:
            tried = np.maximum(once + step * moved, MIN_KEPT * once)
            tried /= tried.sum()
            total = total_of(tried)
            if total >= totals[-1]:
                break
        weights = tried
        totals.append(total)


def _newton(weights: Floats, gradient: Floats, curvature: Floats) -> Floats:
    """Return the weights, 0 or more, that maximise a quadratic model of a function."""
    scale = np.sqrt(np.diag(curvature))
    scale[scale == 0] = 1  # of a member that has no sample
    scaled = curvature / np.outer(scale, scale) + RIDGE * np.eye(len(scale))
    slope = scaled @ (weights * scale) + gradient / scale
    # Lawson and Hanson (1974): members become free, or 0 again, one by one.
    best, free = np.zeros(len(weights)), np.zeros(len(weights), dtype=bool)
    for _ in range(3 * len(weights)):
        rest = np.where(free, -np.inf, slope - scaled @ best)
        if rest.max() <= RIDGE * np.abs(slope).max():
            break
        free[rest.argmax()] = True
        while True:
            solved = np.zeros(len(weights))
            solved[free] = np.linalg.solve(scaled[np.ix_(free, free)], slope[free])
            low = free & (solved <= 0)
            if not low.any():
                break
            best += (best[low] / (best[low] - solved[low])).min() * (solved - best)
            free &= best > RIDGE * best.max()
        best = solved
    return best / scale
