"""Small models and ARPA files, as KenLM and SRILM write them."""

import warnings

import numpy as np

from nplm import KneserNeyLM, windows

N_WORDS = 30
WORDS = ["<unk>", "</s>", "naïve", *(f"w{i}" for i in range(3, N_WORDS))]


def fitted(order=3, *, boundary=None, n=3000, **parameters):
    """Return a Kneser-Ney model, and the windows that it was fitted to."""
    ids = np.random.default_rng(0).zipf(1.4, size=n) % (N_WORDS - 1)
    X, y = windows(ids, max(order - 1, 1), boundary=boundary)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = KneserNeyLM(
            order, n_words=N_WORDS, boundary=boundary, **parameters
        ).fit(X, y)
    return model, X, y


# As written by KenLM's lmplz: 0 for <s>, tabs, all suffixes present.
KENLM = """\\data\\
ngram 1=5
ngram 2=4
ngram 3=2

\\1-grams:
-1.2\t<unk>\t0
0\t<s>\t-0.3
-0.9\t</s>\t0
-0.4\ta\t-0.2
-0.7\tb\t-0.1

\\2-grams:
-0.3\t<s> a\t-0.05
-0.2\ta b\t-0.15
-0.5\tb a\t0
-0.25\tb </s>\t0

\\3-grams:
-0.1\t<s> a b
-0.12\ta b </s>

\\end\\
"""
# A pruned model as written by SRILM: -99, some n-grams without a weight, some whose
# suffix (b c) or context (c a) is missing.
SRILM = """

\\data\\
ngram 1=5
ngram 2=2
ngram 3=3

\\1-grams:
-0.9\t</s>
-99\t<s>\t-0.3
-0.4\ta\t-0.2
-0.7\tb\t-0.1
-0.8\tc

\\2-grams:
-0.3\t<s> a\t-0.05
-0.2\ta b\t-0.15

\\3-grams:
-0.1\ta b c
-0.12\tc a b
-0.2\tb c </s>

\\end\\
"""
