"""What tests of several files share; no test imports another test's file."""

import os
from collections import Counter, defaultdict

import numpy as np
import pytest

from nplm import Vocabulary
from nplm._kernels.reference import neural as reference
from nplm.datasets import Corpus, fetch_brown, fetch_ptb
from nplm.neural.features import Features, Fixed, Met
from nplm.neural.hidden import Linear
from nplm.neural.network import Network, Parts
from nplm.neural.outputs.classes import Classes
from nplm.neural.outputs.energy import Energy
from nplm.neural.outputs.softmax import Softmax
from nplm.neural.outputs.tree import Tree
from nplm.neural.parameters import Parameters
from nplm.neural.solvers import SGD, Adam, Schedule
from nplm.parallel.threads import Threads

# Text of a few words cannot give discounts: its fall-back is tested on its own.
small_text = pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate")


def text(n, seed=0, n_words=12):
    """Word ids of which a few are frequent, as in a text."""
    return np.random.default_rng(seed).zipf(1.4, size=n) % n_words


def corpus_of(ids, boundary):
    """A corpus of "a", "b" and "c" (ids from 2); the last three ids are the test."""
    vocabulary = Vocabulary().fit([["a", "b", "c"]])
    train, valid, test = np.split(np.asarray(ids, dtype=np.int32), [-6, -3])
    return Corpus("letters", train, valid, test, vocabulary, boundary)


def published_corpus(name):
    """Brown or Penn Treebank of the folder that NPLM_DATA names, or skip the test."""
    if not os.environ.get("NPLM_DATA"):
        pytest.skip("NPLM_DATA names no folder of corpora")
    fetch = {"brown": fetch_brown, "ptb": fetch_ptb}[name]
    return fetch(download_if_missing=False)


class DictionaryKneserNey:
    """Chen and Goodman's equations on dictionaries, one probability at a time."""

    def __init__(self, X, y, n_words, interpolate, min_counts, boundary):
        self.n_words, self.interpolate = n_words, interpolate
        self.top = len(X[0])
        self.min_counts = min_counts
        raw = [Counter() for _ in range(self.top + 1)]
        for x, w in zip(X, y):
            for k in range(self.top + 1):
                context = tuple(x[self.top - k :])
                raw[k][context, w] += 1
                if k and context[0] == boundary:
                    break
        self.a = [defaultdict(dict) for _ in raw]
        for k, grams in enumerate(raw):
            before = Counter()
            if k < self.top:
                before = Counter((c[1:], w) for c, w in raw[k + 1])
            for (c, w), count in grams.items():
                whole = k == self.top or (c and c[0] == boundary)
                self.a[k][c][w] = count if whole else before[c, w]
        self.discounts = []
        for level in self.a:
            n = Counter(a for row in level.values() for a in row.values())
            D = [0.5, 1.0, 1.5]
            if all(n[i] for i in (1, 2, 3, 4)):
                Y = n[1] / (n[1] + 2 * n[2])
                own = [i - (i + 1) * Y * n[i + 1] / n[i] for i in (1, 2, 3)]
                if all(0 < d < i for i, d in zip((1, 2, 3), own)):
                    D = own
            self.discounts.append(D)
        self.rows = {}

    def row(self, context):
        """Return the whole distribution after a context (a tuple)."""
        if context not in self.rows:
            self.rows[context] = self._row(context)
        return self.rows[context]

    def _row(self, context):
        k = len(context)
        lower = self.row(context[1:]) if k else [1 / self.n_words] * self.n_words
        seen = self.a[k].get(context)
        if not seen:
            return lower
        total = sum(seen.values())
        discounted = {w: self.discounts[k][min(a, 3) - 1] for w, a in seen.items()}
        gamma = sum(discounted.values()) / total
        kept = [w for w, a in seen.items() if a >= self.min_counts[k]]
        p = {w: (seen[w] - discounted[w]) / total for w in kept}
        if self.interpolate or len(kept) == self.n_words:
            p = {w: p[w] + gamma * lower[w] for w in kept}
        if len(kept) == self.n_words:
            bow = 0.0
        else:
            rest = sum(lower[w] for w in range(self.n_words) if w not in p)
            bow = (1 - sum(p.values())) / rest
        return [p.get(w, bow * lower[w]) for w in range(self.n_words)]


