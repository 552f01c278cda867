"""Small models of every kind, by few settings."""

import warnings

import numpy as np

from nplm import (
    CacheLM,
    ClassLM,
    EnergyLM,
    InterpolatedTrigram,
    KneserNeyLM,
    MixtureLM,
    NeuralLM,
    ShortlistLM,
    TextLM,
    Tokenizer,
    Vocabulary,
)
from nplm.experiments import grouped
from nplm.models.neural.network_parameters import recipe_of
from tests.helpers.texts import texts

BLANKS = Tokenizer(r"[^ \t\r\n]+")

# Options of losses, solvers and outputs in tests that do not override them. The trees
# of few words have several inner nodes.
USUAL = dict(n_noise=512, epsilon=1e-8, n_branches=4)


def changed(lm, **settings):
    """Return the model with other parameters; those of options by their own name.

    An option has the values of `USUAL`, unless the settings say otherwise.
    """
    kinds = {
        "importance": ["n_noise"], "nce": ["n_noise"], "adam": ["epsilon"],
        "tree": ["n_branches"],
    }  # fmt: skip
    for option in map(settings.get, ("loss", "solver", "output")):
        if isinstance(option, str):
            settings = {n: USUAL[n] for n in kinds.get(option, [])} | settings
    return lm.set_params(**grouped(settings))


def paper_lm(order=None, **settings):
    """Return the paper's MLP9 with its training, but in mini-batches, for few epochs.

    Tests use it instead of the defaults, which may change.
    """
    recipe = dict(batch_size=32, learning_rate_init=4e-3, max_iter=12)
    recipe |= dict(early_stopping=False, order=order)
    if isinstance(settings.get("solver"), str):  # it would have the default schedule
        recipe |= dict(learning_rate="constant")
    return changed(NeuralLM.from_paper("MLP9"), **(recipe | settings))


def neural_lm(order=None, **settings):
    """Return the default network; parameters of options by their own name."""
    return changed(NeuralLM(order), **settings)


def energy_lm(order=None, **settings):
    """Return an energy model trained as in the paper, but in mini-batches."""
    recipe = dict(
        loss="exact", solver="sgd", learning_rate="invscaling", learning_rate_init=1e-2,
        alpha=1e-4, batch_size=32, max_iter=12, n_iter_no_change=3, tol=1e-4,
    )  # fmt: skip
    return changed(EnergyLM(order), **(recipe | settings))


def check_shared(lm, n_words=20):
    """Raise unless processes can share the output units of this network."""
    recipe = recipe_of(lm, n_words, order=3)
    recipe.architecture.check_shared(recipe.loss, recipe.estimator)


def assert_same_weights(one, other):
    """Raise unless two fitted networks have the same weights, to the bit."""
    arrays, others = (lm._trained.parameters.trained() for lm in (one, other))
    for name, array in arrays.items():
        np.testing.assert_array_equal(others[name], array)


def small_models(n_words):
    """Return a small instance of each model of windows."""
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
        "neural, blocks": paper_lm(**neural | {"n_hidden": (4, 7, 5)}, **size),
        "neural, classes": paper_lm(**neural, output="classes", **size),
        "neural, tree": paper_lm(**neural, output="tree", direct=True, **size),
        "neural, importance": paper_lm(**neural, loss="importance", n_noise=5, **size),
        "neural, nce": paper_lm(**neural, loss="nce", direct=True, **size),
        "neural, energy": energy_lm(**neural, **size),
        "neural, energy, target weights": energy_lm(
            **neural, target_weights=True, batch_size=1, **size
        ),
        "trigram": trigram,
        "Kneser-Ney": KneserNeyLM(**size),
        "Kneser-Ney, back-off": KneserNeyLM(interpolate=False, **size),
        "classes": ClassLM(n_classes=4, random_state=0, **size),
        "cache": CacheLM(**size, half_life=2),
        "mixture": MixtureLM([("nn", paper_lm(**neural)), ("tri", trigram)], **size),
        "short-list": ShortlistLM(
            paper_lm(**neural), KneserNeyLM(), n_shortlist=5, **size
        ),
    }


_network = paper_lm(n_hidden=3, embedding_dim=2, max_iter=1, random_state=0)
# What scores texts, of each kind.
SCORED = {
    "Kneser-Ney": KneserNeyLM(),
    "pruned": KneserNeyLM(min_counts=(1, 2, 3)),
    "unigrams": KneserNeyLM(1),
    "trigram": InterpolatedTrigram(),
    "network": _network,
    "classes": ClassLM(n_classes=4, random_state=0),
    "mixture": MixtureLM([("kn", KneserNeyLM()), ("net", _network)], "uniform"),
}


def fitted_to_texts(model, n_context=3, **params):
    """Return a fitted model of text, of words between blanks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        lm = TextLM(model, n_context, tokenizer=BLANKS, **params)
        return lm.fit(texts(150), X_val=texts(30, seed=1))


# Text models of lines with words of Zipf's law.
NAMES = [f"w{i}" for i in range(12)]


def lines(n, seed):
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 9, n)
    return [" ".join(NAMES[i] for i in random.zipf(1.3, k) % 12) for k in lengths]


def trained(order=3, *, unknown="<unk>", prune=0.0, seed=0, **params):
    vocabulary = Vocabulary(unknown=unknown)
    lm = TextLM(KneserNeyLM(order), order - 1, vocabulary=vocabulary, **params)
    lm.fit(lines(300, seed))
    lm.estimator_.prune(prune)
    return lm


def contexts_of(lm):
    n_words, width = lm.n_words_, lm.estimator_.order_ - 1
    return np.random.default_rng(1).integers(0, n_words, (200, width))
