"""The network in plain NumPy: the same names as the kernels', and easy to read.

This is the specification that the compiled kernels are tested against: the parts
(`_features`, `_inputs`, `_hidden`, `_softmax`, `_energy`, `_sampled`, `_solvers`) and
what puts them together (`_network`). `_products`, `_loops` and `_team` hold how it is
done fast: what they compute is here within these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
Rounding = Callable[[Array], Array]
Rows = list[NDArray[np.intp] | slice]


@dataclass
class Softmax:
    """What the rows of E are for: words, each its own."""

    def log_p(self, logits: Array) -> Array:
        """Logarithms of the probabilities of all words, from those of all rows."""
        return log_softmax(logits)

    def slopes(self, logits: Array, y: NDArray[np.integer]) -> Array:
        """Give d log P(y) / d logits."""
        g = -np.exp(log_softmax(logits))
        g[np.arange(len(y)), y] += 1
        return g

    def met(self, y: NDArray[np.int32], n_rows: int) -> NDArray[np.intp]:
        """Which rows an update of these examples visits."""
        return np.arange(n_rows)


@dataclass
class Classes(Softmax):
    """Rows are classes, then the words of each (section 5.2).

    P(w) = P(class of w) P(w | class of w).
    """

    labels: NDArray[np.int32]

    def blocks(self) -> list[tuple[NDArray[np.intp], slice]]:
        """Words of each class, and their rows."""
        n_classes = self.labels.max() + 1
        words = [np.flatnonzero(self.labels == c) for c in range(n_classes)]
        starts = n_classes + np.cumsum([0, *map(len, words)])
        return [(w, slice(s, s + len(w))) for w, s in zip(words, starts, strict=False)]

    def log_p(self, logits: Array) -> Array:
        """Logarithms of the probabilities of all words."""
        blocks = self.blocks()
        log_class = log_softmax(logits[:, : len(blocks)])
        log_p = np.empty((len(logits), len(self.labels)))
        for c, (words, rows) in enumerate(blocks):
            log_p[:, words] = log_class[:, [c]] + log_softmax(logits[:, rows])
        return log_p

    def slopes(self, logits: Array, y: NDArray[np.integer]) -> Array:
        """Give d log P(y) / d logits: of the classes, and within that of y."""
        blocks, g = self.blocks(), np.zeros_like(logits)
        n_classes, flat = len(blocks), Softmax()
        g[:, :n_classes] = flat.slopes(logits[:, :n_classes], self.labels[y])
        for k, word in enumerate(y):
            words, rows = blocks[self.labels[word]]
            own = np.flatnonzero(words == word)
            g[k, rows] = flat.slopes(logits[[k], rows], own)[0]
        return g

    def met(self, y: NDArray[np.int32], n_rows: int) -> NDArray[np.intp]:
        """Which rows: of all classes, and of the words in those of y."""
        blocks, rows = self.blocks(), np.arange(n_rows)
        own = [rows[blocks[label][1]] for label in np.unique(self.labels[y])]
        return np.concatenate([rows[: len(blocks)], *own])


@dataclass
class Tree(Softmax):
    """Rows are the inner nodes of a tree, each a choice between its two children.

    A child is a word, or n_words plus a row; the first is chosen with the probability
    sigmoid(logit), the second with sigmoid(-logit) (Morin and Bengio, 2005).
    """

    children: NDArray[np.int32]

    def __post_init__(self) -> None:
        """Note the rows and signs of the choices that lead to each word or node."""
        n_words = len(self.children) + 1
        self.paths: list[list[tuple[int, int]]] = [[] for _ in range(2 * n_words - 1)]
        for row, pair in enumerate(self.children):  # parents come first
            for child, sign in zip(pair, (1, -1), strict=True):
                self.paths[child] = [*self.paths[n_words + row], (row, sign)]

    def log_p(self, logits: Array) -> Array:
        """Logarithms of the probabilities of all words."""
        log_p = np.zeros((len(logits), len(self.children) + 1))
        for word in range(log_p.shape[1]):
            for row, sign in self.paths[word]:
                log_p[:, word] -= np.logaddexp(0, -sign * logits[:, row])
        return log_p

    def slopes(self, logits: Array, y: NDArray[np.integer]) -> Array:
        """Give d log P(y) / d logits: 0 but for the choices that lead to y."""
        g = np.zeros_like(logits)
        for k, word in enumerate(y):
            for row, sign in self.paths[word]:
                g[k, row] = sign / (1 + np.exp(sign * logits[k, row]))
        return g

    def met(self, y: NDArray[np.int32], n_rows: int) -> NDArray[np.intp]:
        """Which rows: those above a word of y."""
        rows = {row for word in y for row, _ in self.paths[word]}
        return np.array(sorted(rows), np.intp)


Visited = NDArray[np.intp] | slice
# From E, z, the next words and what rounds the factors of products: log-likelihood,
# its gradients for z and E, and the rows of E that were visited.
Loss = Callable[
    [Array, Array, NDArray[np.int32], Rounding], tuple[float, Array, Array, Visited]
]


class Weights(NamedTuple):
    """Parameters, or their gradients: E = [U | W | b], W without direct connections.

    When tied, which an R says, E = [C | b] and there is no other C. Where words are
    made of parts, C is what each has alone, and G the features of the parts. With an
    H_next they are those of an energy: E = [v | b], or [b] and a v apart.
    """

    C: Array | None
    H: Array
    d: Array
    E: Array
    P: Array | None = None  # weights of distant words by position
    R: Array | None = None  # projection to the features
    G: Array | None = None
    H_next: Array | None = None  # hidden weights of the next word's features
    v: Array | None = None  # weights of an energy that all words share
    n_window: int = 0  # words of the window, n - 1
    parts: Array | None = None  # (n_words, rows of G), what each word is made of
    fixed: bool = False  # whether C stays as it is
    output: Softmax = Softmax()

    def arrays(self) -> list[Array]:
        """Give those that are there and learned."""
        C = None if self.fixed else self.C
        every = (
            C, self.H, self.d, self.E, self.P, self.R, self.G, self.H_next, self.v,
        )  # fmt: skip
        return [array for array in every if array is not None]

    def decaying(self) -> list[Array]:
        """Give those that the weight decay falls on: no bias, and no P."""
        C = None if self.fixed else self.C
        every = (C, self.H, self.E[:, :-1], self.R, self.G, self.H_next, self.v)
        return [array for array in every if array is not None]


def as_it_is(values: Array) -> Array:
    """Give the values: what the products of full precision multiply."""
    return values


def bfloat16(values: Array) -> Array:
    """Round to the nearest bfloat16, to the even one of two."""
    bits = values.astype(np.float32).view(np.uint32)
    kept = (bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)
    return kept.view(np.float32).astype(values.dtype)


# -- features (_features) ----------------------------------------------------------


def composed(own: Array, parts: Array, G: Array) -> Array:
    """Features of words: what each has alone, and those of its parts, weighted."""
    return own + parts @ G


def features(weights: Weights) -> Array:
    """Give C, by whichever kind the weights are of."""
    own = weights.E[:, :-1] if weights.C is None else weights.C
    if weights.parts is None or weights.G is None:
        return own
    return composed(own, weights.parts, weights.G)


def place_of(weights: Weights, array: Array) -> int:
    """Give the place of an array among those that are learned."""
    (place,) = (i for i, other in enumerate(weights.arrays()) if other is array)
    return place


def rows_met(weights: Weights, X: NDArray[np.int32], y: NDArray[np.int32]) -> Rows:
    """Give the rows of each array that an update meets.

    All of them, but of composed features only those of words that it has, and of
    their parts, and of output rows those of the next words: Adam's moments of others
    wait.
    """
    arrays = weights.arrays()
    rows: Rows = [slice(None)] * len(arrays)
    rows[place_of(weights, weights.E)] = weights.output.met(y, len(weights.E))
    if weights.parts is not None and weights.C is not None:
        words = np.unique(X).astype(np.intp)
        rows[0], rows[-1] = words, np.unique(np.nonzero(weights.parts[words])[1])
    return rows


# -- inputs (_inputs) ------------------------------------------------------------


def concatenation(C: Array, X: NDArray[np.int32], n_window: int) -> Array:
    """Features of the window's words, nearest first; X has the nearest last."""
    nearest = X[:, ::-1][:, :n_window]
    return C[nearest].reshape(len(X), n_window * C.shape[1])