# -- networks --------------------------------------------------------------------

SCHEDULE = dict(learning_rate_init=0.01, learning_rate_decay=0.02, alpha=0.05)
MOMENTS = dict(beta_1=0.8, beta_2=0.95, epsilon=1e-3)


def solver_of(name="sgd", **schedule):
    schedule = Schedule(**(SCHEDULE | schedule))
    return Adam(schedule, **MOMENTS) if name == "adam" else SGD(schedule)


def reference_of(solver, n_seen=0):
    """The reference of a solver."""
    schedule = vars(solver.schedule) | dict(n_seen=n_seen)
    if isinstance(solver, Adam):
        return reference.Adam(**schedule, **MOMENTS)
    return reference.SGD(**schedule)


def random_output(name, direct, n_words, rng):
    """An output that has learnt from words as frequent as in text, or of that kind."""
    y = (rng.zipf(1.3, size=5 * n_words) % n_words).astype(np.int32)
    if name == "softmax":
        return Softmax(direct)
    if name == "classes":
        labels = rng.integers(0, max(1, n_words // 5), n_words)
        return Classes(direct, np.unique(labels, return_inverse=True)[1]).learn(
            n_words, y
        )
    return Tree(direct).learn(n_words, y)


def random_network(
    n_words, n_context, n_hidden, embedding_dim, direct, precision, rng, n_threads=1,
    *, n_distant=0, solver=None, output="softmax", **options,
):  # fmt: skip
    if isinstance(output, str):
        output = random_output(output, direct, n_words, rng)
    features = Features(embedding_dim)
    parts = Parts.of(n_context, features, n_hidden, output, n_distant)
    if isinstance(output, Energy):
        parts = parts._replace(hidden=Linear(n_hidden), features=Met(embedding_dim))
    n_inputs = parts.inputs.n_inputs
    dtype = np.float64 if precision == "float64" else np.float32
    more = parts.inputs.initial_arrays(dtype)
    more |= output.initial_arrays(n_words, embedding_dim, n_hidden, rng, dtype)
    n_rows = output.n_rows(n_words)
    weights = Parameters.of(
        C=rng.normal(size=(n_words, embedding_dim)).astype(dtype),
        H=rng.normal(size=(n_hidden, n_inputs)),
        d=rng.normal(size=n_hidden),
        U=rng.normal(size=(n_rows, n_hidden)) if output.weighted else None,
        W=rng.normal(size=(n_rows, n_inputs)) if direct else None,
        b=rng.normal(size=n_rows),
        visited=parts.visited,
        **{k: a + rng.normal(size=a.shape) / a.size for k, a in more.items()},
    )
    return Network(
        parts, weights, precision=precision, threads=Threads(n_threads),
        solver=solver_of() if solver is None else solver, **options,
    )  # fmt: skip


TWINS = {
    "softmax": lambda output: reference.Softmax(),
    "classes": lambda output: reference.Classes(output.labels),
    "tree": lambda output: reference.Tree(output.children),
    "energy": lambda output: reference.Softmax(),
}


def random_windows(n, n_words, n_context, rng):
    X = rng.integers(0, n_words, (n, n_context)).astype(np.int32)
    return X, rng.integers(0, n_words, n).astype(np.int32)


def weights_of(network):
    """Views: what fills up the rows of E to whole vectors is left out."""
    own, parts = network.parameters, network.parts
    alone = own.more.get("own", own.E if own.tied else own.C)
    m, matrix = own.C.shape[1], getattr(parts.features, "matrix", None)
    return reference.Weights(
        None if own.tied else alone[:, :m],
        own.H,
        own.d,
        (alone if own.tied else own.E)[:, : own.n_outputs],
        own.P,
        own.more.get("R"),
        own.more.get("G"),
        own.more.get("H_next"),
        own.more.get("v"),
        parts.inputs.n_window,
        None if matrix is None else matrix.toarray(),
        isinstance(parts.features, Fixed),
        TWINS[parts.output.name](parts.output),
    )


def wide(weights):
    """A copy in float64."""
    return weights._replace(**{
        name: array.astype(np.float64)
        for name, array in weights._asdict().items()
        if isinstance(array, np.ndarray)
    })  # fmt: skip
