"""
Which language is it?
=====================

A model of the characters of each language tells in which one a short text is written:
the one that finds it the most probable. :class:`~nplm.LMClassifier` does this with any
model of nplm, and has the methods of scikit-learn's classifiers.
"""

# %%
# Texts
# -----
# Sphinx, the program that makes these pages, is installed with its messages in many
# languages. We take those of nine languages in the Latin script; five of them are close
# relatives. A message is one text. The names in it, such as ``%s`` or ``conf.py``, are
# the same in all languages and are removed.

import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import sphinx
from babel.messages.mofile import read_mo
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import GroupShuffleSplit
from sklearn.pipeline import make_pipeline

from nplm import InterpolatedTrigram, KneserNeyLM, LMClassifier, TextLM, Tokenizer

LANGUAGES = {
    "ca": "Catalan",
    "es": "Spanish",
    "fr": "French",
    "gl": "Galician",
    "id": "Indonesian",
    "pt_BR": "Portuguese",
    "sq": "Albanian",
    "sv": "Swedish",
    "tr": "Turkish",
}
NAMES = re.compile(r"%\(?\w*\)?\w|\{\w*\}|[\"`“”«»]\S*|\S*[\d_./:=\\<>-]\S*")


def messages(code):
    """Yield the messages in a language, with the English one that each translates."""
    folder = Path(sphinx.__file__).parent / "locale" / code / "LC_MESSAGES"
    with open(folder / "sphinx.mo", "rb") as file:
        for message in read_mo(file):
            english, text = message.id, message.string
            if isinstance(text, str) and english and text != english:
                cleaned = " ".join(NAMES.sub(" ", text).split())
                if len(cleaned) >= 15:
                    yield english, cleaned


rows = [
    (text, language, english)
    for code, language in LANGUAGES.items()
    for english, text in messages(code)
]
texts, languages, english = map(np.array, zip(*rows))
print(f"{len(texts)} messages, such as:")
for language in LANGUAGES.values():
    print(f"{language:<11}", min(texts[languages == language], key=len))

# %%
# The translations of one message stay together, all in the training part or all in the
# test part: a program's name that we did not remove would otherwise be seen in both.

split = GroupShuffleSplit(n_splits=1, test_size=0.5, random_state=0)
train, test = next(split.split(texts, groups=english))
print(f"{len(train)} to train on, {len(test)} to test")

# %%
# A model of characters
# ---------------------
# ``Tokenizer("(?s).")`` makes a token of each character. The model of a language is a
# :class:`~nplm.KneserNeyLM` of five of them. The vocabulary has the characters of all
# languages, because probabilities compare only between models with one vocabulary;
# :class:`~nplm.LMClassifier` sees to that.

characters = TextLM(
    KneserNeyLM(5, discount_fallback=(0.5, 1, 1.5)), tokenizer=Tokenizer("(?s).")
)
classifier = LMClassifier(characters, priors="uniform")
classifier.fit(texts[train], languages[train])
print(f"right: {classifier.score(texts[test], languages[test]):.1%}")
for text in ["le fichier est vide", "el fitxer no existeix", "filen är tom"]:
    [proba] = classifier.predict_proba([text])
    best = np.argsort(-proba)[:2]
    shown = ", ".join(f"{classifier.classes_[i]} {proba[i]:.4f}" for i in best)
    print(f"{text:<22}{shown}")

# %%
# The errors are between relatives:

fig, ax = plt.subplots(figsize=(6, 5.5), layout="constrained")
ConfusionMatrixDisplay.from_estimator(
    classifier, texts[test], languages[test], ax=ax, colorbar=False, cmap="Blues",
    xticks_rotation="vertical",
)  # fmt: skip
plt.show()

# %%
# Short texts
# -----------
# How many characters does it take? We cut the test messages. Beside it stands what is
# usual in scikit-learn, a logistic regression on counts of up to five characters, and a
# model of single characters and their pairs.

usual = make_pipeline(
    TfidfVectorizer(analyzer="char", ngram_range=(1, 5), sublinear_tf=True),
    LogisticRegression(C=30, max_iter=1000),
)
pairs = TextLM(InterpolatedTrigram(2), tokenizer=Tokenizer("(?s)."))
candidates = {
    "Kneser-Ney, 5 characters": classifier,
    "pairs of characters": LMClassifier(pairs, priors="uniform"),
    "logistic regression": usual,
}
for model in list(candidates.values())[1:]:
    model.fit(texts[train], languages[train])

lengths = [5, 10, 15, 20, 30, 50, 100]
fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for name, model in candidates.items():
    right = [
        model.score([text[:n] for text in texts[test]], languages[test])
        for n in lengths
    ]
    ax.plot(lengths, right, marker="o", label=name)
    print(f"{name:<26}", *(f"{share:6.1%}" for share in right))
ax.set(xlabel="characters of a text", ylabel="share that is right", xscale="log")
ax.set_xticks(lengths, [str(n) for n in lengths])
ax.legend()
plt.show()

# %%
# A classifier is an estimator like any other: its parameters have names for a grid
# search, such as ``estimator__estimator__order``, and :func:`nplm.save` writes it to a
# file.