def distant_averages(C: Array, P: Array, X: NDArray[np.int32], n_window: int) -> Array:
    """Features of the window's words, then weighted sums of those of more words."""
    words = X[:, ::-1][:, : P.shape[1]]
    averages = np.einsum("ji,kim->kjm", P, C[words])
    return np.hstack([concatenation(C, X, n_window), averages.reshape(len(X), -1)])


def inputs(weights: Weights, X: NDArray[np.int32]) -> Array:
    """Give x, by whichever kind the weights are of."""
    C = features(weights)
    if weights.P is None:
        return concatenation(C, X, weights.n_window)
    return distant_averages(C, weights.P, X, weights.n_window)


def inputs_gradient(
    weights: Weights, X: NDArray[np.int32], dx: Array
) -> tuple[Array, Array | None]:
    """Carry dL/dx to C and P."""
    C, P, n_window = features(weights), weights.P, weights.n_window
    K, m = len(X), C.shape[1]
    dC, words = np.zeros_like(C), X[:, ::-1]
    np.add.at(dC, words[:, :n_window], dx[:, : n_window * m].reshape(K, n_window, m))
    if P is None:
        return dC, None
    n_averages, n_distant = P.shape
    slopes = dx[:, n_window * m :].reshape(K, n_averages, m)
    np.add.at(dC, words[:, :n_distant], np.einsum("ji,kjm->kim", P, slopes))
    return dC, np.einsum("kjm,kim->ji", slopes, C[words[:, :n_distant]])


