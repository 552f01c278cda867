"""What tests of several files share; no test imports another test's file."""

import json
import math
import os
import zlib
from collections import Counter, defaultdict
from itertools import combinations

import numpy as np
import pytest
from scipy.sparse import csr_array

from nplm import (
    ClassLM,
    EnergyLM,
    InterpolatedTrigram,
    KneserNeyLM,
    MixtureLM,
    NeuralLM,
    ShortlistLM,
    Vocabulary,
    available_tiers,
)
from nplm._kernels.reference import neural as reference
from nplm.datasets import Corpus, fetch_brown, fetch_ptb
from nplm.formats._arrays import MAGIC
from nplm.neural.network.dropout import Dropout
from nplm.neural.network.features import Composed, Features, Fixed, Met
from nplm.neural.network.hidden import Linear, Projected
from nplm.neural.network.inputs import MixedSenses
from nplm.neural.network.network import Network, Parts
from nplm.neural.network.outputs.classes import Classes
from nplm.neural.network.outputs.energy import Energy
from nplm.neural.network.outputs.estimates import Importance, NoiseContrastive, Proposal
from nplm.neural.network.outputs.sampled import (
    SampledEnergy,
    SampledSoftmax,
    SampledTiedSoftmax,
)
from nplm.neural.network.outputs.softmax import Softmax, TiedSoftmax
from nplm.neural.network.outputs.tree import Tree
from nplm.neural.tiers import kernel_tier
from nplm.neural.training.solvers import SGD, Adam, Schedule
from nplm.parallel.threads import Threads

# Text of a few words cannot give discounts: its fall-back is tested on its own.
small_text = pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate")


def paper_lm(order=None, **settings):
    """The paper's MLP9 and its training, but in mini-batches, for few epochs.

    What is tested of a network is its own only as far as it says so: the default may
    change.
    """
    recipe = dict(batch_size=32, learning_rate_init=4e-3, max_iter=12)
    recipe |= dict(early_stopping=False)
    recipe |= dict(n_samples=512, epsilon=1e-8)  # of other losses, and solvers
    return NeuralLM.from_paper("MLP9", **(recipe | settings | dict(order=order)))


def small_models(n_words):
    """One small instance of each model of windows."""
    size = dict(n_words=n_words)
    neural = dict(n_hidden=4, embedding_dim=3, max_iter=2, random_state=0)
    trigram = InterpolatedTrigram(**size)
    return {
        "neural": paper_lm(**neural, **size),
        "neural, direct": paper_lm(**neural, direct=True, **size),
        "neural, no hidden units": paper_lm(
            **{**neural, "n_hidden": 0}, direct=True, batch_size=1, **size
        ),
        "neural, tied, of parts": paper_lm(
            **neural, **size, tied=True, word_features=np.eye(n_words)[:, :5]
        ),
        "neural, senses": paper_lm(**neural, n_senses=2, **size),
        "neural, classes": paper_lm(**neural, output="classes", **size),
        "neural, tree": paper_lm(**neural, output="tree", direct=True, **size),
        "neural, importance": paper_lm(
            **neural, loss="importance", n_samples=5, **size
        ),
        "neural, nce": paper_lm(**neural, loss="nce", direct=True, **size),
        "neural, energy": EnergyLM(**neural, **size),
        "neural, energy, target weights": EnergyLM(
            **neural, target_weights=True, batch_size=1, **size
        ),
        "trigram": trigram,
        "Kneser-Ney": KneserNeyLM(**size),
        "Kneser-Ney, back-off": KneserNeyLM(interpolate=False, **size),
        "classes": ClassLM(n_classes=4, random_state=0, **size),
        "mixture": MixtureLM([("nn", paper_lm(**neural)), ("tri", trigram)], **size),
        "short-list": ShortlistLM(
            paper_lm(**neural), KneserNeyLM(), n_shortlist=5, **size
        ),
    }


def on_every_tier(*precisions):
    """Precisions, each with a tier that this processor can run it on."""
    return [f"{name}, {tier}" for name in precisions for tier in available_tiers(name)]


FULL_PRECISIONS = on_every_tier("float32", "float64")
PRECISIONS = on_every_tier("float32", "float64", "bfloat16")


def bfloat16_is_here():
    """Whether the tier in use multiplies bfloat16, as most processors' do not."""
    try:
        kernel_tier("bfloat16")
    except ValueError:
        return False
    return True


