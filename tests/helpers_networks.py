"""Networks of every kind, small and random, and the reference of each."""

import numpy as np
from scipy.sparse import csr_array

from nplm.models.neural.network.dropout import Dropout
from nplm.models.neural.network.features import Composed, Features, Fixed, Met
from nplm.models.neural.network.hidden import Linear, Projected
from nplm.models.neural.network.inputs import MixedSenses
from nplm.models.neural.network.network import Network, Parts
from nplm.models.neural.network.outputs.classes import Classes
from nplm.models.neural.network.outputs.energy import Energy
from nplm.models.neural.network.outputs.estimates import (
    Importance,
    NoiseContrastive,
    Proposal,
)
from nplm.models.neural.network.outputs.sampled import (
    SampledEnergy,
    SampledSoftmax,
    SampledTiedSoftmax,
)
from nplm.models.neural.network.outputs.softmax import Softmax, TiedSoftmax
from nplm.models.neural.network.outputs.tree import Tree
from nplm.models.neural.network.solvers import SGD, Adam, Schedule
from nplm.training.parallel.threads import Threads
from tests.reference import neural as reference

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