# -- dropout (_dropout) ------------------------------------------------------------


def mask(seed: int, t: int, K: int, n: int, rate: float) -> Array:
    """Give the factors of n numbers of the examples t, ..., t + K - 1.

    Each is 0 with a chance of `rate`, to the next of 65,536 steps, and else as much
    above 1 as gives it the mean 1. Four are made of each of splitmix64's numbers
    (Steele, Lea and Flood, 2014), of which every example has as many as it needs.
    """
    threshold, of_each = min(int(rate * 65536 + 0.5), 65535), (n + 3) // 4
    first = np.arange(t, t + K, dtype=np.uint64)[:, None] * np.uint64(of_each)
    count: NDArray[np.uint64] = first + np.arange(1, of_each + 1, dtype=np.uint64)
    z: NDArray[np.uint64] = np.uint64(seed) + count * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    parts = z[:, :, None] >> np.arange(0, 64, 16, dtype=np.uint64)
    kept = (parts & np.uint64(0xFFFF)) >= threshold
    return kept.reshape(K, 4 * of_each)[:, :n] * (65536 / (65536 - threshold))


class Masks(NamedTuple):
    """Factors of x, of a and, where that is projected, of s; 1 without dropout."""

    x: Array | float = 1.0
    a: Array | float = 1.0
    s: Array | float = 1.0


NOTHING_LEFT_OUT = Masks()


@dataclass
class Dropout:
    """Shares of x, a and s that are left out, and the seed of each."""

    rates: tuple[float, float, float]
    seeds: NDArray[np.uint64]

    def masks(self, weights: Weights, t: int, K: int) -> Masks:
        """Give those of K examples, before which t were seen."""
        h, n_inputs = weights.H.shape
        m = 0 if weights.R is None else len(weights.R)
        sizes = zip(self.seeds, (n_inputs, h, m), self.rates, strict=True)
        return Masks(*(mask(int(seed), t, K, n, rate) for seed, n, rate in sizes))


# -- hidden units (_hidden) --------------------------------------------------------