def pairwise(factors, where=lambda **arguments: True):
    """Cases of a test: few, in which any two values of its arguments meet.

    A fault of one value, or of two together, is then met as it is in the cases of all
    values with all (a covering array of strength 2, chosen greedily). `factors` has the
    values of each argument; those of "a, b" are pairs, which meet any third value.
    `where` says of some arguments whether there is such a case.
    """

    def arguments(row):
        named = {}
        for names, value in row.items():
            several = ", " in names
            named |= zip(names.split(", "), value if several else [value])
        return named

    def pairs(row):
        return combinations(row.items(), 2)

    left = {}  # a set, in the order of the factors
    for (one, values), (other, others) in combinations(factors.items(), 2):
        for a in values:
            for b in others:
                if where(**arguments({one: a, other: b})):
                    left[(one, a), (other, b)] = True
    rows = []
    used = Counter()  # where two values serve as well, that which met these less
    while left:
        chosen = dict(next(iter(left)))
        for name, values in factors.items():
            if name in chosen:
                continue
            fitting = [v for v in values if where(**arguments(chosen | {name: v}))]
            chosen[name] = max(
                fitting,
                key=lambda v: (
                    sum(
                        ((k, a), (name, v)) in left or ((name, v), (k, a)) in left
                        for k, a in chosen.items()
                    ),
                    -sum(used[k, a, name, v] for k, a in chosen.items()),
                ),
            )
        row = {name: chosen[name] for name in factors}
        for (one, a), (other, b) in pairs(row):
            left.pop(((one, a), (other, b)), None)
            used[one, a, other, b] += 1
            used[other, b, one, a] += 1
        rows.append(arguments(row))
    return pytest.mark.parametrize(
        list(rows[0]),
        [tuple(row.values()) for row in rows],
        ids=["-".join(map(str, row.values())) for row in rows],
        indirect=[name for name in rows[0] if name in ("precision", "tier")],
    )


def text(n, seed=0, n_words=12):
    """Word ids of which a few are frequent, as in a text."""
    return np.random.default_rng(seed).zipf(1.4, size=n) % n_words


def markov_stream(n, n_words=20, seed=0):
    """Each word is followed by one of three: a bigram is all there is to learn."""
    rng = np.random.default_rng(seed)
    followers = np.random.default_rng(99).integers(0, n_words, (n_words, 3))
    ids = [0]
    for choice in rng.choice(3, size=n - 1, p=[0.7, 0.2, 0.1]):
        ids.append(followers[ids[-1], choice])
    return np.array(ids, dtype=np.int32)


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
            if all(n[i] for i in (1, 2, 3)):
                Y = n[1] / (n[1] + 2 * n[2])
                own = [i - (i + 1) * Y * n[i + 1] / n[i] for i in (1, 2, 3)]
                whole = 3 if interpolate else math.nextafter(3, 0)
                if all(0 < d <= i for i, d in zip((1, 2, whole), own)):
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


# -- binary files ---------------------------------------------------------------


def read_parts(path):
    """Header and arrays of a file of save_binary."""
    data = path.read_bytes()
    n = int.from_bytes(data[16:20], "little")
    header, at, arrays = json.loads(data[24 : 24 + n]), 24 + n, {}
    for entry in header["arrays"]:
        at += -at % 64
        dtype = np.dtype(entry["dtype"])
        arrays[entry["name"]] = np.frombuffer(data, dtype, entry["size"], at).copy()
        at += entry["size"] * dtype.itemsize
    return header, arrays


def write_parts(path, header, arrays):
    """Write a file whose checksums are right, whatever is in it."""
    for entry, array in zip(header["arrays"], arrays.values()):
        entry |= {"size": len(array), "crc32": zlib.crc32(array.tobytes())}
    # As long as with the longest checksums.
    n_missing = sum(10 - len(str(entry["crc32"])) for entry in header["arrays"])
    write_raw(path, json.dumps(header).encode() + b" " * n_missing, arrays)


def write_raw(path, encoded, arrays):
    data = MAGIC + len(encoded).to_bytes(4, "little")
    data += zlib.crc32(encoded).to_bytes(4, "little") + encoded
    for array in arrays.values():
        data += bytes(-len(data) % 64) + array.tobytes()
    path.write_bytes(data + bytes(-len(data) % 64))


# -- networks --------------------------------------------------------------------

# A network of any kind: each is an output, and features, that others do not have.
KINDS = [
    "softmax", "classes", "tree", "importance", "nce", "energy", "energy, own weights",
    "energy, importance", "energy, nce", "energy, own weights, importance",
    "energy, own weights, nce", "fixed", "composed", "tied", "tied, composed",
    "tied, importance", "tied, composed, nce",
]  # fmt: skip
SAMPLED = ["importance", "nce"]
EXACT = [kind for kind in KINDS if not kind.endswith(("importance", "nce"))]
ROUNDED = [kind for kind in KINDS if not kind.startswith(("classes", "tree", "energy"))]
SHAPES = {  # n_words, n_context, n_hidden, embedding_dim, direct: multiples of nothing
    "hidden": (50, 3, 7, 4, False),
    "hidden+direct, two tiles": (300, 2, 5, 3, True),
    "direct": (23, 4, 0, 5, True),
    "wider than vectors": (150, 2, 37, 11, False),
    "no context": (9, 0, 3, 2, True),
    "three words": (3, 1, 20, 1, True),
    "two words": (2, 1, 1, 1, True),
    "one word": (1, 2, 3, 2, False),
}
SCHEDULE = dict(learning_rate_init=0.01, learning_rate_decay=0.02, alpha=0.05)
MOMENTS = dict(beta_1=0.8, beta_2=0.95, epsilon=1e-3)
UNIGRAM = Proposal(None, 1.0)


