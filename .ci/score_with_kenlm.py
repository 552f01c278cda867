"""KenLM reads a model of ours, and gives a sentence the same probability."""

import math

import kenlm
import numpy as np

from nplm import KneserNeyLM, windows
from nplm.datasets import load_python_docs
from nplm.formats import write_arpa

corpus = load_python_docs()
end = corpus.boundary
lm = KneserNeyLM(n_words=corpus.n_words, boundary=end)
lm.fit(*windows(corpus.train[:20_000], 2, boundary=end))
write_arpa(lm, "model.arpa", corpus.words)

sentence = np.unique(corpus.train[:20_000])[2:12]  # words of it, in any order
text = " ".join(corpus.words[sentence])
ours = lm.log_prob(*windows([*sentence, end], 2, boundary=end)).sum()
theirs = kenlm.Model("model.arpa").score(text) * math.log(10)
assert math.isclose(ours, theirs, abs_tol=0.01), (ours, theirs)
print(f"log-probability of {text!r}: {ours:.4f}, by KenLM {theirs:.4f}")