def tanh_layer(H: Array, d: Array, x: Array) -> Array:
    """Activations a of the hidden units."""
    return np.tanh(d + x @ H.T)


def linear_layer(H: Array, d: Array, x: Array) -> Array:
    """Give the sums of an energy's context: those of the next word come on top."""
    return d + x @ H.T


def projection(R: Array, v: Array) -> Array:
    """Give s, as many numbers as a word has features, from v = [a | x] or a."""
    return v @ R.T


# -- output units (_softmax) -------------------------------------------------------


def softmax(
    E: Array, a: Array, x: Array, rounded: Rounding = as_it_is
) -> tuple[Array, Array]:
    """Give z = [a | x | 1] and the logits y = E z; what is multiplied is `rounded`."""
    direct = E.shape[1] > a.shape[1] + 1
    one = np.ones((len(a), 1))
    z = np.hstack([a, x, one] if direct else [a, one])
    return z, rounded(z) @ rounded(E).T


def log_softmax(logits: Array) -> Array:
    """Logarithm of the softmax of each row."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def exact(
    E: Array, z: Array, y: NDArray[np.int32], rounded: Rounding = as_it_is
) -> tuple[float, Array, Array, Visited]:
    """Log-likelihood by the softmax over all words, its gradients, and all rows."""
    log_p = log_softmax(rounded(z) @ rounded(E).T)
    rows = np.arange(len(y))
    g = -np.exp(log_p)
    g[rows, y] += 1
    g = rounded(g)
    total = float(log_p[rows, y].sum())
    return total, g @ rounded(E), g.T @ rounded(z), slice(None)


# -- output units trained on sampled words (_sampler, _sampled) ------------------------


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

    proposal: NDArray[np.float64]
    state: list[int]  # 4 numbers of 64 bits
    n: int

    def uniform(self) -> float:
        """Draw from [0, 1): xoshiro256** (Blackman and Vigna, 2018)."""
        mask, s = 2**64 - 1, self.state

        def rotated(x: int, by: int) -> int:
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

    def chances(self) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Give the words by falling q, and the chances of each."""
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

    def draw(self) -> tuple[NDArray[np.int32], Array, Array]:
        """Draw words; they, 1 over their chances, and 1 - their chances."""
        order, pi = self.chances()
        certain = int((pi == 1).sum())
        upto = pi[certain:].cumsum()

        def place(at: float) -> int:
            found = int(np.searchsorted(upto, at, side="right"))
            return min(found, len(upto) - 1)

        picked: list[int] = []
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

    def followed(
        self,
        E: Array,
        z: Array,
        y: NDArray[np.int32],
        drawn: tuple[NDArray[np.int32], Array, Array],
        slope: Array,
        rounded: Rounding,
    ) -> tuple[Array, Array, Visited]:
        """Gradients for z and E, and the visited rows.

        `drawn` are the words, their rows and their dL/dy; `slope` is that of the next
        words.
        """
        words, tile, slopes = drawn
        slopes = rounded(slopes)
        dz = slopes @ rounded(tile) + slope[:, None] * E[y]
        dE = np.zeros_like(E)
        dE[words] = slopes.T @ rounded(z)
        np.add.at(dE, y, slope[:, None] * z)
        return dz, dE, np.union1d(words, y).astype(np.intp)


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

    def __call__(
        self, E: Array, z: Array, y: NDArray[np.int32], rounded: Rounding = as_it_is
    ) -> tuple[float, Array, Array, Visited]:
        """Give the estimated log-likelihood, its gradients and the visited rows."""
        self.sampler.n = int(self.watched[0])
        words, weights, noise = self.sampler.draw()
        tile = E[words]
        tile[:, -1] += np.log(weights)
        target = np.einsum("kd,kd->k", z, E[y])
        logits = rounded(z) @ rounded(tile).T
        logits[y[:, None] == words] = -np.inf
        log_p = log_softmax(np.hstack([target[:, None], logits]))
        p = np.exp(log_p[:, 1:])
        self.watch(float((p**2 @ noise).mean()))
        followed = self.followed(
            E, z, y, (words, tile, -p), 1 - np.exp(log_p[:, 0]), rounded
        )
        return float(log_p[:, 0].sum()), *followed

    def watch(self, variance: float) -> None:
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

    def __call__(
        self, E: Array, z: Array, y: NDArray[np.int32], rounded: Rounding = as_it_is
    ) -> tuple[float, Array, Array, Visited]:
        """Give the sum of s_t, the objective's gradients and the visited rows."""
        words, weights, _ = self.sampler.draw()
        expected = self.n_noise * self.sampler.proposal
        tile = E[words]
        tile[:, -1] -= np.log(expected[words])
        target = np.einsum("kd,kd->k", z, E[y])
        slopes = -expected[words] * weights * logistic(rounded(z) @ rounded(tile).T)
        slope = 1 - logistic(target - np.log(expected[y]))
        followed = self.followed(E, z, y, (words, tile, slopes), slope, rounded)
        return float(target.sum()), *followed


