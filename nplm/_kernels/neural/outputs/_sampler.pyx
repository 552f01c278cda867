"""Sample words from a proposal without replacement.

A sample of n words includes word j with probability ``pi_j = min(1, c q_j)``, for the
proposal q and the c with which these sum to n: the most frequent words are in every
sample, and n = |V| is the whole vocabulary. Terms divided by their pi give unbiased
estimates of sums over all words (Horvitz and Thompson, 1952). With replacement, most of
the sample would be repeats of frequent words.
"""

from libc.stdint cimport uint64_t

import numpy as np

from nplm._kernels.neural._loops cimport Scratch


cdef inline uint64_t rotated(uint64_t x, int by) noexcept nogil:
    return (x << by) | (x >> (64 - by))


cdef inline double uniform(uint64_t *s) noexcept nogil:
    """Return a number in [0, 1) of 53 bits: xoshiro256** (Blackman and Vigna, 2018)."""
    cdef uint64_t drawn = rotated(s[1] * 5, 7) * 9, t = s[1] << 17
    s[2] ^= s[0]
    s[3] ^= s[1]
    s[1] ^= s[2]
    s[0] ^= s[3]
    s[2] ^= t
    s[3] = rotated(s[3], 45)
    return (drawn >> 11) * (1.0 / (1ULL << 53))


cdef class Sampler:
    """Sample words from a proposal without replacement.

    Equivalent to ``reference.neural.Sampler``.

    Parameters
    ----------
    scratch : Scratch
        Memory of the thread.
    proposal : ndarray of float64, shape (n_words,)
        Probabilities, positive.
    state : ndarray of uint64, shape (4,)
        State of the generator, not all zero; each sample changes it.
    most : int
        Maximum number of noise samples.
    """

    def __cinit__(
        self, Scratch scratch, double[::1] proposal, uint64_t[::1] state, *,
        Py_ssize_t most,
    ):
        if len(state) != 4:
            raise ValueError(f"a state of {len(state)} numbers, not 4")
        self.n_words, self.state = len(proposal), state
        self.most = min(most, self.n_words)
        order = np.argsort(-np.asarray(proposal), kind="stable")
        falling = np.asarray(proposal)[order]
        self.order, self.falling = order.astype(np.int32), falling
        self.rest = falling[::-1].cumsum()[::-1].copy()
        self.upto = np.empty(self.n_words)
        self.guide = np.empty(self.most + 1, dtype=np.intp)
        self.words = <int *>scratch.bytes(self.most * sizeof(int))
        self.weights = <double *>scratch.bytes(self.most * sizeof(double))
        self.noise = <double *>scratch.bytes(self.most * sizeof(double))
        self.q = <double *>scratch.bytes(self.most * sizeof(double))
        self.n = 0

    cdef void prepare(self, Py_ssize_t n) noexcept nogil:
        """Set the sample size to n words, or to all: O(|V|)."""
        cdef Py_ssize_t j, k = 0, c = 0
        cdef double by, total = 0
        self.n = n = min(n, self.most)
        while c < n < self.n_words and (n - c) * self.falling[c] >= self.rest[c]:
            c += 1
        self.n_certain = c = self.n_words if n == self.n_words else c
        if c == n:
            return
        by = (n - c) / self.rest[c]
        # Stratum k has cumulative probabilities from k to k + 1.
        for j in range(c, self.n_words):
            total += by * self.falling[j]
            self.upto[j] = total
            while k < n - c and total > k:
                self.guide[k] = j
                k += 1
        # Rounding makes the sum differ slightly from n - c.
        while k <= n - c:
            self.guide[k] = self.n_words - 1
            k += 1

    cdef Py_ssize_t draw(self) noexcept nogil:
        """Sample words, and return their number.

        Each stratum has one. A word in two strata that is sampled in the first is left
        out of the second; else its share there is larger, so that its probability is
        right (ordered pivotal sampling: Deville and Tille, 1998; Chauvet, 2012).
        """
        cdef Py_ssize_t n_certain = self.n_certain, n = 0, k, low, high, middle
        cdef Py_ssize_t before = -1
        cdef double by = 0, u, here, there, share, chance
        for n in range(n_certain):
            self.words[n] = self.order[n]
            self.weights[n] = 1
            self.noise[n] = 0
            self.q[n] = self.falling[n]
        n = n_certain
        if n < self.n:
            by = (self.n - n) / self.rest[n]
        for k in range(self.n - n_certain):
            u = uniform(&self.state[0])
            low, high = self.guide[k], self.guide[k + 1]
            here = self.upto[low] - k  # the share of the first word in this stratum
            there = by * self.falling[low] - here  # and in the previous one
            if there > 0:
                share = 0 if low == before else here / (1 - there)
                if u < share:
                    high = low
                else:
                    u = here + (u - share) / (1 - share) * (1 - here)
            while low < high:  # the first beyond k + u
                middle = (low + high) // 2
                if self.upto[middle] > k + u:
                    high = middle
                else:
                    low = middle + 1
            if low == before:  # because of rounding
                continue
            before = low
            chance = by * self.falling[low]
            self.words[n] = self.order[low]
            self.weights[n] = 1 / chance
            self.noise[n] = 1 - chance
            self.q[n] = self.falling[low]
            n += 1
        return n

    def drawn(self, Py_ssize_t n):
        """Return a sample of n words, or all, and 1 / probabilities. For tests."""
        cdef Py_ssize_t i
        if self.n != min(n, self.most):
            self.prepare(n)
        count = self.draw()
        return (
            np.array([self.words[i] for i in range(count)], dtype=np.int32),
            np.array([self.weights[i] for i in range(count)]),
        )
