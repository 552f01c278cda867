"""The network of all parts (_network)."""

import numpy as np

from tests.reference.neural.dropout import NOTHING_LEFT_OUT
from tests.reference.neural.energy import energies, energy_gradients
from tests.reference.neural.lstm import (
    Carried,
    cell_sums,
    lstm,
    lstm_gradient,
    lstm_of_windows,
)
from tests.reference.neural.outputs import log_softmax, softmax
from tests.reference.neural.parts import (
    features,
    inputs,
    inputs_gradient,
    linear_layer,
    place_of,
    projection,
    residual_block,
    residual_block_gradient,
    rows_met,
    tanh_layer,
    weighted_gradient,
)
from tests.reference.neural.rounding import as_it_is


def forward(weights, X, rounded=as_it_is, masks=NOTHING_LEFT_OUT, memory=None):
    """Features x, hidden activations a, z and logits: equation (1) for K examples.

    a is that of the tanh layer or of LSTM cells, below any blocks. `memory` is the
    state of cells in training; without it, they read each window alone. `masks` apply
    to x and z, but not to a. For an energy, a and z are the sums of the context.
    """
    x = inputs(weights, X) * masks.x
    if weights.H_next is not None:
        z = linear_layer(weights.H, weights.d, x)
        return x, z, z, -energies(weights, z)[0]
    a = hidden_units(weights, x, X, memory, rounded)
    top = layers(weights, a, masks, rounded)[-1]
    if weights.R is None:
        of_output = rounded if weights.output.rounds else as_it_is
        return x, a, *softmax(weights.E, top, x, of_output)
    s = projection(weights.R, projected(weights, top, x), rounded) * masks.s
    return x, a, *softmax(output_rows(weights), s, x, rounded)


def hidden_units(weights, x, X, memory, rounded):
    """Return the a of K examples."""
    if weights.V is None:
        return tanh_layer(weights.H, weights.d, x, rounded)
    if memory is None:
        return lstm_of_windows(weights, X, weights.n_context, rounded)
    return lstm(weights.V, cell_sums(weights, x, rounded), memory, rounded)[0]


def layers(weights, a, masks, rounded):
    """Return what each block sees, and then what the output sees."""
    seen = [a * masks.a]
    for i, block in enumerate(weights.blocks):
        seen.append(residual_block(block, seen[-1], masks.of_block(i), rounded))
    return seen


def output_rows(weights):
    """Return E; of tied weights the features and the biases."""
    if weights.R is None:
        return weights.E
    return np.hstack([features(weights), weights.E[:, -1:]])


def projected(weights, a, x):
    """Return the input of the projection: a, or [a | x] with direct connections."""
    return np.hstack([a, x]) if weights.R.shape[1] > a.shape[1] else a


def gradients(
    weights, X, y, rounded=as_it_is, loss=None, masks=NOTHING_LEFT_OUT, memory=None
):
    """Log-likelihood of the examples, or another `loss`, and its gradient.

    Of logits E z, ``loss(E, z, y, rounded)`` returns the log-likelihood, the gradients
    for z and E, and the rows visited; the factors of products are `rounded`. Of any
    logits, ``loss.of_logits(logits, y)`` returns the log-likelihood, the gradient for
    them and the words visited.
    """
    return gradients_met(weights, X, y, rounded, loss, masks, memory)[:2]