def logistic(y: Array) -> Array:
    """1 / (1 + exp(-y))."""
    return (1 + np.tanh(y / 2)) / 2


def unnormalised(E: Array, z: Array, y: NDArray[np.int32]) -> Array:
    """Scores of the next words, for their log-probabilities."""
    return np.einsum("kd,kd->k", z, E[y])


# -- output units (_energy) --------------------------------------------------------


def energies(weights: Weights, z: Array) -> tuple[Array, Array, Array]:
    """Give E = v . tanh(z + H_next C(w)) + b of all words w, the tanhs and each v.

    A row of z is d + Hx of a context, and one of v a word's.
    """
    assert weights.C is not None and weights.H_next is not None
    a = np.tanh(z[:, None] + weights.C @ weights.H_next.T)
    own, b = weights.E[:, :-1], weights.E[:, -1]
    v = own if weights.v is None else np.tile(weights.v, (len(b), 1))
    return np.einsum("kji,ji->kj", a, v) + b, a, v


def energy_gradients(weights: Weights, z: Array, g: Array) -> tuple[Weights, Array]:
    """Carry dL/dlogits, K rows of g, to what makes an energy; and to z."""
    assert weights.C is not None and weights.H_next is not None
    _, a, v = energies(weights, z)
    ds = -g[:, :, None] * v * (1 - a**2)
    dG = ds.sum(axis=0)
    dv, db = -np.einsum("kj,kji->ji", g, a), -g.sum(axis=0)[:, None]
    shared = weights.v is not None
    slopes = weights._replace(
        C=dG @ weights.H_next, H_next=dG.T @ weights.C,
        E=db if shared else np.hstack([dv, db]), v=dv.sum(axis=0) if shared else None,
    )  # fmt: skip
    return slopes, ds.sum(axis=1)


# -- solvers (_solvers) --------------------------------------------------------------


@dataclass
class Solver:
    """The paper's schedule: the step after `n_seen` examples.

    Or one that falls in a line to 0, from `begun` on over `span` examples.
    """

    learning_rate_init: float
    learning_rate_decay: float
    alpha: float
    begun: float = 0.0
    span: float = np.inf
    n_seen: int = 0

    def rate(self) -> float:
        """Give the step now."""
        left = max(0.0, 1 - (self.n_seen - self.begun) / self.span)
        rate = self.learning_rate_init / (1 + self.learning_rate_decay * self.n_seen)
        return rate * left

    def update(
        self, weights: Weights, gradients: Weights, K: int, met: Rows | None = None
    ) -> None:
        """Follow the gradients, summed over K examples, of rows that they met."""
        raise NotImplementedError

    def decayed(self, weights: Weights, by: float) -> None:
        """Take this share of all weights away: not of biases, nor of P."""
        for array in weights.decaying():
            array -= by * array


