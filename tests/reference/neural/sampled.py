"""Output units trained on sampled words (_sampler, _estimates, _sampled)."""

from dataclasses import dataclass

import numpy as np

from tests.reference import Array, Float64
from tests.reference.neural.outputs import log_softmax
from tests.reference.neural.rounding import as_it_is


@dataclass
class Sampler:
    """Words drawn from a proposal q, each at most once: n, or all words.

    Word j is drawn with chance ``pi_j = min(1, c q_j)``, where c makes the chances add
    up to n. With the words by falling q, their chances are intervals that fill
    [0, n]; a point in each stratum [k, k + 1], at random, picks the word it lies in.
    Let a word lie in two strata, p of its chance in the first and r in the second. If
    it was picked in the first, the point in the second is from the other words' part;
    if not, it is picked with chance ``r / (1 - p)``, p + r in all. The other words of
    the second stratum keep their chances (ordered pivotal sampling: Deville and Tille,
    1998; Chauvet, 2012).
    """

    proposal: Float64
    state: list[int]  # 4 numbers of 64 bits
    n: int

    def uniform(self):
        """Draw from [0, 1): xoshiro256** (Blackman and Vigna, 2018)."""
        mask, s = 2**64 - 1, self.state

        def rotated(x, by):
            return (x << by | x >> 64 - by) & mask

        drawn = rotated(s[1] * 5 & mask, 7) * 9 & mask
        t = s[1] << 17 & mask
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotated(s[3], 45)
        return (drawn >> 11) / 2**53

    def chances(self):
        """Return the words by falling q, and the chances of each."""
        order = np.argsort(-self.proposal, kind="stable")
        falling = self.proposal[order]
        rest = falling[::-1].cumsum()[::-1]
        pi = np.ones(len(order))
        if self.n >= len(order):
            return order, pi
        c = 0
        while c < self.n and (self.n - c) * falling[c] >= rest[c]:
            c += 1
        pi[c:] = (self.n - c) / rest[c] * falling[c:]
        return order, pi

    def draw(self):
        """Draw words; they, 1 over their chances, and 1 - their chances."""
        order, pi = self.chances()
        certain = int((pi == 1).sum())
        upto = pi[certain:].cumsum()

        def place(at):
            found = int(np.searchsorted(upto, at, side="right"))
            return min(found, len(upto) - 1)

        picked = []
        for k in range(min(self.n, len(order)) - certain):
            u, first = self.uniform(), place(k)
            r = upto[first] - k
            p = pi[certain + first] - r
            if p > 0:
                share = 0 if first in picked[-1:] else r / (1 - p)
                if u < share:
                    picked.append(first)
                    continue
                u = r + (u - share) / (1 - share) * (1 - r)
            if place(k + u) not in picked[-1:]:  # but for rounding
                picked.append(place(k + u))
        places = np.array([*range(certain), *(certain + i for i in picked)])
        return order[places].astype(np.int32), 1 / pi[places], 1 - pi[places]


@dataclass
class Sampled:
    """Base of the losses that visit drawn words and next words."""

    sampler: Sampler

    def draw(self):
        """Draw the words of a mini-batch."""
        return self.sampler.draw()

    def shifts(self, drawn):
        """Return what is added to the logits of the drawn words."""
        raise NotImplementedError

    def estimate(self, drawn, target, logits, y):
        """Return the estimate; its slopes for logits of the next and the drawn words.

        From those of the next words, `target`, and of the drawn ones with the shifts.
        """
        raise NotImplementedError

    def __call__(self, E, z, y, rounded=as_it_is):
        """Return the estimate of logits E z, its gradients and the visited rows."""
        drawn = self.draw()
        words, tile = drawn[0], E[drawn[0]]
        tile[:, -1] += self.shifts(drawn)
        target = np.einsum("kd,kd->k", z, E[y])
        logits = rounded(z) @ rounded(tile).T
        total, slope, slopes = self.estimate(drawn, target, logits, y)
        slopes = rounded(slopes)
        dz = slopes @ rounded(tile) + slope[:, None] * E[y]
        dE = np.zeros_like(E)
        dE[words] = slopes.T @ rounded(z)
        np.add.at(dE, y, slope[:, None] * z)
        return total, dz, dE, np.union1d(words, y).astype(np.intp)

    def of_logits(self, logits, y):
        """Return the estimate of any logits, its gradient for them and the words."""
        drawn, rows = self.draw(), np.arange(len(y))
        words, g = drawn[0], np.zeros_like(logits)
        total, slope, slopes = self.estimate(
            drawn, logits[rows, y], logits[:, words] + self.shifts(drawn), y
        )
        g[:, words] = slopes
        g[rows, y] += slope
        return total, g, np.union1d(words, y).astype(np.intp)


