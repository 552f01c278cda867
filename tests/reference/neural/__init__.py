"""The network in plain NumPy: the same names as the kernels', and easy to read.

This is the specification against which the compiled kernels are tested: the parts
(`parts`, `lstm`, `dropout`, `outputs`, `sampled`, `energy`, `solvers`), and the
`network` of these parts. Each module names its compiled modules. `_products`, `_loops`
and `_team` only make these fast, and have no modules here.
"""

from tests.reference.neural.dropout import Dropout, mask, mask_of_contexts
from tests.reference.neural.energy import energies, energy_gradients
from tests.reference.neural.lstm import Carried, Memory, cell, lstm, lstm_of_windows
from tests.reference.neural.network import (
    candidates,
    forward,
    gradients,
    hidden,
    log_prob,
    probabilities,
    score,
    train,
)
from tests.reference.neural.outputs import (
    Classes,
    Softmax,
    Tree,
    exact,
    log_softmax,
    softmax,
)
from tests.reference.neural.parts import (
    composed,
    concatenation,
    distant_averages,
    features,
    inputs,
    linear_layer,
    mixed_senses,
    projection,
    rectified_layer,
    residual_block,
    tanh_layer,
)
from tests.reference.neural.rounding import as_it_is, bfloat16
from tests.reference.neural.sampled import (
    Importance,
    NoiseContrastive,
    Sampled,
    Sampler,
    logistic,
)
from tests.reference.neural.solvers import SGD, Adam, Solver
from tests.reference.neural.weights import Block, Weights