@dataclass
class SGD(Solver):
    """Gradients and weight decay are summed, so that the step is one example's."""

    def update(
        self, weights: Weights, gradients: Weights, K: int, met: Rows | None = None
    ) -> None:
        """Follow the gradients, summed over K examples; elsewhere they are zeros."""
        rate = self.rate()
        self.decayed(weights, rate * self.alpha * K)
        for array, gradient in zip(weights.arrays(), gradients.arrays(), strict=True):
            array += rate * gradient
        self.n_seen += K


@dataclass
class Adam(Solver):
    """Adam of the mean gradient, with decoupled weight decay."""

    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-8
    n_updates: int = 0
    moments: list[tuple[Array, Array]] = field(default_factory=list)

    def update(
        self, weights: Weights, gradients: Weights, K: int, met: Rows | None = None
    ) -> None:
        """Follow the gradients, summed over K examples, of rows that they met."""
        arrays, rate = weights.arrays(), self.rate()
        if not self.moments:
            self.moments = [(np.zeros_like(a), np.zeros_like(a)) for a in arrays]
        self.n_updates += 1
        t = self.n_updates
        step = rate * np.sqrt(1 - self.beta_2**t) / (1 - self.beta_1**t)
        self.decayed(weights, rate * self.alpha)
        for array, summed, (first, second), rows in zip(
            arrays, gradients.arrays(), self.moments,
            met or [slice(None)] * len(arrays), strict=True,
        ):  # fmt: skip
            gradient = summed[rows] / K
            first[rows] += (1 - self.beta_1) * (gradient - first[rows])
            second[rows] += (1 - self.beta_2) * (gradient**2 - second[rows])
            array[rows] += step * first[rows] / (np.sqrt(second[rows]) + self.epsilon)
        self.n_seen += K


# -- put together (_network) ---------------------------------------------------------


def forward(
    weights: Weights,
    X: NDArray[np.int32],
    rounded: Rounding = as_it_is,
    masks: Masks = NOTHING_LEFT_OUT,
) -> tuple[Array, Array, Array, Array]:
    """Features x, hidden activations a, z and logits: equation (1) for K examples.

    Of what `masks` leave out x and z know nothing; a has all. Of an energy, a and z are
    the sums of the context.
    """
    x = inputs(weights, X) * masks.x
    if weights.H_next is not None:
        z = linear_layer(weights.H, weights.d, x)
        return x, z, z, -energies(weights, z)[0]
    a = tanh_layer(weights.H, weights.d, x)
    if weights.R is None:
        return x, a, *softmax(weights.E, a * masks.a, x, rounded)
    s = projection(weights.R, projected(weights, a * masks.a, x)) * masks.s
    E = np.hstack([features(weights), weights.E[:, -1:]])
    return x, a, *softmax(E, s, x, rounded)


def projected(weights: Weights, a: Array, x: Array) -> Array:
    """Give what is projected: a, or [a | x] with direct connections."""
    assert weights.R is not None
    return np.hstack([a, x]) if weights.R.shape[1] > a.shape[1] else a


def gradients(
    weights: Weights,
    X: NDArray[np.int32],
    y: NDArray[np.int32],
    rounded: Rounding = as_it_is,
    loss: Loss | None = None,
    masks: Masks = NOTHING_LEFT_OUT,
) -> tuple[float, Weights]:
    """Log-likelihood of the examples, or another `loss`, and its gradient."""
    return gradients_met(weights, X, y, rounded, loss, masks)[:2]


