"""
Threads and processes
=====================

Section 3 of the paper describes two kinds of parallel training: processors that share
the examples, and processors that share the output units. This page shows both, on the
threads of one computer and on the processes of a cluster.
"""

# %%
# Threads
# -------
# ``n_jobs`` is the number of threads of a fit. With ``parallel="sync"`` they compute
# each mini-batch together: the result depends only on the number of threads. In the
# network below, whose work is nearly all in the output units, each thread has a block
# of these; with noise samples, classes or a tree each has some of the examples. With
# ``parallel="async"`` each thread has mini-batches of its own, and the parameters are
# shared without a lock.

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from nplm import NeuralLM
from nplm.datasets import load_python_docs

corpus = load_python_docs()
(X, y), (X_val, y_val), _ = corpus.windows(4)
X, y, X_val, y_val = X[:10_000], y[:10_000], X_val[:3_000], y_val[:3_000]
settings = dict(
    order=None, n_words=corpus.n_words, n_hidden=60, batch_size=128,
    learning_rate_init=0.01, max_iter=1, early_stopping=False, random_state=0,
)  # fmt: skip


ways = {
    "1 thread": {},
    "2 threads, sync": {"n_jobs": 2},
    "2 threads, async": {"n_jobs": 2, "parallel": "async"},
}
for name, parallel in ways.items():
    fits = [
        NeuralLM.from_paper("MLP9", **settings, **parallel).fit(X, y) for _ in range(2)
    ]
    perplexity = f"perplexity {fits[0].perplexity(X_val, y_val):.1f}"
    same = all((getattr(fits[0], a) == getattr(fits[1], a)).all() for a in ("C_", "U_"))
    print(f"{name:<17}{perplexity}, a second fit has the same bits: {same}")

# %%
# All three learn alike. Two threads that share mini-batches differ from one by
# rounding, and threads without a lock by the updates that were lost:

fig, ax = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
for (name, parallel), style in zip(ways.items(), ("-", "--", ":")):
    longer = NeuralLM.from_paper("MLP9", **settings | {"max_iter": 4}, **parallel)
    longer.set_params(early_stopping=True).fit(X, y, X_val=X_val, y_val=y_val)
    values = np.exp(longer.history_["val_loss"])
    ax.plot(range(1, len(values) + 1), values, style, marker="o", label=name)
ax.set(xlabel="epoch", ylabel="validation perplexity", xticks=range(1, 5))
ax.legend()
plt.show()

# %%
# A few thousand windows are too few to measure the gain of a second thread.
# :doc:`/measured/parallel` has it: two idle cores train the default and the presets 1.7
# to 1.9 times as fast as one.

# %%
# Scoring gives each thread a part of the windows, and its results have the same bits
# for any number of threads.

network = NeuralLM.from_paper("MLP9", **settings).fit(X, y)
alone = network.log_prob(X_val, y_val)
together = network.set_params(n_jobs=2).log_prob(X_val, y_val)
print("the same bits:", np.array_equal(alone, together))

# %%
# Processes
# ---------
# :mod:`nplm.mpi` fits one model with several processes, on one computer or many. Each
# process holds the output units of some words (section 3.2). ``mpiexec`` starts an
# ordinary script.

script = """
import numpy as np
from nplm import NeuralLM, mpi

data = np.load("windows.npz")  # every process reads the same windows
network = NeuralLM.from_paper("MLP9", n_words=int(data["n_words"]), n_hidden=60,
                              batch_size=128, learning_rate_init=0.01, max_iter=1,
                              order=None, random_state=0)
network = mpi.fit(network, data["X"], data["y"])
if mpi.rank() == 0:
    print(f"perplexity {network.perplexity(data['X_val'], data['y_val']):.1f}")
    print("times in history_:", *sorted(set(network.history_) - {"loss", "val_loss"}))
"""
environment = os.environ | {
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    # As many processes as we like, also on a computer with one core, and as root.
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}
with tempfile.TemporaryDirectory() as folder:
    Path(folder, "train.py").write_text(script)
    windows = {"X": X, "y": y, "X_val": X_val, "y_val": y_val}
    np.savez(Path(folder, "windows.npz"), n_words=corpus.n_words, **windows)
    command = ["mpiexec", "-n", "2", sys.executable, "-m", "mpi4py", "train.py"]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
print("$ mpiexec -n 2 python -m mpi4py train.py")
print(done.stdout)

# %%
# The fitted model is an ordinary estimator, the same in every process. The fits of a
# search over parameters are independent, and joblib distributes them
# (``GridSearchCV(n_jobs=...)``, over a cluster with Dask: :ref:`search-over-machines`).
