"""Check that parameters read from a file define probability distributions."""

from __future__ import annotations

import numpy as np

from nplm.models.neural.network.hidden import Block
from nplm.models.neural.network.network import Parts
from nplm.models.neural.network.parameters import Parameters

__all__ = ["check_sums"]


def check_sums(parameters: Parameters, parts: Parts) -> None:
    """Raise ValueError if weights are not finite, or their sums may overflow.

    With overflow, probabilities do not sum to 1.
    """
    arrays = parameters.trained() | {"C": parameters.C}
    size = {k: max(float(a.max(initial=0)), -float(a.min(initial=0)))
            for k, a in arrays.items()}  # fmt: skip
    if not np.isfinite(list(size.values())).all():
        raise ValueError("its weights have NaN or infinite values")
    P = parameters.P
    x = size["C"] * max(1.0, 0.0 if P is None else float(np.abs(P).sum(axis=1).max()))
    x += size.get("S", 0.0)  # the mixture weights sum to 1
    sums = [size["d"] + parameters.H.shape[1] * size["H"] * x]
    if "H_next" in size:  # terms of the next word
        sums[0] += parts.features.m * size["H_next"] * size["C"]
        sums.append(len(parameters.d) * size.get("v", 0.0))
    if "Q" in size:
        of_others = 2 * parts.inputs.n_window * size["C"]
        sums.append(parameters.C.shape[1] * size["Q"] * of_others)
    a, h = 1.0, parameters.n_hidden
    if "V" in size:
        sums[0] += h * size["V"]
    for i, block in enumerate(Block.all_of(parameters.more), 1):
        H, d, U = (size[name] for name in Block.names(i))
        of_units = d + H * h**1.5  # the norm of norm(a) is sqrt(h)
        a += len(block.d) * U * of_units
        sums += [of_units, h * a**2]
    z = max(a, x)
    if "R" in size:
        z = parameters.more["R"].shape[1] * size["R"] * z
        sums.append(z)
    sums.append(parameters.n_outputs * size["E"] * max(1.0, z))
    if not max(sums) < np.finfo(parameters.dtype).max / 16:
        raise ValueError("its weights are so large that sums of them overflow")
