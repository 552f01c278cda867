"""
Filtering text
==============

You have a little text of the kind that you want, and a large mixed collection. Which of
its documents are worth training on? Moore and Lewis (2010) score each document with two
language models: one of the wanted text, one of the collection.
"""

# %%
# The wanted text and the collection
# ----------------------------------
# The wanted text is the reference of the Python language, the topics of its ``help()``.
# The collection (``heap``) has two thirds of these topics' paragraphs among many more
# of NumPy's documentation. We know which is which, and use it only to judge the result.

import inspect
from pydoc_data.topics import topics

import matplotlib.pyplot as plt
import numpy as np

from nplm import KneserNeyLM, TextLM, Tokenizer, Vocabulary


def paragraphs(texts):
    """Cut texts at blank lines, and drop repeated paragraphs."""
    pieces = [" ".join(p.split()) for text in texts for p in text.split("\n\n")]
    kept = [p for p in pieces if p.count(" ") > 15 and ">>>" not in p]
    return list(dict.fromkeys(kept))


def documented(module):
    members = inspect.getmembers(module, lambda member: callable(member))
    return [inspect.getdoc(member) or "" for _, member in members]


rng = np.random.default_rng(0)
reference = [str(p) for p in rng.permutation(paragraphs(topics.values()))]
modules = (np, np.linalg, np.fft, np.random, np.ma, np.ndarray, np.random.Generator)
numpy_pages = paragraphs(dict.fromkeys(d for m in modules for d in documented(m)))
n = len(reference)
# Few paragraphs are known to be wanted. Some are held out to choose by, some to judge.
wanted, held_out, test = np.split(np.array(reference[: n // 3]), [n // 6, n // 4])
hidden = reference[n // 3 :]
heap = np.array([*hidden, *numpy_pages], dtype=object)
is_wanted = np.arange(len(heap)) < len(hidden)
order = rng.permutation(len(heap))
heap, is_wanted = heap[order], is_wanted[order]
print(f"{len(wanted)} paragraphs wanted, {len(held_out)} held out, {len(test)} to test")
print(f"a collection of {len(heap)}, with {is_wanted.sum()} of the wanted kind")

# %%
# One vocabulary
# --------------
# Perplexities of two vocabularies do not compare, so both models of the method need the
# same one. It is made once, from all of the text to choose from.

tokenizer = Tokenizer(lowercase=True)
known = Vocabulary(min_count=2).fit(tokenizer.transform([*wanted, *heap]))
vocabulary = Vocabulary.from_words(
    known.words_, unknown=known.unknown, boundary=known.boundary
)


def model_of(texts):
    lm = TextLM(KneserNeyLM(3), 2, tokenizer=tokenizer, vocabulary=vocabulary)
    return lm.fit(list(texts))


# %%
# The score
# ---------
# The score is the difference of the cross-entropies of the two models, in nats a token:
# how much less a document surprises the model of the wanted text than that of the
# collection. The second model is trained on a sample of the collection, of as many
# paragraphs as the first.


def surprise(lm, texts):
    return np.log(lm.perplexity(list(texts), per_document=True))


of_wanted = model_of(wanted)
drawn = rng.choice(len(heap), len(wanted), replace=False)
of_heap = model_of(heap[drawn])
plain = surprise(of_wanted, heap)
difference = plain - surprise(of_heap, heap)
for i in [*np.argsort(difference)[:2], *np.argsort(-difference)[:2]]:
    print(f"{difference[i]:6.2f}  {heap[i][:68]}...")

# %%
# How many to take
# ----------------
# The method ranks the documents. It does not say how many to take, and neither the
# collection nor the test text may decide it. We train a model on each share of the
# collection, and take the share whose model predicts the held-out paragraphs best. For
# comparison we also rank by plain perplexity, which prefers short paragraphs of
# frequent words, and at random.

shares = [0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1]
ranks = {
    "difference (Moore and Lewis)": np.argsort(difference),
    "perplexity": np.argsort(plain),
    "at random": rng.permutation(len(heap)),
}
reached = {}
for name, rank in ranks.items():
    reached[name] = []
    for share in shares:
        lm = model_of([*wanted, *heap[rank[: int(share * len(heap))]]])
        reached[name].append(lm.perplexity(list(held_out)))

fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for name, perplexity in reached.items():
    ax.plot(shares, perplexity, marker="o", label=name)
ax.set(xlabel="share of the collection taken", ylabel="perplexity of the held-out text")
ax.set_xscale("log")
ax.legend()
plt.show()

# %%
# The test text
# -------------
# The test text had no part in the choice, so it can judge the result.

for name, rank in ranks.items():
    best = shares[int(np.argmin(reached[name]))]
    taken = rank[: int(best * len(heap))]
    perplexity = model_of([*wanted, *heap[taken]]).perplexity(list(test))
    right = is_wanted[taken].mean()
    print(f"{name:<29}{best:>5.0%} taken, perplexity {perplexity:6.1f}, "
          f"{right:4.0%} of the wanted kind")  # fmt: skip
print(f"{'the wanted text alone':<53}{of_wanted.perplexity(list(test)):6.1f}")

# %%
# Here we know the kind of each paragraph, so we can plot the scores of both kinds:

fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
bins = np.linspace(difference.min(), difference.max(), 50)
ax.hist([difference[is_wanted], difference[~is_wanted]], bins, stacked=True,
        label=["the wanted kind", "NumPy's"])  # fmt: skip
ax.axvline(np.sort(difference)[int(shares[int(np.argmin(reached[
    "difference (Moore and Lewis)"]))] * len(heap)) - 1], color="black")  # fmt: skip
ax.set(xlabel="difference of cross-entropies, nats a token", ylabel="paragraphs")
ax.legend()
plt.show()

# %%
# References
# ----------
# R. C. Moore and W. Lewis (2010). Intelligent selection of language model training
# data. *ACL*.
