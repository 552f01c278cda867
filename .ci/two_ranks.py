"""A fit over two processes, as the user guide has it."""

import numpy as np

from nplm import NeuralLM, mpi, windows

X, y = windows(np.tile([0, 1, 2, 3], 50), 2)
lm = NeuralLM(n_words=4, n_hidden=8, embedding_dim=2, random_state=0)
mpi.fit(lm, X, y)
assert mpi.MPI.COMM_WORLD.size == 2
assert np.isfinite(lm.score(X, y))
if mpi.rank() == 0:
    print(f"perplexity {lm.perplexity(X, y):.3f}")
