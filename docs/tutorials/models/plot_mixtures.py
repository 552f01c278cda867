"""
Mix and save
============

Word n-grams predict what was said before; classes and networks generalise from similar
words. This page fits one of each, mixes them with weights learned on held-out text,
shows where the mixture gains, and saves it.
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
from nplm import ClassLM, KneserNeyLM, MixtureLM, NeuralLM, WordClasses
from nplm.datasets import load_python_docs
from nplm.inspection import MixtureWeightsDisplay, PerplexityDisplay

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
# The word classes come first: words with similar neighbours share a class. The loop
# prints the classes of a few words.

classes = WordClasses(
    50, boundary=corpus.boundary, max_iter=30, random_state=0, **common
).fit(small.train)
counts = np.bincount(small.train, minlength=corpus.n_words)
for word in ("is", "returned", "list"):
    label = classes.labels_[corpus.vocabulary.ids_[word]]
    in_class = np.flatnonzero(classes.labels_ == label)
    most_frequent = in_class[np.argsort(-counts[in_class])][:8]
    print(f"{word:>9}:", *corpus.words[most_frequent])

# %%
# These are the three models.

members = {
    "n-grams": KneserNeyLM(boundary=corpus.boundary, **common),
    "classes": ClassLM(3, classes=classes.labels_, boundary=corpus.boundary, **common),
    "network": NeuralLM(n_hidden=30, max_iter=3, random_state=0, **common),
}
for model in members.values():
    model.fit(X, y, **held_out)

# %%
# Weights
# -------
# The members are fitted, so we freeze them for several mixtures. Equal weights suit
# members that are about equally good, which these are not. Learned weights are better,
# and weights that depend on how often the context was seen are better still. All three
# are from the paper (section 2).

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
# The weights by context: the more often the two words before were seen, the higher the
# weight of the n-grams.

mixture = mixtures["context"]
MixtureWeightsDisplay.from_estimator(mixture)
plt.show()

# %%
# The perplexity of each model, by the same frequency:

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
PerplexityDisplay.from_estimator(
    {**members, "mixture": mixture}, X_test, y_test, by="context", train=(X, y), ax=ax
)
plt.show()

# %%
# Save
# ----
# One file contains the whole mixture. It is not a pickle: loading it runs no code.

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "mixture"
    nplm.save(mixture, path)
    restored = nplm.load(path)
same = np.array_equal(
    restored.log_prob(X_test, y_test), mixture.log_prob(X_test, y_test)
)
print("the same probabilities:", same)
