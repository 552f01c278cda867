"""Subword units that are learned, saved with a model and loaded again."""

import nplm

texts = ["to be or not to be", "that is the question"] * 20
ngrams = nplm.KneserNeyLM(discount_fallback=(0.5, 1, 1.5))
lm = nplm.TextLM(ngrams, tokenizer=nplm.Subwords("bpe", n_words=280)).fit(texts)
nplm.save(lm, "lm")
assert nplm.load("lm").text_scores(texts) == lm.text_scores(texts)
