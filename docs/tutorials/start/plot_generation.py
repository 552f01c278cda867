"""
Suggesting and writing
======================

A model of the next word can suggest words while someone types, and can write by itself,
a word at a time.
"""

# %%
# A text model
# ------------
# We mix the network and Kneser-Ney, on the documentation inside Python and its
# scientific packages. :class:`~nplm.TextLM` contains the tokenizer and the vocabulary.

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

from nplm import (
    SGD,
    Importance,
    KneserNeyLM,
    MixtureLM,
    NeuralLM,
    TextLM,
    Tokenizer,
    Vocabulary,
)
from nplm.datasets import load_python_docs
from nplm.inspection import NextWordsDisplay

corpus = load_python_docs()
corpus = replace(
    corpus,
    train=corpus.train[:250_000],
    valid=corpus.valid[:25_000],
    test=corpus.test[:25_000],
)

train, valid, test = map(corpus.documents, ("train", "valid", "test"))
network = NeuralLM.from_paper(
    "MLP9",
    order=None,
    loss=Importance(128),
    solver=SGD("linear"),
    batch_size=128,
    learning_rate_init=0.02,
    max_iter=5,
    random_state=0,
)
mixture = MixtureLM([("network", network), ("n-grams", KneserNeyLM())], "learned")
lm = TextLM(mixture, n_context=4, vocabulary=Vocabulary()).fit(train, X_val=valid)

# %%
# The next words
# --------------
# ``next_words`` gives the most probable words, and :class:`~nplm.inspection.\
# NextWordsDisplay` plots them. ``exclude`` leaves out the mark that ends a document,
# which nobody types.

starts = ["Return a list of", "raised when the", "If the optional argument"]
fig, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
for start, ax in zip(starts, axes):
    NextWordsDisplay.from_estimator(lm, start.split(), k=8, exclude=["</s>"], ax=ax)
plt.show()

# %%
# How many words need not be typed
# --------------------------------
# If a word is among the first k suggestions, the user selects it, and otherwise types
# it. The figure shows the share of the test words that are selected, by k and by the
# number of letters that were typed already: these exclude words that begin with others.


def chosen(lm, documents, ks, n_letters, most=400):
    """Give the share of words among the first k suggestions, for each of `ks`."""
    model, words = lm.estimator_, lm.vocabulary_.words_
    begins = np.array([str(word)[:n_letters] for word in words])
    windows = lm.vocabulary_.transform(documents)
    found = []
    for ids in windows:
        before = [lm.boundary_] * 4
        for i in ids:
            if words[i].isalpha() and words[i] != lm.vocabulary_.unknown:
                found.append((before, i))
            before = [*before[1:], i]
    rng = np.random.default_rng(0)
    places = rng.choice(len(found), most, replace=False)
    contexts = [found[p][0] for p in places]
    next_words = np.array([found[p][1] for p in places])
    proba = model.predict_proba(contexts)
    proba[begins[np.newaxis] != begins[next_words, np.newaxis]] = 0
    own = proba[np.arange(most), next_words]
    rank = (proba > own[:, np.newaxis]).sum(axis=1)
    return [(rank < k).mean() for k in ks]


ks = [1, 2, 3, 5, 8, 12]
fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for n_letters in range(4):
    share = chosen(lm, test, ks, n_letters)
    ax.plot(ks, share, marker="o", label=f"{n_letters} letters typed")
ax.set(xlabel="suggestions shown", ylabel="share of the words among them", ylim=(0, 1))
ax.legend()
plt.show()

# %%
# Writing
# -------
# ``generate`` draws a word, appends it, and draws the next. If words are drawn by their
# probabilities alone, an unlikely word leads astray now and then. ``temperature`` below
# 1 prefers likely words; ``top_k`` and ``top_p`` (nucleus sampling) leave out the tail.

manners = {
    "as they come": {},
    "temperature 0.6": {"temperature": 0.6},
    "the 10 likeliest": {"top_k": 10},
    "nucleus of 0.6": {"top_p": 0.6},
    "always the likeliest": {"top_k": 1},
}
for name, manner in manners.items():
    words = lm.generate(["Return", "the"], max_words=18, random_state=1, **manner)
    [text] = Tokenizer().inverse_transform([["Return", "the", *words]])
    print(f"{name}:\n    {text}\n")

# %%
# A narrower choice lowers the perplexity of the generated text under the model itself,
# and also the number of different words. Likely text is not good text: always taking
# the likeliest word leads to repetition.

print(f"{'':<22}{'perplexity':>11}{'different words':>17}")
for name, manner in manners.items():
    texts = lm.generate(n=40, max_words=30, random_state=0, **manner)
    texts = [text for text in texts if len(text)]
    different = len({word for text in texts for word in text})
    share = different / sum(map(len, texts))
    print(f"{name:<22}{lm.perplexity(texts):>11.1f}{share:>17.0%}")
print(f"{'the test documents':<22}{lm.perplexity(test):>11.1f}")

# %%
# Saved by :func:`nplm.save`, the model does the same on the command line:
# ``nplm suggest``, ``nplm generate`` (:doc:`/guide/command_line`).
