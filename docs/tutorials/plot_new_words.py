"""
An energy, and new words
========================

The output of the network has a row of weights for each word, so a word that training
never saw has no probability. Section 5.1 of Bengio et al. (2003) sees the next word by
its features, as it does those of the context: then a new word needs features, and these
can be guessed from where it was met.
"""

# %%
# Words that are taken away
# -------------------------
# From the documentation inside Python and its
# scientific packages some words are taken: all
# documents with one of them are kept apart, and the model never sees them.

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

from nplm import EnergyLM, NeuralLM, TextLM, Vocabulary, windows
from nplm.datasets import load_python_docs

corpus = load_python_docs()
corpus = replace(
    corpus,
    train=corpus.train[:250_000],
    valid=corpus.valid[:25_000],
    test=corpus.test[:25_000],
)
documents = corpus.documents("train")
counts = np.bincount(corpus.train, minlength=corpus.n_words)
frequent = [
    word
    for word in corpus.words[np.argsort(-counts)][:1_500]
    if word.isalpha() and word.islower() and len(word) > 3
]
taken = [
    word
    for word in ("function", "list", "should", "returns", "when", "string", "given")
    if word in frequent
]
apart = {word: [d for d in documents if word in d] for word in taken}
rest = [d for d in documents if not set(taken) & set(d)]
print(f"{len(rest)} documents to train on; kept apart:")
print(", ".join(f"{len(found)} with {word!r}" for word, found in apart.items()))

# %%
# Two models
# ----------
# Both are trained on sampled words, which takes seconds.

settings = dict(
    n_hidden=60, embedding_dim=30, loss="importance", batch_size=128, n_samples=100,
    max_iter=4, random_state=0,
)  # fmt: skip
vocabulary = Vocabulary(min_count=2)
energy, network = (
    TextLM(model(**settings), n_context=3, vocabulary=vocabulary).fit(rest)
    for model in (EnergyLM, NeuralLM)
)
for name, lm in [("network", network), ("energy", energy)]:
    print(
        f"{name}: perplexity of the training documents {lm.perplexity(rest[:300]):.1f}"
    )

# %%
# What a word is like
# -------------------
# :meth:`~nplm.TextLM.add_words` gives each new word the mean of the features of the
# words that the model expected in its place, weighted by their probabilities. Here they
# are met in three documents each. The nearest words tell what the model takes them for.

for word, found in apart.items():
    cut = []
    for document in found[:3]:
        place = document.index(word)
        # No other new word before this one: it is of this one that we want to learn.
        start = max(
            (i + 1 for i, w in enumerate(document[:place]) if w in taken), default=0
        )
        cut.append(document[start : place + 1])
    met = [
        [w for w in piece if w in energy.vocabulary_.ids_ or w == word] for piece in cut
    ]
    energy.add_words(met)
    nearest, _ = energy.nearest(word, k=5)
    print(f"{word:<10} {', '.join(nearest)}")

# %%
# What it is worth
# ----------------
# A new word begins with the frequency of the rarest known word, whatever it is: the
# paper does not say what is better. What its features say of it shows in where it is
# expected. How many times as probable is it where it stands, in documents that were not
# looked at, as where other words stand? Once would be no knowledge at all. A few passes
# over the three documents train the features on, with those of all other words.


def lift(lm, documents, word):
    X, y = cut_windows(lm, documents)
    i = lm.vocabulary_.ids_[word]
    log_prob = lm.estimator_.log_prob(X, np.full(len(X), i))
    return np.exp(log_prob[y == i].mean() - log_prob[y != i].mean())


def cut_windows(lm, documents):
    ids = lm.vocabulary_.transform(documents)
    stream = np.concatenate([[*document, lm.boundary_] for document in ids])
    return windows(stream, lm.n_context, boundary=lm.boundary_)


others = {word: found[3:23] for word, found in apart.items()}
guessed = [lift(energy, documents, word) for word, documents in others.items()]
few = [document for found in apart.values() for document in found[:3]]
for _ in range(5):
    energy.estimator_.partial_fit(*cut_windows(energy, few))
trained = [lift(energy, documents, word) for word, documents in others.items()]

fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
at = np.arange(len(others))
ax.bar(at - 0.2, guessed, 0.4, label="guessed")
ax.bar(at + 0.2, trained, 0.4, label="trained on three documents")
ax.axhline(1, color="black", linewidth=1)
ax.set_xticks(at, list(others))
ax.set(ylabel="times as probable in its place", yscale="log")
ax.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1))
plt.show()

# %%
# What the guess is worth on Brown, against its rivals: :doc:`/measured/new_words`.