def there_is(kind="softmax", precision="float32", rates=(0, 0, 0), **others):
    """Whether a kind of network has this precision, and this dropout."""
    if any(rates) and kind.startswith("energy"):
        return False
    return kind in ROUNDED or not precision.startswith("bfloat16")


def dropout_of(rates, n_workers=1):
    """Dropout with seeds, also where nothing is left out."""
    seeds = np.random.RandomState(3).randint(1, 2**62, size=(n_workers, 3))
    return Dropout(*rates, seeds.astype(np.uint64))


def solver_of(name="sgd", **schedule):
    schedule = Schedule(**(SCHEDULE | schedule))
    return Adam(schedule, **MOMENTS) if name == "adam" else SGD(schedule)


def reference_of(solver, n_seen=0):
    """The reference of a solver."""
    schedule = vars(solver.schedule) | dict(n_seen=n_seen)
    if isinstance(solver, Adam):
        return reference.Adam(**schedule, **MOMENTS)
    return reference.SGD(**schedule)


def output_of(kind, direct, n_words, n_samples, rng):
    """An output that has learnt from words as frequent as in text."""
    if kind == "classes":
        labels = rng.integers(0, max(1, n_words // 5), n_words)
        return Classes(direct, np.unique(labels, return_inverse=True)[1])
    estimate = None
    if kind.endswith("importance"):
        estimate = Importance(n_samples, UNIGRAM, 0)
    elif kind.endswith("nce"):
        estimate = NoiseContrastive(n_samples, UNIGRAM)
    if kind.startswith("energy"):
        own = dict(target_weights="own" in kind)
        if estimate is None:
            return Energy(**own)
        return SampledEnergy(False, estimate=estimate, **own)
    if kind.startswith("tied"):
        if estimate is None:
            return TiedSoftmax(False)
        return SampledTiedSoftmax(False, estimate=estimate)
    if estimate is not None:
        return SampledSoftmax(direct, estimate=estimate)
    return Tree(direct) if kind == "tree" else Softmax(direct)


def features_of(kind, n_words, m, rng):
    if kind == "fixed":
        return Fixed(m, rng.normal(size=(n_words, m)))
    tied = kind.startswith("tied")
    if "composed" in kind:
        return Composed(m, tied=tied, matrix=parts_of_words(n_words, rng))
    return Features(m, tied=tied)


def parts_of_words(n_words, rng, n_parts=11):
    """A few parts a word, one of them everyone's; some words have none."""
    dense = rng.normal(size=(n_words, n_parts)) * (rng.random((n_words, n_parts)) < 0.2)
    dense[::7] = 0
    dense[1:, 0] = 0.5
    return csr_array(dense)


def random_network(
    n_words, n_context, n_hidden, embedding_dim, direct, precision, rng, n_threads=1,
    *, kind="softmax", output=None, n_samples=20, n_distant=0, n_senses=1, solver=None,
    **options,
):  # fmt: skip
    """A network of a kind, or of a kind with this output, and weights at random."""
    y = (rng.zipf(1.3, size=5 * n_words) % n_words).astype(np.int32)
    if output is None:
        output = output_of(kind, direct, n_words, n_samples, rng)
        output = output.learn(n_words, y[:, None], np.roll(y, -1))
    features = features_of(kind, n_words, embedding_dim, rng)
    parts = Parts.of(n_context, features, n_hidden, output, n_distant)
    if n_senses > 1:  # some words share theirs
        parts = parts._replace(inputs=MixedSenses(parts.inputs, n_senses, 20))
    if isinstance(output, Energy):  # it has hidden units, always
        parts = parts._replace(hidden=Linear(max(1, n_hidden)))
        if not output.rows_are_visited:
            parts = parts._replace(features=Met(embedding_dim))
    elif output.rows_are_features:
        parts = parts._replace(hidden=Projected(n_hidden, embedding_dim, direct))
    drawn = np.random.RandomState(rng.integers(2**31))
    dtype = np.float64 if precision == "float64" else np.float32
    parameters = parts.initial(n_words, y, drawn, dtype)
    network = Network(
        parts, parameters, precision=precision, threads=Threads(n_threads),
        solver=solver_of() if solver is None else solver,
        output_state=output.initial_state(n_words, y, drawn, n_threads), **options,
    )  # fmt: skip
    for array in weights_of(network).arrays():
        array += rng.normal(size=array.shape) / 2
    parts.features.settle(parameters)
    return network


TWINS = {
    "softmax": lambda output: reference.Softmax(),
    "classes": lambda output: reference.Classes(output.labels),
    "tree": lambda output: reference.Tree(output.children),
    "energy": lambda output: reference.Softmax(),
}


def sampled_loss(network):
    """The reference of a loss on sampled words, with its draws to come; else None."""
    output, state = network.parts.output, network.output_state
    if "generators" not in state:
        return None
    n = min(output.estimate.n_samples, network.n_words)
    seed = [int(x) for x in state["generators"][0]]
    sampler = reference.Sampler(state["proposal"], seed, n)
    if isinstance(output.estimate, Importance):
        return reference.Importance(sampler, np.array([n, 0.0, 0.0]), 0, n)
    return reference.NoiseContrastive(sampler, n)


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
        own.more.get("S"),
        own.more.get("Q"),
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
