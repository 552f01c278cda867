"""
An energy, and new words
========================

The output of the network has separate weights for each word, so a word that training
never saw has no probability. In section 5.1 of Bengio et al. (2003) the next word is
represented by its features, as the words of the context are. A new word then only needs
features, which can be estimated from the contexts in which it is met.
"""

# %%
# Words that the model never sees
# -------------------------------
# The corpus is the documentation inside Python and its scientific packages. We choose
# some words, and hold out all documents with one of them.

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

from nplm import EnergyLM, Importance, NeuralLM, TextLM, Vocabulary, windows
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
# Both are trained on noise samples, which takes seconds.

settings = dict(
    n_hidden=60, embedding_dim=30, loss=Importance(100), batch_size=128,
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
# Estimated features
# ------------------
# :meth:`~nplm.TextLM.add_words` gives each new word the mean of the features of the
# words that the model expected in its place, weighted by their probabilities. Each word
# is met in three documents here. The nearest words show what the model takes it for.

for word, found in apart.items():
    cut = []
    for document in found[:3]:
        place = document.index(word)
        # The piece begins after any other new word.
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
# How good the estimate is
# ------------------------
# A new word gets the bias of the rarest known word (the paper does not say which it
# should have). The features decide where the word is expected. We measure how many
# times as probable it is where it stands, in other documents, as where other words
# stand. A factor of 1 means that the model knows nothing about the word. A few passes
# over the three documents, in small mini-batches, then train its features, with those
# of all other words.


def lift(lm, documents, word):
    X, y = cut_windows(lm, documents)
    i = lm.vocabulary_.ids_[word]
    log_prob = lm.estimator_.log_prob(X, np.full(len(X), i))
    return np.exp(log_prob[y == i].mean() - log_prob[y != i].mean())


def cut_windows(lm, documents):
    ids = lm.vocabulary_.transform(documents)
    stream = np.concatenate([[*document, lm.boundary_] for document in ids])
    return windows(stream, lm.n_context_, boundary=lm.boundary_)


others = {word: found[3:23] for word, found in apart.items()}
guessed = [lift(energy, documents, word) for word, documents in others.items()]
few = [document for found in apart.values() for document in found[:3]]
energy.estimator_.set_params(batch_size=16)
for _ in range(5):
    energy.estimator_.partial_fit(*cut_windows(energy, few))
trained = [lift(energy, documents, word) for word, documents in others.items()]

fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
at = np.arange(len(others))
ax.bar(at - 0.2, guessed, 0.4, label="estimated")
ax.bar(at + 0.2, trained, 0.4, label="trained on three documents")
ax.axhline(1, color="black", linewidth=1)
ax.set_xticks(at, list(others))
ax.set(ylabel="times as probable in its place", yscale="log")
ax.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1))
plt.show()

# %%
# :ref:`A decision <decision-new-words>` compares the estimate with others on Brown.
