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

from nplm import EnergyLM, NeuralLM, TextLM, Vocabulary
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
# The probability of each new word where it stands in the other documents, beside what
# an open vocabulary gives it: the probability of ``<unk>``, shared by the new words.


def mean_log_prob(lm, documents, word, unknown=False):
    found = []
    for scores, document in zip(lm.token_scores(documents), documents):
        for w, log_prob in zip(document, scores.log_prob):
            if w == word:
                found.append(log_prob)
    return np.mean(found) - (np.log(len(taken)) if unknown else 0)


gains = {}
for word, found in apart.items():
    others = found[3:60]
    guessed = mean_log_prob(energy, others, word)
    unknown = mean_log_prob(network, others, word, unknown=True)
    gains[word] = guessed, unknown
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
at = np.arange(len(gains))
guessed, unknown = np.exp(np.array([*gains.values()])).T
ax.bar(at - 0.2, guessed, 0.4, label="energy, features guessed")
ax.bar(at + 0.2, unknown, 0.4, label="network, a share of <unk>")
ax.set_xticks(at, list(gains))
ax.set(ylabel="probability (geometric mean)", yscale="log")
ax.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1))
plt.show()

# %%
# ``partial_fit`` of the model inside trains the new features on, and the others with
# them. What the guess is worth on Brown, against its rivals:
# :doc:`/measured/new_words`.
