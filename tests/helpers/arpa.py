"""Small models and ARPA files, as KenLM and SRILM write them."""

import warnings
from functools import partial
from itertools import product

import numpy as np

from nplm import KneserNeyLM, windows

N_WORDS = 30
WORDS = ["<unk>", "</s>", "naïve", *(f"w{i}" for i in range(3, N_WORDS))]


def fitted(order=3, *, boundary=None, n=3000, n_words=N_WORDS, **parameters):
    """Return a Kneser-Ney model, and the windows that it was fitted to.

    The last word is in none of them.
    """
    ids = np.random.default_rng(0).zipf(1.4, size=n) % (n_words - 1)
    X, y = windows(ids, max(order - 1, 1), boundary=boundary)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = KneserNeyLM(
            order, n_words=n_words, boundary=boundary, **parameters
        ).fit(X, y)
    return model, X, y


def with_unseen(X, y):
    """Return windows, and as many with their words shuffled."""
    rng = np.random.default_rng(0)
    X = np.concatenate([X, rng.permuted(X, axis=0)])
    return X.astype(np.int32), np.concatenate([y, rng.permutation(y)]).astype(np.int32)


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


def arpa_of(ngrams):
    """Return an ARPA file of {words: (log10 probability, log10 weight)}."""
    order = max(map(len, ngrams))
    of_order = [[g for g in ngrams if len(g) == k + 1] for k in range(order)]
    tables = [{gram: ngrams[gram] for gram in own} for own in of_order]
    text = "\\data\\\n"
    text += "".join(f"ngram {k}={len(own)}\n" for k, own in enumerate(tables, 1))
    for k, own in enumerate(tables, 1):
        text += f"\n\\{k}-grams:\n"
        for gram, (prob, weight) in own.items():
            text += f"{prob}\t{' '.join(gram)}" + f"\t{weight}" * (k < order) + "\n"
    return text + "\n\\end\\\n"


def ngrams_with_marks_anywhere(rng, order, suffixes):
    """Return n-grams in which either mark may stand in any position.

    The context of each is an n-gram and, with `suffixes`, so is its suffix: KenLM reads
    no file that lacks many.
    """
    number = partial(rng.choice, [0, -0.25, -0.5, -1.25, 0.25])
    words = ["<s>", "a", "b", "</s>"]
    ngrams = {(w,): (-0.125 * i - 0.25, number()) for i, w in enumerate(words)}
    ngrams["<unk>",] = -2, 0
    ngrams["<s>",] = rng.choice([0, -99, -1.5]), rng.choice([0, -0.75])
    for k in range(2, order + 1):
        for gram in product(words, repeat=k):
            wanted = rng.random() < 0.4 or gram in [("<s>", "a"), ("<s>", "a", "b")]
            if gram[:-1] in ngrams and (gram[1:] in ngrams or not suffixes) and wanted:
                lowest = rng.choice([-99, -0.5]) if gram[-1] == "<s>" else -0.5
                ngrams[gram] = (
                    lowest * rng.uniform(0.2, 1),
                    number() if k < order else 0,
                )
    return ngrams
