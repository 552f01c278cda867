"""
Rescoring n-best lists
======================

A recogniser of speech, a translator or a reader of scanned pages proposes several
sentences, with scores of its own. A language model scores how likely each of them is as
English. This page adds that score, times a weight chosen on held-out sentences.
"""

# %%
# A reader that mistakes letters
# ------------------------------
# We simulate a reader of sentences from Python's documentation. It takes some words for
# others that differ in a letter. It proposes twenty readings of each sentence, with a
# score: the likelihood of the image that it saw, given the reading.

import random
from collections import defaultdict
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
from sklearn.frozen import FrozenEstimator

from nplm import SGD, Importance, KneserNeyLM, MixtureLM, NeuralLM, TextLM
from nplm.datasets import load_python_docs

corpus = load_python_docs()
corpus = replace(corpus, train=corpus.train[:100_000])
words = corpus.words

like = defaultdict(list)  # words with one letter hidden, and what they may be
for word in words:
    for i in range(len(word)):
        like[word[:i] + "*" + word[i + 1 :]].append(word)
confused = {
    word: sorted(
        {
            other
            for i in range(len(word))
            for other in like[word[:i] + "*" + word[i + 1 :]]
        }
        - {word}
    )
    for word in words
    if word.isalpha()
}
for word in ("is", "list", "that"):
    print(f"{word}: {', '.join(confused[word])}")


# %%


def sentences(ids):
    """Cut a part at its full stops; keep sentences of some words without ``<unk>``."""
    ends = np.flatnonzero((words[ids] == ".") | (ids == corpus.boundary)) + 1
    texts = [words[piece].tolist() for piece in np.split(ids, ends)]
    texts = [text for text in texts if len(text) <= 25 and "<unk>" not in text]
    return [text for text in texts if sum(map(str.isalpha, text)) >= 6]


def readings(rng, sentence, n=20):
    """Return n readings of a sentence, with scores."""
    noise = {}
    for i, word in enumerate(sentence):
        for reading in [word, *confused.get(word, [])]:
            # The written word has the best score on average only.
            noise[i, reading] = rng.gauss(1.0 if reading == word else 0.0, 1.0)
    found = {}
    for _ in range(20 * n):
        drawn = tuple(
            rng.choice(confused[word])
            if confused.get(word) and rng.random() < 0.25
            else word
            for word in sentence
        )
        found[drawn] = sum(noise[i, word] for i, word in enumerate(drawn))
    return sorted(found.items(), key=lambda item: -item[1])[:n]


rng = random.Random(0)
held_out = [(s, readings(rng, s)) for s in rng.sample(sentences(corpus.valid), 150)]
test = [(s, readings(rng, s)) for s in rng.sample(sentences(corpus.test), 300)]
sentence, n_best = test[0]
print("written:", *sentence)
for reading, score in n_best[:4]:
    print(f"{score:7.2f}", *reading)

# %%
# The language models
# -------------------
# One model is Kneser-Ney, the other mixes it with the network. :class:`~nplm.TextLM`
# turns a model of windows into a text model, and its :class:`~nplm.Scorer` scores lists
# of sentences with few checks.

(X, y), (X_val, y_val), _ = corpus.windows(4)
kneser_ney = KneserNeyLM(n_words=corpus.n_words, boundary=corpus.boundary).fit(X, y)
network = NeuralLM.from_paper(
    "MLP9",
    order=None,
    n_words=corpus.n_words,
    loss=Importance(128),
    solver=SGD("linear"),
    batch_size=128,
    learning_rate_init=0.02,
    max_iter=5,
    random_state=0,
).fit(X, y, X_val=X_val, y_val=y_val)
members = [
    ("network", FrozenEstimator(network)),
    ("n-grams", FrozenEstimator(kneser_ney)),
]
mixture = MixtureLM(members, "learned").fit(X, y, X_val=X_val, y_val=y_val)
scorers = {
    name: TextLM.from_model(model, corpus.vocabulary, tokenizer=None).scorer()
    for name, model in [("n-grams", kneser_ney), ("with the network", mixture)]
}

# %%
# The weight, on sentences held out
# ---------------------------------
# The scores are not comparable, so the score of the language model gets a weight. Often
# each word also gets a bonus, because a sum of log-probabilities favours short
# sentences. Here all readings of a sentence have the same length, so the weight is
# enough.


def language_scores(scorer, lists):
    return [list(scorer.score_many(text for text, _ in n_best)) for _, n_best in lists]


def word_errors(lists, scores, weight):
    """Return the fraction of words that are read wrongly."""
    wrong = total = 0
    for (sentence, n_best), of_model in zip(lists, scores):
        totals = [own + weight * lm for (_, own), lm in zip(n_best, of_model)]
        best, _ = n_best[int(np.argmax(totals))]
        wrong += sum(a != b for a, b in zip(best, sentence))
        total += len(sentence)
    return wrong / total


weights = [0, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 4, 6]
fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
chosen = {}
for name, scorer in scorers.items():
    scores = language_scores(scorer, held_out)
    errors = [word_errors(held_out, scores, weight) for weight in weights]
    chosen[name] = weights[int(np.argmin(errors))]
    ax.plot(weights, errors, marker="o", label=name)
ax.set(xlabel="weight of the language model", ylabel="words read wrongly, held out")
ax.legend()
plt.show()

# %%
# The test sentences
# ------------------
# The oracle takes the best of the twenty readings, which is a limit for any weight.

none = [[0.0] * len(n_best) for _, n_best in test]
oracle = [[-sum(a != b for a, b in zip(text, s)) for text, _ in n] for s, n in test]
print(f"{'reader alone':<18}{word_errors(test, none, 0):.1%}")
for name, scorer in scorers.items():
    scores = language_scores(scorer, test)
    error = word_errors(test, scores, chosen[name])
    print(f"{name:<18}{error:.1%}   weight {chosen[name]}")
print(f"{'oracle':<18}{word_errors(test, oracle, 1e9):.1%}")

# %%
# The same scorer works on lattices, which have too many sentences to score one by one:
# :doc:`/guide/text`.
