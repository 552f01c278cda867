"""
A first model
=============

Train the network of Bengio et al. (2003) on the documentation inside Python and its
scientific packages, compare its perplexity with that of two n-gram models, mix it
with them, and look at what it learned. The command ``nplm compare`` compares the best
model of a minute with them on the whole corpus; here a part is enough.
"""

# %%
# The corpus
# ----------
# :func:`~nplm.datasets.load_python_docs` needs no download. A corpus has three streams
# of word ids, for training, validation and test, and the words of the ids.

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
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
from nplm.inspection import PerplexityDisplay, TrainingDisplay, nearest_words

corpus = load_python_docs()
print(corpus)

# %%
# A part of it is enough here.

corpus = replace(
    corpus,
    train=corpus.train[:250_000],
    valid=corpus.valid[:25_000],
    test=corpus.test[:25_000],
)

# %%
# Models learn from windows: the next word, ``y``, and the words before it,
# ``X``, the nearest in the last column. The documents of this corpus are
# independent, each closed by ``</s>``, so no window looks past the nearest one.

(X, y), (X_val, y_val), (X_test, y_test) = corpus.windows(4)

for context, word in zip(corpus.words[X[:4]], corpus.words[y[:4]]):
    print(" ".join(context), "->", word)

# %%
# The n-gram models
# -----------------
# The paper's first baseline mixes relative frequencies of words, pairs and
# triples; the weights are estimated on validation data (section 4.1). A stronger
# one is modified Kneser-Ney, here of order 5: it sees the same four words as the
# network.

n_words = corpus.n_words
trigram = InterpolatedTrigram(n_words=n_words)
trigram.fit(X, y, X_val=X_val, y_val=y_val)
kneser_ney = KneserNeyLM(n_words=n_words, boundary=corpus.boundary).fit(X, y)

# %%
# The network
# -----------
# The network is MLP9 of the paper's Table 1, equation (1), with 100 hidden units and 30
# features a word. It is trained on a few noise samples for each update instead of all
# words, and with a learning rate that falls to 0, which takes seconds
# (:doc:`/guide/outputs`). It gives probabilities of all words. With ``X_val`` training
# stops when the validation loss stops falling, and the weights of the best epoch are
# kept. (``NeuralLM()`` alone is a larger network, and takes longer.)

network = NeuralLM.from_paper(
    "MLP9",
    n_words=n_words,
    loss=Importance(128),
    solver=SGD("linear"),
    batch_size=128,
    learning_rate_init=0.02,
    max_iter=5,
    random_state=0,
)
network.fit(X, y, X_val=X_val, y_val=y_val)
print(f"{network.n_parameters_:,} parameters, {network.n_iter_} epochs")

# %%
# The learning curves. The training loss of an example is taken just before its
# update, so that of the first epoch is high.

fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
TrainingDisplay.from_estimator(network, name="network", ax=ax)
for name, model, style in [("trigram", trigram, ":"), ("Kneser-Ney", kneser_ney, "-.")]:
    level = model.perplexity(X_val, y_val)
    ax.axhline(level, color="grey", linestyle=style, label=f"{name}, validation")
ax.legend()
plt.show()

# %%
# Mixing
# ------
# The paper's best figures are those of mixtures: the mean of the probabilities of the
# network and of the trigram (section 2, "Mixture of models"; Table 1). A member inside
# a ``FrozenEstimator`` is not fitted again.


def mix(**members):
    frozen = [(name, FrozenEstimator(model)) for name, model in members.items()]
    return MixtureLM(frozen, n_words=n_words).fit(X, y)


models = {
    "interpolated trigram": trigram,
    "Kneser-Ney, order 5": kneser_ney,
    "network": network,
    "network + trigram": mix(network=network, trigram=trigram),
    "network + Kneser-Ney": mix(network=network, kneser_ney=kneser_ney),
}
print(f"{'perplexity':<22}{'validation':>12}{'test':>8}")
for name, model in models.items():
    valid = model.perplexity(X_val, y_val)
    test = model.perplexity(X_test, y_test)
    print(f"{name:<22}{valid:>12.1f}{test:>8.1f}")

# %%
# The mixture is better than its members, because they "make errors in different places"
# (section 4.2). The network gives the next word more probability than the trigram does
# at this fraction of the test tokens:

ahead = network.log_prob(X_test, y_test) > trigram.log_prob(X_test, y_test)
print(f"{ahead.mean():.0%}")

# %%
# Two parts, two figures
# ----------------------
# A perplexity depends on the model and on the text. The two parts come from different
# modules, and a difficult part is difficult for all models. Compare models on one part,
# never a figure of one part with that of another. The next lines count the windows
# whose four words stood together in training, and those with the same next word too:

seen_contexts = {tuple(context) for context in X.tolist()}
seen_windows = {(*context, word) for context, word in zip(X.tolist(), y.tolist())}
for part, contexts, words in [
    ("validation", X_val.tolist(), y_val.tolist()),
    ("test", X_test.tolist(), y_test.tolist()),
]:
    known = np.mean([tuple(context) in seen_contexts for context in contexts])
    whole = np.mean([(*c, w) in seen_windows for c, w in zip(contexts, words)])
    print(f"{part:<11} contexts {known:.0%}, with the next word {whole:.0%}")

# %%
# Long n-grams memorise the training text. Where the four words stood together in
# training, Kneser-Ney is hard to beat; the network is for the other contexts:

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
PerplexityDisplay.from_estimator(
    {name: models[name] for name in [*models][1:3]},
    X_test,
    y_test,
    by="context",
    n_context=4,
    train=(X, y),
    ax=ax,
)
plt.show()

# %%
# :doc:`plot_story` has more on that.

# %%
# The next words
# --------------
# ``predict_proba`` has a column for each word.


def suggest(model, text, k=5):
    ids = corpus.vocabulary.transform([text.split()])[0]
    proba = model.predict_proba([ids[-4:]])[0]
    best = np.argsort(-proba)[:k]
    return ", ".join(f"{corpus.words[i]} {proba[i]:.2f}" for i in best)


for text in ["True if the object", "Return a list of", "raised when the file"]:
    print(f"{text} ...")
    for name in ["interpolated trigram", "network", "network + Kneser-Ney"]:
        print(f"    {name:<22}{suggest(models[name], text)}")

# %%
# Words with similar features
# ---------------------------
# The rows of ``C_`` are the learned feature vectors of the words. Words that are used
# alike point in one direction, so that the network applies what it learned about one to
# the others (section 1.1). The nearest, by cosine, among the 2,000 most frequent words:

chosen = ["can", "list", "returns", "is", "file", "("]
for word, nearest in nearest_words(network.C_, corpus.words, of=chosen, k=6).items():
    print(f"{word:<10}{', '.join(nearest)}")
