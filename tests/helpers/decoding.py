"""A small problem of speech recognition, in which an n-gram model sees too little.

A sentence is a noun, an adverb and a verb. Nouns are of two kinds, and each kind has
verbs of its own. The verbs of the kinds differ in their first letter, between which the
acoustic scores do not decide. The adverb separates noun and verb, and few trigrams are
in the training text: a network learns the kinds of nouns, and n-grams do not.
"""

import warnings
from functools import cache
from itertools import product

import numpy as np

from nplm import KneserNeyLM, MixtureLM, TextLM, Tokenizer
from tests.helpers import paper_lm

NOUNS = [["".join(s) for s in product(start, "aeiou")] for start in ("dg", "kt")]
ADVERBS = ["oft", "nun", "fast", "nie", "auch", "noch"]
VERBS = [[f"{first}{end}" for end in ("ax", "ex", "ix", "ox")] for first in "bp"]
WORDS = [*NOUNS[0], *NOUNS[1], *ADVERBS, *VERBS[0], *VERBS[1]]
BLANK, SPACE = "-", "|"
TOKENS = [BLANK, SPACE, *sorted(set("".join(WORDS)))]


def sentences(n, seed):
    """Return n random sentences."""
    rng = np.random.default_rng(seed)
    texts = []
    for kind in rng.integers(2, size=n):
        words = rng.choice(NOUNS[kind]), rng.choice(ADVERBS), rng.choice(VERBS[kind])
        texts.append(" ".join(words))
    return texts


def emissions(text, rng):
    """Return log-probabilities of the tokens in each frame: (n_frames, n_tokens)."""
    frames = []
    for letter in text.replace(" ", SPACE):
        frames += [letter, BLANK]
    logits = rng.normal(0, 0.3, (len(frames), len(TOKENS)))
    for row, token in zip(logits, frames):
        heard = "bp" if token in "bp" else token
        row[[TOKENS.index(t) for t in heard]] = 6.0
    log_prob = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return np.ascontiguousarray(log_prob, dtype=np.float32)


@cache
def models():
    """Return text models of the sentences, by name."""
    network = paper_lm(n_hidden=16, embedding_dim=6, max_iter=30, random_state=0)
    ngrams = KneserNeyLM()
    members = [("n-grams", ngrams), ("network", network)]
    mixture = MixtureLM(members, [0.2, 0.8])
    kinds = {"n-grams": ngrams, "network": network, "mixture": mixture}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return {
            name: TextLM(model, 2, tokenizer=Tokenizer(r"\S+")).fit(sentences(250, 0))
            for name, model in kinds.items()
        }


@cache
def utterances():
    """Return pairs of a sentence and its emissions."""
    rng = np.random.default_rng(2)
    return [(text, emissions(text, rng)) for text in sentences(40, 1)]


def word_errors(decode):
    """Return the share of words that ``decode(emissions)`` gets wrong."""
    wrong = total = 0
    for text, frames in utterances():
        words, found = text.split(), decode(frames).split()
        assert len(found) == len(words)
        wrong += sum(a != b for a, b in zip(words, found))
        total += len(words)
    return wrong / total
