"""
Words or subwords?
==================

A model of words knows the words of its vocabulary, and takes all others for one,
``<unk>``. A model of subword units, characters or bytes spells every text. Which one
predicts a text better? Perplexities do not say, because their tokens differ. Bits per
character do.
"""

# %%
# The text
# --------
# The reference of the Python language, the topics of its ``help()``: English, and code
# with many rare names. A document is a paragraph.

from pydoc_data.topics import topics

import matplotlib.pyplot as plt
import numpy as np

from nplm import KneserNeyLM, Subwords, TextLM, Tokenizer, Vocabulary

pieces = [" ".join(p.split()) for text in topics.values() for p in text.split("\n\n")]
paragraphs = list(dict.fromkeys(p for p in pieces if p.count(" ") > 5))
order = np.random.default_rng(0).permutation(len(paragraphs))
test = [paragraphs[i] for i in order[:400]]
train = [paragraphs[i] for i in order[400:]]
n_characters = sum(map(len, train))
print(f"{len(train)} paragraphs of {n_characters:,} characters, {len(test)} to test")

# %%
# Units below words
# -----------------
# ``tokenizer=Subwords("bpe", n_words=...)`` learns units from the same documents: it
# merges the most frequent pairs, beginning with bytes. The context of a model is a
# number of tokens, so smaller units need a higher order.

tokenizers = {
    "bytes": (Subwords("bytes"), 9),
    "characters": (Subwords("characters"), 9),
    **{f"bpe {n}": (Subwords("bpe", n_words=n), 6) for n in (500, 1000, 2000, 4000)},
    "unigram 1000": (Subwords("unigram", n_words=1000), 6),
}
# Where all units are frequent, their discounts cannot be estimated.
ngrams = KneserNeyLM(discount_fallback=(0.5, 1, 1.5))
models = {
    name: TextLM(ngrams, order - 1, tokenizer=tokenizer).fit(train)
    for name, (tokenizer, order) in tokenizers.items()
}
sentence = "The __getattr__() method returns a value."
for name, lm in models.items():
    [tokens] = lm.tokenizer_.transform([sentence])
    print(f"{name:<14}{' '.join(tokens)[:90]}")

# %%
# Units of bytes are spelled as in GPT-2, with ``Ġ`` for a blank.
#
# :meth:`TextLM.text_scores <nplm.TextLM.text_scores>` divides the log-probability of
# the whole text by its characters, bytes and words, whatever the tokens are.

scores = {name: lm.text_scores(test) for name, lm in models.items()}
for name, own in scores.items():
    print(
        f"{name:<14}{own.perplexity:8.1f} per token, {own.word_perplexity:8.0f} per "
        f"word, {own.bits_per_character:.3f} bits per character"
    )

# %%
# The perplexity per token says nothing here: the bytes have the lowest.

# %%
# Words
# -----
# The model of words has a token for unknown words. Its probability is that of all of
# them together, so it does not say which word it was. The model also has to spell
# them: its vocabulary has a small model of bytes, learned from the rarest words of the
# training text. The probability of an unknown word is that of ``<unk>`` times that of
# its bytes.

words = TextLM(ngrams, 3, vocabulary=Vocabulary(min_count=2)).fit(train)
own = scores["words"] = words.text_scores(test)
print(f"{own.n_unknown} of {own.n_tokens} tokens are unknown")
print(f"{own.bits_per_character:.3f} bits per character")
too_good = own._replace(spelling_log_prob=0.0)
print(f"{too_good.bits_per_character:.3f} without the spelling, which is too good")

# %%
# One advantage of the words is left. Blanks are not among their tokens, and where they
# do not follow from the tokens, this model is told them for nothing:

tokens = Tokenizer().transform(test)
joined = Tokenizer().inverse_transform(tokens)
n_same = sum(text == own for text, own in zip(test, joined))
print(f"the blanks of {n_same} of {len(test)} paragraphs follow from the tokens")

# %%
# All models in one figure:

names = list(scores)
bits = [own.bits_per_character for own in scores.values()]
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.barh(names[::-1], bits[::-1], color=["C1", *["C0"] * len(models)])
ax.set(xlabel="bits per character of the test text")
ax.set_xlim(min(bits) * 0.9)
plt.show()

# %%
# Generated text
# --------------
# The tokenizer joins what a model generates:

best = min(models, key=lambda name: scores[name].bits_per_character)
for name in ("bytes", best):
    text = models[name].generate(
        "The method", max_words=200, temperature=0.6, random_state=0, with_context=True
    )
    print(f"{name}: {text[:200]}")

# %%
# References
# ----------
# R. Sennrich, B. Haddow and A. Birch (2016). Neural machine translation of rare words
# with subword units. *ACL*.
#
# S. J. Mielke et al. (2021). Between words and characters: a brief history of
# open-vocabulary modeling and tokenization in NLP. *arXiv:2112.10508*.
