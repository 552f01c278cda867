"""
Features in two dimensions
==========================

The network learns a vector of features for every word. Words that are used alike get
similar vectors. With two features a word, or with the first two principal components
of more, a plot shows that (the paper's section 5.2, item 5).
"""

# %%
# A network with two features a word
# ----------------------------------
# The paper proposes so few features that they can be plotted. Two are few to predict
# by, but the plot shows everything that the network knows about a word.

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

from nplm import SGD, Importance, NeuralLM
from nplm.datasets import load_python_docs
from nplm.inspection import FeaturesDisplay, TrainingDisplay, nearest_words

corpus = load_python_docs()
corpus = replace(
    corpus,
    train=corpus.train[:250_000],
    valid=corpus.valid[:25_000],
    test=corpus.test[:25_000],
)
(X, y), (X_val, y_val), _ = corpus.windows(3)
settings = dict(
    order=None, n_words=corpus.n_words, n_hidden=60, loss=Importance(128),
    solver=SGD("linear"), batch_size=128, learning_rate_init=0.02, max_iter=5,
    random_state=0,
)  # fmt: skip
networks = {
    m: NeuralLM.from_paper("MLP9", embedding_dim=m, **settings).fit(
        X, y, X_val=X_val, y_val=y_val
    )
    for m in (2, 30)
}
fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for m, network in networks.items():
    TrainingDisplay.from_estimator(network, name=f"m = {m}", ax=ax)
plt.show()

# %%
# Words of a few kinds
# --------------------
# :class:`~nplm.inspection.FeaturesDisplay` plots two features directly.

kinds = {
    "auxiliaries": "can could may might must should will would",
    "articles and the like": "a an the this that these each any",
    "prepositions": "in of from by with for at on",
    "things": "string list object file function class module value",
    "verbs": "is are has returns raises uses contains gives",
}
kinds = {
    name: [word for word in words.split() if word in corpus.vocabulary.ids_]
    for name, words in kinds.items()
}
shown = [word for words in kinds.values() for word in words]
kind_of = {word: i for i, words in enumerate(kinds.values()) for word in words}


def show(network):
    """Draw the words shown, each kind in its colour."""
    _, ax = plt.subplots(figsize=(8, 6), layout="constrained")
    display = FeaturesDisplay.from_estimator(network, corpus.words, of=shown, ax=ax)
    display.points_.set(array=[kind_of[word] for word in shown], cmap="tab10", alpha=1)
    display.points_.set_clim(0, 10)
    for text in display.texts_:
        text.set_color(plt.get_cmap("tab10")(kind_of[text.get_text()]))


show(networks[2])
plt.show()

# %%
# Thirty features
# ---------------
# More features predict better. Their plot has the two directions in which the words
# shown differ most, and the share of their variance in these.

show(networks[30])
plt.show()

# %%
# Near in all dimensions
# ----------------------
# A plane cannot show all of thirty features. The nearest words by the cosine of all of
# them, among the 2,000 most frequent:

of = ["can", "the", "string", "returns", "from", "file"]
for word, nearest in nearest_words(
    networks[30].C_, corpus.words, of=[w for w in of if w in kind_of], k=6
).items():
    print(f"{word:<10}{', '.join(nearest)}")

# %%
# One figure for each network: how often the nearest word has the same kind.


def own_kind(C):
    ids = [corpus.vocabulary.ids_[word] for word in shown]
    features = C[ids] / np.linalg.norm(C[ids], axis=1, keepdims=True)
    cosine = features @ features.T
    np.fill_diagonal(cosine, -np.inf)
    kind = np.array([kind_of[word] for word in shown])
    return (kind[cosine.argmax(axis=1)] == kind).mean()


for m, network in networks.items():
    print(f"m = {m:>2}: {own_kind(network.C_):.0%}")
