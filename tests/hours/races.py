"""``.ci/sanitize thread``: fits and scores by threads, all that they touch watched.

GCC's thread sanitizer reports what two threads read and write without an order. Threads
that share the output units or the examples of mini-batches ("sync"), and those that
score, race nowhere. Races that are meant are named here, array by array: the parameters
of threads that train asynchronously (section 3.1 of the paper), and what the solver,
the output and dropout keep beside them. All else that such threads touch, from scratch
memory to the sum of their losses, is watched as it is in "sync".
"""

import ctypes
import sys
import warnings

import numpy as np

from nplm import EnergyLM, NeuralLM, windows
from nplm.experiments import grouped
from nplm.models.neural.network.network import Network

IDS = (np.random.default_rng(0).zipf(1.4, 500) % 30).astype(np.int32)
X, Y = windows(IDS, 3)
SMALL = dict(n_words=30, n_hidden=8, embedding_dim=6, random_state=0, max_iter=2)
PAPER = dict(order=None, batch_size=8, learning_rate_init=4e-3, n_jobs=2, **SMALL)
DRAWN = dict(n_noise=8)


def energy_lm(**settings):
    recipe = dict(batch_size=8, n_jobs=2, learning_rate_init=1e-2, **SMALL)
    return EnergyLM().set_params(**grouped(recipe | settings))


def paper_lm(**settings):
    return NeuralLM.from_paper("MLP9", **grouped(PAPER | settings))


# Mini-batches of 8 examples are too small for two threads of "sync" to share them: they
# share the output units of a softmax instead. Those of 16 are not, and the last of an
# epoch has one example, so that one thread has none.
SHARED = dict(batch_size=16)
assert len(Y) % 16 == 1
FITS = {
    "sgd": paper_lm(),
    "one by one": paper_lm(batch_size=1, direct=True),
    "adam, dropout": paper_lm(solver="adam", dropout=0.2),
    "distant words": paper_lm(order=3, n_distant=1),
    "senses": paper_lm(n_senses=2),
    "parts": paper_lm(word_features=np.eye(30)[:, :9]),
    "float64": paper_lm(precision="float64"),
    # Gradients of visited rows and of whole arrays, by both solvers.
    "examples": paper_lm(n_hidden=40, solver="adam", dropout=0.2, **SHARED),
    "examples, parts, senses": paper_lm(
        n_hidden=40, word_features=np.eye(30)[:, :9], n_senses=2, solver="adam",
        **SHARED,
    ),
    "importance": paper_lm(loss="importance", **DRAWN, **SHARED),
    "importance, adam": paper_lm(
        loss="importance", solver="adam", dropout=0.2, **DRAWN, **SHARED
    ),
    "importance, tied, adam": paper_lm(
        loss="importance", tied=True, solver="adam", **DRAWN, **SHARED
    ),
    "importance, tied, parts, adam": paper_lm(
        loss="importance", tied=True, word_features=np.eye(30)[:, :9], solver="adam",
        **DRAWN, **SHARED,
    ),
    "nce": paper_lm(loss="nce", direct=True, **DRAWN, **SHARED),
    "classes": paper_lm(output="classes", **SHARED),
    "classes, adam": paper_lm(output="classes", solver="adam", **SHARED),
    "tree": paper_lm(output="tree", **SHARED),
    "tree, adam": paper_lm(output="tree", solver="adam", **SHARED),
    "energy, nce": energy_lm(loss="nce", **DRAWN, **SHARED),
}  # fmt: skip
# These train with "sync" only: "async" is refused, or trains a network listed above.
TOGETHER = {
    "tied": paper_lm(tied=True),
    "tied, adam": paper_lm(tied=True, solver="adam"),
    "energy": energy_lm(
        loss="exact", solver="sgd", learning_rate="invscaling", alpha=1e-4
    ),
    "three threads": paper_lm(
        output="tree", solver="adam", n_distant=1, order=3, n_jobs=3, batch_size=31
    ),
}


def mean_races_on_parameters():
    """Tell the sanitizer of the arrays that asynchronous threads share unordered."""
    sanitizer, begin = ctypes.CDLL(None), Network.__init__

    def begin_and_tell(self, *args, **kwargs):
        begin(self, *args, **kwargs)
        if self.parallel == "async":
            for name, array in self._arrays().items():
                first, end = np.lib.array_utils.byte_bounds(array)
                sanitizer.AnnotateBenignRaceSized(
                    b"nplm", 1, ctypes.c_void_p(first), ctypes.c_size_t(end - first),
                    name.encode(),
                )  # fmt: skip

    Network.__init__ = begin_and_tell


def fit_and_score(name, model):
    print(f"{name}, {model.parallel}", file=sys.stderr, flush=True)
    model.fit(X, Y)
    model.score(X, Y)
    model.predict_proba(X[:60])


def main():
    warnings.simplefilter("ignore")
    mean_races_on_parameters()
    chosen = sys.argv[1:]
    for parallel in ("sync", "async", "locked"):
        more = TOGETHER if parallel == "sync" else {}
        for name, model in (FITS | more).items():
            if not chosen or f"{name}, {parallel}" in chosen or parallel in chosen:
                fit_and_score(name, model.set_params(parallel=parallel))


if __name__ == "__main__":
    main()
