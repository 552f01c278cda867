"""
Where the network wins
======================

The paper claims that a network which learns features of words generalises to contexts
that n-grams have never seen. This page tests the claim: how the network learns, how
well each model predicts by the frequency of the context, and how the features
contribute.
"""

# %%
# The models
# ----------
# All models have the same windows: four words of context, from the documentation inside
# Python and its scientific packages.

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from nplm import (
    SGD,
    Importance,
    InterpolatedTrigram,
    KneserNeyLM,
    MixtureLM,
    NeuralLM,
)
from nplm.datasets import load_python_docs
from nplm.inspection import (
    FeaturesDisplay,
    PerplexityDisplay,
    TrainingDisplay,
    nearest_words,
)

corpus = load_python_docs()
corpus = replace(
    corpus,
    train=corpus.train[:250_000],
    valid=corpus.valid[:25_000],
    test=corpus.test[:25_000],
)
(X, y), (X_val, y_val), (X_test, y_test) = corpus.windows(4)
held_out = {"X_val": X_val, "y_val": y_val}
trigram = InterpolatedTrigram(n_words=corpus.n_words).fit(X, y, **held_out)
kneser_ney = KneserNeyLM(n_words=corpus.n_words, boundary=corpus.boundary).fit(X, y)
network = NeuralLM.from_paper(
    "MLP9", n_words=corpus.n_words, loss=Importance(128), solver=SGD("linear"),
    batch_size=128, learning_rate_init=0.02, max_iter=5, random_state=0,
).fit(X, y, **held_out)  # fmt: skip

# %%
# How it learns
# -------------
# The network begins as a unigram model, and reaches the n-grams within a few epochs.
# The training loss of a window is measured just before the network learns from it, with
# noise samples.

fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
TrainingDisplay.from_estimator(network, name="network", ax=ax)
for name, model, style in [("trigram", trigram, ":"), ("Kneser-Ney", kneser_ney, "-.")]:
    level = model.perplexity(X_val, y_val)
    ax.axhline(level, color="grey", linestyle=style, label=f"{name}, validation")
ax.set_yscale("log")
ax.legend()
plt.show()

# %%
# All test tokens
# ---------------
# The weights of the mixture maximise the likelihood of the validation part.

members = [
    ("network", FrozenEstimator(network)),
    ("n-grams", FrozenEstimator(kneser_ney)),
]
models = {
    "interpolated trigram": trigram,
    "Kneser-Ney, order 5": kneser_ney,
    "network": network,
    "network + Kneser-Ney": MixtureLM(members, "context").fit(X, y, **held_out),
}
fig, ax = plt.subplots(figsize=(6.5, 2.4), layout="constrained")
display = PerplexityDisplay.from_estimator(models, X_test, y_test, ax=ax)
plt.show()

# %%
# By how often the context was seen
# ---------------------------------
# The next figure groups the same tokens by how often the two words before them stood
# together in the training part. This is the paper's point: after a context that was
# never seen n-grams use one word or none, while the network knows words that are like
# those of the context.

fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
display = PerplexityDisplay.from_estimator(
    models, X_test, y_test, by="context", train=(X, y), ax=ax
)
plt.show()

# %%
# The share of tokens to which the network gives more probability than the trigram does:

ahead = network.log_prob(X_test, y_test) > trigram.log_prob(X_test, y_test)
seen = {tuple(context) for context in X[:, -2:]}
never = np.array([tuple(context) not in seen for context in X_test[:, -2:]])
print(f"{ahead.mean():.0%} of all tokens")
print(f"{ahead[never].mean():.0%} of those after two words never seen together")
print(f"{ahead[~never].mean():.0%} of the others")

# %%
# By the next word
# ----------------
# The output weights of each word are learned separately, so rare words are difficult
# for every model.

fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
PerplexityDisplay.from_estimator(models, X_test, y_test, by="word", train=(X, y), ax=ax)
plt.show()

# %%
# Similar words
# -------------
# A context that was never seen resembles others that were, if its words resemble
# theirs. The nearest words by the cosine of their features:

of = [w for w in ("should", "returns", "list", "is", "this", "error")
      if w in corpus.vocabulary.ids_]  # fmt: skip
for word, nearest in nearest_words(network.C_, corpus.words, of=of, k=6).items():
    print(f"{word:<10}{', '.join(nearest)}")

# %%
# A network with two features a word is a worse model, but all of its features can be
# plotted (:doc:`/auto_tutorials/models/plot_features` has more):

plane = clone(network).set_params(embedding_dim=2)
plane.fit(X, y, **held_out)
print(f"perplexity with m = 2: {plane.perplexity(X_test, y_test):.1f}")
fig, ax = plt.subplots(figsize=(8, 6), layout="constrained")
chosen = (
    "is are was has can could may might should must will the an this these in of from "
    "by with at list array string function value number returns gives if when which"
)
known = [word for word in chosen.split() if word in corpus.vocabulary.ids_]
FeaturesDisplay.from_estimator(plane, corpus.words, of=known, ax=ax)
plt.show()
