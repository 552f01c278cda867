"""Networks of every kind, small and random, and the reference of each."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array

from nplm import NCE, Classes, Exact, Features, Importance, Softmax, Tree, windows
from nplm.models.neural.architecture import Architecture
from nplm.models.neural.network.dropout import Dropout
from nplm.models.neural.network.hidden import Block
from nplm.models.neural.network.network import Network
from nplm.models.neural.network.outputs import classes, estimates, tree
from nplm.models.neural.network.solver_updates import SGD, Adam, Schedule
from nplm.models.neural.network.word_features import Fixed
from nplm.models.neural.options.outputs import Energy
from nplm.models.training.parallel.threads import Threads
from tests.reference import neural as reference

# Kinds of networks, with different outputs and features.
KINDS = [
    "softmax", "classes", "tree", "importance", "nce", "energy", "energy, own weights",
    "energy, importance", "energy, nce", "energy, own weights, importance",
    "energy, own weights, nce", "fixed", "composed", "tied", "tied, composed",
    "tied, importance", "tied, composed, nce",
]  # fmt: skip
SAMPLED = ["importance", "nce"]
EXACT = [kind for kind in KINDS if not kind.endswith(("importance", "nce"))]
ROUNDED = [kind for kind in KINDS if not kind.startswith("energy")]
SHAPES = {  # n_words, n_context, n_hidden, embedding_dim, direct: no round sizes
    "hidden": (50, 3, 7, 4, False),
    "hidden+direct, two tiles": (300, 2, 5, 3, True),
    "direct": (23, 4, 0, 5, True),
    "wider than vectors": (150, 2, 37, 11, False),
    "no context": (9, 0, 3, 2, True),
    "three words": (3, 1, 20, 1, True),
    "two words": (2, 1, 1, 1, True),
    "one word": (1, 2, 3, 2, False),
}
N_BLOCKS = 2  # residual blocks of a network, at most
SCHEDULE = dict(learning_rate_init=0.01, learning_rate_decay=0.02, alpha=0.05)
MOMENTS = dict(beta_1=0.8, beta_2=0.95, epsilon=1e-3)


def there_is(
    kind="softmax", precision="float32", rates=(0, 0, 0), shape="hidden", widths=(),
    n_memory=0, n_distant=0, **others,
):  # fmt: skip
    """Return whether a kind of network supports this precision, dropout and units."""
    if kind.startswith("energy") and (any(rates) or widths or n_memory):
        return False
    if (widths or n_memory) and shape == "direct":  # no hidden units
        return False
    if n_memory and (n_distant >= n_memory or shape == "no context"):
        return False
    # Larger activations, of which more tie in bfloat16.
    if n_memory and widths and precision.startswith("bfloat16"):
        return False
    # The norm of few units, most of them dropped, divides by almost nothing, and
    # rounding grows by hundreds an update.
    if widths and rates[1] and shape not in ("wider than vectors", "three words"):
        return False
    return kind in ROUNDED or not precision.startswith("bfloat16")


def dropout_of(rates, n_workers=1):
    """Return dropout with seeds, even if all rates are 0."""
    seeds = np.random.RandomState(3).randint(1, 2**62, size=(n_workers, 3 + N_BLOCKS))
    return Dropout(*rates, seeds.astype(np.uint64))


def solver_of(name="sgd", **schedule):
    schedule = Schedule(**(SCHEDULE | schedule))
    return Adam(schedule, **MOMENTS) if name == "adam" else SGD(schedule)


def reference_of(solver, n_seen=0):
    """Return the reference of a solver."""
    names = ("learning_rate_init", "learning_rate_decay", "alpha", "begun", "span")
    schedule = {name: getattr(solver.schedule, name) for name in names}
    schedule["n_seen"] = n_seen
    if isinstance(solver, Adam):
        return reference.Adam(**schedule, **MOMENTS)
    return reference.SGD(**schedule)


def loss_of(kind, n_noise):
    """Return the training loss of a kind of network."""
    if kind.endswith("importance"):
        return Importance(n_noise)
    return NCE(n_noise) if kind.endswith("nce") else Exact()


def architecture_of(kind, n_words, n_context, n_hidden, embedding_dim, direct, rng):
    """Return the architecture of a kind, with random classes and word features."""
    output = Softmax(direct=direct, tied=kind.startswith("tied"))
    if kind == "classes":
        labels = rng.integers(0, max(1, n_words // 5), n_words)
        output = Classes(np.unique(labels, return_inverse=True)[1], direct=direct)
    elif kind == "tree":
        output = Tree(n_branches=int(rng.integers(2, 9)), direct=direct)
    elif kind.startswith("energy"):
        n_hidden = max(1, n_hidden)  # an energy always has hidden units
        output = Energy(target_weights="own" in kind)
    features = Features(trained=kind != "fixed")
    if "composed" in kind:
        features.word_features = random_word_features(n_words, rng)
    sizes = n_words, n_context + 1, n_hidden, embedding_dim
    return Architecture(*sizes, features=features, output=output)


def random_word_features(n_words, rng, n_parts=11):
    """Return a few parts per word, one shared by nearly all; some words have none."""
    dense = rng.normal(size=(n_words, n_parts)) * (rng.random((n_words, n_parts)) < 0.2)
    dense[::7] = 0
    dense[1:, 0] = 0.5
    return csr_array(dense)


def random_network(
    n_words, n_context, n_hidden, embedding_dim, direct, precision, rng, n_threads=1,
    *, kind="softmax", loss=None, n_noise=20, n_distant=0, n_senses=1, solver=None,
    widths=(), n_memory=0, n_runs=2, **options,
):  # fmt: skip
    """Return a network of a kind, with random weights.

    Its initial word frequencies are those of text. `loss` replaces that of the kind.
    """
    y = (rng.zipf(1.3, size=5 * n_words) % n_words).astype(np.int32)
    architecture = architecture_of(
        kind, n_words, n_context, n_hidden, embedding_dim, direct, rng
    )
    if widths:
        architecture = replace(architecture, n_hidden=(n_hidden, *widths))
    architecture = replace(architecture, n_distant=n_distant, n_memory=n_memory)
    architecture.features.n_senses = n_senses
    counts = np.bincount(y, minlength=n_words)
    architecture = architecture.learned(counts, lambda: (y[:, None], np.roll(y, -1)))
    parts = architecture.parts(loss_of(kind, n_noise) if loss is None else loss)
    if n_senses > 1:  # words after the first 20 share their senses
        parts = parts._replace(inputs=replace(parts.inputs, n_frequent=20))
    embeddings = None
    if isinstance(parts.features, Fixed):
        embeddings = rng.normal(size=(n_words, embedding_dim))
    drawn = np.random.RandomState(rng.integers(2**31))
    dtype = np.float64 if precision == "float64" else np.float32
    parameters = parts.initial(n_words, counts, drawn, dtype, embeddings=embeddings)
    network = Network(
        parts, parameters, precision=precision, threads=Threads(n_threads),
        solver=solver_of() if solver is None else solver,
        output_state=parts.output.initial_state(n_words, counts, drawn, n_threads),
        memory=parts.hidden.lowest.initial_memory(n_threads, n_runs - 1, dtype),
        **options,
    )  # fmt: skip
    for array in weights_of(network).arrays():
        array += rng.normal(size=array.shape) / 2
    parts.features.settle(parameters)
    return network


def twin_of(output):
    """Return the reference of an output that scores."""
    if isinstance(output, classes.Classes):
        return reference.Classes(output.labels)
    if isinstance(output, tree.Tree):
        branches, starts = output.nodes.branches, output.nodes.starts
        nodes = [branches[a:b] for a, b in pairwise(starts)]
        return reference.Tree(len(branches) + 2 - len(starts), nodes)
    return reference.Softmax()


def sampled_loss(network):
    """Return the reference of a loss with noise samples, in the same state, or None."""
    output, state = network.parts.output, network.output_state
    if "generators" not in state:
        return None
    n = min(output.estimate.n_noise, network.n_words)
    seed = [int(x) for x in state["generators"][0]]
    sampler = reference.Sampler(state["proposal"], seed, n)
    if isinstance(output.estimate, estimates.Importance):
        return reference.Importance(sampler, np.array([n, 0.0, 0.0]), 0, n)
    return reference.NoiseContrastive(sampler, n)


def random_windows(n, n_words, n_context, rng):
    X = rng.integers(0, n_words, (n, n_context)).astype(np.int32)
    return X, rng.integers(0, n_words, n).astype(np.int32)


def text_windows(n, n_words, n_context, rng):
    """Return windows of texts, one after the other, each of which ends with id 0."""
    return windows(rng.integers(0, n_words, n), n_context, boundary=0)


def weights_of(network):
    """Return the weights as views, without the padding of E."""
    own, parts = network.parameters, network.parts
    alone = own.more.get("own", own.E if own.tied else own.C)
    m, matrix = own.C.shape[1], getattr(parts.features, "matrix", None)
    return reference.Weights(
        None if own.tied else alone[:, :m],
        own.H,
        own.d,
        (alone if own.tied else own.E)[:, : own.n_outputs],
        own.more.get("P"),
        own.more.get("S"),
        own.more.get("Q"),
        own.more.get("R"),
        own.more.get("V"),
        tuple(reference.Block(*block) for block in Block.all_of(own.more)),
        own.more.get("G"),
        own.more.get("H_next"),
        own.more.get("v"),
        parts.inputs.n_window,
        None if matrix is None else matrix.toarray(),
        isinstance(parts.features, Fixed),
        twin_of(parts.output),
    )


def wide(weights):
    """Return a copy in float64."""

    def wider(part):
        return type(part)(
            *(a.astype(np.float64) if isinstance(a, np.ndarray) else a for a in part)
        )

    return wider(weights)._replace(blocks=tuple(map(wider, weights.blocks)))


def interrupted_after(n_examples):
    """Return a `Network.train` that an interrupt ends once it has seen the examples."""
    train = Network.train

    def train_or_stop(network, *args):
        if network.n_seen >= n_examples:
            raise KeyboardInterrupt
        train(network, *args)

    return train_or_stop
