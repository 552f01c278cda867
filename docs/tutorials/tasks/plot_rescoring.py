"""
Rescoring n-best lists
======================

A recogniser of speech, a translator or a reader of scanned pages proposes several
sentences, with scores of its own. A language model scores how likely each of them is
as English. :class:`~nplm.Rescorer` adds that score, times a weight, and tunes the
weight on held-out sentences.
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

from nplm import (
    SGD,
    Importance,
    KneserNeyLM,
    MixtureLM,
    NeuralLM,
    Rescorer,
    TextLM,
)
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
held_out = rng.sample(sentences(corpus.valid), 150)
held_out_lists = [readings(rng, sentence) for sentence in held_out]
test = rng.sample(sentences(corpus.test), 300)
test_lists = [readings(rng, sentence) for sentence in test]
print("written:", *test[0])
for reading, score in test_lists[0][:4]:
    print(f"{score:7.2f}", *reading)

# %%
# The language models
# -------------------
# One model is Kneser-Ney, the other mixes it with the network. :class:`~nplm.TextLM`
# turns a model of windows into a text model.

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
models = {
    name: TextLM.from_model(model, corpus.vocabulary, tokenizer=None)
    for name, model in [("n-grams", kneser_ney), ("with the network", mixture)]
}

# %%
# The weight, on sentences held out
# ---------------------------------
# The scores are not comparable, so the score of the language model gets a weight. A
# rescorer chooses the weight that makes the fewest errors on lists with references, by
# a metric that you give. Often each word also gets a weight, because a sum of
# log-probabilities favours short sentences. Here all readings of a sentence have the
# same length, so the weight of the language model is enough. With ``metric="wer"`` it
# takes the word error rate of the package jiwer, which also counts words that are added
# or left out.


def word_errors(references, texts):
    """Return the fraction of words that are read wrongly."""
    wrong = sum(a != b for s, text in zip(references, texts) for a, b in zip(text, s))
    return wrong / sum(map(len, references))


rescorers = {
    name: Rescorer(lm, metric=word_errors, weight_length=False).fit(
        held_out_lists, held_out
    )
    for name, lm in models.items()
}
for name, rescorer in rescorers.items():
    print(f"{name:<18}weight {rescorer.lm_weight_:.2f}")

# %%
# Above some weight the error hardly depends on it, and few words decide which is best:

weights = np.geomspace(0.1, 50, 13)
fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for name, rescorer in rescorers.items():
    tuned, errors = rescorer.lm_weight_, []
    for weight in weights:
        rescorer.lm_weight_ = weight
        errors.append(-rescorer.score(held_out_lists, held_out))
    rescorer.lm_weight_ = tuned
    [line] = ax.plot(weights, errors, marker="o", label=name)
    ax.axvline(tuned, color=line.get_color(), linestyle=":")
ax.set(xlabel="weight of the language model", ylabel="words read wrongly, held out")
ax.set_xscale("log")
ax.legend()
plt.show()

# %%
# The test sentences
# ------------------
# The oracle takes the best of the twenty readings, which is a limit for any weight.


def best_reading(sentence, n_best):
    return min(n_best, key=lambda item: sum(a != b for a, b in zip(item[0], sentence)))


alone = [n_best[0][0] for n_best in test_lists]
oracle = [best_reading(s, n_best)[0] for s, n_best in zip(test, test_lists)]
print(f"{'reader alone':<18}{word_errors(test, alone):.1%}")
for name, rescorer in rescorers.items():
    print(f"{name:<18}{-rescorer.score(test_lists, test):.1%}")
print(f"{'oracle':<18}{word_errors(test, oracle):.1%}")

# %%
# The same models work in decoders, which have too many sentences to score one by one:
# :doc:`/guide/decoders`.
