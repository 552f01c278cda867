"""
Filtering text
==============

There is a little text of the kind that is wanted, and a heap of everything. Which of
the heap is worth training on? Moore and Lewis (2010) compare what two language models
say of each document: one of the wanted text, one of the heap.
"""

# %%
# A little text, and a heap
# -------------------------
# What is wanted is the reference of the Python language, the topics of its ``help()``.
# The heap has two thirds of these topics' paragraphs among many more of NumPy's
# documentation. Which is which is known here, and told to nobody but the last picture.

import inspect
from pydoc_data.topics import topics

import matplotlib.pyplot as plt
import numpy as np

from nplm import KneserNeyLM, TextLM, Tokenizer, Vocabulary


def paragraphs(texts):
    """Cut texts at blank lines; what occurs twice, as topics do, is taken once."""
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
# Few paragraphs are known to be wanted; some are kept apart to choose by, and to judge.
wanted, held_out, test = np.split(np.array(reference[: n // 3]), [n // 6, n // 4])
hidden = reference[n // 3 :]
heap = np.array([*hidden, *numpy_pages], dtype=object)
is_wanted = np.arange(len(heap)) < len(hidden)
order = rng.permutation(len(heap))
heap, is_wanted = heap[order], is_wanted[order]
print(f"{len(wanted)} paragraphs wanted, {len(held_out)} held out, {len(test)} to test")
print(f"a heap of {len(heap)}, of which {is_wanted.sum()} are of the wanted kind")

# %%
# One vocabulary
# --------------
# Perplexities of two vocabularies do not compare, and so neither do the two models of
# the method unless they share one. It is made once, of all the text there is to choose
# from, and both models get it as it is.

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
# The difference of the two models' cross-entropies, in nats a token: how much less a
# document surprises the model of the wanted text than that of the heap. The second is
# trained on as many paragraphs as the first, drawn from the heap.


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
# The rank is the method's; how much of it to take is not, and neither the heap nor the
# test text may decide it. A model of each share of the heap is asked how well it
# predicts the paragraphs that were held out: the best share is taken. Beside it are the
# rank by plain perplexity, which prefers what is short and full of frequent words, and
# paragraphs drawn at random.

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
ax.set(xlabel="share of the heap taken", ylabel="perplexity of the held-out text")
ax.set_xscale("log")
ax.legend()
plt.show()

# %%
# The test text
# -------------
# What was chosen is judged on text that had no part in it.

for name, rank in ranks.items():
    best = shares[int(np.argmin(reached[name]))]
    taken = rank[: int(best * len(heap))]
    perplexity = model_of([*wanted, *heap[taken]]).perplexity(list(test))
    right = is_wanted[taken].mean()
    print(f"{name:<29}{best:>5.0%} of the heap, perplexity {perplexity:6.1f}, "
          f"{right:4.0%} of it of the wanted kind")  # fmt: skip
print(f"{'nothing of the heap':<52}{of_wanted.perplexity(list(test)):6.1f}")

# %%
# The scores of the two kinds, which only a made heap lets us see:

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
