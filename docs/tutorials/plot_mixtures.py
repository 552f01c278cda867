"""
Mix, save and score documents
=============================

Word n-grams know what was said; classes and networks know what is like it. This
page fits one of each, mixes them with weights learned on held-out text, saves
the mixture, and uses its perplexity to find the documents that do not belong.
"""

# %%
# Members
# -------
# The corpus is the documentation inside Python and its scientific packages, and needs
# no download. Every model gets the same windows, four words of context that never
# reach past the end of a document, and the same vocabulary.

import tempfile
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.frozen import FrozenEstimator

import nplm
from nplm import ClassLM, KneserNeyLM, MixtureLM, NeuralLM, WordClasses, windows
from nplm.datasets import load_python_docs

corpus = load_python_docs()
small = replace(
    corpus,
    train=corpus.train[:120_000],
    valid=corpus.valid[:20_000],
    test=corpus.test[:20_000],
)
(X, y), (X_val, y_val), (X_test, y_test) = small.windows(4)
held_out = {"X_val": X_val, "y_val": y_val}
common = {"n_words": corpus.n_words}

# %%
# Classes first: words that keep the same company. One line shows the classes of
# a few words.

classes = WordClasses(
    50, boundary=corpus.boundary, max_iter=30, random_state=0, **common
).fit(small.train)
for word in ("is", "returned", "list"):
    label = classes.labels_[corpus.vocabulary.ids_[word]]
    in_class = np.flatnonzero(classes.labels_ == label)
    most_frequent = in_class[np.argsort(-np.bincount(small.train)[in_class])][:8]
    print(f"{word:>9}:", *corpus.words[most_frequent])

# %%
# Then the three models.

members = {
    "n-grams": KneserNeyLM(boundary=corpus.boundary, **common),
    "classes": ClassLM(3, classes=classes.labels_, boundary=corpus.boundary, **common),
    "network": NeuralLM(
        n_hidden=30, learning_rate_init=0.01, max_iter=3, random_state=0, **common
    ),
}
for model in members.values():
    model.fit(X, y, **held_out)

# %%
# Weights
# -------
# The members are fitted: frozen, they go into one mixture after another. Equal
# weights serve members about as good as each other, which these are not. Learned
# ones do better, and those that depend on how often the context was seen better
# still. All three are the paper's (section 2).

frozen = [(name, FrozenEstimator(model)) for name, model in members.items()]
mixtures = {
    weights: MixtureLM(frozen, weights, include_uniform=True).fit(X, y, **held_out)
    for weights in ("uniform", "learned", "context")
}
perplexity = {
    name: model.perplexity(X_test, y_test)
    for name, model in {**members, **mixtures}.items()
}
for name, value in perplexity.items():
    print(f"{name:>8} {value:6.1f}")

# %%
# The weights by context: the more often the two words before were seen, the more
# the n-grams are trusted.

mixture = mixtures["context"]
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
bottom = np.zeros(len(mixture.bins_))
for name, weight in zip(mixture.named_estimators_, mixture.weights_.T):
    ax.bar(mixture.bins_, weight, bottom=bottom, label=name)
    bottom += weight
ax.set_xlabel("bin of the context's frequency: often seen (left) to never (right)")
ax.set_ylabel("weight")
fig.legend(loc="outside upper center", ncols=4)
plt.show()

# %%
# Save
# ----
# One file has all that the mixture is made of. It is no pickle: loading it runs no
# code.

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "mixture"
    nplm.save(mixture, path)
    restored = nplm.load(path)
same = np.array_equal(
    restored.log_prob(X_test, y_test), mixture.log_prob(X_test, y_test)
)
print("the same probabilities:", same)

# %%
# Score documents
# ---------------
# The perplexity of a document says how much it is like the training text. Half of
# these documents are new ones from the corpus; the other half are the same with
# their words shuffled.

ends = np.flatnonzero(corpus.test == corpus.boundary)
documents = [d for d in np.split(corpus.test, ends + 1) if len(d) > 60][:60]
rng = np.random.default_rng(0)
shuffled = [rng.permutation(document) for document in documents]


def document_perplexity(document):
    return mixture.perplexity(*windows(document, 4, boundary=corpus.boundary))


real = [document_perplexity(document) for document in documents]
fake = [document_perplexity(document) for document in shuffled]
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
bins = np.geomspace(min(real), max(fake), 25)
ax.hist([real, fake], bins, label=["as written", "shuffled"])
ax.set_xscale("log")
ax.set_xlabel("perplexity of a document")
ax.set_ylabel("documents")
ax.legend()
plt.show()

threshold = float(np.median([*real, *fake]))
right = np.mean([*(p < threshold for p in real), *(p > threshold for p in fake)])
print(f"right at a threshold of {threshold:.0f}: {right:.0%}")
