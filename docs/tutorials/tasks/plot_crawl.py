"""
Filtering a crawl
=================

A crawl of the web has good text, and code, menus and word salad. CCNet (Wenzek et al.
2020) scores each document by its perplexity under a 5-gram model of subwords, trained
on clean text, and cuts the documents at quantiles: a *head* to train on, a *middle* and
a *tail*. Here the clean text is documentation, and the crawl is made of what is
installed with Python.
"""

# %%
# A crawl
# -------
# Half of the paragraphs of Python's reference and of NumPy's documentation are the
# clean text; the other half is the prose of the crawl. We know the kind of each
# document, and use it only to judge the result.

import argparse
import inspect
import tempfile
import time
from pydoc_data.topics import topics

import matplotlib.pyplot as plt
import numpy as np

from nplm import KneserNeyLM, Subwords, TextLM
from nplm.formats import write_arpa


def paragraphs(texts):
    pieces = [" ".join(p.split()) for text in texts for p in text.split("\n\n")]
    kept = [p for p in pieces if p.count(" ") > 15 and ">>>" not in p]
    return list(dict.fromkeys(kept))


def documented(module):
    members = [m for _, m in inspect.getmembers(module, callable)]
    return dict.fromkeys(inspect.getdoc(member) or "" for member in members)


numpy_pages = (
    text for module in (np, np.linalg, np.random) for text in documented(module)
)
prose = paragraphs([*topics.values(), *numpy_pages])
rng = np.random.default_rng(0)
prose = [str(text) for text in rng.permutation(prose)]
clean, prose = prose[::2], prose[1::2]
sources = [inspect.getsource(module) for module in (inspect, argparse)]
code = [" ".join(part.split()) for text in sources for part in text.split("\n\n")]
kinds = {
    "prose": prose,
    "code": [part for part in code if len(part) > 80],
    "menus": [" ".join(rng.permutation(dir(np))[:20]) for _ in range(200)],
    "word salad": [" ".join(rng.permutation(text.split())) for text in prose[:200]],
}
crawl = [text for texts in kinds.values() for text in texts]
kind_of = np.repeat(list(kinds), [len(texts) for texts in kinds.values()])
print(f"{len(clean)} clean paragraphs; a crawl of")
print(*(f"{len(texts)} {name}" for name, texts in kinds.items()), sep=", ")

# %%
# The model
# ---------
# CCNet has one SentencePiece model for each language. ``Subwords("unigram")`` learns
# units by the same algorithm from the clean text. With a model of your own, it is
# ``tokenizer=sentencepiece.SentencePieceProcessor(model_file="en.sp.model")``.

lm = TextLM(KneserNeyLM(5), 4, tokenizer=Subwords("unigram", n_words=2000)).fit(clean)
perplexity = lm.perplexity(crawl, per_document=True)

# %%
# Head, middle, tail
# ------------------
# A perplexity has no meaning of its own, so thresholds are quantiles of the crawl's:
# CCNet cuts each language at 30% and 60%.

PARTS = ("head", "middle", "tail")
thresholds = np.quantile(perplexity, [0.3, 0.6])
part = np.searchsorted(thresholds, perplexity)
print(f"thresholds: perplexities {thresholds[0]:.0f} and {thresholds[1]:.0f}")
for name in kinds:
    shares = np.bincount(part[kind_of == name], minlength=3) / (kind_of == name).sum()
    print(
        f"{name:<12}",
        *(f"{p}{share:5.0%}" for p, share in zip(PARTS, shares)),
        sep="  ",
    )

fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
logs = [np.log10(perplexity[kind_of == name]) for name in kinds]
ax.hist(logs, 50, stacked=True, label=list(kinds))
for threshold in thresholds:
    ax.axvline(np.log10(threshold), color="black", linewidth=1)
ax.set(xlabel="log10 of the perplexity per token", ylabel="documents")
ax.legend()
plt.show()

# %%
# Look at the extremes. Very low perplexities come from repeated or boilerplate
# text, so some pipelines cut a few per cent at this end too.

for i in [*np.argsort(perplexity)[:2], *np.argsort(-perplexity)[:2]]:
    print(f"{perplexity[i]:9.0f}  {kind_of[i]}: {crawl[i][:60]}...")

# %%
# Throughput
# ----------
# Most of the time goes into splitting text. Where KenLM's module is installed, it
# scores the same units with the same model:

start = time.process_time()
documents = lm.tokenizer_.transform(crawl)
seconds = {"splitting into units": time.process_time() - start}
scorer = lm.scorer()
start = time.process_time()
scores = scorer.score_many(documents)
seconds["scoring, nplm"] = time.process_time() - start
try:
    import kenlm
except ImportError:
    print("KenLM's module is not installed")
else:
    with tempfile.NamedTemporaryFile(suffix=".arpa") as file:
        write_arpa(lm.estimator_, file.name, lm.vocabulary_.words_)
        other = kenlm.Model(file.name)
    spaced = [" ".join(units) for units in documents]
    start = time.process_time()
    log10 = [other.score(text) for text in spaced]
    seconds["scoring, KenLM"] = time.process_time() - start
    print("same scores:", np.allclose(np.array(log10) * np.log(10), scores, rtol=1e-4))
n_tokens = sum(map(len, documents))
for name, own in seconds.items():
    print(f"{name:<21}{n_tokens / own / 1e6:6.2f} million tokens a second")

# %%
# Files of any size
# -----------------
# A crawl is read as a stream, compressed or not, and neither a bad byte nor a line
# without a text ends it:
#
# .. code-block:: python
#
#    pages = TextLines("crawl.jsonl.zst", field="text", errors="skip")
#    head = (text for text in pages if lm.perplexity([text]) < thresholds[0])
#
# On the command line, ``nplm filter`` does it in processes, and keeps the other fields
# of each document; see :doc:`/guide/command_line`. To filter many files by one
# threshold, take it from a sample, and give it as ``--max-perplexity`` with each file.
#
# References
# ----------
# G. Wenzek et al. (2020). CCNet: extracting high quality monolingual datasets from web
# crawl data. *LREC*.