def gradients_met(
    weights: Weights,
    X: NDArray[np.int32],
    y: NDArray[np.int32],
    rounded: Rounding = as_it_is,
    loss: Loss | None = None,
    masks: Masks = NOTHING_LEFT_OUT,
) -> tuple[float, Weights, Rows]:
    """Give the rows of each array that the examples meet, too."""
    K, h = len(X), len(weights.H)
    x, a, z, logits = forward(weights, X, rounded, masks)
    met, dR, dG = rows_met(weights, X, y), None, None
    if loss is not None:
        total, dz, dE, met[place_of(weights, weights.E)] = loss(
            weights.E, z, y, rounded
        )
        dv = dz[:, :-1]
    elif weights.H_next is not None:
        g = weights.output.slopes(logits, y)
        total = float(weights.output.log_p(logits)[np.arange(K), y].sum())
        slopes, do = energy_gradients(weights, z, g)
        dC, dP = inputs_gradient(weights, X, do @ weights.H)
        assert slopes.C is not None
        dC += slopes.C
        slopes = slopes._replace(C=dC, H=do.T @ x, d=do.sum(axis=0), P=dP)
        return total, slopes, met
    else:
        g = rounded(weights.output.slopes(logits, y))
        total = float(weights.output.log_p(logits)[np.arange(K), y].sum())
        dE = g.T @ rounded(z)
        if weights.R is None:
            dv = (g @ rounded(weights.E))[:, :-1]
        else:
            ds = g @ rounded(features(weights)) * masks.s
            dR = ds.T @ projected(weights, a * masks.a, x)
            dv = ds @ weights.R
    do = (1 - a**2) * dv[:, :h] * masks.a
    dx = do @ weights.H
    if dv.shape[1] > h:
        dx += dv[:, h:]
    dx *= masks.x
    dC, dP = inputs_gradient(weights, X, dx)
    if weights.R is not None:
        dE[:, :-1] += dC
        dC = dE[:, :-1]
    if weights.parts is not None:
        dG = weights.parts.T @ dC
    slopes = weights._replace(
        C=None if weights.C is None else dC, H=do.T @ x, d=do.sum(axis=0), E=dE, P=dP,
        R=dR, G=dG,
    )  # fmt: skip
    return total, slopes, met


def train(
    weights: Weights,
    X: NDArray[np.int32],
    y: NDArray[np.int32],
    index: NDArray[np.intp],
    batch_size: int,
    solver: Solver,
    rounded: Rounding = as_it_is,
    loss: Loss | None = None,
    dropout: Dropout | None = None,
) -> float:
    """Change the weights, mini-batch by mini-batch; returns the summed loss."""
    summed, masks = 0.0, NOTHING_LEFT_OUT
    for start in range(0, len(index), batch_size):
        rows = index[start : start + batch_size]
        if dropout is not None:
            masks = dropout.masks(weights, solver.n_seen, len(rows))
        total, slopes, met = gradients_met(
            weights, X[rows], y[rows], rounded, loss, masks
        )
        solver.update(weights, slopes, len(rows), met)
        summed -= total
    return summed


def score(
    weights: Weights,
    X: NDArray[np.int32],
    y: NDArray[np.int32],
    *,
    first: int = 0,
    rounded: Rounding = as_it_is,
) -> Array:
    """Maximum, sum of exponentials and target's logit of the words of E's rows."""
    logits = forward(weights, X, rounded)[-1]
    high = logits.max(axis=1)
    total = np.exp(logits - high[:, None]).sum(axis=1)
    target = np.full(len(y), -np.inf)
    here = np.flatnonzero((first <= y) & (y < first + len(weights.E)))
    target[here] = logits[here, y[here] - first]
    return np.stack([high, total, target])


def log_prob(
    weights: Weights,
    X: NDArray[np.int32],
    y: NDArray[np.int32],
    *,
    rounded: Rounding = as_it_is,
) -> Array:
    """Natural-log probability of each y after its context."""
    log_p = probabilities(weights, X, logarithm=True, rounded=rounded)
    return log_p[np.arange(len(y)), y]


def probabilities(
    weights: Weights,
    X: NDArray[np.int32],
    *,
    logarithm: bool,
    rounded: Rounding = as_it_is,
) -> Array:
    """Probabilities of all words after each context, or their natural logarithms."""
    log_p = weights.output.log_p(forward(weights, X, rounded)[-1])
    return log_p if logarithm else np.exp(log_p)


def candidates(
    weights: Weights,
    X: NDArray[np.int32],
    words: NDArray[np.int32],
    *,
    normalize: bool,
) -> Array:
    """Natural-log probabilities of some words after each context, or their logits."""
    logits = forward(weights, X)[-1]
    scores = log_softmax(logits) if normalize else logits
    return np.take_along_axis(scores, words, axis=1)
