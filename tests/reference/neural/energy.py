"""Output units of the energy of section 5.1 (_energy)."""

import numpy as np


def energies(weights, z):
    """Return E = v . tanh(z + H_next C(w)) + b of all words w, the tanhs and each v.

    A row of z is d + Hx of a context, and one of v a word's.
    """
    a = np.tanh(z[:, None] + weights.C @ weights.H_next.T)
    own, b = weights.E[:, :-1], weights.E[:, -1]
    v = own if weights.v is None else np.tile(weights.v, (len(b), 1))
    return np.einsum("kji,ji->kj", a, v) + b, a, v


def energy_gradients(weights, z, g):
    """Backpropagate dL/dlogits, K rows of g, to the parameters and to z."""
    _, a, v = energies(weights, z)
    ds = -g[:, :, None] * v * (1 - a**2)
    dG = ds.sum(axis=0)
    dv, db = -np.einsum("kj,kji->ji", g, a), -g.sum(axis=0)[:, None]
    shared = weights.v is not None
    slopes = weights._replace(
        C=dG @ weights.H_next, H_next=dG.T @ weights.C,
        E=db if shared else np.hstack([dv, db]), v=dv.sum(axis=0) if shared else None,
    )  # fmt: skip
    return slopes, ds.sum(axis=1)