@dataclass
class Importance(Sampled):
    """The softmax's gradient by importance sampling (section 5.1).

    The gradient of ``log P(t) = s_t - log Z`` is that of s_t less the mean of those of
    all scores under P, which Bengio and Senecal (2003) estimate from words drawn from a
    proposal, weighted by ``exp(s_w) / q_w`` and normalised by the sum of the weights.
    Here

    - words are drawn without replacement, with chances pi, and the next word is never
      left to chance: ``Z = exp(s_t) + sum over w != t of exp(s_w)``, and

          Z' = exp(s_t) + sum over the drawn w != t of exp(s_w) / pi_w

      has the mean Z, for a word is drawn with chance pi_w. A next word that is drawn
      too, an accidental hit, is in the first term and left out of the second, else
      ``exp(s_t)`` would count twice.
    - What is followed is the gradient of ``s_t - log Z'``: the ratio of two estimates
      without bias. Its own bias is of the order of the relative variance of Z', and is
      0 where all words are drawn (pi = 1), which is the exact gradient.
    - The next word's slope is ``1 - exp(s_t) / Z'``, between 0 and 1. With the next
      word left to chance, as in plain importance sampling, it would be 1 whenever that
      is not drawn, however probable it is already, and the scores grow without end.

    ``-log(exp(s_t) / Z')`` is the loss that is told. As the logarithm is concave, its
    mean is below the true loss.

    The effective sample size of an example is ``Z'^2 / sum (1 - pi_w) (exp(s_w) /
    pi_w)^2``, the inverse of the relative variance of Z' if words were drawn
    independently. Where pi is small it is the usual ``(sum w)^2 / sum w^2``; words that
    are in every draw add no variance. `watched` has the words of a draw, the mean
    relative variance over the last mini-batches, and their number; where that is more
    than ``1 / least``, draws get twice as many words, up to `most`.
    """

    watched: Array
    least: float
    most: int

    def draw(self):
        """Draw as many words as are watched to be enough."""
        self.sampler.n = int(self.watched[0])
        return super().draw()

    def shifts(self, drawn):
        """Logarithms of the weights."""
        return np.log(drawn[1])

    def estimate(self, drawn, target, logits, y):
        """Return the estimated log-likelihood."""
        words, _, noise = drawn
        others = np.where(y[:, None] == words, -np.inf, logits)
        log_p = log_softmax(np.hstack([target[:, None], others]))
        p = np.exp(log_p[:, 1:])
        self.watch(float((p**2 @ noise).mean()))
        return float(log_p[:, 0].sum()), 1 - np.exp(log_p[:, 0]), -p

    def watch(self, variance):
        """Take note of the relative variance of a mini-batch's Z'."""
        n, mean, count = self.watched
        count += 1
        mean += (variance - mean) / min(count, 64)
        if count >= 64 and self.least * mean > 1 and n < self.most:
            n, mean, count = min(2 * n, self.most), 0, 0
        self.watched[:] = n, mean, count


@dataclass
class NoiseContrastive(Sampled):
    """A logistic regression that tells next words from drawn ones.

    Mnih and Teh (2012): an example is one word of the text and k words of noise. That w
    is of the text has the probability ``sigma(s_w - log(k q_w))``, if s_w is log P(w).
    What is followed is the gradient of

        log sigma(s_t - log(k q_t)) + k E_q[log sigma(log(k q_w) - s_w)]

    whose maximum, as k grows, is that of the likelihood, and has ``sum exp(s_w) = 1``:
    the normaliser is no parameter, it is 1. The expectation is a sum over all words of
    ``k q_w (...)``, estimated without bias by that over the drawn words with
    ``k q_w / pi_w``, the same for all examples of a mini-batch. A next word that is
    drawn is a word of noise as well: that belongs to the objective.

    The loss that is told is the mean of -s_t.
    """

    n_noise: int

    def expected(self, words):
        """Words of noise, of each kind: k q."""
        return self.n_noise * self.sampler.proposal[words]

    def shifts(self, drawn):
        """Less than the logits by as much as there is noise."""
        return -np.log(self.expected(drawn[0]))

    def estimate(self, drawn, target, logits, y):
        """Return the sum of s_t; slopes are the objective's."""
        words, weights, _ = drawn
        slopes = -self.expected(words) * weights * logistic(logits)
        slope = 1 - logistic(target - np.log(self.expected(y)))
        return float(target.sum()), slope, slopes


def logistic(y):
    """1 / (1 + exp(-y))."""
    return (1 + np.tanh(y / 2)) / 2
