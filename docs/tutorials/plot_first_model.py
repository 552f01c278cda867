"""
A first model
=============

Train the network of Bengio et al. (2003) on the documentation inside Python and its
scientific packages, set its perplexity beside two n-gram models', mix it with
them, and look at what it learnt. The command ``nplm compare`` does the same on
the whole corpus; here a part is enough.
"""

# %%
# The corpus
# ----------
# :func:`~nplm.datasets.load_python_docs` needs no download. A corpus is three
# streams of word ids, for training, validation and test, and the words that the
# ids stand for.

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
from sklearn.frozen import FrozenEstimator

from nplm import InterpolatedTrigram, KneserNeyLM, MixtureLM, NeuralLM
from nplm.datasets import load_python_docs
from nplm.inspection import nearest_words

corpus = load_python_docs()
print(corpus.DESCR)

# %%
# Models learn from windows: the next word, ``y``, and the words before it,
# ``X``, the nearest in the last column. The documents of this corpus are
# independent, each closed by ``</s>``, so no window looks past the nearest one.

small = replace(
    corpus,
    train=corpus.train[:120_000],
    valid=corpus.valid[:20_000],
    test=corpus.test[:20_000],
)
(X, y), (X_val, y_val), (X_test, y_test) = small.windows(4)

for context, word in zip(corpus.words[X[:4]], corpus.words[y[:4]]):
    print(" ".join(context), "->", word)

# %%
# The n-gram models
# -----------------
# The paper's first baseline mixes relative frequencies of words, pairs and
# triples; the weights are estimated on validation data (section 4.1). A stronger
# one is modified Kneser-Ney, here of order 5: it sees the same four words as the
# network will.

n_words = corpus.n_words
trigram = InterpolatedTrigram(n_words=n_words)
trigram.fit(X, y, X_val=X_val, y_val=y_val)
kneser_ney = KneserNeyLM(n_words=n_words, boundary=corpus.boundary).fit(X, y)

# %%
# The network
# -----------
# Half the hidden units of the default, and a larger step, for a quick run.
# With ``X_val`` training stops when the validation loss does, and the weights of
# the best epoch are kept.

network = NeuralLM(
    n_words=n_words,
    n_hidden=50,
    learning_rate_init=0.01,
    max_iter=5,
    random_state=0,
)
network.fit(X, y, X_val=X_val, y_val=y_val)
print(f"{network.n_parameters_:,} parameters, {network.n_iter_} epochs")

# %%
# ``history_`` has a loss an epoch, in nats a token; the perplexity is its
# exponential. The training loss of an example is taken just before its update,
# so that of the first epoch is high.

epochs = np.arange(1, network.n_iter_ + 1)
fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for name, key in [("training", "loss"), ("validation", "val_loss")]:
    ax.plot(epochs, np.exp(network.history_[key]), marker="o", label=f"network, {name}")
for name, model, style in [("trigram", trigram, ":"), ("Kneser-Ney", kneser_ney, "--")]:
    level = model.perplexity(X_val, y_val)
    ax.axhline(level, color="grey", linestyle=style, label=f"{name}, validation")
ax.set(xlabel="epoch", ylabel="perplexity", xticks=epochs)
ax.legend(loc="lower left")
fig.show()

# %%
# Mixing
# ------
# The paper's best figures are of averages: the probability of the network and
# that of the trigram, half and half (section 2, "Mixture of models"; Table 1). A
# member inside a ``FrozenEstimator`` is taken as it was fitted.


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
# Docstrings are made of phrases, which long n-grams know by heart: on so little
# of this corpus Kneser-Ney is ahead of a network trained for seconds. On the
# Brown corpus it is the network that leads (the paper's Table 1; see it with
# ``nplm compare --corpus brown``). Here as there, a mixture with the network is
# better than the n-gram model alone, for the two "make errors in different
# places" (section 4.2): the network gives the word that came more probability
# than the trigram does at this fraction of the test tokens:

ahead = network.log_prob(X_test, y_test) > trigram.log_prob(X_test, y_test)
print(f"{ahead.mean():.0%}")

# %%
# What comes next
# ---------------
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
# The rows of ``C_`` are the learned feature vectors of the words. Words that are
# used alike come to lie in one direction, which is how what was learnt of one
# serves another (section 1.1). The nearest, by cosine, among the 2,000 most
# frequent words:

chosen = ["can", "list", "returns", "is", "file", "("]
for word, nearest in nearest_words(network.C_, corpus.words, of=chosen, k=6).items():
    print(f"{word:<10}{', '.join(nearest)}")
