"""
Grid search on documents and on windows
=======================================

A text model takes raw text, and its samples are documents. The models inside take word
ids, and their samples are windows. Both work in a ``GridSearchCV``. Do not search the
parameters that decide the vocabulary.
"""

# %%
# Documents
# ---------
# The raw text is the help topics of Python's interpreter, without long ones and those
# with tables drawn in characters.

from pydoc_data.topics import topics

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV

from nplm import InterpolatedTrigram, NeuralLM, TextLM, Tokenizer, Vocabulary, windows

texts = [text for _, text in sorted(topics.items())]
documents = [text for text in texts if len(text) < 4_000 and "+---" not in text]
print(len(documents), "documents,", sum(map(len, documents)), "characters")
print(documents[0][:200])

# %%
# A :class:`~nplm.TextLM` splits a document into words and punctuation marks, maps them
# to ids by its vocabulary, and cuts windows that never cross from one document into
# another.

network = NeuralLM(embedding_dim=32, max_iter=6, random_state=0)
lm = TextLM(
    network,
    n_context=4,
    tokenizer=Tokenizer(lowercase=True),
    vocabulary=Vocabulary(min_count=2),
)

# %%
# ``order`` and ``n_hidden`` are the model's parameters, inside the ``TextLM``.
# Windows have four words of context whatever the order, so every candidate is
# scored on the same tokens. The score is the mean log-probability a token, and
# higher is better.

grid = {"estimator__order": [2, 3, 5], "estimator__n_hidden": [10, 40]}
search = GridSearchCV(lm, grid, cv=3).fit(documents)


def show(search):
    for params, score in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"]
    ):
        named = {key.split("__")[-1]: value for key, value in params.items()}
        print(f"score {score:.3f}   perplexity {np.exp(-score):5.1f}   {named}")
    print("best:", search.best_params_)


show(search)

# %%
# The best model was fitted again on all documents, and predicts how one may continue:

words, probabilities = search.best_estimator_.next_words("The value of the")
for word, p in zip(words, probabilities):
    print(f"{p:.3f}  {word}")

# %%
# Windows
# -------
# The next search is on windows of one stream of ids. The vocabulary is made once, so
# ``n_words`` is known. Folds are contiguous pieces of the text, because models are
# density estimators (see :doc:`/guide/contracts`).

tokens = Tokenizer(lowercase=True).transform(documents)
vocabulary = Vocabulary(min_count=2)
ids = vocabulary.fit_transform(tokens)
boundary = vocabulary.boundary_id_
stream = np.concatenate([[*text, boundary] for text in ids])
X, y = windows(stream, 4, boundary=boundary)

network.set_params(n_words=vocabulary.n_words_)
search = GridSearchCV(network, {"order": [2, 3, 5], "n_hidden": [10, 40]}, cv=3)
show(search.fit(X, y))

# %%
# These figures do not compare with those above, because the vocabulary is another: it
# has the words of the fold that is scored, too. Above, each fold made its vocabulary
# from its training documents, and mapped all other words to ``<unk>``, which is easier
# to predict.

# %%
# A parameter not to search
# -------------------------
# ``min_count`` decides which words become ``<unk>``. The more words do, the easier the
# text is to predict: the score improves while the model predicts fewer words.
# Perplexities of different vocabularies do not compare.

lm.set_params(estimator=InterpolatedTrigram())
min_counts = [1, 2, 5, 20, 60]
trap = GridSearchCV(lm, {"vocabulary__min_count": min_counts}, cv=3).fit(documents)
perplexity = np.exp(-trap.cv_results_["mean_test_score"])
unknown = [
    Vocabulary(n).fit(tokens).count_unknown(tokens).sum() / sum(map(len, tokens))
    for n in min_counts
]
for n, part, value in zip(min_counts, unknown, perplexity):
    print(f"min_count {n:>2}: {part:4.0%} <unk>, perplexity {value:6.1f}")

fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.plot(unknown, perplexity, marker="o")
for n, part, value in zip(min_counts, unknown, perplexity):
    ax.annotate(f" min_count={n}", (part, value))
ax.set(xlabel="fraction of <unk>", ylabel="perplexity", title="Not progress")
ax.set_xlim(right=1.25 * max(unknown))
fig.show()