def gradients_met(
    weights, X, y, rounded=as_it_is, loss=None, masks=NOTHING_LEFT_OUT, memory=None
):
    """Return the gradients, and the rows of each array that the examples visit."""
    K, h = len(X), weights.n_hidden
    x, a, z, logits = forward(weights, X, rounded, masks, memory)
    seen = [a]
    if weights.H_next is None:
        seen = layers(weights, a, masks, rounded)
    met, dR, dG = rows_met(weights, X, y), None, None
    if loss is not None and weights.H_next is None:
        E, place = output_rows(weights), place_of(weights, weights.E)
        total, dz, dE, met[place] = loss(E, z, y, rounded)
        dv = dz[:, :-1]
        if weights.R is not None:
            v = projected(weights, seen[-1], x)
            dv, dR = weighted_gradient(weights.R, v, dv * masks.s, rounded)
            met[place] = np.union1d(np.asarray(met[place]), X).astype(np.intp)
            if weights.parts is not None:
                met[-1] = np.unique(np.nonzero(weights.parts[met[place]])[1])
    elif weights.H_next is not None:
        if loss is not None:
            place = place_of(weights, weights.E)
            total, g, met[place] = loss.of_logits(logits, y)
            met[0] = np.union1d(np.asarray(met[place]), X).astype(np.intp)
        else:
            g = weights.output.slopes(logits, y)
            total = float(weights.output.log_p(logits)[np.arange(K), y].sum())
        slopes, do = energy_gradients(weights, z, g)
        dC, own = inputs_gradient(weights, X, do @ weights.H)
        dC += slopes.C
        slopes = slopes._replace(C=dC, H=do.T @ x, d=do.sum(axis=0), **own)
        return total, slopes, met
    else:
        of_output = rounded if weights.output.rounds else as_it_is
        g = of_output(weights.output.slopes(logits, y))
        total = float(weights.output.log_p(logits)[np.arange(K), y].sum())
        dE = g.T @ of_output(z)
        if weights.R is None:
            dv = (g @ of_output(weights.E))[:, :-1]
        else:
            ds = g @ rounded(features(weights)) * masks.s
            v = projected(weights, seen[-1], x)
            dv, dR = weighted_gradient(weights.R, v, ds, rounded)
    own = {}
    da, blocks = dv[:, :h], list(weights.blocks)
    for i, block in reversed(list(enumerate(weights.blocks))):
        da, blocks[i] = residual_block_gradient(
            block, seen[i], da, masks.of_block(i), rounded
        )
    da = da * masks.a
    if weights.V is not None and memory is not None:
        sums = cell_sums(weights, x, rounded)
        do, own["V"] = lstm_gradient(weights.V, sums, memory, da, rounded)
    else:
        do = (1 - a**2) * da
    dx, dH = weighted_gradient(weights.H, x, do, rounded)
    if dv.shape[1] > h:
        dx += dv[:, h:]
    dx *= masks.x
    dC, of_inputs = inputs_gradient(weights, X, dx)
    own |= of_inputs
    if weights.R is not None:
        dE[:, :-1] += dC
        dC = dE[:, :-1]
    if weights.parts is not None:
        dG = weights.parts.T @ dC
    slopes = weights._replace(
        C=None if weights.C is None else dC, H=dH, d=do.sum(axis=0), E=dE, R=dR,
        G=dG, blocks=tuple(blocks), **own,
    )  # fmt: skip
    return total, slopes, met


def train(
    weights,
    X,
    y,
    index,
    batch_size,
    solver,
    rounded=as_it_is,
    loss=None,
    dropout=None,
    n_runs=0,
):
    """Train the weights, mini-batch by mini-batch, and return the summed loss.

    `n_runs` is the number of runs that leave a memory to the next mini-batch.
    """
    summed, masks, memory = 0.0, NOTHING_LEFT_OUT, None
    carried = Carried(X, y, n_runs)
    near = X[:, X.shape[1] - weights.n_context :]
    for start in range(0, len(index), batch_size):
        rows = index[start : start + batch_size]
        if dropout is not None:
            masks = dropout.masks(weights, solver.n_seen, near[rows])
        now = solver.up_to_date(weights)
        if now.V is not None:
            memory = carried.of(rows)
            x = inputs(now, near[rows]) * masks.x
            sums = cell_sums(now, x, rounded)
            a, c, *_ = lstm(now.V, sums, memory, rounded)
            carried.keep(memory, a, c)
        total, slopes, met = gradients_met(
            now, near[rows], y[rows], rounded, loss, masks, memory
        )
        solver.visit(weights, met[0])
        solver.update(weights, slopes, len(rows), met)
        summed -= total
    solver.visit(weights, slice(None))
    return summed


def score(weights, X, y, *, first=0, rounded=as_it_is):
    """Maximum, sum of exponentials and target's logit of the words of E's rows."""
    logits = forward(weights, X, rounded)[-1]
    high = logits.max(axis=1)
    total = np.exp(logits - high[:, None]).sum(axis=1)
    target = np.full(len(y), -np.inf)
    here = np.flatnonzero((first <= y) & (y < first + len(weights.E)))
    target[here] = logits[here, y[here] - first]
    return np.stack([high, total, target])


def log_prob(weights, X, y, *, rounded=as_it_is):
    """Natural-log probability of each y after its context."""
    log_p = probabilities(weights, X, logarithm=True, rounded=rounded)
    return log_p[np.arange(len(y)), y]


def probabilities(weights, X, *, logarithm, rounded=as_it_is):
    """Probabilities of all words after each context, or their natural logarithms."""
    log_p = weights.output.log_p(forward(weights, X, rounded)[-1])
    return log_p if logarithm else np.exp(log_p)


def hidden(weights, X, *, rounded=as_it_is):
    """Hidden activations after each context; of tied weights the projected ones."""
    x, a, _, _ = forward(weights, X, rounded)
    top = layers(weights, a, NOTHING_LEFT_OUT, rounded)[-1]
    if weights.R is None:
        return top
    return projection(weights.R, projected(weights, top, x), rounded)


def candidates(weights, X, words, *, normalize, rounded=as_it_is):
    """Natural-log probabilities of some words after each context, or their logits.

    `rounded` are the factors of all products but those of the output units.
    """
    _, _, z, logits = forward(weights, X, rounded)
    if weights.H_next is None:
        logits = z @ output_rows(weights).T
    scores = log_softmax(logits) if normalize else logits
    return np.take_along_axis(scores, words, axis=1)
